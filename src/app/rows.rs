//! The layers table behind the pane: figures of every op, filtered and sorted, cached until data or settings change.
//!
//! Percentiles of thousands of histograms cost more than a frame allows, so they are computed in slices, one per frame,
//! and the order is updated when a round is complete.

use crate::store::Run;

/// Rows whose percentiles are computed per frame.
const SLICE: usize = 512;
/// A table that is re-sorted on every frame is unreadable.
const REFRESH_US: u64 = 250_000;

/// Sortable columns, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The backend's order.
    Order,
    /// Name.
    Name,
    /// Op type.
    Type,
    /// Mean.
    Mean,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Share of the sum over all ops.
    Share,
    /// Multiply-accumulates.
    Macs,
}

impl Column {
    /// All columns.
    pub const ALL: [Self; 8] =
        [Self::Order, Self::Name, Self::Type, Self::Mean, Self::P95, Self::P99, Self::Share, Self::Macs];

    /// The column `step` further, wrapping around.
    #[must_use]
    pub fn step(self, step: isize) -> Self {
        let at = Self::ALL.iter().position(|column| *column == self).unwrap_or(0);
        let len = Self::ALL.len();
        let step = step.rem_euclid(8).unsigned_abs();
        Self::ALL[(at + step) % len]
    }

    /// True if larger values come first by default.
    pub fn descends(self) -> bool {
        matches!(self, Self::Mean | Self::P95 | Self::P99 | Self::Share | Self::Macs)
    }
}

/// Order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// The column to sort by.
    pub column: Column,
    /// Larger first.
    pub descending: bool,
}

impl Default for Sort {
    fn default() -> Self {
        Self { column: Column::Mean, descending: true }
    }
}

/// The kind of times in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeBasis {
    /// Nothing was measured.
    #[default]
    Nothing,
    /// Microseconds, scaled so that the ops add up to the clean latency.
    Scaled,
    /// Microseconds as measured under profiling.
    Measured,
    /// Accelerator cycles: no time can be derived.
    Cycles,
}

/// Figures of one op, in the backend's unit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OpFigures {
    /// Mean.
    pub mean: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Share of the sum over all ops, 0 to 1.
    pub share: f64,
}

/// The table.
#[derive(Debug, Clone, Default)]
pub struct LayerRows {
    /// Figures by row of the op table.
    pub figures: Vec<OpFigures>,
    /// Rows of the op table in display order.
    pub order: Vec<u32>,
    /// The kind of times shown.
    pub basis: TimeBasis,
    /// Microseconds (or cycles) shown per unit of the figures.
    pub factor: f64,
    /// Microseconds are derived from cycles.
    pub derived: bool,
    /// Inferences behind the figures.
    pub inferences: u64,
    /// Largest share, for the bars.
    pub max_share: f64,
    matching: Vec<u32>,
    key: Option<(u32, usize)>,
    sorted_by: Option<Sort>,
    filtered_by: Option<String>,
    refreshed_us: u64,
    cursor: usize,
    round: u64,
    rounds_due: bool,
}

impl LayerRows {
    /// Updates the table. Returns true if there is more to do at once (a slice of percentiles is left).
    ///
    /// With `frozen` the figures stay and only sorting and filtering are applied.
    pub fn refresh(&mut self, run: &Run, sort: Sort, filter: &str, now_us: u64, frozen: bool) -> bool {
        let rows = run.ops.rows().len();
        let key = Some((run.id.0, rows));
        let other = self.key != key;
        if other {
            *self = Self { key, figures: vec![OpFigures::default(); rows], ..Self::default() };
        }
        let changed = self.inferences != run.ops.inferences() || Self::basis_of(run) != (self.basis, self.factor);
        let due = other || run.is_ended() || now_us.saturating_sub(self.refreshed_us) >= REFRESH_US;
        let mut resort = other || self.sorted_by != Some(sort);
        if changed && due && (!frozen || other) {
            self.take_means(run);
            self.refreshed_us = now_us;
            // A round in progress is finished first, so that rows at the end of the table get their turn.
            self.rounds_due = true;
            resort = true;
        }
        if frozen && (self.cursor > 0 || self.rounds_due) {
            // Everything at once: nothing changes from here on.
            self.take_percentiles(run, rows);
            resort = true;
        } else if self.cursor > 0 || self.rounds_due {
            resort |= self.take_percentiles(run, SLICE) && matches!(sort.column, Column::P95 | Column::P99);
        }
        if self.filtered_by.as_deref() != Some(filter) {
            self.filter(run, filter);
            resort = true;
        }
        if resort {
            self.sort(run, sort);
        }
        self.cursor > 0 || self.rounds_due
    }

    /// A displayed figure: microseconds, or cycles if no time can be derived.
    pub fn shown(&self, value: Option<f64>) -> Option<f64> {
        value.map(|value| value * self.factor)
    }

    fn basis_of(run: &Run) -> (TimeBasis, f64) {
        if run.ops.inferences() == 0 {
            return (TimeBasis::Nothing, 1.0);
        }
        let total = run.ops.mean_total().filter(|total| *total > 0.0);
        match (run.service().mean_us(), total, run.us_per_op_unit()) {
            (Some(clean), Some(total), _) => (TimeBasis::Scaled, clean / total),
            (_, _, Some(measured)) => (TimeBasis::Measured, measured),
            _ => (TimeBasis::Cycles, 1.0),
        }
    }

    fn take_means(&mut self, run: &Run) {
        (self.basis, self.factor) = Self::basis_of(run);
        self.derived = run.op_time_is_derived() && self.basis != TimeBasis::Cycles;
        self.inferences = run.ops.inferences();
        self.max_share = 0.0;
        for (row, (figures, stats)) in self.figures.iter_mut().zip(run.ops.stats()).enumerate() {
            figures.mean = stats.mean();
            figures.share = run.ops.share(row);
            self.max_share = self.max_share.max(figures.share);
        }
    }

    /// Computes the percentiles of the next `count` rows; true if that completed a round.
    fn take_percentiles(&mut self, run: &Run, count: usize) -> bool {
        if self.cursor == 0 {
            self.rounds_due = false;
            self.round += 1;
        }
        let end = (self.cursor + count).min(self.figures.len());
        for (figures, stats) in self.figures[self.cursor..end].iter_mut().zip(&run.ops.stats()[self.cursor..end]) {
            figures.p95 = stats.percentile(95.0);
            figures.p99 = stats.percentile(99.0);
        }
        self.cursor = if end == self.figures.len() { 0 } else { end };
        self.cursor == 0
    }

    fn filter(&mut self, run: &Run, filter: &str) {
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        let rows = 0..u32::try_from(run.ops.rows().len()).unwrap_or(u32::MAX);
        self.matching = rows
            .filter(|&row| {
                let name = run.ops.rows()[row as usize].name.to_lowercase();
                let op_type = run.op(row as usize).map(|op| op.op_type.to_lowercase()).unwrap_or_default();
                let node = run.source_of_row(row as usize).map(str::to_lowercase).unwrap_or_default();
                words.iter().all(|word| [&name, &op_type, &node].iter().any(|text| text.contains(word)))
            })
            .collect();
        self.filtered_by = Some(filter.to_owned());
    }

    fn sort(&mut self, run: &Run, sort: Sort) {
        self.sorted_by = Some(sort);
        self.order.clone_from(&self.matching);
        let op_type = |row: u32| run.op(row as usize).map_or("", |op| op.op_type.as_str());
        let name = |row: u32| run.ops.rows()[row as usize].name.as_str();
        let order = &mut self.order;
        let figures = &self.figures;
        match sort.column {
            Column::Order => {}
            Column::Name => order.sort_by(|a, b| name(*a).cmp(name(*b))),
            Column::Type => order.sort_by(|a, b| op_type(*a).cmp(op_type(*b))),
            column => {
                // Missing figures come last in both directions; equal ones keep the backend's order.
                let value = |row: u32| {
                    let figures = &figures[row as usize];
                    match column {
                        Column::P95 => figures.p95,
                        Column::P99 => figures.p99,
                        Column::Macs => run.op(row as usize).and_then(|op| op.macs).map(|macs| macs as f64),
                        _ => figures.mean,
                    }
                };
                let sign = if sort.descending { -1.0 } else { 1.0 };
                let mut keyed: Vec<(f64, u32)> =
                    order.iter().map(|&row| (value(row).map_or(f64::INFINITY, |value| sign * value), row)).collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
                order.clear();
                order.extend(keyed.into_iter().map(|(_, row)| row));
                return;
            }
        }
        if sort.descending {
            order.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_go_around() {
        assert_eq!(Column::Macs.step(1), Column::Order);
        assert_eq!(Column::Order.step(-1), Column::Macs);
        assert!(Column::P99.descends() && !Column::Name.descends());
    }
}
