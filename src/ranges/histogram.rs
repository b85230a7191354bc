//! A histogram of real numbers of any size with a bounded relative error, whose parts can be added up.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bits of the fraction that count: 64 bins for each power of two, so a bin is at most 1.6 % wide.
const FRACTION_BITS: u32 = 6;
/// Bits of a float32's fraction below those.
const DROPPED: u32 = 23 - FRACTION_BITS;

/// Counts of numbers by sign and magnitude. Numbers are treated as float32; NaN is skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Maps a bin's number to its count. Bins sort like the numbers in them; 0 is the number zero.
    bins: BTreeMap<i32, u64>,
    count: u64,
}

impl Histogram {
    /// Takes a number in.
    #[expect(clippy::cast_possible_truncation, reason = "float32 is as fine as bins are")]
    pub fn take(&mut self, value: f64) {
        let value = value as f32;
        if value.is_finite() {
            *self.bins.entry(bin(value)).or_default() += 1;
            self.count += 1;
        }
    }

    /// Takes all numbers of a list in.
    pub fn take_all(&mut self, values: &[f64]) {
        // Neighbours often fall into one bin, and map access is slow.
        let (mut last, mut run) = (None, 0u64);
        for &value in values {
            #[expect(clippy::cast_possible_truncation, reason = "float32 is as fine as bins are")]
            let value = value as f32;
            if !value.is_finite() {
                continue;
            }
            self.count += 1;
            let at = bin(value);
            if last == Some(at) {
                run += 1;
                continue;
            }
            if let Some(last) = last {
                *self.bins.entry(last).or_default() += run;
            }
            (last, run) = (Some(at), 1);
        }
        if let Some(last) = last {
            *self.bins.entry(last).or_default() += run;
        }
    }

    /// Adds another one up.
    pub fn add(&mut self, other: &Self) {
        for (&bin, &count) in &other.bins {
            *self.bins.entry(bin).or_default() += count;
        }
        self.count += other.count;
    }

    /// Numbers that were taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number below which this share of all lies, within the width of a bin; `None` if there are none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
        let wanted = ((share.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (&bin, &count) in &self.bins {
            seen += count;
            if seen >= wanted {
                return Some(middle(bin));
            }
        }
        self.bins.keys().next_back().map(|&bin| middle(bin))
    }

    /// The middle of each bin with its count, from the smallest number on.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.bins.iter().map(|(&bin, &count)| (middle(bin), count))
    }
}

fn bin(value: f32) -> i32 {
    let size = value.abs().to_bits() >> DROPPED;
    // At most 2^14, so it fits. Subnormals share bin 0 with zero.
    #[expect(clippy::cast_possible_wrap, reason = "see above")]
    let size = if value == 0.0 { 0 } else { size as i32 };
    if value < 0.0 { -size } else { size }
}

fn middle(bin: i32) -> f64 {
    if bin == 0 {
        return 0.0;
    }
    let bits = bin.unsigned_abs() << DROPPED;
    let (low, high) = (f64::from(f32::from_bits(bits)), f64::from(f32::from_bits(bits + (1 << DROPPED))));
    let middle = if high.is_finite() { f64::midpoint(low, high) } else { low };
    if bin < 0 { -middle } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_within_a_bin() {
        let mut histogram = Histogram::default();
        for value in -1000..=1000 {
            histogram.take(f64::from(value));
        }
        for (share, right) in [(0.0, -1000.0), (0.25, -500.0), (0.5, 0.0), (0.99, 980.0), (1.0, 1000.0)] {
            let found = histogram.quantile(share).unwrap();
            assert!((found - right).abs() <= 1.0 + right.abs() * 0.016, "{share}: {found}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(values in prop::collection::vec(-1e6f64..1e6, 0..200), cut in 0usize..200) {
            let cut = cut.min(values.len());
            let mut whole = Histogram::default();
            for &value in &values {
                whole.take(value);
            }
            let (mut one, mut other) = (Histogram::default(), Histogram::default());
            one.take_all(&values[..cut]);
            other.take_all(&values[cut..]);
            one.add(&other);
            prop_assert_eq!(&one, &whole);
            prop_assert_eq!(whole.count(), values.len() as u64);
        }

        #[test]
        fn a_bin_holds_what_is_near_its_middle(value in prop::num::f32::NORMAL) {
            let mut histogram = Histogram::default();
            histogram.take(f64::from(value));
            histogram.take(f64::NAN);
            let (middle, count) = histogram.bins().next().unwrap();
            prop_assert_eq!(count, 1);
            prop_assert!((middle - f64::from(value)).abs() <= f64::from(value.abs()) * 0.016);
        }
    }
}
