//! The log lines that a failure quotes.

use super::{LogLevel, LogLine, LogSource};
use std::collections::VecDeque;

/// Lines that are quoted.
const MOST: usize = 20;
/// Errors kept from the start of a chain: the first ones show the cause, the last ones how it ended.
const FIRST_ERRORS: usize = 8;
/// The same for its end. This leaves room for lines other than errors.
const LAST_ERRORS: usize = 8;
/// How HTP's compiler reports its steps.
const STEPS: [&str; 2] = ["Starting stage:", "Completed stage:"];

/// The relevant lines before a failure: if there are errors, the errors and the lines after the first one; else the
/// last lines. Memory does not grow with the log.
#[derive(Debug, Default)]
pub struct LogTail {
    count: u64,
    last: VecDeque<Line>,
    first_errors: Vec<Line>,
    last_errors: VecDeque<Line>,
    /// The first error of the stages before. A stage may succeed although its errors make a later one fail: HTP's finalize
    /// returns 0 even if the DSP refused the graph.
    earlier: Option<Line>,
    /// Lines of the backend's log before this number belong to finished stages.
    earlier_stages: u64,
    /// The same of printed lines.
    earlier_prints: u64,
}

#[derive(Debug, Clone)]
struct Line {
    number: u64,
    level: LogLevel,
    source: LogSource,
    text: String,
}

impl LogTail {
    /// Takes a line in.
    pub fn take(&mut self, line: &LogLine) {
        if line.text.trim().is_empty() {
            return;
        }
        let line = Line { number: self.count, level: line.level, source: line.source, text: line.text.clone() };
        self.count += 1;
        if line.level == LogLevel::Error {
            if self.first_errors.len() < FIRST_ERRORS {
                self.first_errors.push(line.clone());
            } else {
                push(&mut self.last_errors, line.clone(), LAST_ERRORS);
            }
        }
        push(&mut self.last, line, MOST);
    }

    /// A new stage: errors in an earlier one did not end the run, and only its first error is kept. The backend's
    /// progress reports are over, too. Console text arrives by a different path and may be ahead of the stages: only
    /// lines up to the last report of a compiler step certainly belong to the finished stage.
    pub fn next_stage(&mut self) {
        self.earlier = self.earlier.take().or_else(|| self.first_errors.first().cloned());
        self.earlier_stages = self.count;
        let is_step = |line: &&Line| STEPS.iter().any(|words| line.text.contains(words));
        let steps = self.last.iter().rev().find(is_step).map_or(0, |line| line.number + 1);
        self.earlier_prints = self.earlier_prints.max(steps);
        self.first_errors.clear();
        self.last_errors.clear();
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        let Some(first) = self.first_errors.first() else {
            let earlier =
                self.earlier.iter().filter(|line| self.last.front().is_none_or(|last| line.number < last.number));
            let last = self.last.iter().filter(|line| !self.is_old_progress(line));
            return earlier.chain(last).map(|line| line.text.clone()).collect();
        };
        let mut kept: Vec<&Line> = self.earlier.iter().chain(&self.first_errors).chain(&self.last_errors).collect();
        let room = MOST.saturating_sub(kept.len());
        let others = self.last.iter().rev().filter(|line| line.level != LogLevel::Error && line.number > first.number);
        kept.extend(others.take(room));
        kept.sort_by_key(|line| line.number);
        kept.into_iter().map(|line| line.text.clone()).collect()
    }

    fn is_old_progress(&self, line: &Line) -> bool {
        let logged = if line.source == LogSource::Backend { self.earlier_stages } else { 0 };
        line.number < logged.max(self.earlier_prints) && line.level > LogLevel::Warning
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

    fn line(level: LogLevel, text: &str) -> LogLine {
        LogLine::new(level, LogSource::Backend, text)
    }

    fn tail(lines: impl IntoIterator<Item = (LogLevel, String)>) -> Vec<String> {
        let mut tail = LogTail::default();
        for (level, text) in lines {
            tail.take(&line(level, &text));
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
    fn progress_of_an_earlier_stage_does_not_count() {
        let mut tail = LogTail::default();
        tail.take(&line(LogLevel::Warning, "no such option"));
        tail.take(&line(LogLevel::Info, "Completed stage: Graph Sequencing for Target (449 us)"));
        assert_eq!(tail.lines().len(), 2, "of the stage that failed it tells how far it came");
        tail.next_stage();
        assert_eq!(tail.lines(), ["no such option"]);

        let mut died = LogTail::default();
        for text in ["spill_bytes=0", "Completed stage: Completion (59 us)", "giving up"] {
            died.take(&LogLine::new(LogLevel::Info, LogSource::Console, text));
        }
        died.take(&line(LogLevel::Info, "device created"));
        died.next_stage();
        assert_eq!(died.lines(), ["giving up"], "last words come another way than stages do, and perhaps before them");
    }

    #[test]
    fn of_an_earlier_stage_only_the_first_error_is_kept() {
        let mut tail = LogTail::default();
        tail.take(&line(LogLevel::Error, "graph refused"));
        tail.take(&line(LogLevel::Error, "and again"));
        tail.next_stage();
        tail.take(&line(LogLevel::Error, "never registered"));
        assert_eq!(tail.lines(), ["graph refused", "never registered"]);
        tail.next_stage();
        tail.take(&line(LogLevel::Info, "ends"));
        assert_eq!(tail.lines(), ["graph refused", "and again", "never registered", "ends"]);
        (0..MOST).for_each(|n| tail.take(&line(LogLevel::Info, &format!("line {n}"))));
        assert_eq!(tail.lines()[..2], ["graph refused", "line 0"]);
    }
}
