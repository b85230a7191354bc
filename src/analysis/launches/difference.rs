//! Two sides with several launches each.

use super::spread::Spread;
use super::student::t_975;

/// How often ranks may set equal sides apart by chance: of the 28 pairs of eight equal runs less than one.
const ALPHA: f64 = 0.02;
/// Launches of both sides together up to which the rank test is exact.
const EXACT_RANKS: usize = 40;

/// What sets one side apart from another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Middle of the other side divided by that of the first one, less 1.
    pub relative: f64,
    /// Its 95 % interval; it holds 0 exactly where the sides are not told apart.
    pub interval: [f64; 2],
    /// True if the difference lies outside of what launches vary.
    pub told: bool,
}

impl Difference {
    /// The largest difference that these launches leave possible, as a part.
    pub fn up_to(&self) -> f64 {
        self.interval[0].abs().max(self.interval[1].abs())
    }
}

/// Compares a figure of two sides by its values of each launch; `None` unless both have at least two.
///
/// Welch's test on logarithms gives the interval. It takes launches for normal, and where they fall on two levels one side may
/// have met only one of them by chance: few launches without any spread are then "different" from many with it. So ranks
/// have to agree (Mann and Whitney): so few launches overlap as would by chance in one of fifty cases, or none does where
/// the launches are too few for that.
pub fn difference(base: &[f64], other: &[f64]) -> Option<Difference> {
    let (one, two) = (Spread::of(base)?, Spread::of(other)?);
    let (a, b) = (one.variance_of_mean(), two.variance_of_mean());
    let freedom = (a + b).powi(2) / (a * a / one.freedom() + b * b / two.freedom());
    let half = t_975(freedom) * (a + b).sqrt();
    let apart = two.log_mean - one.log_mean;
    let told = apart.abs() > half && ranks_differ(base, other);
    let [low, high] = [(apart - half).exp_m1(), (apart + half).exp_m1()];
    let interval = if told { [low, high] } else { [low.min(0.0), high.max(0.0)] };
    Some(Difference { relative: apart.exp_m1(), interval, told })
}

/// True if the ranks of both sides' values speak against chance.
fn ranks_differ(base: &[f64], other: &[f64]) -> bool {
    let (few, all) = (base.len(), base.len() + other.len());
    // Pairs in which the first side's value is the larger one, doubled so that ties count for half.
    let pairs = |mine: f64| -> usize {
        other.iter().map(|theirs| if mine > *theirs { 2 } else { usize::from(mine.total_cmp(theirs).is_eq()) }).sum()
    };
    let most = few * other.len();
    let above: usize = base.iter().map(|mine| pairs(*mine)).sum();
    // What is on the smaller side; an odd half is counted as overlap.
    let overlap = above.min(2 * most - above).div_ceil(2);
    if overlap == 0 {
        return true;
    }
    if all > EXACT_RANKS {
        let (middle, size) = (most as f64 / 2.0, most as f64);
        let deviation = (size * (all as f64 + 1.0) / 12.0).sqrt();
        return (middle - overlap as f64) / deviation > 1.96;
    }
    let ways = ways(few, other.len());
    let total: f64 = ways.iter().sum();
    let as_far: f64 = ways.iter().take(overlap + 1).sum();
    2.0 * as_far / total <= ALPHA
}

/// In how many orders of `few` and `rest` values each number of pairs has the first side's value as the larger one.
fn ways(few: usize, rest: usize) -> Vec<f64> {
    let most = few * rest;
    // table[i][u]: orders of i of the first side and j of the second, for j growing.
    let mut table = vec![vec![0.0; most + 1]; few + 1];
    for row in &mut table {
        row[0] = 1.0;
    }
    for theirs in 1..=rest {
        for mine in 1..=few {
            // The largest value is one of the first side's, above all of the second's; or one of the second's.
            let with_mine = table[mine - 1].clone();
            let row = &mut table[mine];
            for pairs in (0..=most).rev() {
                let mine_on_top = pairs.checked_sub(theirs).map_or(0.0, |left| with_mine[left]);
                row[pairs] += mine_on_top;
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
        // Published: 20 orders of 3 and 3 values, 1 1 2 3 3 3 3 2 1 1 by pairs.
        assert_eq!(ways(3, 3), [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 1.0]);
        for (few, rest, orders) in [(2, 4, 15.0), (6, 10, 8008.0)] {
            assert!((ways(few, rest).iter().sum::<f64>() - orders).abs() < 1e-6);
        }
        // Critical values at 5 %, two-sided: 5 and 5 values 2, 6 and 6 values 5, 10 and 10 values 23.
        for (count, critical) in [(5, 2), (6, 5), (10, 23)] {
            let ways = ways(count, count);
            let total: f64 = ways.iter().sum();
            let p = |overlap: usize| 2.0 * ways.iter().take(overlap + 1).sum::<f64>() / total;
            assert!(p(critical) <= 0.05 && p(critical + 1) > 0.05, "{count}");
        }
    }

    #[test]
    fn a_difference_beyond_what_launches_vary_is_told() {
        let told = difference(&[1000.0, 1010.0, 990.0], &[1100.0, 1112.0, 1090.0]).unwrap();
        assert!(told.told && (told.relative - 0.1).abs() < 0.002, "{told:?}");
        assert!(told.interval[0] > 0.05 && told.interval[1] < 0.15, "{told:?}");
        let back = difference(&[1100.0, 1112.0, 1090.0], &[1000.0, 1010.0, 990.0]).unwrap();
        assert!(back.told && back.interval[1] < 0.0);
    }

    #[test]
    fn what_launches_vary_is_no_difference_and_says_how_large_one_could_be() {
        let alike = difference(&[1000.0, 1030.0, 980.0], &[1010.0, 1050.0, 990.0]).unwrap();
        assert!(!alike.told && alike.interval[0] < 0.0 && alike.interval[1] > 0.0);
        assert!(alike.up_to() > 0.05 && alike.up_to() < 0.2, "{alike:?}");
        assert_eq!(difference(&[1000.0], &[1010.0, 1020.0]), None);
    }

    #[test]
    fn launches_that_met_one_of_two_levels_are_not_told_from_those_that_met_both() {
        let one_level = [1001.0, 1003.0, 1002.0];
        let both = [1001.0, 2002.0, 1999.0, 1004.0, 2003.0, 1001.5, 2001.0, 2004.0, 1002.5, 2000.0];
        let seen = difference(&one_level, &both).unwrap();
        assert!(!seen.told && seen.interval[0] <= 0.0, "{seen:?}");
        // Welch alone would tell them apart.
        assert!(seen.interval[0].abs() < 1e-12, "{seen:?}");
        // Many launches: the normal approximation of the ranks agrees.
        let many: Vec<f64> = both.iter().chain(&both).chain(&both).chain(&both).copied().collect();
        assert!(!difference(&many, &both).unwrap().told);
        let slower: Vec<f64> = many.iter().map(|us| us * 3.0).collect();
        assert!(difference(&many, &slower).unwrap().told);
    }
}
