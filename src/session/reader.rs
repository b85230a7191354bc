//! Reads a session file back: replay is just another source of records.

use super::coding;
use crate::event::{Event, Record, SESSION_SCHEMA};
use crate::text::clean_json;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A session file that cannot be read.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ReadError {
    #[error("cannot read the session {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is not a qnnscope session: {reason}")]
    NotASession { path: PathBuf, reason: String },
    #[error("{path}, line {line} is damaged: {reason}")]
    Damaged { path: PathBuf, line: u64, reason: String },
    #[error(transparent)]
    Import(#[from] crate::imports::ImportError),
}

impl ReadError {
    /// The same error for a file that the user knows by this name.
    #[must_use]
    pub fn named(self, name: &Path) -> Self {
        let path = name.to_owned();
        match self {
            Self::Io { source, .. } => Self::Io { path, source },
            Self::NotASession { reason, .. } => Self::NotASession { path, reason },
            Self::Damaged { line, reason, .. } => Self::Damaged { path, line, reason },
            Self::Import(error) => Self::Import(error.named(name)),
        }
    }
}

/// Maximum length of a line, bytes. The graph of a model with 100,000 ops takes less; longer lines would only
/// fill memory.
pub(super) const MAX_LINE_BYTES: u64 = 256 << 20;

/// Reads the records of a session in order, compressed or not.
pub struct SessionReader {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    line: u64,
    text: Vec<u8>,
    truncated: bool,
}

impl std::fmt::Debug for SessionReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionReader").field("path", &self.path).field("line", &self.line).finish_non_exhaustive()
    }
}

impl SessionReader {
    /// Opens a session.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let input = coding::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), input, line: 0, text: Vec::new(), truncated: false })
    }

    /// True if the file ends within a line or a compressed frame: a crash cut the session off.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    fn read(&mut self) -> Result<Option<Record>, ReadError> {
        self.text.clear();
        match self.input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut self.text) {
            Ok(_) => {}
            // A frame without an end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.truncated = true,
            Err(source) if source.raw_os_error().is_some() => {
                return Err(ReadError::Io { path: self.path.clone(), source });
            }
            Err(error) => return Err(self.damaged(self.line + 1, &error)),
        }
        if self.text.is_empty() {
            if self.line == 0 {
                return Err(ReadError::NotASession { path: self.path.clone(), reason: "it is empty".to_owned() });
            }
            return Ok(None);
        }
        self.line += 1;
        if self.text.len() as u64 == MAX_LINE_BYTES {
            return Err(self.damaged(self.line, &format!("it is longer than {MAX_LINE_BYTES} bytes")));
        }
        let whole = self.text.last() == Some(&b'\n');
        match Record::read(&clean_json(&self.text)) {
            Ok(record) => {
                if self.line == 1 {
                    self.check_header(&record)?;
                }
                Ok(Some(record))
            }
            Err(_) if !whole && self.line > 1 => {
                self.truncated = true;
                Ok(None)
            }
            Err(error) if self.line == 1 => {
                Err(ReadError::NotASession { path: self.path.clone(), reason: error.to_string() })
            }
            Err(error) => Err(self.damaged(self.line, &error)),
        }
    }

    fn damaged(&self, line: u64, reason: &dyn std::fmt::Display) -> ReadError {
        ReadError::Damaged { path: self.path.clone(), line, reason: reason.to_string() }
    }

    fn check_header(&self, record: &Record) -> Result<(), ReadError> {
        let reason = match &record.event {
            Event::SessionStarted(session) if session.schema == SESSION_SCHEMA => return Ok(()),
            Event::SessionStarted(session) => {
                format!("its schema is `{}`; this version reads `{SESSION_SCHEMA}`", session.schema)
            }
            _ => "its first line is not a session header".to_owned(),
        };
        Err(ReadError::NotASession { path: self.path.clone(), reason })
    }
}

impl Iterator for SessionReader {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SessionStarted;
    use crate::session::Recorder;

    fn header(seq: u64) -> Record {
        Record {
            seq,
            t_us: 1,
            run: None,
            event: Event::SessionStarted(SessionStarted {
                schema: SESSION_SCHEMA.into(),
                tool_version: "0".into(),
                epoch_us: 0,
                monotonic_us: 0,
                host: "h".into(),
            }),
        }
    }

    #[test]
    fn what_was_written_comes_back_and_a_cut_line_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let mut recorder = Recorder::create(&path).unwrap();
        recorder.write(&header(0)).unwrap();
        recorder.write(&header(1)).unwrap();
        let mut reader = SessionReader::open(&path).unwrap();
        assert_eq!(reader.by_ref().map(|r| r.unwrap().seq).collect::<Vec<_>>(), [0, 1]);
        assert!(!reader.is_truncated());

        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
        let mut reader = SessionReader::open(&path).unwrap();
        assert_eq!(reader.by_ref().count(), 1);
        assert!(reader.is_truncated());
    }

    #[test]
    fn kinds_of_newer_versions_are_skipped_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let mut text = serde_json::to_string(&header(0)).unwrap();
        text.push_str("\n{\"seq\":1,\"t_us\":2,\"event\":{\"dreamt\":{\"of\":\"sheep\"}}}\n");
        text.push_str("{\"seq\":2,\"t_us\":3,\"event\":{\"lost\":{\"source\":\"s\",\"reason\":\"r\",\"count\":2}}}\n");
        std::fs::write(&path, text).unwrap();
        let mut store = crate::store::Store::new();
        for record in SessionReader::open(&path).unwrap() {
            store.apply(&record.unwrap());
        }
        assert_eq!((store.records(), store.lost()), (3, 2));
        assert_eq!(store.unknown_events().iter().collect::<Vec<_>>(), [(&"dreamt".to_owned(), &1)]);
    }

    #[test]
    fn foreign_files_are_refused_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        for (text, part) in [
            ("", "empty"),
            ("hello\n", "not a qnnscope session"),
            ("{\"seq\":0,\"t_us\":0,\"event\":{\"run_finished\":{\"status\":\"ok\"}}}\n", "header"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = SessionReader::open(&path).unwrap().next().unwrap().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
