//! The document as text.

use super::{ContextDocument, GraphDocument, NodeDocument, SourceDocument};
use crate::models::source::{FloatIsland, FreeDimension, QuantizationSummary, SourceFormat, SourceValue, shape_text};
use crate::report::layout::shortened;
use crate::text::{bytes_text, count_text, wrapped};
use std::fmt::Write;

/// Width of running text, characters.
const WIDTH: usize = 100;
/// Maximum number of constants listed, largest first.
const CONSTANTS: usize = 10;
/// Maximum number of nodes named per float island.
const ISLAND_NODES: usize = 6;
/// Maximum number of float islands listed.
const ISLANDS: usize = 12;

/// The document as text.
pub fn source_text(document: &SourceDocument) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", document.path);
    let (label, size) = (document.format.label(), bytes_text(document.bytes as f64));
    let _ = writeln!(out, "  {label}, {size}, sha256 {}", document.sha256);
    origin(&mut out, document);
    for external in &document.external_files {
        let _ = writeln!(
            out,
            "  external data: {}, {}, {} in {} {}",
            external.file,
            bytes_text(external.bytes as f64),
            bytes_text(external.tensor_bytes as f64),
            external.tensors,
            plural(external.tensors, "tensor"),
        );
    }
    if let Some(quantization) = &document.quantization {
        quantized(&mut out, quantization);
    }
    if !document.context_binaries.is_empty() {
        contexts(&mut out, &document.context_binaries, &document.path);
    }
    for graph in &document.graphs {
        graph_text(&mut out, graph);
    }
    out
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// Versions, producer, operator sets and free dimensions.
fn origin(out: &mut String, document: &SourceDocument) {
    let mut parts = Vec::new();
    if let Some(version) = document.format_version {
        let what = if document.format == SourceFormat::Onnx { "IR version" } else { "schema version" };
        parts.push(format!("{what} {version}"));
    }
    if let Some(producer) = &document.producer {
        let version = document.producer_version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
        // TFLite has a description instead, which names a program at best.
        let role = if document.format == SourceFormat::Onnx { "made by" } else { "description:" };
        parts.push(format!("{role} {producer}{version}"));
    }
    let mut opsets: Vec<_> = document.opsets.iter().collect();
    // ONNX's own domain comes first, since it matters most.
    opsets.sort_by_key(|opset| !opset.domain.is_empty());
    parts.extend(opsets.into_iter().map(|opset| match opset.domain.as_str() {
        "" => format!("opset {}", opset.version),
        domain => format!("{domain} {}", opset.version),
    }));
    if !parts.is_empty() {
        out.push_str(&wrapped("  ", "  ", &parts.join(", "), WIDTH));
    }
    if !document.free_dimensions.is_empty() {
        let one = |free: &FreeDimension| {
            format!("{} ({})", free.name.as_deref().unwrap_or("one without a name"), free.inputs.join(", "))
        };
        let all: Vec<String> = document.free_dimensions.iter().map(one).collect();
        let advice = if document.free_dimensions.iter().any(|free| free.name.is_some()) {
            "; fix one with --dim NAME=N"
        } else {
            ""
        };
        out.push_str(&wrapped("  free dimensions: ", "    ", &format!("{}{advice}", all.join(", ")), WIDTH));
    }
    for function in &document.functions {
        let _ = writeln!(
            out,
            "  function {}:{}, {} {}",
            function.domain,
            function.name,
            function.nodes,
            plural(function.nodes, "node")
        );
    }
}

fn quantized(out: &mut String, summary: &QuantizationSummary) {
    let share = if summary.compute_nodes == 0 {
        0.0
    } else {
        100.0 * summary.quantized_nodes as f64 / summary.compute_nodes as f64
    };
    let undecided = match summary.undecided_nodes {
        0 => String::new(),
        more => format!("; {more} undetermined: their types are unknown"),
    };
    let _ = writeln!(
        out,
        "\nQuantisation\n  {} of {} compute {} quantised ({share:.0} %){undecided}",
        summary.quantized_nodes,
        summary.compute_nodes,
        if summary.compute_nodes == 1 { "node is" } else { "nodes are" }
    );
    for (title, types) in [("activations", &summary.activations), ("constants", &summary.weights)] {
        if !types.is_empty() {
            let all: Vec<String> = types.iter().map(|(dtype, count)| format!("{count} {dtype}")).collect();
            let _ = writeln!(out, "  {title}: {}", all.join(", "));
        }
    }
    // In a float-only graph there are no islands.
    if summary.quantized_nodes == 0 {
        return;
    }
    for island in summary.float_islands.iter().take(ISLANDS) {
        out.push_str(&wrapped("  float: ", "    ", &island_text(island), WIDTH));
    }
    if let Some(more) = summary.float_islands.len().checked_sub(ISLANDS).filter(|&more| more > 0) {
        let _ = writeln!(out, "  {more} more float islands (--json lists all)");
    }
}

fn island_text(island: &FloatIsland) -> String {
    let named = island.nodes.iter().take(ISLAND_NODES).cloned().collect::<Vec<_>>().join(", ");
    let more = island.nodes.len().saturating_sub(ISLAND_NODES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{named}{more} ({})", island.op_types.join(", "))
}

fn contexts(out: &mut String, contexts: &[ContextDocument], path: &str) {
    let _ = writeln!(out, "\nQNN context binaries");
    for context in contexts {
        let sdk =
            context.sdk_version.as_ref().map_or_else(|| "SDK not named".to_owned(), |version| format!("SDK {version}"));
        let place = match &context.problem {
            Some(problem) => format!("not there: {problem}"),
            None if context.file == path => format!("{} at byte {}", bytes_text(context.bytes as f64), context.offset),
            None => format!("{} in {}", bytes_text(context.bytes as f64), context.file),
        };
        let odd = if context.problem.is_none() && !context.recognised {
            ", does not start like a context binary"
        } else {
            ""
        };
        let _ = writeln!(out, "  {} ({})", context.name, context.site.label());
        out.push_str(&wrapped("    ", "      ", &format!("{place}, {sdk}{odd}"), WIDTH));
        if context.partitions.len() > 1 {
            out.push_str(&wrapped("    runs ", "      ", &context.partitions.join(", "), WIDTH));
        }
        if let Some(file) = &context.extracted {
            let _ = writeln!(out, "    written to {file}");
        }
    }
}

fn graph_text(out: &mut String, graph: &GraphDocument) {
    let _ = writeln!(out, "\nGraph {}", graph.name);
    let macs = match graph.nodes_without_macs {
        0 => format!("{} MACs", count_text(graph.macs as f64)),
        all if all == graph.node_count => "MACs unknown".to_owned(),
        some => format!("{} MACs and those of {some} {}", count_text(graph.macs as f64), plural(some, "node")),
    };
    let _ = writeln!(
        out,
        "  {} {}, {macs}, {} parameters in {}",
        graph.node_count,
        plural(graph.node_count, "node"),
        count_text(graph.parameters as f64),
        bytes_text(graph.parameter_bytes as f64)
    );
    for (title, values) in [("input", &graph.inputs), ("output", &graph.outputs)] {
        for value in values {
            let _ = writeln!(out, "  {title:<6}  {}", value_line(value));
        }
    }
    for subgraph in &graph.subgraphs {
        let nodes = plural(subgraph.nodes, "node");
        let _ = writeln!(
            out,
            "  {} of {}: {} {nodes}, not counted above",
            subgraph.attribute, subgraph.node, subgraph.nodes
        );
    }
    if graph.nodes.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n  {:<32} {:>6} {:>10}", "op type", "count", "MACs");
    for total in &graph.op_types {
        let name =
            if total.domain.is_empty() { total.op_type.clone() } else { format!("{}:{}", total.domain, total.op_type) };
        let macs = macs_text((total.without_macs < total.count).then_some(total.macs));
        let _ = writeln!(out, "  {:<32} {:>6} {macs:>10}", shortened(&name, 32), total.count);
    }
    constants(out, graph);
    nodes(out, &graph.nodes);
}

fn value_line(value: &SourceValue) -> String {
    let dtype = value.dtype.map_or_else(|| "unknown".to_owned(), |dtype| dtype.to_string());
    let inferred = if value.inferred { " (inferred)" } else { "" };
    let encoding = match &value.quantization {
        Some(quantized) => match (quantized.scale, quantized.zero_point) {
            (Some(scale), zero) => format!("  scale {scale:.6}, zero point {}", zero.unwrap_or(0)),
            (None, _) => format!("  {} scales on axis {}", quantized.scales, quantized.axis.unwrap_or(0)),
        },
        None => String::new(),
    };
    format!("{}  {dtype} {}{inferred}{encoding}", value.name, shape_text(value.shape.as_deref()))
}

fn macs_text(macs: Option<u64>) -> String {
    macs.map_or_else(|| "–".to_owned(), |macs| count_text(macs as f64))
}

/// The largest constants.
fn constants(out: &mut String, graph: &GraphDocument) {
    let mut largest: Vec<_> = graph.constants.iter().filter(|constant| constant.bytes.unwrap_or(0) > 0).collect();
    if largest.is_empty() {
        return;
    }
    largest.sort_by_key(|constant| std::cmp::Reverse(constant.bytes));
    let title = if largest.len() > CONSTANTS { "largest constants" } else { "constant" };
    let _ = writeln!(out, "\n  {title:<40} {:>10}  {:<9}  shape", "size", "type");
    for constant in largest.iter().take(CONSTANTS) {
        let shape: Vec<String> = constant.shape.iter().map(u64::to_string).collect();
        let dtype = constant.dtype.map_or_else(|| "unknown".to_owned(), |dtype| dtype.to_string());
        let _ = writeln!(
            out,
            "  {:<40} {:>10}  {dtype:<9}  {}",
            shortened(&constant.name, 40),
            bytes_text(constant.bytes.unwrap_or(0) as f64),
            if shape.is_empty() { "scalar".to_owned() } else { shape.join("x") }
        );
    }
}

fn nodes(out: &mut String, nodes: &[NodeDocument]) {
    let name_width = nodes.iter().map(|node| node.label.chars().count()).max().unwrap_or(0).clamp(4, 40);
    let type_width = nodes.iter().map(|node| node.op_type.chars().count()).max().unwrap_or(0).clamp(4, 24);
    let _ = writeln!(out, "\n  {:>5}  {:<name_width$}  {:<type_width$}  {:>10}  output", "#", "node", "type", "MACs");
    for node in nodes {
        let output = node.output.as_ref().map_or_else(String::new, |(dtype, shape)| {
            let dtype = dtype.map_or_else(|| "unknown".to_owned(), |dtype| dtype.to_string());
            format!("{dtype} {}", shape_text(shape.as_deref()))
        });
        let line = format!(
            "  {:>5}  {:<name_width$}  {:<type_width$}  {:>10}  {output}",
            node.index,
            shortened(&node.label, name_width),
            shortened(&node.op_type, type_width),
            macs_text(node.macs),
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
