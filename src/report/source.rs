//! The sources of reports: sessions, and other tools' files, folded into stores.

use super::comparison::{LoadError, read_document, seekable};
use crate::event::{Record, clean_text};
use crate::files::Seekable;
use crate::imports;
use crate::session::{Opened, ReadError, SessionReader, read_held};
use crate::store::Store;
use std::path::Path;
use std::sync::Arc;

/// A file that has been read.
#[derive(Debug)]
pub struct Recorded {
    /// The file.
    file: Arc<Seekable>,
    /// Its display name.
    pub shown: String,
    /// Its contents.
    pub store: Store,
    /// What is missing from it, and why.
    pub notes: Vec<String>,
    /// Kind of the file, if another tool wrote it.
    pub imported_from: Option<&'static str>,
}

impl Recorded {
    /// Reads a session, or a file of another tool. A damaged or truncated session is used as far as it is
    /// readable.
    ///
    /// # Errors
    /// The file cannot be read, or is neither.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let file = Arc::new(seekable(path)?);
        match Self::open_known(&file)? {
            Some(recorded) => Ok(recorded),
            None if read_document(&file).is_ok() => {
                Err(LoadError::Figures { path: clean_text(&path.to_string_lossy()) })
            }
            None => {
                // The reader reports what is wrong with it.
                let refused = SessionReader::open(file.path()).and_then(|mut reader| reader.next().transpose());
                let reason = match refused.map_err(|error| error.named(path)) {
                    Err(ReadError::NotASession { reason, .. }) => reason,
                    Err(error) => error.to_string(),
                    Ok(_) => "it is not a session".to_owned(),
                };
                Err(LoadError::NoSession { path: clean_text(&path.to_string_lossy()), reason })
            }
        }
    }

    /// The same, but `None` for a file that is neither.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged from the start.
    pub fn open_known(file: &Arc<Seekable>) -> Result<Option<Self>, LoadError> {
        let shown = clean_text(&file.named().to_string_lossy());
        let opened = read_held(file).map_err(|error| match error {
            ReadError::Io { source, .. } => LoadError::Io { path: shown.clone(), source },
            ReadError::Import(error) => LoadError::Import(error),
            error => error.into(),
        })?;
        Ok(opened.map(|Opened { store, notes, imported }| {
            let note = |note: String| if imported.is_some() { note } else { format!("its session {note}") };
            let notes = notes.into_iter().map(note).collect();
            Self { file: file.clone(), shown, store, notes, imported_from: imported }
        }))
    }

    /// Passes all its records to `each` once more, for what the store does not keep.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn replay(&self, each: &mut dyn FnMut(&Record)) -> Result<(), LoadError> {
        if self.imported_from.is_some() {
            if let Some(imported) = imports::open(self.file.path(), self.file.named())? {
                imported.records.iter().for_each(each);
            }
            return Ok(());
        }
        for record in SessionReader::open(self.file.path())? {
            match record {
                Ok(record) => each(&record),
                // A note already says so.
                Err(ReadError::Damaged { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
