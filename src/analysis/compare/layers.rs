//! Layers of several runs side by side.

use super::Side;
use super::align::{Key, Matched, align};
use serde::Serialize;
use std::collections::BTreeMap;

/// Op types that backends fuse with the op before them.
const ACTIVATIONS: [&str; 16] = [
    "ElementWiseNeuron",
    "Relu",
    "Relu1",
    "Relu6",
    "ReluMinMax",
    "Prelu",
    "HardSwish",
    "Sigmoid",
    "Tanh",
    "Elu",
    "Gelu",
    "Quantize",
    "Dequantize",
    "Convert",
    "Cast",
    "Batchnorm",
];

/// A layer: an op, or several that one of the backends runs as one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerRow {
    /// Name of its leading op, in the first column that has it.
    pub name: String,
    /// Type of that op; `None` for rows that a backend added itself.
    #[serde(rename = "type")]
    pub op_type: Option<String>,
    /// Names of the ops that belong to it because a backend runs them as one.
    pub fused: Vec<String>,
    /// How its ops were matched in the other columns: the least certain match.
    pub matched: Matched,
    /// One cell per column.
    pub cells: Vec<LayerCell>,
    /// Position in the order of the graph.
    pub order: usize,
}

/// A layer in one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerCell {
    /// Names of the run's own ops; empty if it has none.
    pub ops: Vec<String>,
    /// Share of the clean mean latency, microseconds; `None` if the run has no time for it.
    pub time_us: Option<f64>,
    /// Time minus that of the baseline, microseconds.
    pub difference_us: Option<f64>,
}

/// Sort orders of the layers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LayerSort {
    /// Largest difference first, in either direction.
    #[default]
    Difference,
    /// Largest speed-up first.
    Winners,
    /// Largest slowdown first.
    Losers,
    /// Longest time in any column first.
    Time,
    /// Graph order.
    Order,
    /// By name.
    Name,
}

/// Ops of one type in all columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypeRow {
    /// Op type.
    #[serde(rename = "type")]
    pub op_type: String,
    /// One cell per column.
    pub cells: Vec<TypeCell>,
}

/// Ops of one type in one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TypeCell {
    /// Number of ops of the type.
    pub ops: u64,
    /// Time of the layers they lead, microseconds; `None` if the run has no times.
    pub time_us: Option<f64>,
}

impl LayerRow {
    /// The largest absolute difference.
    pub fn largest_difference(&self) -> f64 {
        let differences = self.cells.iter().filter_map(|cell| cell.difference_us);
        differences.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0)
    }

    fn longest(&self) -> f64 {
        self.cells.iter().filter_map(|cell| cell.time_us).fold(0.0, f64::max)
    }
}

/// Sorts layers; ties keep the graph's order.
pub fn sort_layers(rows: &mut [LayerRow], sort: LayerSort) {
    rows.sort_by_key(|row| row.order);
    match sort {
        LayerSort::Order => {}
        LayerSort::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        LayerSort::Time => rows.sort_by(|a, b| b.longest().total_cmp(&a.longest())),
        LayerSort::Difference => {
            rows.sort_by(|a, b| b.largest_difference().abs().total_cmp(&a.largest_difference().abs()));
        }
        LayerSort::Winners => rows.sort_by(|a, b| a.largest_difference().total_cmp(&b.largest_difference())),
        LayerSort::Losers => rows.sort_by(|a, b| b.largest_difference().total_cmp(&a.largest_difference())),
    }
}

/// One op per column that has it.
struct Row {
    members: Vec<Option<usize>>,
    first: usize,
    matched: Matched,
}

/// Aligns the ops of all runs, and merges those a backend runs as one.
pub fn layers(sides: &[Side], baseline: usize) -> Vec<LayerRow> {
    let rows = aligned(sides);
    let mut groups = Groups::new(rows.len());
    for (column, side) in sides.iter().enumerate() {
        let mut row_of = vec![usize::MAX; side.ops.len()];
        for (at, row) in rows.iter().enumerate() {
            if let Some(op) = row.members[column] {
                row_of[op] = at;
            }
        }
        for (op, partner) in fused(side) {
            groups.join(row_of[op], row_of[partner]);
        }
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in 0..rows.len() {
        members.entry(groups.find(at)).or_default().push(at);
    }
    let mut result: Vec<LayerRow> = members.values().map(|members| layer(sides, &rows, members, baseline)).collect();
    result.sort_by_key(|row| row.order);
    result
}

fn layer(sides: &[Side], rows: &[Row], members: &[usize], baseline: usize) -> LayerRow {
    let op = |row: &Row| row.members[row.first].map(|at| &sides[row.first].ops[at]);
    // The op that computes leads; its activation follows.
    let lead = members.iter().copied().max_by_key(|at| {
        let macs = op(&rows[*at]).and_then(|op| op.macs).unwrap_or(0);
        (macs, std::cmp::Reverse(*at))
    });
    let lead = lead.unwrap_or(members[0]);
    let name = |at: usize| op(&rows[at]).map(|op| op.name.clone()).unwrap_or_default();
    let mut cells: Vec<LayerCell> = (0..sides.len())
        .map(|column| {
            let ops: Vec<usize> = members.iter().filter_map(|at| rows[*at].members[column]).collect();
            let times: Vec<f64> = ops.iter().filter_map(|at| sides[column].ops[*at].time_us).collect();
            LayerCell {
                ops: ops.iter().map(|at| sides[column].ops[*at].name.clone()).collect(),
                time_us: (!times.is_empty()).then(|| times.iter().sum()),
                difference_us: None,
            }
        })
        .collect();
    let base = cells.get(baseline).and_then(|cell| cell.time_us);
    for cell in cells.iter_mut().enumerate().filter(|(column, _)| *column != baseline).map(|(_, cell)| cell) {
        cell.difference_us = cell.time_us.zip(base).map(|(time, base)| time - base);
    }
    LayerRow {
        name: name(lead),
        op_type: op(&rows[lead]).and_then(|op| op.op_type.clone()),
        fused: members.iter().filter(|at| **at != lead).map(|at| name(*at)).collect(),
        matched: members.iter().map(|at| rows[*at].matched).max().unwrap_or(Matched::Alone),
        cells,
        order: members[0],
    }
}

/// All ops of all runs, each once, in graph order.
fn aligned(sides: &[Side]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (column, side) in sides.iter().enumerate() {
        let of = |column: usize, at: usize| {
            let op = &sides[column].ops[at];
            Key { name: &op.name, op_type: op.op_type.as_deref(), macs: op.macs }
        };
        let known: Vec<Key<'_>> =
            rows.iter().filter_map(|row| row.members[row.first].map(|at| of(row.first, at))).collect();
        let ops: Vec<Key<'_>> = (0..side.ops.len()).map(|at| of(column, at)).collect();
        let found = align(&known, &ops);
        // A new op is placed after the op it follows.
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); rows.len() + 1];
        let mut place = 0;
        for (op, found) in found.into_iter().enumerate() {
            match found {
                Some((row, matched)) => {
                    let row_matched = &mut rows[row].matched;
                    *row_matched = if *row_matched == Matched::Alone { matched } else { matched.max(*row_matched) };
                    rows[row].members[column] = Some(op);
                    place = row + 1;
                }
                None => behind[place].push(op),
            }
        }
        let fresh = |op: usize| {
            let mut members = vec![None; sides.len()];
            members[column] = Some(op);
            Row { members, first: column, matched: Matched::Alone }
        };
        let mut merged = Vec::with_capacity(rows.len());
        merged.extend(behind[0].iter().map(|op| fresh(*op)));
        for (row, behind) in rows.into_iter().zip(&behind[1..]) {
            merged.push(row);
            merged.extend(behind.iter().map(|op| fresh(*op)));
        }
        rows = merged;
    }
    rows
}

/// Ops without their own time in a run that has times, and the op each runs with: an activation joins the op
/// before it, another op the activation after it (HTP reports the time of both under the activation).
fn fused(side: &Side) -> Vec<(usize, usize)> {
    if side.ops.iter().all(|op| op.time_us.is_none()) {
        return Vec::new();
    }
    let mut consumers: Vec<Vec<usize>> = vec![Vec::new(); side.ops.len()];
    for (at, op) in side.ops.iter().enumerate() {
        if let Some(producer) = op.producer.filter(|producer| *producer < side.ops.len()) {
            consumers[producer].push(at);
        }
    }
    let is_activation = |at: usize| side.ops[at].op_type.as_deref().is_some_and(|kind| ACTIVATIONS.contains(&kind));
    let partner = |at: usize| {
        let op = &side.ops[at];
        if op.time_us.is_some() || op.op_type.is_none() {
            return None;
        }
        let behind = match consumers[at].as_slice() {
            [only] if is_activation(*only) => Some(*only),
            _ => None,
        };
        if is_activation(at) { op.producer.or(behind) } else { behind.or(op.producer) }
    };
    (0..side.ops.len()).filter_map(|at| partner(at).map(|partner| (at, partner))).collect()
}

/// Disjoint sets of rows; the first row of a set represents it.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn find(&mut self, at: usize) -> usize {
        let mut root = at;
        while self.0[root] != root {
            self.0[root] = self.0[self.0[root]];
            root = self.0[root];
        }
        root
    }

    fn join(&mut self, a: usize, b: usize) {
        if a >= self.0.len() || b >= self.0.len() {
            return;
        }
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// Totals by op type, longest first; a fused op's time counts for the op leading its layer.
pub fn type_totals(sides: &[Side], layers: &[LayerRow]) -> Vec<TypeRow> {
    let mut totals: BTreeMap<&str, Vec<TypeCell>> = BTreeMap::new();
    for (column, side) in sides.iter().enumerate() {
        for kind in side.ops.iter().filter_map(|op| op.op_type.as_deref()) {
            totals.entry(kind).or_insert_with(|| vec![TypeCell::default(); sides.len()])[column].ops += 1;
        }
    }
    for layer in layers {
        let Some(cells) = layer.op_type.as_deref().and_then(|kind| totals.get_mut(kind)) else { continue };
        for (total, cell) in cells.iter_mut().zip(&layer.cells) {
            if let Some(time) = cell.time_us {
                *total.time_us.get_or_insert(0.0) += time;
            }
        }
    }
    let mut rows: Vec<TypeRow> =
        totals.into_iter().map(|(op_type, cells)| TypeRow { op_type: op_type.to_owned(), cells }).collect();
    let longest = |row: &TypeRow| row.cells.iter().filter_map(|cell| cell.time_us).fold(0.0, f64::max);
    rows.sort_by(|a, b| longest(b).total_cmp(&longest(a)));
    rows
}
