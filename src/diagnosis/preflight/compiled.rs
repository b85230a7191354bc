//! The what-if table: the result of compiling for each SoC.

use super::compile_log::{self, Traffic};
use super::{CompileAnswer, Target, binary, cannot_be_asked};
use crate::backends::errors;
use crate::backends::qnn::runner::{Compiled, CompiledGraph};
use crate::diagnosis::{self, diagnose_failure, exclude_by_graphs};
use crate::event::{Failure, LogLevel, Stage};
use crate::models::{ContextBinaryInfo, Graph};
use serde::Serialize;

/// Confidence from which a cause counts.
const CONFIDENT: f64 = 0.35;
/// Most errors of the log that are kept.
const MOST_ERRORS: usize = 8;

/// The result of compiling one graph for one SoC, or of loading a context binary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompileRow {
    /// Graph; none if compilation never started, and for context binaries.
    pub graph: Option<String>,
    /// Architecture, such as `v75`.
    pub arch: Option<String>,
    /// SoC.
    pub soc: String,
    /// QNN's number for it.
    pub soc_model: Option<u32>,
    /// Whether it compiles (or loads); none if that could not be tried.
    pub ok: Option<bool>,
    /// Code of the call that failed; 0 for success.
    pub code: Option<u64>,
    /// Symbol of the code.
    pub symbol: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
    /// The op at which the compiler stopped.
    pub stopped_at: Option<String>,
    /// Likely cause.
    pub cause: Option<CauseRow>,
    /// VTCM that the graph uses, in bytes.
    pub vtcm_bytes: Option<u64>,
    /// VTCM that the SoC has, in bytes.
    pub soc_vtcm_bytes: Option<u64>,
    /// Written to DDR because VTCM was full, in bytes per inference.
    pub spill_bytes: Option<u64>,
    /// Read back after a spill, in bytes per inference.
    pub fill_bytes: Option<u64>,
    /// Total read from DDR, in bytes per inference.
    pub ddr_read_bytes: Option<u64>,
    /// Total written to DDR, in bytes per inference.
    pub ddr_write_bytes: Option<u64>,
    /// DDR buffer for spilled data, in bytes.
    pub spill_fill_buffer_bytes: Option<u64>,
    /// Size of the context binary with all graphs, in bytes.
    pub binary_bytes: Option<u64>,
    /// Time that graphFinalize took on this machine, in microseconds.
    pub finalize_us: Option<f64>,
    /// Further remarks.
    pub notes: Vec<String>,
    /// Errors from the compiler's log.
    pub log: Vec<String>,
}

/// A cause of the failure catalogue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseRow {
    /// Id in the catalogue.
    pub id: &'static str,
    /// Title.
    pub title: String,
    /// How to fix it.
    pub fix: String,
}

impl CompileRow {
    fn new(target: &Target) -> Self {
        Self {
            graph: None,
            arch: target.arch_name(),
            soc: target.label.clone(),
            soc_model: target.soc_model,
            ok: None,
            code: None,
            symbol: None,
            reason: None,
            stopped_at: None,
            cause: None,
            vtcm_bytes: None,
            soc_vtcm_bytes: target.vtcm_mb.map(|mb| u64::from(mb) << 20),
            spill_bytes: None,
            fill_bytes: None,
            ddr_read_bytes: None,
            ddr_write_bytes: None,
            spill_fill_buffer_bytes: None,
            binary_bytes: None,
            finalize_us: None,
            notes: Vec::new(),
            log: Vec::new(),
        }
    }
}

/// The rows of one SoC.
pub fn rows(answer: &CompileAnswer, graphs: &[Graph], binary: Option<&ContextBinaryInfo>) -> Vec<CompileRow> {
    let mut rows = match (&answer.answer, binary) {
        (Ok(compiled), None) => compiled_rows(answer, compiled, graphs),
        (Ok(_), Some(_)) => vec![CompileRow { ok: Some(true), code: Some(0), ..CompileRow::new(&answer.target) }],
        (Err(failure), _) => vec![failed_row(answer, failure, graphs)],
    };
    for row in &mut rows {
        if let Some(info) = binary {
            against(row, info, &answer.target);
        }
        row.notes.extend(float_note(row, &answer.target, graphs));
        if binary.is_none() {
            row.notes.extend(vtcm_note(row));
        }
    }
    rows
}

fn compiled_rows(answer: &CompileAnswer, compiled: &Compiled, graphs: &[Graph]) -> Vec<CompileRow> {
    let texts = || answer.lines.iter().map(|(_, text)| text.as_str());
    let traffic = compile_log::traffic(texts());
    let done = compiled.graphs.iter().filter(|graph| graph.code == 0).count();
    // There has to be one summary per graph; otherwise they cannot be assigned.
    let mut traffic = if traffic.len() == done { traffic } else { Vec::new() }.into_iter();
    let lower = compiled.hexagon_arch.zip(answer.target.arch).filter(|(made, has)| made < has);
    compiled
        .graphs
        .iter()
        .map(|graph| {
            let row = CompileRow {
                graph: Some(graph.name.clone()),
                code: Some(graph.code),
                finalize_us: Some(graph.finalize_us),
                ..CompileRow::new(&answer.target)
            };
            if graph.code != 0 {
                return stopped_row(row, answer, graph, graphs);
            }
            let Traffic { spill, fill, read, write } = traffic.next().unwrap_or_default();
            let mut notes = Vec::new();
            if let Some((made, has)) = lower {
                notes.push(format!("these libraries prepare graphs for v{made} on this v{has} part"));
            }
            CompileRow {
                ok: Some(true),
                vtcm_bytes: graph.vtcm_bytes,
                spill_bytes: spill,
                fill_bytes: fill,
                ddr_read_bytes: read,
                ddr_write_bytes: write,
                spill_fill_buffer_bytes: graph.spill_fill_buffer_bytes,
                binary_bytes: compiled.binary_bytes,
                notes,
                ..row
            }
        })
        .collect()
}

fn errors_of(answer: &CompileAnswer) -> Vec<&str> {
    let errors = answer.lines.iter().filter(|(level, _)| *level == LogLevel::Error).map(|(_, text)| text.as_str());
    compile_log::errors(errors)
}

fn kept(errors: &[&str]) -> Vec<String> {
    errors.iter().take(MOST_ERRORS).map(|&line| line.to_owned()).collect()
}

/// A graph that the compiler gave up on.
fn stopped_row(row: CompileRow, answer: &CompileAnswer, graph: &CompiledGraph, graphs: &[Graph]) -> CompileRow {
    let errors = errors_of(answer);
    let symbol = errors::lookup(graph.code, "graphFinalize").map(|row| row.symbol.to_owned());
    let failure =
        Failure { code: Some(graph.code), ..Failure::new(Stage::Finalize, "graphFinalize", "graphFinalize failed") };
    let texts = || answer.lines.iter().map(|(_, text)| text.as_str());
    let stopped_at = compile_log::stopped_at(texts());
    let op = graphs.iter().filter(|known| known.name == graph.name).flat_map(|graph| &graph.ops);
    let op = op.into_iter().find(|op| stopped_at.as_ref() == Some(&op.name));
    let why = op.map(|op| {
        let log: Vec<String> = texts().map(ToOwned::to_owned).collect();
        compile_log::why_not_built(op, &log, answer.target.arch_name().as_deref()).text
    });
    let said = why.or_else(|| errors.first().map(|line| (*line).to_owned()));
    CompileRow {
        ok: Some(false),
        symbol,
        reason: said.or_else(|| Some("the compiler does not say why".to_owned())),
        stopped_at,
        cause: cause(&failure, answer, graphs),
        log: kept(&errors),
        ..row
    }
}

/// Compilation never started, or the compiler died.
fn failed_row(answer: &CompileAnswer, failure: &Failure, graphs: &[Graph]) -> CompileRow {
    let asked = !cannot_be_asked(failure);
    let errors = errors_of(answer);
    let stopped_at = compile_log::refused_op(&failure.message);
    // If an op is named, the composer's own failure only repeats it.
    let said = errors.first().filter(|_| stopped_at.is_some()).map(|line| (*line).to_owned());
    CompileRow {
        ok: asked.then_some(false),
        code: failure.code,
        symbol: failure.symbol.clone(),
        reason: said.or_else(|| Some(failure.message.clone())),
        stopped_at,
        cause: asked.then(|| cause(failure, answer, graphs)).flatten(),
        log: kept(&errors),
        ..CompileRow::new(&answer.target)
    }
}

fn cause(failure: &Failure, answer: &CompileAnswer, graphs: &[Graph]) -> Option<CauseRow> {
    let lines = answer.lines.iter().enumerate().map(|(at, (_, text))| (at as u64 + 1, text.as_str()));
    let mut diagnosis = diagnose_failure(failure, lines);
    exclude_by_graphs(&mut diagnosis, graphs);
    let best = diagnosis.causes.first().filter(|finding| finding.confidence >= CONFIDENT)?;
    let cause = best.cause();
    Some(CauseRow { id: best.id, title: cause.title.clone(), fix: cause.fix.clone() })
}

/// The libraries on this machine load a binary for any hardware; the hardware itself does not.
fn against(row: &mut CompileRow, info: &ContextBinaryInfo, target: &Target) {
    let graph = info.graphs.iter().max_by_key(|graph| graph.vtcm_bytes);
    row.vtcm_bytes = graph.and_then(|graph| graph.vtcm_bytes);
    row.spill_fill_buffer_bytes = info.graphs.iter().filter_map(|graph| graph.spill_fill_bytes).max();
    for problem in binary::against_target(info, target) {
        // A binary for another backend never loads, and what the log says about it is misleading.
        if problem.blocking && (row.ok != Some(false) || problem.id == binary::OTHER_BACKEND) {
            if row.ok != Some(false) {
                row.code = None;
                row.symbol = None;
            }
            row.ok = Some(false);
            row.reason = Some(problem.message);
            row.cause = Some(CauseRow { id: problem.id, title: title(problem.id), fix: problem.remedy });
        } else {
            row.notes.push(problem.message);
        }
    }
}

/// Title of a cause from the failure catalogue.
fn title(id: &str) -> String {
    if id == binary::OTHER_BACKEND {
        return "The context binary was made for another backend".to_owned();
    }
    diagnosis::cause(id).map_or_else(|| id.to_owned(), |cause| cause.title.clone())
}

/// The compiler does not limit itself to the VTCM of a part.
fn vtcm_note(row: &CompileRow) -> Option<String> {
    let (wants, has) = row.vtcm_bytes.zip(row.soc_vtcm_bytes).filter(|(wants, has)| wants > has)?;
    Some(format!(
        "compiled for {} MB of VTCM, {} has {}: a context binary made so is refused there (5005); see --vtcm-mb {}",
        wants >> 20,
        row.soc,
        has >> 20,
        has >> 20
    ))
}

/// The compiler accepts float ops for parts that cannot run them.
fn float_note(row: &CompileRow, target: &Target, graphs: &[Graph]) -> Option<String> {
    row.ok?;
    let mut ops = graphs
        .iter()
        .filter(|graph| row.graph.as_ref().is_none_or(|name| *name == graph.name))
        .flat_map(|graph| &graph.ops)
        .filter(|op| op.outputs.iter().any(|tensor| tensor.dtype.is_float()) && op.op_type != "Dequantize");
    let first = ops.next()?;
    match target.fp16 {
        Some(true) => None,
        Some(false) => Some(format!(
            "{} runs no float ops on HTP, and the model has {} (`{}` is the first): quantise them",
            target.label,
            ops.count() + 1,
            first.name
        )),
        None => Some(format!("whether {} runs float ops on HTP is not known; the model has some", target.label)),
    }
}
