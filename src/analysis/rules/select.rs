//! Selects the layers that a rule concerns.

use super::graph::{Node, Nodes};
use super::rule::OpTest;

/// Ops that pass the test and, if the test is a chain, the ops that follow in it; in the order of
/// composition.
pub fn select(nodes: &Nodes<'_>, test: &OpTest) -> Vec<usize> {
    let candidates = nodes.candidates(&test.kind.0).into_iter();
    let first: Vec<usize> = candidates.filter(|&index| passes(nodes, index, test)).collect();
    if test.then.is_empty() {
        return first;
    }
    // Forwards, everything reachable step by step; then backwards, whatever leads to the end.
    let mut steps = vec![first];
    for step in &test.then {
        let reached = steps.last().into_iter().flatten().flat_map(|&index| readers(nodes, index));
        let mut next: Vec<usize> = reached.copied().filter(|&index| passes(nodes, index, step)).collect();
        next.sort_unstable();
        next.dedup();
        steps.push(next);
    }
    let mut involved = steps.pop().unwrap_or_default();
    let mut later = involved.clone();
    while let Some(mut step) = steps.pop() {
        step.retain(|&index| readers(nodes, index).iter().any(|reader| later.binary_search(reader).is_ok()));
        involved.extend(&step);
        later = step;
    }
    involved.sort_unstable();
    involved.dedup();
    involved
}

fn readers<'n>(nodes: &'n Nodes<'_>, index: usize) -> &'n [usize] {
    nodes.list.get(index).map_or(&[], |node| &node.readers)
}

fn passes(nodes: &Nodes<'_>, index: usize, test: &OpTest) -> bool {
    let Some(node) = nodes.list.get(index) else { return false };
    let among = |others: &[usize], test: &OpTest| others.iter().any(|&other| passes(nodes, other, test));
    is_of_kind(node, test)
        && test.is.iter().all(|property| property.holds(node))
        && !test.not.iter().any(|property| property.holds(node))
        && test.measure.iter().all(|(measure, range)| measure.of(node).is_some_and(|value| range.holds(value)))
        && test.reads.as_ref().is_none_or(|test| among(&node.producers, test))
        && test.read_by.as_ref().is_none_or(|test| among(&node.readers, test))
}

fn is_of_kind(node: &Node<'_>, test: &OpTest) -> bool {
    test.kind.0.is_empty() || node.kind.is_some_and(|kind| test.kind.0.contains(&kind))
}
