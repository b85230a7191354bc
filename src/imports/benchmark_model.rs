//! Output of LiteRT's (TensorFlow Lite's) `benchmark_model`. Its tables are in milliseconds, its summary in
//! microseconds.

use super::Import;
use super::draft::{Draft, RunDraft};
use super::error::Problem;
use super::sample::Sample;
use crate::backends::ProfilingLevel;
use crate::event::{LogLevel, OpUnit, Phase, Stage, clean_text};

pub struct BenchmarkModel;

/// Lines that only this program prints.
const SIGNS: [&str; 3] = ["Inference timings in us:", "Operator-wise Profiling Info", "count="];

impl Import for BenchmarkModel {
    fn kind(&self) -> &'static str {
        "benchmark-model"
    }

    fn label(&self) -> &'static str {
        "output of LiteRT's benchmark_model"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        let text = sample.text();
        text.contains(SIGNS[0]) || text.contains(SIGNS[1]) || text.lines().any(|line| Summary::of(line).is_some())
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let bytes = sample.bytes()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut summaries = Vec::new();
        let mut told = Told::default();
        let mut table = None;
        // Old versions print one table without a heading.
        let mut is_regular = true;
        for line in text.lines() {
            // Android prefixes its log lines.
            let line = line.split_once("INFO: ").map_or(line, |(_, rest)| rest).trim_end();
            if let Some(summary) = Summary::of(line) {
                summaries.push(summary);
            } else if let Some(rest) = line.trim_start().strip_prefix(SIGNS[0]) {
                told.timings(rest);
            } else if let Some(path) = after(line, "Graph: [").or_else(|| after(line, "Loaded model ")) {
                told.model = Some(path.trim_end_matches(']').to_owned());
            } else if line.contains("will be completely executed by the delegate")
                || line.contains("will be partially executed by the delegate")
                || line.contains("will not be executed by the delegate")
            {
                told.placement = Some(line.trim().to_owned());
            } else if let Some(mb) = after(line, "overall=").and_then(leading) {
                // Ignore memory that is relative to the start of the tool.
                told.memory_mb = Some(mb).filter(|_| line.contains("Peak memory footprint"));
            } else if line.contains("Profiling Info for") {
                is_regular = line.contains("Regular");
                table = None;
            } else if line.trim_start().starts_with('=') {
                // A heading: only the table in run order lists every op once.
                table = (is_regular && line.contains("Run Order")).then_some(Table::default());
            } else if let Some(open) = &mut table
                && open.line(line, &mut told.ops)
            {
                table = None;
            }
        }
        let run = draft.run()?;
        told.into_run(run, &summaries)?;
        draft.note("benchmark_model prints one summary of all inferences, not their single times, and not which backend a delegate used");
        Ok(())
    }
}

/// `count=50 first=18432 curr=17210 min=17102 max=19011 avg=17390 std=341`, in microseconds.
struct Summary {
    count: f64,
    first: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    avg: f64,
    std: Option<f64>,
}

impl Summary {
    fn of(line: &str) -> Option<Self> {
        let at = line.find("count=")?;
        let field = |name: &str| {
            let cell = line[at..].split_whitespace().find_map(|cell| cell.strip_prefix(name))?;
            cell.trim_end_matches(',').parse::<f64>().ok().filter(|value| value.is_finite())
        };
        Some(Self {
            count: field("count=")?,
            first: field("first="),
            min: field("min="),
            max: field("max="),
            avg: field("avg=")?,
            std: field("std="),
        })
    }
}

#[derive(Default)]
struct Told {
    model: Option<String>,
    placement: Option<String>,
    memory_mb: Option<f64>,
    init_us: Option<f64>,
    first_us: Option<f64>,
    warmup_us: Option<f64>,
    inference_us: Option<f64>,
    /// Name, type and time in milliseconds.
    ops: Vec<(String, String, f64)>,
}

impl Told {
    fn timings(&mut self, text: &str) {
        for cell in text.split(',') {
            let Some((name, value)) = cell.rsplit_once(':') else { continue };
            let value = leading(value.trim()).filter(|us| *us > 0.0);
            match name.trim() {
                "Init" => self.init_us = value,
                "First inference" => self.first_us = value,
                "Warmup (avg)" => self.warmup_us = value,
                "Inference (avg)" => self.inference_us = value,
                _ => {}
            }
        }
    }

    fn into_run(self, run: &mut RunDraft, summaries: &[Summary]) -> Result<(), Problem> {
        if let Some(model) = &self.model {
            run.model = clean_text(model);
        }
        run.is_summary = true;
        run.clean_level = if self.ops.is_empty() { ProfilingLevel::Off } else { ProfilingLevel::Detailed };
        // One line is about the warm-up, one about the run; without warm-up there is only one.
        let last = summaries.last();
        let mean_us = self.inference_us.or(last.map(|summary| summary.avg)).filter(|us| *us > 0.0);
        if mean_us.is_none() && self.ops.is_empty() {
            return Err(Problem::content("it ends before any figure"));
        }
        if let Some(us) = self.init_us {
            run.stage(0, Stage::ContextCreate, us);
        }
        let warm = summaries.first().filter(|_| summaries.len() > 1);
        if let Some(us) = self.first_us.or(warm.and_then(|warm| warm.first)) {
            run.inference(Phase::First, None, us);
        }
        if let Some(us) = self.warmup_us.or(warm.map(|warm| warm.avg)) {
            run.figure("warm-up (avg)", "us", us);
        }
        if let Some(us) = mean_us {
            run.inference(Phase::Clean, None, us);
        }
        if let Some(summary) = last {
            let figures = [
                ("count", "count", Some(summary.count)),
                ("min", "us", summary.min),
                ("max", "us", summary.max),
                ("std", "us", summary.std),
            ];
            for (name, unit, value) in figures {
                if let Some(value) = value {
                    run.figure(&format!("inferences: {name}"), unit, value);
                }
            }
        }
        if !self.ops.is_empty() {
            run.graph("", self.ops.iter().map(|(name, kind, _)| (name.clone(), kind.clone(), String::new())));
            run.rows((0..).zip(&self.ops).map(|(at, op)| (op.0.clone(), Some(at))), OpUnit::Us);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
            run.op_values(Phase::Clean, self.ops.iter().map(|op| (op.2 * 1000.0).round() as u64).collect());
        }
        if let Some(mb) = self.memory_mb.filter(|mb| *mb > 0.0) {
            run.peak_memory(mb * 1_048_576.0);
        }
        if let Some(placement) = &self.placement {
            run.say(LogLevel::Info, placement);
        }
        Ok(())
    }
}

/// A table of ops; its header locates the columns, because they differ between versions.
#[derive(Default)]
struct Table {
    columns: Option<Vec<String>>,
}

impl Table {
    /// Parses a line; true at the end of the table.
    fn line(&mut self, line: &str, ops: &mut Vec<(String, String, f64)>) -> bool {
        let Some(columns) = &self.columns else {
            if line.contains("[node type]") {
                let named = line.split('[').skip(1).filter_map(|cell| cell.split(']').next());
                self.columns = Some(named.map(|name| name.trim().to_owned()).collect());
            }
            return false;
        };
        if line.trim().is_empty() {
            return true;
        }
        let cells: Vec<&str> = line.split('\t').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let cells = if cells.len() >= columns.len() { cells } else { wide(line) };
        let at = |name: &str| columns.iter().position(|column| column == name);
        let cell = |name: &str| cells.get(at(name)?).copied();
        let (Some(kind), Some(ms)) = (cell("node type"), cell("avg ms").and_then(leading)) else { return false };
        // The name is the last column and may contain anything; it ends with `:` and the node's number.
        let name = at("Name").or_else(|| at("name")).and_then(|at| cells.get(at..)).map(|rest| rest.join(" "));
        ops.push((name.filter(|name| !name.is_empty()).unwrap_or_else(|| kind.to_owned()), kind.to_owned(), ms));
        false
    }
}

/// Cells that are two or more spaces apart.
fn wide(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.find(mark).map(|at| line[at + mark.len()..].trim())
}

/// The number at the start of a text.
fn leading(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+' | 'e')).unwrap_or(text.len());
    text[..end].trim_end_matches(['e', '-', '+', '.']).parse().ok().filter(|value: &f64| value.is_finite())
}
