//! Where sessions are kept.

use crate::backends::runtime::Env;
use crate::files::Guard;
use crate::history::{History, HistoryError};

/// The history in the user's data folder.
pub fn history() -> Result<History, HistoryError> {
    Ok(History::of(&Env::from_process().data_dir.ok_or(HistoryError::NoDataDir)?))
}

/// Adds the kept sessions, which must not be overwritten.
pub fn protect_history(guard: &mut Guard) {
    if let Ok(history) = history() {
        guard.reads_folder("the kept session", history.folder());
    }
}
