//! Running count, mean, deviation and range of latencies.

use crate::store::bounds::MOST;
use serde::{Deserialize, Serialize};

/// Sums of latencies, in nanoseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Moments {
    pub count: u64,
    pub mean_ns: f64,
    sum_squares: f64,
    pub min_ns: u64,
    pub max_ns: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, mean_ns: 0.0, sum_squares: 0.0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Moments {
    /// False for impossible sums. `seen` is the count of the accompanying histogram.
    pub fn is_sound(&self, seen: u64) -> bool {
        let range = self.min_ns <= self.max_ns && self.max_ns < MOST;
        self.count == seen
            && self.count < MOST
            && (self.count == 0 || range)
            && self.mean_ns.is_finite()
            && self.sum_squares.is_finite()
    }

    /// Adds one latency (Welford's update).
    pub fn push(&mut self, latency_ns: u64) {
        self.count += 1;
        let value = latency_ns as f64;
        let delta = value - self.mean_ns;
        self.mean_ns += delta / self.count as f64;
        self.sum_squares += delta * (value - self.mean_ns);
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Adds `times` equal ones.
    pub fn push_for(&mut self, times: u64, latency_ns: u64) {
        let (old, new) = (self.count as f64, times as f64);
        let delta = latency_ns as f64 - self.mean_ns;
        self.count += times;
        self.mean_ns += delta * new / self.count as f64;
        self.sum_squares += delta * delta * old * new / self.count as f64;
        self.widen(&Self { min_ns: latency_ns, max_ns: latency_ns, ..*self });
    }

    /// Extends the range to include the other's.
    pub fn widen(&mut self, other: &Self) {
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Mean, in microseconds.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean_ns / 1000.0)
    }

    /// Sample standard deviation, in microseconds; `None` below two samples.
    pub fn stddev_us(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.sum_squares / (self.count - 1) as f64).sqrt() / 1000.0)
    }

    /// Minimum, in microseconds.
    pub fn min_us(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min_ns as f64 / 1000.0)
    }

    /// Maximum, in microseconds.
    pub fn max_us(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max_ns as f64 / 1000.0)
    }
}
