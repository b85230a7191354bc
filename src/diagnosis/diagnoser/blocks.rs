//! Decides which lines of a log to read.

use super::{Diagnoser, OVERLAP, PIECE};
use crate::diagnosis::evidence::{Evidence, excerpt};
use crate::diagnosis::repeats::Key;
use crate::diagnosis::rules::Worth;

impl Diagnoser {
    /// Reads a block of whole lines.
    pub(super) fn block(&mut self, block: &[u8]) {
        if let Some(lines) = block.strip_suffix(b"\n") {
            for (number, line) in (self.lines + 1..).zip(lines.split(|byte| *byte == b'\n')) {
                if !self.prose.is_open() {
                    break;
                }
                self.note_form(number, line);
            }
        }
        // While QNN lines are being counted, none is skipped.
        if self.counting || !self.pace.knows_lines() {
            self.anchored(block);
        } else {
            self.line_by_line(block);
        }
        self.note_last_of(block);
    }

    /// Recognises lines that came before, or that turned out to be irrelevant, by their hash, and does not
    /// search them again.
    fn line_by_line(&mut self, block: &[u8]) {
        let (mut from, mut known) = (0, 0);
        let before = self.lines;
        while from < block.len() {
            let end = memchr::memchr(b'\n', &block[from..]).map_or(block.len(), |at| from + at);
            let line = &block[from..end];
            from = end + 1;
            self.lines += 1;
            if line.len() >= PIECE {
                for piece in pieces(line) {
                    self.read_if_wanted(self.lines, piece);
                }
                continue;
            }
            let key = self.beyond_numbers(line).unwrap_or_else(|| Key::of(line));
            if self.answers.is_outside() && self.repeats.has(key) {
                known += 1;
            } else if self.read_if_wanted(self.lines, line) == Reading::NotWanted {
                // Rules only ever become done, so a line that is irrelevant now stays irrelevant.
                self.repeats.learn(key);
            }
        }
        self.pace.learn(known, self.lines - before);
    }

    /// Key of a line without its leading short numbers, if it has any and no rule depends on them.
    pub(super) fn beyond_numbers(&self, line: &[u8]) -> Option<Key> {
        // A trace has to show every line.
        let (key, end) = Key::beyond_numbers(line).filter(|_| self.trace.is_none())?;
        (!self.rules.touches_numbers(line, end)).then_some(key)
    }

    /// Looks only at lines that contain an anchor.
    fn anchored(&mut self, block: &[u8]) {
        let rules = self.rules;
        let Some(anchors) = &rules.anchors else { return };
        let (mut counted, mut from) = (0, 0);
        'lines: while from < block.len() {
            // Lines up to here have a form that has been read often enough.
            let mut worn = 0;
            for found in anchors.find_overlapping_iter(&block[from..]) {
                let at = from + found.start();
                let worth = rules.worth(found.pattern().as_usize(), &self.done);
                if worth == Worth::Nothing || worth == Worth::Statement && at < worn {
                    continue;
                }
                let start = memchr::memrchr(b'\n', &block[..at]).map_or(0, |at| at + 1);
                let end = memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |next| at + next);
                if worth == Worth::Statement && end - start < PIECE && self.forms.is_worn(&block[start..end]) {
                    worn = end;
                    continue;
                }
                self.lines += memchr::memchr_iter(b'\n', &block[counted..start]).count() as u64;
                counted = start;
                if end - start < PIECE {
                    self.read(self.lines + 1, &block[start..end]);
                } else {
                    for piece in pieces(&block[start..end]) {
                        self.read_if_wanted(self.lines + 1, piece);
                    }
                }
                from = end + 1;
                continue 'lines;
            }
            break;
        }
        self.lines += memchr::memchr_iter(b'\n', &block[counted..]).count() as u64;
    }

    /// Remembers the last line that is not empty, which shows how the log ends.
    fn note_last_of(&mut self, block: &[u8]) {
        let mut number = self.lines;
        let mut end = block.len().saturating_sub(1);
        while end > 0 {
            let start = memchr::memrchr(b'\n', &block[..end]).map_or(0, |at| at + 1);
            if block[start..end].trim_ascii().is_empty() && start > 0 {
                number = number.saturating_sub(1);
                end = start - 1;
                continue;
            }
            self.note_last(number, &block[start..end]);
            return;
        }
    }

    /// Counts a line for telling documents from logs; a line read in pieces is none of a document.
    pub(super) fn note_form(&mut self, number: u64, line: &[u8]) {
        if self.prose.is_open() && line.len() < PIECE {
            self.prose.note(number, line);
            self.subject.note(number, line);
            self.roles.note(number, line);
            self.told.note(line);
            // Line 0 is a sentence of ours.
            if number > 0 {
                self.words.note(line);
                self.wrapped.note(number, line);
                self.tests.note(line);
            }
        }
    }

    pub(super) fn note_last(&mut self, number: u64, line: &[u8]) {
        if !line.trim_ascii().is_empty() && (self.last.line != number || self.last.text.is_empty()) {
            self.last = Evidence { line: number, text: excerpt(line) };
        }
    }

    /// Reads the line if a rule may need it.
    pub(super) fn read_if_wanted(&mut self, number: u64, line: &[u8]) -> Reading {
        let rules = self.rules;
        let mut is_worn = None;
        let found = rules.anchors.iter().flat_map(|anchors| anchors.find_overlapping_iter(line));
        for anchor in found.map(|found| found.pattern().as_usize()) {
            let wanted = match rules.worth(anchor, &self.done) {
                Worth::Nothing => false,
                Worth::Statement => !*is_worn.get_or_insert_with(|| self.forms.is_worn(line)),
                Worth::Line => true,
            };
            if wanted {
                return self.read(number, line);
            }
        }
        Reading::NotWanted
    }
}

/// Outcome of reading a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// No rule needs it, now or later.
    NotWanted,
    /// It was read and changed nothing, nor will it later.
    Idle,
    /// It was read and changed something, or may do so next time.
    Telling,
}

/// Splits a line into overlapping pieces, the same ones that arise when it arrives bit by bit.
pub(super) fn pieces(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let step = PIECE - OVERLAP;
    // The rest after the last whole piece is a piece of its own, even if all of it has already been read.
    let count = if line.len() < PIECE { 1 } else { (line.len() - PIECE) / step + 2 };
    (0..count).map(move |index| &line[index * step..line.len().min(index * step + PIECE)])
}
