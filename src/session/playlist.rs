//! Several recorded sessions as one, one after another on one axis of time.

use super::{Opened, ReadError, read_any};
use crate::event::{Event, Record, RunId};
use crate::store::Store;
use std::path::PathBuf;

/// Time between the end of a session and the start of the next one, microseconds.
const PAUSE_US: u64 = 1_000_000;

/// Files to be opened together.
#[derive(Debug, Clone)]
pub struct Playlist {
    files: Vec<PathBuf>,
}

impl Playlist {
    /// Of these files, in this order.
    pub fn new(files: Vec<PathBuf>) -> Self {
        Self { files }
    }

    /// Everything in them at once. A single session opens by its digest.
    ///
    /// # Errors
    /// One of them cannot be read, or is no session.
    pub fn fold(&self) -> Result<Opened, ReadError> {
        let not = |path: &PathBuf| ReadError::NotASession {
            path: path.clone(),
            reason: "it keeps no events; `qnnscope show` prints it".to_owned(),
        };
        if let [file] = self.files.as_slice() {
            return read_any(file)?.ok_or_else(|| not(file));
        }
        let mut notes = Vec::new();
        for file in &self.files {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let opened = read_any(file)?.ok_or_else(|| not(file))?;
            notes.extend(opened.notes.into_iter().map(|note| format!("in {name} {note}")));
        }
        let mut store = Store::new();
        self.records().for_each(|record| store.apply(&record));
        Ok(Opened { store, notes, imported: None })
    }

    /// Their records in order, read as they are asked for. A file that is damaged or cut off ends where it does.
    pub fn records(&self) -> impl Iterator<Item = Record> + Send + use<> {
        let mut joined = Joined::default();
        self.files.clone().into_iter().flat_map(move |file| {
            joined.next_file();
            let mut joined = joined.share();
            // What is wrong with it was told when it was opened.
            super::open::records(&file).filter_map(move |record| joined.place(record))
        })
    }
}

/// Where the next record goes.
#[derive(Debug, Default)]
struct Joined {
    /// Shared with the iterator of the file that is read.
    at: std::sync::Arc<std::sync::Mutex<Place>>,
}

#[derive(Debug, Default)]
struct Place {
    seq: u64,
    /// Added to the moments of the file that is read; `None` before its first record.
    offset_us: Option<i64>,
    last_us: u64,
    /// Added to the numbers of its runs.
    runs_before: u32,
    runs: u32,
    files: u32,
}

impl Joined {
    fn share(&self) -> Self {
        Self { at: self.at.clone() }
    }

    fn next_file(&mut self) {
        let mut at = self.at.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        at.offset_us = None;
        at.runs_before = at.runs;
        at.files += 1;
    }

    /// The record as one of the whole; `None` for what a whole has only once.
    fn place(&mut self, mut record: Record) -> Option<Record> {
        let mut at = self.at.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_first_file = at.files == 1;
        let offset_us = match at.offset_us {
            Some(offset_us) => offset_us,
            None if is_first_file => 0,
            None => signed(at.last_us.saturating_add(PAUSE_US)) - signed(record.t_us),
        };
        at.offset_us = Some(offset_us);
        if matches!(record.event, Event::SessionStarted(_)) && !is_first_file {
            return None;
        }
        shift(&mut record, offset_us);
        if let Some(RunId(run)) = &mut record.run {
            // Runs that could not be asked for are numbered down from the largest.
            if *run < u32::MAX / 2 {
                *run = run.saturating_add(at.runs_before);
                at.runs = at.runs.max(*run + 1);
            }
        }
        at.last_us = at.last_us.max(record.t_us);
        record.seq = at.seq;
        at.seq += 1;
        Some(record)
    }
}

/// Moves a record on the axis of time.
fn shift(record: &mut Record, offset_us: i64) {
    if offset_us == 0 {
        return;
    }
    let moved = |t_us: &mut u64| *t_us = t_us.saturating_add_signed(offset_us);
    moved(&mut record.t_us);
    match &mut record.event {
        Event::Inferences(batch) => batch.start_us.iter_mut().for_each(moved),
        Event::Counters(sample) => moved(&mut sample.t_us),
        Event::ClockAligned(clock) => clock.offset_us = clock.offset_us.saturating_add(offset_us),
        _ => {}
    }
}

fn signed(t_us: u64) -> i64 {
    i64::try_from(t_us).unwrap_or(i64::MAX)
}
