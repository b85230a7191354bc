//! Why runs cannot be loaded.

use crate::imports::ImportError;
use crate::session::ReadError;
use thiserror::Error;

/// A file, or a run in it, that cannot be compared.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum LoadError {
    #[error("cannot read {path}: {source}")]
    Io { path: String, source: std::io::Error },
    #[error("{path} {reason}")]
    Document { path: String, reason: String },
    #[error(transparent)]
    Session(#[from] ReadError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error("{path} is a result document: it has the runs' figures but not the events that reports need")]
    Figures { path: String },
    #[error("{path} is neither a session nor a known file of another tool: {reason}")]
    NoSession { path: String, reason: String },
    #[error("{path} has no run")]
    NoRun { path: String },
    #[error("{path} has no run `{wanted}`: its runs are {runs}")]
    NoSuchRun { path: String, wanted: String, runs: String },
}

impl LoadError {
    /// What to do about it.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Figures { .. } => Some(
                "`qnnscope show` prints it and `qnnscope compare` compares it; for a report, record the run with \
                 `--record NAME.jsonl`, or pick it from the history: `qnnscope sessions` lists them",
            ),
            _ => None,
        }
    }
}
