//! Decides whose line it is: in a log of many programs, a line that any of them may print counts only close
//! to QNN.

use super::catalogue::{Near, catalogue};
use super::evidence::Evidence;
use super::pattern::{self, regex};
use super::statements::{Level, level};
use aho_corasick::AhoCorasick;
use regex::bytes::Regex;
use std::sync::LazyLock;

/// QNN lines that are recorded; a log with more of them is QNN's own.
const QNN_LINES: usize = 256;
/// Lines before or after a QNN line that count as close to it.
const NEAR_LINES: u64 = 40;
/// Lines per signal that are kept until it is known whether QNN is close.
const WAITING: usize = 8;
/// Tags that any program's messages may carry.
const ANYBODYS: [&[u8]; 8] =
    [b"linker", b"linker64", b"androidruntime", b"debug", b"libc", b"system.err", b"avc", b"kernel"];

/// The words that identify a QNN line: those of the flag.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = catalogue().flag.iter().filter(|flag| flag.name == "qnn").flat_map(|flag| &flag.pattern.any);
    pattern::words(words)
});

/// `08-04 13:56:51.508  4711  4712 E Tag: text`, and `E/Tag( 4711): text`.
static LOGCAT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(r"^(?:(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d\.\d+\s+(?:\S+\s+)?(\d+)\s+\d+\s+[VDIWEFA]\s+([^:]*?)\s*:|(?:\S+ \S+ )?[VDIWEF]/([^(:]*?)\s*\(\s*(\d+)\):)").ok()
});

/// Process and tag of a line from Android's log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Author {
    process: Vec<u8>,
    tag: Vec<u8>,
}

impl Author {
    fn of(line: &[u8]) -> Option<Self> {
        let found = LOGCAT.as_ref()?.captures(line)?;
        let part = |one, other| found.get(one).or_else(|| found.get(other)).map(|part| part.as_bytes());
        Some(Self { process: part(1, 4)?.to_vec(), tag: part(2, 3)?.to_ascii_lowercase() })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.process == other.process || self.tag == other.tag && !ANYBODYS.contains(&&self.tag[..])
    }
}

/// A line that counts if QNN turns out to be close.
#[derive(Debug, Clone)]
struct Waiting {
    place: (usize, usize),
    near: Near,
    author: Option<Author>,
    evidence: Evidence,
}

/// What is known about QNN's lines, and the lines that depend on it.
#[derive(Debug, Default, Clone)]
pub struct Nearness {
    /// The whole log comes from a QNN run.
    own: bool,
    lines: Vec<u64>,
    authors: Vec<Author>,
    waiting: Vec<Waiting>,
}

impl Nearness {
    /// Marks the whole log as coming from a QNN run.
    pub fn is_own(&mut self) {
        self.own = true;
    }

    /// True if enough QNN lines are recorded.
    pub fn is_full(&self) -> bool {
        self.lines.len() >= QNN_LINES
    }

    /// True if QNN lines have the form of Android's log.
    pub fn is_logcat(&self) -> bool {
        !self.authors.is_empty()
    }

    /// True if all lines are those of a run of QNN.
    pub fn is_all_own(&self) -> bool {
        self.own
    }

    /// True if no line names QNN.
    pub fn is_unnamed(&self) -> bool {
        self.lines.is_empty()
    }

    /// Records a line that was read.
    pub fn note(&mut self, number: u64, line: &[u8]) {
        if self.is_full() || !names_qnn(line) {
            return;
        }
        self.lines.push(number);
        if let Some(author) = Author::of(line)
            && !self.authors.contains(&author)
        {
            self.authors.push(author);
        }
    }

    /// True if the line counts now; otherwise it is kept until the end.
    pub fn decide(&mut self, place: (usize, usize), near: Near, evidence: &Evidence, line: &[u8]) -> bool {
        if near == Near::Failure && !may_be_a_failure(line) {
            return false;
        }
        if self.own || names_qnn(line) {
            return true;
        }
        let waiting = Waiting { place, near, author: Author::of(line), evidence: evidence.clone() };
        let of_place = self.waiting.iter().filter(|other| other.place == place).count();
        match self.waiting.iter_mut().rfind(|other| other.place == place) {
            // The last one stands for those after it.
            Some(last) if of_place >= WAITING => *last = waiting,
            _ => self.waiting.push(waiting),
        }
        false
    }

    /// How many lines are kept until the end.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The lines that count as things stand, each with the indices of its cause and signal.
    pub fn at_end(&mut self) -> Vec<((usize, usize), Evidence)> {
        let waiting = std::mem::take(&mut self.waiting);
        let (counted, others): (Vec<Waiting>, Vec<Waiting>) = waiting.into_iter().partition(|line| self.counts(line));
        self.waiting = others;
        counted.into_iter().map(|line| (line.place, line.evidence)).collect()
    }

    fn counts(&self, line: &Waiting) -> bool {
        if self.own {
            return true;
        }
        // Another author can be told from QNN only if QNN lines with a known author exist.
        if let (Near::Process | Near::Failure, Some(author), false) = (line.near, &line.author, self.authors.is_empty())
        {
            return self.authors.iter().any(|other| author.is_same(other));
        }
        let number = line.evidence.line;
        self.lines.iter().any(|other| other.abs_diff(number) <= NEAR_LINES)
            || self.is_full() && self.lines.last().is_some_and(|last| number > *last)
    }
}

/// True for a line that calls itself an error, or that names QNN and claims no other level.
fn may_be_a_failure(line: &[u8]) -> bool {
    match level(line) {
        Level::Error => true,
        Level::Info | Level::Debug | Level::Warning => false,
        Level::Unsaid => names_qnn(line) || says_error(line),
    }
}

/// `ValueError: text`, `rc 1 (error)`, and the tags of errors in Android's log.
fn says_error(line: &[u8]) -> bool {
    static ERROR: LazyLock<Option<Regex>> =
        LazyLock::new(|| regex(r"error\b|exception:|\d E \S|\bE/\S|^\[?E\]?[ \]]").ok());
    ERROR.as_ref().is_some_and(|error| error.is_match(line))
}

/// True if the line contains words of QNN or of what it runs on.
pub fn names_qnn(line: &[u8]) -> bool {
    WORDS.as_ref().is_some_and(|words| words.is_match(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_author_of_a_line_of_androids_log_is_read() {
        for line in ["08-04 13:56:51.508  4711  4712 E QnnDsp  : text", "E/QnnDsp  ( 4711): text"] {
            let author = Author::of(line.as_bytes()).unwrap();
            assert_eq!((&author.process[..], &author.tag[..]), (&b"4711"[..], &b"qnndsp"[..]), "{line}");
        }
        for line in ["QnnDsp <E> text", "[2026-01-02 03:04:05.1] [error] text", ""] {
            assert_eq!(Author::of(line.as_bytes()), None, "{line}");
        }
    }
}
