//! Op times: one small histogram per op, so 5,000 ops stay within tens of megabytes however long the run.

use super::bounds::MOST;
use super::histogram;
use crate::event::{OpRow, OpUnit};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Statistics of one op in its own unit (microseconds or cycles). Percentiles come from a histogram; mean, smallest and
/// largest value are exact.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpStats {
    #[serde(with = "histogram::of_ops")]
    histogram: Histogram<u32>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for OpStats {
    fn default() -> Self {
        Self { histogram: histogram::new(histogram::OP_DIGITS), count: 0, sum: 0, max: 0 }
    }
}

impl OpStats {
    pub(super) fn push(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
        // Refused only beyond 2^63, which no op counter can reach; mean and maximum include it regardless.
        let _ = self.histogram.record(value);
    }

    /// Samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Largest sample.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max as f64)
    }

    /// Percentile, `None` if fewer than `100 / (100 - percent)` samples exist.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let supported = self.count > 0 && self.count as f64 * (1.0 - percent / 100.0) >= 1.0 - 1e-9;
        supported.then(|| self.histogram.value_at_quantile(percent / 100.0).min(self.max) as f64)
    }
}

/// Op times of one run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct OpTable {
    rows: Vec<OpRow>,
    stats: Vec<OpStats>,
    inferences: u64,
    total: u64,
    mismatched: u64,
    /// True while another process declares different rows.
    foreign: bool,
}

impl OpTable {
    /// Sets the rows. If set again to the same rows (a later phase), the statistics stay.
    pub fn declare(&mut self, rows: &[OpRow]) {
        if !alike(&self.rows, rows) {
            self.stats = vec![OpStats::default(); rows.len()];
            self.rows = rows.to_vec();
            self.inferences = 0;
            self.total = 0;
        }
    }

    /// A later launch declares its rows: the statistics stay, and rows different from the first launch's are not
    /// folded.
    pub fn declare_again(&mut self, rows: &[OpRow]) {
        if self.rows.is_empty() {
            self.declare(rows);
        }
        self.foreign = !alike(&self.rows, rows);
    }

    /// Adds the values of one inference; arrays of another length than declared are counted and left out.
    pub fn push(&mut self, values: &[u64]) {
        if self.foreign || values.len() != self.rows.len() {
            self.mismatched += 1;
            return;
        }
        self.inferences += 1;
        for (stats, &value) in self.stats.iter_mut().zip(values) {
            stats.push(value);
            self.total = self.total.saturating_add(value);
        }
    }

    /// False for a state that folding events cannot produce.
    pub fn is_sound(&self) -> bool {
        let is_sound =
            |op: &OpStats| op.count == op.histogram.len() && op.count < MOST && op.sum < MOST && op.max < MOST;
        self.rows.len() == self.stats.len()
            && [self.inferences, self.total, self.mismatched].iter().all(|number| *number < MOST)
            && self.stats.iter().all(is_sound)
    }

    /// The rows in the backend's order.
    pub fn rows(&self) -> &[OpRow] {
        &self.rows
    }

    /// Statistics by row.
    pub fn stats(&self) -> &[OpStats] {
        &self.stats
    }

    /// Inferences folded in.
    pub fn inferences(&self) -> u64 {
        self.inferences
    }

    /// Inferences left out because their op list differed from the declared one.
    pub fn mismatched(&self) -> u64 {
        self.mismatched
    }

    /// Share of a row in the sum over all rows, 0 to 1; 0 while nothing was measured.
    pub fn share(&self, row: usize) -> f64 {
        match self.stats.get(row) {
            Some(stats) if self.total > 0 => stats.sum as f64 / self.total as f64,
            _ => 0.0,
        }
    }

    /// Mean of the sum over all rows, in the rows' unit.
    pub fn mean_total(&self) -> Option<f64> {
        (self.inferences > 0).then(|| self.total as f64 / self.inferences as f64)
    }

    /// Unit of the rows, if there are any.
    pub fn unit(&self) -> Option<OpUnit> {
        self.rows.first().map(|row| row.unit)
    }
}

fn alike(rows: &[OpRow], others: &[OpRow]) -> bool {
    rows.len() == others.len() && rows.iter().zip(others).all(|(row, other)| row.is_like(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(n: usize) -> Vec<OpRow> {
        (0..n).map(|i| OpRow { name: format!("op{i}"), op: None, unit: OpUnit::Us, htp_op: None }).collect()
    }

    #[test]
    fn shares_sum_to_one() {
        let mut table = OpTable::default();
        table.declare(&rows(3));
        for i in 0..100 {
            table.push(&[i, 2 * i, 0]);
        }
        let sum: f64 = (0..3).map(|i| table.share(i)).sum();
        assert!((sum - 1.0).abs() < 1e-12);
        assert!((table.share(1) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(table.stats()[2].mean(), Some(0.0));
        assert_eq!(table.mean_total(), Some(148.5));
    }

    #[test]
    fn foreign_arrays_are_counted_not_folded() {
        let mut table = OpTable::default();
        table.declare(&rows(2));
        table.push(&[1]);
        table.push(&[1, 2]);
        assert_eq!((table.inferences(), table.mismatched()), (1, 1));
        table.declare(&rows(2));
        assert_eq!(table.inferences(), 1, "declaring the same rows again keeps what was measured");
    }

    #[test]
    fn a_later_launch_with_other_rows_takes_nothing_away() {
        let mut table = OpTable::default();
        table.declare(&rows(2));
        table.push(&[1, 2]);
        table.declare_again(&rows(2));
        table.push(&[3, 4]);
        assert_eq!((table.inferences(), table.mismatched()), (2, 0));
        let mut other = rows(2);
        other.reverse();
        table.declare_again(&other);
        table.push(&[5, 6]);
        assert_eq!((table.inferences(), table.mismatched(), table.rows()), (2, 1, rows(2).as_slice()));
        table.declare_again(&rows(2));
        table.push(&[7, 8]);
        assert_eq!(table.inferences(), 3);
    }
}
