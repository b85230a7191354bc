//! Times of one kind: mean and percentiles in constant memory.

use hdrhistogram::Histogram;

/// Up to this many samples are kept as they are; beyond, a three-digit histogram takes over.
const EXACT: usize = 512;
/// Three significant digits: a percentile is within 0.1 % of the sample it represents.
const DIGITS: u8 = 3;
/// Longer times count as this long in the percentiles (2^40 us are 12 days).
const LONGEST_US: u64 = 1 << 40;

/// Times in microseconds.
#[derive(Debug, Clone, Default)]
pub struct Times {
    exact: Vec<u64>,
    histogram: Option<Box<Histogram<u32>>>,
    count: u64,
    sum_us: u128,
    min_us: u64,
    max_us: u64,
}

impl Times {
    /// Adds one, microseconds.
    pub fn push(&mut self, us: u64) {
        self.min_us = if self.count == 0 { us } else { self.min_us.min(us) };
        self.max_us = self.max_us.max(us);
        self.count += 1;
        self.sum_us += u128::from(us);
        if let Some(histogram) = &mut self.histogram {
            // It grows automatically, so it accepts every value.
            let _ = histogram.record(us.min(LONGEST_US));
            return;
        }
        self.exact.push(us);
        if self.exact.len() > EXACT {
            self.compress();
        }
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min_us = if self.count == 0 { other.min_us } else { self.min_us.min(other.min_us) };
        self.max_us = self.max_us.max(other.max_us);
        self.count += other.count;
        self.sum_us += other.sum_us;
        self.exact.extend(&other.exact);
        if self.histogram.is_some() || other.histogram.is_some() || self.exact.len() > EXACT {
            self.compress();
        }
        if let (Some(own), Some(others)) = (&mut self.histogram, &other.histogram) {
            // Both grow automatically, so adding always works.
            let _ = own.add(others.as_ref());
        }
    }

    fn compress(&mut self) {
        let histogram = self.histogram.get_or_insert_with(|| {
            #[expect(clippy::expect_used, reason = "the digits are a constant in the crate's range of 0..=5")]
            let mut histogram = Histogram::new(DIGITS).expect("3 significant digits are valid");
            histogram.auto(true);
            Box::new(histogram)
        });
        for us in std::mem::take(&mut self.exact) {
            let _ = histogram.record(us.min(LONGEST_US));
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, microseconds.
    pub fn sum_us(&self) -> u128 {
        self.sum_us
    }

    /// The shortest, microseconds.
    pub fn min_us(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_us)
    }

    /// The longest, microseconds.
    pub fn max_us(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_us)
    }

    /// Their mean, microseconds.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_us as f64 / self.count as f64)
    }

    /// Nearest-rank percentiles, microseconds. One is `None` if fewer than `100 / (100 - percent)` times support it.
    pub fn percentiles_us<const N: usize>(&self, percents: [u8; N]) -> [Option<u64>; N] {
        let mut sorted = self.exact.clone();
        sorted.sort_unstable();
        percents.map(|percent| {
            let percent = u64::from(percent.min(100));
            let beyond = u128::from(self.count) * u128::from(100 - percent);
            if self.count == 0 || beyond < 100 {
                return None;
            }
            // The rank fits: it is between 1 and the count.
            let rank = u64::try_from((u128::from(self.count) * u128::from(percent)).div_ceil(100)).unwrap_or(u64::MAX);
            Some(match &self.histogram {
                None => sorted.get(usize::try_from(rank).unwrap_or(usize::MAX).max(1) - 1).copied().unwrap_or_default(),
                Some(histogram) => {
                    let quantile = (rank as f64 - 0.5) / self.count as f64;
                    histogram.value_at_quantile(quantile).clamp(self.min_us, self.max_us)
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(values: impl IntoIterator<Item = u64>) -> Times {
        let mut times = Times::default();
        values.into_iter().for_each(|us| times.push(us));
        times
    }

    #[test]
    fn exact_then_within_a_thousandth() {
        assert_eq!(times(1..=100).percentiles_us([50, 95, 99]), [Some(50), Some(95), Some(99)]);
        let [p50, p95, p99] = times(1..=100_000).percentiles_us([50, 95, 99]).map(Option::unwrap);
        for (got, expected) in [(p50, 50_000_u64), (p95, 95_000), (p99, 99_000)] {
            assert!(got.abs_diff(expected) <= expected / 1000, "{got} for {expected}");
        }
    }

    #[test]
    fn what_too_few_times_cannot_tell_is_absent() {
        assert_eq!(times([]).percentiles_us([50, 99]), [None, None]);
        assert_eq!(times([7]).percentiles_us([50, 95]), [None, None]);
        assert_eq!(times([7, 9]).percentiles_us([50, 95]), [Some(7), None]);
        assert_eq!(times(1..=99).percentiles_us([99]), [None]);
        assert_eq!((times([]).mean_us(), times([]).min_us()), (None, None));
    }

    #[test]
    fn merged_as_if_pushed() {
        for (a, b) in [(10_u64, 20_u64), (10, 2000), (2000, 10), (400, 400), (2000, 3000), (0, 5), (5, 0)] {
            let mut merged = times(0..a);
            merged.merge(&times(a..a + b));
            let pushed = times(0..a + b);
            assert_eq!(merged.percentiles_us([50, 95, 99]), pushed.percentiles_us([50, 95, 99]), "{a} and {b}");
            assert_eq!((merged.count(), merged.sum_us()), (pushed.count(), pushed.sum_us()));
            assert_eq!((merged.min_us(), merged.max_us()), (pushed.min_us(), pushed.max_us()));
        }
    }

    #[test]
    fn absurd_times_stay_small() {
        let many = times((0..2000).map(|i| if i % 2 == 0 { u64::MAX } else { i }));
        assert_eq!(many.max_us(), Some(u64::MAX));
        assert!(many.histogram.unwrap().len() < 40_000);
    }
}
