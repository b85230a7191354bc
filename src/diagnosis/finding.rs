//! What a diagnosis consists of.

use super::catalogue::{Cause, Check};
use super::fault::Fault;
use super::platform::Platform;
use super::progress::Unexplained;
use super::trace::Trace;
use crate::event::{CheckResult, clean_text};
use serde::Serialize;

/// Bytes of a line that are kept as evidence.
const EXCERPT_BYTES: usize = 600;

/// What was found in a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Causes, best first. None is the answer for a healthy log.
    pub causes: Vec<Finding>,
    /// The op at which a run of ours stopped.
    pub fault: Option<Fault>,
    /// What is known where no cause is well founded, and something failed.
    pub unexplained: Option<Unexplained>,
    /// What to collect where the log shows neither a failure nor a good end, should something have failed.
    pub collect: Vec<&'static str>,
    /// What lines state, if it was asked for.
    pub trace: Option<Trace>,
    /// The system that the log comes from, as far as it tells or somebody said so.
    pub platform: Option<Platform>,
    /// Lines read.
    pub lines: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// A cause that the log points to.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Id in the catalogue.
    pub id: &'static str,
    /// How sure it is, 0 to 1: how far the log's own words carry, up to 0.97; a check that confirms it makes it 0.99.
    pub confidence: f64,
    /// What the checks said: true, false, or nothing yet, or nothing that decides.
    pub confirmed: Option<bool>,
    /// What the checks found, in the order in which they were made.
    pub results: Vec<CheckResult>,
    /// The first line of each sign, by line.
    pub evidence: Vec<Evidence>,
    /// The signs that add up to it.
    pub signs: Vec<Sign>,
    /// What lowered the confidence after that, and to which part.
    pub lowered: Vec<(&'static str, f64)>,
    /// Codes of the cause that the evidence names, as in the catalogue.
    pub codes: Vec<&'static str>,
    /// What to do in this very case, where that is known.
    pub remedy: Option<String>,
    /// What to do on the system that the log comes from, in order; none where that is not known.
    pub steps: &'static [String],
    pub(super) cause: &'static Cause,
}

impl Finding {
    /// The catalogue's entry: title, stage, reason, fix.
    pub fn cause(&self) -> &'static Cause {
        self.cause
    }

    /// What to do: in this very case, else what the catalogue says of the cause.
    pub fn fix(&self) -> &str {
        self.remedy.as_deref().unwrap_or(&self.cause.fix)
    }

    /// Checks that confirm it, in the order in which to try.
    pub fn checks(&self) -> &'static [Check] {
        &self.cause.confirm
    }
}

/// A sign that points to a cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sign {
    /// Its place among the signals of the cause in the catalogue, from 0.
    pub index: usize,
    /// How far it carries alone, 0 to 1.
    pub weight: f64,
    /// Its line; 0 for what no single line says.
    pub line: u64,
}

/// A line that points to a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Line, from 1; 0 for what no single line says (exit status, failed call, output files, counts).
    pub line: u64,
    /// The line, free of control characters, cut to 600 bytes.
    pub text: String,
}

/// Bytes that are shown before the place that a cut line is shown for.
const BEFORE_BYTES: usize = 200;

/// A line as evidence.
pub(super) fn excerpt(line: &[u8]) -> String {
    excerpt_at(line, 0)
}

/// A line as evidence, cut so that what stands at `at` is in it.
pub(super) fn excerpt_at(line: &[u8], at: usize) -> String {
    let blanks = line.len() - line.trim_ascii_start().len();
    let line = line.trim_ascii();
    let at = at.saturating_sub(blanks);
    let mut start = 0;
    if line.len() > EXCERPT_BYTES && at > EXCERPT_BYTES / 2 {
        start = (at - BEFORE_BYTES).min(line.len() - EXCERPT_BYTES);
        // Not in the middle of a character.
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
