//! Connected parts of a graph.

use super::{FloatIsland, SourceGraph, SourceNode};
use std::collections::{BTreeSet, HashMap};

/// Groups of nodes for which `is_member` is true and that are connected through values, in file order.
pub fn islands(graph: &SourceGraph, is_member: impl Fn(usize) -> bool) -> Vec<FloatIsland> {
    let (mut writer, mut readers) = (HashMap::new(), HashMap::<&str, Vec<usize>>::new());
    let nodes = &graph.nodes;
    for (index, node) in nodes.iter().enumerate().filter(|(index, _)| is_member(*index)) {
        writer.extend(node.outputs.iter().map(|name| (name.as_str(), index)));
        for name in node.inputs.iter().filter(|name| !name.is_empty()) {
            readers.entry(name).or_default().push(index);
        }
    }
    let mut seen = vec![false; nodes.len()];
    let mut found = Vec::new();
    for start in (0..nodes.len()).filter(|&index| is_member(index)) {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let (mut members, mut open) = (Vec::new(), vec![start]);
        while let Some(index) = open.pop() {
            members.push(index);
            let before = nodes[index].inputs.iter().filter_map(|name| writer.get(name.as_str()).copied());
            let mut next: Vec<usize> = before.collect();
            for name in &nodes[index].outputs {
                // Once is enough: otherwise a value with many readers would be processed once for each of
                // them.
                next.extend(readers.remove(name.as_str()).unwrap_or_default());
            }
            for index in next {
                if !std::mem::replace(&mut seen[index], true) {
                    open.push(index);
                }
            }
        }
        members.sort_unstable();
        let types: BTreeSet<&str> = members.iter().map(|&index| nodes[index].op_type.as_str()).collect();
        found.push(FloatIsland {
            nodes: members.iter().map(|&index| SourceNode::label(&nodes[index])).collect(),
            op_types: types.into_iter().map(str::to_owned).collect(),
        });
    }
    found
}
