//! Suggestions: rules in the form of data, matched against what is known about a run.
//!
//! A rule (`catalogue/*.toml`, [`rule::Rule`]) describes the layers, or the aspect of the run, that it
//! applies to; the engine finds them, reports what it saw as evidence, and bounds the gain by the time that
//! the layers take. `docs/suggestions.md` lists the rules and explains how to add one.

mod catalogue;
mod condition;
mod evidence;
mod facts;
mod figure;
mod figures;
mod gain;
mod graph;
mod kind;
mod measure;
mod property;
mod range;
mod rule;
mod select;
mod snippet;
#[cfg(test)]
mod tests;

use crate::analysis::{Advice, Evidence, Finding, FindingKind, Severity};
use crate::store::{Run, Store};
use facts::Facts;
use rule::{Rule, When};

/// Share of the latency below which a possible saving is not worth a suggestion.
pub const WORTH_IT: f64 = 0.03;
/// Share of the latency from which a suggestion is more than good to know.
const WEIGHTY: f64 = 0.10;
/// Layers that a suggestion names; their total number is always given.
const MOST_NAMES: usize = 20;

/// Suggested changes for a run, from the rules that apply to it.
pub fn findings(store: &Store, run: &Run) -> Vec<Finding> {
    let facts = Facts::of(store, run);
    let figures = figures::all(&facts);
    let facts = facts.with_figures(figures);
    catalogue::rules().iter().filter_map(|rule| apply(rule, &facts)).collect()
}

/// A row of the list of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSummary {
    /// Id.
    pub id: &'static str,
    /// Backends.
    pub backends: Vec<&'static str>,
    /// When it applies, in words: the title without its figures.
    pub title: String,
    /// What it suggests.
    pub action: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// All rules, by area.
pub fn list() -> Vec<RuleSummary> {
    let summary = |rule: &'static Rule| RuleSummary {
        id: &rule.id,
        backends: rule.backends.iter().map(|backend| backend.name()).collect(),
        title: rule.title.replace("{share}", "…").replace("{layers}", "… layers"),
        action: &rule.action,
        source: &rule.source,
    };
    catalogue::rules().iter().map(summary).collect()
}

fn apply(rule: &'static Rule, facts: &Facts<'_>) -> Option<Finding> {
    let simulated = facts.run.plan.simulated;
    if !rule.backends.contains(&facts.run.plan.backend) || (simulated && !rule.on_simulator) {
        return None;
    }
    let mut seen = Vec::new();
    when(&rule.when, facts, &mut seen)?;
    let layers = layers(rule, facts)?;
    let gain = gain::expected(rule, facts, &layers);
    let share = facts.nodes.share(&layers);
    let latency_us = facts.latency_us();
    let gain_share = gain.zip(latency_us).map(|(gain, latency_us)| gain.map(|us| us / latency_us));
    let part = match (gain_share, rule.layers.is_empty()) {
        (Some([_, high]), _) => Some(high),
        // A rule that reports no figure is still about the time its layers take.
        (None, false) => Some(share),
        (None, true) => None,
    };
    if (rule.gain.is_some() && gain.is_none()) || part.is_some_and(|part| part < WORTH_IT) {
        return None;
    }
    let mut all = evidence::of_layers(rule, facts, &layers);
    all.extend(seen);
    if all.is_empty() {
        return None;
    }
    let severity = match gain {
        _ if simulated => Severity::Info,
        Some(_) if part.is_some_and(|part| part >= WEIGHTY) => Severity::Warning,
        Some(_) => Severity::Info,
        None => rule.severity,
    };
    if simulated {
        all.push(Evidence::new("the HTP was simulated: shares and gains are in simulated cycles, not device time"));
    }
    let mut finding =
        Finding::new(&rule.id, FindingKind::Suggestion, severity, evidence::title(rule, facts, &layers), all);
    finding.suggestion = Some(Advice {
        action: rule.action.clone(),
        why: rule.why.clone(),
        effort: rule.effort,
        snippets: rule.snippets.iter().filter_map(|text| snippet::fill(text, facts)).collect(),
    });
    finding.expected_gain_us = gain.filter(|_| !simulated);
    finding.expected_gain_share = gain_share;
    finding.ops = layers.iter().take(MOST_NAMES).map(|&index| facts.nodes.list[index].op.name.clone()).collect();
    finding.source = Some(&rule.source);
    Some(finding)
}

/// Adds what was observed, if every condition holds.
fn when(when: &When, facts: &Facts<'_>, seen: &mut Vec<Evidence>) -> Option<()> {
    for condition in &when.is {
        let text = condition.seen(facts)?;
        if !text.is_empty() {
            seen.push(Evidence::new(text));
        }
    }
    if when.not.iter().any(|condition| condition.seen(facts).is_some()) {
        return None;
    }
    for (figure, range) in &when.figure {
        let value = facts.figure(*figure).filter(|value| range.holds(*value))?;
        seen.push(Evidence::new(figure.sentence(value)));
    }
    for others in &when.layers {
        let found = select::select(&facts.nodes, &others.which);
        let (count, share) = (found.len() as f64, facts.nodes.share(&found));
        let timed = facts.nodes.timed || others.together.share.is_empty();
        if !timed || !others.together.count.holds(count) || !others.together.share.holds(share) {
            return None;
        }
        seen.push(Evidence::new(evidence::others(others, facts, found.len(), share)));
    }
    let told = when.tell.iter().filter_map(|figure| Some(figure.sentence(facts.figure(*figure)?)));
    seen.extend(told.map(Evidence::new));
    if when.any.is_empty() {
        return Some(());
    }
    let mut held = false;
    for alternative in &when.any {
        let mut also = Vec::new();
        if self::when(alternative, facts, &mut also).is_some() {
            seen.extend(also);
            held = true;
        }
    }
    held.then_some(())
}

/// The layers that the rule concerns, worst first; empty for a rule about the run, `None` if the rule does
/// not apply.
fn layers(rule: &Rule, facts: &Facts<'_>) -> Option<Vec<usize>> {
    if rule.layers.is_empty() {
        return Some(Vec::new());
    }
    // Without op times, a costly pattern cannot be told from a harmless one.
    if !facts.nodes.timed {
        return None;
    }
    let mut found: Vec<usize> = rule.layers.iter().flat_map(|test| select::select(&facts.nodes, test)).collect();
    found.sort_unstable();
    found.dedup();
    let (count, share) = (found.len() as f64, facts.nodes.share(&found));
    if found.is_empty() || !rule.together.count.holds(count) || !rule.together.share.holds(share) {
        return None;
    }
    let time = |index: &usize| facts.nodes.list[*index].share.unwrap_or(0.0);
    found.sort_by(|a, b| time(b).total_cmp(&time(a)));
    Some(found)
}
