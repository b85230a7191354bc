//! The `qnnscope.check/1` document.

use super::binary::{self, Problem};
use super::compiled::{self, CompileRow};
use super::ops::{self, OpRow};
use super::quantization::{self, Note, Severity};
use super::{Answers, BackendAnswer, Origin, Target, cannot_be_asked};
use crate::backends::Backend;
use crate::event::{Failure, ModelInfo, Sandbox, SourceNames, Stage};
use crate::models::{ContextBinaryInfo, ModelFormat};
use qnnscope_qnn::ASKING;
use serde::Serialize;

/// Schema of the document.
const SCHEMA: &str = "qnnscope.check/1";

/// What was found out about a model before any run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckDocument {
    schema: &'static str,
    /// The file.
    pub model: ModelRow,
    /// False if a backend refuses an op, or something does not compile or load.
    pub ok: bool,
    /// The backends that were asked, with their state.
    pub backends: Vec<BackendRow>,
    /// Each op, in the order of composition.
    pub ops: Vec<OpRow>,
    /// A row per SoC and graph.
    pub compile: Vec<CompileRow>,
    /// Doubtful encodings, worst first.
    pub quantization: Vec<Note>,
    /// What a context binary says about itself.
    pub context_binary: Option<BinaryRow>,
    /// How far the processes that asked the backends were sandboxed; `None` if no backend answered.
    pub sandbox: Option<Sandbox>,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelRow {
    /// Path as given.
    pub path: String,
    /// Format.
    pub format: ModelFormat,
    /// SHA-256.
    pub sha256: String,
    /// Size, in bytes.
    pub bytes: u64,
}

/// A backend, on one kind of hardware.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackendRow {
    /// Backend.
    pub name: Backend,
    /// SoC that it answers for; none if it does not distinguish hardware.
    pub soc: Option<String>,
    /// Its architecture.
    pub arch: Option<String>,
    /// Whether it answered.
    pub state: State,
    /// Why it gave no answer, or none about the whole model.
    pub reason: Option<String>,
    /// How to fix that.
    pub hint: Option<String>,
    /// Whether the user named it.
    pub named: bool,
    /// Who chose the SoC.
    pub chosen_by: Option<Origin>,
    /// Whether its hardware is only emulated on this machine. That affects neither what it supports nor how
    /// it compiles.
    pub simulated: bool,
    /// Build id of its library on this machine.
    pub build_id: Option<String>,
    /// Number of ops that it refuses.
    pub refused: Option<usize>,
}

/// Whether a backend answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It answered.
    Asked,
    /// It cannot be asked on this machine, which says nothing about the model.
    NotAsked,
    /// The query failed.
    Failed,
}

/// A context binary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BinaryRow {
    /// Backend it was made for.
    pub backend: String,
    /// Build id of the SDK that made it.
    pub build_id: String,
    /// Architecture.
    pub arch: Option<String>,
    /// QNN's number for the SoC; none if it was made without one.
    pub soc_model: Option<u32>,
    /// Largest VTCM of its graphs, in bytes.
    pub vtcm_bytes: Option<u64>,
    /// Why these libraries may not load it.
    pub problem: Option<Problem>,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is supported and compiles.
    Fine,
    /// Something is refused or does not compile.
    Refused,
    /// Nothing is refused, but a backend that the user named, or every backend, could not be asked.
    Unknown,
}

impl CheckDocument {
    /// Combines the answers. `Err` says why nothing is known about the model.
    pub fn new(answers: &Answers) -> Result<Self, Box<Failure>> {
        let Answers { backends: asked, compiled: compiles, read } = answers;
        let first = asked.iter().find_map(|answer| answer.answer.as_ref().ok());
        let (model, graphs) = match (first, read) {
            (Some(first), _) => (&first.model, &first.graphs),
            (None, Some(Ok((model, graphs)))) => (model.as_ref(), graphs),
            (None, Some(Err(failure))) => return Err(failure.clone()),
            (None, None) => return Err(Box::new(Failure::new(Stage::Prepare, "check", "nobody was asked"))),
        };
        let info = model.context_binary.as_ref();
        let backends: Vec<BackendRow> = asked.iter().map(backend_row).collect();
        let mut compile: Vec<CompileRow> =
            compiles.iter().flat_map(|answer| compiled::rows(answer, graphs, info)).collect();
        let ops = ops::table(graphs, asked);
        let quantization: Vec<Note> = graphs.iter().flat_map(quantization::notes).collect();
        for row in &mut compile {
            // A defect in the op itself says more than a cause guessed from the log.
            let Some(name) = &row.stopped_at else { continue };
            if explained(name, &ops, &quantization) {
                row.cause = None;
            }
            let refused = ops.iter().filter(|op| op.name == *name).find_map(|op| op.results.get(Backend::Htp.name()));
            // The compiler only says what it could not build from the op; the validator says why. If the op could
            // not even be added, the row has the reason already.
            if let Some(reason) = refused.and_then(|result| result.reason.clone()).filter(|_| row.graph.is_some()) {
                row.reason = Some(reason);
            }
        }
        let build = first.and_then(|first| first.runtime.build_id.as_deref());
        let context_binary = info.map(|info| binary_row(info, build));
        let refused = backends.iter().any(|row| row.refused.is_some_and(|ops| ops > 0) || row.state == State::Failed);
        let blocked = context_binary.as_ref().and_then(|row| row.problem.as_ref()).is_some_and(|p| p.blocking);
        let ok = !refused && !blocked && compile.iter().all(|row| row.ok != Some(false));
        Ok(Self {
            schema: SCHEMA,
            model: model_row(model),
            ok,
            backends,
            ops,
            compile,
            quantization,
            context_binary,
            sandbox: first.map(|first| first.sandbox.clone()),
        })
    }

    /// The same, with the source nodes of the ops.
    #[must_use]
    pub fn named(mut self, names: &SourceNames) -> Self {
        for row in &mut self.ops {
            row.source_node = names.nodes.get(&row.name).cloned();
        }
        self
    }

    /// The outcome.
    pub fn verdict(&self) -> Verdict {
        let not_asked = |row: &&BackendRow| row.state == State::NotAsked;
        let unanswered = self.backends.iter().filter(not_asked).any(|row| row.named)
            || self.backends.iter().all(|row| row.state == State::NotAsked)
            || self.compile.iter().any(|row| row.ok.is_none());
        match (self.ok, unanswered) {
            (false, _) => Verdict::Refused,
            (true, true) => Verdict::Unknown,
            (true, false) => Verdict::Fine,
        }
    }
}

/// Whether an op is refused, or has a tensor that cannot work.
fn explained(name: &str, ops: &[OpRow], notes: &[Note]) -> bool {
    let refused = |row: &OpRow| row.name == name && row.results.get(Backend::Htp.name()).is_some_and(|r| !r.ok);
    let broken = |note: &Note| note.severity == Severity::Error && note.ops.iter().any(|op| op == name);
    ops.iter().any(refused) || notes.iter().any(broken)
}

fn model_row(model: &ModelInfo) -> ModelRow {
    ModelRow { path: model.path.clone(), format: model.format, sha256: model.sha256.clone(), bytes: model.bytes }
}

fn backend_row(answer: &BackendAnswer) -> BackendRow {
    let (state, reason, hint, build_id, refused) = match &answer.answer {
        Ok(asked) if asked.verdicts.is_empty() && asked.graphs.iter().any(|graph| !graph.ops.is_empty()) => {
            let reason = "its library has no validator for ops".to_owned();
            (State::NotAsked, Some(reason), None, asked.runtime.build_id.clone(), None)
        }
        Ok(asked) => {
            let partly = asked.incomplete.as_ref();
            let wrong = asked.model.context_binary.as_ref().and_then(|i| binary::against_backend(i, answer.backend));
            let lists = asked.lists.first().map(|problem| format!("it does not execute: {problem}"));
            let reason = partly.map(|why| format!("only a part of the model was composed: {why}")).or(wrong).or(lists);
            // The missing part of the model may well be refused too.
            let state = if reason.is_some() { State::Failed } else { State::Asked };
            (state, reason, None, asked.runtime.build_id.clone(), Some(ops::refused(asked)))
        }
        Err(failure) => {
            let state = if cannot_be_asked(failure) { State::NotAsked } else { State::Failed };
            let hint = failure.hint.clone().filter(|_| failure.call != "deviceCreate");
            (state, Some(why_not(failure, state)), hint, None, None)
        }
    };
    BackendRow {
        name: answer.backend,
        soc: answer.target.as_ref().map(|target| target.label.clone()),
        arch: answer.target.as_ref().and_then(Target::arch_name),
        state,
        reason,
        hint,
        named: answer.named,
        chosen_by: answer.target.as_ref().map(|target| target.origin),
        simulated: answer.backend.is_simulated_here(),
        build_id,
        refused,
    }
}

/// Why a backend did not answer; brief if it cannot be asked.
pub(super) fn why_not(failure: &Failure, state: State) -> String {
    let (State::NotAsked, Some(code)) = (state, failure.code) else {
        let last = failure.log_tail.iter().rev().find_map(|line| line.strip_prefix(ASKING));
        let last = last.map_or_else(String::new, |op| format!("; the last op that it was asked about is {op}"));
        return format!("{}{last}", failure.message);
    };
    if failure.call == "deviceCreate" {
        return format!("these libraries do not know this SoC (deviceCreate {code})");
    }
    let symbol = failure.symbol.as_deref().unwrap_or("unknown");
    let said = failure.log_tail.last().map_or_else(String::new, |line| format!("; it logged: {line}"));
    format!("{} answered {code} ({symbol}){said}", failure.call)
}

fn binary_row(info: &ContextBinaryInfo, build: Option<&str>) -> BinaryRow {
    BinaryRow {
        backend: binary::backend_name(info.backend_id),
        build_id: info.build_id.clone(),
        arch: info.hexagon_arch.map(|arch| format!("v{arch}")),
        soc_model: info.soc_model.filter(|number| *number > 0),
        vtcm_bytes: info.graphs.iter().filter_map(|graph| graph.vtcm_bytes).max(),
        problem: binary::against_runtime(info, build),
    }
}
