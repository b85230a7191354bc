//! Finding the runs that a command names: `FILE`, `FILE#2`, `FILE#htp`.

use super::file;
use crate::analysis::compare::Side;
use crate::backends::Backend;
use crate::event::clean_text;
use crate::files::read_at_most;
use crate::imports::{self, ImportError, Imported};
use crate::session::{ReadError, SessionReader};
use crate::store::Store;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Largest result document that is read.
const MAX_DOCUMENT_BYTES: u64 = 512 << 20;
/// What is read to tell a session from a document; the first line of a session is far shorter.
const HEAD_BYTES: u64 = 64 << 10;

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
    let mut sides = read(&path, &shown)?;
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

/// A name with `#` that is a file is that file; else what stands behind the last `#` picks runs.
fn split(argument: &Path) -> (PathBuf, Option<String>) {
    let text = argument.to_string_lossy();
    match text.rsplit_once('#') {
        Some((path, run)) if !path.is_empty() && !argument.exists() => (PathBuf::from(path), Some(run.to_owned())),
        _ => (argument.to_owned(), None),
    }
}

fn read(path: &Path, shown: &str) -> Result<Vec<Side>, LoadError> {
    let io = |source| LoadError::Io { path: shown.to_owned(), source };
    if is_session(path).map_err(io)? {
        return session(path);
    }
    if let Some(imported) = imports::open(path)? {
        return Ok(of_another_tool(imported));
    }
    let bytes = read_at_most(path, MAX_DOCUMENT_BYTES).map_err(io)?;
    file::sides(&bytes).map_err(|reason| LoadError::Document { path: shown.to_owned(), reason })
}

/// Runs that another tool made.
fn of_another_tool(imported: Imported) -> Vec<Side> {
    let mut store = Store::new();
    imported.records.iter().for_each(|record| store.apply(record));
    let mut sides: Vec<Side> = store.runs().iter().map(|run| Side::of_ended(&store, run)).collect();
    if let Some(side) = sides.first_mut() {
        side.notes.extend(imported.notes);
    }
    sides
}

/// A session is one JSON value a line, and its first line has an event.
fn is_session(path: &Path) -> std::io::Result<bool> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?.take(HEAD_BYTES)).read_until(b'\n', &mut line)?;
    let value: Result<serde_json::Value, _> = serde_json::from_slice(&line);
    Ok(value.is_ok_and(|value| value.get("event").is_some()))
}

/// Replays a session. One that is damaged or cut off is used as far as it goes.
fn session(path: &Path) -> Result<Vec<Side>, LoadError> {
    let mut reader = SessionReader::open(path)?;
    let mut store = Store::new();
    let mut note = None;
    for record in reader.by_ref() {
        match record {
            Ok(record) => store.apply(&record),
            Err(ReadError::Damaged { line, .. }) => {
                note = Some(format!("its session is damaged at line {line} and is used up to there"));
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if reader.is_truncated() {
        note = Some("its session was cut off and is used as far as it goes".to_owned());
    }
    let unknown = store.unknown_events();
    let skipped = (!unknown.is_empty()).then(|| {
        let kinds: Vec<&str> = unknown.keys().map(String::as_str).collect();
        let count: u64 = unknown.values().sum();
        format!("{count} of its events were written by a newer qnnscope and skipped ({})", kinds.join(", "))
    });
    let mut sides: Vec<Side> = store.runs().iter().map(|run| Side::of_ended(&store, run)).collect();
    // The runs before the last one are whole.
    if let Some(side) = sides.last_mut() {
        side.notes.extend(note);
        side.notes.extend(skipped);
    }
    Ok(sides)
}
