//! The two CSV files with QNN's figures: the one from the vendor's viewer, and the one that ONNX Runtime
//! writes itself. They share the columns, but not what the columns contain.

use super::Import;
use super::draft::{Draft, RunDraft, metric};
use super::error::Problem;
use super::profile_log::backend_of;
use super::sample::Sample;
use crate::backends::profile_log::op_identifier;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{Event, Metric, OpUnit, Phase, RuntimeInfo, Stage, clean_text};
use std::collections::HashMap;

/// First cells of the viewer's file; older versions have no line with the input.
const VIEWER: [&str; 2] = ["input log file location", "qnn-profile-viewer version"];
/// First cells of ONNX Runtime's file.
const ORT: &str = "Msg Timestamp,Message,";
/// See `profile_log`: 0 in every inference if HTP is emulated.
const THREADS: &str = "Number of HVX threads used";

pub struct ViewerCsv;
pub struct OrtCsv;

/// A row; its name may contain commas.
struct Row<'a> {
    time_us: u64,
    message: &'a str,
    value: f64,
    unit: &'a str,
    source: &'a str,
    level: &'a str,
    name: &'a str,
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut cells = line.splitn(7, ',').map(str::trim);
        let mut next = || cells.next();
        let (time, message, value, unit, source, level, name) =
            (next()?, next()?, next()?, next()?, next()?, next()?, next()?);
        let value = value.parse().ok().filter(|value: &f64| value.is_finite())?;
        Some(Self { time_us: time.parse().ok()?, message, value, unit, source, level, name })
    }

    fn unit(&self) -> &'static str {
        match self.unit {
            "US" => "us",
            "CYCLES" => "cycles",
            "BYTES" => "bytes",
            "COUNT" => "count",
            _ => "",
        }
    }

    fn is_op_time(&self) -> bool {
        matches!(self.unit, "US" | "CYCLES")
    }
}

/// Everything reported about one inference.
#[derive(Default)]
struct Block {
    start_us: Option<u64>,
    latency_us: Option<f64>,
    backend: Option<Backend>,
    metrics: Vec<Metric>,
    ops: Vec<(String, OpUnit, u64)>,
}

impl Block {
    fn root(&mut self, row: &Row<'_>) {
        self.backend = self.backend.or(Some(backend_of(row.name)).filter(|known| *known != Backend::Unknown));
        self.metrics.push(metric(row.name, row.unit(), row.value));
    }

    fn op(&mut self, row: &Row<'_>) {
        let name = op_identifier(row.name, self.backend == Some(Backend::Cpu)).name;
        let unit = if row.unit == "CYCLES" { OpUnit::Cycles } else { OpUnit::Us };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and 0 for less")]
        self.ops.push((clean_text(name), unit, row.value as u64));
    }

    fn into_run(self, run: &mut RunDraft) {
        if run.backend == Backend::Unknown {
            run.backend = self.backend.unwrap_or(Backend::Unknown);
            run.simulated = run.backend == Backend::Htp;
        }
        // Emulated unless the file reports hardware threads.
        let threads = self.metrics.iter().find(|metric| metric.name == THREADS);
        run.simulated &= threads.is_some_and(|threads| threads.value <= 0.0);
        let phase = if run.done(Phase::First) == 0 { Phase::First } else { Phase::Clean };
        run.inference(phase, self.start_us, self.latency_us.unwrap_or(0.0));
        let names = || self.ops.iter().map(|op| op.0.as_str()).collect::<Vec<_>>().into_iter();
        if let Some((_, unit, _)) = self.ops.first() {
            run.clean_level = ProfilingLevel::Detailed;
            if !run.has_rows() {
                run.rows(names().map(|name| (name.to_owned(), None)), *unit);
            }
            if run.has_these_rows(names()) {
                run.op_values(phase, self.ops.iter().map(|op| op.2).collect());
            } else {
                run.other_ops();
            }
        } else if run.clean_level == ProfilingLevel::Off && !self.metrics.is_empty() {
            run.clean_level = ProfilingLevel::Basic;
        }
        if phase == Phase::Clean {
            run.metrics(phase, self.metrics);
        }
    }
}

impl Import for ViewerCsv {
    fn kind(&self) -> &'static str {
        "qnn-viewer-csv"
    }

    fn label(&self) -> &'static str {
        "CSV of qnn-profile-viewer"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        VIEWER.iter().any(|cell| sample.head().starts_with(cell.as_bytes()))
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let bytes = sample.bytes()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut viewer = Viewer::default();
        for line in text.lines() {
            match Row::of(line) {
                Some(row) => viewer.row(&row, draft)?,
                None => viewer.head(line),
            }
        }
        viewer.end(draft)
    }
}

#[derive(Default)]
struct Viewer {
    build: Option<String>,
    graphs: HashMap<String, usize>,
    /// Graph and block that are still open.
    block: Option<(usize, Block)>,
    finalized: Option<usize>,
    common: Vec<(u64, Stage, f64)>,
}

impl Viewer {
    fn head(&mut self, line: &str) {
        if let Some(version) = line.strip_prefix("Backend version,") {
            self.build = Some(clean_text(version.trim())).filter(|version| !version.is_empty());
        }
    }

    /// `Graph 0: NAME`; the order of the numbers has no meaning.
    fn graph(&mut self, row: &Row<'_>, draft: &mut Draft) -> Result<usize, Problem> {
        let name = row.name.split_once(": ").filter(|(head, _)| head.starts_with("Graph ")).map_or(row.name, |at| at.1);
        if let Some(at) = self.graphs.get(name) {
            return Ok(*at);
        }
        let at = self.graphs.len();
        self.graphs.insert(name.to_owned(), at);
        let run = draft.run()?;
        run.model = clean_text(name);
        run.has_moments = true;
        if let Some(build) = &self.build {
            let is_build = build.starts_with('v');
            run.push(
                row.time_us,
                Event::RuntimeLoaded(RuntimeInfo {
                    path: String::new(),
                    build_id: is_build.then(|| build.clone()),
                    core_api: String::new(),
                    backend_api: if is_build { String::new() } else { build.clone() },
                    provider: String::new(),
                }),
            );
        }
        Ok(at)
    }

    fn row(&mut self, row: &Row<'_>, draft: &mut Draft) -> Result<(), Problem> {
        let is_netrun = row.source == "NETRUN";
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and 0 for less")]
        let start_us = row.time_us.saturating_sub(row.value as u64);
        match (row.message, row.level) {
            ("EXECUTE", "ROOT") if is_netrun => {
                self.close(draft)?;
                let at = self.graph(row, draft)?;
                // The time stamp is the message's, which is written right after the inference.
                let start_us = (row.value > 0.0).then_some(start_us);
                let latency_us = Some(row.value);
                self.block = Some((at, Block { start_us, latency_us, ..Block::default() }));
            }
            ("EXECUTE", "ROOT") => {
                if let Some((_, block)) = &mut self.block {
                    block.root(row);
                }
            }
            ("EXECUTE", "SUB-EVENT") if row.is_op_time() => {
                if let Some((_, block)) = &mut self.block {
                    block.op(row);
                }
            }
            ("FINALIZE", "ROOT") if is_netrun => {
                let at = self.graph(row, draft)?;
                self.finalized = Some(at);
                draft.at(at)?.stage(start_us, Stage::Finalize, row.value);
            }
            ("FINALIZE", _) if row.unit == "US" => {
                if let Some(at) = self.finalized {
                    draft.at(at)?.part(row.time_us, Stage::Finalize, row.name, row.value, "us");
                }
            }
            ("COMPOSE GRAPHS", "ROOT") if is_netrun => self.common.push((start_us, Stage::Compose, row.value)),
            ("DE-INIT", "ROOT") if is_netrun => self.common.push((u64::MAX / 4, Stage::Teardown, row.value)),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, draft: &mut Draft) -> Result<(), Problem> {
        if let Some((at, block)) = self.block.take() {
            block.into_run(draft.at(at)?);
        }
        Ok(())
    }

    fn end(mut self, draft: &mut Draft) -> Result<(), Problem> {
        self.close(draft)?;
        for run in draft.runs() {
            for (t_us, stage, duration_us) in &self.common {
                run.stage((*t_us).min(run.now_us()), *stage, *duration_us);
            }
        }
        Ok(())
    }
}

impl Import for OrtCsv {
    fn kind(&self) -> &'static str {
        "ort-qnn-csv"
    }

    fn label(&self) -> &'static str {
        "CSV of ONNX Runtime's QNN provider"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        sample.head().starts_with(ORT.as_bytes())
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let bytes = sample.bytes()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut file = OrtFile::default();
        for row in text.lines().filter_map(Row::of) {
            file.row(&row, draft)?;
        }
        file.close(draft)?;
        if file.runs.len() > 1 {
            draft.note("the CSV does not name its graphs: partitions are identified by their ops; the *_qnn.log beside it names them");
        } else if file.finalizes > 1 && file.runs.keys().all(Vec::is_empty) {
            draft.note(format!(
                "{} graphs were prepared, and the CSV does not separate their inferences; read the *_qnn.log beside it",
                file.finalizes
            ));
        }
        Ok(())
    }
}

/// HTP's figures for an inference end with its `EXECUTE` row; the CPU's begin with it.
#[derive(Default)]
struct OrtFile {
    block: Block,
    /// Partitions by the names of their ops.
    runs: HashMap<Vec<String>, usize>,
    finalizes: u64,
    parts: Vec<(String, f64)>,
}

impl OrtFile {
    fn row(&mut self, row: &Row<'_>, draft: &mut Draft) -> Result<(), Problem> {
        match (row.message, row.level) {
            ("FINALIZE", "ROOT") => {
                self.close(draft)?;
                self.finalizes += 1;
                if self.finalizes == 1 {
                    self.parts.push((row.name.to_owned(), row.value));
                }
            }
            // Ops in the CPU's finalize, and HTP's finalize stages, belong to no inference.
            (message, "SUB-EVENT") if !self.is_inference() => {
                let is_part = self.finalizes == 1 && message == "UNKNOWN" && row.unit == "US";
                self.parts.extend(is_part.then(|| (row.name.to_owned(), row.value)));
            }
            ("NODE", "SUB-EVENT") if row.is_op_time() => self.block.op(row),
            ("EXECUTE", "ROOT") => {
                let begins = backend_of(row.name) == Backend::Cpu;
                if begins {
                    self.close(draft)?;
                }
                self.block.root(row);
                self.block.latency_us = Some(row.value);
                if !begins {
                    self.close(draft)?;
                }
            }
            ("BACKEND", "ROOT") => self.block.root(row),
            _ => {}
        }
        Ok(())
    }

    /// True once something about an inference has been reported.
    fn is_inference(&self) -> bool {
        self.block.backend.is_some() || !self.block.metrics.is_empty()
    }

    fn close(&mut self, draft: &mut Draft) -> Result<(), Problem> {
        let block = std::mem::take(&mut self.block);
        if block.latency_us.is_none() {
            return Ok(());
        }
        let key: Vec<String> = block.ops.iter().map(|op| op.0.clone()).collect();
        let at = match self.runs.get(&key) {
            Some(at) => *at,
            None => {
                let at = self.runs.len();
                self.runs.insert(key, at);
                let parts = std::mem::take(&mut self.parts);
                let run = draft.run()?;
                if at > 0 {
                    run.model = format!("{} (partition {})", run.model, at + 1);
                }
                if let Some((_, duration_us)) = parts.first() {
                    run.stage(0, Stage::Finalize, *duration_us);
                }
                for (name, us) in &parts {
                    run.part(0, Stage::Finalize, name, *us, "us");
                }
                at
            }
        };
        block.into_run(draft.at(at)?);
        Ok(())
    }
}
