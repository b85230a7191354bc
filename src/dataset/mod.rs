//! Sessions as a Parquet dataset, for engines that answer questions over many of them: DuckDB, Spark, ClickHouse, pandas.
//!
//! Each session adds one file to each table it has rows for, below `TABLE/date=YYYY-MM-DD/`; nothing is ever rewritten. The
//! tables and their columns are in `docs/dataset.md`.

mod error;
mod rows;
mod table;

pub use error::DatasetError;

use crate::event::{Event, Record, clean_text};
use crate::files::{Replacement, hex};
use crate::session::{ReadError, SessionReader};
use rows::Rows;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use table::{Table, TableWriter};

/// What became of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exported {
    /// Its rows were added: how many to each table.
    Added(Vec<(&'static str, u64)>),
    /// The dataset has it already.
    Known,
}

/// Adds a session to the dataset in a folder. It streams: memory does not grow with the session. One that was cut off is added
/// as far as it goes.
///
/// # Errors
/// The session cannot be read, or the dataset not written.
pub fn export(session: &Path, folder: &Path) -> Result<Exported, DatasetError> {
    let mut reader = SessionReader::open(session)?;
    let header = reader.next().transpose()?;
    let Some(Record { event: Event::SessionStarted(started), .. }) = &header else {
        let reason = "it keeps no events".to_owned();
        return Err(ReadError::NotASession { path: session.to_owned(), reason }.into());
    };
    let key = key(&started.host, started.epoch_us, started.monotonic_us);
    let date = key.get(..8).map_or_else(String::new, |day| format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..8]));
    let file = |table: Table| folder.join(table.name()).join(format!("date={date}")).join(format!("{key}.parquet"));
    // The runs come last, so that their file says that all of the session is there.
    if file(Table::Runs).exists() {
        return Ok(Exported::Known);
    }
    let mut parts: Vec<(Table, Replacement)> = Vec::new();
    let mut writers = Vec::new();
    for table in Table::ALL {
        let path = file(table);
        let failed = |source| DatasetError::Io { path: path.clone(), source };
        let below = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(below).map_err(failed)?;
        let part = Replacement::begin(&path).map_err(failed)?;
        writers.push(TableWriter::new(table, part.path())?);
        parts.push((table, part));
    }
    let mut rows = Rows::new(&key, started);
    for record in header.iter().cloned().map(Ok).chain(reader) {
        match record {
            Ok(record) => rows.take(&record, &mut writers)?,
            // As far as it goes.
            Err(ReadError::Damaged { .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    rows.finish(&mut writers)?;
    let mut added = Vec::new();
    for ((table, part), writer) in parts.into_iter().zip(writers) {
        let count = writer.finish()?;
        // A table without rows has no file.
        if count > 0 {
            let path = file(table);
            part.commit().map_err(|source| DatasetError::Io { path, source })?;
            added.push((table.name(), count));
        }
    }
    Ok(Exported::Added(added))
}

/// Names a session the same wherever its file is: the moment of its start, and a part of a hash of what is only its own.
fn key(host: &str, epoch_us: u64, monotonic_us: u64) -> String {
    let hash = Sha256::digest(format!("{host}\n{epoch_us}\n{monotonic_us}"));
    let stamp =
        i64::try_from(epoch_us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok()).unwrap_or_default();
    format!("{}-{}", stamp.strftime("%Y%m%d-%H%M%S"), &hex(&hash)[..8])
}

/// Where the dataset is, for people.
pub fn shown(folder: &Path) -> String {
    clean_text(&PathBuf::from(folder).to_string_lossy())
}
