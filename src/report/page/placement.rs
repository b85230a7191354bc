//! Placement of an ONNX model's nodes.

use super::{Block, Table};
use crate::event::{NodePlacement, NodeProvider};
use crate::report::mask::Mask;
use crate::report::nodes::placement_line;
use crate::store::Run;
use crate::text::{counted, duration_text};
use std::fmt::Write;

/// Maximum number of nodes in a short report.
const BRIEF_NODES: usize = 10;

/// What ran where, why not on QNN, and the cost of partition borders; empty for models other than ONNX.
pub fn blocks(run: &Run, mask: &Mask) -> Vec<Block> {
    let Some(placed) = run.nodes.as_ref().filter(|placed| !placed.nodes.is_empty()) else { return Vec::new() };
    let time = |us: Option<f64>| us.map_or_else(|| "–".to_owned(), duration_text);
    let mut text = format!("{}.", placement_line(run, placed));
    for (at, partition) in placed.partitions.iter().enumerate() {
        let nodes = counted(partition.nodes as u64, "node");
        let (whole, qnn, border) = (time(partition.node_us), time(partition.qnn_us), time(partition.boundary_us()));
        let _ = write!(text, " Partition {at}: {nodes}, {whole} ({qnn} in QNN, {border} at its borders).");
    }
    let mut table = Table::new(&["node", "type", "ran on", "time", "why not on QNN, and what to do"], BRIEF_NODES);
    // The nodes that fell back are the point of the table.
    let (fallen, others): (Vec<&NodePlacement>, Vec<_>) =
        placed.nodes.iter().partition(|node| node.provider == NodeProvider::Cpu);
    for node in fallen.into_iter().chain(others) {
        let place = match (node.provider, node.partition) {
            (NodeProvider::Qnn, Some(at)) => format!("QNN, partition {at}"),
            (NodeProvider::Qnn, None) => "QNN".to_owned(),
            (NodeProvider::Cpu, _) => "processor".to_owned(),
            (NodeProvider::None, _) => "–".to_owned(),
        };
        let why: Vec<&str> = [&node.reason, &node.remedy].into_iter().filter_map(|text| text.as_deref()).collect();
        let about = if node.time_derived { "≈" } else { "" };
        table.rows.push(vec![
            mask.name(&node.node).into_owned(),
            node.op_type.clone(),
            place,
            format!("{about}{}", time(node.time_us)),
            mask.text(&why.join("; ")).into_owned(),
        ]);
    }
    table.is_long = table.rows.len() > 30;
    vec![Block::Text(text), Block::Table(table)]
}
