//! Diagnoses one of our own failed runs from the failure and the log before it.

use super::catalogue::cause;
use super::diagnoser::Diagnoser;
use super::evidence::Evidence;
use super::fault::Fault;
use super::finding::{Diagnosis, Finding};
use super::platform::Platform;
use crate::event::{Failure, Stage};
use crate::models::{Graph, Op};
use crate::store::{Run, Store};
use std::fmt::Write;

/// Confidence in a cause shown by the op at which a run stopped.
const SHOWN: f64 = 0.95;
/// The same if the backend refused the op without a reason.
const GUESSED: f64 = 0.75;
/// Confidence in a cause shown by an op that the validator refuses although the graph was built.
const SUSPECTED: f64 = 0.6;
/// Causes that only say that the backend gave no reason.
const WITHOUT_REASON: [&str; 1] = ["graph-execute-general-error"];
/// Mistakes that our runs catch before they execute, by comparing the files with the tensors that the model
/// lists.
const EXCLUDED_BY_PREPARE: [&str; 3] = ["input-count", "input-size-mismatch", "input-missing"];
/// Factor for the confidence in the other causes beside it.
const BESIDE: f64 = 0.35;
/// Confidence below which those are dropped.
const FLOOR: f64 = 0.14;
/// Factor for a cause that belongs to a later stage than the one that failed.
const OTHER_STAGE: f64 = 0.6;

/// Causes of a failed run, best first, with the results of checks; `None` if the run did not fail.
pub fn diagnose_run(store: &Store, run: &Run) -> Option<Diagnosis> {
    let failure = run.failure.as_ref()?;
    let lines = store.logs().iter().filter(|line| line.run == Some(run.id));
    let mut diagnosis = diagnose_failure(failure, (1..).zip(lines.map(|line| line.line.text.as_str())));
    exclude_by_graphs(&mut diagnosis, &run.graphs);
    diagnosis.take_checks(&run.checks);
    place(&mut diagnosis, store, run);
    Some(diagnosis)
}

/// Tailors the advice to the device of the run.
pub fn place(diagnosis: &mut Diagnosis, store: &Store, run: &Run) {
    if let Some(platform) = store.device(&run.plan.device).and_then(Platform::of_device) {
        diagnosis.set_platform(platform);
    }
}

/// Causes of a failed run, best first, from the lines of its log (number and text) and from the failure
/// itself, which is quoted as line 0.
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
    // With a code, the message comes from our own table of codes, and its words are not signs.
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
    // Causes that only slow a run down do not explain a failure.
    diagnosis.causes.retain(|finding| !finding.cause.remark);
    if failure.call == "graphExecute" {
        diagnosis.causes.retain(|finding| !EXCLUDED_BY_PREPARE.contains(&finding.id));
    }
    for finding in &mut diagnosis.causes {
        let stage = Stage::ALL.into_iter().find(|stage| stage.name() == finding.cause.stage);
        if stage.is_some_and(|stage| stage > failure.stage && !both_run(stage, failure.stage)) {
            finding.confidence *= OTHER_STAGE;
        }
    }
    if let Some(fault) = Fault::of(failure) {
        take_cause(&mut diagnosis, &fault, if fault.is_guess { GUESSED } else { SHOWN });
        diagnosis.fault = Some(fault);
    } else if let Some(fault) = Fault::suspected(failure) {
        take_cause(&mut diagnosis, &fault, SUSPECTED);
    }
    diagnosis.causes.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    diagnosis
}

/// Drops causes that are impossible for a model with these graphs: float causes, if it has no floats.
pub(super) fn exclude_by_graphs(diagnosis: &mut Diagnosis, graphs: &[Graph]) {
    let mut ops = graphs.iter().flat_map(|graph| &graph.ops).peekable();
    if ops.peek().is_none() {
        return;
    }
    let is_float = |op: &Op| op.inputs.iter().chain(&op.outputs).any(|tensor| tensor.dtype.is_float());
    if !ops.any(is_float) {
        diagnosis.causes.retain(|finding| finding.id != "float-unsupported-on-arch");
    }
}

/// Adds the cause that the op shows. If it is certain, the others give way: the run knows the cause, while
/// the log only hints at others.
fn take_cause(diagnosis: &mut Diagnosis, fault: &Fault, confidence: f64) {
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
                steps: &[],
                cause: known,
            },
        };
        first.confidence = first.confidence.max(confidence);
        first.evidence.insert(0, evidence);
        first.remedy.clone_from(&fault.remedy);
        if confidence > SUSPECTED {
            diagnosis.causes.iter_mut().for_each(|other| other.confidence *= BESIDE);
            diagnosis.causes.retain(|other| other.confidence >= FLOOR);
        } else {
            // A suspicion says more than "something failed".
            let says_nothing = |other: &&mut Finding| other.cause.generic || WITHOUT_REASON.contains(&other.id);
            diagnosis.causes.iter_mut().filter(says_nothing).for_each(|other| other.confidence *= BESIDE);
        }
        diagnosis.causes.insert(0, first);
    }
}

/// The first inference fails for the same reasons as later ones.
fn both_run(a: Stage, b: Stage) -> bool {
    let runs = |stage| matches!(stage, Stage::FirstInference | Stage::Execute);
    runs(a) && runs(b)
}

/// The stage as logs spell it.
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
