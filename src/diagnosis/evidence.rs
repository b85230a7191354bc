//! Lines of a log as evidence for a cause.

use crate::event::clean_text;
use serde::Serialize;

/// Bytes of a line that are kept as evidence.
const EXCERPT_BYTES: usize = 600;
/// Bytes that are shown before the relevant position of a cut line.
const BEFORE_BYTES: usize = 200;

/// The line that shows a flag.
pub(super) type Seen = Option<Evidence>;

/// The lines that show a signal: its first one, and one after a later line that may take the first back.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    first: Seen,
    again: Seen,
}

impl Shown {
    /// Adds a line, in any order.
    pub fn add(&mut self, evidence: Evidence) {
        match &self.first {
            None => self.first = Some(evidence),
            Some(first) if evidence.line < first.line => {
                let first = self.first.replace(evidence);
                self.again = self.again.take().or(first);
            }
            Some(_) => self.again = Some(evidence),
        }
    }

    /// Drops the lines that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&Evidence) -> bool) {
        let mut kept = [self.first.take(), self.again.take()].into_iter().flatten().filter(keep);
        (self.first, self.again) = (kept.next(), kept.next());
    }

    /// The lines, the first one first.
    pub fn lines(&self) -> impl Iterator<Item = &Evidence> {
        self.first.iter().chain(&self.again)
    }
}

/// A sign that points to a cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sign {
    /// Its index among the cause's signals in the catalogue, from 0.
    pub index: usize,
    /// Confidence that it gives by itself, 0 to 1.
    pub weight: f64,
    /// Its line; 0 if no single line shows it.
    pub line: u64,
}

/// A line that points to a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Line number, from 1; 0 if no single line shows it (exit status, failed call, output files, counts).
    pub line: u64,
    /// The line without control characters, cut to 600 bytes.
    pub text: String,
}

/// Adds bytes to the end of a log of which at most `most` are kept.
pub(super) fn keep_end(kept: &mut Vec<u8>, data: &[u8], most: usize) {
    let data = &data[data.len().saturating_sub(most)..];
    let room = most - data.len();
    if kept.len() > room {
        kept.drain(..kept.len() - room);
    }
    kept.extend(data);
}

/// A line as evidence.
pub(super) fn excerpt(line: &[u8]) -> String {
    excerpt_at(line, 0)
}

/// A line as evidence, cut so that it includes position `at`.
pub(super) fn excerpt_at(line: &[u8], at: usize) -> String {
    let blanks = line.len() - line.trim_ascii_start().len();
    let line = line.trim_ascii();
    let at = at.saturating_sub(blanks);
    let mut start = 0;
    if line.len() > EXCERPT_BYTES && at > EXCERPT_BYTES / 2 {
        start = (at - BEFORE_BYTES).min(line.len() - EXCERPT_BYTES);
        // Do not start inside a character.
        while line[start] & 0xc0 == 0x80 && start + 1 < line.len() {
            start += 1;
        }
    }
    let kept = &line[start..line.len().min(start + EXCERPT_BYTES)];
    let mut text = clean_text(String::from_utf8_lossy(kept).trim());
    if start > 0 {
        text.insert(0, '…');
    }
    if start + kept.len() < line.len() {
        text.push('…');
    }
    text
}
