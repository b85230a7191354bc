//! Why a run failed: causes, best first, with evidence, checks and fix; finally qnnscope's own messages.

use super::{Content, Entry, FIX, Item, JumpTarget, Sign};
use crate::app::theme::Meaning;
use crate::diagnosis::similar::Similar;
use crate::diagnosis::{Answer, Check, CheckPlace, Diagnosis, Finding, Platform, confidence_text, explain};
use crate::event::{CheckOutcome, Failure, clean_text};
use crate::store::Run;

/// The page's content for a run.
pub fn content(run: Option<&Run>, diagnosis: Option<&Diagnosis>) -> Content {
    let Some(failure) = run.and_then(|run| run.failure.as_ref()) else {
        let empty = if run.is_some() { "this run has not failed" } else { "no run yet" };
        return Content { empty: empty.to_owned(), ..Content::default() };
    };
    let platform = diagnosis.and_then(|diagnosis| diagnosis.platform);
    let causes = diagnosis.iter().flat_map(|diagnosis| &diagnosis.causes);
    let mut entries: Vec<Entry> = causes.map(|finding| entry(finding, platform)).collect();
    let similar = diagnosis.map_or(&[][..], |diagnosis| &diagnosis.similar);
    entries.push(own_words(failure, entries.is_empty(), similar));
    Content { head: head(failure), entries, empty: String::new(), log: true }
}

/// The call that failed with its code, in one sentence.
pub fn what_failed(failure: &Failure) -> String {
    let call = clean_text(&failure.call);
    let symbol = failure.symbol.as_ref().map(|symbol| clean_text(symbol));
    match (failure.code, symbol) {
        (Some(code), Some(symbol)) => format!("{call} returned {code} ({code:#x}), {symbol}"),
        (Some(code), None) => format!("{call} returned {code} ({code:#x})"),
        (None, Some(symbol)) => format!("{call}: {symbol}"),
        (None, None) => call,
    }
}

fn head(failure: &Failure) -> Vec<(String, Meaning)> {
    vec![
        (format!("failed in {}: {}", failure.stage, what_failed(failure)), Meaning::Alert),
        (clean_text(&failure.message), Meaning::Text),
    ]
}

fn entry(finding: &Finding, platform: Option<Platform>) -> Entry {
    let cause = finding.cause();
    let (sign, note) = match finding.confirmed {
        Some(true) => (Sign::Problem, ("confirmed", Meaning::Alert)),
        Some(false) => (Sign::Refuted, ("refuted", Meaning::Muted)),
        None => (Sign::Open, ("", Meaning::Muted)),
    };
    let confirmed = match finding.confirmed {
        Some(true) => "confirmed by a check",
        Some(false) => "a check contradicts it",
        None => "not confirmed",
    };
    let mut items = vec![
        Item::new("cause", &cause.title).meaning(Meaning::Title),
        Item::new("", format!("{}, {confirmed} ({})", confidence_text(finding), cause.id)).meaning(note.1),
        Item::new("why", &cause.why),
        Item::new(FIX, finding.fix()).meaning(Meaning::Accent),
    ];
    if let Some(platform) = platform.filter(|_| !finding.steps.is_empty()) {
        items.push(Item::new("steps", format!("on {}, in order:", platform.title())));
        items.extend(finding.steps.iter().enumerate().map(|(index, step)| step_item(index + 1, step)));
    }
    for (index, evidence) in finding.evidence.iter().enumerate() {
        let label = if index == 0 { "seen" } else { "" };
        let target = (evidence.line > 0).then_some(JumpTarget::LogLine(evidence.line));
        items.push(Item { target, ..Item::new(label, clean_text(&evidence.text)).meaning(Meaning::Muted) });
    }
    for (index, check) in finding.checks().iter().enumerate() {
        let (result, meaning) = check_result(finding, check);
        let place = match check.on {
            CheckPlace::Device => "on the device",
            CheckPlace::Host => "on this machine",
        };
        let label = if index == 0 { "check" } else { "" };
        let text = format!("{} ({place}): {result}", check.what);
        items.push(Item { literal: Some(check.command.clone()), ..Item::new(label, text).meaning(meaning) });
    }
    Entry {
        key: cause.id.clone(),
        sign,
        tag: format!("{:.0} %", finding.confidence * 100.0),
        title: cause.title.clone(),
        note: (note.0.to_owned(), note.1),
        items,
    }
}

/// A step; a command at its end goes on its own line below, so that it can be copied.
fn step_item(number: usize, step: &str) -> Item {
    let command = step.strip_suffix('`').and_then(|step| step.split_once('`')).filter(|(_, rest)| !rest.contains('`'));
    match command {
        Some((words, command)) => Item {
            literal: Some(clean_text(command)),
            ..Item::new("", clean_text(&format!("{number}. {}", words.trim_end())))
        },
        None => Item::new("", clean_text(&format!("{number}. {step}"))),
    }
}

/// The result of a check. qnnscope runs safe ones itself after the failure; the others are left to the user.
fn check_result(finding: &Finding, check: &Check) -> (String, Meaning) {
    let Some(result) = finding.results.iter().rev().find(|result| result.check == check.id) else {
        return ("to be done by hand".to_owned(), Meaning::Text);
    };
    let (says, meaning) = match result.outcome {
        CheckOutcome::Confirms => ("confirms it", Meaning::Alert),
        CheckOutcome::Refutes => ("contradicts it", Meaning::Muted),
        CheckOutcome::Neutral => ("decides nothing", Meaning::Text),
        CheckOutcome::Unknown => ("could not tell", Meaning::Text),
    };
    (format!("{says}: {}", clean_text(&result.detail)), meaning)
}

/// The failure's own message, and what the log reads like if no cause is well founded.
fn own_words(failure: &Failure, alone: bool, similar: &[Similar]) -> Entry {
    let mut items = vec![
        Item::new("what", what_failed(failure)).meaning(Meaning::Title),
        Item::new("said", clean_text(&failure.message)),
    ];
    if let Some(hint) = &failure.hint {
        items.push(Item::new(FIX, clean_text(hint)).meaning(Meaning::Accent));
    }
    let word = failure.symbol.clone().or_else(|| failure.code.map(|code| code.to_string()));
    if let Some(Answer::Known(explanation)) = word.map(|word| explain(&word)) {
        if let Some(says) = explanation.says {
            items.push(Item::new("code", says));
        }
        let meanings = explanation.meanings.iter().filter(|meaning| meaning.stages.contains(&failure.stage));
        items.extend(meanings.map(|meaning| Item::new("", meaning.row.meaning).meaning(Meaning::Muted)));
    }
    for (index, Similar { cause, words, source }) in similar.iter().enumerate() {
        let label = if index == 0 { "like" } else { "" };
        let text = format!("{} ({}); both say {}", cause.title, cause.id, words.join(", "));
        items.push(Item::new(label, text));
        items.extend(source.map(|source| Item::new("", clean_text(source)).meaning(Meaning::Muted)));
    }
    if alone {
        let text = "no known failure mode matches. The log has the backend's own messages; `--log-level info` (or verbose) makes \
                    the libraries log more";
        items.push(Item::new("next", text));
    }
    Entry {
        key: "own words".to_owned(),
        sign: Sign::Note,
        tag: String::new(),
        title: if alone { "unknown cause: the evidence" } else { "error of the failed call" }.to_owned(),
        note: (String::new(), Meaning::Muted),
        items,
    }
}
