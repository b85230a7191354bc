//! Latency figures shared by several analyses.

use crate::store::LatencyStats;
use serde::Serialize;

/// Latency summary, microseconds. Figures that the samples do not support are absent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencyFigures {
    /// Number of samples.
    pub samples: u64,
    /// Mean.
    pub mean: Option<f64>,
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
}

impl LatencyFigures {
    /// The figures of these latencies.
    pub fn of(stats: &LatencyStats) -> Self {
        Self {
            samples: stats.count(),
            mean: stats.mean_us(),
            p50: stats.percentile_us(50.0),
            p90: stats.percentile_us(90.0),
            p95: stats.percentile_us(95.0),
            p99: stats.percentile_us(99.0),
            max: stats.max_us(),
        }
    }
}

/// All samples of `parts` as one distribution; time between parts is not counted.
pub fn pooled<'a>(parts: impl IntoIterator<Item = &'a LatencyStats>) -> LatencyStats {
    let mut all = LatencyStats::default();
    parts.into_iter().for_each(|part| all.merge(part));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling_keeps_every_sample_and_leaves_pauses_out() {
        let part = |from: u64| {
            let mut stats = LatencyStats::default();
            (0..10).for_each(|i| stats.push(from + i * 1000, 1_000_000 + i * 1000));
            stats
        };
        let all = pooled([&part(0), &part(5_000_000)]);
        assert_eq!(all.count(), 20);
        assert_eq!((all.min_us(), all.max_us()), (Some(1000.0), Some(1009.0)));
        assert!(all.span_us() < 25_000.0, "{}", all.span_us());
    }
}
