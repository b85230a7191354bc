//! Where the nodes of an ONNX model ran, why not on QNN, and what to do about that.

use super::{Content, Entry, FIX, Item, JumpTarget, Sign};
use crate::analysis::EvidencePlace;
use crate::app::format;
use crate::app::symbols::Symbols;
use crate::app::theme::Meaning;
use crate::event::{NodePlacement, NodeProvider, NodesPlaced, clean_text};
use crate::report::placement_line;
use crate::store::Run;
use std::collections::HashMap;
use std::fmt::Write;

/// The page's content for a run.
pub fn content(run: Option<&Run>, symbols: &Symbols) -> Content {
    let Some(run) = run else {
        return Content { empty: "no run yet".to_owned(), ..Content::default() };
    };
    let Some(placed) = run.nodes.as_ref().filter(|placed| !placed.nodes.is_empty()) else {
        let empty = if run.is_ended() {
            "only ONNX models are placed node by node; other models run as a whole on the backend"
        } else {
            "node placement is known once the model is loaded; only ONNX models are placed node by node"
        };
        return Content { empty: empty.to_owned(), ..Content::default() };
    };
    let rows: HashMap<&str, usize> =
        run.ops.rows().iter().enumerate().map(|(at, row)| (row.name.as_str(), at)).collect();
    let mut order: Vec<usize> = (0..placed.nodes.len()).collect();
    // The page is about nodes that fell back.
    order.sort_by_key(|at| placed.nodes[*at].provider != NodeProvider::Cpu);
    let entries = order.into_iter().map(|at| entry(at, placed, &rows, symbols)).collect();
    Content { head: head(run, placed, symbols), entries, empty: String::new(), log: false }
}

fn head(run: &Run, placed: &NodesPlaced, symbols: &Symbols) -> Vec<(String, Meaning)> {
    let fallen = placed.nodes.iter().any(|node| node.provider == NodeProvider::Cpu);
    let meaning = match (placed.is_all_cpu(), fallen) {
        (true, _) => Meaning::Alert,
        (false, true) => Meaning::Warn,
        (false, false) => Meaning::Good,
    };
    let mut head = vec![(placement_line(run, placed), meaning)];
    if let Some(problem) = &placed.problem {
        head.push((clean_text(problem), Meaning::Alert));
    }
    let mut borders = String::new();
    for (at, partition) in placed.partitions.iter().enumerate() {
        let Some((whole, border)) = partition.node_us.zip(partition.boundary_us()) else { continue };
        let (whole, border) = (format::duration(whole, symbols), format::duration(border, symbols));
        let comma = if borders.is_empty() { "" } else { "; " };
        let _ = write!(borders, "{comma}partition {at} takes {whole}, {border} of it at its borders");
    }
    if !borders.is_empty() {
        head.push((borders, Meaning::Muted));
    }
    head
}

/// Where a node ran, in short.
fn ran_on(node: &NodePlacement) -> String {
    match (node.provider, node.partition) {
        (NodeProvider::Qnn, Some(at)) => format!("QNN {at}"),
        (NodeProvider::Qnn, None) => "QNN".to_owned(),
        (NodeProvider::Cpu, _) => "processor".to_owned(),
        (NodeProvider::None, _) => "nothing".to_owned(),
    }
}

fn time(node: &NodePlacement, symbols: &Symbols) -> Option<String> {
    let mark = if node.time_derived { symbols.approx } else { "" };
    node.time_us.map(|us| format!("{mark}{}", format::duration(us, symbols)))
}

fn entry(at: usize, placed: &NodesPlaced, rows: &HashMap<&str, usize>, symbols: &Symbols) -> Entry {
    let node = &placed.nodes[at];
    let (name, op_type) = (clean_text(&node.node), clean_text(&node.op_type));
    let fallen = node.provider == NodeProvider::Cpu;
    let mut items = vec![Item::new("node", format!("{name} ({op_type})")).meaning(Meaning::Title)];
    let by = match node.provider {
        NodeProvider::Qnn => "QNN",
        NodeProvider::Cpu => "the CPU, in ONNX Runtime's own kernel",
        NodeProvider::None => "nothing",
    };
    items.push(Item::new("ran on", by).meaning(if fallen { Meaning::Warn } else { Meaning::Text }));
    if let Some((number, partition)) = node.partition.and_then(|at| Some((at, placed.partitions.get(at)?))) {
        items.push(Item::new("partition", format!("{number}: {}", clean_text(&partition.name))));
    }
    if node.inserted {
        items.push(Item::new("", "not in the model: ONNX Runtime inserted it").meaning(Meaning::Muted));
    }
    if let Some(time) = time(node, symbols) {
        let derived = if node.time_derived { ", derived from cycles" } else { "" };
        items.push(Item::new("time", format!("{time}, mean under profiling{derived}")));
    }
    for (index, op) in node.qnn_ops.iter().enumerate() {
        let target = rows.get(op.as_str()).map(|row| JumpTarget::Place(EvidencePlace::Op(*row)));
        items.push(Item { target, ..Item::new(if index == 0 { "QNN ops" } else { "" }, clean_text(op)) });
    }
    if let Some(row) = rows.get(node.node.as_str()).filter(|_| fallen) {
        let item = Item::new("layer", "its times are among the layers");
        items.push(Item { target: Some(JumpTarget::Place(EvidencePlace::Op(*row))), ..item });
    }
    if let Some(reason) = &node.reason {
        items.push(Item::new("because", clean_text(reason)));
    }
    if let Some(code) = node.code {
        let literal = Some(format!("qnnscope explain {code}"));
        items.push(Item { literal, ..Item::new("code", format!("the backend answered {code}")) });
    }
    if let Some(remedy) = &node.remedy {
        items.push(Item::new(FIX, clean_text(remedy)));
    }
    Entry {
        // Names may repeat.
        key: format!("{at}"),
        sign: if fallen { Sign::Warning } else { Sign::Note },
        tag: ran_on(node),
        title: format!("{name} ({op_type})"),
        note: (time(node, symbols).unwrap_or_default(), Meaning::Muted),
        items,
    }
}
