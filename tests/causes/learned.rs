//! What the words at the end of a log tell beside the rules: the weights are of the logs that are kept here, and on these they
//! do no harm. How well they do on logs of other projects, `cargo bench --bench learned` measures.

use crate::examples::{Example, digest, known};
use crate::logs::{Known, sets};
use qnnscope::diagnosis::{Diagnoser, Diagnosis};

/// Percentage of all kept failures that are right.
const FLOOR: usize = 90;

fn diagnose(known: &Known, by_rules_only: bool) -> Diagnosis {
    let mut diagnoser = Diagnoser::new();
    if by_rules_only {
        diagnoser.taught_by(None);
    }
    if let Some(status) = known.exit_status {
        diagnoser.exit_status(status);
    }
    diagnoser.feed(known.log.as_bytes());
    diagnoser.finish()
}

#[test]
fn the_weights_are_of_the_known_logs() {
    let examples: Vec<Example> = known().iter().map(Example::of).collect();
    let weights = include_str!("../../src/diagnosis/learned/weights.tsv");
    let written = weights.lines().next().unwrap_or_default();
    assert_eq!(
        written,
        digest(&examples),
        "`UPDATE_DOCS=1 cargo bench --bench learned` writes the weights of these logs"
    );
}

#[test]
fn words_answer_where_rules_do_not_and_accuse_no_good_run() {
    let (mut failures, mut right, mut by_words, mut alarms) = (0, 0, 0, Vec::new());
    for known in sets().into_iter().flat_map(|(_, logs)| logs) {
        let diagnosis = diagnose(&known, false);
        let first = diagnosis.causes.first();
        if known.none_is_right {
            continue;
        }
        if known.right.is_empty() {
            alarms.extend(first.map(|first| format!("{}: {}", known.name, first.id)));
            continue;
        }
        failures += 1;
        right +=
            usize::from(first.is_some_and(|first| {
                known.right.iter().any(|id| id == first.id || first.cause().aliases.contains(id))
            }));
        if first.is_some_and(qnnscope::diagnosis::Finding::is_by_words) {
            by_words += 1;
            let rules = diagnose(&known, true);
            let firm = rules.causes.iter().find(|cause| cause.confidence > 0.45 && !cause.cause().generic);
            assert!(firm.is_none(), "{}: words outrank {}", known.name, firm.unwrap().id);
        }
    }
    println!("{right} of {failures} right, {by_words} by words");
    assert_eq!(alarms, Vec::<String>::new());
    assert!(right * 100 >= failures * FLOOR, "{right} of {failures}");
    assert!(by_words > 0);
}
