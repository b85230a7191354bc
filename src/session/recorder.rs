//! Writing a session file: one JSON line per record, each with one write, so that a crash loses at most the last line.

use crate::event::Record;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file cannot be created or written.
#[derive(Debug, Error)]
#[error("cannot {action} the session file {path}: {source}")]
pub struct RecordError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Writes records to a file.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    length: u64,
    line: Vec<u8>,
}

impl Recorder {
    /// Creates the file, or empties an existing one.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(|source| RecordError { action: "create", path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file, length: 0, line: Vec::new() })
    }

    /// Appends a record. After an error the file ends with the last whole line.
    pub fn write(&mut self, record: &Record) -> Result<(), RecordError> {
        self.line.clear();
        let written = serde_json::to_writer(&mut self.line, record).map_err(io::Error::from).and_then(|()| {
            self.line.push(b'\n');
            self.file.write_all(&self.line)
        });
        match written {
            Ok(()) => {
                self.length += self.line.len() as u64;
                Ok(())
            }
            Err(source) => {
                // Best effort: a pipe or device cannot be cut.
                let _ = self.file.set_len(self.length);
                let _ = self.file.seek(io::SeekFrom::Start(self.length));
                Err(RecordError { action: "write", path: self.path.clone(), source })
            }
        }
    }
}
