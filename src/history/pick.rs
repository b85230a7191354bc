//! Resolves a reference to a session.

use super::reference::last;
use super::{Entry, HistoryError};
use crate::event::clean_text;

/// The entry that a reference names; `entries` are given newest first.
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
