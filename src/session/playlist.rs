//! Several recorded sessions combined into one, back to back on one time axis.

use super::{Opened, ReadError, read_held};
use crate::event::{Event, Record, RunId};
use crate::files::Seekable;
use crate::store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Time between the end of a session and the start of the next one, microseconds.
const PAUSE_US: u64 = 1_000_000;

/// Files to open together.
#[derive(Debug, Clone)]
pub struct Playlist {
    files: Vec<Arc<Seekable>>,
}

impl Playlist {
    /// A playlist of these files, in this order.
    ///
    /// # Errors
    /// One of them is an unreadable pipe.
    pub fn new(files: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, ReadError> {
        let held = |path: &Path| match Seekable::new(path) {
            Ok(file) => Ok(Arc::new(file)),
            Err(source) => Err(ReadError::Io { path: path.to_owned(), source }),
        };
        Ok(Self { files: files.into_iter().map(|path| held(path.as_ref())).collect::<Result<_, _>>()? })
    }

    /// The contents of all files. A single session opens from its digest.
    ///
    /// # Errors
    /// One of the files cannot be read, or is not a session.
    pub fn fold(&self) -> Result<Opened, ReadError> {
        if let [file] = self.files.as_slice() {
            return opened(file);
        }
        let mut notes = Vec::new();
        for file in &self.files {
            let name = file.named().file_name().unwrap_or_default().to_string_lossy().into_owned();
            let opened = opened(file)?;
            notes.extend(opened.notes.into_iter().map(|note| format!("in {name} {note}")));
        }
        let mut store = Store::new();
        self.records().for_each(|record| store.apply(&record));
        Ok(Opened { store, notes, imported: None })
    }

    /// The records of all files in order, read on demand. A damaged or truncated file ends where the damage
    /// begins.
    pub fn records(&self) -> impl Iterator<Item = Record> + Send + use<> {
        let mut joined = Joined::default();
        self.files.clone().into_iter().flat_map(move |file| {
            joined.next_file();
            let mut joined = joined.share();
            // Its problems were reported when it was opened.
            super::open::records(&file).filter_map(move |record| joined.place(record))
        })
    }
}

fn opened(file: &Seekable) -> Result<Opened, ReadError> {
    let not = || ReadError::NotASession {
        path: file.named().to_owned(),
        reason: "it keeps no events; `qnnscope show` prints it".to_owned(),
    };
    read_held(file)?.ok_or_else(not)
}

/// Position of the next record.
#[derive(Debug, Default)]
struct Joined {
    /// Shared with the iterator of the file being read.
    at: std::sync::Arc<std::sync::Mutex<ReplayPosition>>,
}

#[derive(Debug, Default)]
struct ReplayPosition {
    seq: u64,
    /// Added to the current file's timestamps; `None` before its first record.
    offset_us: Option<i64>,
    last_us: u64,
    /// Maps the file's run ids to those in the combined session.
    runs: BTreeMap<RunId, RunId>,
    /// Ids used so far by any file.
    taken: BTreeSet<RunId>,
    /// All smaller ids are taken.
    next: u32,
    /// Added to the numbers of the file's tapped processes.
    processes_before: u32,
    processes: u32,
    files: u32,
}

impl Joined {
    fn share(&self) -> Self {
        Self { at: self.at.clone() }
    }

    fn next_file(&mut self) {
        let mut at = self.at.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        at.offset_us = None;
        at.runs.clear();
        at.processes_before = at.processes;
        at.files += 1;
    }

    /// The record in the combined session; `None` for records that only occur once there.
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
        record.run = record.run.map(|run| at.run(run));
        if let Event::Tap(tap) = &mut record.event
            && let Some(process) = &mut tap.process
        {
            *process = process.saturating_add(at.processes_before);
            at.processes = at.processes.max(process.saturating_add(1));
        }
        at.last_us = at.last_us.max(record.t_us);
        record.seq = at.seq;
        at.seq += 1;
        Some(record)
    }
}

impl ReplayPosition {
    /// The id of a run of the file in the combined session: its own, unless an earlier file has a run with
    /// that id.
    fn run(&mut self, run: RunId) -> RunId {
        if let Some(known) = self.runs.get(&run) {
            return *known;
        }
        let mut id = run;
        while self.taken.contains(&id) {
            id = RunId(self.next);
            self.next = self.next.wrapping_add(1);
        }
        self.taken.insert(id);
        self.runs.insert(run, id);
        id
    }
}

/// Shifts a record on the time axis.
fn shift(record: &mut Record, offset_us: i64) {
    if offset_us == 0 {
        return;
    }
    let moved = |t_us: &mut u64| *t_us = t_us.saturating_add_signed(offset_us);
    moved(&mut record.t_us);
    match &mut record.event {
        Event::Inferences(batch) => batch.start_us.iter_mut().for_each(moved),
        Event::Counters(sample) => moved(&mut sample.t_us),
        Event::Tap(tap) => tap.seen.each_moment_ns(|t_ns| {
            *t_ns = t_ns.saturating_add_signed(offset_us.saturating_mul(1000));
        }),
        Event::ClockAligned(clock) => clock.offset_us = clock.offset_us.saturating_add(offset_us),
        _ => {}
    }
}

fn signed(t_us: u64) -> i64 {
    i64::try_from(t_us).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{SESSION_SCHEMA, SessionStarted, TapRecord, TapSeen};
    use crate::session::Recorder;
    use qnnscope_core::tap::Execution;

    /// A session with a tapped process that executes a graph 5 ms after its start.
    fn tapped(path: &Path, began_us: u64) {
        let header = Event::SessionStarted(SessionStarted {
            schema: SESSION_SCHEMA.into(),
            tool_version: "0".into(),
            epoch_us: 1,
            monotonic_us: began_us,
            host: String::new(),
        });
        let start_ns = (began_us + 5000) * 1000;
        let execution = Execution { graph: 0, thread: 1, start_ns, duration_ns: 7, code: 0, flags: 0 };
        let seen = TapRecord { process: Some(0), seen: TapSeen::Executed(vec![execution]) };
        let mut recorder = Recorder::create(path).unwrap();
        for (seq, t_us, event) in [(0, began_us, header), (1, began_us + 6000, Event::Tap(Box::new(seen)))] {
            recorder.write(&Record { seq, t_us, run: None, event }).unwrap();
        }
    }

    #[test]
    fn every_run_of_every_file_has_an_id_of_its_own() {
        let mut place = ReplayPosition::default();
        let mut ids = |ids: &[u32]| -> Vec<u32> {
            place.runs.clear();
            ids.iter().map(|id| place.run(RunId(*id)).0).collect()
        };
        // Older sessions number runs that could not be requested downwards from the largest id.
        assert_eq!(ids(&[0, u32::MAX - 1, 1, 0]), [0, u32::MAX - 1, 1, 0]);
        assert_eq!(ids(&[0, u32::MAX - 1, 0, 5]), [2, 3, 2, 5]);
        assert_eq!(ids(&[5, 4]), [4, 6]);
    }

    #[test]
    fn what_a_tap_saw_moves_with_its_session() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| dir.path().join(name));
        tapped(&files[0], 1_000_000);
        tapped(&files[1], 400);
        let records: Vec<Record> = Playlist::new(&files).unwrap().records().collect();
        let seen: Vec<(u64, Option<u32>, u64)> = records
            .iter()
            .filter_map(|record| match &record.event {
                Event::Tap(tap) => match &tap.seen {
                    TapSeen::Executed(executions) => Some((record.t_us, tap.process, executions[0].start_ns)),
                    _ => None,
                },
                _ => None,
            })
            .collect();
        // The second session begins one second after the end of the first, which is at 1.006 s.
        assert_eq!(seen, [(1_006_000, Some(0), 1_005_000_000), (2_012_000, Some(1), 2_011_000_000)]);
    }
}
