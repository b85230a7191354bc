//! Why a file is not written.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A file that must not be written, or cannot be.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OutputError {
    #[error("{option} {path} would overwrite {role} {other}: it is the same file")]
    Clash { option: &'static str, path: PathBuf, role: &'static str, other: PathBuf },
    #[error("{option} {path} exists already, and {reason}")]
    Foreign { option: &'static str, path: PathBuf, reason: &'static str },
    #[error("{option} {path} is being written by another process")]
    Busy { option: &'static str, path: PathBuf },
    #[error("cannot write {option} {path}: {source}")]
    Io { option: &'static str, path: PathBuf, source: io::Error },
}

impl OutputError {
    /// What to do about it.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Clash { .. } => Some("name another file"),
            Self::Foreign { .. } => Some("name another file, or overwrite this one with --force"),
            Self::Busy { .. } => Some("name another file, or wait for the other process to end"),
            Self::Io { .. } => None,
        }
    }
}
