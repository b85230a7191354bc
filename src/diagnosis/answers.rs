//! What a chat model was asked and said is in the log of its runner, and is no part of what happened.

use memchr::memmem::{self, Finder};
use std::sync::LazyLock;

/// An answer without an end is over after this many lines.
const LONGEST: u64 = 400;
/// What a line begins with that the runner prints after an answer.
const AFTER: [&[u8]; 6] = [b"[KPIS]", b"[PROMPT]", b"[ERROR]", b"[WARN", b"[INFO]", b"[DEBUG]"];

static BEGIN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("[BEGIN]:"));
static QUESTION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("[PROMPT]:"));

/// Where in an answer the log is.
#[derive(Debug, Default)]
pub struct Answers {
    /// The line in which an answer began that has not ended.
    begun: Option<u64>,
}

impl Answers {
    /// True if the line belongs to an answer or a question.
    pub fn covers(&mut self, number: u64, line: &[u8]) -> bool {
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
