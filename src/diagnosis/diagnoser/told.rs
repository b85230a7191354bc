//! What public programs print, told by their own messages and by the source file of the exception that ends a log.

use super::Diagnoser;
use super::implied::{HIDDEN, is_success};
use crate::diagnosis::catalogue::{Certainty, causes, told_signal};
use crate::diagnosis::evidence::{Evidence, excerpt, excerpt_at};
use crate::diagnosis::mistakes;
use crate::diagnosis::programs::{named, said};
use crate::diagnosis::statements::{Level, level};

/// Words of a line that says what is done instead of what failed, or that it was meant to.
const INSTEAD: [&str; 15] = [
    "skipping",
    "skipped",
    "taking ",
    "falling back",
    "using local",
    "using default",
    "rewinding",
    "(wanted)",
    "as expected",
    "upgrading",
    "will retry",
    "retrying",
    "composing",
    ". pass",
    "(known",
];
/// Most messages that are kept.
const WAITING: usize = 64;

/// Messages, kept until it is known whether the rules answer without them.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// The programs that the log names, as bits.
    named: u64,
    /// Each with the program that has to be named, if one has.
    waiting: Vec<(Option<usize>, (usize, usize), Evidence)>,
    /// Nothing else answers, so signals that any program may show count as well.
    pub is_last_resort: bool,
    /// The rules have an answer, a vague one.
    pub is_beside: bool,
}

impl Told {
    /// Drops messages in words of any program.
    pub fn drop_common(&mut self) {
        self.waiting.retain(|(needs, ..)| needs.is_none());
    }

    /// Notes which programs a line names.
    pub fn note(&mut self, line: &[u8]) {
        self.named |= named(line);
    }
}

/// True for a line that only warns, or that says what is done instead.
fn is_noted(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    // A service may pass on as a warning what the program that it runs calls an error.
    level(line.as_bytes()) == Level::Warning && !lower.contains("error:")
        || INSTEAD.iter().any(|word| lower.contains(word))
}

impl Diagnoser {
    /// The last line that tells of a success, of the first and the last lines of the log.
    fn last_success(&self) -> u64 {
        let later = self.tail.lines().position(is_success).map(|from_end| self.place(from_end));
        self.subject.success().max(later.unwrap_or_default())
    }

    /// Keeps what a public program prints; true if the line means anything.
    pub(super) fn hear(&mut self, number: u64, line: &[u8]) -> bool {
        let Some(found) = said(line).filter(|_| !is_noted(&String::from_utf8_lossy(line))) else { return false };
        let Some(place) = told_signal(found.meaning) else { return false };
        self.told.note(line);
        // The last one stands for those after it.
        self.told.waiting.truncate(WAITING - 1);
        self.told.waiting.push((found.needs, place, Evidence { line: number, text: excerpt_at(line, found.at) }));
        true
    }

    /// Counts the messages that were kept, but for those whose program the log does not name; true if there are any.
    pub(super) fn see_told(&mut self) -> bool {
        let waiting = std::mem::take(&mut self.told.waiting);
        let programs = self.told.named | named(self.tail.bytes());
        let counts = |needs: Option<usize>| needs.is_none_or(|program| programs & 1 << program != 0);
        let success = self.last_success();
        let counted: Vec<_> =
            waiting.into_iter().filter(|(needs, _, line)| counts(*needs) && line.line > success).collect();
        let any = !counted.is_empty();
        for (_, place, evidence) in counted {
            self.see(place, evidence);
        }
        any
    }

    /// Counts what any program may print after its last success.
    pub(super) fn see_last(&mut self) -> bool {
        let success = self.last_success();
        for (cause, shown) in causes().iter().zip(&mut self.signals) {
            for (_, shown) in cause.signal.iter().zip(shown).filter(|(signal, _)| signal.last) {
                shown.retain(|line| line.line >= success && !is_noted(&line.text));
            }
        }
        self.told.is_last_resort = true;
        true
    }

    /// Counts the exception that ends the log as one of the source file that raised it; true if that means anything.
    pub(super) fn see_raised(&mut self) -> bool {
        let Some(raised) = self.tail.raised() else { return false };
        let Some(place) = told_signal(raised.meaning) else { return false };
        let line = self.number(raised.from_end);
        if self.place(raised.from_end) < self.last_success() {
            return false;
        }
        self.see(place, Evidence { line, text: excerpt(&raised.line) });
        true
    }

    /// Counts a program that ends with no more than that its model, engine or step failed.
    pub(super) fn see_hidden(&mut self) -> bool {
        if self.told.is_beside || self.ends_as_code() {
            return false;
        }
        let Some(from_end) = mistakes::hidden(self.tail.lines()) else { return false };
        // What failed of our own is said by us.
        if self.number(from_end) == 0 {
            return false;
        }
        self.see_at_end(HIDDEN, Certainty::Hint, from_end)
    }

    /// Counts what a line, counted from the last one, says of a cause; false if the user's own entry replaces it.
    pub(super) fn see_at_end(&mut self, id: &str, certainty: Certainty, from_end: usize) -> bool {
        let Some(cause) = causes().iter().position(|cause| cause.id == id) else { return false };
        let Some(place) = told_signal((cause, certainty)) else { return false };
        let text = self.tail.lines().nth(from_end).map(excerpt).unwrap_or_default();
        self.see(place, Evidence { line: self.number(from_end), text });
        true
    }

    /// Counts what the end of the log says in words of its own; true if that means anything.
    pub(super) fn see_mistake(&mut self) -> bool {
        // Another vendor's tools have mistakes of their own.
        if self.has("other-accelerator") || self.has("other-provider") {
            return false;
        }
        let success = self.last_success();
        let Some(mistake) =
            mistakes::told(self.tail.lines(), |from_end| success > 0 && self.place(from_end) <= success)
        else {
            return false;
        };
        self.see_at_end(mistake.cause, mistake.certainty, mistake.from_end)
    }
}
