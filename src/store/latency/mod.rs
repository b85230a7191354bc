//! Latency of one phase: samples in bounded memory, exact moments, percentiles from an HDR histogram, and its
//! launches.

mod course;
mod digest;
mod launch;
mod merge;
mod moments;
mod ranks;
#[cfg(test)]
mod tests;

pub use course::{EXACT_LIMIT, SLOWEST_KEPT, Slow};
pub use launch::{Launch, LaunchFigures, MAX_LAUNCHES};
pub use merge::nanoseconds;
pub use ranks::between_ranks;

use super::histogram;
use course::Course;
use hdrhistogram::Histogram;
use launch::Launches;
use moments::Moments;
use ranks::{order_statistic_ranks, rank};
use serde::{Deserialize, Serialize};

/// The reported percentiles.
pub const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// Latency statistics, in microseconds outside and nanoseconds inside. Count, mean, deviation, range and
/// percentiles cover every inference. Beyond [`EXACT_LIMIT`] inferences, only one in [`LatencyStats::stride`]
/// is kept as a single latency with its start, along with the slowest ones. So memory is bounded however long
/// a phase lasts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LatencyStats {
    #[serde(with = "histogram::of_latencies")]
    histogram: Histogram<u32>,
    moments: Moments,
    course: Course,
    launches: Launches,
    /// Number of inferences that each pushed latency represents.
    weight: u64,
    /// Start of the very first inference.
    began_us: u64,
    /// Start of the current launch's first inference.
    first_start_us: u64,
    last_end_us: u64,
    /// First start and last end of each launch; those beyond [`MAX_LAUNCHES`] count as one.
    windows_us: Vec<(u64, u64)>,
    /// Wall time of the launches before the current one.
    past_us: u64,
    /// True if the next inference starts a launch.
    broken: bool,
}

/// A percentile, its support and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// The percentile, 0 to 100.
    pub percent: f64,
    /// Value, in microseconds; `None` below `100 / (100 - percent)` samples, because then not even one sample
    /// is expected beyond it and any figure would be made up.
    pub value_us: Option<f64>,
    /// Number of samples it is based on.
    pub samples: u64,
    /// 95 % interval from order statistics, in microseconds. A bound is `None` if too few samples are beyond
    /// it; both are if there is no value.
    pub ci95_us: (Option<f64>, Option<f64>),
}

fn new_histogram() -> Histogram<u32> {
    histogram::new(histogram::LATENCY_DIGITS)
}

impl Default for LatencyStats {
    fn default() -> Self {
        Self {
            histogram: new_histogram(),
            moments: Moments::default(),
            course: Course::default(),
            launches: Launches::default(),
            weight: 1,
            began_us: 0,
            first_start_us: 0,
            last_end_us: 0,
            windows_us: Vec::new(),
            past_us: 0,
            broken: true,
        }
    }
}

impl LatencyStats {
    /// Adds one inference.
    pub fn push(&mut self, start_us: u64, latency_ns: u64) {
        if self.is_empty() {
            self.began_us = start_us;
        }
        if std::mem::take(&mut self.broken) {
            if !self.is_empty() {
                self.launches.end((&self.histogram, &self.moments), self.course.len());
                self.course.break_group();
            }
            self.past_us += self.last_end_us.saturating_sub(self.first_start_us);
            self.first_start_us = start_us;
            self.last_end_us = start_us;
            if self.windows_us.len() < MAX_LAUNCHES {
                self.windows_us.push((start_us, start_us));
            }
        }
        self.last_end_us = self.last_end_us.max(start_us.saturating_add(latency_ns.div_ceil(1000)));
        if let Some(window) = self.windows_us.last_mut() {
            window.1 = self.last_end_us;
        }
        // The histogram resizes itself; it can refuse only beyond 2^63, which the clock cannot reach.
        let _ = self.histogram.record(latency_ns.max(1));
        self.moments.push(latency_ns);
        self.launches.push(latency_ns);
        if self.course.push(start_us, latency_ns) {
            let mut last = self.course.len();
            self.course.halve(self.launches.ends_mut().chain([&mut last]));
        }
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.moments.count
    }

    /// True if nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.moments.count == 0
    }

    /// The samples in order, in microseconds: all of them, or every [`LatencyStats::stride`]-th.
    pub fn samples_us(&self) -> &[f32] {
        self.course.samples_us()
    }

    /// Number of samples that each kept one represents; 1 while all are kept.
    pub fn stride(&self) -> u64 {
        self.course.stride() * self.weight
    }

    /// True if every single latency is kept. Percentiles cover all samples either way.
    pub fn is_exact(&self) -> bool {
        self.stride() == 1
    }

    /// The kept samples in order: start on the host's monotonic clock and latency, both in microseconds.
    pub fn timed(&self) -> impl Iterator<Item = (u64, f32)> + '_ {
        self.course.timed(0..self.course.len())
    }

    /// The slowest samples of all, slowest first, at most [`SLOWEST_KEPT`]; exact and complete however many
    /// samples there are.
    pub fn slowest(&self) -> &[Slow] {
        self.course.slowest()
    }

    /// Number of samples slower than a latency in microseconds, to the resolution of the percentiles (0.1 %).
    pub fn count_above(&self, latency_us: f64) -> u64 {
        if self.is_exact() {
            return self.samples_us().iter().filter(|us| f64::from(**us) > latency_us).count() as u64;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and 0 for no number")]
        let limit = (latency_us * 1000.0) as u64;
        let top = self.histogram.max();
        if limit >= top { 0 } else { self.histogram.count_between(limit.saturating_add(1), top) }
    }

    /// Mean, in microseconds.
    pub fn mean_us(&self) -> Option<f64> {
        self.moments.mean_us()
    }

    /// Sample standard deviation, in microseconds; `None` below two samples.
    pub fn stddev_us(&self) -> Option<f64> {
        self.moments.stddev_us()
    }

    /// Smallest sample, in microseconds.
    pub fn min_us(&self) -> Option<f64> {
        self.moments.min_us()
    }

    /// Largest sample, in microseconds.
    pub fn max_us(&self) -> Option<f64> {
        self.moments.max_us()
    }

    /// Start of the first and end of the last inference, in host monotonic microseconds; includes
    /// interruptions.
    pub fn window_us(&self) -> Option<(u64, u64)> {
        (!self.is_empty()).then_some((self.began_us, self.last_end_us))
    }

    /// The same per launch: something else may have run between two of them.
    pub fn windows_us(&self) -> &[(u64, u64)] {
        &self.windows_us
    }

    /// Ends the launch: what follows comes from a restarted process. The time in between is not counted. It
    /// is not a boundary if there are no inferences before or after it.
    pub fn interrupt(&mut self) {
        self.broken = true;
    }

    /// Wall time from the start of the first to the end of the last inference, without interruptions, in
    /// microseconds.
    pub fn span_us(&self) -> f64 {
        (self.past_us + self.last_end_us.saturating_sub(self.first_start_us)) as f64
    }

    /// Inferences per second over that wall time.
    pub fn throughput_ips(&self) -> Option<f64> {
        let span = self.span_us();
        (!self.is_empty() && span > 0.0).then(|| self.count() as f64 * 1e6 / span)
    }

    /// Value of a percentile in microseconds, if the samples support it.
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        value_of(&self.histogram, &self.moments, percent)
    }

    /// True if this many samples support a percentile: at least one is expected beyond it.
    pub fn supports(count: u64, percent: f64) -> bool {
        // Tolerance for rounding, as in 1 - 0.999.
        count > 0 && count as f64 * (1.0 - percent / 100.0) >= 1.0 - 1e-9
    }

    /// A percentile with its support. `percent` is between 0 and 100, exclusive.
    pub fn percentile(&self, percent: f64) -> Percentile {
        percentile_of(&self.histogram, &self.moments, percent)
    }

    /// Buckets for a histogram of at most `bins` equal steps between the smallest sample and the larger of
    /// p99 and 1.5 times the median: (lower edge in us, count). The last bucket includes all samples beyond
    /// its edge.
    pub fn bins(&self, bins: usize) -> Vec<(f64, u64)> {
        if self.is_empty() || bins == 0 {
            return Vec::new();
        }
        let low = self.moments.min_ns as f64;
        let high = (self.histogram.value_at_quantile(0.99) as f64).max(low + 1.0);
        let step = (high - low) / bins as f64;
        let mut rows: Vec<(f64, u64)> = (0..bins).map(|i| ((low + step * i as f64) / 1000.0, 0)).collect();
        for value in self.histogram.iter_recorded() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the bins")]
            let index = (((value.value_iterated_to() as f64 - low) / step) as usize).min(bins - 1);
            rows[index].1 += u64::from(value.count_at_value());
        }
        rows
    }
}

fn value_of(histogram: &Histogram<u32>, moments: &Moments, percent: f64) -> Option<f64> {
    let count = moments.count;
    LatencyStats::supports(count, percent).then(|| value_at_rank(histogram, moments, rank(count, percent / 100.0)))
}

fn percentile_of(histogram: &Histogram<u32>, moments: &Moments, percent: f64) -> Percentile {
    let value_us = value_of(histogram, moments, percent);
    let (low, high) = match value_us {
        Some(_) => order_statistic_ranks(moments.count, percent / 100.0),
        None => (None, None),
    };
    let at = |rank: u64| value_at_rank(histogram, moments, rank);
    Percentile { percent, value_us, samples: moments.count, ci95_us: (low.map(at), high.map(at)) }
}

/// Value of the `rank`-th smallest sample (from 1), in microseconds, clamped to the smallest and largest
/// sample.
fn value_at_rank(histogram: &Histogram<u32>, moments: &Moments, rank: u64) -> f64 {
    let quantile = (rank as f64 - 0.5) / moments.count as f64;
    let value = histogram.value_at_quantile(quantile.clamp(0.0, 1.0));
    value.clamp(moments.min_ns, moments.max_ns) as f64 / 1000.0
}
