//! Where the difference begins: the first layer in graph order that adds it, not the one that shows most of it.

use super::cause;
use super::metrics::{TensorFigures, TensorSums};
use super::pairing::Pairing;
use super::spread::{DiffMap, Spread};
use super::values::EncodedRange;

/// Share of clipped values from which an encoding does not fit.
pub const CLIPPED_SHARE: f64 = 0.001;
/// Share of its range that an encoding should use.
pub const USED_SHARE: f64 = 0.25;
/// Share of differing integers from which an integer tensor diverges.
const DIFFERING_SHARE: f64 = 0.1;
/// How far below the limit a channel must be to count alone, dB.
const CHANNEL_MARGIN_DB: f64 = 10.0;
/// Channels with less than this share of the mean energy do not count.
const QUIET_CHANNEL: f64 = 0.1;
/// How much more a layer may lose alone than all of them together, dB.
const ALONE_DB: f64 = 10.0;
/// Share of its range that an encoding must use not to be at fault alone.
const WASTED_SHARE: f64 = 0.15;
/// A channel this much louder than the median one leaves the others few levels.
const LOUD_CHANNEL: f64 = 16.0;
/// Share of clipped values that data beyond the calibration's does not explain.
const WRONG_CLIPPED_SHARE: f64 = 0.01;
/// How much such a range weighs beside what layers lose, dB.
const WRONG_RANGE_DB: f64 = 6.0;
/// What 8 bits that fit give at least, dB.
const FITTING_DB: f64 = 36.0;
/// A layer above the limit that loses less than this has lower priority, dB.
const MILD_DROP_DB: f64 = 12.0;
/// A layer that loses less than this only inherits, dB.
const OWN_DROP_DB: f64 = 6.0;

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
    /// The range of the test's encoding.
    pub range: Option<EncodedRange>,
    /// Signal to noise of the op alone, computed on the reference's values; `None` if that was impossible.
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

    /// Whether its encoding clips, or wastes its range, more than data different from the calibration's explains.
    fn has_wrong_range(&self) -> bool {
        self.figures.clipped_share.is_some_and(|share| share > WRONG_CLIPPED_SHARE)
            || self.figures.used_share.is_some_and(|used| used < WASTED_SHARE) && !self.has_fixed_range()
    }

    /// Whether its encoding clips, and would fit with its offset or its ends turned.
    fn is_turned(&self) -> bool {
        let whole = &self.sums.whole;
        let clipped = self.figures.clipped_share.is_some_and(|share| share > CLIPPED_SHARE);
        clipped && self.range.is_some_and(|range| cause::turned(whole.min, whole.max, range).is_some())
    }

    /// Softmax and sigmoids have the same encoding whatever their values.
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
    fn is_even(&self, min_sqnr_db: f64) -> bool {
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

    /// True for integers and booleans.
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
    fn ceiling_db(&self) -> f64 {
        self.range.map_or(60.0, |range| (f64::from(range.bits) * 6.0 - 8.0).clamp(16.0, 60.0))
    }
}

/// Scale and offset of the stored numbers of `like` for values from `min` to `max`.
pub fn fitting(min: f64, max: f64, like: EncodedRange) -> Option<(f32, i32)> {
    let (min, max) = (min.min(0.0), max.max(0.0));
    if max <= min || !(max - min).is_finite() {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "scales are float32, offsets far below 2^31 for up to 16 bits")]
    Some(if like.low < 0 && like.offset == 0 {
        (((-min).max(max) / like.high as f64) as f32, 0)
    } else {
        let scale = (max - min) / (like.high - like.low) as f64;
        (scale as f32, ((min / scale).round() as i64 - like.low) as i32)
    })
}

/// Position of the layer where the difference begins; `None` if no layer is below the limit.
///
/// It is at or before the first one below the limit: of those that it computes from, the one that loses most against what it
/// was made from. A layer below the limit may only sum up what one before it, still above the limit, has lost.
pub fn first_diverging(layers: &[Layer], pairing: &Pairing, min_sqnr_db: f64) -> Option<usize> {
    let position = |pair: usize| layers.iter().position(|layer| layer.pair == pair);
    let sources = |at: usize| pairing.pairs[layers[at].pair].sources.iter().filter_map(|&pair| position(pair));
    let worth = |at: usize| layers[at].figures.sqnr_db.unwrap_or(f64::INFINITY);
    let drop = |at: usize| {
        let inherited = sources(at).map(worth).fold(f64::INFINITY, f64::min);
        inherited.min(layers[at].ceiling_db()) - worth(at)
    };
    // What loses little and is above the limit waits for the rest: it is among their sources, if it is to blame for them. Alone it counts
    // where its encoding is wrong by itself; data a little beyond the calibration's is no fault.
    let diverges = |at: &usize| layers[*at].diverges(min_sqnr_db);
    let is_mild = |at: usize| layers[at].is_even(min_sqnr_db) && drop(at) < MILD_DROP_DB;
    let first = (0..layers.len()).find(|at| diverges(at) && !is_mild(*at));
    let is_wrong = |at: &usize| layers[*at].has_wrong_range() || layers[*at].is_turned();
    let first = first.or_else(|| (0..layers.len()).find(|at| diverges(at) && is_wrong(at)))?;
    let mut chain = vec![first];
    let mut next = 0;
    while let Some(&at) = chain.get(next) {
        for source in sources(at) {
            if !chain.contains(&source) {
                chain.push(source);
            }
        }
        next += 1;
    }
    // An encoding that is wrong by itself speaks against its layer.
    let blame = |at: usize| drop(at) + if layers[at].has_wrong_range() { WRONG_RANGE_DB } else { 0.0 };
    let own = blame(first);
    // What the first one loses by itself is enough, unless another one before it lost clearly more.
    let mut chosen = (first, own.max(OWN_DROP_DB));
    chain.sort_unstable();
    for &at in chain.iter().filter(|&&at| at != first) {
        let lost = blame(at);
        if lost > chosen.1 && !layers[at].is_counted() {
            chosen = (at, lost);
        }
    }
    Some(chosen.0)
}

/// What the worst of the layers that a layer computes from has; infinite for one that computes from inputs only.
pub fn inherited_db(layers: &[Layer], at: usize, pairing: &Pairing) -> f64 {
    let sources = &pairing.pairs[layers[at].pair].sources;
    let rows = layers.iter().filter(|layer| sources.contains(&layer.pair));
    rows.filter_map(|layer| layer.figures.sqnr_db).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests;
