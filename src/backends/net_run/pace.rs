//! The length of rounds: long enough that reloading costs little time, short enough that the view keeps moving.

use std::time::Duration;

/// Maximum share of the time for starting the tool and loading the model.
const RELOAD_SHARE: f64 = 0.1;
/// The view should be updated at least this often.
const UPDATE: Duration = Duration::from_secs(1);
/// Maximum length of a round, so that a stop takes effect soon.
const MAX_ROUND: Duration = Duration::from_mins(1);
/// Maximum number of inferences in a round: the log is read into memory piece by piece, but its file must fit on the
/// device.
const MAX_INFERENCES: u64 = 100_000;

/// What earlier rounds have shown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pace {
    /// Time of one inference, including the tool's work between two, microseconds.
    pub inference_us: Option<f64>,
    /// Time of a round outside inferences, microseconds.
    pub reload_us: Option<f64>,
    /// Time of all rounds, and the part outside inferences, microseconds.
    total_us: f64,
    lost_us: f64,
    rounds: u64,
}

impl Pace {
    /// What it has learned, with the cost count reset.
    #[must_use]
    pub fn taught(self) -> Self {
        Self { total_us: 0.0, lost_us: 0.0, rounds: 0, ..self }
    }

    /// Adds a round of `inferences` that took `wall_us` in all and `execute_us` from the start of the first inference
    /// to the end of the last.
    pub fn learn(&mut self, inferences: u64, execute_us: f64, wall_us: f64) {
        self.rounds += 1;
        self.total_us += wall_us;
        let reload_us = (wall_us - execute_us).max(0.0);
        self.lost_us += reload_us;
        self.reload_us = Some(reload_us);
        if inferences > 0 {
            self.inference_us = Some(execute_us / inferences as f64);
        }
    }

    /// Inferences of the next round, out of `left` remaining ones, the `warmup` ones repeated in each round not
    /// counted.
    pub fn next(&self, left: u64, warmup: u64) -> u64 {
        let (Some(inference_us), Some(reload_us)) = (self.inference_us.filter(|us| *us > 0.0), self.reload_us) else {
            // Nothing is known yet: a short first round.
            return left.min(5);
        };
        let lost_us = reload_us + warmup as f64 * inference_us;
        let update_us = UPDATE.as_secs_f64() * 1e6;
        let useful_us =
            (lost_us * (1.0 / RELOAD_SHARE - 1.0)).max(update_us - lost_us).min(MAX_ROUND.as_secs_f64() * 1e6);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of inferences")]
        let count = (useful_us / inference_us).ceil() as u64;
        // A remainder much shorter than a round would cost a whole reload, so this round takes it too.
        let count = count.clamp(1, MAX_INFERENCES);
        if left <= count + count / 2 { left.min(MAX_INFERENCES) } else { count }
    }

    /// Rounds so far, and the share of their time outside inferences.
    pub fn cost(&self) -> (u64, f64) {
        (self.rounds, if self.total_us > 0.0 { self.lost_us / self.total_us } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_round_is_a_taste() {
        assert_eq!(Pace::default().next(1000, 1), 5);
        assert_eq!(Pace::default().next(3, 1), 3);
    }

    #[test]
    fn a_quick_load_gives_rounds_of_a_second() {
        let mut pace = Pace::default();
        pace.learn(5, 5_000.0, 50_000.0);
        let next = pace.next(1_000_000, 1);
        assert!((900..1000).contains(&next), "{next}");
    }

    #[test]
    fn a_slow_load_gives_longer_rounds() {
        let mut pace = Pace::default();
        pace.learn(5, 50_000.0, 3_000_000.0);
        let next = pace.next(1_000_000, 0);
        // 2.95 s of loading call for 26.55 s of 10 ms inferences.
        assert_eq!(next, 2655);
    }

    proptest! {
        #[test]
        fn rounds_are_bounded_and_lose_little(
            inference_us in 1.0..1e7f64, reload_us in 0.0..2e7f64, left in 1..10_000_000u64, warmup in 0..5u64,
        ) {
            let mut pace = Pace::default();
            pace.learn(10, inference_us * 10.0, inference_us * 10.0 + reload_us);
            let next = pace.next(left, warmup);
            prop_assert!(next >= 1 && next <= left && next <= MAX_INFERENCES);
            let useful = next as f64 * inference_us;
            let lost = reload_us + warmup as f64 * inference_us;
            let bounded = next == left || next == MAX_INFERENCES || useful >= MAX_ROUND.as_secs_f64() * 1e6 * 0.999;
            prop_assert!(bounded || lost / (lost + useful) <= RELOAD_SHARE + 0.001);
        }
    }
}
