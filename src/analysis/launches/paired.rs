//! Two sides with alternating launches, compared by the ratio of each pair of neighbours.
//!
//! Disturbances that last seconds (a neighbour's burst, a clock step) affect both launches of a turn and
//! cancel in their ratio. Two tests use the ratios, and both only assume that equal sides give ratios
//! distributed evenly around 1. Wilcoxon's signed ranks are most sensitive if ratios scatter like noise. If
//! launches fall on levels, half of the ratios may be off by a factor in either direction; these have the
//! highest ranks and drown out the others, whereas signs count each ratio once.

use super::ranks::overlap;

/// False alarm rate of each of the two tests for equal sides: one in forty for both together.
const ALPHA: f64 = 0.0125;
/// How often each test's interval may miss the difference. The intersection of both misses it in 2 to 4 of a
/// hundred simulated cases, since they use the same ratios.
const INTERVAL: f64 = 0.03;

/// The result for two alternating sides, on the scale of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paired {
    /// Equal sides would differ this much in at most one case in forty.
    pub apart: bool,
    /// The difference by the more precise test: the Hodges-Lehmann estimate (the median of the means of all
    /// pairs of ratios), or the median ratio.
    pub middle: f64,
    /// The intersection of both 97 % intervals: a 95 % interval.
    pub interval: [f64; 2],
}

impl Paired {
    /// From the logarithms of both sides' values in the order of their turns; surplus values of one side are
    /// ignored. `None` for fewer than eight turns, which could not tell sides apart.
    pub fn of(base: &[f64], other: &[f64]) -> Option<Self> {
        let mut ratios: Vec<f64> = base.iter().zip(other).map(|(mine, theirs)| theirs - mine).collect();
        let mut means: Vec<f64> = Vec::with_capacity(ratios.len() * (ratios.len() + 1) / 2);
        for (at, one) in ratios.iter().enumerate() {
            means.extend(ratios[at..].iter().map(|two| f64::midpoint(*one, *two)));
        }
        means.sort_by(f64::total_cmp);
        ratios.sort_by(f64::total_cmp);
        let turns = ratios.len();
        let ranks = Looked::at(&means, Critical::of(turns, &ways(turns))?);
        let signs = Looked::at(&ratios, Critical::of(turns, &choices(turns))?);
        let (better, other) = if signs.width() < ranks.width() { (signs, ranks) } else { (ranks, signs) };
        let both = [better.interval[0].max(other.interval[0]), better.interval[1].min(other.interval[1])];
        // The two may contradict each other if the ratios are distributed very unevenly.
        let interval = if both[0] <= both[1] { both } else { better.interval };
        Some(Self {
            apart: ranks.apart || signs.apart,
            middle: better.middle.clamp(interval[0], interval[1]),
            interval,
        })
    }
}

/// The result of one test.
#[derive(Debug, Clone, Copy)]
struct Looked {
    apart: bool,
    middle: f64,
    interval: [f64; 2],
}

impl Looked {
    fn at(sorted: &[f64], critical: Critical) -> Self {
        let last = sorted.len() - 1;
        Self {
            apart: overlap(sorted) <= critical.told,
            middle: f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)]),
            interval: [sorted[critical.interval], sorted[last - critical.interval]],
        }
    }

    fn width(&self) -> f64 {
        self.interval[1] - self.interval[0]
    }
}

/// The largest test statistics that are rare enough by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Critical {
    told: usize,
    interval: usize,
}

impl Critical {
    /// For this many turns and the number of sign choices giving each value; `None` if even ratios of one
    /// sign are not rare enough.
    fn of(turns: usize, ways: &[f64]) -> Option<Self> {
        let mut sum = 0.0;
        let total = 2f64.powi(i32::try_from(turns).ok()?);
        let chances: Vec<f64> = ways
            .iter()
            .map(|ways| {
                sum += 2.0 * ways / total;
                sum
            })
            .collect();
        let at = |alpha: f64| chances.partition_point(|chance| *chance <= alpha).checked_sub(1);
        Some(Self { told: at(ALPHA)?, interval: at(INTERVAL)? })
    }
}

/// The number of sign choices that give each count of positive ones.
fn choices(turns: usize) -> Vec<f64> {
    let mut ways = vec![0.0; turns + 1];
    ways[0] = 1.0;
    for _ in 0..turns {
        for count in (1..ways.len()).rev() {
            ways[count] += ways[count - 1];
        }
    }
    ways
}

/// The number of sign choices that give each sum of positive ranks.
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
    fn signs_and_signed_ranks_are_counted_as_published() {
        assert_eq!(ways(3), [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
        assert_eq!(choices(4), [1.0, 4.0, 6.0, 4.0, 1.0]);
        // At 1.25 and 3 %, two-sided, by complete enumeration.
        for (turns, ranks, signs) in [
            (8, (0, 2), (0, 0)),
            (10, (3, 6), (0, 1)),
            (15, (17, 21), (2, 2)),
            (20, (39, 47), (4, 4)),
            (25, (71, 82), (5, 6)),
        ] {
            let critical = |(told, interval)| Some(Critical { told, interval });
            assert_eq!(Critical::of(turns, &ways(turns)), critical(ranks), "{turns} ranks");
            assert_eq!(Critical::of(turns, &choices(turns)), critical(signs), "{turns} signs");
        }
        assert_eq!(Critical::of(7, &ways(7)), None, "one case in 64 has all ratios of one sign");
        assert_eq!(Critical::of(0, &ways(0)), None);
    }

    #[test]
    fn levels_that_are_met_by_chance_do_not_drown_a_difference() {
        // One side hits a level 1.6 times as slow every fourth turn, and so does the other in other turns;
        // the rest differ by 10 %.
        let level = |at: usize, of: usize| if at % 4 == of { 1.6_f64.ln() } else { 0.0 };
        let base: Vec<f64> = (0..40).map(|at| level(at, 0) + 0.004 * (at * 7 % 5) as f64).collect();
        let other: Vec<f64> = (0..40).map(|at| level(at, 1) + 1.1_f64.ln() + 0.004 * (at * 3 % 5) as f64).collect();
        let seen = Paired::of(&base, &other).unwrap();
        assert!(seen.apart && (seen.middle - 1.1_f64.ln()).abs() < 0.02, "{seen:?}");
        assert!(seen.interval[0] > 0.07 && seen.interval[1] < 0.2, "{seen:?}");
    }

    #[test]
    fn what_falls_on_both_launches_of_a_turn_is_no_noise() {
        // A neighbour slows down every third turn by a factor of four; the other side is 5 % slower
        // throughout.
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
