//! Each rule on runs that have its pattern and on runs that do not (`cases/*.toml`), and all rules on random
//! graphs.

mod case;
mod graph_text;
mod random;

use super::{WORTH_IT, catalogue, findings, list};
use crate::analysis::{Finding, Severity};
use case::{Case, run};
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

const FILES: [&str; 4] = [
    include_str!("cases/measurement-and-power.toml"),
    include_str!("cases/structure.toml"),
    include_str!("cases/precision-and-memory.toml"),
    include_str!("cases/runtime-gpu-cpu.toml"),
];

fn cases() -> Vec<Case> {
    FILES.iter().flat_map(|text| toml::from_str::<Cases>(text).unwrap_or_else(|error| panic!("{error}")).case).collect()
}

#[test]
fn every_rule_fires_where_it_should_and_only_there() {
    let mut wrong = Vec::new();
    for (number, case) in cases().iter().enumerate() {
        let store = case.store();
        let found = findings(&store, run(&store));
        let own = found.iter().find(|finding| finding.id == case.rule);
        if let Some(finding) = own {
            check(finding, &store);
        }
        if own.is_some() != case.fires {
            let others: Vec<_> = found.iter().map(|finding| finding.id).collect();
            wrong.push(format!(
                "case {number}: {} must {}fire; {others:?} did",
                case.rule,
                if case.fires { "" } else { "not " }
            ));
        }
        if let (Some(names), Some(finding)) = (&case.names, own) {
            assert_eq!(names, &finding.ops, "case {number}: {}", case.rule);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_cases_of_both_kinds() {
    let cases = cases();
    let of = |fires: bool| cases.iter().filter(|case| case.fires == fires).map(|case| case.rule.as_str()).collect();
    let (firing, silent): (BTreeSet<&str>, BTreeSet<&str>) = (of(true), of(false));
    let rules: BTreeSet<&str> = catalogue::rules().iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(rules.difference(&firing).collect::<Vec<_>>(), Vec::<&&str>::new(), "no case that fires");
    assert_eq!(rules.difference(&silent).collect::<Vec<_>>(), Vec::<&&str>::new(), "no case that is silent");
    assert!(firing.union(&silent).all(|id| rules.contains(id)), "a case names no rule");
}

/// Invariants of every suggestion, whatever it says.
fn check(finding: &Finding, store: &crate::store::Store) {
    let run = run(store);
    let id = finding.id;
    assert!(!finding.evidence.is_empty() && finding.evidence.iter().all(|seen| !seen.text.is_empty()), "{id}");
    assert!(
        !finding.title.contains('{') && finding.source.is_some() && finding.suggestion.is_some(),
        "{id}: {}",
        finding.title
    );
    let graph_ops = run.graph().map_or(&[][..], |graph| &graph.ops);
    let mut share = 0.0;
    for name in &finding.ops {
        assert!(graph_ops.iter().any(|op| op.name == *name), "{id}: no op {name}");
        share += (0..run.ops.rows().len())
            .filter(|&row| run.ops.rows()[row].name == *name)
            .map(|row| run.ops.share(row))
            .sum::<f64>();
    }
    for seen in &finding.evidence {
        if let Some(crate::analysis::EvidencePlace::Op(row)) = seen.at {
            assert!(row < run.ops.rows().len(), "{id}");
        }
    }
    if let Some([low, high]) = finding.expected_gain_share {
        assert!(0.0 <= low && low <= high && high <= 1.0 + 1e-9, "{id}: {low} to {high}");
        assert!(high >= WORTH_IT, "{id} is not worth it");
        let all_named = finding.ops.len() < super::MOST_NAMES;
        assert!(finding.ops.is_empty() || !all_named || high <= share * (1.0 + 1e-9), "{id}: more than its share");
        let latency = run.clean.percentile_us(50.0).or(run.clean.mean_us()).unwrap();
        match finding.expected_gain_us {
            Some(gain) => assert!((gain[1] - high * latency).abs() < 1e-6 * latency, "{id}: {gain:?} of {latency}"),
            None => assert!(run.plan.simulated, "{id}"),
        }
    }
    if run.plan.simulated {
        assert_eq!(finding.expected_gain_us, None, "{id}");
        assert_eq!(finding.severity, Severity::Info, "{id}");
        assert!(finding.evidence.iter().any(|seen| seen.text.contains("simulated")), "{id}");
    }
}

#[test]
fn snippets_can_be_used_as_they_are() {
    for case in cases().iter().filter(|case| case.fires) {
        let store = case.store();
        let found = findings(&store, run(&store)).into_iter().find(|finding| finding.id == case.rule);
        let Some(advice) = found.and_then(|finding| finding.suggestion) else { continue };
        let rule = catalogue::rules().iter().find(|rule| rule.id == case.rule).unwrap();
        assert!(!advice.snippets.is_empty() || rule.snippets.is_empty(), "{}: all snippets were left out", case.rule);
        for snippet in advice.snippets {
            let command = match snippet.strip_prefix("echo '").and_then(|rest| rest.split_once("' > ")) {
                Some((json, rest)) => {
                    crate::backends::settings::check_config(json).unwrap_or_else(|error| panic!("{json}: {error}"));
                    let (file, command) = rest.split_once(" && ").unwrap();
                    assert!(command.ends_with(&format!("--config {file}")), "{snippet}");
                    command
                }
                None => &snippet,
            };
            if snippet.starts_with('{') {
                serde_json::from_str::<serde_json::Value>(&snippet)
                    .unwrap_or_else(|error| panic!("{snippet}: {error}"));
            } else if let Some(arguments) = command.strip_prefix("qnnscope ") {
                crate::cli::parses(&words(arguments)).unwrap_or_else(|error| panic!("{snippet}: {error}"));
            } else {
                assert!(!snippet.contains('{'), "{}: a placeholder is left in {snippet}", case.rule);
            }
        }
    }
}

/// Splits a command line into words, honouring single quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

#[test]
fn the_list_in_the_docs_is_that_of_the_rules() {
    let row = |rule: &super::RuleSummary| {
        let id = format!("`{}`", rule.id);
        [&id, &rule.backends.join(", "), &rule.title, rule.action, rule.source].join(" | ")
    };
    let table: Vec<String> = list().iter().map(|rule| format!("| {} |\n", row(rule))).collect();
    let table = table.concat();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/suggestions.md");
    let (begin, end) = ("|---|---|---|---|---|\n", "\n<!-- end of the rules -->");
    let text = std::fs::read_to_string(path).unwrap();
    let (head, rest) = text.split_once(begin).expect("the table's head");
    let (old, tail) = rest.split_once(end).expect("the table's end");
    if old != table {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, format!("{head}{begin}{table}{end}{tail}")).unwrap();
        } else {
            panic!("docs/suggestions.md does not list the rules as they are; run this test with UPDATE_DOCS=1");
        }
    }
}
