//! The store: events folded into bounded aggregates.
//!
//! [`Store::apply`] is the only way state changes, so the live view, a replay and a report can never disagree. The store
//! keeps up to a million single latencies of a phase (8 bytes each, then it thins them evenly), histograms of all of them and
//! one per op, but no raw op samples: those are in the session file.

mod bounds;
mod counters;
mod digest;
mod histogram;
mod history;
mod importance;
mod latency;
mod launch;
mod ops;
mod pace;
mod run;
mod sampling;
mod tap;

pub use counters::{CounterSeries, DeviceCounters, DeviceSeries, SERIES_CAPACITY};
pub use digest::StoreDigest;
pub use history::Span;
pub use importance::by_importance;
pub use latency::{
    EXACT_LIMIT, LatencyStats, Launch, LaunchFigures, MAX_LAUNCHES, PERCENTILES, Percentile, SLOWEST_KEPT, Slow,
    between_ranks, nanoseconds,
};
pub use launch::{LaunchFacts, StageTime};
pub use ops::{OpStats, OpTable};
pub use pace::PaceStats;
pub use run::{MemoryStats, MetricStats, Run, RunState};
pub use sampling::{SamplerState, SamplingGap};
pub use tap::{
    Alone, CallStats, GraphTimes, GraphsMade, Tapped, TappedContext, TappedGraph, TappedProcess, TimeShare, Timeline,
};

use crate::event::{DeviceChange, DeviceFacts, DeviceInfo, Event, LogLine, Record, RunId, SessionStarted};
use std::collections::{BTreeMap, VecDeque};

/// Log lines kept in memory; older ones are in the session file.
pub const LOG_CAPACITY: usize = 10_000;

/// Unknown event kinds counted individually: a file with invented kinds must not fill memory.
const MOST_UNKNOWN_KINDS: usize = 32;

/// A log line with its timestamp and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    /// Host monotonic microseconds.
    pub t_us: u64,
    /// Run it belongs to, if any.
    pub run: Option<RunId>,
    /// The line.
    pub line: LogLine,
}

/// Why nothing is known about devices behind adb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdbProblem {
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub advice: Option<String>,
}

/// State of a session.
#[derive(Debug, Default)]
pub struct Store {
    session: Option<SessionStarted>,
    devices: Vec<DeviceInfo>,
    device_states: Vec<DeviceChange>,
    device_facts: Vec<DeviceFacts>,
    adb_problem: Option<AdbProblem>,
    runs: Vec<Run>,
    counters: Vec<CounterSeries>,
    device_counters: DeviceCounters,
    logs: VecDeque<StoredLine>,
    logs_dropped: u64,
    lost: u64,
    unknown: BTreeMap<String, u64>,
    tapped: Option<Tapped>,
    records: u64,
    last_t_us: u64,
}

impl Store {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds one record in.
    pub fn apply(&mut self, record: &Record) {
        self.records += 1;
        self.last_t_us = self.last_t_us.max(record.t_us);
        match &record.event {
            Event::SessionStarted(session) => self.session = Some(session.clone()),
            Event::DeviceSeen(device) => put(&mut self.devices, device, |known| &known.id),
            Event::AdbFound { .. } => self.adb_problem = None,
            Event::AdbLost { reason, advice } => {
                self.adb_problem = Some(AdbProblem { reason: reason.clone(), advice: advice.clone() });
            }
            Event::DeviceChanged(change) => put(&mut self.device_states, change, |known| &known.id),
            Event::DeviceDescribed(facts) => put(&mut self.device_facts, facts, |known| &known.id),
            Event::RunStarted(plan) => {
                if let Some(id) = record.run {
                    self.runs.push(Run::new(id, (**plan).clone(), record.t_us));
                }
            }
            // Declared again by a subsequent session: the series continue.
            Event::CountersDeclared(infos)
                if !infos.is_empty() && infos.iter().eq(self.counters.iter().map(|series| &series.info)) => {}
            Event::CountersDeclared(infos) => {
                self.counters = infos.iter().cloned().map(CounterSeries::new).collect();
            }
            Event::CounterSetDeclared(set) => self.device_counters.declare(set),
            Event::CounterGap(gap) => self.device_counters.gap(gap),
            Event::SamplerReported(report) => self.device_counters.report(report),
            Event::ClockAligned(clock) => self.device_counters.align(clock),
            Event::SamplerEnded(ended) => self.device_counters.end(ended),
            Event::Counters(sample) if sample.set != 0 => self.device_counters.push(sample),
            Event::Counters(sample) => {
                for (series, value) in self.counters.iter_mut().zip(&sample.values) {
                    series.push(sample.t_us, *value);
                }
            }
            Event::Log(line) => self.push_log(record, line),
            Event::Lost { count, .. } => self.lost = self.lost.saturating_add(*count),
            Event::Tap(seen) => self.tapped.get_or_insert_default().apply(record.t_us, record.run, seen),
            Event::Unknown(event) => self.note_unknown(&event.kind),
            event => {
                if let Some(run) = record.run.and_then(|id| self.runs.iter_mut().rev().find(|run| run.id == id)) {
                    run.apply(record.t_us, event);
                }
            }
        }
    }

    /// Header of the session, once seen.
    pub fn session(&self) -> Option<&SessionStarted> {
        self.session.as_ref()
    }

    /// Devices in order of appearance.
    pub fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    /// Device by id.
    pub fn device(&self, id: &str) -> Option<&DeviceInfo> {
        self.devices.iter().find(|device| device.id == id)
    }

    /// Last reported state of a device behind adb; `None` if adb never listed it.
    pub fn device_state(&self, id: &str) -> Option<&DeviceChange> {
        self.device_states.iter().find(|change| change.id == id)
    }

    /// States of all devices behind adb, in order of appearance, including those that are gone.
    pub fn device_states(&self) -> &[DeviceChange] {
        &self.device_states
    }

    /// Facts about a device.
    pub fn device_facts(&self, id: &str) -> Option<&DeviceFacts> {
        self.device_facts.iter().find(|facts| facts.id == id)
    }

    /// Why nothing is known about devices behind adb, if so.
    pub fn adb_problem(&self) -> Option<&AdbProblem> {
        self.adb_problem.as_ref()
    }

    /// Runs in start order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// One run.
    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.iter().find(|run| run.id == id)
    }

    /// The run to show if none is chosen: among active ones, the one whose launch began last, since they alternate;
    /// else the newest.
    pub fn followed_run(&self) -> Option<&Run> {
        let began = |run: &&Run| run.launches.last().map(|launch| launch.started_us);
        self.runs.iter().filter(|run| !run.is_ended()).max_by_key(began).or_else(|| self.runs.last())
    }

    /// Display number of a run, from 1 in start order.
    pub fn run_number(&self, id: RunId) -> Option<usize> {
        self.runs.iter().position(|run| run.id == id).map(|at| at + 1)
    }

    /// The host's own counters in declared order.
    pub fn counters(&self) -> &[CounterSeries] {
        &self.counters
    }

    /// Counters of devices, and how well they are sampled.
    pub fn device_counters(&self) -> &DeviceCounters {
        &self.device_counters
    }

    /// The newest log lines, oldest first.
    pub fn logs(&self) -> &VecDeque<StoredLine> {
        &self.logs
    }

    /// Log lines that no longer fit in memory.
    pub fn logs_dropped(&self) -> u64 {
        self.logs_dropped
    }

    /// Items that sources reported as lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Events of unknown kinds, counted by kind; `other` counts kinds beyond the first few.
    pub fn unknown_events(&self) -> &BTreeMap<String, u64> {
        &self.unknown
    }

    /// The tapped program, if any.
    pub fn tapped(&self) -> Option<&Tapped> {
        self.tapped.as_ref()
    }

    /// Records folded so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Newest timestamp seen, host monotonic microseconds.
    pub fn now_us(&self) -> u64 {
        self.last_t_us
    }

    fn note_unknown(&mut self, kind: &str) {
        let room = self.unknown.len() < MOST_UNKNOWN_KINDS;
        let key = if room || self.unknown.contains_key(kind) { kind } else { "other" };
        *self.unknown.entry(key.to_owned()).or_default() += 1;
    }

    fn push_log(&mut self, record: &Record, line: &LogLine) {
        if self.logs.len() == LOG_CAPACITY {
            self.logs.pop_front();
            self.logs_dropped += 1;
        }
        self.logs.push_back(StoredLine { t_us: record.t_us, run: record.run, line: line.clone() });
    }
}

/// Replaces the item with the same id by `item`, or appends it.
fn put<T: Clone>(items: &mut Vec<T>, item: &T, id: impl Fn(&T) -> &String) {
    match items.iter_mut().find(|known| id(known) == id(item)) {
        Some(known) => *known = item.clone(),
        None => items.push(item.clone()),
    }
}
