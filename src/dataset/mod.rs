//! Sessions as a Parquet dataset, for engines that query many of them: DuckDB, Spark, ClickHouse, pandas.
//!
//! Each session adds one file to each table that it has rows for, below `TABLE/date=YYYY-MM-DD/`; nothing is
//! ever rewritten. `docs/dataset.md` describes the tables and their columns.

mod error;
mod figures;
mod parts;
mod rows;
mod table;

pub use error::DatasetError;

use crate::event::{Event, Record, clean_text};
use crate::files::{Replacement, Seekable, hex, sha256_hex};
use crate::session::{AnyRecords, ReadError, any_records};
use parts::{Parts, of_counts};
use rows::Rows;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::{Path, PathBuf};
use table::{Table, TableWriter};

/// Metadata key in the file of a session's runs that describes the other tables.
const TABLES_KEY: &str = "qnnscope.tables";

/// Outcome of adding a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exported {
    /// Its rows were added.
    Added {
        /// Number of rows per table.
        rows: Vec<(&'static str, u64)>,
        /// The dataset already had part of it, or something else in its place: everything was rewritten.
        mended: bool,
    },
    /// The dataset already contains it.
    Known,
    /// The file has no events.
    NoEvents,
}

/// Adds a session, or a file of another tool, to the dataset in a folder. Sessions are streamed, so memory
/// does not grow with their length. One that was cut off is added as far as it is readable.
///
/// # Errors
/// The session cannot be read, or the dataset cannot be written.
pub fn export(session: &Seekable, folder: &Path) -> Result<Exported, DatasetError> {
    let Some(AnyRecords { mut records, imported }) = any_records(session)? else { return Ok(Exported::NoEvents) };
    let header = records.next().transpose()?;
    let Some(Record { event: Event::SessionStarted(started), .. }) = &header else {
        let reason = "it keeps no events".to_owned();
        return Err(ReadError::NotASession { path: session.named().to_owned(), reason }.into());
    };
    let key = match imported {
        None => key(&started.host, started.epoch_us, started.monotonic_us),
        // Its date may be that of the file, which a copy need not share; its content is unique.
        Some(_) => key_of_content(session, started.epoch_us)?,
    };
    let place = Parts::of(folder, &key);
    if place.is_whole() || (imported.is_some() && place.is_known_by_content()) {
        return Ok(Exported::Known);
    }
    write(&place, |writers| {
        let mut rows = Rows::new(&key, started);
        for record in header.iter().cloned().map(Ok).chain(records) {
            match record {
                Ok(record) => rows.take(&record, writers)?,
                // Added as far as it is readable.
                Err(ReadError::Damaged { .. }) => break,
                Err(error) => return Err(error.named(session.named()).into()),
            }
        }
        rows.finish(writers)
    })
}

/// Adds the runs of the result document in `file`: their figures, without events.
///
/// # Errors
/// The dataset cannot be written.
pub fn export_figures(file: &Seekable, document: &Value, folder: &Path) -> Result<Exported, DatasetError> {
    let key = key_of_content(file, figures::started_us(document))?;
    let place = Parts::of(folder, &key);
    if place.is_whole() || place.is_known_by_content() {
        return Ok(Exported::Known);
    }
    write(&place, |writers| {
        let runs = writers.iter_mut().find(|writer| writer.table == Table::Runs);
        runs.into_iter()
            .try_for_each(|runs| figures::rows(&key, document).into_iter().try_for_each(|row| runs.row(row)))
    })
}

/// Writes the files of a session, and moves them into place once all are complete.
fn write(
    place: &Parts<'_>,
    fill: impl FnOnce(&mut [TableWriter]) -> Result<(), DatasetError>,
) -> Result<Exported, DatasetError> {
    let is_begun = place.is_begun();
    let mut parts: Vec<(PathBuf, Replacement)> = Vec::new();
    let mut writers = Vec::new();
    for table in Table::ALL {
        let path = place.make(table)?;
        let part = Replacement::begin(&path).map_err(|source| DatasetError::Io { path: path.clone(), source })?;
        writers.push(TableWriter::new(table, part.path())?);
        parts.push((path, part));
    }
    fill(&mut writers)?;
    let mut added = Vec::new();
    for ((path, part), mut writer) in parts.into_iter().zip(writers) {
        let table = writer.table;
        // The runs come last: their file records that the others exist, and their lengths.
        if table == Table::Runs {
            writer.note(TABLES_KEY, of_counts(&added));
        }
        let count = writer.finish()?;
        // A table without rows has no file, except the one that records this.
        if count > 0 || table == Table::Runs {
            part.commit().map_err(|source| DatasetError::Io { path, source })?;
            added.push((table.name(), count));
        }
    }
    Ok(Exported::Added { rows: added, mended: is_begun })
}

/// A session's key, independent of its file's location: its start time, and part of a hash of its unique content.
fn key(host: &str, epoch_us: u64, monotonic_us: u64) -> String {
    let hash = Sha256::digest(format!("{host}\n{epoch_us}\n{monotonic_us}"));
    format!("{}-{}", stamp(epoch_us), &hex(&hash)[..8])
}

/// The key of another tool's file, from its content. The hash is longer, since it alone distinguishes files.
fn key_of_content(file: &Seekable, epoch_us: u64) -> Result<String, DatasetError> {
    let hash = File::open(file.path()).and_then(sha256_hex);
    let (hash, _) = hash.map_err(|source| ReadError::Io { path: file.named().to_owned(), source })?;
    Ok(format!("{}-{}", stamp(epoch_us), &hash[..16]))
}

fn stamp(epoch_us: u64) -> String {
    let stamp = i64::try_from(epoch_us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    stamp.unwrap_or_default().strftime("%Y%m%d-%H%M%S").to_string()
}

/// The path of the dataset, for display.
pub fn shown(folder: &Path) -> String {
    clean_text(&PathBuf::from(folder).to_string_lossy())
}
