//! Two sides whose launches took turns, by the ratio of each pair of neighbours.
//!
//! What a machine does for seconds (a neighbour's burst, a clock that steps down) falls on both launches of a turn, and their ratio is
//! free of it. Wilcoxon's signed ranks need no more of the ratios than that they lie evenly around the difference of the sides.

use super::ranks::{ALPHA, INTERVAL, overlap};

/// What the turns of two sides say, on the scale of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paired {
    /// Equal sides would lie so far apart in at most one of a hundred cases.
    pub apart: bool,
    /// The middle of the means of all pairs of ratios (Hodges and Lehmann).
    pub middle: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
}

impl Paired {
    /// Of the logarithms of both sides' values in the order of their turns; what one side has more of stays out. `None` for fewer
    /// than eight turns, which could not set sides apart.
    pub fn of(base: &[f64], other: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = base.iter().zip(other).map(|(mine, theirs)| theirs - mine).collect();
        let Critical { told, interval } = Critical::of(ratios.len())?;
        let mut means: Vec<f64> = Vec::with_capacity(ratios.len() * (ratios.len() + 1) / 2);
        for (at, one) in ratios.iter().enumerate() {
            means.extend(ratios[at..].iter().map(|two| f64::midpoint(*one, *two)));
        }
        means.sort_by(f64::total_cmp);
        let last = means.len() - 1;
        Some(Self {
            apart: overlap(&means) <= told,
            middle: f64::midpoint(means[last / 2], means[last.div_ceil(2)]),
            interval: [means[interval], means[last - interval]],
        })
    }
}

/// The largest sums of ranks that chance gives rarely enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Critical {
    told: usize,
    interval: usize,
}

impl Critical {
    /// For so many turns; `None` where even ratios of one sign are not rare enough.
    fn of(turns: usize) -> Option<Self> {
        let mut sum = 0.0;
        let total = 2f64.powi(i32::try_from(turns).ok()?);
        let chances: Vec<f64> = ways(turns)
            .into_iter()
            .map(|ways| {
                sum += 2.0 * ways / total;
                sum
            })
            .collect();
        let at = |alpha: f64| chances.partition_point(|chance| *chance <= alpha).checked_sub(1);
        Some(Self { told: at(ALPHA)?, interval: at(INTERVAL)? })
    }
}

/// In how many choices of signs each sum of positive ranks comes out.
fn ways(turns: usize) -> Vec<f64> {
    let mut ways = vec![0.0; turns * (turns + 1) / 2 + 1];
    ways[0] = 1.0;
    for rank in 1..=turns {
        for sum in (rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_ranks_are_counted_as_wilcoxon_did() {
        assert_eq!(ways(3), [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
        // Published critical values, two-sided, at 1 % and at 5 %.
        for (turns, told, interval) in [(8, 0, 3), (10, 3, 8), (15, 15, 25), (20, 37, 52), (25, 68, 89)] {
            assert_eq!(Critical::of(turns), Some(Critical { told, interval }), "{turns}");
        }
        assert_eq!(Critical::of(7), None, "one case in 64 has all ratios of one sign");
        assert_eq!(Critical::of(0), None);
    }

    #[test]
    fn what_falls_on_both_launches_of_a_turn_is_no_noise() {
        // A neighbour makes every third turn slower by a factor of four; the other side is 5 % slower throughout.
        let base: Vec<f64> = (0..12)
            .map(|turn| if turn % 3 == 0 { 4.0_f64.ln() } else { 0.0 } + 0.002 * f64::from(turn * 7 % 5))
            .collect();
        let other: Vec<f64> =
            base.iter().enumerate().map(|(turn, us)| us + 1.05_f64.ln() + 0.001 * (turn as f64 % 2.0)).collect();
        let seen = Paired::of(&base, &other).unwrap();
        assert!(seen.apart && (seen.middle - 1.05_f64.ln()).abs() < 0.001, "{seen:?}");
        assert!(seen.interval[0] > 0.045 && seen.interval[1] < 0.053, "{seen:?}");
        let equal = Paired::of(&base, &base).unwrap();
        assert!(!equal.apart && equal.interval == [0.0, 0.0], "{equal:?}");
    }
}
