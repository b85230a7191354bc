//! ExecuTorch's ETDump. Times from the runtime are in nanoseconds; a delegate's figures have the unit given
//! in their name, and cycles stay cycles.

use super::Import;
use super::draft::{Draft, metric};
use super::error::Problem;
use super::flatbuffer::Table;
use super::sample::Sample;
use crate::backends::profile_log::op_identifier;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{Metric, OpUnit, Phase, Stage, clean_text};

pub struct Etdump;

/// Identifier of an ETDump, after the offset of its root.
const MARK: &[u8] = b"ED00";
/// Most events in one file. They may point at the same bytes, so the file size alone does not bound them.
const MAX_EVENTS: usize = 4_000_000;

impl Import for Etdump {
    fn kind(&self) -> &'static str {
        "etdump"
    }

    fn label(&self) -> &'static str {
        "ExecuTorch ETDump"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        buffer(sample.head()).is_some()
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let bytes = sample.bytes()?;
        let damaged = || Problem::content("its tables point outside the file: it is damaged or truncated");
        let root = buffer(&bytes).and_then(Table::root).ok_or_else(damaged)?;
        let mut left = MAX_EVENTS;
        let mut seen = 0;
        let run = draft.run()?;
        for block in root.tables(1) {
            let name = block.text(0).unwrap_or_default();
            let mut told = Block::default();
            for event in block.tables(3).filter_map(|event| event.table(0)) {
                left = left.checked_sub(1).ok_or_else(|| Problem::content("it has more events than any real one"))?;
                seen += 1;
                told.event(&event);
            }
            told.into_run(&name, run);
        }
        if seen == 0 {
            return Err(damaged());
        }
        if run.backend == Backend::Unknown {
            draft.note("no QNN delegate reports anything in it: it was compiled without profiling, or ran elsewhere");
        }
        Ok(())
    }
}

/// The FlatBuffer, which may be preceded by its length.
fn buffer(bytes: &[u8]) -> Option<&[u8]> {
    let marked = |bytes: &[u8], at: usize| bytes.get(at..at + MARK.len()) == Some(MARK);
    if marked(bytes, 4) {
        Some(bytes)
    } else if marked(bytes, 8) {
        bytes.get(4..)
    } else {
        None
    }
}

/// The contents of one block: an inference, or the loading before it.
#[derive(Default)]
struct Block {
    /// From the runtime: name, start and duration, in nanoseconds.
    runtime: Vec<(String, u64, u64)>,
    /// From the delegate's root events.
    metrics: Vec<Metric>,
    cycles: Vec<(String, u64)>,
    /// The next rows are accelerator ops.
    in_ops: bool,
}

impl Block {
    fn event(&mut self, event: &Table<'_>) {
        let (start, end) = (event.u64(6).unwrap_or(0), event.u64(7).unwrap_or(0));
        if let Some(name) = event.text(0).filter(|name| !name.is_empty()) {
            self.runtime.push((clean_text(&name), start, end.saturating_sub(start)));
        } else if let Some(text) = event.text(4) {
            self.delegate(&text, end);
        }
    }

    /// Adds a figure from QNN's own profile: `NAME (unit)`. Op rows start after the accelerator's cycles
    /// and end at its time.
    fn delegate(&mut self, text: &str, value: u64) {
        let (name, unit) = match text.trim_end().strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
            Some((name, unit @ ("us" | "cycles" | "count" | "bytes"))) => (name, unit),
            _ => (text, ""),
        };
        let is_total = name == "Accelerator (execute) time";
        if self.in_ops && unit == "cycles" && !is_total {
            self.cycles.push((clean_text(op_identifier(name, false).name), value));
            return;
        }
        self.in_ops = is_total && unit == "cycles";
        self.metrics.push(metric(name, unit, value as f64));
    }

    fn into_run(self, name: &str, run: &mut super::draft::RunDraft) {
        let find = |name: &str| self.runtime.iter().find(|event| event.0 == name);
        if let Some((_, start_ns, ns)) = find("Program::load_method").or_else(|| find("Method::init")) {
            run.stage(start_ns / 1000, Stage::ContextCreate, *ns as f64 / 1000.0);
        }
        let Some((_, start_ns, ns)) = find("Method::execute") else { return };
        let first = run.done(Phase::First) == 0;
        let phase = if first { Phase::First } else { Phase::Clean };
        if first && !name.is_empty() && name != "Execute" {
            run.model = clean_text(name);
        }
        run.has_moments = true;
        run.inference(phase, Some(start_ns / 1000), *ns as f64 / 1000.0);
        let is_qnn = self.metrics.iter().any(|metric| metric.name.starts_with("QNN (execute)"));
        if is_qnn {
            run.backend = Backend::Htp;
        }
        // Shares of cycles and of times do not mix, so the runtime's ops count only if the delegate reported
        // none.
        let runtime = self.runtime.iter().filter(|event| event.0.starts_with("native_call_"));
        let (ops, unit): (Vec<(String, u64)>, _) = if self.cycles.is_empty() {
            (runtime.map(|(name, _, ns)| (name.clone(), (ns + 500) / 1000)).collect(), OpUnit::Us)
        } else {
            (self.cycles, OpUnit::Cycles)
        };
        if !ops.is_empty() {
            run.clean_level = ProfilingLevel::Detailed;
            if !run.has_rows() {
                run.rows(ops.iter().map(|op| (op.0.clone(), None)), unit);
            }
            if run.has_these_rows(ops.iter().map(|op| op.0.as_str())) {
                run.op_values(phase, ops.iter().map(|op| op.1).collect());
            } else {
                run.other_ops();
            }
        }
        if phase == Phase::Clean {
            let mut metrics = self.metrics;
            let calls: u64 = self.runtime.iter().filter(|event| event.0 == "DELEGATE_CALL").map(|event| event.2).sum();
            if calls > 0 {
                metrics.push(metric("DELEGATE_CALL", "us", calls as f64 / 1000.0));
            }
            run.metrics(phase, metrics);
        }
    }
}
