//! How many launches are needed.

use super::difference::{InTime, between_runs, is_restless};
use super::spread::{RESOLUTION, Spread};
use super::student::{t_90, t_975};
use crate::text::{apart_text, known_text};
use std::fmt;
use std::time::Duration;

/// Minimum number of launches: two differ, three show a spread.
pub const FIRST_LAUNCHES: usize = 3;
/// Number of launches if they are cheap. Launches that fall on two levels (threads on one core or on two)
/// appear to agree in one case in four if there are three of them, in one case in 32 if there are six.
pub const CHEAP_LAUNCHES: usize = 6;
/// Total time that [`CHEAP_LAUNCHES`] may take.
pub const CHEAP_TIME: Duration = Duration::from_secs(20);
/// Number of launches if they are quick. A slow level that one process in four hits is missed by all of six
/// launches in 18 cases in a hundred, by all of fifteen in one.
pub const QUICK_LAUNCHES: usize = 15;
/// Total time that [`QUICK_LAUNCHES`] may take.
pub const QUICK_TIME: Duration = Duration::from_secs(8);
/// Maximum number of launches, unless they are quick.
pub const MOST_LAUNCHES: usize = 10;
/// Total time that launches may take.
pub const MORE_TIME: Duration = Duration::from_mins(1);
/// Absolute maximum number of launches. If half of them are twice as slow, two thirds of this number on each
/// side show a difference of 10 % nine times in ten. Launches after the [`MOST_LAUNCHES`]th skip the layers.
pub const MANY_LAUNCHES: usize = 60;
/// Total time that more than [`MOST_LAUNCHES`] may take: both sides are done in less than a minute.
pub const MANY_TIME: Duration = Duration::from_secs(25);
/// Half of the median's interval, as a fraction of it, above which launches disagree. If they agree to within
/// this, two sides that differ by 5 % are almost always told apart.
const AGREED: f64 = 0.025;
/// Number of launches from which their pairs can predict the differences of other pairs.
const STAND_FOR_OTHERS: usize = 10;
/// Noether's number of launches per side, times (p - 1/2)^2, where p is the share of pairs in which the
/// slower side is slower: (2.576 + 1.282)^2 / 6, for a test that is wrong in one case in a hundred and right
/// in nine in ten.
const RANKS: f64 = 2.48;
/// A difference too large to be meaningful, as a fraction.
const NOTHING: f64 = 9.0;
/// Launches beyond which nobody would wait for the answer.
const TOO_MANY: usize = 100;

/// Why another launch is worth its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MoreLaunches {
    /// Too few to show a spread.
    Few,
    /// They are cheap, and a few may miss one of two levels.
    Cheap,
    /// Their medians disagree.
    Disagree {
        /// Largest median divided by the smallest, less 1.
        range: f64,
        /// Half of the 95 % interval of their geometric mean, as a fraction of it.
        known_to: f64,
    },
}

impl fmt::Display for MoreLaunches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Few => write!(f, "fewer than {FIRST_LAUNCHES} launches show no spread"),
            Self::Cheap => {
                write!(f, "launches are short here, and a few of them may all be fast, or all slow, by chance")
            }
            Self::Disagree { range, known_to } => write!(
                f,
                "the launch medians are {}, so the overall median is known only {}",
                apart_text(100.0 * range),
                known_text(100.0 * known_to).trim_start_matches("only ")
            ),
        }
    }
}

/// Whether a run needs another launch, from the medians of its launches and their total time so far; `None`
/// if it has enough, or no time is left.
pub fn needs_more(medians_us: &[f64], spent: Duration) -> Option<MoreLaunches> {
    let made = medians_us.len();
    if made < FIRST_LAUNCHES {
        return Some(MoreLaunches::Few);
    }
    let with_another = spent.saturating_add(spent / u32::try_from(made).unwrap_or(u32::MAX));
    let time = if made < MOST_LAUNCHES { MORE_TIME } else { MANY_TIME };
    if made >= MANY_LAUNCHES || with_another > time {
        return None;
    }
    let spread = Spread::of(medians_us)?;
    let known_to = spread.half_width();
    if known_to > AGREED {
        return Some(MoreLaunches::Disagree { range: spread.range, known_to });
    }
    let fit = |launches: usize, time: Duration| {
        let all = spent.saturating_mul(u32::try_from(launches).unwrap_or(u32::MAX));
        made < launches && all / u32::try_from(made).unwrap_or(u32::MAX) <= time
    };
    (fit(CHEAP_LAUNCHES, CHEAP_TIME) || fit(QUICK_LAUNCHES, QUICK_TIME)).then_some(MoreLaunches::Cheap)
}

/// The smallest difference, as a fraction, that is detected nine times in ten if each of two sides has this
/// many launches that vary as these do. `None` for fewer than two launches on either count, and if the
/// difference would be a factor of ten or more: such launches show nothing.
pub fn minimal_difference(medians_us: &[f64], launches: usize, in_time: InTime) -> Option<f64> {
    let found = (Detectable::of(&[medians_us])?.with(launches)? + hidden(&[medians_us], in_time)).exp_m1();
    (found < NOTHING).then_some(found)
}

/// Launches per side needed to detect a difference, as a fraction, nine times in ten if launches vary as
/// those of both sides do; `None` if it would take more than a hundred, or no number of them suffices.
pub fn launches_to_tell(base: &[f64], other: &[f64], relative: f64, in_time: InTime) -> Option<usize> {
    let detectable = Detectable::of(&[base, other])?;
    let wanted = relative.max(-1.0 + f64::EPSILON).ln_1p().abs() - hidden(&[base, other], in_time);
    (2..=TOO_MANY).find(|launches| detectable.with(*launches).is_some_and(|found| found <= wanted))
}

/// The difference that no number of launches can detect, on the scale of logarithms.
fn hidden(sides: &[&[f64]], in_time: InTime) -> f64 {
    match in_time {
        InTime::Apart if is_restless(sides) => f64::INFINITY,
        InTime::Apart => between_runs(sides),
        InTime::InTurns => 0.0,
    }
}

/// Which differences launches with a given variation can show, on the scale of logarithms.
struct Detectable {
    /// Standard deviation of a launch.
    deviation: f64,
    /// Differences of all pairs of launches of the same side, sorted; empty if these are too few to stand for
    /// others.
    pairs: Vec<f64>,
}

impl Detectable {
    fn of(sides: &[&[f64]]) -> Option<Self> {
        let spreads: Vec<Spread> = sides.iter().map(|side| Spread::of(side)).collect::<Option<_>>()?;
        let variance = spreads.iter().map(|spread| spread.deviation.powi(2)).sum::<f64>() / spreads.len() as f64;
        let mut pairs = Vec::new();
        for side in sides.iter().filter(|side| side.len() >= STAND_FOR_OTHERS) {
            let differences = |(at, one): (usize, &f64)| {
                let others = side.iter().enumerate().filter(move |(other, _)| *other != at);
                let one = one.ln();
                others.map(move |(_, other)| other.ln() - one).collect::<Vec<f64>>()
            };
            pairs.extend(side.iter().enumerate().flat_map(differences));
        }
        pairs.sort_by(f64::total_cmp);
        Some(Self { deviation: variance.sqrt(), pairs })
    }

    /// The smallest difference that this many launches per side show nine times in ten.
    fn with(&self, launches: usize) -> Option<f64> {
        if launches < 2 {
            return None;
        }
        let count = launches as f64;
        let freedom = 2.0 * count - 2.0;
        let of_means = (t_975(freedom) + t_90(freedom)) * self.deviation * (2.0 / count).sqrt();
        // Noether's formula: the share of pairs in which the slower side is slower.
        let part = 0.5 + (RANKS / count).sqrt();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
        let place = (part * self.pairs.len() as f64) as usize;
        let of_ranks = self.pairs.get(place).map(|apart| apart.max(2.0 * RESOLUTION));
        Some(of_ranks.map_or(of_means, |of_ranks| of_ranks.min(of_means)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_TURNS: InTime = InTime::InTurns;
    const QUICK: Duration = Duration::from_secs(3);

    #[test]
    fn three_launches_are_the_least_cheap_ones_are_six_and_quick_ones_fifteen() {
        assert_eq!(needs_more(&[], Duration::ZERO), Some(MoreLaunches::Few));
        assert_eq!(needs_more(&[1.0, 1.0], Duration::from_secs(1000)), Some(MoreLaunches::Few));
        assert_eq!(needs_more(&[1.0; 3], QUICK), Some(MoreLaunches::Cheap));
        assert_eq!(needs_more(&[1.0; 5], QUICK), Some(MoreLaunches::Cheap));
        assert_eq!(needs_more(&[1.0; 14], QUICK), Some(MoreLaunches::Cheap));
        assert_eq!(needs_more(&[1.0; 15], QUICK), None);
        assert_eq!(needs_more(&[1.0; 6], Duration::from_secs(4)), None, "fifteen would take 10 s");
        assert_eq!(needs_more(&[1.0; 3], Duration::from_secs(11)), None, "six would take 22 s");
    }

    #[test]
    fn launches_that_disagree_go_on_until_they_do_not_or_time_is_up() {
        let apart = [1000.0, 2000.0, 1990.0, 1010.0, 1000.0, 2000.0, 1990.0, 1010.0, 1000.0, 2000.0];
        for made in 3..=10 {
            let why = needs_more(&apart[..made], QUICK).unwrap();
            assert!(matches!(why, MoreLaunches::Disagree { range, .. } if (range - 1.0).abs() < 1e-9), "{why:?}");
            assert!(why.to_string().contains("apart by a factor of 2.0"), "{why}");
        }
        assert_eq!(needs_more(&apart, Duration::from_secs(23)), None, "beyond ten they have to be quick");
        let many: Vec<f64> = apart.iter().cycle().take(60).copied().collect();
        assert!(needs_more(&many[..59], Duration::from_secs(20)).is_some());
        assert_eq!(needs_more(&many, QUICK), None);
        assert!(needs_more(&apart[..3], Duration::from_secs(44)).is_some());
        assert_eq!(needs_more(&apart[..3], Duration::from_secs(46)), None, "the fourth would end after 61 s");
    }

    #[test]
    fn what_can_be_told_shrinks_with_launches_and_grows_with_their_spread() {
        let one_percent = [990.0, 1000.0, 1010.0];
        let told: Vec<f64> =
            [3, 6, 10].iter().map(|k| minimal_difference(&one_percent, *k, IN_TURNS).unwrap()).collect();
        assert!(told.is_sorted_by(|a, b| a > b) && (0.03..0.04).contains(&told[0]) && told[2] < 0.017, "{told:?}");
        assert!(minimal_difference(&[1000.0, 2000.0, 1000.0], 10, IN_TURNS).unwrap() > 0.5);
        assert_eq!(
            minimal_difference(&[1000.0, 9000.0, 2000.0], 3, IN_TURNS),
            None,
            "it would be a factor of a thousand"
        );
        // Two sharp levels: pairs on the same level show what means do not.
        let levels: Vec<f64> =
            (0..20).map(|at| (1000.0 + f64::from(at)) * if at % 2 == 0 { 2.0 } else { 1.0 }).collect();
        assert!(minimal_difference(&levels, 10, IN_TURNS).unwrap() > 0.5);
        assert!(minimal_difference(&levels, 48, IN_TURNS).unwrap() < 0.05);
        assert!((25..=50).contains(&launches_to_tell(&levels, &levels, 0.1, IN_TURNS).unwrap()));
        assert_eq!(
            (minimal_difference(&one_percent, 1, IN_TURNS), minimal_difference(&[1000.0], 5, IN_TURNS)),
            (None, None)
        );
        let needed = launches_to_tell(&one_percent, &one_percent, 0.02, IN_TURNS).unwrap();
        assert!((6..=9).contains(&needed), "{needed}");
        assert_eq!(launches_to_tell(&one_percent, &one_percent, -0.02, IN_TURNS), Some(needed));
        assert_eq!(launches_to_tell(&one_percent, &one_percent, 0.0, IN_TURNS), None);
        assert_eq!(launches_to_tell(&one_percent, &one_percent, 0.5, IN_TURNS), Some(2));
    }

    #[test]
    fn separate_runs_tell_no_less_than_equal_ones_differ_by() {
        let one_percent = [990.0, 1000.0, 1010.0];
        let [in_turns, apart] =
            [InTime::InTurns, InTime::Apart].map(|at| minimal_difference(&one_percent, 10, at).unwrap());
        assert!(apart > 0.035 + in_turns && apart < 0.04 + in_turns, "{apart} {in_turns}");
        assert_eq!(launches_to_tell(&one_percent, &one_percent, 0.03, InTime::Apart), None);
        let [in_turns, apart] =
            [InTime::InTurns, InTime::Apart].map(|at| launches_to_tell(&one_percent, &one_percent, 0.05, at).unwrap());
        assert!(in_turns < apart, "{in_turns} {apart}");
    }
}
