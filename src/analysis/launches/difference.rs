//! Comparison of two sides with several launches each.

use super::paired::Paired;
use super::ranks::{Ranks, are_separate};
use super::spread::{RESOLUTION, Spread};
use super::student::t_975;
use crate::store::between_ranks;

/// Maximum number of launches considered on one side per launch of the other.
const UNEQUAL: usize = 2;

/// How much equal runs differ although the launches of each agree, as a logarithm: clocks, memory and
/// neighbours change from minute to minute. Measured with `scripts/aa.sh` on an idle two-core machine:
/// medians of 927 to 977 us among eight runs whose launches lay within 2 %. A smaller difference between two
/// runs says nothing about what was changed between them.
const BETWEEN_RUNS: f64 = 0.035;

/// The same if launches disagree, as a fraction of their interquartile range.
const BETWEEN_LEVELS: f64 = 0.4;

/// Interquartile range of launches, as a logarithm, above which they fall on distinct levels: a factor of
/// 1.2. Which levels, and how often, changes from one minute to the next. Measured with `scripts/aa.sh` where
/// launches of one model took 1.4 to 3.4 ms: the medians of eight equal runs with 60 launches each lay
/// between 1.6 and 2.7 ms, and ranks set 14 of 28 pairs apart.
const RESTLESS: f64 = 0.182;

/// True if launches of one run say nothing about another run's at another time, except that both stay within their
/// range.
pub(super) fn is_restless(sides: &[&[f64]]) -> bool {
    sides.iter().any(|side| middle_half(side) > RESTLESS)
}

/// The difference between two equal runs at different times, as a logarithm.
pub fn between_runs(sides: &[&[f64]]) -> f64 {
    sides.iter().map(|side| BETWEEN_LEVELS * middle_half(side)).fold(BETWEEN_RUNS, f64::max)
}

/// Interquartile range of the logarithms; 0 for fewer than two values.
fn middle_half(values: &[f64]) -> f64 {
    let mut logs = logs(values);
    logs.sort_by(f64::total_cmp);
    if logs.is_empty() {
        return 0.0;
    }
    let at = |quantile: f64| {
        let (rank, part) = between_ranks(logs.len() as u64, quantile);
        let value = |rank: u64| logs[usize::try_from(rank).map_or(logs.len(), |rank| rank.min(logs.len())) - 1];
        let (low, high) = (value(rank), value(rank + 1));
        low + part * (high - low)
    };
    at(0.75) - at(0.25)
}

/// How the launches of two sides are arranged in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTime {
    /// Each side ran at its own time: changes in between are part of the difference.
    Apart,
    /// They alternated: the first launches of both are neighbours, and so on.
    InTurns,
}

/// The difference between two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Other side divided by the first, less 1: the median over all pairs of launches, or the ratio of the
    /// geometric means if there are too few launches for that.
    pub relative: f64,
    /// Its 95 % interval; it contains 0 if and only if the sides are not told apart.
    pub interval: [f64; 2],
    /// True if the difference exceeds the variation between launches.
    pub told: bool,
    /// True if pairs of launches were compared. Figures over all inferences may then differ by more or less,
    /// since they mix the levels that launches fall on.
    pub by_pairs: bool,
}

impl Difference {
    /// From the scale of logarithms; sides that differ do so only if the interval excludes 0.
    fn of(apart: f64, [low, high]: [f64; 2], differs: bool, by_pairs: bool) -> Self {
        let told = differs && (low > 0.0 || high < 0.0);
        let [low, high] = [low.exp_m1(), high.exp_m1()];
        let interval = if told { [low, high] } else { [low.min(0.0), high.max(0.0)] };
        Self { relative: apart.exp_m1(), interval, told, by_pairs }
    }

    /// The largest difference these launches leave possible, as a fraction.
    pub fn up_to(&self) -> f64 {
        self.interval[0].abs().max(self.interval[1].abs())
    }
}

/// Compares a figure of two sides by its value in each launch; `None` unless both have at least two.
///
/// Ranks decide if there are enough launches: they are valid for any distribution, including two levels. With
/// few launches (three against three) it is Welch's test of the logarithms, and launches must not overlap:
/// that test assumes normally distributed launches, and three that hit one of two levels by chance show no
/// spread at all.
///
/// If launches alternated, the ratios of neighbours are considered as well: with common influences cancelled,
/// they separate sides that ranks of all launches do not. And since no time lies between such sides, any
/// difference counts.
pub fn difference(base: &[f64], other: &[f64], in_time: InTime) -> Option<Difference> {
    let in_turns = match in_time {
        InTime::InTurns => paired(base, other),
        InTime::Apart => None,
    };
    let unpaired = unpaired(base, other, in_time)?;
    Some(match in_turns {
        // Each of the two tests is wrong in one case in a hundred. If neither decides, the more precise one
        // provides the interval.
        Some(paired) if paired.told || (!unpaired.told && paired.up_to() < unpaired.up_to()) => paired,
        _ => unpaired,
    })
}

fn paired(base: &[f64], other: &[f64]) -> Option<Difference> {
    let ratios = base.iter().chain(other).all(|value| value.is_finite() && *value > 0.0);
    let paired = ratios.then(|| Paired::of(&logs(base), &logs(other))).flatten()?;
    let [low, high] = [paired.interval[0] - RESOLUTION, paired.interval[1] + RESOLUTION];
    Some(Difference::of(paired.middle, [low, high], paired.apart, true))
}

fn unpaired(base: &[f64], other: &[f64], in_time: InTime) -> Option<Difference> {
    let (floor, restless) = match in_time {
        InTime::Apart => (between_runs(&[base, other]), is_restless(&[base, other])),
        InTime::InTurns => (0.0, false),
    };
    // A run ends early when its first launches agree, which may happen by chance on one of two levels.
    // Against enough launches of the other side that run would then look different.
    let most = UNEQUAL * base.len().min(other.len());
    let (base, other) = (&base[..base.len().min(most)], &other[..other.len().min(most)]);
    let (one, two) = (Spread::of(base)?, Spread::of(other)?);
    let (base, other) = (logs(base), logs(other));
    let (apart, [low, high], differs, by_pairs) = match Ranks::of(&base, &other) {
        Some(ranks) => {
            // Values have no finer resolution than this.
            let [low, high] = ranks.interval;
            (ranks.middle, [low - RESOLUTION, high + RESOLUTION], ranks.apart, true)
        }
        None => {
            let (a, b) = (one.variance_of_mean(), two.variance_of_mean());
            let freedom = (a + b).powi(2) / (a * a / one.freedom() + b * b / two.freedom());
            let half = t_975(freedom) * (a + b).sqrt();
            let apart = two.log_mean - one.log_mean;
            (apart, [apart - half, apart + half], are_separate(&base, &other), false)
        }
    };
    let differs = differs && (low > floor || high < -floor) && (!restless || are_separate(&base, &other));
    Some(Difference::of(apart, [low, high], differs, by_pairs))
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(base: &[f64], other: &[f64]) -> Option<Difference> {
        difference(base, other, InTime::Apart)
    }

    #[test]
    fn a_difference_beyond_what_launches_vary_is_told() {
        let told = apart(&[1000.0, 1010.0, 990.0], &[1100.0, 1112.0, 1090.0]).unwrap();
        assert!(told.told && (told.relative - 0.1).abs() < 0.002, "{told:?}");
        assert!(told.interval[0] > 0.05 && told.interval[1] < 0.15, "{told:?}");
        let back = apart(&[1100.0, 1112.0, 1090.0], &[1000.0, 1010.0, 990.0]).unwrap();
        assert!(back.told && back.interval[1] < 0.0);
    }

    #[test]
    fn what_launches_vary_is_no_difference_and_says_how_large_one_could_be() {
        let alike = apart(&[1000.0, 1030.0, 980.0], &[1010.0, 1050.0, 990.0]).unwrap();
        assert!(!alike.told && alike.interval[0] < 0.0 && alike.interval[1] > 0.0);
        assert!(alike.up_to() > 0.05 && alike.up_to() < 0.2, "{alike:?}");
        assert_eq!(apart(&[1000.0], &[1010.0, 1020.0]), None);
    }

    #[test]
    fn launches_that_met_one_of_two_levels_are_not_told_from_those_that_met_both() {
        let one_level = [1001.0, 1003.0, 1002.0];
        let both = [1001.0, 2002.0, 1999.0, 1004.0, 2003.0, 1001.5, 2001.0, 2004.0, 1002.5, 2000.0];
        let seen = apart(&one_level, &both).unwrap();
        assert!(!seen.told && seen.interval[0] <= 0.0, "{seen:?}");
        // With many launches, the normal approximation of the ranks agrees.
        let many: Vec<f64> = both.iter().chain(&both).chain(&both).chain(&both).copied().collect();
        assert!(!apart(&many, &both).unwrap().told);
        let slower: Vec<f64> = many.iter().map(|us| us * 3.0).collect();
        assert!(apart(&many, &slower).unwrap().told);
    }

    #[test]
    fn of_separate_runs_the_part_of_launches_on_a_slow_level_counts_for_nothing() {
        // Measured medians of equal runs: with a third of the launches on the slow level, and with two
        // thirds.
        let run = |slow: usize| -> Vec<f64> {
            (0..60).map(|at| (if at % 3 < slow { 3200.0 } else { 2200.0 }) + (at * 37 % 60) as f64 * 3.0).collect()
        };
        let seen = apart(&run(1), &run(2)).unwrap();
        assert!(!seen.told && seen.up_to() > 0.3, "{seen:?}");
        assert!((middle_half(&run(1)) - (3240.0_f64 / 2230.0).ln()).abs() < 0.05);
        assert_eq!((middle_half(&[]), middle_half(&[7.0])), (0.0, 0.0));
        // As published for type 8: the quartiles of 1 to 4 are 17/12 and 43/12.
        assert!((middle_half(&[4.0_f64, 1.0, 3.0, 2.0].map(f64::exp)) - 26.0 / 12.0).abs() < 1e-9);
        assert!(
            apart(&run(1), &run(1).iter().map(|us| us * 1.6).collect::<Vec<f64>>()).unwrap().told,
            "what no part of launches explains is told"
        );
    }

    #[test]
    fn ten_percent_are_found_among_launches_on_two_levels() {
        // Every second launch is twice as slow, a different one on each side.
        let side = |factor: f64, slow: usize| -> Vec<f64> {
            (0..30).map(|at| factor * (1000.0 + at as f64) * if at % 2 == slow { 2.0 } else { 1.0 }).collect()
        };
        let in_turns = |other: f64| difference(&side(1.0, 0), &side(other, 1), InTime::InTurns).unwrap();
        let seen = in_turns(1.1);
        assert!(seen.told && seen.by_pairs && (seen.relative - 0.1).abs() < 0.01, "{seen:?}");
        assert!(seen.interval[0] > 0.05 && seen.interval[1] < 0.15, "{seen:?}");
        assert!(!in_turns(1.0).told);
    }

    #[test]
    fn launches_that_agree_to_the_last_digit_are_not_set_apart_by_it() {
        assert!(!apart(&[1000.0; 6], &[1000.4; 6]).unwrap().told);
        assert!(!apart(&[1000.0; 6], &[1000.0; 6]).unwrap().told);
        // Nor by a difference that equal runs show from minute to minute.
        assert!(!apart(&[1000.0; 6], &[1030.0; 6]).unwrap().told);
        assert!(apart(&[1000.0; 6], &[1050.0; 6]).unwrap().told);
    }

    #[test]
    fn launches_that_took_turns_show_what_separate_runs_hide() {
        // A machine whose speed wanders by a factor of two during the run.
        let base: Vec<f64> = (0..16).map(|turn| 1000.0 * (1.0 + 0.5 * (f64::from(turn) * 0.9).sin().abs())).collect();
        let other: Vec<f64> = base.iter().zip([1.10, 1.11, 1.09, 1.10].iter().cycle()).map(|(us, f)| us * f).collect();
        assert!(!apart(&base, &other).unwrap().told);
        let seen = difference(&base, &other, InTime::InTurns).unwrap();
        assert!(seen.told && (seen.relative - 0.1).abs() < 0.01 && seen.interval[0] > 0.08, "{seen:?}");
        let equal = difference(&base, &base, InTime::InTurns).unwrap();
        assert!(!equal.told && equal.up_to() < 0.01, "{equal:?}");
        // Small differences count, since no time passed between the sides.
        assert!(difference(&[1000.0; 8], &[1010.0; 8], InTime::InTurns).unwrap().told);
        assert!(!apart(&[1000.0; 8], &[1010.0; 8]).unwrap().told);
    }
}
