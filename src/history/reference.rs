//! How sessions of the history are named where files are: `@ID`, `@NAME`, `@last`, `@last~2`.

use super::{Entry, History, HistoryError};
use crate::backends::runtime::Env;
use crate::event::clean_text;
use std::path::{Path, PathBuf};

/// The file that an argument names. One that begins with `@` and is no file is a session of the history; what is behind a
/// `#` stays.
///
/// # Errors
/// The history has no such session.
pub fn resolve(argument: &Path) -> Result<PathBuf, HistoryError> {
    let Some(reference) = argument.to_str().and_then(|text| text.strip_prefix('@')) else {
        return Ok(argument.to_owned());
    };
    if argument.exists() {
        return Ok(argument.to_owned());
    }
    let (reference, run) = reference.split_once('#').map_or((reference, None), |(before, run)| (before, Some(run)));
    let history = History::of(&Env::from_process().data_dir.ok_or(HistoryError::NoDataDir)?);
    let file = history.file(&history.find(reference)?.id);
    Ok(match run {
        Some(run) => PathBuf::from(format!("{}#{run}", file.display())),
        None => file,
    })
}

/// The entry, of those given newest first, that a reference names.
pub(super) fn pick(entries: Vec<Entry>, reference: &str) -> Result<Entry, HistoryError> {
    let missing = || HistoryError::NoSuch { reference: clean_text(reference) };
    if let Some(back) = last(reference) {
        return entries.into_iter().nth(back).ok_or_else(missing);
    }
    if let Some(at) = entries.iter().position(|entry| entry.id == reference) {
        return entries.into_iter().nth(at).ok_or_else(missing);
    }
    let is_named = |entry: &Entry| entry.marks.name.as_deref() == Some(reference);
    let named = entries.iter().any(is_named);
    let mut found: Vec<Entry> = entries
        .into_iter()
        .filter(|entry| if named { is_named(entry) } else { entry.id.starts_with(reference) && !reference.is_empty() })
        .collect();
    match found.len() {
        0 => Err(missing()),
        1 => Ok(found.swap_remove(0)),
        _ => Err(HistoryError::Ambiguous {
            reference: clean_text(reference),
            candidates: found.iter().take(5).map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// How many before the last one: `last` is 0, `last~2` is 2.
pub(super) fn last(reference: &str) -> Option<usize> {
    match reference.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}
