//! Interprets qnn-net-run's output and exit.

use crate::backends::errors;
use crate::backends::local::signal_name;
use crate::backends::qnn::api::without_level;
use crate::backends::{Backend, stopped};
use crate::event::{Failure, LogLevel, LogLine, LogSource, LogTail, Stage};
use crate::models::Graph;

/// Maximum number of error lines kept: an op's request and all the sets the backend accepts take about 140.
const MOST_ERRORS: usize = 400;

/// A line of the tool: `   12.3ms [ ERROR ] text`, or bare text.
pub fn log_line(text: &str) -> LogLine {
    let (level, text) = match split(text) {
        Some((level, rest)) => (level, rest),
        None => (LogLevel::Info, text.trim_end()),
    };
    LogLine::new(level, LogSource::Console, text)
}

fn split(text: &str) -> Option<(LogLevel, &str)> {
    let at = text.find('[')?;
    let before = text[..at].trim();
    if !(before.is_empty() || before.strip_suffix("ms").is_some_and(|number| number.parse::<f64>().is_ok())) {
        return None;
    }
    let (word, rest) = text[at + 1..].split_once(']')?;
    let level = match word.trim() {
        "ERROR" => LogLevel::Error,
        "WARNING" => LogLevel::Warning,
        "INFO" => LogLevel::Info,
        "VERBOSE" => LogLevel::Verbose,
        "DEBUG" => LogLevel::Debug,
        _ => return None,
    };
    Some((level, rest.trim()))
}

/// The tool's last message for each failing step, and the step.
const ENDINGS: [(&str, Stage, &str); 8] = [
    ("Backend Initialization failure", Stage::BackendCreate, "backendCreate"),
    ("Device Creation failure", Stage::DeviceCreate, "deviceCreate"),
    ("Create From Binary failure", Stage::ContextCreate, "contextCreateFromBinary"),
    ("Context Creation failure", Stage::ContextCreate, "contextCreate"),
    ("Graph Prepare failure", Stage::Compose, "composeGraphs"),
    ("Graph Finalize failure", Stage::Finalize, "graphFinalize"),
    ("Graph Execution failure", Stage::Execute, "graphExecute"),
    ("Initialization failure", Stage::LibraryLoad, "initialize"),
];

/// What the tool was asked to run.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Backend.
    pub backend: Backend,
    /// Hexagon architecture of the device, such as `v75`, if known.
    pub arch: Option<&'a str>,
    /// Graphs of the model, if readable.
    pub graphs: &'a [Graph],
}

/// The output so far, to the extent that a failure needs it.
#[derive(Debug, Default)]
pub struct Heard {
    tail: LogTail,
    last: Option<String>,
    /// From the first error on.
    chain: Vec<String>,
    first_error: Option<String>,
    code: Option<u64>,
    ending: Option<(Stage, &'static str)>,
    finalizing: bool,
}

impl Heard {
    /// Processes a line.
    pub fn take(&mut self, line: &LogLine) {
        if line.text.trim().is_empty() {
            return;
        }
        self.tail.take(line);
        self.last = Some(line.text.clone());
        if (line.level == LogLevel::Error || !self.chain.is_empty()) && self.chain.len() < MOST_ERRORS {
            self.chain.push(without_level(&line.text).to_owned());
        }
        if line.level == LogLevel::Error {
            // The first error of the chain shows the cause; the later ones only that it reached them.
            self.first_error.get_or_insert_with(|| line.text.clone());
            self.code = self.code.or_else(|| code_in(&line.text));
            self.finalizing |= line.text.contains("inalize");
        }
        if let Some((_, stage, call)) = ENDINGS.iter().find(|(text, ..)| line.text.trim() == *text) {
            self.ending = Some((*stage, call));
        }
    }

    /// The failure behind an exit status other than 0.
    pub fn failure(&self, status: i32, reached: Stage, asked: &Asked<'_>) -> Failure {
        let signal = (status > 128).then(|| status - 128).and_then(signal_name);
        let (stage, call) = match (self.ending, signal) {
            (Some((Stage::Compose, _)), _) if self.finalizing => (Stage::Finalize, "graphFinalize"),
            (Some(ending), _) => ending,
            (None, Some(name)) => (reached, name),
            (None, None) => (reached, "qnn-net-run"),
        };
        let said = self.first_error.clone().or_else(|| self.last.clone());
        let end = match signal {
            Some(name) => format!("qnn-net-run was killed by signal {} ({name})", status - 128),
            None => format!("qnn-net-run exited with status {status}"),
        };
        let message = said.map_or_else(|| end.clone(), |said| format!("{said} ({end})"));
        let code = self.code;
        let mut failure = Failure {
            code,
            symbol: code.and_then(|code| errors::lookup(code, call)).map(|row| row.symbol.to_owned()),
            log_tail: self.tail.lines(),
            ..Failure::new(stage, call, &message)
        };
        if matches!(failure.stage, Stage::Compose | Stage::Finalize) {
            let (arch, finalizing) = (asked.arch.map(ToOwned::to_owned), failure.stage == Stage::Finalize);
            let refusal = stopped::from_log(asked.backend, arch, asked.graphs, self.chain.clone(), finalizing);
            failure.refusal = refusal.map(Box::new);
        }
        failure.hint = crate::hints::for_failure(&failure);
        failure
    }

    /// The relevant lines, oldest first.
    pub fn tail(&self) -> Vec<String> {
        self.tail.lines()
    }
}

/// A QNN code in an error line: the number after `error`, `failed`, `status` or `code`, decimal or hexadecimal, if the
/// catalogue knows it.
fn code_in(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split([' ', ':', ',', '=', '(', ')']).filter(|word| !word.is_empty()).collect();
    let known = |code: &u64| *code >= 1000 && errors::lookup(*code, "").is_some();
    words
        .windows(2)
        .filter(|pair| {
            let before = pair[0].to_ascii_lowercase();
            ["error", "failed", "status", "code", "err"].iter().any(|word| before.ends_with(word))
        })
        .find_map(|pair| parse(pair[1].trim_end_matches('.')).map(|value| value & 0xffff).filter(known))
}

fn parse(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str, status: i32) -> Failure {
        let mut heard = Heard::default();
        for line in text.lines() {
            heard.take(&log_line(line));
        }
        heard.failure(status, Stage::Prepare, &Asked { backend: Backend::Htp, arch: Some("v75"), graphs: &[] })
    }

    #[test]
    fn lines_are_split_as_the_tool_prints_them() {
        let line = log_line("   63.9ms [WARNING] Unable to access symbol");
        assert_eq!((line.level, line.text.as_str()), (LogLevel::Warning, "Unable to access symbol"));
        let line = log_line("[ ERROR ] QnnModel::addNode() validating node x failed.");
        assert_eq!(line.level, LogLevel::Error);
        assert_eq!(log_line("Completed stage: Completion [7 us]").level, LogLevel::Info);
    }

    #[test]
    fn the_first_error_of_the_chain_is_the_message_and_its_code_is_found() {
        let text = "     0.0ms [ ERROR ]  <E> [4294967295] has incorrect Rank 6.\n     0.0ms [ ERROR ]  <E> \
                    QnnBackend_validateOpConfig failed 3110\n    72.6ms [ ERROR ] ComposeGraphs Failed with error = 1\n\
                    Graph Prepare failure\n";
        let failure = failure(text, 14);
        assert_eq!((failure.stage, failure.code), (Stage::Compose, Some(3110)));
        assert!(failure.message.contains("incorrect Rank 6"), "{}", failure.message);
    }

    #[test]
    fn signals_and_silent_ends_are_told() {
        let crashed = failure("qnn-net-run pid:7\n", 139);
        assert_eq!(crashed.call, "SIGSEGV");
        let device =
            failure("  0.0ms [ ERROR ]  <E> Failed to parse custom config: 14001\nDevice Creation failure\n", 11);
        assert_eq!(device.stage, Stage::DeviceCreate);
        assert!(failure("", 9).message.contains("status 9"));
    }
}
