//! Turns profile events into op rows, op values and figures.

use crate::backends::qnn::api::ProfileEvent;
use crate::event::{Metric, OpRow, OpUnit, Stage, SubStage};
use crate::models::Graph;
use std::collections::HashMap;

/// QNN's event type of one node.
const NODE: u32 = 404;
const UNIT_CYCLES: u32 = 3;
const UNIT_OBJECT: u32 = 5;

/// All node events of a tree, in order.
pub fn nodes(events: &[ProfileEvent]) -> Vec<&ProfileEvent> {
    fn walk<'a>(events: &'a [ProfileEvent], found: &mut Vec<&'a ProfileEvent>) {
        for event in events {
            if event.kind == NODE {
                found.push(event);
            }
            walk(&event.children, found);
        }
    }
    let mut found = Vec::new();
    walk(events, &mut found);
    found
}

/// Figures: every root event with a number that is not a node.
pub fn metrics(events: &[ProfileEvent]) -> Vec<Metric> {
    events
        .iter()
        .filter(|event| event.kind != NODE && event.unit != UNIT_OBJECT)
        .map(|event| Metric {
            name: if event.identifier.is_empty() { format!("event {}", event.kind) } else { event.identifier.clone() },
            unit: event.unit_name().to_owned(),
            value: event.value as f64,
        })
        .collect()
}

/// The parts of a stage, timed by the backend.
pub fn sub_stages(stage: Stage, events: &[ProfileEvent]) -> Vec<SubStage> {
    let all = events.iter().flat_map(|event| std::iter::once(event).chain(&event.children));
    // Node events of a CPU finalize are per op and of no use here.
    all.filter(|event| event.kind != NODE && !event.identifier.is_empty())
        .map(|event| SubStage {
            stage,
            name: event.identifier.clone(),
            value: event.value as f64,
            unit: event.unit_name().to_owned(),
        })
        .collect()
}

/// Rows for the node events of one inference, joined with the graph's ops by name.
pub fn rows(nodes: &[&ProfileEvent], graph: &Graph) -> Vec<OpRow> {
    let mut by_name: HashMap<&str, Vec<u32>> = HashMap::new();
    for op in graph.ops.iter().rev() {
        by_name.entry(&op.name).or_default().push(op.index);
    }
    nodes
        .iter()
        .map(|node| {
            let (name, htp_op) = plain_name(&node.identifier);
            // CPU prefixes the node's name with an underscore; a name that itself starts with one is found first.
            let found = by_name.get_mut(name).and_then(Vec::pop);
            let (name, op) = match (found, name.strip_prefix('_')) {
                (None, Some(short)) => match by_name.get_mut(short).and_then(Vec::pop) {
                    Some(op) => (short, Some(op)),
                    None => (name, None),
                },
                (found, _) => (name, found),
            };
            OpRow {
                name: name.to_owned(),
                op,
                unit: if node.unit == UNIT_CYCLES { OpUnit::Cycles } else { OpUnit::Us },
                htp_op,
            }
        })
        .collect()
}

/// The node's name without HTP's decoration, and HTP's number of the op: `NAME:OpId_12 (cycles)` is `NAME` and 12.
/// Names may contain colons, so the last marker counts.
fn plain_name(identifier: &str) -> (&str, Option<u64>) {
    let name = identifier.strip_suffix(" (cycles)").unwrap_or(identifier).trim_end();
    match name.rfind(":OpId_") {
        Some(at) if name[at + 6..].bytes().all(|b| b.is_ascii_digit()) => (&name[..at], name[at + 6..].parse().ok()),
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(identifier: &str, unit: u32) -> ProfileEvent {
        ProfileEvent { kind: NODE, unit, value: 1, identifier: identifier.into(), children: vec![] }
    }

    fn graph(names: &[&str]) -> Graph {
        let ops = names
            .iter()
            .enumerate()
            .map(|(i, name)| crate::models::Op {
                index: u32::try_from(i).unwrap(),
                name: (*name).into(),
                op_type: "Relu".into(),
                package: "qti.aisw".into(),
                inputs: vec![],
                outputs: vec![],
                params: serde_json::Map::new(),
                macs: None,
                parameter_bytes: 0,
                bytes_moved: None,
            })
            .collect();
        Graph { name: "g".into(), inputs: vec![], outputs: vec![], ops, parameter_bytes: 0 }
    }

    #[test]
    fn decorations_are_stripped_and_ops_joined() {
        let graph = graph(&["conv", "a:b/c@0", "_odd", "twice", "twice"]);
        let events: Vec<ProfileEvent> = [
            "Input OpId_2 (cycles)",
            "conv:OpId_21 (cycles)",
            "a:b/c@0:OpId_22 (cycles)",
            "twice:OpId_5 (cycles)",
            "twice:OpId_6 (cycles)",
        ]
        .iter()
        .map(|name| node(name, 3))
        .collect();
        let rows = rows(&nodes(&events), &graph);
        let joined: Vec<(&str, Option<u32>)> = rows.iter().map(|r| (r.name.as_str(), r.op)).collect();
        assert_eq!(
            joined,
            [("Input OpId_2", None), ("conv", Some(0)), ("a:b/c@0", Some(1)), ("twice", Some(3)), ("twice", Some(4))]
        );
        assert!(rows.iter().all(|row| row.unit == OpUnit::Cycles));
        assert_eq!((rows[0].htp_op, rows[1].htp_op), (None, Some(21)));
    }

    #[test]
    fn cpu_names_lose_one_underscore() {
        let graph = graph(&["conv", "_odd"]);
        let events = [node("_conv", 1), node("_odd", 1)];
        let rows = rows(&nodes(&events), &graph);
        assert_eq!((rows[0].op, rows[1].op), (Some(0), Some(1)));
        assert_eq!(rows[0].unit, OpUnit::Us);
    }

    #[test]
    fn figures_leave_out_nodes() {
        let mut root = node("QNN (execute) time", 1);
        root.kind = 400;
        root.children = vec![node("x:OpId_1 (cycles)", 3)];
        let events = [root, node("y", 3)];
        assert_eq!(metrics(&events).len(), 1);
        assert_eq!(nodes(&events).len(), 2);
    }
}
