//! A model's description: the `qnnscope.inspect/1` document and its text.

use super::layout::shortened;
use crate::event::{ModelInfo, Sandbox, SandboxState, SourceNames};
use crate::models::{ContextBinaryInfo, Graph, ModelFormat, Op, OpTypeTotal, Tensor, op_type_totals};
use crate::text::{bytes_text, count_text, counted};
use serde::Serialize;
use std::fmt::Write;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectDocument {
    schema: &'static str,
    path: String,
    format: ModelFormat,
    sha256: String,
    bytes: u64,
    graphs: Vec<GraphDocument>,
    context_binary: Option<ContextBinaryInfo>,
    sandbox: Sandbox,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct GraphDocument {
    name: String,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    op_count: Option<usize>,
    macs: Option<u64>,
    parameter_bytes: Option<u64>,
    op_types: Vec<OpTypeTotal>,
    ops: Vec<OpDocument>,
}

/// An op and its source node.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct OpDocument {
    #[serde(flatten)]
    op: Op,
    source_node: Option<String>,
}

impl InspectDocument {
    /// Builds the document; a context binary does not list its ops, so their figures are absent. `names` maps
    /// its ops to nodes before conversion.
    pub fn new(model: &ModelInfo, graphs: Vec<Graph>, sandbox: Sandbox, names: Option<&SourceNames>) -> Self {
        let node = |op: &Op| names.and_then(|names| names.nodes.get(&op.name)).cloned();
        let known = model.format != ModelFormat::ContextBinary;
        let graphs = graphs
            .into_iter()
            .map(|graph| GraphDocument {
                op_count: known.then_some(graph.ops.len()),
                macs: known.then(|| graph.macs()),
                parameter_bytes: known.then_some(graph.parameter_bytes),
                op_types: op_type_totals(&graph.ops),
                name: graph.name,
                inputs: graph.inputs,
                outputs: graph.outputs,
                ops: graph.ops.into_iter().map(|op| OpDocument { source_node: node(&op), op }).collect(),
            })
            .collect();
        Self {
            schema: "qnnscope.inspect/1",
            path: model.path.clone(),
            format: model.format,
            sha256: model.sha256.clone(),
            bytes: model.bytes,
            graphs,
            context_binary: model.context_binary.clone(),
            sandbox,
        }
    }
}

/// The document as text.
pub fn inspect_text(document: &InspectDocument) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", document.path);
    let _ = writeln!(
        out,
        "  {}, {}, sha256 {}",
        document.format.label(),
        bytes_text(document.bytes as f64),
        document.sha256
    );
    if document.sandbox.state != SandboxState::Enforced {
        let _ = writeln!(out, "  sandbox {}", document.sandbox.summary());
    }
    if let Some(binary) = &document.context_binary {
        for line in context_binary_lines(binary) {
            let _ = writeln!(out, "  {line}");
        }
    }
    for graph in &document.graphs {
        let _ = writeln!(out, "\nGraph {}", graph.name);
        if let (Some(ops), Some(macs), Some(parameters)) = (graph.op_count, graph.macs, graph.parameter_bytes) {
            let _ = writeln!(
                out,
                "  {}, {} MACs, {} of parameters",
                counted(ops as u64, "op"),
                count_text(macs as f64),
                bytes_text(parameters as f64)
            );
        }
        for (title, tensors) in [("input", &graph.inputs), ("output", &graph.outputs)] {
            for tensor in tensors {
                let _ = writeln!(out, "  {title:<6}  {}", tensor_line(tensor));
            }
        }
        if !graph.op_types.is_empty() {
            let _ = writeln!(out, "\n  {:<24} {:>6} {:>10} {:>12}", "op type", "count", "MACs", "parameters");
            for total in &graph.op_types {
                let _ = writeln!(
                    out,
                    "  {:<24} {:>6} {:>10} {:>12}",
                    total.op_type,
                    total.count,
                    count_text(total.macs as f64),
                    bytes_text(total.parameter_bytes as f64)
                );
            }
            op_table(&mut out, &graph.ops);
        }
    }
    out
}

fn op_table(out: &mut String, rows: &[OpDocument]) {
    let width = |text: fn(&Op) -> &String, most| {
        rows.iter().map(|row| text(&row.op).chars().count()).max().unwrap_or(0).clamp(4, most)
    };
    let (name_width, type_width) = (width(|op| &op.name, 40), width(|op| &op.op_type, 24));
    let node = |row: &OpDocument| row.source_node.clone().filter(|node| *node != row.op.name);
    let head = if rows.iter().any(|row| node(row).is_some()) { "; node of the source" } else { "" };
    let _ = writeln!(
        out,
        "\n  {:>5}  {:<name_width$}  {:<type_width$}  {:>10}  {:>12}  output{head}",
        "#", "op", "type", "MACs", "parameters"
    );
    for row in rows {
        let op = &row.op;
        let macs = op.macs.map_or_else(|| "–".to_owned(), |macs| count_text(macs as f64));
        let output = op.outputs.first().map_or_else(String::new, |t| format!("{} {}", t.dtype, t.shape_text()));
        let node = node(row).map_or_else(String::new, |node| format!("; {node}"));
        let _ = writeln!(
            out,
            "  {:>5}  {:<name_width$}  {:<type_width$}  {macs:>10}  {:>12}  {output}{node}",
            op.index,
            shortened(&op.name, name_width),
            shortened(&op.op_type, type_width),
            bytes_text(op.parameter_bytes as f64),
        );
    }
}

pub(super) fn tensor_line(tensor: &Tensor) -> String {
    use crate::models::Quantization as Q;
    let encoding = match &tensor.quantization {
        None => String::new(),
        Some(Q::ScaleOffset { scale, offset, .. }) => format!("  scale {scale:.6}, offset {offset}"),
        Some(Q::AxisScaleOffset { axis, scales, .. }) => format!("  {} scales on axis {axis}", scales.len()),
        Some(Q::Other { id, name }) => {
            format!("  encoding {}", name.clone().unwrap_or_else(|| id.to_string()))
        }
    };
    format!("{}  {} {}{encoding}", tensor.name, tensor.dtype, tensor.shape_text())
}

/// A context binary's own description, line by line.
pub(super) fn context_binary_lines(binary: &ContextBinaryInfo) -> Vec<String> {
    let backend = match binary.backend_id {
        3 => "cpu".to_owned(),
        4 => "gpu".to_owned(),
        6 => "htp".to_owned(),
        other => format!("backend {other}"),
    };
    let build = if binary.build_id.is_empty() { "an unnamed build" } else { &binary.build_id };
    let mut lines = vec![format!("made for {backend} by {build}, core API {}", binary.core_api)];
    let arch = binary.hexagon_arch.map_or_else(|| "unknown".to_owned(), |arch| format!("v{arch}"));
    let soc = match binary.soc_model {
        None | Some(0) => "none named".to_owned(),
        Some(soc) => soc.to_string(),
    };
    if backend == "htp" {
        lines.push(format!("Hexagon architecture {arch}, SoC model {soc}"));
    }
    for graph in &binary.graphs {
        let number = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), |v| bytes_text(v as f64));
        if graph.vtcm_bytes.is_some() || graph.spill_fill_bytes.is_some() {
            let threads = match graph.hvx_threads {
                Some(threads) if threads > 0 => threads.to_string(),
                _ => "as the device decides".to_owned(),
            };
            lines.push(format!(
                "{}: VTCM {}, spill/fill buffer {}, optimisation level {}, HVX threads {threads}",
                graph.name,
                number(graph.vtcm_bytes),
                number(graph.spill_fill_bytes),
                graph.optimization_level.map_or_else(|| "–".to_owned(), |level| level.to_string()),
            ));
        }
    }
    lines
}
