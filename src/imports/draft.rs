//! The session built from a file: runs are recorded one after another, and their events sorted by time once
//! everything is known.

use super::Imported;
use super::error::Problem;
use super::sample::Sample;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{
    Budget, Constraints, Driver, Event, InferenceBatch, LogLevel, LogLine, LogSource, MemoryMark, MemorySample, Metric,
    MetricSample, Mode, OpRow, OpSample, OpUnit, Origin, Phase, Record, RunId, RunPlan, RunStatus, SESSION_SCHEMA,
    SessionStarted, Stage, SubStage, clean_text,
};
use crate::models::{Graph, Op};
use crate::text::counted;

/// Most inferences in one event.
const BATCH: usize = 4096;
/// Most runs in one file.
const MAX_RUNS: usize = 1000;

/// A session under construction.
#[derive(Debug)]
pub struct Draft {
    kind: &'static str,
    label: &'static str,
    path: String,
    written_us: u64,
    /// Wall clock and steady clock at the same moment, if the file contains them.
    clock: Option<(u64, u64)>,
    runs: Vec<RunDraft>,
    notes: Vec<String>,
}

/// A run under construction. Unknown fields stay as set by [`Draft::run`].
#[derive(Debug)]
pub struct RunDraft {
    /// Backend.
    pub backend: Backend,
    /// Device as named in the file.
    pub device: String,
    /// Model or graph as named in the file.
    pub model: String,
    /// True if the file shows that the hardware was emulated.
    pub simulated: bool,
    /// Profiling level at which the latencies were measured.
    pub clean_level: ProfilingLevel,
    /// True if the start times of inferences come from the file.
    pub has_moments: bool,
    /// True if the latency is a statistic that the tool computed.
    pub is_summary: bool,
    /// How the run ended.
    pub status: RunStatus,
    events: Vec<(u64, Event)>,
    now_us: u64,
    batch: Option<InferenceBatch>,
    done: [u64; 4],
    rows: Vec<OpRow>,
    op_samples: u64,
    /// Op values of the first inference; used if there are no others.
    first_ops: Option<Vec<u64>>,
    mixed: u64,
}

impl Draft {
    /// An empty draft.
    pub fn new(kind: &'static str, label: &'static str, sample: &Sample) -> Self {
        Self {
            kind,
            label,
            path: clean_text(&sample.name().to_string_lossy()),
            written_us: sample.written_us(),
            clock: None,
            runs: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets the wall clock for a time on the file's own clock, both in microseconds.
    pub fn clock(&mut self, wall_us: u64, steady_us: u64) {
        self.clock.get_or_insert((wall_us, steady_us));
    }

    /// Notes what is missing.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = clean_text(&text.into());
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Adds a run.
    pub fn run(&mut self) -> Result<&mut RunDraft, Problem> {
        if self.runs.len() == MAX_RUNS {
            return Err(Problem::content(format!("it has more than {MAX_RUNS} runs")));
        }
        self.runs.push(RunDraft {
            backend: Backend::Unknown,
            device: "unknown".to_owned(),
            model: self.path.clone(),
            simulated: false,
            clean_level: ProfilingLevel::Off,
            has_moments: false,
            is_summary: false,
            status: RunStatus::Ok,
            events: Vec::new(),
            now_us: 0,
            batch: None,
            done: [0; 4],
            rows: Vec::new(),
            op_samples: 0,
            first_ops: None,
            mixed: 0,
        });
        self.last()
    }

    fn last(&mut self) -> Result<&mut RunDraft, Problem> {
        self.runs.last_mut().ok_or_else(|| Problem::content("it has no run"))
    }

    /// A run by its index, from 0.
    pub fn at(&mut self, run: usize) -> Result<&mut RunDraft, Problem> {
        self.runs.get_mut(run).ok_or_else(|| Problem::content("it has no run"))
    }

    /// All runs.
    pub fn runs(&mut self) -> &mut [RunDraft] {
        &mut self.runs
    }

    /// Refuses a file without runs.
    pub fn check(&self) -> Result<(), Problem> {
        if self.runs.is_empty() { Err(Problem::content("there is no run in it")) } else { Ok(()) }
    }

    /// The records in time order.
    pub fn finish(mut self) -> Imported {
        let mut events: Vec<(u64, Option<RunId>, Event)> = Vec::new();
        for (number, mut run) in (0..).zip(std::mem::take(&mut self.runs)) {
            run.end(&mut self.notes);
            let id = RunId(number);
            let begun_us = run.events.first().map_or(run.now_us, |(t_us, _)| *t_us);
            let plan = run.plan(self.kind, self.label);
            events.push((begun_us, Some(id), Event::RunStarted(Box::new(plan))));
            events.extend(run.events.into_iter().map(|(t_us, event)| (t_us, Some(id), event)));
            events.push((run.now_us, Some(id), Event::RunFinished { status: run.status }));
        }
        // Stable: simultaneous events keep their original order.
        events.sort_by_key(|(t_us, ..)| *t_us);
        let begun_us = events.first().map_or(0, |(t_us, ..)| *t_us);
        // If the file contains no wall clock, its modification time stands for its end.
        let end_us = events.last().map_or(0, |(t_us, ..)| *t_us);
        let (wall_us, steady_us) = self.clock.unwrap_or((self.written_us, end_us));
        let header = Event::SessionStarted(SessionStarted {
            schema: SESSION_SCHEMA.to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            epoch_us: (wall_us + begun_us).saturating_sub(steady_us),
            monotonic_us: begun_us,
            host: String::new(),
        });
        let notes = self
            .notes
            .iter()
            .map(|note| (begun_us, None, Event::Log(LogLine::new(LogLevel::Warning, LogSource::Qnnscope, note))));
        let all = std::iter::once((begun_us, None, header)).chain(notes).chain(events);
        let records = (0..).zip(all).map(|(seq, (t_us, run, event))| Record { seq, t_us, run, event }).collect();
        Imported { kind: self.kind, label: self.label, records, notes: self.notes }
    }
}

impl RunDraft {
    fn plan(&self, kind: &str, label: &str) -> RunPlan {
        let clean = self.done[Phase::Clean as usize];
        let has_ops = self.op_samples > 0;
        RunPlan {
            device: clean_text(&self.device),
            backend: self.backend,
            model: clean_text(&self.model),
            warmup: self.done[Phase::Warmup as usize],
            budget: Budget::Iterations(clean),
            profiling: if has_ops { ProfilingLevel::Detailed } else { self.clean_level },
            profiling_budget: has_ops.then_some(Budget::Iterations(self.op_samples)),
            simulated: self.simulated,
            driver: Driver::Imported,
            energy_while_charging: false,
            mode: Mode {
                origin: Some(Box::new(Origin {
                    kind: kind.to_owned(),
                    label: label.to_owned(),
                    clean_level: self.clean_level,
                    has_moments: self.has_moments,
                    is_summary: self.is_summary,
                })),
                ..Mode::default()
            },
            constraints: Constraints::default(),
        }
    }

    /// Adds an event at a time on the file's clock, or right after the previous one if that is later.
    pub fn push(&mut self, t_us: u64, event: Event) {
        self.flush();
        self.now_us = self.now_us.max(t_us);
        self.events.push((self.now_us, event));
    }

    /// Time reached so far, in microseconds.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Adds a stage and its duration.
    pub fn stage(&mut self, t_us: u64, stage: Stage, duration_us: f64) {
        if duration_us.is_finite() && duration_us > 0.0 {
            self.push(t_us, Event::StageStarted { stage });
            self.push(t_us, Event::StageFinished { stage, duration_us });
        }
    }

    /// Adds a part of a stage, or one of its figures.
    pub fn part(&mut self, t_us: u64, stage: Stage, name: &str, value: f64, unit: &str) {
        if value.is_finite() {
            let (name, unit) = (clean_text(name), unit.to_owned());
            self.push(t_us, Event::SubStageFinished(SubStage { stage, name, value, unit }));
        }
    }

    /// Adds a line for users.
    pub fn say(&mut self, level: LogLevel, text: &str) {
        self.push(self.now_us, Event::Log(LogLine::new(level, LogSource::Qnnscope, text)));
    }

    /// Adds a graph whose ops are known by name and type and, if reported, by where each one runs.
    pub fn graph(&mut self, name: &str, ops: impl IntoIterator<Item = (String, String, String)>) {
        let op = |(index, (name, op_type, package)): (u32, (String, String, String))| Op {
            index,
            name: clean_text(&name),
            op_type: clean_text(&op_type),
            package: clean_text(&package),
            inputs: Vec::new(),
            outputs: Vec::new(),
            params: serde_json::Map::new(),
            macs: None,
            parameter_bytes: 0,
            bytes_moved: None,
        };
        let ops = (0..).zip(ops).map(op).collect();
        let graph = Graph { name: clean_text(name), inputs: Vec::new(), outputs: Vec::new(), ops, parameter_bytes: 0 };
        self.push(self.now_us, Event::GraphComposed(Box::new(graph)));
    }

    /// Declares the rows that op values refer to. All have the same unit: shares of microseconds and of
    /// cycles do not mix.
    pub fn rows(&mut self, names: impl IntoIterator<Item = (String, Option<u32>)>, unit: OpUnit) {
        self.rows =
            names.into_iter().map(|(name, op)| OpRow { name: clean_text(&name), op, unit, htp_op: None }).collect();
        if !self.rows.is_empty() {
            self.push(self.now_us, Event::OpsDeclared(self.rows.clone()));
        }
    }

    /// True once rows have been declared.
    pub fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// True if the rows have these names in this order.
    pub fn has_these_rows<'a>(&self, names: impl ExactSizeIterator<Item = &'a str>) -> bool {
        names.len() == self.rows.len() && names.zip(&self.rows).all(|(name, row)| row.name == name)
    }

    /// Adds an inference. Without a timestamp it directly follows the previous one.
    pub fn inference(&mut self, phase: Phase, start_us: Option<u64>, took_us: f64) {
        if !took_us.is_finite() || took_us <= 0.0 {
            return;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and saturating is right"
        )]
        let duration_ns = (took_us * 1000.0).round() as u64;
        // A quarter of the range is 146 years; the sum of two times then stays within it.
        let (begun_us, duration_ns) =
            (start_us.unwrap_or(self.now_us).min(u64::MAX / 4), duration_ns.min(u64::MAX / 4));
        let fits = self.batch.as_ref().is_some_and(|batch| batch.phase == phase && batch.latency_ns.len() < BATCH);
        if !fits {
            self.flush();
            self.now_us = self.now_us.max(begun_us);
        }
        let done = &mut self.done[phase as usize];
        let batch = self.batch.get_or_insert_with(|| InferenceBatch {
            phase,
            first_index: *done,
            start_us: Vec::new(),
            latency_ns: Vec::new(),
            late_ns: Vec::new(),
        });
        *done += 1;
        batch.start_us.push(begun_us);
        batch.latency_ns.push(duration_ns);
        self.now_us = self.now_us.max(begun_us.saturating_add(duration_ns.div_ceil(1000)));
    }

    /// Number of inferences in a phase so far.
    pub fn done(&self, phase: Phase) -> u64 {
        self.done[phase as usize]
    }

    /// Adds the op values of the last inference, one per row.
    pub fn op_values(&mut self, phase: Phase, values: Vec<u64>) {
        if values.len() != self.rows.len() || values.is_empty() {
            self.mixed += 1;
        } else if phase == Phase::First {
            self.first_ops = Some(values);
        } else {
            self.flush();
            self.events.push((self.now_us, Event::OpTimes(OpSample { inference: self.op_samples, values })));
            self.op_samples += 1;
        }
    }

    /// Notes op values that do not fit the declared rows.
    pub fn other_ops(&mut self) {
        self.mixed += 1;
    }

    /// Adds the backend's figures for the last inference.
    pub fn metrics(&mut self, phase: Phase, metrics: Vec<Metric>) {
        let metrics: Vec<Metric> = metrics.into_iter().filter(|metric| metric.value.is_finite()).collect();
        if !metrics.is_empty() {
            let inference = self.done(phase).saturating_sub(1);
            self.flush();
            self.events.push((self.now_us, Event::Metrics(MetricSample { phase, inference, metrics })));
        }
    }

    /// Adds one of the backend's figures.
    pub fn figure(&mut self, name: &str, unit: &str, value: f64) {
        self.metrics(Phase::Clean, vec![metric(name, unit, value)]);
    }

    /// Sets the peak memory of the process, in bytes.
    pub fn peak_memory(&mut self, bytes: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and saturating is right"
        )]
        let rss = bytes as u64;
        let sample = MemorySample { mark: MemoryMark::Running, rss, rss_peak: Some(rss), pss: None, inferences: 0 };
        self.push(self.now_us(), Event::Memory(sample));
    }

    fn flush(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.events.push((self.now_us, Event::Inferences(batch)));
        }
    }

    fn end(&mut self, notes: &mut Vec<String>) {
        self.flush();
        if let Some(values) = self.first_ops.take().filter(|_| self.op_samples == 0) {
            self.events.push((self.now_us, Event::OpTimes(OpSample { inference: 0, values })));
            self.op_samples = 1;
            notes.push(format!("{}: layer times are from the first inference, the only one that has them", self.model));
        }
        if self.mixed > 0 {
            let text = format!(
                "{}: {} with different ops from the first one; their layer times are left out",
                self.model,
                counted(self.mixed, "inference")
            );
            notes.push(text);
        }
    }
}

/// A figure with a sanitised name.
pub fn metric(name: &str, unit: &str, value: f64) -> Metric {
    Metric { name: clean_text(name), unit: unit.to_owned(), value }
}
