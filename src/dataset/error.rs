//! What can go wrong with a dataset.

use crate::session::ReadError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a session could not be added.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DatasetError {
    #[error(transparent)]
    Session(#[from] ReadError),
    #[error("cannot write {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is a symbolic link, which may point outside the dataset")]
    Link { path: PathBuf },
    #[error("cannot write the table {table}: {source}")]
    Table { table: &'static str, source: parquet::errors::ParquetError },
}

impl DatasetError {
    /// What to do about it.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Link { .. } => {
                Some("replace it with a folder or remove it; only the dataset's own folder may be a link")
            }
            _ => None,
        }
    }
}
