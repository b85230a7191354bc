//! Finds the runs that a command names: `FILE`, `FILE#2`, `FILE#htp`.

use super::LoadError;
use super::result_file::{read_document, seekable};
use crate::analysis::compare::Side;
use crate::backends::Backend;
use crate::event::clean_text;
use crate::files::Seekable;
use crate::report::source::Recorded;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that an argument names, which can be read repeatedly, and the runs the argument picks.
#[derive(Debug)]
pub struct Named {
    pub(super) file: Arc<Seekable>,
    wanted: Option<String>,
}

impl Named {
    /// Parses an argument.
    ///
    /// # Errors
    /// The file is a pipe that cannot be read.
    pub fn new(argument: &Path) -> Result<Self, LoadError> {
        let (path, wanted) = split(argument);
        Ok(Self { file: Arc::new(seekable(&path)?), wanted })
    }

    /// Path to read the file from.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

/// The runs that one argument names, with their origin and notes on what is missing.
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

/// A name with `#` that exists is that file; otherwise the text after the last `#` picks runs.
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
    // What is missing from a session is missing at its end; notes on another tool's file concern all of it.
    let noted = if recorded.imported_from.is_some() { sides.first_mut() } else { sides.last_mut() };
    if let Some(side) = noted {
        side.notes.extend(recorded.notes.iter().cloned());
    }
    sides
}
