//! How sessions of the history are named in place of files: `@ID`, `@NAME`, `@last`, `@last~2`.

use super::{History, HistoryError};
use crate::backends::runtime::Env;
use std::path::{Path, PathBuf};

/// The file that an argument names. If it starts with `@` and no such file exists, it is a session of the
/// history; anything after a `#` is kept.
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

/// How many sessions before the last one: `last` is 0, `last~2` is 2.
pub(super) fn last(reference: &str) -> Option<usize> {
    match reference.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}
