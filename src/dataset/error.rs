//! What can go wrong with a dataset.

use crate::session::ReadError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A session could not be added.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DatasetError {
    #[error(transparent)]
    Session(#[from] ReadError),
    #[error("cannot write {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot write the table {table}: {source}")]
    Table { table: &'static str, source: parquet::errors::ParquetError },
}
