//! The store: events folded into bounded aggregates.
//!
//! [`Store::apply`] is the only way state changes, so the live view, a replay and a report can never disagree. The store
//! keeps every latency (4 bytes each) and a histogram per op, but no raw op samples: those are in the session file.

mod counters;
mod latency;
mod ops;
mod run;

pub use counters::{CounterSeries, SERIES_CAPACITY};
pub use latency::{LatencyStats, PERCENTILES, Percentile};
pub use ops::{OpStats, OpTable};
pub use run::{MemoryStats, MetricStats, Run, RunState, StageTime};

use crate::event::{DeviceInfo, Event, LogLine, Record, RunId, SessionStarted};
use std::collections::VecDeque;

/// Log lines kept in memory; older ones are in the session file.
pub const LOG_CAPACITY: usize = 10_000;

/// A log line with its moment and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    /// Host monotonic microseconds.
    pub t_us: u64,
    /// Run it belongs to, if any.
    pub run: Option<RunId>,
    /// The line.
    pub line: LogLine,
}

/// State of a session.
#[derive(Debug, Default)]
pub struct Store {
    session: Option<SessionStarted>,
    devices: Vec<DeviceInfo>,
    runs: Vec<Run>,
    counters: Vec<CounterSeries>,
    logs: VecDeque<StoredLine>,
    logs_dropped: u64,
    lost: u64,
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
            Event::DeviceSeen(device) => self.see_device(device),
            Event::RunStarted(plan) => {
                if let Some(id) = record.run {
                    self.runs.push(Run::new(id, (**plan).clone(), record.t_us));
                }
            }
            Event::CountersDeclared(infos) => {
                self.counters = infos.iter().cloned().map(CounterSeries::new).collect();
            }
            Event::Counters(sample) => {
                for (series, value) in self.counters.iter_mut().zip(&sample.values) {
                    series.push(sample.t_us, *value);
                }
            }
            Event::Log(line) => self.push_log(record, line),
            Event::Lost { count, .. } => self.lost = self.lost.saturating_add(*count),
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

    /// Runs in start order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// One run.
    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.iter().find(|run| run.id == id)
    }

    /// Counters in declared order.
    pub fn counters(&self) -> &[CounterSeries] {
        &self.counters
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

    /// Records folded so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Newest moment seen, host monotonic microseconds.
    pub fn now_us(&self) -> u64 {
        self.last_t_us
    }

    fn see_device(&mut self, device: &DeviceInfo) {
        match self.devices.iter_mut().find(|known| known.id == device.id) {
            Some(known) => *known = device.clone(),
            None => self.devices.push(device.clone()),
        }
    }

    fn push_log(&mut self, record: &Record, line: &LogLine) {
        if self.logs.len() == LOG_CAPACITY {
            self.logs.pop_front();
            self.logs_dropped += 1;
        }
        self.logs.push_back(StoredLine { t_us: record.t_us, run: record.run, line: line.clone() });
    }
}
