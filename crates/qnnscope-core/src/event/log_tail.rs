//! The log lines that a failure quotes.

use super::LogLevel;
use std::collections::VecDeque;

/// Lines that are quoted.
const MOST: usize = 20;
/// Errors of a chain that are kept from its begin: the first ones tell the cause, the last ones how it ended.
const FIRST_ERRORS: usize = 8;
/// The same of its end. Room is left for what the log says beside errors.
const LAST_ERRORS: usize = 8;

/// The lines before a failure that count: with errors among them, the errors and what the log says after the first one;
/// else the last lines. Memory does not grow with the log.
#[derive(Debug, Default)]
pub struct LogTail {
    count: u64,
    last: VecDeque<(u64, String)>,
    first_errors: Vec<(u64, String)>,
    last_errors: VecDeque<(u64, String)>,
}

impl LogTail {
    /// Takes a line in.
    pub fn take(&mut self, level: LogLevel, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let entry = (self.count, text.to_owned());
        self.count += 1;
        if level == LogLevel::Error {
            if self.first_errors.len() < FIRST_ERRORS {
                self.first_errors.push(entry.clone());
            } else {
                push(&mut self.last_errors, entry.clone(), LAST_ERRORS);
            }
        }
        push(&mut self.last, entry, MOST);
    }

    /// A new stage: what went wrong in an earlier one did not end the run.
    pub fn next_stage(&mut self) {
        self.first_errors.clear();
        self.last_errors.clear();
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        let Some((first, _)) = self.first_errors.first() else {
            return self.last.iter().map(|(_, text)| text.clone()).collect();
        };
        let mut kept: Vec<&(u64, String)> = self.first_errors.iter().chain(&self.last_errors).collect();
        let room = MOST.saturating_sub(kept.len());
        let is_kept = |number: u64| kept.iter().any(|(known, _)| *known == number);
        let others: Vec<&(u64, String)> =
            self.last.iter().rev().filter(|(number, _)| number > first && !is_kept(*number)).take(room).collect();
        kept.extend(others);
        kept.sort_by_key(|(number, _)| *number);
        kept.into_iter().map(|(_, text)| text.clone()).collect()
    }
}

fn push(queue: &mut VecDeque<(u64, String)>, entry: (u64, String), most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(lines: impl IntoIterator<Item = (LogLevel, String)>) -> Vec<String> {
        let mut tail = LogTail::default();
        for (level, text) in lines {
            tail.take(level, &text);
        }
        tail.lines()
    }

    #[test]
    fn errors_push_the_warnings_before_them_out() {
        let warnings = (0..40).map(|n| (LogLevel::Warning, format!("warning {n}")));
        let end = [(LogLevel::Error, "no variant".to_owned()), (LogLevel::Info, "its input".to_owned())];
        let lines = tail(warnings.clone().chain(end));
        assert_eq!(lines, ["no variant", "its input"]);
        assert_eq!(tail(warnings).len(), MOST, "without an error the last lines are all there is");
    }

    #[test]
    fn a_long_chain_keeps_its_begin_and_its_end() {
        let errors = (0..100).map(|n| (LogLevel::Error, format!("error {n}")));
        let lines = tail(errors);
        assert_eq!((lines.len(), lines[0].as_str(), lines[15].as_str()), (16, "error 0", "error 99"));
        let last = (LogLevel::Verbose, "asking".to_owned());
        let errors = (0..100).map(|n| (LogLevel::Error, format!("error {n}")));
        assert_eq!(tail(errors.chain([last])).last().unwrap(), "asking");
    }

    #[test]
    fn errors_of_an_earlier_stage_are_no_part_of_the_chain() {
        let mut tail = LogTail::default();
        tail.take(LogLevel::Error, "harmless");
        tail.next_stage();
        tail.take(LogLevel::Error, "the reason");
        assert_eq!(tail.lines(), ["the reason"]);
    }
}
