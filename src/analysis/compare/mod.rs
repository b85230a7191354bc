//! Runs side by side: figures with intervals, layers, and how the runs differ. Pure functions; a [`Side`] is
//! built from a run in the store, or by `report::comparison` from a result file.

mod accuracy;
mod align;
mod around;
mod between;
mod bootstrap;
mod latency;
mod layers;
mod mismatch;
mod pool;
mod precision;
mod rows;
mod side;
#[cfg(test)]
pub(crate) mod tests;
mod told;

pub use accuracy::{Accuracy, OutputAccuracy, OutputValues, accuracy, same_inputs};
pub use align::{Key, Matched, align, without_numbers};
pub use around::Around;
pub use bootstrap::{MIN_VALUES, RESAMPLES, Resampled, Statistic, relative_interval};
pub use latency::{SERIES_POINTS, Series, SideLatency, SideLaunch};
pub use layers::{LayerCell, LayerRow, LayerSort, TypeCell, TypeRow, layers, sort_layers, type_totals};
pub use mismatch::{Mismatch, mismatches, same_settings};
pub use pool::{families, pool_rounds, pool_rounds_of, pool_same, same_thing, together};
pub use precision::{Arithmetic, GraphFacts, graph_facts};
pub use rows::{Better, Cell, Difference, DifferenceVerdict, Row, differences, figure};
pub use side::{Side, SideCounter, SideFailure, SideOp, SideSetting, counters, producers, refused_op};

use serde::Serialize;
use std::borrow::Cow;

/// Options of a comparison.
#[derive(Debug, Clone, Default)]
pub struct CompareOptions {
    /// The baseline column; `None` for the first with latencies.
    pub baseline: Option<usize>,
    /// Order of the layers.
    pub sort: LayerSort,
    /// Similarity of each column's outputs to the reference's, if known.
    pub accuracy: Vec<Option<Accuracy>>,
}

/// An op that a backend refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedOp {
    /// Column of the run that failed, from 0.
    pub column: usize,
    /// Name of the op.
    pub op: String,
    /// Its type, if another run has it.
    #[serde(rename = "type")]
    pub op_type: Option<String>,
}

/// Several runs side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The baseline column, from 0.
    pub baseline: usize,
    /// Figures.
    pub rows: Vec<Row>,
    /// Layers in the requested order.
    pub layers: Vec<LayerRow>,
    /// Totals by op type.
    pub op_types: Vec<TypeRow>,
    /// Ops that backends refused.
    pub refused: Vec<RefusedOp>,
    /// How the runs differ apart from what is compared.
    pub mismatches: Vec<Mismatch>,
    /// Number of latencies drawn together in the bootstrap, per column.
    pub blocks: Vec<Option<usize>>,
    /// True if latencies exclude queueing delay because the runs' schedules differ.
    pub alone: bool,
}

/// The runs with comparable latencies: if their schedules differ, those of the inferences alone. Latencies
/// from planned starts reflect the schedule as much as the model.
pub fn on_common_ground(sides: &[Side]) -> Cow<'_, [Side]> {
    if !schedules_differ(sides) {
        return Cow::Borrowed(sides);
    }
    let alone = |side: &Side| Side { latency: side.service.clone().or_else(|| side.latency.clone()), ..side.clone() };
    Cow::Owned(sides.iter().map(alone).collect())
}

/// True if the runs with figures were not all paced in the same way.
pub fn schedules_differ(sides: &[Side]) -> bool {
    let mut rates = sides.iter().filter(|side| side.is_measured()).map(|side| side.mode.rate_hz);
    rates.next().is_some_and(|first| rates.any(|rate| rate != first))
}

/// Resamples of each run's latencies. Streams follow the columns, so that the same columns give the same
/// intervals. If all runs have several launches, these decide, and nothing is drawn.
fn resampled(sides: &[Side]) -> Vec<Option<Resampled>> {
    let one = |side: &Side| side.latency.as_ref().is_some_and(|latency| latency.launches.len() < 2);
    if !sides.iter().any(one) {
        return vec![None; sides.len()];
    }
    let of = |(stream, side): (u64, &Side)| {
        let series = side.latency.as_ref()?.series.as_ref()?;
        Resampled::new(&series.values, RESAMPLES, stream)
    };
    (0u64..).zip(sides).map(of).collect()
}

/// Compares runs. The result depends only on the arguments.
pub fn compare(sides: &[Side], options: &CompareOptions) -> Comparison {
    let ground = on_common_ground(sides);
    let (alone, sides) = (matches!(ground, Cow::Owned(_)), ground.as_ref());
    let measured = || sides.iter().position(Side::is_measured).unwrap_or(0);
    let baseline = options.baseline.filter(|baseline| *baseline < sides.len()).unwrap_or_else(measured);
    let resampled = resampled(sides);
    let blocks = resampled.iter().map(|resampled| resampled.as_ref().map(|resampled| resampled.block)).collect();
    let rows = rows::Rows { sides, baseline, resampled }.all(&options.accuracy);
    let mut layers = layers(sides, baseline);
    let op_types = type_totals(sides, &layers);
    sort_layers(&mut layers, options.sort);
    Comparison {
        baseline,
        rows,
        layers,
        op_types,
        refused: refused(sides),
        mismatches: mismatches(sides, baseline),
        blocks,
        alone,
    }
}

fn refused(sides: &[Side]) -> Vec<RefusedOp> {
    let op_type = |name: &str| {
        let mut ops = sides.iter().flat_map(|side| &side.ops);
        ops.find(|op| op.name == name).and_then(|op| op.op_type.clone())
    };
    let of = |(column, side): (usize, &Side)| {
        let op = side.failure.as_ref()?.op.clone()?;
        Some(RefusedOp { column, op_type: op_type(&op), op })
    };
    sides.iter().enumerate().filter_map(of).collect()
}
