//! Looks again for what a later line may take back: a failure that returns after it has happened again.

use super::Diagnoser;
use crate::diagnosis::rules::LineMeaning;

/// Bytes at the start of a log in which every look is taken.
const FREE_BYTES: u64 = 1 << 20;
/// Bytes of log for each further look, which bounds what they cost: each reads all different lines once more.
const BYTES_PER_LOOK: u64 = 16 << 20;

/// Counts the looks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Looks {
    /// Looks after the free bytes.
    taken: u64,
    /// A signal showed since the last look.
    has_news: bool,
}

impl Looks {
    /// Notes that a signal showed.
    pub fn note_signal(&mut self) {
        self.has_news = true;
    }

    /// True if it is time for another look, after so many bytes.
    fn take(&mut self, bytes: u64) -> bool {
        let is_free = bytes <= FREE_BYTES;
        let now = self.has_news && (is_free || self.taken < bytes / BYTES_PER_LOOK);
        if now {
            self.has_news = false;
            self.taken += u64::from(!is_free);
        }
        now
    }
}

impl Diagnoser {
    /// Reads all signals anew from here, since the line just read takes back what came before it.
    pub(super) fn look_again(&mut self) {
        if !self.looks.take(self.bytes) {
            return;
        }
        for (done, rule) in self.done.iter_mut().zip(&self.rules.list) {
            *done &= !matches!(rule.target, LineMeaning::Signal { .. });
        }
        self.repeats.forget();
        self.forms.read_again();
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnosis::Diagnoser;

    const FAILS: &str = "QnnDsp <E> Stub lib id mismatch: expected (v2.28.0), detected (v2.30.0)\n";
    const RECOVERS: &str = "qnn session: retry succeeded\n";

    fn first_line(log: &str) -> Option<u64> {
        let mut diagnoser = Diagnoser::new();
        diagnoser.feed(log.as_bytes());
        diagnoser.finish().causes.first().map(|cause| cause.evidence[0].line)
    }

    #[test]
    fn a_failure_that_returns_after_a_success_counts_and_one_that_succeeds_again_does_not() {
        let stamped = |lines: &[&str]| {
            let numbered = lines.iter().enumerate().map(|(n, line)| format!("10:00:{:02}.{:03} {line}", n % 60, n));
            numbered.collect::<String>()
        };
        assert_eq!(first_line(&stamped(&[FAILS])), Some(1));
        assert_eq!(first_line(&stamped(&[FAILS, RECOVERS])), None);
        assert_eq!(first_line(&stamped(&[FAILS, RECOVERS, FAILS])), Some(3));
        assert_eq!(first_line(&stamped(&[FAILS, RECOVERS, FAILS, FAILS, RECOVERS])), None);
        assert_eq!(first_line(&stamped(&[FAILS, RECOVERS].repeat(40))), None);
        let fails_again = [&[FAILS, RECOVERS].repeat(40)[..], &[FAILS]].concat();
        assert_eq!(first_line(&stamped(&fails_again)), Some(81));
    }

    #[test]
    fn an_attempt_makes_good_only_what_earlier_attempts_say() {
        let attempt = |number: u32| format!("WARNING attempt {number} failed: {FAILS}");
        let good = "INFO attempt 3: session created\n";
        let both = attempt(1) + &attempt(2);
        assert_eq!(first_line(&both), Some(1));
        assert_eq!(first_line(&format!("{both}{good}")), None);
        assert_eq!(first_line(&format!("{both}{good}{FAILS}")), Some(4), "it fails for good");
        assert_eq!(first_line(&format!("{FAILS}{good}")), Some(1), "no line of an attempt");
        for other in ["adb: attempt 2: connected\n", "attempt 4: session created (backend cpu)\n"] {
            assert_eq!(first_line(&format!("{both}{other}")), Some(1), "{other}");
        }
    }

    #[test]
    fn however_often_it_recovers_a_log_that_ends_well_has_no_cause() {
        let log: String = [FAILS, RECOVERS].repeat(5000).concat();
        assert_eq!(first_line(&log), None);
    }
}
