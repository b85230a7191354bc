//! Counters of a device: the `qnnscope.counters/1` document and its text.

use super::layout::shortened;
use crate::event::Gap;
use crate::probes::{Counter, Unreadable};
use crate::text::counted;
use serde::Serialize;
use std::fmt::Write;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CountersDocument {
    schema: &'static str,
    device: String,
    readable: Vec<CounterRow>,
    unreadable: Vec<CounterRow>,
    sampling: Option<SamplingDocument>,
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterRow {
    id: String,
    label: String,
    unit: String,
    about: String,
    needs_root: bool,
    /// True if it is read by default.
    chosen: bool,
    /// Why it cannot be read; null if it can.
    reason: Option<Gap>,
    /// The reason in words.
    unavailable: Option<String>,
}

/// How well sampling worked.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SamplingDocument {
    counters: usize,
    /// Time covered by the reports, seconds.
    pub seconds: f64,
    /// Ticks of the fast counters.
    pub ticks: u64,
    /// Values received.
    pub values: u64,
    /// Ticks more than half a period late.
    pub late: u64,
    /// Planned ticks that were skipped.
    pub missed: u64,
    /// CPU time of the device per tick, microseconds; null if it does not report it.
    pub cpu_us_per_tick: Option<f64>,
    /// Uncertainty of the device's clock relative to this machine's, microseconds.
    pub uncertainty_us: Option<u64>,
    /// Why sampling ended early; null if it did not.
    pub ended: Option<String>,
}

impl CounterRow {
    /// A counter that can be read.
    pub fn readable(counter: &Counter, chosen: bool) -> Self {
        Self {
            id: counter.id.clone(),
            label: counter.label.clone(),
            unit: counter.unit.clone(),
            about: counter.about.clone(),
            needs_root: counter.needs_root,
            chosen,
            reason: None,
            unavailable: None,
        }
    }

    /// A counter that cannot.
    pub fn unreadable(counter: &Unreadable) -> Self {
        Self {
            id: counter.info.id.clone(),
            label: counter.info.label.clone(),
            unit: counter.info.unit.clone(),
            about: String::new(),
            needs_root: counter.needs_root,
            chosen: false,
            reason: Some(counter.reason),
            unavailable: counter.info.unavailable.clone(),
        }
    }
}

impl CountersDocument {
    /// The document.
    pub fn new(
        device: &str,
        readable: Vec<CounterRow>,
        unreadable: Vec<CounterRow>,
        sampling: Option<SamplingDocument>,
    ) -> Self {
        Self { schema: "qnnscope.counters/1", device: device.to_owned(), readable, unreadable, sampling }
    }
}

impl SamplingDocument {
    /// For this many counters, before anything was read.
    pub fn new(counters: usize) -> Self {
        Self { counters, ..Self::default() }
    }

    /// Counts the values of a tick.
    pub fn take(&mut self, values: &[Option<f64>]) {
        self.values += values.iter().flatten().count() as u64;
    }
}

/// The document as text.
pub fn counters_text(document: &CountersDocument) -> String {
    let mut out = format!("{}: {} readable\n", document.device, counted(document.readable.len() as u64, "counter"));
    for row in &document.readable {
        let unit = if row.unit.is_empty() { "–" } else { &row.unit };
        let mark = if row.chosen { "*" } else { " " };
        let root = if row.needs_root { "  (as root)" } else { "" };
        let _ = writeln!(out, " {mark} {:<34} {unit:<6} {}{root}", shortened(&row.id, 34), row.label);
    }
    out.push_str(" * read unless --counters chooses others\n");
    if !document.unreadable.is_empty() {
        let _ = writeln!(out, "\n{} cannot be read", document.unreadable.len());
        for row in &document.unreadable {
            let why = row.unavailable.as_deref().unwrap_or("unknown");
            let _ = writeln!(out, "   {:<34} {why}", shortened(&row.id, 34));
        }
    }
    if let Some(sampling) = &document.sampling {
        sampled(&mut out, sampling);
    }
    out
}

fn sampled(out: &mut String, sampling: &SamplingDocument) {
    let rate = |count: u64| if sampling.seconds > 0.0 { count as f64 / sampling.seconds } else { 0.0 };
    let _ = writeln!(
        out,
        "\nsampled {} counters for {:.1} s: {:.0} ticks/s, {:.0} values/s; {} ticks late, {} missed",
        sampling.counters,
        sampling.seconds,
        rate(sampling.ticks),
        rate(sampling.values),
        sampling.late,
        sampling.missed
    );
    if let Some(us) = sampling.cpu_us_per_tick {
        let _ = writeln!(out, "  {us:.0} µs of the device's CPU time per tick");
    }
    if let Some(us) = sampling.uncertainty_us {
        let _ = writeln!(out, "  the device's clock is aligned to ±{us} µs");
    }
    if let Some(reason) = &sampling.ended {
        let _ = writeln!(out, "  ended early: {reason}");
    }
}
