//! Finds the runs named by a command: `FILE`, `FILE#2`, `FILE#htp`.

use crate::analysis::compare::Side;
use crate::backends::Backend;
use crate::event::clean_text;
use crate::files::{Seekable, open_regular, read_at_most};
use crate::imports::ImportError;
use crate::report::source::Recorded;
use crate::session::ReadError;
use crate::text::clean_json;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Largest result document accepted.
const MAX_DOCUMENT_BYTES: u64 = 512 << 20;
/// Bytes needed to see whether it can be one.
const HEAD_BYTES: u64 = 4096;

/// A file or a run of it that cannot be compared.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum LoadError {
    #[error("cannot read {path}: {source}")]
    Io { path: String, source: std::io::Error },
    #[error("{path} {reason}")]
    Document { path: String, reason: String },
    #[error(transparent)]
    Session(#[from] ReadError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error("{path} is a result document: it has the runs' figures but not the events that reports need")]
    Figures { path: String },
    #[error("{path} is neither a session nor a known file of another tool: {reason}")]
    NoSession { path: String, reason: String },
    #[error("{path} has no run")]
    NoRun { path: String },
    #[error("{path} has no run `{wanted}`: its runs are {runs}")]
    NoSuchRun { path: String, wanted: String, runs: String },
}

impl LoadError {
    /// What to do about it.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Figures { .. } => Some(
                "`qnnscope show` prints it and `qnnscope compare` compares it; for a report, record the run with \
                 `--record NAME.jsonl`, or pick it from the history: `qnnscope sessions` lists them",
            ),
            _ => None,
        }
    }
}

/// The file named by an argument, readable repeatedly, and the runs the argument picks.
#[derive(Debug)]
pub struct Named {
    pub(super) file: Arc<Seekable>,
    wanted: Option<String>,
}

impl Named {
    /// Of an argument.
    ///
    /// # Errors
    /// It is a pipe that cannot be read.
    pub fn new(argument: &Path) -> Result<Self, LoadError> {
        let (path, wanted) = split(argument);
        Ok(Self { file: Arc::new(seekable(&path)?), wanted })
    }

    /// Where the file is read.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

/// A file of any kind that can be read more than once.
pub fn seekable(path: &Path) -> Result<Seekable, LoadError> {
    Seekable::new(path).map_err(|source| LoadError::Io { path: clean_text(&path.to_string_lossy()), source })
}

/// The runs named by one argument, with their origin and notes on what is missing.
///
/// # Errors
/// The file cannot be read, is in another format, or has no such run.
pub fn load(named: &Named) -> Result<Vec<Side>, LoadError> {
    let Named { file, wanted } = named;
    let shown = clean_text(&file.named().to_string_lossy());
    let mut sides = match Recorded::open_known(file)? {
        Some(known) => recorded(&known),
        None => read_document(file)?.sides,
    };
    if sides.is_empty() {
        return Err(LoadError::NoRun { path: shown });
    }
    let many = sides.len() > 1;
    for (number, side) in (1..).zip(&mut sides) {
        side.origin = if many { format!("{shown}#{number}") } else { shown.clone() };
    }
    let Some(wanted) = wanted else { return Ok(sides) };
    let runs: Vec<String> = (1..).zip(&sides).map(|(number, side)| format!("{number} ({})", side.backend)).collect();
    let picked: Vec<Side> = match (wanted.parse::<usize>(), wanted.parse::<Backend>()) {
        (Ok(number), _) => sides.into_iter().skip(number.wrapping_sub(1)).take(1).collect(),
        (_, Ok(backend)) => sides.into_iter().filter(|side| side.backend == backend).collect(),
        _ => Vec::new(),
    };
    if picked.is_empty() {
        return Err(LoadError::NoSuchRun { path: shown, wanted: clean_text(wanted), runs: runs.join(", ") });
    }
    Ok(picked)
}

/// A name with `#` that exists is that file; else the text after the last `#` picks runs.
fn split(argument: &Path) -> (PathBuf, Option<String>) {
    let text = argument.to_string_lossy();
    match text.rsplit_once('#') {
        Some((path, run)) if !path.is_empty() && !argument.exists() => (PathBuf::from(path), Some(run.to_owned())),
        _ => (argument.to_owned(), None),
    }
}

/// The runs of a session, or of another tool's file.
fn recorded(recorded: &Recorded) -> Vec<Side> {
    let store = &recorded.store;
    let mut sides: Vec<Side> = store.runs().iter().map(|run| Side::of_ended(store, run)).collect();
    // Data missing from a session is missing at its end; notes on another tool's file concern all of it.
    let noted = if recorded.imported_from.is_some() { sides.first_mut() } else { sides.last_mut() };
    if let Some(side) = noted {
        side.notes.extend(recorded.notes.iter().cloned());
    }
    sides
}

/// A result document.
#[derive(Debug)]
pub struct DocumentFile {
    value: serde_json::Value,
    sides: Vec<Side>,
}

impl DocumentFile {
    /// All of it, free of control characters.
    pub fn value(&self) -> &serde_json::Value {
        &self.value
    }

    /// Its runs.
    pub fn sides(&self) -> &[Side] {
        &self.sides
    }
}

/// The beginning of a file.
fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    open_regular(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Reads a result document.
///
/// # Errors
/// The file cannot be read or is in another format.
pub fn read_document(file: &Seekable) -> Result<DocumentFile, LoadError> {
    let shown = clean_text(&file.named().to_string_lossy());
    let io = |source| LoadError::Io { path: shown.clone(), source };
    // For a file that is something else, however large, its start is enough.
    let mut bytes = head(file.path()).map_err(io)?;
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        bytes = read_at_most(file.path(), MAX_DOCUMENT_BYTES).map_err(io)?;
    }
    let wrong = |reason| LoadError::Document { path: shown.clone(), reason };
    let sides = super::file::sides(&bytes).map_err(wrong)?;
    let value = serde_json::from_slice(&clean_json(&bytes)).map_err(|error| wrong(format!("is no JSON: {error}")))?;
    Ok(DocumentFile { value, sides })
}
