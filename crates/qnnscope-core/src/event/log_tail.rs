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
    last: VecDeque<Line>,
    first_errors: Vec<Line>,
    last_errors: VecDeque<Line>,
    /// The first error of the stages before. A stage may end well although its errors doom a later one: HTP's finalize returns
    /// 0 where the DSP refused the graph.
    earlier: Option<Line>,
}

#[derive(Debug, Clone)]
struct Line {
    number: u64,
    is_error: bool,
    text: String,
}

impl LogTail {
    /// Takes a line in.
    pub fn take(&mut self, level: LogLevel, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let line = Line { number: self.count, is_error: level == LogLevel::Error, text: text.to_owned() };
        self.count += 1;
        if line.is_error {
            if self.first_errors.len() < FIRST_ERRORS {
                self.first_errors.push(line.clone());
            } else {
                push(&mut self.last_errors, line.clone(), LAST_ERRORS);
            }
        }
        push(&mut self.last, line, MOST);
    }

    /// A new stage: what went wrong in an earlier one did not end the run, and only its first error is kept.
    pub fn next_stage(&mut self) {
        self.earlier = self.earlier.take().or_else(|| self.first_errors.first().cloned());
        self.first_errors.clear();
        self.last_errors.clear();
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        let Some(first) = self.first_errors.first() else {
            let earlier =
                self.earlier.iter().filter(|line| self.last.front().is_none_or(|last| line.number < last.number));
            return earlier.chain(&self.last).map(|line| line.text.clone()).collect();
        };
        let mut kept: Vec<&Line> = self.earlier.iter().chain(&self.first_errors).chain(&self.last_errors).collect();
        let room = MOST.saturating_sub(kept.len());
        let others = self.last.iter().rev().filter(|line| !line.is_error && line.number > first.number);
        kept.extend(others.take(room));
        kept.sort_by_key(|line| line.number);
        kept.into_iter().map(|line| line.text.clone()).collect()
    }
}

fn push(queue: &mut VecDeque<Line>, line: Line, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(line);
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
    fn of_an_earlier_stage_only_the_first_error_is_kept() {
        let mut tail = LogTail::default();
        tail.take(LogLevel::Error, "graph refused");
        tail.take(LogLevel::Error, "and again");
        tail.next_stage();
        tail.take(LogLevel::Error, "never registered");
        assert_eq!(tail.lines(), ["graph refused", "never registered"]);
        tail.next_stage();
        tail.take(LogLevel::Info, "ends");
        assert_eq!(tail.lines(), ["graph refused", "and again", "never registered", "ends"]);
        (0..MOST).for_each(|n| tail.take(LogLevel::Info, &format!("line {n}")));
        assert_eq!(tail.lines()[..2], ["graph refused", "line 0"]);
    }
}
