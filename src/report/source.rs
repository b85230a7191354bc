//! What reports are made of: sessions, and files of other tools, folded into stores.

use super::comparison::LoadError;
use crate::event::{Record, clean_text};
use crate::imports::{self, Imported};
use crate::session::{ReadError, SessionReader};
use crate::store::Store;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// What is read to tell a session from other files; its first line is far shorter.
const HEAD_BYTES: u64 = 64 << 10;

/// A file that was read.
#[derive(Debug)]
pub struct Recorded {
    /// The file.
    pub path: PathBuf,
    /// Its name for people.
    pub shown: String,
    /// What it holds.
    pub store: Store,
    /// What is missing of it, and why.
    pub notes: Vec<String>,
    /// Kind of the file, if another tool wrote it.
    pub imported_from: Option<&'static str>,
}

impl Recorded {
    /// Reads a session, or a file of another tool. A session that is damaged or cut off is used as far as it goes.
    ///
    /// # Errors
    /// The file cannot be read, or is neither.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        match Self::open_known(path)? {
            Some(recorded) => Ok(recorded),
            None => {
                // The reader says what is wrong with it.
                let refused = SessionReader::open(path)?.next().and_then(Result::err);
                let reason = refused.map_or_else(|| "it is no session".to_owned(), |error| error.to_string());
                Err(LoadError::NoSession { path: clean_text(&path.to_string_lossy()), reason })
            }
        }
    }

    /// The same; `None` for a file that is neither.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged from its beginning on.
    pub fn open_known(path: &Path) -> Result<Option<Self>, LoadError> {
        let shown = clean_text(&path.to_string_lossy());
        let mut store = Store::new();
        let Some((notes, imported_from)) = feed(path, &shown, &mut |record| store.apply(record))? else {
            return Ok(None);
        };
        let mut recorded = Self { path: path.to_owned(), shown, store, notes, imported_from };
        recorded.note_unknown();
        Ok(Some(recorded))
    }

    /// Hands out its records once more, for what the store does not keep.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn replay(&self, each: &mut dyn FnMut(&Record)) -> Result<(), LoadError> {
        feed(&self.path, &self.shown, each).map(drop)
    }

    fn note_unknown(&mut self) {
        let unknown = self.store.unknown_events();
        if !unknown.is_empty() {
            let kinds: Vec<&str> = unknown.keys().map(String::as_str).collect();
            let count: u64 = unknown.values().sum();
            self.notes.push(format!(
                "{count} of its events were written by a newer qnnscope and skipped ({})",
                kinds.join(", ")
            ));
        }
    }
}

/// Notes, and the kind of a file of another tool.
type Found = (Vec<String>, Option<&'static str>);

fn feed(path: &Path, shown: &str, each: &mut dyn FnMut(&Record)) -> Result<Option<Found>, LoadError> {
    if is_session(path).map_err(|source| LoadError::Io { path: shown.to_owned(), source })? {
        return Ok(Some((session(path, each)?, None)));
    }
    Ok(imports::open(path)?.map(|Imported { kind, records, notes, .. }| {
        records.iter().for_each(each);
        (notes, Some(kind))
    }))
}

/// A session is one JSON value a line, and its first line has an event.
fn is_session(path: &Path) -> std::io::Result<bool> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?.take(HEAD_BYTES)).read_until(b'\n', &mut line)?;
    let value: Result<serde_json::Value, _> = serde_json::from_slice(&line);
    Ok(value.is_ok_and(|value| value.get("event").is_some()))
}

fn session(path: &Path, each: &mut dyn FnMut(&Record)) -> Result<Vec<String>, LoadError> {
    let mut reader = SessionReader::open(path)?;
    let mut notes = Vec::new();
    for record in reader.by_ref() {
        match record {
            Ok(record) => each(&record),
            Err(ReadError::Damaged { line, .. }) => {
                notes.push(format!("its session is damaged at line {line} and is used up to there"));
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if reader.is_truncated() {
        notes.push("its session was cut off and is used as far as it goes".to_owned());
    }
    Ok(notes)
}
