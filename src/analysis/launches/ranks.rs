//! Compares two sides by the ranks of their launches, whatever their distribution.
//!
//! The Mann-Whitney test counts the pairs of launches in which the first side is slower; the Hodges-Lehmann
//! estimate is the median of the differences of all pairs. If launches fall on two levels, twice as slow in
//! some processes, half of the pairs are on the same level, and their difference is that of the sides; the
//! other pairs are spread evenly above and below. A difference of means would be drowned out by the distance
//! between the levels.

/// False alarm rate of ranks for equal sides. Runs end when their launches agree, which raises it somewhat:
/// among the 28 pairs of eight equal runs, about every second such set of eight has one false alarm.
pub(super) const ALPHA: f64 = 0.01;
/// The same for intervals.
pub(super) const INTERVAL: f64 = 0.05;
/// Total number of launches up to which probabilities are enumerated; above, the normal approximation of Mann
/// and Whitney applies.
const EXACT: usize = 60;

/// Quantiles of the normal distribution that leave half of [`ALPHA`] and of [`INTERVAL`] above them.
const Z: (f64, f64) = (2.576, 1.960);

/// The result of the ranks of two sides, on the scale of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranks {
    /// Equal sides would differ this much in at most one case in a hundred.
    pub apart: bool,
    /// The median difference of a launch of the other side from one of the first.
    pub middle: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
}

impl Ranks {
    /// From the logarithms of both sides' values; `None` if there are too few launches for ranks to tell
    /// sides apart at all.
    pub fn of(base: &[f64], other: &[f64]) -> Option<Self> {
        let Critical { told, interval } = Critical::of(base.len(), other.len())?;
        let mut apart: Vec<f64> = base.iter().flat_map(|mine| other.iter().map(move |theirs| theirs - mine)).collect();
        apart.sort_by(f64::total_cmp);
        let last = apart.len() - 1;
        Some(Self {
            apart: overlap(&apart) <= told,
            middle: f64::midpoint(apart[last / 2], apart[last.div_ceil(2)]),
            interval: [apart[interval], apart[last - interval]],
        })
    }
}

/// True if the two sides' launches do not overlap.
pub(super) fn are_separate(base: &[f64], other: &[f64]) -> bool {
    let range =
        |values: &[f64]| values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    let (one, two) = (range(base), range(other));
    one.1 < two.0 || two.1 < one.0
}

/// The number of differences with the rarer sign; equal values count as half, rounded up.
pub(super) fn overlap(apart: &[f64]) -> usize {
    let (below, above) = (apart.iter().filter(|d| **d < 0.0).count(), apart.iter().filter(|d| **d > 0.0).count());
    (2 * below.min(above) + (apart.len() - below - above)).div_ceil(2)
}

/// The largest overlaps that are rare enough by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Critical {
    told: usize,
    interval: usize,
}

impl Critical {
    /// For this many launches; `None` if even non-overlapping sides are not rare enough.
    fn of(few: usize, rest: usize) -> Option<Self> {
        if few + rest > EXACT {
            let (middle, size) = ((few * rest) as f64 / 2.0, (few * rest) as f64);
            let deviation = (size * ((few + rest) as f64 + 1.0) / 12.0).sqrt();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 0, and a count")]
            let at = |z: f64| (middle - z * deviation - 0.5).max(0.0) as usize;
            // One launch against any number remains undecided.
            return (few.min(rest) > 1).then(|| Self { told: at(Z.0), interval: at(Z.1) });
        }
        let ways = ways(few, rest);
        let total: f64 = ways.iter().sum();
        let chances = ways.iter().scan(0.0, |sum, ways| {
            *sum += 2.0 * ways / total;
            Some(*sum)
        });
        let chances: Vec<f64> = chances.collect();
        let at = |alpha: f64| chances.partition_point(|chance| *chance <= alpha).checked_sub(1);
        Some(Self { told: at(ALPHA)?, interval: at(INTERVAL)? })
    }
}

/// The number of orders of `few` and `rest` values in which the first side's value is the larger one in each
/// number of pairs.
fn ways(few: usize, rest: usize) -> Vec<f64> {
    let most = few * rest;
    // table[i][u]: orders of i values of the first side and j of the second, for increasing j.
    let mut table = vec![vec![0.0; most + 1]; few + 1];
    for row in &mut table {
        row[0] = 1.0;
    }
    for theirs in 1..=rest {
        for mine in 1..=few {
            // The largest value belongs to the first side and exceeds all of the second's; or it belongs to
            // the second.
            let (before, row) = table.split_at_mut(mine);
            let (with_mine, row) = (&before[mine - 1], &mut row[0]);
            for pairs in theirs..=most {
                row[pairs] += with_mine[pairs - theirs];
            }
        }
    }
    table.swap_remove(few)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_counted_as_mann_and_whitney_did() {
        // Published: the 20 orders of 3 and 3 values, by number of pairs: 1 1 2 3 3 3 3 2 1 1.
        assert_eq!(ways(3, 3), [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 1.0]);
        for (few, rest, orders) in [(2, 4, 15.0), (6, 10, 8008.0)] {
            assert!((ways(few, rest).iter().sum::<f64>() - orders).abs() < 1e-6);
        }
        // Published two-sided critical values at 1 % and at 5 %.
        for (count, told, interval) in [(5, 0, 2), (6, 2, 5), (10, 16, 23), (20, 105, 127)] {
            assert_eq!(Critical::of(count, count), Some(Critical { told, interval }), "{count}");
        }
        assert_eq!(Critical::of(3, 3), None, "1 case in 10 has no overlap");
        assert_eq!(Critical::of(1, 300), None);
        // The approximation continues where enumeration ends, to within one pair in a hundred.
        let (counted, near) = (Critical::of(30, 30).unwrap(), Critical::of(30, 31).unwrap());
        assert!(counted.told < near.told && near.told < counted.told + 18, "{counted:?} {near:?}");
    }

    #[test]
    fn equal_values_are_half_an_overlap() {
        assert_eq!(overlap(&[-1.0, 0.0, 0.0, 2.0]), 2);
        assert_eq!(overlap(&[0.0, 1.0]), 1);
        assert_eq!(overlap(&[1.0, 1.0]), 0);
        assert!(are_separate(&[1.0, 2.0], &[3.0, 4.0]) && !are_separate(&[1.0, 3.0], &[3.0, 4.0]));
    }

    #[test]
    fn the_middle_of_two_levels_is_the_difference_of_the_sides() {
        let levels = |shift: f64, slow: usize| -> Vec<f64> {
            (0..20).map(|at| shift + if at < slow { 0.7 } else { 0.0 } + 0.001 * (at % 5) as f64).collect()
        };
        // One side hit the slow level 12 times, the other 8 times: its mean is lower although each of its
        // launches is slower.
        let seen = Ranks::of(&levels(0.0, 12), &levels(0.1, 8)).unwrap();
        assert!((seen.middle - 0.1).abs() < 0.01, "{seen:?}");
        let equal = Ranks::of(&levels(0.0, 12), &levels(0.0, 8)).unwrap();
        assert!(!equal.apart && equal.interval[0] <= 0.0, "{equal:?}");
    }
}
