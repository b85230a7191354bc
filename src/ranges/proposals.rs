//! Encodings for a tensor, from its statistics.

use super::histogram::Histogram;
use serde::Serialize;

/// How an encoding is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// All numbers fit.
    MinMax,
    /// All but a share at both ends.
    Percentile,
    /// Least mean square error.
    Mse,
    /// Least loss of information (Kullback-Leibler).
    Entropy,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::MinMax, Self::Percentile, Self::Mse, Self::Entropy];

    /// The name of options and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::MinMax => "min-max",
            Self::Percentile => "percentile",
            Self::Mse => "mse",
            Self::Entropy => "entropy",
        }
    }
}

impl std::str::FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| format!("`{text}` is not a method; there are min-max, percentile, mse, entropy"))
    }
}

/// An encoding with its cost, estimated from the histogram.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proposal {
    /// How it was chosen.
    pub method: Method,
    /// Bits.
    pub bits: u32,
    /// Smallest number that can be stored.
    pub min: f64,
    /// Largest one.
    pub max: f64,
    /// Scale.
    pub scale: f64,
    /// Offset, 0 or negative.
    pub offset: i64,
    /// Share of numbers beyond it.
    pub clipped_share: f64,
    /// Mean square error.
    pub mse: f64,
    /// Signal to noise, dB; `None` if nothing is lost, or there is no signal.
    pub sqnr_db: Option<f64>,
    /// The same with 16 bits.
    pub sqnr_db_16_bits: Option<f64>,
}

/// Steps of a search for ends.
const STEPS: u32 = 100;
/// Least share of the range that a search keeps.
const LEAST: f64 = 0.02;
/// Bins of the uniform histogram that entropies are taken of.
const UNIFORM: usize = 2048;
/// Levels to which it is reduced, as calibration tools do for 8 bits.
const LEVELS: usize = 128;

/// An encoding with zero among its numbers, for numbers from `min` to `max`: scale, offset, ends.
fn encode(min: f64, max: f64, bits: u32) -> (f64, i64, f64, f64) {
    let (min, max) = (min.min(0.0), max.max(0.0));
    let levels = (1u64 << bits) as f64 - 1.0;
    // A tensor of zeros alone: any scale will do.
    let scale = if max > min { (max - min) / levels } else { 1.0 / levels };
    let offset = (min / scale).round();
    #[expect(clippy::cast_possible_truncation, reason = "between -levels and 0")]
    (scale, offset as i64, offset * scale, (offset + levels) * scale)
}

/// The numbers with their counts. The outermost bins reach beyond the ends, which are exact.
fn numbers(histogram: &Histogram, (low, high): (f64, f64)) -> impl Iterator<Item = (f64, u64)> + '_ {
    histogram.bins().map(move |(value, count)| (value.max(low).min(high), count))
}

/// Mean square error and clipped share of an encoding on these numbers, which lie between `ends`.
fn cost(histogram: &Histogram, ends: (f64, f64), min: f64, max: f64, step: f64) -> (f64, f64) {
    let (mut error, mut clipped) = (0.0, 0u64);
    for (value, count) in numbers(histogram, ends) {
        let beyond = (min - value).max(value - max);
        let square = if beyond > step / 2.0 {
            clipped += count;
            beyond * beyond
        } else {
            // What is far below a step becomes zero; else errors spread evenly over a step. Zero itself is exact.
            (value * value).min(step * step / 12.0)
        };
        error += square * count as f64;
    }
    let count = histogram.count().max(1) as f64;
    (error / count, clipped as f64 / count)
}

/// Signal to noise of a mean square error.
fn sqnr_db(histogram: &Histogram, ends: (f64, f64), mse: f64) -> Option<f64> {
    let signal: f64 = numbers(histogram, ends).map(|(value, count)| value * value * count as f64).sum();
    let signal = signal / histogram.count().max(1) as f64;
    (signal > 0.0 && mse > 0.0).then(|| 10.0 * (signal / mse).log10())
}

/// The encoding of a method for numbers from `min` to `max`; `percentile` is the share that must fit, such as 0.9999.
pub fn propose(histogram: &Histogram, (min, max): (f64, f64), method: Method, bits: u32, percentile: f64) -> Proposal {
    let (low, high) = match method {
        Method::MinMax => (min, max),
        Method::Percentile => {
            // The ends themselves are exact; bins are not.
            let at = |share: f64| histogram.quantile(share).unwrap_or(0.0).max(min).min(max);
            (at(1.0 - percentile), at(percentile))
        }
        Method::Mse => best(min, max, bits, |low, high, step| cost(histogram, (min, max), low, high, step).0),
        // With this many levels clipping gains nothing.
        Method::Entropy if bits > 8 => (min, max),
        Method::Entropy => {
            let uniform = uniform(histogram, min, max);
            best(min, max, bits, |low, high, _| divergence(&uniform, (min, max), low, high))
        }
    };
    let (scale, offset, low, high) = encode(low, high, bits);
    let (mse, clipped_share) = cost(histogram, (min, max), low, high, scale);
    // What 16 bits would bring needs no clipping.
    let (wide_scale, _, wide_low, wide_high) = encode(min, max, 16);
    let (wide, _) = cost(histogram, (min, max), wide_low, wide_high, wide_scale);
    Proposal {
        method,
        bits,
        min: low,
        max: high,
        scale,
        offset,
        clipped_share,
        mse,
        sqnr_db: sqnr_db(histogram, (min, max), mse),
        sqnr_db_16_bits: sqnr_db(histogram, (min, max), wide),
    }
}

/// The ends with the least cost, each a share of the outermost ones.
fn best(min: f64, max: f64, bits: u32, cost: impl Fn(f64, f64, f64) -> f64) -> (f64, f64) {
    let (min, max) = (min.min(0.0), max.max(0.0));
    let shares: Vec<f64> = (0..=STEPS).map(|step| 1.0 - (1.0 - LEAST) * f64::from(step) / f64::from(STEPS)).collect();
    let rated = |low: f64, high: f64| {
        let (scale, _, low, high) = encode(low, high, bits);
        cost(low, high, scale)
    };
    let mut found = (min, max);
    let mut least = rated(min, max);
    // Both ends together, then each for itself: an outlier is usually at one of them.
    for &share in &shares {
        let rate = rated(min * share, max * share);
        if rate < least {
            (least, found) = (rate, (min * share, max * share));
        }
    }
    for side in 0..2 {
        let start = found;
        for &share in &shares {
            let (low, high) = if side == 0 { (start.0, max * share) } else { (min * share, start.1) };
            let rate = rated(low, high);
            if rate < least {
                (least, found) = (rate, (low, high));
            }
        }
    }
    found
}

/// The same counts in bins of one width from `min` to `max`.
fn uniform(histogram: &Histogram, min: f64, max: f64) -> Vec<f64> {
    let (min, max) = (min.min(0.0), max.max(0.0));
    let mut bins = vec![0.0; UNIFORM];
    let width = (max - min) / UNIFORM as f64;
    if width > 0.0 {
        for (value, count) in histogram.bins() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the bins")]
            let at = ((value - min) / width).clamp(0.0, UNIFORM as f64 - 1.0) as usize;
            bins[at] += count as f64;
        }
    }
    bins
}

/// The loss if only numbers from `low` to `high` are kept, in few levels.
fn divergence(bins: &[f64], (min, max): (f64, f64), low: f64, high: f64) -> f64 {
    let (min, max) = (min.min(0.0), max.max(0.0));
    let width = (max - min) / bins.len() as f64;
    if width <= 0.0 {
        return 0.0;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the bins")]
    let place = |value: f64| ((value - min) / width).round().clamp(0.0, bins.len() as f64) as usize;
    let (from, to) = (place(low), place(high).max(place(low) + 1).min(bins.len()));
    let kept = &bins[from.min(to - 1)..to];
    let mut p = kept.to_vec();
    p[0] += bins[..from.min(to - 1)].iter().sum::<f64>();
    if let Some(last) = p.last_mut() {
        *last += bins[to..].iter().sum::<f64>();
    }
    let group = kept.len().div_ceil(LEVELS);
    let total: f64 = p.iter().sum();
    let kept_total: f64 = kept.iter().sum();
    if total <= 0.0 || kept_total <= 0.0 {
        return f64::INFINITY;
    }
    let mut loss = 0.0;
    for (of_p, of_kept) in p.chunks(group).zip(kept.chunks(group)) {
        let filled = of_kept.iter().filter(|&&count| count > 0.0).count();
        let mean = of_kept.iter().sum::<f64>() / filled.max(1) as f64;
        for (&p, &kept) in of_p.iter().zip(of_kept) {
            if p > 0.0 {
                // An edge that only clipped numbers fill has a little of everything.
                let q = if kept > 0.0 { mean / kept_total } else { 1e-9 };
                loss += p / total * (p / total / q).ln();
            }
        }
    }
    loss
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evenly from 0 to 1, and one number far away.
    fn with_outlier() -> (Histogram, (f64, f64)) {
        let mut histogram = Histogram::default();
        (0..=10_000).for_each(|value| histogram.take(f64::from(value) / 10_000.0));
        histogram.take(40.0);
        (histogram, (0.0, 40.0))
    }

    #[test]
    fn each_method_does_what_it_says() {
        let (histogram, ends) = with_outlier();
        let of = |method| propose(&histogram, ends, method, 8, 0.999);
        let all = of(Method::MinMax);
        assert!((all.max - 40.0).abs() < 1e-9 && all.clipped_share == 0.0 && all.offset == 0);
        assert!((all.scale - 40.0 / 255.0).abs() < 1e-12);
        let most = of(Method::Percentile);
        assert!((0.97..1.02).contains(&most.max), "{}", most.max);
        let entropy = of(Method::Entropy);
        assert!(entropy.max < 40.0, "{}", entropy.max);
        let mse = of(Method::Mse);
        assert!(mse.mse <= all.mse && mse.mse <= most.mse, "{} {} {}", mse.mse, all.mse, most.mse);
    }

    #[test]
    fn costs_are_those_of_a_uniform_signal() {
        // 0..1 evenly over 255 steps: noise step^2/12, signal 1/3: 10 log10(4 x 255^2) = 54.15 dB.
        let mut histogram = Histogram::default();
        (1..=100_000).for_each(|value| histogram.take(f64::from(value) / 100_000.0));
        let proposal = propose(&histogram, (0.0, 1.0), Method::MinMax, 8, 1.0);
        assert!((proposal.sqnr_db.unwrap() - 54.15).abs() < 0.1, "{proposal:?}");
        // 16 bits: 8 more of about 6.02 dB.
        let gain = proposal.sqnr_db_16_bits.unwrap() - proposal.sqnr_db.unwrap();
        assert!((gain - 48.2).abs() < 0.2, "{gain}");
    }

    #[test]
    fn tensors_of_zeros_or_nothing_have_an_encoding_too() {
        let mut zeros = Histogram::default();
        zeros.take(0.0);
        for histogram in [zeros, Histogram::default()] {
            for method in Method::ALL {
                let proposal = propose(&histogram, (0.0, 0.0), method, 8, 0.999);
                assert!(proposal.scale > 0.0 && proposal.sqnr_db.is_none(), "{proposal:?}");
            }
        }
    }
}
