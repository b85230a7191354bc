//! Writes a session file. A plain one gets one JSON line per record, each in a single write, so that a crash
//! loses at most the last line; a compressed one is flushed at least once a second.

use super::coding::{Coding, PackedFile};
use super::digest::DigestWriter;
use crate::event::Record;
use crate::files::{Guard, Kind, OutputError, OutputFile};
use crate::store::Store;
use crate::text::Printable;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Maximum time before a record is flushed to a compressed file.
const FLUSH: Duration = Duration::from_millis(500);

/// The file is no longer writable.
#[derive(Debug, Error)]
#[error("cannot {action} the session file {path}: {source}")]
pub struct RecordError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Writes records to a file, which stays locked.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    /// `None` after a write error or once finished.
    output: Option<Output>,
    line: Vec<u8>,
}

#[derive(Debug)]
enum Output {
    Plain { file: OutputFile, length: u64 },
    Packed(Box<Packed>),
}

#[derive(Debug)]
struct Packed {
    file: PackedFile,
    digest: DigestWriter,
    /// Arrival of the oldest record that is not in the file yet.
    waiting: Option<Instant>,
}

impl Recorder {
    /// Opens a session file, creating it or replacing an older one. It is compressed if its name ends in
    /// `.zst`.
    ///
    /// # Errors
    /// The file cannot be written, belongs to another process, or is not a session.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        Self::create_with(path, &Guard::new(false))
    }

    /// The same, with `guard` deciding whether the file may be written.
    pub(crate) fn create_with(path: &Path, guard: &Guard) -> Result<Self, OutputError> {
        Self::create_as("--record", path, guard)
    }

    /// The same, with errors that refer to the file as `option`.
    pub(crate) fn create_as(option: &'static str, path: &Path, guard: &Guard) -> Result<Self, OutputError> {
        let io = |source| OutputError::Io { option, path: path.to_owned(), source };
        let mut file = guard.open(option, path, Kind::Session)?;
        file.empty().map_err(io)?;
        let output = match Coding::of_name(path) {
            Coding::Plain => Output::Plain { file, length: 0 },
            Coding::Zstd => {
                let digest = DigestWriter::new().map_err(io)?;
                Output::Packed(Box::new(Packed { file: PackedFile::new(file).map_err(io)?, digest, waiting: None }))
            }
        };
        Ok(Self { path: path.to_owned(), output: Some(output), line: Vec::new() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a record. After an error, the file ends with its last whole line.
    pub fn write(&mut self, record: &Record) -> Result<(), RecordError> {
        self.line.clear();
        let mut line = serde_json::Serializer::with_formatter(&mut self.line, Printable::default());
        let written = record.serialize(&mut line).map_err(io::Error::from).and_then(|()| {
            self.line.push(b'\n');
            match &mut self.output {
                Some(Output::Plain { file, length }) => {
                    file.write_all(&self.line)?;
                    *length += self.line.len() as u64;
                    Ok(())
                }
                Some(Output::Packed(packed)) => packed.write(record, &self.line),
                None => Ok(()),
            }
        });
        written.map_err(|source| self.give_up(source))
    }

    /// When [`Recorder::flush`] is due, if a record is waiting.
    pub fn flush_due(&self) -> Option<Instant> {
        match &self.output {
            Some(Output::Packed(packed)) => Some(packed.waiting? + FLUSH),
            _ => None,
        }
    }

    /// Flushes all records so far to the file.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        let Some(Output::Packed(packed)) = &mut self.output else { return Ok(()) };
        packed.flush().map_err(|source| self.give_up(source))
    }

    /// Syncs the session to disk. Given the store of all its records, adds a digest to a long session, so
    /// that it opens at once.
    pub fn finish(&mut self, store: Option<&Store>) -> Result<(), RecordError> {
        let done = match self.output.take() {
            Some(Output::Plain { file, .. }) => file.sync(),
            Some(Output::Packed(packed)) => packed.finish(store),
            None => Ok(()),
        };
        done.map_err(|source| RecordError { action: "write", path: self.path.clone(), source })
    }

    fn give_up(&mut self, source: io::Error) -> RecordError {
        match self.output.take() {
            // Best effort: truncation may still work on a full disk.
            Some(Output::Plain { mut file, length }) => drop(file.cut(length)),
            Some(Output::Packed(mut packed)) => packed.file.give_up(),
            None => {}
        }
        RecordError { action: "write", path: self.path.clone(), source }
    }
}

impl Drop for Recorder {
    /// Even an unfinished session of an interrupted command is complete.
    fn drop(&mut self) {
        if let Some(Output::Packed(packed)) = self.output.take() {
            // Nobody is left to report to.
            let _ = packed.finish(None);
        }
    }
}

impl Packed {
    fn write(&mut self, record: &Record, line: &[u8]) -> io::Result<()> {
        self.file.write(line)?;
        self.digest.take(record, line)?;
        // The header is written immediately: whatever happens next, the file is a session.
        if record.seq == 0 {
            return self.flush();
        }
        let now = Instant::now();
        let since = *self.waiting.get_or_insert(now);
        if now.duration_since(since) >= FLUSH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.waiting = None;
        self.file.flush()
    }

    fn finish(self, store: Option<&Store>) -> io::Result<()> {
        let (mut file, length) = self.file.finish()?;
        if let Some(store) = store.filter(|_| self.digest.is_worth_it())
            && let Some(frame) = self.digest.frame(store, length)?
            && file.write_all(&frame).is_err()
        {
            // The session is complete without it.
            file.cut(length)?;
        }
        file.sync()
    }
}
