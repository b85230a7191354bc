//! Messages that a terminal, a frame or a page has broken into several lines. They are read as one only if a short log has no
//! cause line by line: whatever lines say by themselves comes first.

use super::Diagnoser;
use crate::diagnosis::prose::is_marked;
use crate::diagnosis::statements::{Level, level};

/// Messages that are kept.
const MOST: usize = 64;
/// Lines of a message.
const LINES: usize = 4;
/// Bytes of a message.
const BYTES: usize = 600;
/// Bytes of the shortest line that a narrow page breaks.
const BROKEN: usize = 48;
/// Words of such a line.
const BROKEN_WORDS: usize = 6;
/// Words that no message ends with.
const INCOMPLETE: [&str; 31] = [
    "a", "an", "the", "is", "are", "was", "were", "be", "been", "not", "cannot", "to", "of", "in", "on", "at", "by",
    "for", "from", "with", "and", "or", "as", "that", "than", "having", "has", "have", "does", "into", "unable",
];
/// Bytes of the shortest line after which any word may go on.
const FULL: usize = 64;
/// Signs at both ends of a line in a frame.
const FRAME: [char; 4] = ['|', '│', '┃', '║'];
/// Beginnings of lines of source code and tracebacks.
const SOURCE: [&str; 4] = ["File \"", "raise ", "if ", "def "];
/// Beginnings of other lines that are no continuation.
const NEW: [&str; 14] = ["[", "{", "}", "at ", "#", "Traceback", "...", "- ", "* ", "^", "~", "<", "$ ", "==="];

/// The start of a message, as long as it may go on.
#[derive(Debug, Clone)]
struct Open {
    number: u64,
    text: String,
    /// Its last line, without its frame.
    last: String,
    indent: usize,
    /// Characters of a framed line.
    frame: Option<usize>,
    lines: usize,
}

/// Messages of several lines.
#[derive(Debug, Clone, Default)]
pub(super) struct Wrapped {
    messages: Vec<(u64, String)>,
    /// They are being read. What states a failure is quoted from single lines only.
    pub is_read: bool,
    open: Option<Open>,
}

impl Wrapped {
    /// Takes a line.
    pub fn note(&mut self, number: u64, line: &[u8]) {
        let Ok(line) = std::str::from_utf8(line) else {
            self.close();
            return;
        };
        let (text, frame) = unframed(line);
        let indent = line.len() - line.trim_start().len();
        if let Some(open) = &mut self.open
            && open.lines < LINES
            && open.text.len() + text.len() < BYTES
            && open.goes_on(text, indent, frame)
        {
            open.text.push(' ');
            open.text.push_str(text);
            text.clone_into(&mut open.last);
            open.lines += 1;
            return;
        }
        self.close();
        // Commands, rows of tables and source code are whole.
        let is_whole = text.contains(" --") || is_row(text) || is_marked(text.as_bytes());
        let is_source = SOURCE.iter().any(|start| text.starts_with(start));
        let may_begin = !text.is_empty() && text.len() < BYTES && !is_whole && !is_source;
        if may_begin && self.messages.len() < MOST {
            self.open = Some(Open { number, text: text.to_owned(), last: text.to_owned(), indent, frame, lines: 1 });
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take()
            && open.lines > 1
        {
            self.messages.push((open.number, open.text));
        }
    }
}

impl Open {
    fn goes_on(&self, text: &str, indent: usize, frame: Option<usize>) -> bool {
        let Some(first) = text.chars().next() else { return false };
        // All lines of a frame are as wide as each other, those of a list between bars are not.
        if frame.is_some() || self.frame.is_some() {
            return frame == self.frame && !is_row(text);
        }
        let is_new =
            NEW.iter().chain(&SOURCE).any(|start| text.starts_with(start)) || level(text.as_bytes()) != Level::Unsaid;
        if is_new || self.last.ends_with(['.', '!', '?', ';', '}', ']', '{', '>']) {
            return false;
        }
        let is_deeper = indent > self.indent && self.lines == 1;
        if self.last.ends_with(':') {
            return is_deeper;
        }
        let last_word = self.last.rsplit(' ').next().unwrap_or_default().to_ascii_lowercase();
        let is_open = self.last.ends_with(',') || INCOMPLETE.contains(&last_word.as_str());
        let is_full = self.last.len() >= BROKEN && self.last.split_whitespace().count() >= BROKEN_WORDS;
        // A program's name, a tag or a time begins a message of its own.
        let first_word = text.split_whitespace().next().unwrap_or_default();
        let is_tag = ["V", "D", "I", "W", "E", "F"].contains(&first_word);
        if is_tag || first_word.ends_with([':', ']']) || first_word.contains(|c: char| c.is_ascii_digit() || c == '=') {
            return false;
        }
        let may_follow = first.is_alphabetic() || matches!(first, '\'' | '"' | '`' | '(');
        may_follow && (is_open || is_full && (first.is_lowercase() || is_deeper || self.last.len() >= FULL))
    }
}

/// True for a row of a table, without its frame.
fn is_row(text: &str) -> bool {
    text.contains(" | ") || text.contains([FRAME[1], FRAME[2], FRAME[3]])
}

/// A line without blanks and without its frame, and how wide that is if it has one.
fn unframed(line: &str) -> (&str, Option<usize>) {
    let line = line.trim();
    match line.strip_prefix(FRAME).and_then(|rest| rest.strip_suffix(FRAME)) {
        Some(text) => (text.trim(), Some(line.chars().count())),
        None => (line, None),
    }
}

impl Diagnoser {
    /// Reads the messages of several lines; true if there are any.
    pub(super) fn read_wrapped(&mut self) -> bool {
        self.wrapped.close();
        let messages = std::mem::take(&mut self.wrapped.messages);
        self.wrapped.is_read = true;
        for (number, text) in &messages {
            self.read(*number, text.as_bytes());
        }
        !messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(log: &str) -> Vec<String> {
        let mut wrapped = Wrapped::default();
        (1..).zip(log.lines()).for_each(|(number, line)| wrapped.note(number, line.as_bytes()));
        wrapped.close();
        wrapped.messages.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_message_in_several_lines_is_one() {
        for (log, message) in [
            (
                "The following operators are not\nsupported in frontend TFLite: 'X'\n",
                "The following operators are not supported in frontend TFLite: 'X'",
            ),
            ("│ Your API token is    │\n│ missing.             │\n", "Your API token is missing."),
            (
                "dlopen failed: library \"a.so\" not found:\n  needed by b.so\n",
                "dlopen failed: library \"a.so\" not found: needed by b.so",
            ),
        ] {
            assert_eq!(messages(log), [message], "{log}");
        }
    }

    #[test]
    fn messages_of_their_own_stay_apart() {
        for log in [
            "Failed to load the skel.\nretrying\n",
            "loading\n[ERROR] no device\n",
            "  File \"a.py\", line 3, in run\n    main()\n",
            "Starting stage: X\nCompleted stage: X\n",
            "│ skel │ not found │\n│ stub │ too small │\n",
            "E0000 00:00:17.1 3 x_log.cc:51] the first message of this program that is not\nE0000 00:00:17.2 3 x_log.cc:51] found\n",
        ] {
            assert_eq!(messages(log), [""; 0], "{log}");
        }
    }

    #[test]
    fn what_single_lines_say_comes_first() {
        let first = |log: &str| {
            let mut diagnoser = Diagnoser::new();
            diagnoser.feed(log.as_bytes());
            diagnoser.finish().causes.first().map(|cause| (cause.id, cause.evidence[0].line))
        };
        let wrapped = "qnn: loading\nError: cannot find the\nmodel file model.dlc\n";
        assert_eq!(first(wrapped), Some(("model-missing", 2)));
        // However the bytes arrive, and without an end of the last line.
        let mut diagnoser = Diagnoser::new();
        wrapped.trim_end().bytes().for_each(|byte| diagnoser.feed(&[byte]));
        assert_eq!(diagnoser.finish().causes.first().map(|cause| cause.id), Some("model-missing"));
        let long = format!("{wrapped}{}", "one more line\n".repeat(500));
        assert_eq!(first(&long), None, "only a short log");
        let both = format!("{wrapped}QnnDsp <E> Stub lib id mismatch: expected (v2.28.0), detected (v2.30.0)\n");
        assert_eq!(first(&both).map(|(id, _)| id), Some("stub-skel-build-id-mismatch"));
    }
}
