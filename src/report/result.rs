//! The result document, `qnnscope.result/1`. The schema file is `docs/result.schema.json`.

use super::counter_result::{Counter, DeviceCounters, counter, device_counters};
use super::run_result::{RunResult, run_result};
use crate::analysis::recommend::Recommendation;
use crate::analysis::{Cadence, Rounds, cadence, interleaved};
use crate::event::clean_text;
use crate::models::{ContextBinaryInfo, ModelFormat, Tensor};
use crate::store::{Run, Store};
use serde::Serialize;
use std::path::Path;

/// Schema of the document.
pub const RESULT_SCHEMA: &str = "qnnscope.result/1";

/// Everything a session measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultDocument {
    schema: &'static str,
    tool: Tool,
    #[serde(skip_serializing_if = "Option::is_none")]
    imported_from: Option<ImportedFrom>,
    started_at: String,
    model: Option<Model>,
    seed: Option<u64>,
    host_counters: Vec<Counter>,
    device_counters: Vec<DeviceCounters>,
    runs: Vec<RunResult>,
    interleaved: Vec<Rounds>,
    cadence: Vec<Cadence>,
    recommendation: Option<Recommendation>,
}

/// The other tool's file that the figures come from.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct ImportedFrom {
    kind: &'static str,
    path: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Tool {
    name: &'static str,
    version: &'static str,
}

impl Tool {
    /// This program.
    pub(super) fn this() -> Self {
        Self { name: "qnnscope", version: env!("CARGO_PKG_VERSION") }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Model {
    path: String,
    format: ModelFormat,
    sha256: String,
    bytes: u64,
    graph: Option<String>,
    graphs: Vec<String>,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    op_count: Option<usize>,
    macs: Option<u64>,
    parameter_bytes: Option<u64>,
    context_binary: Option<ContextBinaryInfo>,
}

impl ResultDocument {
    /// The document of everything in the store.
    pub fn new(store: &Store) -> Self {
        let runs = store.runs();
        Self {
            schema: RESULT_SCHEMA,
            tool: Tool::this(),
            imported_from: None,
            started_at: started_at(store),
            model: runs.iter().find_map(model),
            seed: runs.iter().find_map(|run| run.seed),
            host_counters: store.counters().iter().map(counter).collect(),
            device_counters: device_counters(store),
            runs: runs.iter().map(|run| run_result(store, run)).collect(),
            interleaved: interleaved(store),
            cadence: cadence(store),
            recommendation: super::recommendation(store),
        }
    }
}

impl ResultDocument {
    /// Marks the document as imported from another tool's file, given as its kind and path.
    #[must_use]
    pub fn imported_from(mut self, file: Option<(&'static str, &Path)>) -> Self {
        self.imported_from = file.map(|(kind, path)| ImportedFrom { kind, path: clean_text(&path.to_string_lossy()) });
        self
    }
}

/// Start in RFC 3339, UTC, with milliseconds.
pub(super) fn started_at(store: &Store) -> String {
    let wall_us = store.session().map_or(0, |session| session.epoch_us);
    let milliseconds = i64::try_from(wall_us / 1000).unwrap_or(0);
    jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default().to_string()
}

fn model(run: &Run) -> Option<Model> {
    let info = run.model.as_ref()?;
    let graph = run.graph();
    // A context binary does not list its ops.
    let ops_known = graph.filter(|_| info.format != ModelFormat::ContextBinary);
    Some(Model {
        path: info.path.clone(),
        format: info.format,
        sha256: info.sha256.clone(),
        bytes: info.bytes,
        graph: graph.map(|g| g.name.clone()),
        graphs: run.graphs.iter().map(|g| g.name.clone()).collect(),
        inputs: graph.map(|g| g.inputs.clone()).unwrap_or_default(),
        outputs: graph.map(|g| g.outputs.clone()).unwrap_or_default(),
        op_count: ops_known.map(|g| g.ops.len()),
        macs: ops_known.map(crate::models::Graph::macs),
        parameter_bytes: ops_known.map(|g| g.parameter_bytes),
        context_binary: info.context_binary.clone(),
    })
}
