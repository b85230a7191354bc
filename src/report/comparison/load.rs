//! Finding the runs that a command names: `FILE`, `FILE#2`, `FILE#htp`.

use super::file;
use crate::analysis::compare::Side;
use crate::backends::Backend;
use crate::event::clean_text;
use crate::files::read_at_most;
use crate::imports::ImportError;
use crate::report::source::Recorded;
use crate::session::ReadError;
use crate::text::clean_json;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Largest result document that is read.
const MAX_DOCUMENT_BYTES: u64 = 512 << 20;

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
    #[error("{path} is neither a session nor a known file of another tool: {reason}")]
    NoSession { path: String, reason: String },
    #[error("{path} holds no run")]
    NoRun { path: String },
    #[error("{path} has no run `{wanted}`: its runs are {runs}")]
    NoSuchRun { path: String, wanted: String, runs: String },
}

/// The runs that one argument names, with where they come from and notes on what is missing.
///
/// # Errors
/// The file cannot be read, is in another format, or has no such run.
pub fn load(argument: &Path) -> Result<Vec<Side>, LoadError> {
    let (path, wanted) = split(argument);
    let shown = clean_text(&path.to_string_lossy());
    let mut sides = read(&path)?;
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
        return Err(LoadError::NoSuchRun { path: shown, wanted: clean_text(&wanted), runs: runs.join(", ") });
    }
    Ok(picked)
}

/// The file of an argument, without the run that it picks.
pub fn whole_file(argument: &Path) -> PathBuf {
    split(argument).0
}

/// A name with `#` that is a file is that file; else what stands behind the last `#` picks runs.
fn split(argument: &Path) -> (PathBuf, Option<String>) {
    let text = argument.to_string_lossy();
    match text.rsplit_once('#') {
        Some((path, run)) if !path.is_empty() && !argument.exists() => (PathBuf::from(path), Some(run.to_owned())),
        _ => (argument.to_owned(), None),
    }
}

fn read(path: &Path) -> Result<Vec<Side>, LoadError> {
    Ok(match Recorded::open_known(path)? {
        Some(known) => recorded(&known),
        None => read_document(path)?.sides,
    })
}

/// The runs of a session, or of another tool's file.
fn recorded(recorded: &Recorded) -> Vec<Side> {
    let store = &recorded.store;
    let mut sides: Vec<Side> = store.runs().iter().map(|run| Side::of_ended(store, run)).collect();
    // What is missing of a session is missing at its end; notes on another tool's file are of all of it.
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

/// Reads a result document.
///
/// # Errors
/// The file cannot be read or is in another format.
pub fn read_document(path: &Path) -> Result<DocumentFile, LoadError> {
    let shown = clean_text(&path.to_string_lossy());
    let bytes =
        read_at_most(path, MAX_DOCUMENT_BYTES).map_err(|source| LoadError::Io { path: shown.clone(), source })?;
    let wrong = |reason| LoadError::Document { path: shown.clone(), reason };
    let sides = file::sides(&bytes).map_err(wrong)?;
    let value = serde_json::from_slice(&clean_json(&bytes)).map_err(|error| wrong(format!("is no JSON: {error}")))?;
    Ok(DocumentFile { value, sides })
}
