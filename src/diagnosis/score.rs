//! Weighs signs into causes.

use super::catalogue::{Cause, Voids, causes};
use super::evidence::{Evidence, Seen, Shown, Sign};
use super::finding::Finding;
use super::numbers;
use super::rules::Rules;

/// Confidence from which a cause is well founded: vague causes give way, and later ones count as its
/// consequences.
const FOUNDED: f64 = 0.55;
/// Factor for a cause that only says where to look, beside a well-founded one.
const GENERIC_BESIDE: f64 = 0.35;
/// Factor for a cause whose first sign comes after a well-founded one.
const LATER: f64 = 0.85;
/// The same if the earlier cause is sure enough to explain it.
const LATER_THAN_SURE: f64 = 0.75;
/// Confidence from which a cause is that sure.
const SURE: f64 = 0.7;
/// Confidence from which a cause's own words are plain: it need not give way to an earlier, vague one.
const PLAIN: f64 = 0.9;
/// Confidence below which an earlier cause is too vague to explain a plain one.
const SURE_OF_ITSELF: f64 = 0.8;
/// Factor for a cause beside another that is about as likely.
const CONTESTED: f64 = 0.9;
/// Confidence below which a cause is dropped.
const FLOOR: f64 = 0.14;
/// Fraction of the best confidence below which a cause is dropped.
const RELATIVE_FLOOR: f64 = 0.25;
/// No text alone makes a cause certain.
const CEILING: f64 = 0.97;
/// Flags that take back what came before them or, for documentation, what comes after.
const TAKEN_BACK: [&str; 3] = ["probe-succeeded", "retry-succeeded", "documentation"];
/// Flag of an attempt that makes good what the lines of earlier attempts say.
const ATTEMPT: &str = "attempt-succeeded";
/// Most causes that are listed.
const MOST: usize = 6;

/// Causes, best first. Signals for which `skips` is true, given their index and that of their cause, do not count.
pub fn score(
    rules: &Rules,
    flags: &[Seen],
    signals: &[Vec<Shown>],
    skips: impl Fn((usize, usize)) -> bool,
) -> Vec<Finding> {
    let flag = |name: &String| rules.flag(name).and_then(|flag| flags.get(flag)).and_then(Option::as_ref);
    let weighed = causes()
        .iter()
        .zip(signals)
        .enumerate()
        .filter_map(|(place, (cause, seen))| weigh(cause, seen, rules, &flag, |signal| skips((place, signal))));
    let mut found: Vec<Finding> = weighed.collect();
    // The first error of a chain is the cause of the later ones.
    let first_line = |finding: &Finding| finding.evidence.iter().map(|e| e.line).filter(|line| *line > 0).min();
    let founded = |finding: &Finding| finding.confidence >= FOUNDED && !finding.cause.generic && !finding.cause.remark;
    let starts = found.iter().filter(|finding| founded(finding));
    let starts = starts.filter_map(|finding| Some((first_line(finding)?, finding.confidence)));
    let start = starts.min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let any_founded = found.iter().any(founded);
    for finding in &mut found {
        if (finding.cause.generic || finding.cause.remark) && any_founded {
            lower(finding, "says only where to look, beside a well-founded cause", GENERIC_BESIDE);
        } else if let (Some((start, sure)), Some(line)) = (start, first_line(finding))
            && line > start
            && !(finding.confidence >= PLAIN && sure < SURE_OF_ITSELF)
        {
            lower(
                finding,
                "first shows after a well-founded cause",
                if sure >= SURE { LATER_THAN_SURE } else { LATER },
            );
        }
    }
    found.sort_by(|a, b| b.confidence.total_cmp(&a.confidence).then(first_line(a).cmp(&first_line(b))));
    if let [best, second, ..] = &mut found[..]
        && second.confidence > best.confidence * CONTESTED
    {
        lower(best, "another cause is about as likely", CONTESTED);
        lower(second, "another cause is about as likely", CONTESTED * CONTESTED);
        found.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    }
    let floor = found.first().map_or(FLOOR, |best| FLOOR.max(best.confidence * RELATIVE_FLOOR));
    found.retain(|finding| finding.confidence >= floor);
    found.truncate(MOST);
    for finding in &mut found {
        finding.confidence = rounded(finding.confidence.min(CEILING));
    }
    found
}

/// A confidence in whole percent.
pub fn rounded(confidence: f64) -> f64 {
    (confidence * 100.0).round() / 100.0
}

/// Lowers a cause's confidence to a part of it, and notes why.
pub fn lower(finding: &mut Finding, why: &'static str, part: f64) {
    finding.confidence *= part;
    finding.lowered.push((why, part));
}

fn weigh<'f>(
    cause: &'static Cause,
    seen: &[Shown],
    rules: &Rules,
    flag: &impl Fn(&String) -> Option<&'f Evidence>,
    skipped: impl Fn(usize) -> bool,
) -> Option<Finding> {
    let voids = |name: &String, line: Option<&Evidence>| {
        let kind = rules.flag(name).map_or(Voids::All, |flag| rules.voids[flag]);
        flag(name).is_some_and(|flag| match (kind, line) {
            (Voids::Later, Some(line)) => flag.line <= line.line,
            (Voids::Earlier | Voids::Echoes, Some(line)) => flag.line >= line.line,
            _ => true,
        })
    };
    // A program that tries several options and finds one has not failed with the earlier ones. Nor has one
    // that retries and succeeds.
    let good_attempt = flag(&ATTEMPT.to_owned());
    let is_of_attempt = |line: &Evidence| line.text.to_ascii_lowercase().contains("attempt");
    let taken_back = |line: &Evidence| {
        TAKEN_BACK.iter().any(|flag| voids(&(*flag).to_owned(), Some(line)))
            || good_attempt.is_some_and(|good| good.line > line.line && is_of_attempt(line))
    };
    let mut doubt = 1.0;
    let mut evidence: Vec<Evidence> = Vec::new();
    let mut signs = Vec::new();
    for (index, (signal, seen)) in cause.signal.iter().zip(seen).enumerate() {
        let excluded =
            |line: Option<&Evidence>| cause.without.iter().chain(&signal.without).any(|name| voids(name, line));
        let seen = seen.lines().find(|line| !taken_back(line) && !excluded(Some(line)));
        let shown = seen.is_some() || signal.is_of_flags() && !excluded(None);
        if !shown || skipped(index) {
            continue;
        }
        let Some(context) = signal.with.iter().map(flag).collect::<Option<Vec<_>>>() else { continue };
        doubt *= 1.0 - signal.weight;
        let line = seen.or(context.first().copied()).map_or(0, |evidence| evidence.line);
        signs.push(Sign { index, weight: signal.weight, line });
        match seen {
            Some(line) => evidence.push(line.clone()),
            None => evidence.extend(context.into_iter().cloned()),
        }
    }
    if evidence.is_empty() {
        return None;
    }
    evidence.sort_by_key(|evidence| evidence.line);
    evidence.dedup();
    let codes = cause.codes.iter().map(String::as_str).filter(|code| is_named(code, &evidence)).collect();
    Some(Finding {
        id: &cause.id,
        confidence: 1.0 - doubt,
        confirmed: None,
        results: Vec::new(),
        evidence,
        signs,
        lowered: Vec::new(),
        codes,
        remedy: None,
        steps: &[],
        cause,
    })
}

fn is_named(code: &str, evidence: &[Evidence]) -> bool {
    let value = code.parse::<u64>().ok();
    evidence.iter().any(|evidence| match value {
        Some(value) => numbers::names(evidence.text.as_bytes(), value),
        None => evidence.text.to_ascii_lowercase().contains(code),
    })
}
