//! Where the difference begins: the first layer in the order of the graph that adds it, not the one that shows most of it.

use super::metrics::{Figures, TensorSums};
use super::pairing::Pairing;
use super::values::EncodedRange;

/// Share of clipped values from which an encoding does not fit.
pub const CLIPPED_SHARE: f64 = 0.001;
/// Share of its range that an encoding should use.
pub const USED_SHARE: f64 = 0.25;
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
/// What 8 bits that fit give at least, dB.
const FITTING_DB: f64 = 36.0;
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
    pub figures: Figures,
    /// What they were made from.
    pub sums: TensorSums,
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

    /// Whether it loses much by itself, though what comes of it is not below the limit yet.
    fn is_bad_alone(&self, min_sqnr_db: f64) -> bool {
        let (Some(whole), Some(own)) = (self.figures.sqnr_db, self.own_sqnr_db) else { return false };
        let worse = whole.max(own);
        // Softmax and sigmoids have the same encoding whatever their values are.
        let fixed = self.range.is_some_and(|range| (0.99..=1.01).contains(&range.max) && range.min.abs() <= 1.01);
        let wasted = !fixed && self.figures.used_share.is_some_and(|used| used < WASTED_SHARE);
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
    let first = layers.iter().position(|layer| layer.diverges(min_sqnr_db))?;
    let position = |pair: usize| layers.iter().position(|layer| layer.pair == pair);
    let sources = |at: usize| pairing.pairs[layers[at].pair].sources.iter().filter_map(|&pair| position(pair));
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
    let worth = |at: usize| layers[at].figures.sqnr_db.unwrap_or(f64::INFINITY);
    let drop = |at: usize| {
        let inherited = sources(at).map(worth).fold(f64::INFINITY, f64::min);
        inherited.min(layers[at].ceiling_db()) - worth(at)
    };
    let own = drop(first);
    // What the first one loses by itself is enough, unless another one before it lost clearly more.
    let mut chosen = (first, own.max(OWN_DROP_DB));
    chain.sort_unstable();
    for &at in chain.iter().filter(|&&at| at != first) {
        let lost = drop(at);
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
mod tests {
    use super::*;

    const U8: EncodedRange = EncodedRange { min: 0.0, max: 2.55, step: 0.01, low: 0, high: 255, offset: 0, bits: 8 };
    const S8: EncodedRange =
        EncodedRange { min: -1.28, max: 1.27, step: 0.01, low: -128, high: 127, offset: 0, bits: 8 };

    #[test]
    fn fitting_encodings_hold_zero_and_both_ends() {
        let (scale, offset) = fitting(-0.5, 1.5, U8).unwrap();
        let real = |stored: f64| (stored + f64::from(offset)) * f64::from(scale);
        assert!(real(0.0) <= -0.5 + f64::from(scale) && real(255.0) >= 1.5 - f64::from(scale), "{scale} {offset}");
        assert_eq!(fitting(0.2, 2.55, U8).unwrap(), (0.01, 0));
        assert_eq!(fitting(-2.54, 1.0, S8).unwrap(), (0.02, 0));
        assert_eq!(fitting(0.0, 0.0, U8), None);
    }
}
