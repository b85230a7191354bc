//! What is in a log and no part of what happened: what a chat model was asked and said, and an earlier diagnosis of ours.

use memchr::memmem::{self, Finder};
use std::sync::LazyLock;

/// An answer without an end is over after this many lines.
const LONGEST: u64 = 400;
/// What a line begins with that the runner prints after an answer.
const AFTER: [&[u8]; 6] = [b"[KPIS]", b"[PROMPT]", b"[ERROR]", b"[WARN", b"[INFO]", b"[DEBUG]"];

/// What a line of our own diagnosis begins with.
const OWN: [&[u8]; 6] = [b"cause, ", b"confirmed: ", b"check: ", b"fix: ", b"next: ", b"why: "];
/// Blanks before the second line of such a text.
const OWN_INDENT: usize = 11;
/// Lines of one such text.
const OWN_LINES: u64 = 8;

static BEGIN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("[BEGIN]:"));
static QUESTION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("[PROMPT]:"));

/// Where in an answer the log is.
#[derive(Debug, Default, Clone)]
pub struct Answers {
    /// The line in which an answer began that has not ended.
    begun: Option<u64>,
    /// The line in which a text of ours began.
    own: Option<u64>,
}

impl Answers {
    /// True if the line belongs to an answer or a question, or to a diagnosis that we made.
    pub fn covers(&mut self, number: u64, line: &[u8]) -> bool {
        self.is_own(number, line) || self.is_answer(number, line)
    }

    /// True where no answer goes on: then a line that was read before says nothing new.
    pub fn is_outside(&self) -> bool {
        self.begun.is_none()
    }

    fn is_own(&mut self, number: u64, line: &[u8]) -> bool {
        let text = line.trim_ascii_start();
        let indent = line.len() - text.len();
        if indent >= 2 && OWN.iter().any(|start| text.starts_with(start)) {
            self.own = Some(number);
            return true;
        }
        indent >= OWN_INDENT && self.own.is_some_and(|begun| number.saturating_sub(begun) <= OWN_LINES)
    }

    fn is_answer(&mut self, number: u64, line: &[u8]) -> bool {
        if let Some(begun) = self.begun {
            let over = number.saturating_sub(begun) > LONGEST || AFTER.iter().any(|mark| line.starts_with(mark));
            if over {
                self.begun = None;
            } else {
                if memmem::find(line, b"[END]").is_some() {
                    self.begun = None;
                }
                return true;
            }
        }
        let Some(at) = BEGIN.find(line) else { return QUESTION.find(line).is_some() };
        if memmem::find(&line[at..], b"[END]").is_none() {
            self.begun = Some(number);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_its_mark_or_with_the_runners_next_line() {
        let mut answers = Answers::default();
        assert!(!answers.covers(1, b"[INFO] Using create From Binary"));
        assert!(answers.covers(2, b"[PROMPT]: why did it fail?") && answers.covers(3, b"[BEGIN]: it failed[END]"));
        assert!(!answers.covers(4, b"an error") && answers.covers(5, b"[BEGIN]: it failed"));
        assert!(answers.covers(6, b"with error 1002") && !answers.covers(7, b"[KPIS]: 5 toks/sec"));
        assert!(
            answers.covers(8, b"[BEGIN]: and") && answers.covers(9, b"again[END]") && !answers.covers(10, b"error")
        );
        assert!(answers.covers(11, b"[BEGIN]: ") && !answers.covers(1000, b"error"));
    }
}
