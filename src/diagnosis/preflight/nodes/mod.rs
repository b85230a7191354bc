//! Which nodes of an ONNX model each backend takes: the `qnnscope.check-onnx/1` document, from the answers of
//! ONNX Runtime's QNN plug-in.

mod text;

pub use text::nodes_text;

use super::document::{State, Verdict, why_not};
use super::{Origin, Target, cannot_be_asked};
use crate::backends::Backend;
use crate::event::{Failure, NodePlacement, NodeProvider, NodesPlaced, RuntimeInfo, Sandbox};
use serde::Serialize;

/// Schema of the document.
const SCHEMA: &str = "qnnscope.check-onnx/1";

/// The result of a session for one backend, on one kind of hardware.
#[derive(Debug)]
pub struct NodesAnswer {
    /// Backend.
    pub backend: Backend,
    /// The hardware that it was to answer for, if it distinguishes hardware.
    pub target: Option<Target>,
    /// Whether the user named this backend.
    pub named: bool,
    /// Where the nodes were placed, or why there is no session.
    pub placed: Result<NodesPlaced, Box<Failure>>,
    /// The libraries that were asked, if they loaded.
    pub runtime: Option<RuntimeInfo>,
    /// How far the process was sandboxed.
    pub sandbox: Option<Sandbox>,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodesModel {
    /// Path as given.
    pub path: String,
    /// Format.
    pub format: &'static str,
    /// SHA-256.
    pub sha256: String,
    /// Size, in bytes.
    pub bytes: u64,
}

/// What was found out about an ONNX model before any run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodesDocument {
    schema: &'static str,
    model: NodesModel,
    /// False if a backend leaves a node to the CPU, or a session could not be created.
    ok: bool,
    backends: Vec<NodesBackend>,
    nodes: Vec<NodeRow>,
    sandbox: Option<Sandbox>,
}

/// A backend, on one kind of hardware.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct NodesBackend {
    name: Backend,
    soc: Option<String>,
    arch: Option<String>,
    state: State,
    reason: Option<String>,
    hint: Option<String>,
    named: bool,
    chosen_by: Option<Origin>,
    simulated: bool,
    build_id: Option<String>,
    /// Nodes that QNN takes, nodes left to the CPU, nodes folded away, and partitions that QNN's nodes form.
    taken: Option<usize>,
    refused: Option<usize>,
    folded: Option<usize>,
    partitions: Option<usize>,
}

/// A node with all answers about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct NodeRow {
    node: String,
    #[serde(rename = "type")]
    op_type: String,
    /// True for a node that ONNX Runtime inserted, such as a Transpose.
    inserted: bool,
    results: Vec<NodeResult>,
}

/// Where a node was placed.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct NodeResult {
    backend: Backend,
    soc: Option<String>,
    provider: NodeProvider,
    partition: Option<usize>,
    code: Option<u64>,
    reason: Option<String>,
    remedy: Option<String>,
}

impl NodesDocument {
    /// Combines the answers.
    pub fn new(model: NodesModel, answers: &[NodesAnswer]) -> Self {
        let backends: Vec<NodesBackend> = answers.iter().map(NodesBackend::new).collect();
        let bad = |row: &NodesBackend| row.state == State::Failed || row.refused.is_some_and(|nodes| nodes > 0);
        Self {
            schema: SCHEMA,
            model,
            ok: !backends.iter().any(bad),
            backends,
            nodes: rows(answers),
            sandbox: answers.iter().find_map(|answer| answer.sandbox.clone()),
        }
    }

    /// The outcome.
    pub fn verdict(&self) -> Verdict {
        let not_asked = |row: &&NodesBackend| row.state == State::NotAsked;
        let unanswered = self.backends.iter().filter(not_asked).any(|row| row.named)
            || self.backends.iter().all(|row| not_asked(&row));
        match (self.ok, unanswered) {
            (false, _) => Verdict::Refused,
            (true, true) => Verdict::Unknown,
            (true, false) => Verdict::Fine,
        }
    }
}

impl NodesBackend {
    fn new(answer: &NodesAnswer) -> Self {
        let (state, reason, hint) = match &answer.placed {
            // The plug-in continues without a backend that it cannot open, and leaves everything to the CPU.
            Ok(placed) if placed.is_all_cpu() && placed.problem.is_some() => {
                (State::NotAsked, placed.problem.clone(), None)
            }
            Ok(_) => (State::Asked, None, None),
            Err(failure) => {
                let state = if cannot_be_asked(failure) { State::NotAsked } else { State::Failed };
                (state, Some(why_not(failure, state)), failure.hint.clone())
            }
        };
        let placed = answer.placed.as_ref().ok().filter(|_| state == State::Asked);
        let count = |provider| placed.map(|placed| placed.count(provider));
        Self {
            name: answer.backend,
            soc: answer.target.as_ref().map(|target| target.label.clone()),
            arch: answer.target.as_ref().and_then(Target::arch_name),
            state,
            reason,
            hint,
            named: answer.named,
            chosen_by: answer.target.as_ref().map(|target| target.origin),
            simulated: answer.backend.is_simulated_here(),
            build_id: answer.runtime.as_ref().and_then(|runtime| runtime.build_id.clone()),
            taken: count(NodeProvider::Qnn),
            refused: count(NodeProvider::Cpu),
            folded: count(NodeProvider::None),
            partitions: placed.map(|placed| placed.partitions.len()),
        }
    }

    /// `htp for SM8650 (v75)`.
    fn full_name(&self) -> String {
        match (&self.soc, &self.arch) {
            (Some(soc), Some(arch)) => format!("{} for {soc} ({arch})", self.name),
            (Some(soc), None) => format!("{} for {soc}", self.name),
            _ => self.name.to_string(),
        }
    }
}

/// The model's nodes in its order, then those that ONNX Runtime inserted and left to the CPU.
fn rows(answers: &[NodesAnswer]) -> Vec<NodeRow> {
    let mut rows: Vec<NodeRow> = Vec::new();
    for answer in answers {
        let Ok(placed) = &answer.placed else { continue };
        if placed.is_all_cpu() && placed.problem.is_some() {
            continue;
        }
        let shown = placed.nodes.iter().filter(|node| !node.inserted || node.provider == NodeProvider::Cpu);
        for (position, node) in shown.enumerate() {
            // All sessions list the model's nodes in the same order; names may occur twice.
            let same =
                |row: &NodeRow| row.node == node.node && row.op_type == node.op_type && row.inserted == node.inserted;
            let known = rows.get(position).filter(|row| same(row)).map(|_| position);
            let at =
                known.or_else(|| node.inserted.then(|| rows.iter().position(same)).flatten()).unwrap_or_else(|| {
                    let (name, op_type) = (node.node.clone(), node.op_type.clone());
                    rows.push(NodeRow { node: name, op_type, inserted: node.inserted, results: Vec::new() });
                    rows.len() - 1
                });
            rows[at].results.push(NodeResult::new(answer, node));
        }
    }
    rows.sort_by_key(|row| row.inserted);
    rows
}

impl NodeResult {
    fn new(answer: &NodesAnswer, node: &NodePlacement) -> Self {
        Self {
            backend: answer.backend,
            soc: answer.target.as_ref().map(|target| target.label.clone()),
            provider: node.provider,
            partition: node.partition,
            code: node.code,
            reason: node.reason.clone(),
            remedy: node.remedy.clone(),
        }
    }
}
