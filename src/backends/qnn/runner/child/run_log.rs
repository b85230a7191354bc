//! The QNN profile log of a run: its messages, and whether it is complete.

use super::emit::Emitter;
use super::failed::Failed;
use super::measure::Inference;
use super::model::open_system;
use crate::backends::ProfilingLevel;
use crate::backends::qnn::api::{
    Library, LogWriter, Message, Method, ProfileEvent, ProfileLog, QnnError, SystemLibrary,
};
use crate::backends::qnn::runner::protocol::SAVE_PROFILE_LOG;
use crate::backends::qnn::runner::run_task::RunTask;
use crate::event::{Event, Setting, SettingOutcome, clean_text, now_us};
use crate::files::{Kind, OutputFile};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

/// Types of the IPS message's two events, as in qnn-net-run.
const EXECUTE: u32 = 400;
const UNIT_US: u32 = 1;
const UNIT_COUNT: u32 = 4;

/// Runs `work` and returns its start and end, microseconds on the monotonic clock.
pub fn timed<T>(span_us: &mut (u64, u64), work: impl FnOnce() -> T) -> T {
    let start = now_us();
    let value = work();
    *span_us = (start, now_us());
    value
}

/// The log of a run; does nothing if none is requested or the runtime cannot write one.
#[derive(Default)]
pub struct RunLog {
    open: Option<OpenLog>,
}

struct OpenLog {
    path: PathBuf,
    /// Holds the lock; the serializer opens the file for itself.
    file: OutputFile,
    log: ProfileLog,
    /// False at profiling level `off`: messages then lack the backend's events.
    with_events: bool,
    graph: RefCell<Option<String>>,
    inferences: Cell<u64>,
    begun: Cell<Option<Instant>>,
    refused: RefCell<Option<String>>,
}

impl RunLog {
    /// Opens the requested file, so that an unwritable one is detected before anything is loaded. An older log stays in
    /// it until the new one begins.
    pub fn prepare(task: &RunTask) -> Result<Option<OutputFile>, Failed> {
        let Some(path) = &task.profile_log else { return Ok(None) };
        Ok(Some(task.guard().open("--save-profile-log", path, Kind::ProfileLog)?))
    }

    /// Begins the requested log. A runtime without the serializer is reported as a setting without effect.
    pub fn open(
        task: &RunTask,
        file: Option<OutputFile>,
        library: &Library,
        system: Option<&Rc<SystemLibrary>>,
        emitter: &Emitter,
    ) -> Self {
        let (Some(path), Some(mut file)) = (&task.profile_log, file) else { return Self::default() };
        match Self::create(task, path, &mut file, library, system) {
            Ok((log, with_events)) => Self { open: Some(OpenLog::new(path, file, log, with_events)) },
            Err(outcome) => {
                // An empty file would look like an empty log.
                file.take_back();
                report(emitter, path, outcome);
                Self::default()
            }
        }
    }

    fn create(
        task: &RunTask,
        path: &Path,
        file: &mut OutputFile,
        library: &Library,
        system: Option<&Rc<SystemLibrary>>,
    ) -> Result<(ProfileLog, bool), SettingOutcome> {
        let refused = |error: &dyn std::fmt::Display| SettingOutcome::Refused(error.to_string());
        let system = match system {
            Some(system) => system.clone(),
            // A model library runs without it.
            None => open_system(&task.runtime_dir)
                .map_err(|failed| SettingOutcome::NoEffect(failed.message().to_owned()))?,
        };
        if !ProfileLog::is_supported(&system) {
            return Err(SettingOutcome::NoEffect(format!(
                "the runtime's system library (system API {}) has no profile serializer (added in 1.11)",
                system.api()
            )));
        }
        file.empty().map_err(|error| refused(&error))?;
        let backend_version = library.table().build_id().unwrap_or_else(|| library.table().backend_api());
        let writer = LogWriter {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            backend_version: &backend_version,
        };
        let log = ProfileLog::create(&system, path, writer).map_err(|error| refused(&error))?;
        Ok((log, task.profiling != ProfilingLevel::Off))
    }

    /// True if a log is being written with the backend's events in it.
    pub fn wants_events(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.with_events)
    }

    /// Adds a one-time operation, on a graph if one is named.
    pub fn stage(&self, method: Method, span_us: (u64, u64), graph: Option<&str>, events: &[ProfileEvent]) {
        if let Some(open) = &self.open {
            open.append(&Message { method, span_us: Some(span_us), graph, events: open.allowed(events) });
        }
    }

    /// From here on, inferences of this graph are counted and timed together.
    pub fn begin_inferences(&self, graph: &str) {
        if let Some(open) = &self.open {
            open.graph.replace(Some(graph.to_owned()));
            open.begun.set(Some(Instant::now()));
        }
    }

    /// Adds an inference; without events if it ran without a profile.
    pub fn inference(&self, inference: &Inference) {
        if let Some(open) = &self.open {
            open.inferences.set(open.inferences.get() + 1);
            open.append(&Message {
                method: Method::Execute,
                span_us: Some((inference.start_us, inference.stop_us)),
                graph: open.graph.borrow().as_deref(),
                events: open.allowed(&inference.events),
            });
        }
    }

    /// Adds all inferences together, with the time from the start of the first one to now.
    pub fn end_inferences(&self) {
        let Some(open) = &self.open else { return };
        let elapsed = open.begun.get().map_or(0, |begun| begun.elapsed().as_micros());
        let figure = |identifier: &str, unit, value| ProfileEvent {
            kind: EXECUTE,
            unit,
            value,
            identifier: identifier.to_owned(),
            children: Vec::new(),
        };
        let events = [
            figure("numInferences", UNIT_COUNT, open.inferences.get()),
            figure("duration", UNIT_US, u64::try_from(elapsed).unwrap_or(u64::MAX)),
        ];
        open.append(&Message { method: Method::ExecuteIps, span_us: None, graph: None, events: &events });
    }

    /// Ends the log, which can no longer be complete; the first reason is reported.
    pub fn refuse(&self, error: &QnnError) {
        if let Some(open) = &self.open {
            open.refused.borrow_mut().get_or_insert_with(|| error.to_string());
        }
    }

    /// Writes the rest, and reports whether the file has the complete log.
    pub fn finish(self, emitter: &Emitter) {
        let Some(OpenLog { path, file, log, refused, .. }) = self.open else { return };
        let closed = log.finish().map_err(|error| error.to_string());
        let kept = || check_whole(&path).and_then(|()| file.sync().map_err(|error| error.to_string()));
        let reason = refused.into_inner().or_else(|| closed.and_then(|()| kept()).err());
        let outcome = reason.map_or(SettingOutcome::Applied, SettingOutcome::Refused);
        report(emitter, &path, outcome);
    }

    /// Leaves the file as it is, as qnn-net-run does when a run fails.
    pub fn abandon(self, emitter: &Emitter) {
        let Some(OpenLog { path, log, .. }) = self.open else { return };
        log.abandon();
        report(emitter, &path, SettingOutcome::Refused("the run failed; the log was left unchanged".to_owned()));
    }
}

impl OpenLog {
    fn new(path: &Path, file: OutputFile, log: ProfileLog, with_events: bool) -> Self {
        Self {
            path: path.to_owned(),
            file,
            log,
            with_events,
            graph: RefCell::default(),
            inferences: Cell::new(0),
            begun: Cell::new(None),
            refused: RefCell::default(),
        }
    }

    fn allowed<'a>(&self, events: &'a [ProfileEvent]) -> &'a [ProfileEvent] {
        if self.with_events { events } else { &[] }
    }

    /// After a refusal nothing more is written: a log with holes would look complete.
    fn append(&self, message: &Message<'_>) {
        if self.refused.borrow().is_some() {
            return;
        }
        if let Err(error) = self.log.append(message) {
            self.refused.replace(Some(error.to_string()));
        }
    }
}

fn report(emitter: &Emitter, path: &Path, outcome: SettingOutcome) {
    let value = clean_text(&path.to_string_lossy());
    emitter.event(Event::SettingApplied(Setting { key: SAVE_PROFILE_LOG.to_owned(), value, outcome }));
}

/// Checks the file's chunks up to its end: the serializer does not report failed writes.
fn check_whole(path: &Path) -> Result<(), String> {
    let walk = || -> io::Result<bool> {
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut at = 0;
        while at + 4 <= bytes {
            let mut length = [0; 4];
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut length)?;
            at += 4 + u64::from(u32::from_le_bytes(length));
        }
        Ok(bytes > 0 && at == bytes)
    };
    match walk() {
        Ok(true) => Ok(()),
        Ok(false) => Err("the file is empty or cut short; is the disk full?".to_owned()),
        Err(error) => Err(format!("the file cannot be read back: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_whole_if_its_chunks_end_with_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let whole = [&[2, 0, 0, 0, 7, 7][..], &[0, 0, 0, 0], &[1, 0, 0, 0, 9]].concat();
        for (bytes, expected) in [(&whole[..], true), (&whole[..14], false), (&whole[..12], false), (&[], false)] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(check_whole(&path).is_ok(), expected, "{bytes:?}");
        }
        assert!(check_whole(&dir.path().join("none")).is_err());
    }
}
