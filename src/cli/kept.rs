//! Where sessions are kept.

use crate::backends::runtime::Env;
use crate::files::Guard;
use crate::history::{History, HistoryError};

/// The history of the user's data folder.
pub fn history() -> Result<History, HistoryError> {
    Ok(History::of(&Env::from_process().data_dir.ok_or(HistoryError::NoDataDir)?))
}

/// Kept sessions must not be written to.
pub fn protect_history(guard: &mut Guard) {
    if let Ok(history) = history() {
        guard.reads_folder("the kept session", history.folder());
    }
}
