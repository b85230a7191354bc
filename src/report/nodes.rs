//! The placement of an ONNX model's nodes: rows of the result document, and a table.

use super::layout::shortened;
use crate::event::{NodePlacement, NodeProvider, NodesPlaced};
use crate::store::Run;
use crate::text::{duration_text, paragraph};
use serde::Serialize;
use std::fmt::Write;

/// Up to this many nodes, all are listed; for larger models, only those on the CPU and the slowest.
const ALL: usize = 40;
/// Maximum number of nodes listed for larger models.
const LISTED: usize = 25;
/// Width of a node's name, characters.
const WIDTH: usize = 30;

/// A row of `placement`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct NodeResult {
    node: String,
    op_type: String,
    provider: NodeProvider,
    partition: Option<String>,
    qnn_ops: Vec<String>,
    time_us: Option<f64>,
    time_derived: bool,
    code: Option<u64>,
    reason: Option<String>,
    remedy: Option<String>,
    inserted: bool,
}

/// A row of `partitions`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PartitionResult {
    name: String,
    nodes: usize,
    time_us: Option<f64>,
    qnn_us: Option<f64>,
    boundary_us: Option<f64>,
}

/// The nodes of a run; `None` for models that are not ONNX.
pub(super) fn nodes(run: &Run) -> Option<Vec<NodeResult>> {
    let placed = run.nodes.as_ref()?;
    let row = |node: &NodePlacement| NodeResult {
        node: node.node.clone(),
        op_type: node.op_type.clone(),
        provider: node.provider,
        partition: node.partition.and_then(|at| placed.partitions.get(at)).map(|partition| partition.name.clone()),
        qnn_ops: node.qnn_ops.clone(),
        time_us: node.time_us,
        time_derived: node.time_derived,
        code: node.code,
        reason: node.reason.clone(),
        remedy: node.remedy.clone(),
        inserted: node.inserted,
    };
    Some(placed.nodes.iter().map(row).collect())
}

/// The partitions run by QNN; `None` for models that are not ONNX.
pub(super) fn partitions(run: &Run) -> Option<Vec<PartitionResult>> {
    let placed = run.nodes.as_ref()?;
    let row = |partition: &crate::event::NodePartition| PartitionResult {
        name: partition.name.clone(),
        nodes: partition.nodes,
        time_us: partition.node_us,
        qnn_us: partition.qnn_us,
        boundary_us: partition.boundary_us(),
    };
    Some(placed.partitions.iter().map(row).collect())
}

/// What ran where, as a sentence: `11 of 12 nodes on QNN htp in 2 partitions, 1 on the CPU`.
pub fn placement_line(run: &Run, placed: &NodesPlaced) -> String {
    let of = |provider| placed.nodes.iter().filter(|node| node.provider == provider).count();
    let (qnn, cpu, none) = (of(NodeProvider::Qnn), of(NodeProvider::Cpu), of(NodeProvider::None));
    let parts = match placed.partitions.len() {
        0 => String::new(),
        1 => " in 1 partition".to_owned(),
        several => format!(" in {several} partitions"),
    };
    let gone = if none > 0 { format!(", {none} folded or merged at load") } else { String::new() };
    format!("{qnn} of {} nodes on QNN {}{parts}, {cpu} on the CPU{gone}", qnn + cpu, run.plan.backend)
}

/// Writes the table of a run.
pub(super) fn table(out: &mut String, run: &Run) {
    let Some(placed) = run.nodes.as_ref().filter(|placed| !placed.nodes.is_empty()) else { return };
    let _ = writeln!(out, "\nplacement  {}", placement_line(run, placed));
    for (at, partition) in placed.partitions.iter().enumerate() {
        let nodes = if partition.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", partition.nodes) };
        let time = partition.node_us.zip(partition.qnn_us).zip(partition.boundary_us());
        let time = time.map_or_else(String::new, |((whole, qnn), border)| {
            format!(
                ", {}: {} in QNN, {} at its borders",
                duration_text(whole),
                duration_text(qnn),
                duration_text(border)
            )
        });
        let _ = writeln!(out, "  partition {at}: {nodes}{time}");
    }
    let shown = shown(placed);
    let width = shown.iter().map(|node| node.node.chars().count()).max().unwrap_or(0).clamp(4, WIDTH);
    let _ = writeln!(out, "  {:<width$}  {:<18} {:<12} {:>10}  QNN ops", "node", "type", "ran on", "time");
    for node in &shown {
        let mark = if node.time_derived { "≈" } else { "" };
        let time = node.time_us.map_or_else(|| "–".to_owned(), |us| format!("{mark}{}", duration_text(us)));
        let place = match (node.provider, node.partition) {
            (NodeProvider::Qnn, Some(at)) => format!("QNN {at}"),
            (NodeProvider::Qnn, None) => "QNN".to_owned(),
            (NodeProvider::Cpu, _) => "PROCESSOR".to_owned(),
            (NodeProvider::None, _) => "–".to_owned(),
        };
        let ops = if node.inserted { "(inserted)".to_owned() } else { shortened(&node.qnn_ops.join(", "), 40) };
        let line = format!(
            "  {:<width$}  {:<18} {place:<12} {time:>10}  {ops}",
            shortened(&node.node, width),
            shortened(&node.op_type, 18)
        );
        let _ = writeln!(out, "{}", line.trim_end());
        if node.provider == NodeProvider::Cpu {
            if let Some(reason) = &node.reason {
                let code = node.code.map_or_else(String::new, |code| format!(" (qnnscope explain {code})"));
                paragraph(out, &format!("because {reason}{code}"), 8, 6);
            }
            if let Some(remedy) = &node.remedy {
                paragraph(out, &format!("> {remedy}"), 8, 6);
            }
        }
    }
    let rest = placed.nodes.len() - shown.len();
    if rest > 0 {
        let _ = writeln!(out, "  and {rest} more nodes, see --json");
    }
}

/// The nodes to list, in the model's order.
fn shown(placed: &NodesPlaced) -> Vec<&NodePlacement> {
    if placed.nodes.len() <= ALL {
        return placed.nodes.iter().collect();
    }
    let mut order: Vec<usize> = (0..placed.nodes.len()).collect();
    order.sort_by(|&a, &b| {
        let key = |at: usize| (placed.nodes[at].provider == NodeProvider::Cpu, placed.nodes[at].time_us.unwrap_or(0.0));
        let (a, b) = (key(a), key(b));
        b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    order.truncate(LISTED);
    order.sort_unstable();
    order.into_iter().map(|at| &placed.nodes[at]).collect()
}
