//! A layer of two models: its figures, and what they show on their own.

use super::fit::{CLIPPED_SHARE, USED_SHARE, fitting, turned};
use super::metrics::{TensorFigures, TensorSums};
use super::spread::{DiffMap, Spread};
use super::values::EncodedRange;
use crate::models::Tensor;

/// Share of differing values above which an integer tensor diverges.
const DIFFERING_SHARE: f64 = 0.1;
/// How far below the limit a single channel must be to count, dB.
const CHANNEL_MARGIN_DB: f64 = 10.0;
/// Channels with less than this share of the mean energy are ignored.
const QUIET_CHANNEL: f64 = 0.1;
/// Margin above the limit that a layer must keep on its own, dB: one layer may lose less than all of them
/// together.
const ALONE_DB: f64 = 10.0;
/// Share of its range that an encoding must use not to be at fault on its own.
const WASTED_SHARE: f64 = 0.15;
/// A channel this many times as loud as the median one leaves the others few levels.
const LOUD_CHANNEL: f64 = 16.0;
/// Share of clipped values that data beyond the calibration range does not explain.
const WRONG_CLIPPED_SHARE: f64 = 0.01;
/// Minimum SQNR of a fitting 8-bit encoding, dB.
const FITTING_DB: f64 = 36.0;

/// One layer: a pair of tensors that was read.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Index of its pair.
    pub pair: usize,
    /// Op of the test that computes it.
    pub op: String,
    /// Its type.
    pub op_type: String,
    /// Figures over all inputs.
    pub figures: TensorFigures,
    /// The sums behind them.
    pub sums: TensorSums,
    /// Distribution of its values.
    pub spread: Option<Spread>,
    /// Where images differ.
    pub map: Option<DiffMap>,
    /// What the test's encoding can represent.
    pub range: Option<EncodedRange>,
    /// SQNR of the op alone, computed on the reference's values, dB; `None` if that was not possible.
    pub own_sqnr_db: Option<f64>,
}

impl Layer {
    /// Channels that are far worse than the limit, and loud enough to matter.
    pub fn bad_channels(&self, min_sqnr_db: f64) -> Vec<usize> {
        let channels = &self.sums.channels;
        if self.range.is_none() || channels.is_empty() {
            return Vec::new();
        }
        let quiet = self.sums.whole.signal() / channels.len() as f64 * QUIET_CHANNEL;
        let bad = |at: &usize| {
            let channel = &channels[*at];
            channel.signal() > quiet && channel.sqnr_db().is_some_and(|sqnr| sqnr < min_sqnr_db - CHANNEL_MARGIN_DB)
        };
        (0..channels.len()).filter(bad).collect()
    }

    /// Whether it is further from its reference than the limit allows.
    pub fn diverges(&self, min_sqnr_db: f64) -> bool {
        let whole = &self.sums.whole;
        if self.is_counted() {
            return self.figures.differing_share.is_some_and(|share| share > DIFFERING_SHARE);
        }
        whole.broken > 0
            || self.is_bad_alone(min_sqnr_db)
            || self.figures.sqnr_db.is_some_and(|sqnr| sqnr < min_sqnr_db)
            || !self.bad_channels(min_sqnr_db).is_empty()
    }

    /// Whether its encoding clips, or wastes its range, more than differences from the calibration data would
    /// explain.
    pub fn has_wrong_range(&self) -> bool {
        self.figures.clipped_share.is_some_and(|share| share > WRONG_CLIPPED_SHARE)
            || self.figures.used_share.is_some_and(|used| used < WASTED_SHARE) && !self.has_fixed_range()
    }

    /// Whether its encoding clips, and would fit with the sign of its offset or of its ends flipped.
    pub fn is_turned(&self) -> bool {
        let whole = &self.sums.whole;
        let clipped = self.figures.clipped_share.is_some_and(|share| share > CLIPPED_SHARE);
        clipped && self.range.is_some_and(|range| turned(whole.min, whole.max, range).is_some())
    }

    /// Softmax and sigmoids have the same encoding whatever their values.
    fn has_fixed_range(&self) -> bool {
        self.range.is_some_and(|range| (0.99..=1.01).contains(&range.max) && range.min.abs() <= 1.01)
    }

    /// The magnitudes of the largest and the median channel, if the largest leaves the others few levels.
    pub fn loud_channel(&self) -> Option<(f64, f64)> {
        let mut sizes: Vec<f64> = self.sums.channels.iter().map(|sums| sums.max.abs().max(sums.min.abs())).collect();
        sizes.retain(|size| size.is_finite());
        sizes.sort_by(f64::total_cmp);
        let (&middle, &largest) = sizes.get(sizes.len() / 2).zip(sizes.last())?;
        (sizes.len() >= 4 && middle > 0.0 && largest > middle * LOUD_CHANNEL).then_some((largest, middle))
    }

    /// Whether it can only be faulted for accumulating small errors: it is above the limit, finite, and no
    /// channel is lost.
    pub fn is_even(&self, min_sqnr_db: f64) -> bool {
        self.figures.sqnr_db.is_some_and(|sqnr| sqnr >= min_sqnr_db)
            && self.sums.whole.broken == 0
            && self.loud_channel().is_none()
            && self.bad_channels(min_sqnr_db).is_empty()
    }

    /// Whether it loses much on its own, even if the result is not below the limit yet.
    fn is_bad_alone(&self, min_sqnr_db: f64) -> bool {
        let (Some(whole), Some(own)) = (self.figures.sqnr_db, self.own_sqnr_db) else { return false };
        let worse = whole.max(own);
        let wasted = !self.has_fixed_range() && self.figures.used_share.is_some_and(|used| used < WASTED_SHARE);
        worse < min_sqnr_db + ALONE_DB || (wasted && worse < FITTING_DB)
    }

    /// True for integers and booleans.
    pub fn is_counted(&self) -> bool {
        self.figures.mse.is_none() && self.sums.whole.count > 0
    }

    /// An encoding of the same type that fits the reference's values, if the tensor's own does not: an op's
    /// result must not be blamed for what its encoding loses.
    pub fn better_encoding(&self) -> Option<(f32, i32)> {
        let range = self.range?;
        let clipped = self.figures.clipped_share.is_some_and(|share| share > CLIPPED_SHARE);
        let wasted = self.figures.used_share.is_some_and(|share| share < USED_SHARE);
        if !(clipped || wasted) || range.bits > 16 {
            return None;
        }
        fitting(self.sums.whole.min, self.sums.whole.max, range)
    }

    /// The best SQNR to expect of a tensor with this many bits, dB, for a signal that does not fill its range
    /// evenly.
    pub fn ceiling_db(&self) -> f64 {
        self.range.map_or(60.0, |range| (f64::from(range.bits) * 6.0 - 8.0).clamp(16.0, 60.0))
    }
}

/// A constant of the diverging op, compared with the reference's.
#[derive(Debug, Clone)]
pub struct Constant {
    /// The test's tensor.
    pub tensor: Tensor,
    /// Figures, relative to what its encoding can represent.
    pub figures: TensorFigures,
    /// Sums per slice along the encoding's axis, or per output channel.
    pub sums: TensorSums,
    /// What the encoding can represent, if it has a single scale.
    pub range: Option<EncodedRange>,
}
