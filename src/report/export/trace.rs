//! A trace for Perfetto and `chrome://tracing`: stages, launches, inferences and log lines on tracks,
//! counters as curves. It is built from the records, since the store does not keep the ops of single
//! inferences.

use super::{ExportError, MARK};
use crate::event::{Event, LogLevel, Phase, Record, RunId};
use crate::report::mask::Mask;
use crate::report::page::Material;
use crate::text::Printable;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Maximum number of slices per session; any more are only counted.
const MOST_SLICES: u64 = 400_000;
/// Maximum number of detailed inferences per run whose ops are shown, by their shares.
const WITH_OPS: u64 = 20;
/// Tracks of a run.
const STAGES: u32 = 1;
const INFERENCES: u32 = 2;
const OPS: u32 = 3;
/// Process ids in the trace: session n starts at `n * PER_SESSION`; the first is the machine, the others are
/// its runs.
const PER_SESSION: u64 = 1000;

/// The trace.
pub fn make(material: &Material<'_>) -> Result<Vec<u8>, ExportError> {
    if material.files.is_empty() {
        return Err(ExportError::Nothing { reason: "a trace needs a recorded session" });
    }
    let mut out = Vec::new();
    out.extend_from_slice(
        format!("{{\"otherData\":{{\"generator\":\"{MARK}\"}},\"displayTimeUnit\":\"ms\",\"traceEvents\":[").as_bytes(),
    );
    let mut writer = Writer { out, is_first: true };
    let mut problem = None;
    for (session, file) in (0..).zip(material.files) {
        let mut trace = Trace::new(session, &material.mask);
        file.replay(&mut |record| {
            if problem.is_none() {
                problem = trace.record(record, &mut writer).err();
            }
        })?;
        trace.end(&mut writer).map_err(|error| failed(&error))?;
    }
    if let Some(error) = problem {
        return Err(failed(&error));
    }
    let mut out = writer.out;
    out.extend_from_slice(b"\n]}\n");
    Ok(out)
}

fn failed(error: &serde_json::Error) -> ExportError {
    ExportError::Write { format: "trace", reason: error.to_string() }
}

struct Writer {
    out: Vec<u8>,
    is_first: bool,
}

impl Writer {
    fn event(&mut self, event: &Value) -> Result<(), serde_json::Error> {
        self.out.extend_from_slice(if self.is_first { b"\n" } else { b",\n" });
        self.is_first = false;
        event.serialize(&mut serde_json::Serializer::with_formatter(&mut self.out, Printable::default()))
    }
}

/// State of a session being traced.
struct Trace<'a> {
    mask: &'a Mask,
    base: u64,
    begun_us: Option<u64>,
    slices: u64,
    left_out: u64,
    counters: BTreeMap<u32, Vec<(String, String)>>,
    runs: BTreeMap<Option<RunId>, RunTrace>,
}

#[derive(Default)]
struct RunTrace {
    rows: Vec<String>,
    /// Start and duration of detailed inferences, by index.
    detailed: BTreeMap<u64, (u64, f64)>,
}

impl<'a> Trace<'a> {
    fn new(session: u64, mask: &'a Mask) -> Self {
        Self {
            mask,
            base: session * PER_SESSION,
            begun_us: None,
            slices: 0,
            left_out: 0,
            counters: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    fn pid(&self, run: Option<RunId>) -> u64 {
        self.base + run.map_or(0, |run| u64::from(run.0) % (PER_SESSION - 1) + 1)
    }

    fn ts(&mut self, t_us: u64) -> f64 {
        t_us.saturating_sub(*self.begun_us.get_or_insert(t_us)) as f64
    }

    #[expect(clippy::too_many_arguments, reason = "a slice has that many parts")]
    fn slice(
        &mut self,
        to: &mut Writer,
        run: Option<RunId>,
        track: u32,
        name: &str,
        ts: f64,
        dur: f64,
        args: &Value,
    ) -> Result<(), serde_json::Error> {
        if self.slices >= MOST_SLICES {
            self.left_out += 1;
            return Ok(());
        }
        self.slices += 1;
        let name = self.mask.name(name);
        to.event(
            &json!({"ph": "X", "pid": self.pid(run), "tid": track, "name": name, "ts": ts, "dur": dur, "args": args}),
        )
    }

    fn named(to: &mut Writer, pid: u64, track: Option<u32>, name: &str) -> Result<(), serde_json::Error> {
        let kind = if track.is_some() { "thread_name" } else { "process_name" };
        to.event(&json!({"ph": "M", "pid": pid, "tid": track.unwrap_or(0), "name": kind, "args": {"name": name}}))
    }

    fn record(&mut self, record: &Record, to: &mut Writer) -> Result<(), serde_json::Error> {
        let ts = self.ts(record.t_us);
        let (pid, run) = (self.pid(record.run), record.run);
        match &record.event {
            Event::SessionStarted(_) => Self::named(to, self.base, None, "machine and devices")?,
            Event::RunStarted(plan) => {
                let simulated = if plan.simulated { " [simulated]" } else { "" };
                let name = format!("{} on {}{simulated}: {}", plan.backend, plan.device, plan.model);
                Self::named(to, pid, None, &self.mask.text(&name))?;
                for (track, name) in
                    [(STAGES, "stages"), (INFERENCES, "inferences"), (OPS, "ops (shares of the inference)")]
                {
                    Self::named(to, pid, Some(track), name)?;
                }
            }
            Event::StageFinished { stage, duration_us } => {
                self.slice(to, run, STAGES, stage.name(), (ts - duration_us).max(0.0), *duration_us, &json!({}))?;
            }
            Event::LaunchStarted { index, of, .. } => {
                let name = format!("launch {} of {of}", index + 1);
                to.event(&json!({"ph": "i", "s": "p", "pid": pid, "tid": STAGES, "name": name, "ts": ts}))?;
            }
            Event::Inferences(batch) => {
                for (at, (&start_us, &latency_ns)) in (0..).zip(batch.start_us.iter().zip(&batch.latency_ns)) {
                    let (start, dur) = (self.ts(start_us), latency_ns as f64 / 1000.0);
                    let index = batch.first_index + at;
                    if batch.phase == Phase::Detailed || batch.phase == Phase::Clean {
                        let known = self.runs.entry(run).or_default();
                        if known.detailed.len() < 4 * usize::try_from(WITH_OPS).unwrap_or(0) {
                            // The detailed phase comes last; without one, the ops are those of the clean
                            // phase.
                            if batch.phase == Phase::Detailed || !known.detailed.contains_key(&index) {
                                known.detailed.insert(index, (start_us, dur));
                            }
                        } else if batch.phase == Phase::Detailed && index < WITH_OPS {
                            known.detailed.insert(index, (start_us, dur));
                        }
                    }
                    self.slice(to, run, INFERENCES, batch.phase.name(), start, dur, &json!({"index": index}))?;
                }
            }
            Event::OpsDeclared(rows) => {
                let names = rows.iter().map(|row| row.name.clone()).collect();
                self.runs.entry(run).or_default().rows = names;
            }
            Event::OpTimes(sample) if sample.inference < WITH_OPS => {
                self.ops(run, sample.inference, &sample.values, to)?;
            }
            Event::CountersDeclared(infos) => {
                self.counters.insert(0, infos.iter().map(|info| (info.label.clone(), info.unit.clone())).collect());
            }
            Event::CounterSetDeclared(set) => {
                let name = |info: &crate::event::CounterInfo| {
                    (format!("{}: {}", self.mask.name(&set.device), info.label), info.unit.clone())
                };
                let names = set.counters.iter().map(name).collect();
                self.counters.insert(set.set, names);
            }
            Event::Counters(sample) => {
                let ts = self.ts(sample.t_us);
                let names = self.counters.get(&sample.set).cloned().unwrap_or_default();
                for ((name, unit), value) in names.iter().zip(&sample.values) {
                    if let Some(value) = value.filter(|value| value.is_finite()) {
                        if self.slices >= MOST_SLICES {
                            self.left_out += 1;
                            continue;
                        }
                        self.slices += 1;
                        let name = if unit.is_empty() { name.clone() } else { format!("{name}, {unit}") };
                        let mut args = Map::new();
                        args.insert("value".to_owned(), json!(value));
                        to.event(
                            &json!({"ph": "C", "pid": self.base, "tid": 0, "name": name, "ts": ts, "args": args}),
                        )?;
                    }
                }
            }
            Event::Failed(failure) => {
                let name = self.mask.text(&format!("failed in {}: {}", failure.stage, failure.message)).into_owned();
                to.event(&json!({"ph": "i", "s": "g", "pid": pid, "tid": STAGES, "name": name, "ts": ts}))?;
            }
            // Log lines may contain anything, so a trace for sharing has none.
            Event::Log(line) if line.level <= LogLevel::Warning && !self.mask.is_active() => {
                to.event(&json!({"ph": "i", "s": "p", "pid": pid, "tid": STAGES, "name": line.text, "ts": ts}))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ops have no timestamps: they are laid out in row order, with lengths proportional to their shares of
    /// the inference.
    fn ops(
        &mut self,
        run: Option<RunId>,
        index: u64,
        values: &[u64],
        to: &mut Writer,
    ) -> Result<(), serde_json::Error> {
        let Some(known) = self.runs.get(&run) else { return Ok(()) };
        let Some(&(start_us, dur)) = known.detailed.get(&index) else { return Ok(()) };
        let total: f64 = values.iter().map(|value| *value as f64).sum();
        if total <= 0.0 || known.rows.len() != values.len() {
            return Ok(());
        }
        let rows = known.rows.clone();
        let mut at = self.ts(start_us);
        for (name, value) in rows.iter().zip(values).filter(|(_, value)| **value > 0) {
            let part = *value as f64 / total * dur;
            self.slice(to, run, OPS, name, at, part, &json!({"value": value}))?;
            at += part;
        }
        Ok(())
    }

    fn end(&self, to: &mut Writer) -> Result<(), serde_json::Error> {
        if self.left_out == 0 {
            return Ok(());
        }
        let name = format!("{} more slices and counter values are left out", self.left_out);
        to.event(&json!({"ph": "i", "s": "g", "pid": self.base, "tid": 0, "name": name, "ts": 0.0}))
    }
}
