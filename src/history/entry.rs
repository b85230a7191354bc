//! What the history records about a session.

use super::marks::Marks;
use super::{HistoryError, is_being_written, size};
use crate::event::RunStatus;
use crate::session::{Opened, ReadError, read_any};
use crate::store::{Run, Store};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A kept session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its id, the time of its start: `20261122-101500`.
    pub id: String,
    /// Start, microseconds since 1970-01-01 UTC; 0 if its file cannot be read.
    pub started_us: u64,
    /// Size of its file, bytes.
    pub bytes: u64,
    /// Whether it is complete.
    pub state: State,
    /// Operating system and architecture of the host.
    pub host: String,
    /// Version of qnnscope that wrote it.
    pub tool_version: String,
    /// Name, tags and note given by the user.
    #[serde(flatten)]
    pub marks: Marks,
    /// Why its name, tags and note cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks_error: Option<String>,
    /// Its runs.
    pub runs: Vec<RunEntry>,
}

/// Whether a session is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is complete.
    Whole,
    /// It ends before its runs do, or is damaged.
    CutOff,
    /// It is still being written.
    Recording,
    /// Its file cannot be read.
    Unreadable,
}

/// A run of a kept session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// Path of the model as given.
    pub model: String,
    /// SHA-256 of the model file.
    pub sha256: Option<String>,
    /// Backend.
    pub backend: String,
    /// Device id.
    pub device: String,
    /// SoC or product name of the device.
    pub device_model: Option<String>,
    /// Build id of the backend library.
    pub build_id: Option<String>,
    /// True if the hardware was only emulated.
    pub simulated: bool,
    /// `ok`, `stopped`, `failed` or `unfinished`.
    pub status: String,
    /// Why it failed, or the stage it was in when its session was cut off.
    pub error: Option<String>,
    /// Number of clean inferences.
    pub inferences: u64,
    /// Median latency, microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile, microseconds.
    pub p99_us: Option<f64>,
}

impl Entry {
    /// Reads the entry from a session's file.
    pub(super) fn read(id: &str, file: &Path, marks: &Marks) -> Result<Self, HistoryError> {
        let not = |reason: &str| ReadError::NotASession { path: file.to_owned(), reason: reason.to_owned() };
        let recording = is_being_written(file);
        let Opened { store, notes, .. } = read_any(file)?.ok_or_else(|| not("it is another kind of file"))?;
        if store.session().is_none() {
            return Err(not("it has no header").into());
        }
        let state = match (recording, notes.is_empty()) {
            (true, _) => State::Recording,
            (false, true) => State::Whole,
            (false, false) => State::CutOff,
        };
        Ok(Self::of(id, size(file), state, marks.clone(), &store))
    }

    /// Summarises a session.
    pub(super) fn of(id: &str, bytes: u64, state: State, marks: Marks, store: &Store) -> Self {
        let session = store.session();
        Self {
            id: id.to_owned(),
            started_us: session.map_or(0, |session| session.epoch_us),
            bytes,
            state,
            host: session.map(|session| session.host.clone()).unwrap_or_default(),
            tool_version: session.map(|session| session.tool_version.clone()).unwrap_or_default(),
            marks,
            marks_error: None,
            runs: store.runs().iter().map(|run| RunEntry::of(store, run)).collect(),
        }
    }

    /// The entry of a file that cannot be read, or not yet.
    pub(super) fn unreadable(id: &str, file: &Path, marks: Marks) -> Self {
        let state = if is_being_written(file) { State::Recording } else { State::Unreadable };
        Self::of(id, size(file), state, marks, &Store::new())
    }

    /// The same, with the error if its name, tags and note could not be read.
    pub(super) fn with_marks_error(self, error: Option<String>) -> Self {
        Self { marks_error: error, ..self }
    }

    /// True if the user gave it a name, tag or note, or may have: it is kept regardless of the limits.
    pub(super) fn is_marked(&self) -> bool {
        self.marks_error.is_some() || !self.marks.is_empty()
    }

    /// Start as RFC 3339 in UTC, to the second.
    pub fn started_at(&self) -> String {
        timestamp(self.started_us).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }
}

impl RunEntry {
    fn of(store: &Store, run: &Run) -> Self {
        let device = store.device(&run.plan.device);
        let status = match run.status() {
            Some(RunStatus::Ok) => "ok",
            Some(RunStatus::Stopped) => "stopped",
            Some(RunStatus::Failed) => "failed",
            None => "unfinished",
        };
        let error = match (&run.failure, run.status()) {
            (Some(failure), _) => Some(format!("{}: {}", failure.stage, failure.message)),
            (None, None) => Some(format!("the session ended in stage {}", run.last_stage())),
            (None, Some(_)) => None,
        };
        Self {
            model: run.plan.model.clone(),
            sha256: run.model.as_ref().map(|model| model.sha256.clone()),
            backend: run.plan.backend.name().to_owned(),
            device: run.plan.device.clone(),
            device_model: device.and_then(|device| device.soc.clone().or_else(|| device.model.clone())),
            build_id: run.runtime.as_ref().and_then(|runtime| runtime.build_id.clone()),
            simulated: run.plan.simulated,
            status: status.to_owned(),
            error,
            inferences: run.clean.count(),
            p50_us: run.clean.percentile_us(50.0),
            p99_us: run.clean.percentile_us(99.0),
        }
    }
}

/// A point in time in the format of ids.
pub(super) fn stamp(epoch_us: u64) -> String {
    timestamp(epoch_us).strftime("%Y%m%d-%H%M%S").to_string()
}

fn timestamp(epoch_us: u64) -> jiff::Timestamp {
    i64::try_from(epoch_us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok()).unwrap_or_default()
}
