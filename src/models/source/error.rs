//! Why a model before conversion cannot be read.

use std::path::PathBuf;
use thiserror::Error;

/// Why a model before conversion cannot be read.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum SourceError {
    #[error("cannot read the model {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path} is a damaged or truncated {format}: {reason} (at byte {at})")]
    Damaged { path: PathBuf, format: &'static str, reason: String, at: u64 },
    #[error("{path} declares more content than fits in {limit} bytes of memory without its tensor data")]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("tensor {tensor} of {path} stores its data in {file}, {reason}{others}")]
    External { path: PathBuf, tensor: String, file: String, reason: String, others: String },
    #[error("tensor {tensor} of {path} stores {stored} bytes, but its shape and type need {needed}")]
    WrongSize { path: PathBuf, tensor: String, stored: u64, needed: u64 },
    #[error("{path} has no free dimension {name}; it has: {known}")]
    NoSuchDimension { path: PathBuf, name: String, known: String },
    #[error("the context binary {name} of {path} {reason}")]
    Context { path: PathBuf, name: String, reason: String },
}

impl SourceError {
    /// How to fix it.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::External { .. } => {
                Some("copy the model together with its data files, or export it again into one folder")
            }
            Self::Damaged { .. } | Self::WrongSize { .. } => Some("copy or export the model again"),
            Self::Context { .. } => Some("copy the model together with its context binaries, or rebuild them"),
            Self::Io { .. } | Self::TooLarge { .. } | Self::NoSuchDimension { .. } => None,
        }
    }
}
