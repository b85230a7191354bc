//! Lines of foreign text, made safe to show.

use serde::{Deserialize, Serialize};

/// Severity, in QNN's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something is doubtful.
    Warning,
    /// Progress.
    Info,
    /// Detail.
    Verbose,
    /// Everything.
    Debug,
}

impl LogLevel {
    /// QNN's number for the level: 1 error ... 5 debug.
    pub fn from_qnn(level: u32) -> Self {
        match level {
            0 | 1 => Self::Error,
            2 => Self::Warning,
            3 => Self::Info,
            4 => Self::Verbose,
            _ => Self::Debug,
        }
    }

    /// QNN's number for the level.
    pub fn to_qnn(self) -> u32 {
        match self {
            Self::Error => 1,
            Self::Warning => 2,
            Self::Info => 3,
            Self::Verbose => 4,
            Self::Debug => 5,
        }
    }

    /// Five-letter name for columns.
    pub fn short(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warn",
            Self::Info => "info",
            Self::Verbose => "verb",
            Self::Debug => "debug",
        }
    }
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// The backend's log callback.
    Backend,
    /// Text a vendor library printed on standard output or standard error.
    Console,
    /// The log of the run's device (logcat).
    Device,
    /// The runner process.
    Runner,
    /// Output of a tapped program.
    Program,
    /// qnnscope itself.
    Qnnscope,
}

/// One line, free of control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Severity.
    pub level: LogLevel,
    /// Origin.
    pub source: LogSource,
    /// The text: no control characters, at most [`MAX_LINE_CHARS`] characters.
    pub text: String,
}

/// Longest line kept; the rest is cut and marked with an ellipsis.
pub const MAX_LINE_CHARS: usize = 4000;

impl LogLine {
    /// Builds a line from foreign text.
    pub fn new(level: LogLevel, source: LogSource, text: &str) -> Self {
        Self { level, source, text: clean_text(text) }
    }
}

/// True for what could disturb a terminal or a table: control characters (C0, DEL and C1), the two Unicode line separators
/// and the bidirectional controls.
pub fn disturbs(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with its first letter as a capital.
pub fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The text with a replacement character for everything that [`disturbs`]; tabs become a space.
pub fn clean_whole(text: &str) -> String {
    let clean = |c| match c {
        '\t' => ' ',
        c if disturbs(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(clean).collect()
}

/// A clean line: [`clean_whole`] without the line's end, cut at [`MAX_LINE_CHARS`].
pub fn clean_text(text: &str) -> String {
    let trimmed = text.trim_end_matches(['\n', '\r']);
    match trimmed.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => clean_whole(&trimmed[..at]) + "…",
        None => clean_whole(trimmed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_cannot_pass() {
        assert_eq!(clean_text("a\x1b[31mb\tc\r\n"), "a\u{fffd}[31mb c");
        assert_eq!(clean_text("x\u{202e}y"), "x\u{fffd}y");
    }

    #[test]
    fn long_lines_are_cut_and_marked() {
        let cut = clean_text(&"ä".repeat(MAX_LINE_CHARS + 10));
        assert_eq!(cut.chars().count(), MAX_LINE_CHARS + 1);
        assert!(cut.ends_with('…'));
    }
}
