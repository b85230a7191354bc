//! A layer of two models: its figures, and what they say by themselves.

use super::fit::{CLIPPED_SHARE, USED_SHARE, fitting, turned};
use super::metrics::{TensorFigures, TensorSums};
use super::spread::{DiffMap, Spread};
use super::values::EncodedRange;
use crate::models::Tensor;

/// Share of differing whole numbers from which a tensor of them diverges.
const DIFFERING_SHARE: f64 = 0.1;
/// How far below the limit a channel has to be to count alone, dB.
const CHANNEL_MARGIN_DB: f64 = 10.0;
/// Channels with less than this share of the mean energy do not count.
const QUIET_CHANNEL: f64 = 0.1;
/// How much more a layer may lose alone than all of them together, dB.
const ALONE_DB: f64 = 10.0;
/// Share of its range that an encoding must use not to be at fault alone.
const WASTED_SHARE: f64 = 0.15;
/// A channel this much louder than the middle one leaves the others few levels.
const LOUD_CHANNEL: f64 = 16.0;
/// Share of clipped values that data beyond the calibration's does not explain.
const WRONG_CLIPPED_SHARE: f64 = 0.01;
/// What 8 bits that fit give at least, dB.
const FITTING_DB: f64 = 36.0;

/// One layer: a pair of tensors that was read.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Position of its pair.
    pub pair: usize,
    /// Op of the test that makes it.
    pub op: String,
    /// Its type.
    pub op_type: String,
    /// Figures over all inputs.
    pub figures: TensorFigures,
    /// What they were made from.
    pub sums: TensorSums,
    /// How its values are spread.
    pub spread: Option<Spread>,
    /// Where images differ.
    pub map: Option<DiffMap>,
    /// What the test's encoding can hold.
    pub range: Option<EncodedRange>,
    /// Signal to noise of the op alone, computed on the reference's values; `None` where that could not be done.
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

    /// Whether its encoding clips, or wastes its range, more than data that differs from the calibration's would have it.
    pub fn has_wrong_range(&self) -> bool {
        self.figures.clipped_share.is_some_and(|share| share > WRONG_CLIPPED_SHARE)
            || self.figures.used_share.is_some_and(|used| used < WASTED_SHARE) && !self.has_fixed_range()
    }

    /// Whether its encoding clips, and would fit with its offset or its ends turned.
    pub fn is_turned(&self) -> bool {
        let whole = &self.sums.whole;
        let clipped = self.figures.clipped_share.is_some_and(|share| share > CLIPPED_SHARE);
        clipped && self.range.is_some_and(|range| turned(whole.min, whole.max, range).is_some())
    }

    /// Softmax and sigmoids have the same encoding whatever their values are.
    fn has_fixed_range(&self) -> bool {
        self.range.is_some_and(|range| (0.99..=1.01).contains(&range.max) && range.min.abs() <= 1.01)
    }

    /// The size of the largest channel and of the middle one, where one is so much larger that it leaves the others few levels.
    pub fn loud_channel(&self) -> Option<(f64, f64)> {
        let mut sizes: Vec<f64> = self.sums.channels.iter().map(|sums| sums.max.abs().max(sums.min.abs())).collect();
        sizes.retain(|size| size.is_finite());
        sizes.sort_by(f64::total_cmp);
        let (&middle, &largest) = sizes.get(sizes.len() / 2).zip(sizes.last())?;
        (sizes.len() >= 4 && middle > 0.0 && largest > middle * LOUD_CHANNEL).then_some((largest, middle))
    }

    /// Whether nothing but the sum of small errors contradicts it: it is above the limit, whole, and no channel of it is lost.
    pub fn is_even(&self, min_sqnr_db: f64) -> bool {
        self.figures.sqnr_db.is_some_and(|sqnr| sqnr >= min_sqnr_db)
            && self.sums.whole.broken == 0
            && self.loud_channel().is_none()
            && self.bad_channels(min_sqnr_db).is_empty()
    }

    /// Whether it loses much by itself, though what comes of it is not below the limit yet.
    fn is_bad_alone(&self, min_sqnr_db: f64) -> bool {
        let (Some(whole), Some(own)) = (self.figures.sqnr_db, self.own_sqnr_db) else { return false };
        let worse = whole.max(own);
        let wasted = !self.has_fixed_range() && self.figures.used_share.is_some_and(|used| used < WASTED_SHARE);
        worse < min_sqnr_db + ALONE_DB || (wasted && worse < FITTING_DB)
    }

    /// True for whole numbers and truth values.
    pub fn is_counted(&self) -> bool {
        self.figures.mse.is_none() && self.sums.whole.count > 0
    }

    /// An encoding of the same type that fits the reference's values, where the tensor's own does not: what an op makes of a
    /// tensor must not be blamed for what its encoding loses.
    pub fn better_encoding(&self) -> Option<(f32, i32)> {
        let range = self.range?;
        let clipped = self.figures.clipped_share.is_some_and(|share| share > CLIPPED_SHARE);
        let wasted = self.figures.used_share.is_some_and(|share| share < USED_SHARE);
        if !(clipped || wasted) || range.bits > 16 {
            return None;
        }
        fitting(self.sums.whole.min, self.sums.whole.max, range)
    }

    /// The best that a tensor with these bits can be expected to have, dB: a signal that fills its range less than evenly.
    pub fn ceiling_db(&self) -> f64 {
        self.range.map_or(60.0, |range| (f64::from(range.bits) * 6.0 - 8.0).clamp(16.0, 60.0))
    }
}

/// A constant of the op that diverges, compared with the reference's.
#[derive(Debug, Clone)]
pub struct Constant {
    /// The test's tensor.
    pub tensor: Tensor,
    /// Figures, by what its encoding can hold.
    pub figures: TensorFigures,
    /// Sums, by slice of the encoding's axis, or by output channel.
    pub sums: TensorSums,
    /// What the encoding can hold, for one scale.
    pub range: Option<EncodedRange>,
}
