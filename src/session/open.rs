//! Opens a file as a session: the only place that knows every kind of file that can be turned into events.

use super::{ReadError, SessionReader, coding, digest};
use crate::event::Record;
use crate::files::{Seekable, open_regular};
use crate::imports::{self, Imported};
use crate::store::{RunState, Store};
use crate::text::counted;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// A file's contents, folded.
#[derive(Debug)]
pub struct Opened {
    /// The store of everything in it.
    pub store: Store,
    /// What is missing, and why; for a session, each note is worded to follow "its session".
    pub notes: Vec<String>,
    /// The tool that wrote the file, if it is not a qnnscope session.
    pub imported: Option<&'static str>,
}

/// Bytes read to recognise a session; its first line is far shorter.
const HEAD_BYTES: u64 = 64 << 10;

/// Opens any file that can be turned into events; `None` for other files. A session may have any version and
/// encoding; a truncated or damaged one is used as far as possible.
///
/// # Errors
/// The file cannot be read, or starts like a session but is not one.
pub fn read_any(path: &Path) -> Result<Option<Opened>, ReadError> {
    let held = Seekable::new(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    read_held(&held)
}

/// The same for a file that is read more than once.
///
/// # Errors
/// The same as for [`read_any`].
pub fn read_held(file: &Seekable) -> Result<Option<Opened>, ReadError> {
    let opened = if is_session(file)? { session(file.path()).map(Some) } else { foreign(file) };
    opened.map_err(|error| error.named(file.named()))
}

/// The records of a file of any kind.
pub struct AnyRecords {
    /// The records in order; those of a session are read on demand.
    pub records: Box<dyn Iterator<Item = Result<Record, ReadError>> + Send>,
    /// The tool that wrote the file, if it is not a qnnscope session.
    pub imported: Option<&'static str>,
}

/// The records of any file that can be turned into events; `None` for other files.
///
/// # Errors
/// The file cannot be read.
pub fn any_records(file: &Seekable) -> Result<Option<AnyRecords>, ReadError> {
    if is_session(file)? {
        let reader = SessionReader::open(file.path()).map_err(|error| error.named(file.named()))?;
        return Ok(Some(AnyRecords { records: Box::new(reader), imported: None }));
    }
    let imported = imports::open(file.path(), file.named())?;
    Ok(imported.map(|Imported { kind, records, .. }| AnyRecords {
        records: Box::new(records.into_iter().map(Ok)),
        imported: Some(kind),
    }))
}

/// The records of a file of any kind, as far as they are readable.
pub(super) fn records(file: &Seekable) -> impl Iterator<Item = Record> + Send + use<> {
    any_records(file).ok().flatten().into_iter().flat_map(|any| any.records).map_while(Result::ok)
}

/// Another tool's file.
fn foreign(file: &Seekable) -> Result<Option<Opened>, ReadError> {
    let Some(Imported { kind, records, notes, .. }) = imports::open(file.path(), file.named())? else {
        return Ok(None);
    };
    let mut store = Store::new();
    for record in &records {
        store.apply(record);
    }
    Ok(Some(Opened { store, notes, imported: Some(kind) }))
}

/// True for a file that is compressed, or has one JSON value per line, the first with an event.
fn is_session(file: &Seekable) -> Result<bool, ReadError> {
    begins_session(file.path()).map_err(|source| ReadError::Io { path: file.named().to_owned(), source })
}

fn begins_session(path: &Path) -> io::Result<bool> {
    let mut head = BufReader::new(open_regular(path)?.take(HEAD_BYTES));
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
            format!("has {} of a newer qnnscope, left out ({})", counted(count, "event"), kinds.join(", "))
        });
        Self { notes: skipped.into_iter().collect(), store, imported: None }
    }
}

/// Where the unfinished run was, for display: ", in stage execute of the run on htp".
fn in_stage(store: &Store) -> String {
    let Some(run) = store.runs().iter().rev().find(|run| !run.is_ended()) else { return String::new() };
    let at = match run.state {
        RunState::In(stage) => format!("in stage {stage}"),
        _ => format!("after stage {}", run.last_stage()),
    };
    format!(": {at} of the run on {}", run.plan.backend)
}
