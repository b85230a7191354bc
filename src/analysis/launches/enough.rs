//! How many launches it takes.

use super::spread::Spread;
use super::student::{t_90, t_975};
use std::fmt;
use std::time::Duration;

/// Launches in any case: two differ, three show a spread.
pub const FIRST_LAUNCHES: usize = 3;
/// Launches where they cost little. Launches that fall on two levels (threads on one core or on two) look as if they agreed in
/// one case of four when there are three of them, in one of 32 when there are six.
pub const CHEAP_LAUNCHES: usize = 6;
/// Time that [`CHEAP_LAUNCHES`] may take in all.
pub const CHEAP_TIME: Duration = Duration::from_secs(20);
/// Launches at most.
pub const MOST_LAUNCHES: usize = 10;
/// Time that launches may take in all.
pub const MORE_TIME: Duration = Duration::from_mins(1);
/// Half of the median's interval, as a part of it, from which launches disagree. Where they agree so far, two sides that differ
/// by 5 % are as good as always told apart.
const AGREED: f64 = 0.025;
/// Launches beyond which nobody would wait for an answer.
const TOO_MANY: usize = 100;

/// Why another launch is worth its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MoreLaunches {
    /// There are fewer than it takes to see a spread.
    Few,
    /// They are cheap here, and few may miss one of two levels.
    Cheap,
    /// Their medians disagree.
    Disagree {
        /// Largest median divided by the smallest, less 1.
        range: f64,
        /// Half of the 95 % interval of their middle, as a part of it.
        known_to: f64,
    },
}

impl fmt::Display for MoreLaunches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Few => write!(f, "fewer than {FIRST_LAUNCHES} launches show no spread"),
            Self::Cheap => {
                write!(f, "launches are quick here, and few of them may all be fast, or all slow, by chance")
            }
            Self::Disagree { range, known_to } => write!(
                f,
                "the medians of launches lie up to {:.1} % apart, so that theirs is only known to ±{:.1} %",
                100.0 * range,
                100.0 * known_to
            ),
        }
    }
}

/// Whether a run needs another launch, by the medians of those that it made and the time they took in all; `None` when it has
/// enough, or no time is left.
pub fn needs_more(medians_us: &[f64], spent: Duration) -> Option<MoreLaunches> {
    let made = medians_us.len();
    if made < FIRST_LAUNCHES {
        return Some(MoreLaunches::Few);
    }
    let with_another = spent.saturating_add(spent / u32::try_from(made).unwrap_or(u32::MAX));
    if made >= MOST_LAUNCHES || with_another > MORE_TIME {
        return None;
    }
    let spread = Spread::of(medians_us)?;
    let known_to = spread.half_width();
    if known_to > AGREED {
        return Some(MoreLaunches::Disagree { range: spread.range, known_to });
    }
    let all = spent.saturating_mul(u32::try_from(CHEAP_LAUNCHES).unwrap_or(u32::MAX));
    let cheap = all / u32::try_from(made).unwrap_or(u32::MAX) <= CHEAP_TIME;
    (made < CHEAP_LAUNCHES && cheap).then_some(MoreLaunches::Cheap)
}

/// The smallest difference, as a part, that is found nine times in ten when each of two sides has so many launches and they
/// vary as these do; `None` where these are fewer than two, or for fewer than two launches.
pub fn minimal_difference(medians_us: &[f64], launches: usize) -> Option<f64> {
    Some(detectable(Spread::of(medians_us)?.deviation, launches)?.exp_m1())
}

/// Launches of each of two sides that it takes to find a difference, as a part, nine times in ten when launches vary as those
/// of both sides do; `None` where it would take more than a hundred.
pub fn launches_to_tell(base: &[f64], other: &[f64], relative: f64) -> Option<usize> {
    let (one, two) = (Spread::of(base)?, Spread::of(other)?);
    let deviation = (one.deviation.powi(2) + two.deviation.powi(2)).sqrt() / std::f64::consts::SQRT_2;
    let wanted = relative.max(-1.0 + f64::EPSILON).ln_1p().abs();
    (2..=TOO_MANY).find(|launches| detectable(deviation, *launches).is_some_and(|found| found <= wanted))
}

/// On the scale of logarithms.
fn detectable(deviation: f64, launches: usize) -> Option<f64> {
    if launches < 2 {
        return None;
    }
    let count = launches as f64;
    let freedom = 2.0 * count - 2.0;
    Some((t_975(freedom) + t_90(freedom)) * deviation * (2.0 / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_secs(3);

    #[test]
    fn three_launches_are_the_least_and_cheap_ones_are_six() {
        assert_eq!(needs_more(&[], Duration::ZERO), Some(MoreLaunches::Few));
        assert_eq!(needs_more(&[1.0, 1.0], Duration::from_secs(1000)), Some(MoreLaunches::Few));
        assert_eq!(needs_more(&[1.0; 3], QUICK), Some(MoreLaunches::Cheap));
        assert_eq!(needs_more(&[1.0; 5], QUICK), Some(MoreLaunches::Cheap));
        assert_eq!(needs_more(&[1.0; 6], QUICK), None);
        assert_eq!(needs_more(&[1.0; 3], Duration::from_secs(11)), None, "six would take 22 s");
    }

    #[test]
    fn launches_that_disagree_go_on_until_they_do_not_or_time_is_up() {
        let apart = [1000.0, 2000.0, 1990.0, 1010.0, 1000.0, 2000.0, 1990.0, 1010.0, 1000.0, 2000.0];
        for made in 3..10 {
            let why = needs_more(&apart[..made], QUICK).unwrap();
            assert!(matches!(why, MoreLaunches::Disagree { range, .. } if (range - 1.0).abs() < 1e-9), "{why:?}");
            assert!(why.to_string().contains("100.0 % apart"), "{why}");
        }
        assert_eq!(needs_more(&apart, QUICK), None);
        assert!(needs_more(&apart[..3], Duration::from_secs(44)).is_some());
        assert_eq!(needs_more(&apart[..3], Duration::from_secs(46)), None, "the fourth would end after 61 s");
    }

    #[test]
    fn what_can_be_told_shrinks_with_launches_and_grows_with_their_spread() {
        let one_percent = [990.0, 1000.0, 1010.0];
        let told: Vec<f64> = [3, 6, 10].iter().map(|k| minimal_difference(&one_percent, *k).unwrap()).collect();
        assert!(told.is_sorted_by(|a, b| a > b) && (0.03..0.04).contains(&told[0]) && told[2] < 0.017, "{told:?}");
        assert!(minimal_difference(&[1000.0, 2000.0, 1000.0], 10).unwrap() > 0.5);
        assert_eq!((minimal_difference(&one_percent, 1), minimal_difference(&[1000.0], 5)), (None, None));
        let needed = launches_to_tell(&one_percent, &one_percent, 0.02).unwrap();
        assert!((6..=9).contains(&needed), "{needed}");
        assert_eq!(launches_to_tell(&one_percent, &one_percent, -0.02), Some(needed));
        assert_eq!(launches_to_tell(&one_percent, &one_percent, 0.0), None);
        assert_eq!(launches_to_tell(&one_percent, &one_percent, 0.5), Some(2));
    }
}
