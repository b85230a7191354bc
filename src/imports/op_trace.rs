//! The op trace of ONNX Runtime's QNN provider: which node each QNN op comes from, and which nodes QNN did
//! not take. It contains no times.

use super::Import;
use super::draft::Draft;
use super::error::Problem;
use super::json::document;
use super::sample::Sample;
use crate::backends::Backend;
use crate::event::LogLevel;
use serde::Deserialize;

pub struct OpTrace;

#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    backend_type: String,
    #[serde(default)]
    model_name: String,
    #[serde(default)]
    soc_traces: Vec<SocTrace>,
    #[serde(default)]
    subgraph_traces: Vec<Subgraph>,
    #[serde(default)]
    unsupported_nodes: Vec<Unsupported>,
}

#[derive(Debug, Deserialize)]
struct SocTrace {
    #[serde(default)]
    compilation_target: CompilationTarget,
}

#[derive(Debug, Default, Deserialize)]
struct CompilationTarget {
    #[serde(default)]
    htp_arch: Option<String>,
    #[serde(default)]
    soc_model: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Subgraph {
    #[serde(default)]
    graph_name: String,
    #[serde(default)]
    op_mappings: Vec<Mapping>,
}

#[derive(Debug, Deserialize)]
struct Mapping {
    #[serde(default)]
    dst_name: String,
    #[serde(default)]
    dst_qnn_op_type: String,
}

#[derive(Debug, Deserialize)]
struct Unsupported {
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    op_type: String,
    #[serde(default)]
    reason: String,
}

impl Import for OpTrace {
    fn kind(&self) -> &'static str {
        "ort-op-trace"
    }

    fn label(&self) -> &'static str {
        "op trace of ONNX Runtime's QNN provider"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        sample.has_keys(&["backend_type", "subgraph_traces"]) || sample.has_keys(&["soc_traces", "subgraph_traces"])
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let document: Document = document(sample)?;
        let targets: Vec<String> = document
            .soc_traces
            .iter()
            .map(|trace| {
                let target = &trace.compilation_target;
                let soc = target.soc_model.map(|soc| format!("SoC {soc}"));
                [soc, target.htp_arch.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ")
            })
            .filter(|target| !target.is_empty())
            .collect();
        for subgraph in &document.subgraph_traces {
            let run = draft.run()?;
            run.backend = document.backend_type.parse().unwrap_or(Backend::Unknown);
            run.model = format!("{} ({})", document.model_name, subgraph.graph_name);
            if !targets.is_empty() {
                run.device = targets.join(", ");
            }
            let op = |op: &Mapping| (op.dst_name.clone(), op.dst_qnn_op_type.clone(), "qti.aisw".to_owned());
            run.graph(&subgraph.graph_name, subgraph.op_mappings.iter().map(op));
        }
        if document.subgraph_traces.is_empty() {
            let run = draft.run()?;
            run.model.clone_from(&document.model_name);
        }
        let first = draft.at(0)?;
        for node in &document.unsupported_nodes {
            let reason = if node.reason.is_empty() { "no reason given" } else { node.reason.as_str() };
            let text = format!("node `{}` ({}) is not on QNN: {reason}", node.node_name, node.op_type);
            first.say(LogLevel::Warning, &text);
        }
        draft.note("the trace shows which ops run on QNN; it has no times");
        Ok(())
    }
}
