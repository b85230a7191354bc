//! What can go wrong with the history.

use crate::session::{OutputError, ReadError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The history cannot do what was asked.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum HistoryError {
    #[error("there is no data folder to keep sessions in")]
    NoDataDir,
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Session(#[from] ReadError),
    #[error("the index of the history {path} cannot be used: {source}")]
    Index { path: PathBuf, source: rusqlite::Error },
    #[error("the history has no session `{reference}`")]
    NoSuch { reference: String },
    #[error("`{reference}` may be any of {candidates}")]
    Ambiguous { reference: String, candidates: String },
    #[error("the session {id} is being recorded")]
    Recording { id: String },
    #[error("the history has too many sessions that began at {stamp}")]
    TooMany { stamp: String },
    #[error("the name, tags and note of a session are in {path}, which cannot be read: {reason}")]
    Marks { path: PathBuf, reason: String },
    #[error("{0}")]
    BadMarks(String),
    #[error("the session {id} has the name `{name}` already")]
    NameTaken { id: String, name: String },
    #[error("{path}: {reason}")]
    Config { path: PathBuf, reason: String },
}

impl HistoryError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::NoDataDir => Some("name one with QNNSCOPE_DATA_DIR"),
            Self::NoSuch { .. } => Some("`qnnscope sessions` lists them"),
            Self::Ambiguous { .. } => Some("give more of the id"),
            Self::Marks { .. } => Some("mend the file, or remove it and give them anew"),
            Self::NameTaken { .. } => {
                Some("choose another, or take it away first with `qnnscope sessions rename ID ''`")
            }
            Self::Recording { .. } => Some("wait for its run to end, or stop it"),
            Self::Index { .. } => Some("remove the file: it is made anew from the sessions"),
            _ => None,
        }
    }

    /// True if the request was wrong.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::NoSuch { .. }
                | Self::Ambiguous { .. }
                | Self::Recording { .. }
                | Self::Marks { .. }
                | Self::BadMarks(_)
                | Self::NameTaken { .. }
                | Self::Config { .. }
                | Self::Session(_)
        )
    }
}
