//! Changes of axes that a tensor's shape does not show: channels that moved between axes of equal size.
//! Neighbouring tensors in the graph reveal them.

use super::layout::Layout;
use super::pairs::Pair;
use crate::models::{Graph, TensorKind};

/// Ops that change the order of axes.
const MOVE_AXES: [&str; 5] = ["Transpose", "Reshape", "DepthToSpace", "SpaceToDepth", "Permute"];

/// For pairs whose shapes allow several orders, takes over the order of the pairs they are computed from, or
/// that are computed from them. Inputs and outputs of the graph keep theirs, since programs fill and read
/// them.
pub fn settle(pairs: &mut [Pair], test: &Graph) {
    let mut open: Vec<bool> = pairs.iter().map(|pair| is_open(pair, test)).collect();
    // Forward from known pairs, back to their sources, and forward again.
    forth(pairs, &mut open);
    back(pairs, &mut open, test);
    forth(pairs, &mut open);
}

fn is_open(pair: &Pair, test: &Graph) -> bool {
    pair.layout == Layout::Same
        && Layout::moves_unseen(&pair.test.tensor.shape)
        && pair.test.tensor.kind == TensorKind::Native
        && keeps_axes(pair, test)
}

fn keeps_axes(pair: &Pair, test: &Graph) -> bool {
    pair.test.op.and_then(|op| test.ops.get(op)).is_some_and(|op| !MOVE_AXES.contains(&op.op_type.as_str()))
}

/// The axis order of a known pair of the same rank, if it applies to its neighbours.
fn told(pairs: &[Pair], open: &[bool], at: usize, rank: usize) -> Option<Layout> {
    let pair = &pairs[at];
    let known = !open[at] && pair.test.tensor.kind == TensorKind::Native && pair.test.tensor.shape.len() == rank;
    known.then(|| pair.layout.clone())
}

fn forth(pairs: &mut [Pair], open: &mut [bool]) {
    for at in 0..pairs.len() {
        if !open[at] {
            continue;
        }
        let rank = pairs[at].test.tensor.shape.len();
        let found = pairs[at].sources.iter().find_map(|&source| told(pairs, open, source, rank));
        if let Some(layout) = found {
            (pairs[at].layout, open[at]) = (layout, false);
        }
    }
}

fn back(pairs: &mut [Pair], open: &mut [bool], test: &Graph) {
    for at in (0..pairs.len()).rev() {
        let rank = pairs[at].test.tensor.shape.len();
        let Some(layout) = told(pairs, open, at, rank).filter(|_| keeps_axes(&pairs[at], test)) else { continue };
        for source in pairs[at].sources.clone() {
            if open[source] && pairs[source].test.tensor.shape.len() == rank {
                (pairs[source].layout, open[source]) = (layout.clone(), false);
            }
        }
    }
}
