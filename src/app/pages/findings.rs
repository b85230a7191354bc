//! What the figures mean: findings, most important first, with evidence and what to change.

use super::{Content, Entry, FIX, Item, JumpTarget, Known, SNIPPET, Sign};
use crate::analysis::{Advice, Effort, Finding, FindingKind, Severity};
use crate::app::format::TimeScale;
use crate::app::symbols::Symbols;
use crate::app::theme::Meaning;
use crate::event::clean_text;
use crate::store::Run;

/// The page's content for a run's findings.
pub fn content(run: Option<&Run>, known: &Known, symbols: &Symbols) -> Content {
    let findings = &known.findings;
    let Some(run) = run else {
        return Content { empty: "no run yet".to_owned(), ..Content::default() };
    };
    let mut entries: Vec<Entry> = findings.iter().map(|finding| entry(finding, symbols)).collect();
    for index in 1..entries.len() {
        // Two findings of the same kind about different layers must be distinguishable.
        let same = entries[..index].iter().filter(|entry| entry.key == entries[index].key).count();
        if same > 0 {
            entries[index].key = format!("{} {same}", entries[index].key);
        }
    }
    let empty = match (run.failure.is_some(), run.is_ended()) {
        (true, _) => "the run failed, so its figures are not analysed; see its diagnosis",
        (false, true) => "no findings",
        (false, false) => "no findings so far; the run goes on",
    };
    Content { head: head(findings, known.summary.as_deref(), run), entries, empty: empty.to_owned(), log: false }
}

fn head(findings: &[Finding], summary: Option<&str>, run: &Run) -> Vec<(String, Meaning)> {
    let counts = Counts::of(findings);
    let mut words = Vec::new();
    for (count, word) in [(counts.problems, "problem"), (counts.warnings, "warning"), (counts.notes, "note")] {
        if count > 0 {
            words.push(format!("{count} {word}{}", if count == 1 { "" } else { "s" }));
        }
    }
    let so_far = if run.is_ended() { "" } else { ", so far" };
    let mut head = Vec::new();
    if !words.is_empty() {
        head.push((format!("{}{so_far}", words.join(", ")), counts.meaning()));
    }
    head.extend(summary.map(|text| (clean_text(text), Meaning::Text)));
    head
}

/// How many findings there are of each severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Problems.
    pub problems: usize,
    /// Warnings.
    pub warnings: usize,
    /// Others.
    pub notes: usize,
}

impl Counts {
    /// Counts findings.
    pub fn of(findings: &[Finding]) -> Self {
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        Self { problems: count(Severity::Problem), warnings: count(Severity::Warning), notes: count(Severity::Info) }
    }

    /// The meaning of the most severe one.
    pub fn meaning(self) -> Meaning {
        match self {
            Self { problems: 1.., .. } => Meaning::Alert,
            Self { warnings: 1.., .. } => Meaning::Warn,
            _ => Meaning::Muted,
        }
    }
}

/// A finding as an entry of a list.
pub(super) fn entry(finding: &Finding, symbols: &Symbols) -> Entry {
    let sign = match finding.severity {
        Severity::Problem => Sign::Problem,
        Severity::Warning => Sign::Warning,
        Severity::Info => Sign::Note,
    };
    // A shorter emulated time is not a real gain, but a smaller share of the cycles may be.
    let part = finding.expected_gain_share.map(|[_, high]| format!("up to {:.0} %", 100.0 * high));
    let gain = finding.expected_gain_us.map(|gain| gain_text(gain, symbols)).or(part);
    let mut items = vec![Item::new("finding", clean_text(&finding.title)).meaning(Meaning::Title)];
    for (index, evidence) in finding.evidence.iter().enumerate() {
        let label = if index == 0 { "seen" } else { "" };
        let target = evidence.at.clone().map(JumpTarget::Place);
        items.push(Item { target, ..Item::new(label, clean_text(&evidence.text)) });
    }
    if let Some(advice) = &finding.suggestion {
        items.extend(what_to_do(advice));
    }
    if let Some(gain) = finding.gain_text(symbols.micro) {
        items.push(Item::new("gain", gain).meaning(Meaning::Good));
    }
    if !finding.ops.is_empty() {
        items.push(Item::new("layers", clean_text(&finding.ops.join(", "))).meaning(Meaning::Muted));
    }
    if let Some(source) = finding.source {
        items.push(Item::new("source", source).meaning(Meaning::Muted));
    }
    items.push(Item::new("name", finding.id).meaning(Meaning::Muted));
    Entry {
        key: finding.id.to_owned(),
        sign,
        tag: kind(finding.kind).to_owned(),
        title: clean_text(&finding.title),
        note: (gain.unwrap_or_default(), Meaning::Good),
        items,
    }
}

fn what_to_do(advice: &Advice) -> Vec<Item> {
    let mut items = vec![
        Item::new(FIX, clean_text(&advice.action)).meaning(Meaning::Accent),
        Item::new("why", clean_text(&advice.why)),
        Item::new("effort", effort(advice.effort)).meaning(Meaning::Muted),
    ];
    for (index, snippet) in advice.snippets.iter().enumerate() {
        let literal = Some(snippet.lines().map(clean_text).collect::<Vec<_>>().join("\n"));
        items.push(Item { literal, ..Item::new(SNIPPET, if index == 0 { "ready to copy:" } else { "or:" }) });
    }
    items
}

/// The kind in a short word.
fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Placement => "placed",
        FindingKind::Constraint => "limit",
        FindingKind::Trust => "trust",
        FindingKind::Bound => "bound",
        FindingKind::Outlier => "outlier",
        FindingKind::Suggestion => "change",
    }
}

fn effort(effort: Effort) -> &'static str {
    match effort {
        Effort::Setting => "a flag or setting of the run",
        Effort::Reconvert => "convert, quantise or compile the model again",
        Effort::Code => "change the program that calls QNN",
        Effort::Model => "change the model itself, possibly with retraining",
    }
}

/// A range of time saved: `0.20 to 1.10 ms`.
fn gain_text([low, high]: [f64; 2], symbols: &Symbols) -> String {
    let scale = TimeScale::for_max(high, symbols);
    let (low, high) = (scale.number(low.max(0.0)), scale.number(high));
    if low == high { format!("{high} {}", scale.unit) } else { format!("{low} to {high} {}", scale.unit) }
}

#[cfg(test)]
mod tests {
    use super::super::super::symbols::UNICODE;
    use super::*;

    #[test]
    fn gains_are_ranges_in_one_unit() {
        assert_eq!(gain_text([200.0, 1100.0], &UNICODE), "0.200 to 1.100 ms");
        assert_eq!(gain_text([0.0, 80.0], &UNICODE), "0.0 to 80.0 µs");
        assert_eq!(gain_text([80.0, 80.0], &UNICODE), "80.0 µs");
    }
}
