//! Time series of counters, bounded by age.

use crate::event::CounterInfo;
use std::collections::VecDeque;

/// Points kept per counter: ten minutes at 10 Hz.
pub const SERIES_CAPACITY: usize = 6_000;

/// One counter's recent values and overall extremes.
#[derive(Debug, Clone)]
pub struct CounterSeries {
    /// What it is.
    pub info: CounterInfo,
    points: VecDeque<(u64, Option<f64>)>,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl CounterSeries {
    /// An empty series.
    pub fn new(info: CounterInfo) -> Self {
        Self { info, points: VecDeque::new(), count: 0, sum: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    /// Adds a tick; `None` is a gap.
    pub fn push(&mut self, t_us: u64, value: Option<f64>) {
        if self.points.len() == SERIES_CAPACITY {
            self.points.pop_front();
        }
        let value = value.filter(|v| v.is_finite());
        self.points.push_back((t_us, value));
        if let Some(value) = value {
            self.count += 1;
            self.sum += value;
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
    }

    /// Recent points, oldest first: (host monotonic microseconds, value).
    pub fn points(&self) -> &VecDeque<(u64, Option<f64>)> {
        &self.points
    }

    /// Newest value; `None` if the newest tick is a gap.
    pub fn latest(&self) -> Option<f64> {
        self.points.back().and_then(|point| point.1)
    }

    /// Mean, smallest and largest value of the whole session.
    pub fn summary(&self) -> Option<(f64, f64, f64)> {
        (self.count > 0).then(|| (self.sum / self.count as f64, self.min, self.max))
    }

    /// Values seen.
    pub fn count(&self) -> u64 {
        self.count
    }
}
