//! Writing a session file: one JSON line per record, each with one write, so that a crash loses at most the last line.

use crate::event::Record;
use crate::files::{Guard, Kind, OutputError, OutputFile};
use crate::text::Printable;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file cannot be written any more.
#[derive(Debug, Error)]
#[error("cannot {action} the session file {path}: {source}")]
pub struct RecordError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Writes records to a file, which is locked meanwhile.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: OutputFile,
    length: u64,
    line: Vec<u8>,
}

impl Recorder {
    /// Opens a session file: a new one, or in the place of an older one.
    ///
    /// # Errors
    /// The file cannot be written, belongs to another process, or is no session.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        Self::create_with(path, &Guard::new(false))
    }

    /// The same; `guard` decides whether that file may be written.
    pub(crate) fn create_with(path: &Path, guard: &Guard) -> Result<Self, OutputError> {
        let option = "--record";
        let mut file = guard.open(option, path, Kind::Session)?;
        file.empty().map_err(|source| OutputError::Io { option, path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, length: 0, line: Vec::new() })
    }

    /// Appends a record. After an error the file ends with the last whole line.
    pub fn write(&mut self, record: &Record) -> Result<(), RecordError> {
        self.line.clear();
        let mut line = serde_json::Serializer::with_formatter(&mut self.line, Printable::default());
        let written = record.serialize(&mut line).map_err(io::Error::from).and_then(|()| {
            self.line.push(b'\n');
            self.file.write_all(&self.line)
        });
        match written {
            Ok(()) => {
                self.length += self.line.len() as u64;
                Ok(())
            }
            Err(source) => {
                // Best effort: a disk that is full may still be told where the file ends.
                let _ = self.file.cut(self.length);
                Err(RecordError { action: "write", path: self.path.clone(), source })
            }
        }
    }

    /// Has the session on the disk.
    pub fn finish(self) -> Result<(), RecordError> {
        self.file.sync().map_err(|source| RecordError { action: "write", path: self.path, source })
    }
}
