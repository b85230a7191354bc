//! What was learned from known logs: which cause goes with the words at the end of this one, and whether they go with none.

use super::Diagnoser;
use crate::diagnosis::catalogue::{Certainty, cause};
use crate::diagnosis::learned::{self, Likely, NONE, Reader, reader};
use crate::diagnosis::statements::{Level, level};
use std::collections::BTreeMap;

/// Lines at the end of a text that show whether it is source code.
const CODE_LINES: usize = 3;

/// Lines that tell most, the last one first, each with its place from the end.
type Lines<'a> = Vec<(usize, &'a [u8])>;

/// What taught the reader of the last words.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Taught {
    /// The known logs.
    #[default]
    Known,
    /// Other logs, to measure with.
    Others(&'static Reader),
    Nothing,
}

impl Diagnoser {
    /// Counts of the words of the lines by which this log, which ends here, is read.
    pub fn closing_words(mut self) -> BTreeMap<String, u32> {
        self.end();
        self.closing_lines().1
    }

    fn closing_lines(&self) -> (Lines<'_>, BTreeMap<String, u32>) {
        let lines = learned::telling(self.tail.lines());
        let mut counts = BTreeMap::new();
        for (_, line) in &lines {
            learned::count(line, &mut counts);
        }
        (lines, counts)
    }

    /// True for source code: no log ends with lines of it.
    pub(super) fn ends_as_code(&self) -> bool {
        let ends: Vec<&[u8]> = self.tail.said_last().take(CODE_LINES).collect();
        ends.iter().filter(|line| learned::is_code(line)).count() * 2 > ends.len()
    }

    fn reader(&self) -> Option<&'static Reader> {
        match self.taught {
            Taught::Known => reader(),
            Taught::Others(reader) => Some(reader),
            Taught::Nothing => None,
        }
    }

    /// How likely this log ends as known logs without a failure do, 0 to 1; an end of fewer lines says nothing.
    pub(super) fn none_likely(&self, fewest: usize) -> f32 {
        let (lines, counts) = self.closing_lines();
        let reader = self.reader().filter(|_| lines.len() >= fewest);
        let read = reader.map(|reader| reader.read(&counts)).unwrap_or_default();
        read.iter().find(|likely| likely.cause == NONE).map_or(0.0, |none| none.probability)
    }

    /// Counts the cause whose known logs end in words like this one's; true if there is one.
    pub(super) fn see_alike(&mut self) -> bool {
        let Some(reader) = self.reader().filter(|_| !self.ends_as_code()) else { return false };
        let (lines, counts) = self.closing_lines();
        let Some(best) = reader.answer(&counts, lines.len()) else { return false };
        // What only says where to look is told by the rules as well.
        if self.told.is_beside && cause(best.cause).is_none_or(|cause| cause.generic) {
            return false;
        }
        let Some(from_end) = most_telling(reader, &best, &lines) else { return false };
        let line = self.tail.lines().nth(from_end).unwrap_or_default();
        // What a library says of its work is no failure.
        matches!(level(line), Level::Error | Level::Warning | Level::Unsaid)
            && self.see_at_end(best.cause, Certainty::Alike, from_end)
    }
}

/// The line whose words speak most for a cause.
fn most_telling(reader: &Reader, likely: &Likely, lines: &[(usize, &[u8])]) -> Option<usize> {
    let support = |line: &[u8]| {
        let mut counts = BTreeMap::new();
        learned::count(line, &mut counts);
        reader.support(likely, &counts)
    };
    // The last one of those that tell as much.
    let telling = lines.iter().rev().map(|(from_end, line)| (support(line), *from_end));
    telling.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, from_end)| from_end)
}

#[cfg(test)]
mod tests {
    use crate::diagnosis::learned::Reader;
    use crate::diagnosis::{Diagnoser, Diagnosis};

    const TAUGHT: &str = "-\tdisk-full\tinput-missing\n-300\t-400\t-400\nshelf\t300\t2 1200\nlate\t300\t0 1200\n";
    const LOG: &str =
        "batch: QNN 2.47 up\nbatch: engine b\nbatch: turn 1\nbatch: turn 2\nbatch: shelf B came up bare\n";

    fn diagnose(log: &str, text: Option<&'static str>) -> Diagnosis {
        let mut diagnoser = Diagnoser::new();
        diagnoser.taught_by(text.map(|text| &*Box::leak(Box::new(Reader::of(text).unwrap()))));
        diagnoser.feed(log.as_bytes());
        diagnoser.finish()
    }

    #[test]
    fn words_of_known_logs_answer_only_where_the_rules_do_not() {
        let found = diagnose(LOG, Some(TAUGHT));
        let first = &found.causes[0];
        assert_eq!((first.id, first.is_by_words(), first.evidence[0].line), ("input-missing", true, 5));
        assert!(first.confidence <= 0.5);
        assert_eq!(diagnose(LOG, None).causes.len(), 0, "no rule knows it");
        let plain = format!("{LOG}batch: cannot write y.bin: No space left on device\n");
        let found = diagnose(&plain, Some(TAUGHT));
        assert_eq!((found.causes[0].id, found.causes[0].is_by_words()), ("disk-full", false));
    }

    #[test]
    fn a_log_that_ends_as_good_runs_do_has_no_cause_of_its_first_lines() {
        let log = "run: QNN 2.47 up\nrun: settings.json does not exist\nrun: turn 1\nrun: turn 2\nrun: late, bye\n";
        assert_eq!(diagnose(log, None).causes[0].id, "config-invalid");
        assert_eq!(diagnose(log, Some(TAUGHT)).causes.len(), 0);
        let plain = log.replace("settings.json does not exist", "could not open net.bin: No such file or directory");
        assert_eq!(diagnose(&plain, Some(TAUGHT)).causes[0].id, "model-missing", "what is plain stays");
        let bad = log.replace("late, bye", "late, error 3");
        assert_eq!(diagnose(&bad, Some(TAUGHT)).causes[0].id, "config-invalid");
        let lost = log.replace("turn 2", "falling back to the CPU");
        assert_eq!(diagnose(&lost, Some(TAUGHT)).causes[0].id, "config-invalid");
    }
}
