//! Errors in other tools' files.

use std::path::PathBuf;
use thiserror::Error;

/// A file that cannot be imported.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ImportError {
    #[error("cannot read {}: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} looks like a file of the kind `{label}`, but {reason}", .path.display())]
    Unreadable { path: PathBuf, label: &'static str, reason: String },
}

impl ImportError {
    /// The same error for a file that the user knows by this name.
    #[must_use]
    pub fn named(self, name: &std::path::Path) -> Self {
        let path = name.to_owned();
        match self {
            Self::Io { source, .. } => Self::Io { path, source },
            Self::Unreadable { label, reason, .. } => Self::Unreadable { path, label, reason },
        }
    }
}

/// The same without the file name, which only [`super::open`] knows.
#[derive(Debug)]
pub(super) enum Problem {
    /// It cannot be read.
    Io(std::io::Error),
    /// It is not what it looked like; the text continues "but".
    Content(String),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl Problem {
    pub fn content(reason: impl Into<String>) -> Self {
        Self::Content(reason.into())
    }
}
