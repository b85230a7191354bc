//! Bootstrap intervals for differences of latency figures.
//!
//! Consecutive latencies are correlated (clocks, caches, other load), so drawing single values would give
//! intervals that are too narrow. Blocks of neighbours are drawn instead, from a ring (the circular block
//! bootstrap of Politis and Romano, 1992), so that every value is equally likely. The block length follows
//! from the correlation of neighbours by the rule for first-order autoregression (Carlstein, 1986), computed
//! on ranks so that outliers do not dominate.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Resamples per run.
pub const RESAMPLES: usize = 1_000;
/// Minimum number of values for an interval.
pub const MIN_VALUES: usize = 20;
/// Expected number of values beyond a percentile that its interval requires.
const MIN_BEYOND: f64 = 5.0;
/// Probability on each side of the 95 % interval.
const TAIL: f64 = 0.025;
/// The same on every machine and in every release, so that comparisons are reproducible.
const SEED: u64 = 0x716e_6e73_636f_7065;

/// Latency figures that are resampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Mean.
    Mean,
    /// Standard deviation.
    Stddev,
}

impl Statistic {
    const ALL: [Self; 5] = [Self::P50, Self::P95, Self::P99, Self::Mean, Self::Stddev];

    /// Values that an interval requires.
    pub fn values_needed(self) -> usize {
        let quantile = match self {
            Self::P95 => 0.95,
            Self::P99 => 0.99,
            Self::P50 | Self::Mean | Self::Stddev => return MIN_VALUES,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred")]
        let needed = (MIN_BEYOND / (1.0 - quantile)).round() as usize;
        needed
    }
}

/// The figures of every resample of one run.
#[derive(Debug, Clone)]
pub struct Resampled {
    /// Number of values drawn from.
    pub values: usize,
    /// Number of neighbours drawn together.
    pub block: usize,
    own: [f64; 5],
    drawn: Vec<[f64; 5]>,
}

impl Resampled {
    /// Draws resamples; each `stream` has its own random sequence. `None` below [`MIN_VALUES`].
    pub fn new(values: &[f64], resamples: usize, stream: u64) -> Option<Self> {
        let count = values.len();
        if count < MIN_VALUES || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let sorted: Vec<f64> = order.iter().map(|at| values[*at]).collect();
        let mut ranks = vec![0; count];
        for (rank, at) in order.into_iter().enumerate() {
            ranks[at] = rank;
        }
        let block = block_length(&ranks);
        let ring = Ring::new(values, sorted, &ranks, block);
        let mut counts = Counts::new(count);
        let own = ring.figures(std::iter::once((0, count)), &mut counts);
        let mut random = ChaCha8Rng::seed_from_u64(SEED ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let whole = count / block;
        let lengths = |at: usize| if at < whole { block } else { count % block };
        let drawn = (0..resamples)
            .map(|_| {
                let blocks = (0..=whole).map(|at| (below(&mut random, count), lengths(at)));
                ring.figures(blocks, &mut counts)
            })
            .collect();
        Some(Self { values: count, block, own, drawn })
    }

    /// True if there are enough values for an interval of this figure.
    pub fn supports(&self, statistic: Statistic) -> bool {
        self.values >= statistic.values_needed()
    }
}

/// 95 % interval of `other / base - 1`. The figures given are those of the whole runs; resamples of thinned
/// latencies are shifted to match them.
pub fn relative_interval(
    statistic: Statistic,
    (base, base_figure): (&Resampled, f64),
    (other, other_figure): (&Resampled, f64),
) -> Option<[f64; 2]> {
    if !base.supports(statistic) || !other.supports(statistic) {
        return None;
    }
    let at = Statistic::ALL.iter().position(|known| *known == statistic)?;
    let (base_shift, other_shift) = (base_figure - base.own[at], other_figure - other.own[at]);
    let mut ratios: Vec<f64> = base
        .drawn
        .iter()
        .zip(&other.drawn)
        .map(|(base, other)| (other[at] + other_shift) / (base[at] + base_shift) - 1.0)
        .filter(|ratio| ratio.is_finite())
        .collect();
    if ratios.len() < MIN_VALUES {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index within the resamples")]
    let cut = (TAIL * ratios.len() as f64) as usize;
    Some([ratios[cut], ratios[ratios.len() - 1 - cut]])
}

/// Values as a ring, prepared so that the figures of a resample cost little per value: sums come from prefix
/// sums, percentiles from counts of ranks.
struct Ring {
    sorted: Vec<f64>,
    /// Rank of each value; the first block's length of them is repeated at the end.
    ranks: Vec<u32>,
    /// Prefix sums of the values and of their squares, both relative to `origin`, which keeps squares small.
    sums: Vec<(f64, f64)>,
    origin: f64,
}

/// How often each rank was drawn, and each group of 64 ranks.
struct Counts {
    ranks: Vec<u32>,
    stretches: Vec<u32>,
}

const STRETCH: usize = 64;

impl Counts {
    fn new(count: usize) -> Self {
        Self { ranks: vec![0; count], stretches: vec![0; count.div_ceil(STRETCH)] }
    }
}

impl Ring {
    fn new(values: &[f64], sorted: Vec<f64>, ranks: &[usize], block: usize) -> Self {
        let origin = sorted[sorted.len() / 2];
        let around = || (0..values.len()).chain(0..block);
        let mut sums = vec![(0.0, 0.0)];
        let mut sum = (0.0, 0.0);
        for at in around() {
            let delta = values[at] - origin;
            sum = (sum.0 + delta, sum.1 + delta * delta);
            sums.push(sum);
        }
        // A series has at most a few thousand values.
        let ranks = around().map(|at| u32::try_from(ranks[at]).unwrap_or(u32::MAX)).collect();
        Self { sorted, ranks, sums, origin }
    }

    /// All figures of the values in these blocks, given as start and length.
    fn figures(&self, blocks: impl Iterator<Item = (usize, usize)>, counts: &mut Counts) -> [f64; 5] {
        counts.ranks.fill(0);
        counts.stretches.fill(0);
        let (mut sum, mut squares) = (0.0, 0.0);
        for (start, length) in blocks {
            let end = start + length;
            for &rank in &self.ranks[start..end] {
                counts.ranks[rank as usize] += 1;
                counts.stretches[rank as usize / STRETCH] += 1;
            }
            sum += self.sums[end].0 - self.sums[start].0;
            squares += self.sums[end].1 - self.sums[start].1;
        }
        let n = self.sorted.len() as f64;
        let variance = (squares - sum * sum / n) / (n - 1.0);
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|quantile| self.percentile(quantile, counts));
        [p50, p95, p99, self.origin + sum / n, variance.max(0.0).sqrt()]
    }

    /// Nearest rank, as in the store.
    fn percentile(&self, quantile: f64, counts: &Counts) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and the number of values"
        )]
        let mut left = ((self.sorted.len() as f64 * quantile - 1e-9).ceil() as u32).max(1);
        let mut from = 0;
        for stretch in &counts.stretches {
            if *stretch >= left {
                break;
            }
            left -= stretch;
            from += STRETCH;
        }
        for (rank, times) in counts.ranks.iter().enumerate().skip(from) {
            if *times >= left {
                return self.sorted[rank];
            }
            left -= times;
        }
        self.sorted[self.sorted.len() - 1]
    }
}

/// Number of neighbours to draw together.
fn block_length(ranks: &[usize]) -> usize {
    let n = ranks.len() as f64;
    let mean = (n - 1.0) / 2.0;
    let deviation = |rank: usize| rank as f64 - mean;
    let variance: f64 = ranks.iter().map(|rank| deviation(*rank).powi(2)).sum();
    let products: f64 = ranks.windows(2).map(|pair| deviation(pair[0]) * deviation(pair[1])).sum();
    let correlation = (products / variance).clamp(0.0, 0.98);
    let rule = ((2.0 * correlation / (1.0 - correlation * correlation)).powi(2) * n).cbrt();
    // At least a few neighbours: correlation may extend beyond the next value.
    let length = rule.max(n.powf(0.25)).min(n / 8.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the number of values")]
    let length = length.round() as usize;
    length.max(1)
}

/// A random number below `bound`; the bias of the product is below one in a million for any series that is
/// kept.
fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    let product = u64::from(rng.next_u32()) * bound as u64;
    usize::try_from(product >> 32).unwrap_or(0)
}
