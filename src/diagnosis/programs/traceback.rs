//! The exception that ends a log, and the source file that raised it.

use super::{Meaning, module, unforeseen};
use crate::diagnosis::evidence::keep_end;
use crate::diagnosis::pattern::regex;
use crate::diagnosis::statements::{Level, level};
use regex::bytes::Regex;
use std::sync::LazyLock;

/// Bytes kept from the end of the log.
const TAIL_BYTES: usize = 24 * 1024;
/// Lines after the exception up to which it still ends the log.
const LINES_AFTER: usize = 30;
/// How a traceback begins.
const HEADER: &[u8] = b"(most recent call last):";
/// What Python says of an exception while it ends.
const IGNORED: &[u8] = b"Exception ignored in";
/// Frames, from the innermost, whose files are looked up.
const FRAMES: usize = 8;

/// Exceptions that say more than the file they come from: what they speak of is missing, refused or full.
const TELLING: [&str; 12] = [
    "ImportError",
    "ModuleNotFoundError",
    "FileNotFoundError",
    "PermissionError",
    "MemoryError",
    "OutOfMemoryError",
    "KeyboardInterrupt",
    "ConnectionError",
    "HTTPError",
    "SSLError",
    "TimeoutError",
    "SyntaxError",
];

/// Exceptions that no program raises on purpose to tell its user something.
const INTERNAL: [&str; 8] = [
    "AssertionError",
    "AttributeError",
    "IndexError",
    "KeyError",
    "RecursionError",
    "TypeError",
    "UnboundLocalError",
    "ZeroDivisionError",
];

static EXCEPTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(r"^(?:[a-z_][\w.]*\.)?([A-Z]\w*(?:Error|Exception|Unsupported|Violation|Failure|Interrupt|Expired|Exit)|Unsupported|Exception)\s*(?::|$)").ok()
});
/// `exit=139`, `nrun exit: 137`, `status 124`, `bash: line 1: 14524 Killed  ./run`.
static STATUS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let killed = r"sh: line \d+: +\d+ (killed|terminated|aborted|segmentation fault|bus error|floating point exception|illegal instruction|file size limit exceeded)";
    regex(&format!(r"(^|[\s\]])(exit|exited|status|rc|exit code|exit status|returned|code)( with| code| status)?\W{{1,3}}[1-9]\d{{0,2}}\.?$|{killed}|^\W*(failed|fatal)\b|(^|\s)[1-9]\d*/\d+ (below|outside|failed|wrong)")).ok()
});
static FRAME: LazyLock<Option<Regex>> = LazyLock::new(|| regex(r#"^\s*[|>]?\s*File "([^"]+)", line \d+"#).ok());

/// The end of a log.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    bytes: Vec<u8>,
}

/// An exception that ends a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    /// What one from its source file means.
    pub meaning: Meaning,
    /// Its line, counted from the last one, which is 0.
    pub from_end: usize,
    /// Its text.
    pub line: Vec<u8>,
}

impl Tail {
    /// Feeds the next bytes of the log.
    pub fn pass(&mut self, data: &[u8]) {
        keep_end(&mut self.bytes, data, TAIL_BYTES);
    }

    /// True if the log is longer, so that the first line may lack its beginning.
    pub fn is_cut(&self) -> bool {
        self.bytes.len() >= TAIL_BYTES
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True if the last line that is not empty is an exception.
    fn is_exception(&self) -> bool {
        let mut ends = self.said_last().map(<[u8]>::trim_ascii);
        let is_last = ends.next().zip(EXCEPTION.as_ref()).is_some_and(|(line, exception)| exception.is_match(line));
        is_last && memchr::memmem::find(&self.bytes, IGNORED).is_none()
    }

    /// True if the last line that is not empty tells of a failure: an exception, a shell's report of a program that failed, an
    /// error.
    pub fn ends_badly(&self) -> bool {
        let is_report = |line: &[u8]| STATUS.as_ref().is_some_and(|status| status.is_match(line.trim_ascii()));
        let is_failure = |line: &[u8]| is_report(line) || level(line) == Level::Error;
        self.is_exception() || self.said_last().next().is_some_and(is_failure)
    }

    /// The lines that are not empty, the last one first.
    pub fn said_last(&self) -> impl Iterator<Item = &[u8]> {
        self.lines().filter(|line| !line.trim_ascii().is_empty())
    }

    /// The lines, the last one first.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let text = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        text.rsplit(|byte| *byte == b'\n')
    }

    /// The exception that ends the log, if the file that raised it tells what it means.
    pub fn raised(&self) -> Option<Raised> {
        let (exception, frame) = (EXCEPTION.as_ref()?, FRAME.as_ref()?);
        let text = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).collect();
        let at = lines.iter().rposition(|line| exception.is_match(line))?;
        let header = lines[..at].iter().rposition(|line| line.ends_with(HEADER));
        let (before, own) = lines[..at].split_at(header.unwrap_or(0));
        if header.is_some() && before.last().is_some_and(|line| line.starts_with(IGNORED)) {
            return None;
        }
        let name = exception.captures(lines[at])?.get(1)?.as_bytes();
        let after = lines[at + 1..].iter().filter(|line| !line.is_empty()).count();
        if after > LINES_AFTER || TELLING.iter().any(|telling| name.ends_with(telling.as_bytes())) {
            return None;
        }
        // The frames of this traceback, not of an earlier one.
        let files = own.iter().rev().filter_map(|line| frame.captures(line)?.get(1));
        let files: Vec<_> = files.take(FRAMES).map(|file| String::from_utf8_lossy(file.as_bytes())).collect();
        let is_internal = INTERNAL.iter().any(|internal| name.ends_with(internal.as_bytes()));
        let innermost = || files.first().filter(|_| is_internal).and_then(|file| unforeseen(file));
        let meaning = files.iter().find_map(|file| module(file)).or_else(innermost)?;
        Some(Raised { meaning, from_end: lines.len() - 1 - at, line: lines[at].to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: &str = "Traceback (most recent call last):\n  File \"/home/u/export.py\", line 9, in <module>\n    main()\n  File \"/v/site-packages/ai_edge_quantizer/algorithm_manager_api.py\", line 31, in compute\n    x[0]\n";

    fn raised(end: &str) -> Option<(usize, String)> {
        let mut tail = Tail::default();
        for byte in format!("{FRAMES}{end}").bytes() {
            tail.pass(&[byte]);
        }
        tail.raised().map(|raised| (raised.from_end, String::from_utf8(raised.line).unwrap()))
    }

    #[test]
    fn the_exception_that_ends_a_log_is_told_by_its_innermost_known_file() {
        let key = "KeyError: 'conv1'".to_owned();
        assert_eq!(raised("KeyError: 'conv1'\n"), Some((0, key.clone())));
        assert_eq!(raised("KeyError: 'conv1'"), Some((0, key.clone())));
        assert_eq!(
            raised("  File \"/v/numpy/x.py\", line 2, in f\nKeyError: 'conv1'\r\nmake: *** [all] Error 1\n"),
            Some((1, key))
        );
    }

    #[test]
    fn an_earlier_traceback_does_not_tell_of_a_later_exception() {
        let later = "KeyError: 'a'\nTraceback (most recent call last):\n  File \"/home/u/run.py\", line 3, in f\nKeyError: 'b'\n";
        assert_eq!(raised(later), None);
    }

    #[test]
    fn no_exception_and_one_that_tells_by_itself_are_not_told_by_their_file() {
        for end in ["", "done\n", "ModuleNotFoundError: No module named 'x'\n", "FileNotFoundError: [Errno 2] x\n"] {
            assert_eq!(raised(end), None, "{end}");
        }
        assert_eq!(raised(&format!("KeyError: 'conv1'\n{}", "and it went on\n".repeat(LINES_AFTER + 1))), None);
    }
}
