//! What can go wrong with the history.

use crate::session::{OutputError, ReadError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the history cannot do what was requested.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum HistoryError {
    #[error("there is no data folder for sessions")]
    NoDataDir,
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Session(#[from] ReadError),
    #[error("the history index {path} cannot be used: {source}")]
    Index { path: PathBuf, source: rusqlite::Error },
    #[error("the history has no session `{reference}`")]
    NoSuch { reference: String },
    #[error("`{reference}` matches several: {candidates}")]
    Ambiguous { reference: String, candidates: String },
    #[error("the session {id} is being recorded")]
    Recording { id: String },
    #[error("the history has too many sessions started at {stamp}")]
    TooMany { stamp: String },
    #[error("the name, tags and note of a session are in {path}, which cannot be read: {reason}")]
    Marks { path: PathBuf, reason: String },
    #[error("{0}")]
    BadMarks(String),
    #[error("session {id} already has the name `{name}`")]
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
            Self::Ambiguous { .. } => Some("give more characters of the id"),
            Self::Marks { .. } => Some("repair the file, or remove it and set them again"),
            Self::NameTaken { .. } => Some("choose another, or remove it first with `qnnscope sessions rename ID ''`"),
            Self::Recording { .. } => Some("wait for its run to end, or stop it"),
            Self::Index { .. } => Some("remove the file: qnnscope rebuilds it from the sessions"),
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
