//! How a process creates backends, contexts and graphs, and what fails along the way.

use super::super::{Advice, Effort, Evidence, Finding, FindingKind, Severity};
use crate::backends::errors;
use crate::store::{Store, TappedProcess};
use crate::text::{counted, duration_text};
use qnnscope_core::tap::Call;
use std::collections::BTreeMap;

/// Number of creations after the first execution from which they are no accident.
const AGAIN: u64 = 3;
/// At most this many inferences per creation.
const PER: u64 = 10;
/// Error code of creating a device whose options have the layout of another release.
const DEVICE_CONFIG: u64 = 14001;
/// Answer of backends that lack the object, such as devices on the CPU; programs ask for it anyway.
const NOT_SUPPORTED: u64 = 1000;
/// Codes, ops and calls listed in a finding.
const LISTED: usize = 5;

pub(super) fn findings(store: &Store, process: &TappedProcess) -> Vec<Finding> {
    [again(process), not_executed(process), failed(process), refused(process), died(process), lost(store, process)]
        .into_iter()
        .flatten()
        .collect()
}

fn again(process: &TappedProcess) -> Option<Finding> {
    let making =
        ["contextCreate", "contextCreateFromBinary", "graphCreate", "graphRetrieve", "graphFinalize", "deviceCreate"];
    let late: Vec<(&str, u64, u64)> = making
        .into_iter()
        .map(|name| (name, process.call(name)))
        .filter(|(_, stats)| stats.late >= AGAIN && stats.late * PER >= process.timeline.inferences)
        .map(|(name, stats)| (name, stats.late, stats.total_ns / stats.count.max(1)))
        .collect();
    let (_, most, _) = late.iter().max_by_key(|(_, late, _)| *late)?;
    let title = format!(
        "contexts or graphs are created repeatedly: {} after the first execution, in {}",
        counted(*most, "time"),
        counted(process.timeline.inferences, "inference")
    );
    let evidence = late
        .iter()
        .map(|(name, late, mean_ns)| {
            Evidence::new(format!(
                "{name}: {} later, {} each",
                counted(*late, "time"),
                duration_text(*mean_ns as f64 / 1000.0)
            ))
        })
        .collect();
    let mut finding = Finding::new("tap.remade", FindingKind::Suggestion, Severity::Warning, title, evidence);
    finding.suggestion = Some(Advice {
        action: "create context and graph once, and keep them for all inferences".to_owned(),
        why: "otherwise every inference pays for creating them".to_owned(),
        effort: Effort::Code,
        snippets: Vec::new(),
    });
    Some(finding)
}

fn not_executed(process: &TappedProcess) -> Option<Finding> {
    let ended = process.ended_us.is_some();
    if !ended || process.timeline.executions > 0 || process.providers.is_empty() {
        return None;
    }
    let names: Vec<&str> = process.providers.iter().map(|provider| provider.name.as_str()).collect();
    let title = format!("QNN was requested ({}), but nothing was executed on it", names.join(", "));
    let mut evidence = Vec::new();
    evidence.extend(process.failures.iter().find(|call| !is_answer(call)).map(|call| Evidence::new(call_text(call))));
    if process.refused > 0 {
        evidence.push(Evidence::new(format!("{} refused by the backend", counted(process.refused, "op"))));
    }
    let made = process.made.finalized + process.made.retrieved;
    if made > 0 {
        evidence.push(Evidence::new(format!("{} prepared but never executed", counted(made, "graph"))));
    }
    if evidence.is_empty() {
        let calls: Vec<&str> = process.calls.keys().map(String::as_str).collect();
        let seen = if calls.is_empty() { "no call that creates anything".to_owned() } else { calls.join(", ") };
        evidence.push(Evidence::new(format!("calls that were seen: {seen}")));
    }
    // A compiler creates graphs and executes none of them.
    let compiles = made > 0 && process.failures.iter().all(is_answer);
    let severity = if compiles { Severity::Info } else { Severity::Problem };
    let mut finding = Finding::new("tap.not-executed", FindingKind::Trust, severity, title, evidence);
    if !compiles {
        finding.suggestion = Some(Advice {
            action:
                "make the framework fail instead of falling back: session.disable_cpu_ep_fallback=1 in ONNX Runtime"
                    .to_owned(),
            why: "frameworks silently run on the CPU when QNN does not take a model".to_owned(),
            effort: Effort::Setting,
            snippets: Vec::new(),
        });
    }
    Some(finding)
}

/// `deviceCreate failed with 14001 (QNN_...): its text`.
fn call_text(call: &Call) -> String {
    let row = errors::lookup(call.code, &call.call);
    let symbol = row.map_or_else(String::new, |row| format!(" ({})", row.symbol));
    let meaning = call.message.clone().or_else(|| row.map(|row| row.meaning.to_owned()));
    let meaning = meaning.map_or_else(String::new, |meaning| format!(": {meaning}"));
    format!("{} failed with {}{symbol}{meaning}", call.call, call.code & 0xffff)
}

/// True for a device that a backend does not have: an answer rather than a failure.
fn is_answer(call: &Call) -> bool {
    call.call == "deviceCreate" && call.code & 0xffff == NOT_SUPPORTED
}

fn failed(process: &TappedProcess) -> Option<Finding> {
    let failures = || process.failures.iter().filter(|call| !is_answer(call));
    let answers = process.failures.iter().filter(|call| is_answer(call)).count() as u64;
    let count = process.calls.values().map(|stats| stats.failed).sum::<u64>().saturating_sub(answers);
    let first = failures().next()?;
    let mut kinds: BTreeMap<(&str, u64), (u64, &Call)> = BTreeMap::new();
    for call in failures() {
        kinds.entry((call.call.as_str(), call.code & 0xffff)).or_insert((0, call)).0 += 1;
    }
    let evidence = kinds
        .values()
        .take(LISTED)
        .map(|(times, call)| Evidence::new(format!("{}, {}", call_text(call), counted(*times, "time"))));
    let evidence: Vec<Evidence> = evidence.collect();
    let title = format!("{} failed, the first in {}", counted(count, "QNN call"), first.call);
    let mut finding = Finding::new("tap.failed-calls", FindingKind::Trust, Severity::Problem, title, evidence);
    let moved = kinds.contains_key(&("deviceCreate", DEVICE_CONFIG));
    let repaired = process.notes.iter().any(|note| note.contains("device-config"));
    if moved && !repaired {
        finding.suggestion = Some(Advice {
            action: "let the tap rewrite the device's option record: --repair device-config".to_owned(),
            why: "the record moved between SDK releases: a program built for one fails on the other with 14001"
                .to_owned(),
            effort: Effort::Setting,
            snippets: vec![format!("qnnscope tap --repair device-config -- {}", process.command())],
        });
    }
    Some(finding)
}

fn refused(process: &TappedProcess) -> Option<Finding> {
    let first = process.refusals.first()?;
    let title = format!(
        "the backend refused {}: the framework runs them elsewhere, or not at all",
        counted(process.refused, "op")
    );
    let evidence = process.refusals.iter().take(LISTED).map(|refusal| {
        let reason = refusal.reasons.first().map_or_else(String::new, |reason| format!(": {reason}"));
        Evidence::new(format!("{} `{}` with {}{reason}", refusal.op.op_type, refusal.op.name, refusal.code))
    });
    let evidence: Vec<Evidence> = evidence.collect();
    let mut finding = Finding::new("tap.refused-ops", FindingKind::Suggestion, Severity::Warning, title, evidence);
    finding.ops = process.refusals.iter().map(|refusal| refusal.op.name.clone()).take(64).collect();
    finding.suggestion = Some(Advice {
        action: "see what each of them needs: qnnscope check MODEL".to_owned(),
        why: format!("{} is among them", first.op.op_type),
        effort: Effort::Model,
        snippets: Vec::new(),
    });
    Some(finding)
}

fn died(process: &TappedProcess) -> Option<Finding> {
    process.ended_us.filter(|_| !process.orderly)?;
    let text = match process.died_in.as_slice() {
        [] => "it did not announce its end: it crashed, was killed, became another program, or outlived the tap"
            .to_owned(),
        calls => format!("it ended within {}", calls.join(", ")),
    };
    let severity = if process.died_in.is_empty() { Severity::Info } else { Severity::Problem };
    let title = "the process did not exit normally: data still on its way to the tap is missing".to_owned();
    Some(Finding::new("tap.cut-off", FindingKind::Trust, severity, title, vec![Evidence::new(text)]))
}

/// How many, if that can be counted.
fn lost_text(what: &str, count: u64) -> String {
    if what.starts_with("all ") { what.to_owned() } else { format!("{count} {what}") }
}

fn lost(store: &Store, process: &TappedProcess) -> Option<Finding> {
    let evidence: Vec<Evidence> =
        process.lost.iter().map(|(what, count)| Evidence::new(lost_text(what, *count))).take(LISTED).collect();
    if evidence.is_empty() {
        return None;
    }
    let title = format!("data was lost: {} items in total", store.lost());
    Some(Finding::new("tap.lost", FindingKind::Trust, Severity::Warning, title, evidence))
}
