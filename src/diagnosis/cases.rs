//! The case base: failures from public threads, stored as the statements they made, for logs that no rule
//! fits.
//!
//! A case never outranks a rule: cases are searched only when no cause is well founded.

use super::catalogue::{Case, catalogue};
use super::statements::{Decoded, Statements, lexicon};
use std::collections::{BTreeMap, BTreeSet};

/// Fraction of a case's weight that has to match.
const NEAR: f64 = 0.5;
/// Minimum number of matching signs, however heavy they are.
const LEAST: usize = 2;
/// Most cases that are shown.
const MOST: usize = 2;

/// A similar case.
#[derive(Debug, Clone, PartialEq)]
pub struct NearCase {
    /// The case.
    pub case: &'static Case,
    /// Its signs that the log shows as well.
    pub agree: Vec<&'static str>,
}

/// The signs of a line: each predicate with each object, and each code.
pub(super) fn signs(statements: &Statements, codes: &[Decoded], signs: &mut BTreeSet<String>) {
    let lexicon = lexicon();
    if statements.is_failure() {
        for statement in &statements.list {
            let said = lexicon.said_name(statement.said);
            // Every log says that something failed.
            if said != "failed" {
                signs.extend(statement.of.iter().map(|class| format!("{said}: {}", lexicon.object_name(class))));
            }
        }
    }
    signs.extend(codes.iter().map(sign_of));
}

fn sign_of(code: &Decoded) -> String {
    if code.value >= 0x8000_0000 {
        format!("{} {:#x}", code.space, code.value)
    } else {
        format!("{} {}", code.space, code.value)
    }
}

/// The most similar cases, best first. The fewer cases share a sign, the more it weighs.
pub(super) fn nearest(found: &BTreeSet<String>) -> Vec<NearCase> {
    let cases = &catalogue().case;
    let mut how_many: BTreeMap<&str, usize> = BTreeMap::new();
    for case in cases {
        case.states.iter().for_each(|sign| *how_many.entry(sign).or_default() += 1);
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred cases")]
    let weight = |sign: &str| {
        let count = how_many.get(sign).copied().unwrap_or(1) as f64;
        (1.0 + cases.len() as f64 / count).ln()
    };
    let mut near: Vec<(f64, NearCase)> = Vec::new();
    for case in cases {
        let agree: Vec<&'static str> =
            case.states.iter().filter(|sign| found.contains(*sign)).map(String::as_str).collect();
        let of: f64 = case.states.iter().map(|sign| weight(sign)).sum();
        let part = agree.iter().map(|sign| weight(sign)).sum::<f64>() / of.max(f64::MIN_POSITIVE);
        if agree.len() >= LEAST && part >= NEAR {
            near.push((part, NearCase { case, agree }));
        }
    }
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.agree.len().cmp(&a.1.agree.len())));
    near.into_iter().take(MOST).map(|(_, case)| case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::{Diagnoser, cause};

    #[test]
    fn every_case_is_of_a_known_cause_and_has_signs_that_can_be_found() {
        let lexicon = lexicon();
        assert!(catalogue().case.len() >= 20);
        let mut ids = BTreeSet::new();
        for case in &catalogue().case {
            assert!(cause(&case.cause).is_some(), "{}: {}", case.id, case.cause);
            assert!(ids.insert(&case.id), "{} stands twice", case.id);
            assert!(case.states.len() >= 2 && case.source.starts_with("https://"), "{}", case.id);
            assert!(case.solved.len() > 20, "{}", case.id);
            for sign in &case.states {
                let known = match sign.split_once(": ") {
                    Some((said, object)) => {
                        lexicon.said_class(said).is_some() && lexicon.object_class(object).is_some()
                    }
                    None => sign
                        .rsplit_once(' ')
                        .is_some_and(|(_, number)| number.starts_with(|c: char| c.is_ascii_digit())),
                };
                assert!(known, "{}: {sign}", case.id);
            }
        }
    }

    #[test]
    fn a_case_answers_only_where_no_rule_does() {
        let case = catalogue().case.iter().find(|case| case.states.len() >= 3).unwrap();
        let found: BTreeSet<String> = case.states.iter().cloned().collect();
        assert_eq!(nearest(&found)[0].case.id, case.id);
        assert!(nearest(&found.into_iter().take(1).collect()).is_empty(), "one sign is too few");
        let mut diagnoser = Diagnoser::new();
        diagnoser.feed(b"QnnDsp <E> Request feature arch with value 81 unsupported\n");
        assert!(diagnoser.finish().unexplained.is_none());
    }
}
