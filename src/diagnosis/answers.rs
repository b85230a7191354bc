//! Parts of a log that are not events: a chat model's prompts and answers, and an earlier qnnscope diagnosis.

use memchr::memmem::{self, Finder};
use std::sync::LazyLock;

/// Lines after which an answer without an end mark counts as over.
const LONGEST: u64 = 400;
/// Prefixes of the lines that the runner prints after an answer.
const AFTER: [&[u8]; 6] = [b"[KPIS]", b"[PROMPT]", b"[ERROR]", b"[WARN", b"[INFO]", b"[DEBUG]"];

/// Prefixes of the lines of a qnnscope diagnosis.
const OWN: [&[u8]; 6] = [b"cause, ", b"confirmed: ", b"check: ", b"fix: ", b"next: ", b"why: "];
/// Indentation of the continuation lines of such a text, in columns.
const OWN_INDENT: usize = 11;
/// Longest such text, in lines.
const OWN_LINES: u64 = 8;

static BEGIN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("[BEGIN]:"));
static QUESTION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("[PROMPT]:"));

/// Whether the log is currently inside an answer.
#[derive(Debug, Default, Clone)]
pub struct Answers {
    /// Line in which the still open answer began.
    begun: Option<u64>,
    /// Line in which the last text of a qnnscope diagnosis began.
    own: Option<u64>,
}

impl Answers {
    /// True if the line is part of a prompt, an answer or an earlier qnnscope diagnosis.
    pub fn covers(&mut self, number: u64, line: &[u8]) -> bool {
        self.is_own(number, line) || self.is_answer(number, line)
    }

    /// True outside of answers, where a line that was already read adds nothing.
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
