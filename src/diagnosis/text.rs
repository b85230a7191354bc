//! Diagnoses and explanations as text for users.

use super::catalogue::{Cause, Check, CheckPlace};
use super::explain::{Answer, Explanation};
use super::finding::{Diagnosis, Finding};
use super::platform::{Platform, step_text};
use super::progress::Unexplained;
use super::similar::Similar;
use crate::event::{CheckOutcome, clean_text};
use crate::text::{counted, titled};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Most evidence lines shown per cause.
const MOST_EVIDENCE: usize = 5;
/// Causes that are shown in full; the others are only named.
const WHOLE: usize = 2;

/// The diagnosis, in lines of at most `width` columns (commands are never broken).
pub fn diagnosis_text(diagnosis: &Diagnosis, width: usize) -> String {
    let looked = format!("{}, {}", counted(diagnosis.lines, "line"), counted(diagnosis.bytes, "byte"));
    let mut out = String::new();
    if diagnosis.causes.is_empty() {
        let Some(unexplained) = &diagnosis.unexplained else {
            let _ = writeln!(out, "no known failure found ({looked} looked at)");
            if !diagnosis.collect.is_empty() {
                titled(&mut out, "", "The log shows neither a failure nor a good end. If something did fail:", width);
            }
            similar_text(&mut out, &diagnosis.similar, width);
            for what in &diagnosis.collect {
                titled(&mut out, "   collect next: ", what, width);
            }
            return out + &trace_text(diagnosis, width);
        };
        titled(&mut out, "", "No known failure fits, and the log states one. What it states:", width);
        unexplained_text(&mut out, unexplained, &diagnosis.similar, width);
        let _ = writeln!(out, "\n{looked} looked at");
        return out + &trace_text(diagnosis, width);
    }
    for (rank, finding) in diagnosis.causes.iter().enumerate() {
        if rank < WHOLE {
            whole(&mut out, rank + 1, finding, diagnosis.platform, width);
        } else {
            let cause = finding.cause();
            let refuted = if finding.confirmed == Some(false) { ", a check speaks against it" } else { "" };
            let line = format!("{}. {} ({}{refuted}): {}", rank + 1, cause.id, confidence_text(finding), cause.title);
            titled(&mut out, "", &line, width);
        }
    }
    if let Some(unexplained) = &diagnosis.unexplained {
        out.push('\n');
        titled(&mut out, "", "None of these is well founded. What the log states:", width);
        unexplained_text(&mut out, unexplained, &diagnosis.similar, width);
    }
    let _ = writeln!(out, "\n{looked} looked at");
    out + &trace_text(diagnosis, width)
}

/// What is known if there is no cause.
fn unexplained_text(out: &mut String, unexplained: &Unexplained, similar: &[Similar], width: usize) {
    let first = &unexplained.first;
    let _ = writeln!(out, "{}", cut(&format!("   first failure, line {}: {}", first.line, first.text), width));
    if let Some(who) = unexplained.who {
        titled(out, "   stated by: ", who, width);
    }
    if !unexplained.states.is_empty() {
        titled(out, "   it states: ", &unexplained.states.join("; "), width);
    }
    for code in &unexplained.codes {
        let text = format!("{} = {} ({}): {}", code.text, code.symbol, code.space, code.meaning);
        titled(out, "   code: ", &text, width);
    }
    if !unexplained.went_well.is_empty() {
        let steps: Vec<String> =
            unexplained.went_well.iter().map(|(what, line)| format!("{what} (line {})", line.line)).collect();
        titled(out, "   went well, so it is not that: ", &steps.join(", "), width);
    }
    for near in &unexplained.nearest {
        let (agree, of) = (near.agree.len(), near.case.states.len());
        let text = format!(
            "{} ({agree} of {of} statements agree: {}): {} [{}]",
            near.case.cause,
            near.agree.join("; "),
            near.case.solved,
            near.case.source
        );
        titled(out, "   closest known case: ", &clean_text(&text), width);
    }
    similar_text(out, similar, width);
    for what in &unexplained.collect {
        titled(out, "   collect next: ", what, width);
    }
}

/// Kinds of failure whose known logs share words with this one.
fn similar_text(out: &mut String, similar: &[Similar], width: usize) {
    for Similar { cause, words, source } in similar {
        let source = source.map_or_else(String::new, |source| format!(" [{source}]"));
        let text = format!("{} ({}; words in common: {}){source}", cause.title, cause.id, words.join(", "));
        titled(out, "   reads like: ", &text, width);
    }
}

/// How each line was read, and how each cause got its confidence.
fn trace_text(diagnosis: &Diagnosis, width: usize) -> String {
    let Some(trace) = &diagnosis.trace else { return String::new() };
    let mut out = "\nhow each cause came to its confidence\n".to_owned();
    for finding in &diagnosis.causes {
        let signs: Vec<String> = finding
            .signs
            .iter()
            .map(|sign| format!("sign {} ({:.2}, line {})", sign.index + 1, sign.weight, sign.line))
            .collect();
        let lowered = finding.lowered.iter().map(|(why, part)| format!("; x {part:.2}: {why}"));
        let lowered = lowered.collect::<Vec<_>>().concat();
        titled(
            &mut out,
            &format!("   {} {:.2}: ", finding.id, finding.confidence),
            &(signs.join(", ") + &lowered),
            width,
        );
    }
    out.push_str("\nwhat each line states\n");
    for stated in &trace.lines {
        let _ = writeln!(out, "{}", cut(&format!("   line {}: {}", stated.evidence.line, stated.evidence.text), width));
        let who = if stated.who.is_empty() { String::new() } else { format!("{}: ", stated.who.join(", ")) };
        let parts: Vec<String> = stated.states.iter().chain(&stated.codes).cloned().collect();
        let left_out = stated.left_out.map_or_else(String::new, |why| format!(" [{why}]"));
        titled(&mut out, "      ", &format!("{who}{}{left_out}", parts.join("; ")), width);
    }
    if trace.more > 0 {
        let _ = writeln!(out, "   and {} more lines", trace.more);
    }
    out
}

/// Causes of a failed run, in short, each line indented by `indent` columns.
pub fn causes_text(diagnosis: &Diagnosis, most: usize, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let (one, two) = (" ".repeat(indent), " ".repeat(indent + 2));
    for finding in diagnosis.causes.iter().take(most) {
        let cause = finding.cause();
        let sure = match finding.confirmed {
            Some(true) => "confirmed".to_owned(),
            Some(false) => "refuted by a check".to_owned(),
            None => format!("{:.0} %", finding.confidence * 100.0),
        };
        titled(&mut out, &format!("{one}cause, {sure}: "), &format!("{} ({})", cause.title, cause.id), width);
        results(&mut out, finding, &two, width);
        if finding.confirmed != Some(false) {
            advice(&mut out, finding, &two, width);
        }
    }
    out
}

/// How to fix it: this particular case, otherwise on this system, otherwise in general.
fn advice(out: &mut String, finding: &Finding, indent: &str, width: usize) {
    if finding.remedy.is_some() || finding.steps.is_empty() {
        titled(out, &format!("{indent}fix: "), finding.fix(), width);
        return;
    }
    for (number, step) in (1..).zip(finding.steps) {
        let title = if number == 1 { "fix: " } else { "     " };
        out.push_str(&step_text(&format!("{indent}{title}{number}. "), step, width));
    }
}

/// Results of a cause's checks.
fn results(out: &mut String, finding: &Finding, indent: &str, width: usize) {
    for result in &finding.results {
        let says = match result.outcome {
            CheckOutcome::Confirms => "confirms it",
            CheckOutcome::Refutes => "speaks against it",
            CheckOutcome::Neutral => "decides nothing",
            CheckOutcome::Unknown => "could not tell",
        };
        titled(out, &format!("{indent}check: "), &format!("{} {says}: {}", result.check, result.detail), width);
    }
}

/// The confidence in a cause, in words.
pub fn confidence_text(finding: &Finding) -> String {
    let word = match finding.confidence {
        c if c >= 0.85 => "very likely",
        c if c >= 0.6 => "likely",
        c if c >= 0.35 => "possible",
        _ => "a guess",
    };
    let by = if finding.is_by_words() { ", by the words of known logs alone" } else { "" };
    format!("{word}, {:.0} %{by}", finding.confidence * 100.0)
}

fn whole(out: &mut String, rank: usize, finding: &Finding, platform: Option<Platform>, width: usize) {
    let cause = finding.cause();
    let _ = writeln!(out, "{}. {}", rank, clean_text(&cause.title));
    let confirmed = match finding.confirmed {
        Some(true) => ", confirmed",
        Some(false) => ", a check speaks against it",
        None => "",
    };
    let _ = writeln!(out, "   {}: {}{confirmed}; stage: {}", cause.id, confidence_text(finding), cause.stage);
    for evidence in finding.evidence.iter().take(MOST_EVIDENCE) {
        let place = if evidence.line == 0 { "no single line".to_owned() } else { format!("line {}", evidence.line) };
        let _ = writeln!(out, "{}", cut(&format!("   {place}: {}", clean_text(&evidence.text)), width));
    }
    if finding.evidence.len() > MOST_EVIDENCE {
        let _ = writeln!(out, "   and {} more lines", finding.evidence.len() - MOST_EVIDENCE);
    }
    results(out, finding, "   ", width);
    if let Some(remedy) = &finding.remedy {
        titled(out, "   here: ", &clean_text(remedy), width);
    }
    reasons(out, cause, width);
    if let (Some(platform), false) = (platform, finding.steps.is_empty()) {
        let _ = writeln!(out, "   on {}:", platform.title());
        for (number, step) in (1..).zip(finding.steps) {
            out.push_str(&step_text(&format!("     {number}. "), step, width));
        }
    }
    let is_made = |check: &str| finding.results.iter().any(|result| result.check == check);
    let fits = |check: &&Check| !is_made(&check.id) && platform.is_none_or(|one| one.has_command(&check.command));
    checks_to_make(out, cause.confirm.iter().filter(fits), width);
    out.push('\n');
}

/// Why it happens, and how to fix it.
fn reasons(out: &mut String, cause: &Cause, width: usize) {
    titled(out, "   why: ", &cause.why, width);
    titled(out, "   fix: ", &cause.fix, width);
}

fn checks_to_make<'c>(out: &mut String, checks: impl Iterator<Item = &'c Check>, width: usize) {
    for Check { what, on, command, .. } in checks {
        let place = match on {
            CheckPlace::Device => "on the device",
            CheckPlace::Host => "on this machine",
        };
        titled(out, "   check: ", &format!("{what}; {place}:"), width);
        let _ = writeln!(out, "     {command}");
    }
}

/// What is known about the requested codes.
pub fn explain_text(answers: &[(String, Answer)], width: usize) -> String {
    let mut out = String::new();
    for (index, (asked, answer)) in answers.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let asked = clean_text(asked);
        match answer {
            Answer::Known(explanation) => known(&mut out, &asked, explanation, width),
            Answer::Several(symbols) => {
                let _ = writeln!(out, "{asked}: part of several symbols; which one?");
                for symbol in symbols {
                    let _ = writeln!(out, "   {symbol}");
                }
            }
            Answer::UnknownNumber { code, component: Some(component) } => {
                let _ = writeln!(out, "{asked}: unknown; {code} lies in the range of {component} codes");
            }
            Answer::UnknownNumber { .. } | Answer::NoCode => {
                let _ = writeln!(out, "{asked}: unknown; neither a code nor part of a symbol of QNN or FastRPC");
            }
        }
    }
    out
}

fn known(out: &mut String, asked: &str, explanation: &Explanation, width: usize) {
    let code = explanation.code;
    let _ = writeln!(out, "{asked} = {code} ({code:#x})");
    if let Some(note) = explanation.note {
        titled(out, "   note: ", note, width);
    }
    for meaning in &explanation.meanings {
        let row = meaning.row;
        let _ = writeln!(out, "   {} ({})", row.symbol, row.component);
        titled(out, "     ", row.meaning, width);
        let stages: Vec<&str> = meaning.stages.iter().map(|stage| stage.name()).collect();
        let stages = if stages.is_empty() { String::new() } else { format!("; stages: {}", stages.join(", ")) };
        titled(out, "     from: ", &format!("{}{stages}", meaning.calls), width);
    }
    if let Some(says) = explanation.says {
        titled(out, "   in the field: ", says, width);
    }
    for (rank, cause) in explanation.causes.iter().enumerate() {
        let _ = writeln!(out, "\n{}. {} [{}]", rank + 1, cause.title, cause.id);
        reasons(out, cause, width);
        checks_to_make(out, cause.confirm.iter(), width);
    }
}

fn cut(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut column = 1;
    let fits = |c: &char| {
        column += c.width().unwrap_or(0);
        column <= width.max(30)
    };
    line.chars().take_while(fits).chain(['…']).collect()
}
