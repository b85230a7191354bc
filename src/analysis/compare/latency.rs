//! Latencies of a run for a comparison, from the store or from a file.

use super::Statistic;
use crate::store::{LatencyStats, Launch};
use serde::{Deserialize, Serialize};

/// Latencies kept for the bootstrap; longer runs are thinned evenly.
pub const SERIES_POINTS: usize = 4_000;

/// Latencies, microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct SideLatency {
    /// Number of inferences.
    pub count: u64,
    /// Number of inferences that decides which percentiles are supported: of the smallest part, if rounds
    /// were combined.
    pub support: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub stddev: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// The latencies themselves; `None` for result files from versions that did not keep them.
    pub series: Option<Series>,
    /// Figures per launch; of the whole run if it predates launches.
    pub launches: Vec<SideLaunch>,
}

/// Figures of one launch, microseconds. Figures that its inferences do not support are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SideLaunch {
    /// Number of inferences.
    pub samples: u64,
    /// Mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub stddev: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

impl SideLaunch {
    /// From a launch in the store.
    fn of(launch: &Launch<'_>) -> Self {
        let figures = &launch.figures;
        let percentile = |percent| figures.percentile_us(percent);
        Self {
            samples: figures.count,
            mean: Some(figures.mean_us),
            stddev: figures.stddev_us,
            min: Some(figures.min_us),
            p50: percentile(50.0),
            p95: percentile(95.0),
            p99: percentile(99.0),
        }
    }

    /// One of its figures, microseconds.
    pub fn value(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::P50 => self.p50,
            Statistic::P95 => self.p95,
            Statistic::P99 => self.p99,
            Statistic::Mean => self.mean,
            Statistic::Stddev => self.stddev,
        }
    }
}

/// Latencies in order, every `stride`-th of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// 1 if all of them.
    pub stride: u64,
    /// Microseconds, with nanosecond resolution.
    pub values: Vec<f64>,
}

impl Series {
    /// Thins the samples of a phase evenly.
    pub fn of(stats: &LatencyStats) -> Self {
        let thinned = Self::thinned(stats.samples_us());
        Self { stride: thinned.stride.saturating_mul(stats.stride()), ..thinned }
    }

    /// Thins samples evenly.
    pub fn thinned(samples_us: &[f32]) -> Self {
        let stride = samples_us.len().div_ceil(SERIES_POINTS).max(1);
        let values = samples_us.iter().step_by(stride).map(|&us| (f64::from(us) * 1000.0).round() / 1000.0).collect();
        Self { stride: stride as u64, values }
    }

    /// Limited to [`SERIES_POINTS`] values, whatever its origin.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let step = self.values.len().div_ceil(SERIES_POINTS).max(1);
        self.values = self.values.into_iter().step_by(step).collect();
        self.stride = self.stride.saturating_mul(step as u64);
        self
    }

    /// The series in the store's form, so that percentiles are computed in the same way.
    fn stats(&self) -> LatencyStats {
        let mut stats = LatencyStats::default();
        for us in &self.values {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates, and 0 for no number"
            )]
            stats.push(0, (us * 1000.0).round() as u64);
        }
        stats
    }
}

impl SideLatency {
    /// From a phase in the store.
    pub fn of(stats: &LatencyStats) -> Self {
        Self {
            count: stats.count(),
            support: stats.count(),
            mean: stats.mean_us(),
            stddev: stats.stddev_us(),
            p50: stats.percentile_us(50.0),
            p90: stats.percentile_us(90.0),
            p95: stats.percentile_us(95.0),
            p99: stats.percentile_us(99.0),
            max: stats.max_us(),
            series: Some(Series::of(stats)),
            launches: stats.launches().iter().map(SideLaunch::of).collect(),
        }
    }

    /// The launches; figures without any count as one launch.
    pub fn launches(&self) -> Vec<SideLaunch> {
        let Self { mean, stddev, p50, p95, p99, .. } = *self;
        if self.launches.is_empty() {
            return vec![SideLaunch { samples: self.count, mean, stddev, min: None, p50, p95, p99 }];
        }
        self.launches.clone()
    }

    /// The fastest inference of a typical launch, microseconds: the median over launches; `None` for fewer
    /// than two.
    pub fn fastest_us(&self) -> Option<f64> {
        let mut fastest: Vec<f64> = self.launches.iter().filter_map(|launch| launch.min).collect();
        fastest.sort_by(f64::total_cmp);
        let last = fastest.len().checked_sub(1).filter(|last| *last > 0)?;
        Some(f64::midpoint(fastest[last / 2], fastest[last.div_ceil(2)]))
    }

    /// Any percentile, microseconds; `None` if the inferences do not support it, or if it requires individual
    /// latencies and none were kept.
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        if !LatencyStats::supports(self.support, percent) {
            return None;
        }
        let told = [(50.0, self.p50), (90.0, self.p90), (95.0, self.p95), (99.0, self.p99)];
        let known = told.into_iter().find(|(known, _)| percent.total_cmp(known).is_eq()).and_then(|(_, value)| value);
        known.or_else(|| self.series.as_ref()?.stats().percentile_us(percent))
    }

    /// Several rounds of one plan as one distribution; `None` if any of them kept no latencies. Percentiles
    /// are those of the latencies kept: all of a round, up to [`SERIES_POINTS`].
    pub fn pooled(parts: &[&Self]) -> Option<Self> {
        let kept: Vec<&Series> = parts.iter().map(|part| part.series.as_ref()).collect::<Option<_>>()?;
        // Each latency must represent the same number of inferences in every round.
        let stride = kept.iter().map(|series| series.stride.max(1)).max()?;
        let every = |series: &Series| usize::try_from(stride / series.stride.max(1)).unwrap_or(usize::MAX).max(1);
        let values = kept.iter().flat_map(|series| series.values.iter().step_by(every(series)).copied()).collect();
        let series = Series { stride, values };
        // Files may claim any count.
        let count = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.count));
        let mean = parts.iter().map(|part| Some(part.mean? * part.count as f64)).sum::<Option<f64>>();
        let mean = mean.map(|sum| sum / count.max(1) as f64);
        let squares = |part: &&Self| {
            let own = part.stddev.unwrap_or(0.0).powi(2) * part.count.saturating_sub(1) as f64;
            Some(own + (part.mean? - mean?).powi(2) * part.count as f64)
        };
        let squares = parts.iter().map(squares).sum::<Option<f64>>().filter(|_| count > 1);
        let stats = series.stats();
        Some(Self {
            count,
            support: parts.iter().map(|part| part.support).min()?,
            mean,
            stddev: squares.map(|sum| (sum / (count - 1) as f64).sqrt()),
            p50: stats.percentile_us(50.0),
            p90: stats.percentile_us(90.0),
            p95: stats.percentile_us(95.0),
            p99: stats.percentile_us(99.0),
            max: parts.iter().filter_map(|part| part.max).reduce(f64::max),
            series: Some(series.bounded()),
            launches: parts.iter().flat_map(|part| part.launches()).collect(),
        })
    }
}
