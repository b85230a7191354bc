//! Opening a file as a session: the one place that knows all kinds of files that become events.

use super::{ReadError, SessionReader, coding, digest};
use crate::event::Record;
use crate::imports::{self, Imported};
use crate::store::{RunState, Store};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// What a file holds, folded.
#[derive(Debug)]
pub struct Opened {
    /// Everything in it.
    pub store: Store,
    /// What is missing of it and why: of a session each a sentence that follows "its session".
    pub notes: Vec<String>,
    /// Which tool's file it was, where it was not a session of qnnscope.
    pub imported: Option<&'static str>,
}

/// What is read to tell a session from another file; the first line of a session is far shorter.
const HEAD_BYTES: u64 = 64 << 10;

/// Opens any file that becomes events; `None` if it is none. A session may be of any version and coding; one that was cut off
/// or is damaged is used as far as it goes.
///
/// # Errors
/// The file cannot be read, or begins like a session and is none.
pub fn read_any(path: &Path) -> Result<Option<Opened>, ReadError> {
    let is_session = is_session(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    if is_session { session(path).map(Some) } else { foreign(path) }
}

/// The records of a file, of whichever kind, as far as they can be read.
pub(super) fn records(path: &Path) -> Box<dyn Iterator<Item = Record> + Send> {
    if !is_session(path).unwrap_or(true)
        && let Ok(Some(imported)) = imports::open(path)
    {
        return Box::new(imported.records.into_iter());
    }
    Box::new(SessionReader::open(path).into_iter().flatten().map_while(Result::ok))
}

/// A file of another tool.
fn foreign(path: &Path) -> Result<Option<Opened>, ReadError> {
    let Some(Imported { kind, records, notes, .. }) = imports::open(path)? else { return Ok(None) };
    let mut store = Store::new();
    for record in &records {
        store.apply(record);
    }
    Ok(Some(Opened { store, notes, imported: Some(kind) }))
}

/// A session is compressed, or one JSON value a line of which the first has an event.
fn is_session(path: &Path) -> io::Result<bool> {
    let mut head = BufReader::new(File::open(path)?.take(HEAD_BYTES));
    if coding::is_packed(head.fill_buf()?) {
        return Ok(true);
    }
    let mut line = Vec::new();
    head.read_until(b'\n', &mut line)?;
    let value: Result<serde_json::Value, _> = serde_json::from_slice(&line);
    Ok(value.is_ok_and(|value| value.get("event").is_some()))
}

fn session(path: &Path) -> Result<Opened, ReadError> {
    if let Some(store) = digest::store(path) {
        return Ok(Opened::whole(store));
    }
    let mut reader = SessionReader::open(path)?;
    let mut store = Store::new();
    let mut notes = Vec::new();
    for record in reader.by_ref() {
        match record {
            Ok(record) => store.apply(&record),
            Err(ReadError::Damaged { line, .. }) if line > 1 => {
                notes.push(format!("is damaged at line {line} and is used up to there{}", in_stage(&store)));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    if reader.is_truncated() {
        notes.push(format!("was cut off and is used as far as it goes{}", in_stage(&store)));
    } else if notes.is_empty() && store.runs().iter().any(|run| !run.is_ended()) {
        notes.push(format!("ends before its run does{}", in_stage(&store)));
    }
    let mut opened = Opened::whole(store);
    notes.append(&mut opened.notes);
    Ok(Opened { notes, ..opened })
}

impl Opened {
    fn whole(store: Store) -> Self {
        let unknown = store.unknown_events();
        let skipped = (!unknown.is_empty()).then(|| {
            let kinds: Vec<&str> = unknown.keys().map(String::as_str).collect();
            let count: u64 = unknown.values().sum();
            format!("has {count} events that a newer qnnscope wrote and that are skipped ({})", kinds.join(", "))
        });
        Self { notes: skipped.into_iter().collect(), store, imported: None }
    }
}

/// Where the run was that goes on, for people: ", in stage execute of the run on htp".
fn in_stage(store: &Store) -> String {
    let Some(run) = store.runs().iter().rev().find(|run| !run.is_ended()) else { return String::new() };
    let at = match run.state {
        RunState::In(stage) => format!("in stage {stage}"),
        _ => format!("after stage {}", run.last_stage()),
    };
    format!(": {at} of the run on {}", run.plan.backend)
}
