//! Findings and failures in words.

use super::{Block, ReportedFinding};
use crate::analysis::{Finding, findings};
use crate::diagnosis::{Fault, causes_text, diagnose_run};
use crate::report::mask::Mask;
use crate::store::{Run, Store};

/// Maximum number of causes of a failure that are named, likeliest first.
const CAUSES: usize = 3;
/// Width of their text, characters.
const WIDTH: usize = 100;

/// The findings about a run.
pub fn told(store: &Store, run: &Run) -> Vec<ReportedFinding> {
    findings(store, run).into_iter().map(one).collect()
}

fn one(finding: Finding) -> ReportedFinding {
    let gain = finding.gain_text("µs");
    let (advice, snippets) = match finding.suggestion {
        Some(advice) => (Some((advice.action, advice.why)), advice.snippets),
        None => (None, Vec::new()),
    };
    ReportedFinding {
        severity: finding.severity,
        title: finding.title,
        evidence: finding.evidence.into_iter().map(|evidence| evidence.text).collect(),
        advice,
        gain,
        snippets,
    }
}

/// Why a run failed. Log lines may contain anything, so a report for sharing has none.
pub fn failure(store: &Store, run: &Run, mask: &Mask) -> Vec<Block> {
    let Some(failure) = &run.failure else { return Vec::new() };
    let fault = Fault::of(failure);
    let place = fault.as_ref().map_or_else(String::new, |fault| format!(" at {}", fault.sentence()));
    let mut blocks = vec![Block::Warning(format!("Failed in stage {}{place}: {}", failure.stage, failure.message))];
    if let Some(hint) = &failure.hint {
        blocks.push(Block::Text(format!("Next: {hint}")));
    }
    if mask.is_active() {
        return blocks;
    }
    if let Some(diagnosis) = diagnose_run(store, run) {
        let lines = causes_text(&diagnosis, CAUSES, 0, WIDTH);
        blocks.push(Block::Lines(lines.lines().map(str::to_owned).collect()));
    }
    if !failure.log_tail.is_empty() {
        blocks.push(Block::Text("Relevant log lines:".to_owned()));
        blocks.push(Block::Lines(failure.log_tail.clone()));
    }
    blocks
}
