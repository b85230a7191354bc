//! Latency of one phase: every sample, exact moments, and percentiles from an HDR histogram.

use hdrhistogram::Histogram;

/// The percentiles that are reported.
pub const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// Three significant digits: a percentile is within 0.1 % of the sample it stands for.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latency statistics, microseconds outside, nanoseconds inside.
#[derive(Debug, Clone)]
pub struct LatencyStats {
    histogram: Histogram<u32>,
    samples_us: Vec<f32>,
    /// Time from the start before to this start, microseconds: half of what the starts themselves would take.
    steps_us: Vec<u32>,
    last_start_us: u64,
    count: u64,
    mean_ns: f64,
    sum_squares: f64,
    min_ns: u64,
    max_ns: u64,
    /// Start of the first inference of all.
    began_us: u64,
    /// Start of the first inference of the stretch that goes on.
    first_start_us: u64,
    last_end_us: u64,
    /// Wall time of the stretches before it.
    past_us: u64,
    /// True if the next inference begins a stretch.
    broken: bool,
}

/// A percentile, what supports it, and how far off it may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile {
    /// 0 to 100.
    pub percent: f64,
    /// Value, microseconds; `None` if fewer than `100 / (100 - percent)` samples exist (then not one sample is expected
    /// beyond it, and any figure would be an invention).
    pub value_us: Option<f64>,
    /// Samples it rests on.
    pub samples: u64,
    /// 95 % interval from order statistics, microseconds. A bound is `None` where too few samples lie beyond it, and both
    /// are where there is no value.
    pub ci95_us: (Option<f64>, Option<f64>),
}

impl Default for LatencyStats {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the digits are a constant in the crate's range of 0..=5")]
        let mut histogram = Histogram::new(SIGNIFICANT_DIGITS).expect("3 significant digits are valid");
        histogram.auto(true);
        Self {
            histogram,
            samples_us: Vec::new(),
            steps_us: Vec::new(),
            last_start_us: 0,
            count: 0,
            mean_ns: 0.0,
            sum_squares: 0.0,
            min_ns: u64::MAX,
            max_ns: 0,
            began_us: 0,
            first_start_us: 0,
            last_end_us: 0,
            past_us: 0,
            broken: true,
        }
    }
}

impl LatencyStats {
    /// Adds one inference.
    pub fn push(&mut self, start_us: u64, latency_ns: u64) {
        if self.count == 0 {
            self.began_us = start_us;
            self.last_start_us = start_us;
        }
        // A pause beyond 71 minutes would be cut; no run has one.
        self.steps_us.push(u32::try_from(start_us.saturating_sub(self.last_start_us)).unwrap_or(u32::MAX));
        self.last_start_us = self.last_start_us.max(start_us);
        if std::mem::take(&mut self.broken) {
            self.past_us += self.last_end_us.saturating_sub(self.first_start_us);
            self.first_start_us = start_us;
            self.last_end_us = start_us;
        }
        self.last_end_us = self.last_end_us.max(start_us + latency_ns.div_ceil(1000));
        self.count += 1;
        // The histogram resizes itself; it can refuse only beyond 2^63, which the clock cannot reach.
        let _ = self.histogram.record(latency_ns.max(1));
        #[expect(clippy::cast_possible_truncation, reason = "a chart point; exact figures come from the sums")]
        self.samples_us.push((latency_ns as f64 / 1000.0) as f32);
        let value = latency_ns as f64;
        let delta = value - self.mean_ns;
        self.mean_ns += delta / self.count as f64;
        self.sum_squares += delta * (value - self.mean_ns);
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True if nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Every sample in order, microseconds.
    pub fn samples_us(&self) -> &[f32] {
        &self.samples_us
    }

    /// Every sample in order: start on the host's monotonic clock and latency, both microseconds.
    pub fn timed(&self) -> impl Iterator<Item = (u64, f32)> + '_ {
        let mut start_us = self.began_us;
        self.steps_us.iter().zip(&self.samples_us).map(move |(&step_us, &latency_us)| {
            start_us += u64::from(step_us);
            (start_us, latency_us)
        })
    }

    /// Mean, microseconds.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean_ns / 1000.0)
    }

    /// Sample standard deviation, microseconds; `None` below two samples.
    pub fn stddev_us(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.sum_squares / (self.count - 1) as f64).sqrt() / 1000.0)
    }

    /// Smallest sample, microseconds.
    pub fn min_us(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min_ns as f64 / 1000.0)
    }

    /// Largest sample, microseconds.
    pub fn max_us(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max_ns as f64 / 1000.0)
    }

    /// Start of the first and end of the last inference, host monotonic microseconds; interruptions are within.
    pub fn window_us(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.began_us, self.last_end_us))
    }

    /// What comes next does not follow at once: the process was started anew. The time in between is nobody's.
    pub fn interrupt(&mut self) {
        self.broken = true;
    }

    /// Wall time from the start of the first to the end of the last inference, interruptions left out, microseconds.
    pub fn span_us(&self) -> f64 {
        (self.past_us + self.last_end_us.saturating_sub(self.first_start_us)) as f64
    }

    /// Inferences per second over that wall time.
    pub fn throughput_ips(&self) -> Option<f64> {
        let span = self.span_us();
        (self.count > 0 && span > 0.0).then(|| self.count as f64 * 1e6 / span)
    }

    /// Value of a percentile if the samples support it, microseconds.
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        Self::supports(self.count, percent).then(|| self.value_at_rank(rank(self.count, percent / 100.0)))
    }

    /// True if so many samples support a percentile: at least one is expected beyond it.
    pub fn supports(count: u64, percent: f64) -> bool {
        // A tolerance for 1 - 0.999 and its like.
        count > 0 && count as f64 * (1.0 - percent / 100.0) >= 1.0 - 1e-9
    }

    /// A percentile with its support. `percent` is between 0 and 100, both excluded.
    pub fn percentile(&self, percent: f64) -> Percentile {
        let value_us = self.percentile_us(percent);
        let (low, high) = match value_us {
            Some(_) => order_statistic_ranks(self.count, percent / 100.0),
            None => (None, None),
        };
        Percentile {
            percent,
            value_us,
            samples: self.count,
            ci95_us: (low.map(|r| self.value_at_rank(r)), high.map(|r| self.value_at_rank(r))),
        }
    }

    /// Buckets for a histogram of at most `bins` equal steps between the smallest sample and the larger of p99 and 1.5
    /// times the median: (lower edge in us, count). Samples beyond the last edge are in the last bucket.
    pub fn bins(&self, bins: usize) -> Vec<(f64, u64)> {
        if self.count == 0 || bins == 0 {
            return Vec::new();
        }
        let low = self.min_ns as f64;
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

    /// Value of the `rank`-th smallest sample (from 1), microseconds, never outside the smallest and largest sample.
    fn value_at_rank(&self, rank: u64) -> f64 {
        let quantile = (rank as f64 - 0.5) / self.count as f64;
        let value = self.histogram.value_at_quantile(quantile.clamp(0.0, 1.0));
        value.clamp(self.min_ns, self.max_ns) as f64 / 1000.0
    }
}

/// Rank (from 1) of the nearest-rank percentile.
fn rank(count: u64, quantile: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and count")]
    let rank = (count as f64 * quantile - 1e-9).ceil() as u64;
    rank.clamp(1, count.max(1))
}

/// Ranks of the order statistics that enclose a quantile with at least 95 % confidence: the largest `l` with
/// `P(B < l) <= 2.5 %` and the smallest `u` with `P(B >= u) <= 2.5 %`, where `B` is binomial. `None` where no sample lies
/// far enough out.
fn order_statistic_ranks(count: u64, quantile: f64) -> (Option<u64>, Option<u64>) {
    const TAIL: f64 = 0.025;
    if count == 0 || quantile <= 0.0 || quantile >= 1.0 {
        return (None, None);
    }
    // Start well outside the interval and walk inwards on exact binomial terms; 8 sigma hold all the mass that matters.
    let mean = count as f64 * quantile;
    let sigma = (mean * (1.0 - quantile)).sqrt();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=count")]
    let from = (mean - 8.0 * sigma - 2.0).max(0.0) as u64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=count")]
    let to = ((mean + 8.0 * sigma + 2.0) as u64).min(count);
    let log_term = |k: u64| {
        ln_factorial(count) - ln_factorial(k) - ln_factorial(count - k)
            + k as f64 * quantile.ln()
            + (count - k) as f64 * (1.0 - quantile).ln()
    };
    let mut low = None;
    let mut below = 0.0;
    for k in from..=to {
        below += log_term(k).exp();
        // P(B <= k) is small enough: the (k+1)-th smallest sample is a lower bound.
        if below > TAIL {
            break;
        }
        low = Some(k + 1);
    }
    let mut high = None;
    let mut above = 0.0;
    for k in (from..=to).rev() {
        above += log_term(k).exp();
        // P(B >= k) is small enough: the k-th smallest sample is an upper bound.
        if above > TAIL {
            break;
        }
        high = Some(k);
    }
    (low.filter(|&l| l >= 1 && l <= count), high.filter(|&u| u >= 1 && u <= count))
}

/// ln(n!), exact sums below 20 and Stirling's series above (error below 1e-10).
fn ln_factorial(n: u64) -> f64 {
    if n < 20 {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64 + 1.0;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(latencies_us: impl IntoIterator<Item = u64>) -> LatencyStats {
        let mut stats = LatencyStats::default();
        let mut now = 0;
        for us in latencies_us {
            stats.push(now, us * 1000);
            now += us;
        }
        stats
    }

    #[test]
    fn known_sequence() {
        let s = stats(1..=1000);
        assert_eq!(s.mean_us(), Some(500.5));
        assert!((s.stddev_us().unwrap() - 288.819_4).abs() < 0.001);
        assert_eq!((s.min_us(), s.max_us()), (Some(1.0), Some(1000.0)));
        for (percent, expected) in [(50.0, 500.0), (90.0, 900.0), (95.0, 950.0), (99.0, 990.0), (99.9, 999.0)] {
            let got = s.percentile_us(percent).unwrap();
            assert!((got - expected).abs() <= expected * 0.001, "p{percent}: {got}");
        }
        let throughput = s.throughput_ips().unwrap();
        assert!((throughput - 1000.0 * 1e6 / 500_500.0).abs() < 0.01);
    }

    #[test]
    fn time_between_rounds_is_in_no_throughput() {
        let mut s = LatencyStats::default();
        for round in 0..3 {
            s.interrupt();
            for i in 0..10 {
                s.push(round * 1_000_000 + i * 1000, 1_000_000);
            }
        }
        assert!((s.span_us() - 30_000.0).abs() < 1e-6);
        assert!((s.throughput_ips().unwrap() - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn samples_keep_their_moments() {
        let mut s = LatencyStats::default();
        for (start_us, latency_us) in [(5_000_000_000, 70), (5_000_000_100, 80), (5_100_000_000, 90)] {
            s.push(start_us, latency_us * 1000);
        }
        let timed: Vec<(u64, f32)> = s.timed().collect();
        assert_eq!(timed, [(5_000_000_000, 70.0), (5_000_000_100, 80.0), (5_100_000_000, 90.0)]);
    }

    #[test]
    fn unsupported_percentiles_are_absent() {
        let s = stats(1..=99);
        assert!(s.percentile_us(50.0).is_some() && s.percentile_us(95.0).is_some());
        assert_eq!(s.percentile_us(99.0), None);
        assert_eq!(stats(1..=999).percentile_us(99.9), None);
        assert!(stats(1..=1000).percentile_us(99.9).is_some());
        let none = LatencyStats::default();
        assert_eq!((none.mean_us(), none.percentile_us(50.0), none.stddev_us()), (None, None, None));
        assert_eq!(stats([7]).stddev_us(), None);
    }

    #[test]
    fn intervals_match_the_binomial() {
        // Published order-statistic bounds of the median: n = 100 gives ranks 40 and 61.
        assert_eq!(order_statistic_ranks(100, 0.5), (Some(40), Some(61)));
        assert_eq!(order_statistic_ranks(20, 0.5), (Some(6), Some(15)));
        // 0.5^5 > 2.5 %: five samples bound no median, six do.
        assert_eq!(order_statistic_ranks(5, 0.5), (None, None));
        assert_eq!(order_statistic_ranks(6, 0.5), (Some(1), Some(6)));
        // p99 has an upper bound from 368 samples on (0.99^368 < 2.5 %).
        assert_eq!(order_statistic_ranks(367, 0.99).1, None);
        assert_eq!(order_statistic_ranks(368, 0.99).1, Some(368));
    }

    #[test]
    fn intervals_hold_for_many_samples() {
        let (low, high) = order_statistic_ranks(1_000_000, 0.5);
        let half_width = 1.96 * 500.0;
        assert!((low.unwrap() as f64 - (500_000.0 - half_width)).abs() < 3.0);
        assert!((high.unwrap() as f64 - (500_001.0 + half_width)).abs() < 3.0);
    }

    #[test]
    fn bins_hold_every_sample() {
        let s = stats((0..5000).map(|i| 100 + (i * 37) % 400));
        let bins = s.bins(20);
        assert_eq!(bins.len(), 20);
        assert_eq!(bins.iter().map(|b| b.1).sum::<u64>(), 5000);
        assert!(stats([5]).bins(4).iter().map(|b| b.1).sum::<u64>() == 1);
    }
}
