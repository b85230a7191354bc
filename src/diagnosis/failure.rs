//! A failed run of our own: the failure and the log before it.

use super::catalogue::cause;
use super::diagnoser::Diagnoser;
use super::fault::Fault;
use super::finding::{Diagnosis, Evidence, Finding};
use crate::event::{Failure, Stage};
use crate::store::{Run, Store};
use std::fmt::Write;

/// Confidence in the cause that the op at which a run stopped shows.
const SHOWN: f64 = 0.95;
/// Part that is left of the others beside it.
const BESIDE: f64 = 0.35;
/// Below this nothing is said of them.
const FLOOR: f64 = 0.14;
/// Part that is left of a cause that belongs to a later stage than the one that failed.
const OTHER_STAGE: f64 = 0.6;

/// Causes of a failed run, best first, with what the checks found; `None` for one that has not failed.
pub fn diagnose_run(store: &Store, run: &Run) -> Option<Diagnosis> {
    let failure = run.failure.as_ref()?;
    let lines = store.logs().iter().filter(|line| line.run == Some(run.id));
    let mut diagnosis = diagnose_failure(failure, (1..).zip(lines.map(|line| line.line.text.as_str())));
    diagnosis.take_checks(&run.checks);
    Some(diagnosis)
}

/// Causes of a failed run, best first, from the lines of its log (number and text) and from the failure itself, which is
/// quoted as line 0.
pub fn diagnose_failure<'a>(failure: &Failure, log_lines: impl Iterator<Item = (u64, &'a str)>) -> Diagnosis {
    let mut diagnoser = Diagnoser::new();
    diagnoser.set_flag("qnn", "a run of a QNN backend");
    for (number, line) in log_lines {
        diagnoser.feed_line(number, line.as_bytes());
    }
    let mut text = format!("qnn {} ({}) failed", failure.call, spelled(failure.stage));
    if let Some(code) = failure.code {
        let _ = write!(text, ": error {code}");
    }
    if let Some(symbol) = &failure.symbol {
        let _ = write!(text, " {symbol}");
    }
    diagnoser.feed_line(0, text.as_bytes());
    // Of a call with a code the message is made of our own table of codes, whose words are no signs.
    if failure.code.is_none() {
        diagnoser.feed_line(0, failure.message.as_bytes());
    }
    let status = match failure.call.as_str() {
        "SIGFPE" => Some(136),
        "SIGKILL" => Some(137),
        "SIGTERM" => Some(143),
        _ => None,
    };
    if let Some(status) = status {
        diagnoser.exit_status(status);
    }
    let mut diagnosis = diagnoser.finish();
    // What makes a run slow does not make it fail.
    diagnosis.causes.retain(|finding| !finding.cause.remark);
    for finding in &mut diagnosis.causes {
        let stage = Stage::ALL.into_iter().find(|stage| stage.name() == finding.cause.stage);
        if stage.is_some_and(|stage| stage > failure.stage && !both_run(stage, failure.stage)) {
            finding.confidence *= OTHER_STAGE;
        }
    }
    if let Some(fault) = Fault::of(failure) {
        take_fault(&mut diagnosis, fault);
    }
    diagnosis.causes.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    diagnosis
}

/// Puts the cause that the op shows first: the run knows it, while the log only hints at others.
fn take_fault(diagnosis: &mut Diagnosis, fault: Fault) {
    let evidence = Evidence { line: 0, text: fault.sentence() };
    if let Some(known) = fault.cause.and_then(cause) {
        let at = diagnosis.causes.iter().position(|finding| finding.id == known.id);
        let mut first = match at {
            Some(at) => diagnosis.causes.remove(at),
            None => Finding {
                id: &known.id,
                confidence: 0.0,
                confirmed: None,
                results: Vec::new(),
                evidence: Vec::new(),
                signs: Vec::new(),
                lowered: Vec::new(),
                codes: Vec::new(),
                remedy: None,
                cause: known,
            },
        };
        first.confidence = first.confidence.max(SHOWN);
        first.evidence.insert(0, evidence);
        first.remedy.clone_from(&fault.remedy);
        for other in &mut diagnosis.causes {
            other.confidence *= BESIDE;
        }
        diagnosis.causes.retain(|other| other.confidence >= FLOOR);
        diagnosis.causes.insert(0, first);
    }
    diagnosis.fault = Some(fault);
}

/// The first inference fails for the same reasons as later ones.
fn both_run(a: Stage, b: Stage) -> bool {
    let runs = |stage| matches!(stage, Stage::FirstInference | Stage::Execute);
    runs(a) && runs(b)
}

/// The stage in the words of logs.
fn spelled(stage: Stage) -> &'static str {
    match stage {
        Stage::Prepare => "prepare",
        Stage::LibraryLoad => "unable to load backend",
        Stage::BackendCreate => "backend create",
        Stage::DeviceCreate => "device create",
        Stage::ContextCreate => "context create from binary",
        Stage::Compose => "compose graph",
        Stage::Finalize => "finalize graph",
        Stage::FirstInference | Stage::Execute => "execute graph",
        Stage::Teardown => "free",
    }
}
