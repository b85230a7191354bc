//! How far a tensor is from its reference: sums over any number of inferences, and the resulting figures.

use super::values::EncodedRange;
use serde::{Deserialize, Serialize};

/// Sums over values of a reference x and a test y.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    /// Number of finite pairs of values.
    pub count: u64,
    /// Number of pairs in which a value is NaN or infinite.
    pub not_finite: u64,
    /// Number of those in which only the test's value is not finite.
    pub broken: u64,
    /// Number of pairs that differ.
    pub differing: u64,
    signal: f64,
    noise: f64,
    absolute: f64,
    max_abs: f64,
    test_energy: f64,
    product: f64,
    sum: f64,
    /// Number of reference values outside the range of the test's encoding.
    pub clipped: u64,
    /// Smallest reference value.
    pub min: f64,
    /// Largest reference value.
    pub max: f64,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            count: 0,
            not_finite: 0,
            broken: 0,
            differing: 0,
            signal: 0.0,
            noise: 0.0,
            absolute: 0.0,
            max_abs: 0.0,
            test_energy: 0.0,
            product: 0.0,
            sum: 0.0,
            clipped: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl Sums {
    /// Adds a pair of values. `bounds` is the range of the test's encoding, plus half a step.
    #[inline]
    pub fn take(&mut self, x: f64, y: f64, bounds: (f64, f64)) {
        if !(x.is_finite() && y.is_finite()) {
            self.not_finite += 1;
            self.broken += u64::from(x.is_finite());
            return;
        }
        let difference = x - y;
        self.count += 1;
        self.differing += u64::from(difference != 0.0);
        self.signal += x * x;
        self.noise += difference * difference;
        self.absolute += difference.abs();
        self.max_abs = self.max_abs.max(difference.abs());
        self.test_energy += y * y;
        self.product += x * y;
        self.sum += x;
        self.clipped += u64::from(x < bounds.0 || x > bounds.1);
        self.min = self.min.min(x);
        self.max = self.max.max(x);
    }

    /// Adds the sums of `other`.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.not_finite += other.not_finite;
        self.broken += other.broken;
        self.differing += other.differing;
        self.signal += other.signal;
        self.noise += other.noise;
        self.absolute += other.absolute;
        self.max_abs = self.max_abs.max(other.max_abs);
        self.test_energy += other.test_energy;
        self.product += other.product;
        self.sum += other.sum;
        self.clipped += other.clipped;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// SQNR in dB: infinite if nothing differs, `None` if the reference is all zeros, or empty.
    pub fn sqnr_db(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        if self.noise == 0.0 {
            return Some(f64::INFINITY);
        }
        (self.signal > 0.0).then(|| 10.0 * (self.signal / self.noise).log10())
    }

    /// Energy of the reference.
    pub fn signal(&self) -> f64 {
        self.signal
    }

    /// Energy of the difference.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// Mean squared difference.
    pub fn mse(&self) -> Option<f64> {
        (self.count > 0).then(|| self.noise / self.count as f64)
    }

    /// Largest absolute difference.
    pub fn max_abs(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max_abs)
    }

    /// Mean absolute difference.
    pub fn mean_abs(&self) -> Option<f64> {
        (self.count > 0).then(|| self.absolute / self.count as f64)
    }

    /// Cosine similarity; `None` if one side is all zeros.
    pub fn cosine(&self) -> Option<f64> {
        let length = self.signal.sqrt() * self.test_energy.sqrt();
        (length > 0.0).then(|| self.product / length)
    }
}

/// The sums over one tensor, as a whole and per channel.
#[derive(Debug, Clone, Default)]
pub struct TensorSums {
    /// The whole tensor.
    pub whole: Sums,
    /// Each channel; empty if the tensor has none, or too many.
    pub channels: Vec<Sums>,
}

/// Maximum number of channels tracked separately.
const MOST_CHANNELS: usize = 16_384;

impl TensorSums {
    /// Adds the values of one inference, both in the test's order. `axis` is the channel axis of `shape`.
    pub fn take(&mut self, x: &[f64], y: &[f64], shape: &[u32], axis: Option<usize>, range: Option<EncodedRange>) {
        let bounds = range.map_or((f64::NEG_INFINITY, f64::INFINITY), |range| {
            (range.min - range.step / 2.0, range.max + range.step / 2.0)
        });
        let channels = axis.map_or(0, |axis| shape[axis] as usize);
        let inner: usize = axis.map_or(1, |axis| shape[axis + 1..].iter().map(|&size| size as usize).product());
        if !(2..=MOST_CHANNELS).contains(&channels) || inner == 0 {
            for (&x, &y) in x.iter().zip(y) {
                self.whole.take(x, y, bounds);
            }
            return;
        }
        self.channels.resize(channels, Sums::default());
        let mut inference = vec![Sums::default(); channels];
        for (index, (&x, &y)) in x.iter().zip(y).enumerate() {
            inference[index / inner % channels].take(x, y, bounds);
        }
        for (channel, sums) in self.channels.iter_mut().zip(&inference) {
            channel.add(sums);
            self.whole.add(sums);
        }
    }
}

/// A channel among the worst.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChannelFigures {
    /// Its index, from 0.
    pub channel: usize,
    /// SQNR, dB.
    pub sqnr_db: Option<f64>,
    /// This channel's share of the total error.
    pub noise_share: f64,
}

/// The figures of one tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorFigures {
    /// SQNR in dB; infinite if nothing differs, `None` if undefined.
    pub sqnr_db: Option<f64>,
    /// Mean squared difference.
    pub mse: Option<f64>,
    /// Largest absolute difference.
    pub max_abs: Option<f64>,
    /// Mean absolute difference.
    pub mean_abs: Option<f64>,
    /// Cosine similarity.
    pub cosine: Option<f64>,
    /// Share of reference values outside the range of the test's encoding.
    pub clipped_share: Option<f64>,
    /// Range of the reference's values as a share of the encoding's range.
    pub used_share: Option<f64>,
    /// Share of values that differ.
    pub differing_share: Option<f64>,
    /// The worst channels, worst first.
    pub worst_channels: Vec<ChannelFigures>,
}

/// Maximum number of worst channels reported.
const WORST: usize = 3;

impl TensorFigures {
    /// The figures of a test tensor with this encoding. For integers and booleans (`counted`), only the share
    /// that differs is meaningful.
    pub fn new(sums: &TensorSums, range: Option<EncodedRange>, counted: bool) -> Self {
        let whole = &sums.whole;
        let share = |part: u64| (whole.count > 0).then(|| part as f64 / whole.count as f64);
        let differing_share = share(whole.differing);
        if counted {
            return Self {
                sqnr_db: None,
                mse: None,
                max_abs: None,
                mean_abs: None,
                cosine: None,
                clipped_share: None,
                used_share: None,
                differing_share,
                worst_channels: Vec::new(),
            };
        }
        Self {
            sqnr_db: whole.sqnr_db(),
            mse: whole.mse(),
            max_abs: whole.max_abs(),
            mean_abs: whole.mean_abs(),
            cosine: whole.cosine(),
            clipped_share: range.and_then(|_| share(whole.clipped)),
            used_share: range
                .filter(|range| whole.count > 0 && range.max > range.min)
                .map(|range| (whole.max - whole.min) / (range.max - range.min)),
            differing_share,
            worst_channels: worst(sums),
        }
    }
}

fn worst(sums: &TensorSums) -> Vec<ChannelFigures> {
    let mut rows: Vec<ChannelFigures> = sums
        .channels
        .iter()
        .enumerate()
        .filter(|(_, channel)| channel.noise() > 0.0)
        .map(|(number, channel)| ChannelFigures {
            channel: number,
            sqnr_db: channel.sqnr_db(),
            noise_share: channel.noise() / sums.whole.noise(),
        })
        .collect();
    // By contribution to the error: the ratio of a channel with hardly any signal means little.
    rows.sort_by(|a, b| b.noise_share.total_cmp(&a.noise_share).then(a.channel.cmp(&b.channel)));
    rows.truncate(WORST);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(pairs: &[(f64, f64)]) -> Sums {
        let mut sums = Sums::default();
        for &(x, y) in pairs {
            sums.take(x, y, (f64::NEG_INFINITY, f64::INFINITY));
        }
        sums
    }

    #[test]
    fn figures_are_those_of_the_definition() {
        // By hand: x = 3, 4; y = 3, 3. Signal 25, noise 1.
        let sums = sums(&[(3.0, 3.0), (4.0, 3.0)]);
        assert!((sums.sqnr_db().unwrap() - 13.979_400_086_720_377).abs() < 1e-12);
        assert_eq!((sums.mse(), sums.max_abs(), sums.mean_abs()), (Some(0.5), Some(1.0), Some(0.5)));
        // 21 / (5 sqrt 18)
        assert!((sums.cosine().unwrap() - 0.989_949_493_661_166_6).abs() < 1e-12);
        assert_eq!((sums.min, sums.max, sums.differing), (3.0, 4.0, 1));
    }

    #[test]
    fn values_that_are_no_numbers_are_counted_and_left_out() {
        let sums = sums(&[(f64::NAN, 1.0), (1.0, f64::INFINITY), (2.0, 2.0)]);
        assert_eq!((sums.count, sums.not_finite), (1, 2));
        assert_eq!(sums.sqnr_db(), Some(f64::INFINITY));
        assert_eq!(Sums::default().sqnr_db(), None);
        assert_eq!(Sums::default().mse(), None);
        assert_eq!(super::Sums::default().cosine(), None);
    }

    #[test]
    fn a_zero_reference_has_no_ratio() {
        assert_eq!(sums(&[(0.0, 1.0)]).sqnr_db(), None);
        assert_eq!(sums(&[(0.0, 0.0)]).sqnr_db(), Some(f64::INFINITY));
    }

    #[test]
    fn clipping_starts_half_a_step_beyond_the_range() {
        let range = EncodedRange { min: 0.0, max: 2.55, step: 0.01, low: 0, high: 255, offset: 0, bits: 8 };
        let mut tensor = TensorSums::default();
        tensor.take(&[0.0, -0.004, -0.006, 2.554, 2.556, 1.0], &[0.0; 6], &[6], None, Some(range));
        let figures = TensorFigures::new(&tensor, Some(range), false);
        assert_eq!(figures.clipped_share, Some(2.0 / 6.0));
        assert!((figures.used_share.unwrap() - 2.562 / 2.55).abs() < 1e-12);
    }

    #[test]
    fn the_channel_with_most_of_the_error_comes_first() {
        let mut tensor = TensorSums::default();
        // Shape 1x2x3: channels 0, 1, 2 of the last axis.
        let x = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0];
        let y = [1.0, 2.5, 3.1, 1.0, 2.5, 3.1];
        tensor.take(&x, &y, &[1, 2, 3], Some(2), None);
        let figures = TensorFigures::new(&tensor, None, false);
        let order: Vec<usize> = figures.worst_channels.iter().map(|row| row.channel).collect();
        assert_eq!(order, [1, 2]);
        assert!((figures.mse.unwrap() - (0.5 + 0.02) / 6.0).abs() < 1e-12);
        assert_eq!(tensor.whole.count, 6);
    }

    #[test]
    fn of_whole_numbers_the_share_that_differs_is_told() {
        let mut tensor = TensorSums::default();
        tensor.take(&[1.0, 0.0, 1.0, 1.0], &[1.0, 1.0, 1.0, 1.0], &[4], None, None);
        let figures = TensorFigures::new(&tensor, None, true);
        assert_eq!((figures.differing_share, figures.sqnr_db, figures.mse), (Some(0.25), None, None));
    }
}
