//! What reports are made of: sessions, and files of other tools, folded into stores.

use super::comparison::LoadError;
use crate::event::{Record, clean_text};
use crate::imports;
use crate::session::{Opened, ReadError, SessionReader, read_any};
use crate::store::Store;
use std::path::{Path, PathBuf};

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
        let opened = read_any(path).map_err(|error| match error {
            ReadError::Io { source, .. } => LoadError::Io { path: shown.clone(), source },
            ReadError::Import(error) => LoadError::Import(error),
            error => error.into(),
        })?;
        Ok(opened.map(|Opened { store, notes, imported }| {
            let note = |note: String| if imported.is_some() { note } else { format!("its session {note}") };
            let notes = notes.into_iter().map(note).collect();
            Self { path: path.to_owned(), shown, store, notes, imported_from: imported }
        }))
    }

    /// Hands out its records once more, for what the store does not keep.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub fn replay(&self, each: &mut dyn FnMut(&Record)) -> Result<(), LoadError> {
        if self.imported_from.is_some() {
            if let Some(imported) = imports::open(&self.path)? {
                imported.records.iter().for_each(each);
            }
            return Ok(());
        }
        for record in SessionReader::open(&self.path)? {
            match record {
                Ok(record) => each(&record),
                // A note says so already.
                Err(ReadError::Damaged { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
