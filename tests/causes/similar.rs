//! Which kinds of failure a log without an answer reads like: the known logs' words are those of the kept logs, and a log of
//! another project leads to its kind among the first three more often than not.

use crate::logs::{Known, sets};
use qnnscope::diagnosis::similar::{Index, rows};
use qnnscope::diagnosis::{Diagnoser, cause};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Words that tell a known log from others, the rarest first.
const TERMS: usize = 20;
/// Logs that show a word; one of a single log says nothing of another.
const SHARED: usize = 2;
/// Percentage of answers that hold the right kind, when known logs of the failure's own project are left out.
const FLOOR: usize = 50;

fn failures() -> Vec<Known> {
    sets()
        .into_iter()
        .flat_map(|(_, logs)| logs)
        .filter(|known| !known.right.is_empty() && !known.none_is_right)
        .collect()
}

fn terms(known: &Known) -> BTreeSet<String> {
    let mut diagnoser = Diagnoser::new();
    diagnoser.feed(known.log.as_bytes());
    diagnoser.terms()
}

/// The address of a public thread or file; what was made here has none.
fn address(known: &Known) -> &str {
    if known.thread.starts_with("http") { &known.thread } else { "" }
}

#[test]
fn the_known_logs_are_the_kept_ones() {
    let failures = failures();
    let words: Vec<BTreeSet<String>> = failures.iter().map(terms).collect();
    let mut having: BTreeMap<&str, usize> = BTreeMap::new();
    words.iter().flatten().for_each(|term| *having.entry(term).or_default() += 1);
    let mut lines = BTreeSet::new();
    for (known, words) in failures.iter().zip(&words) {
        let truth = known.right.first().unwrap();
        let Some(cause) = cause(truth) else { continue };
        let mut telling: Vec<&str> = words.iter().map(String::as_str).filter(|term| having[term] >= SHARED).collect();
        telling.sort_by_key(|term| (having[term], *term));
        telling.truncate(TERMS);
        if !telling.is_empty() && !cause.generic {
            lines.insert(format!("{}\t{}\t{}", cause.id, address(known), telling.join(";")));
        }
    }
    let now: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/diagnosis/similar/known.tsv");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, now).unwrap();
    } else {
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(kept == now, "known.tsv is of other logs: UPDATE_DOCS=1 writes it");
    }
}

#[test]
fn a_log_of_another_project_leads_to_its_kind() {
    let (mut asked, mut told, mut first, mut shown) = (0, 0, 0, 0);
    let mut by_project: BTreeMap<String, Vec<Known>> = BTreeMap::new();
    for known in failures() {
        let mut diagnoser = Diagnoser::new();
        diagnoser.taught_by(None);
        diagnoser.feed(known.log.as_bytes());
        if diagnoser.finish().causes.is_empty() {
            by_project.entry(known.project.clone()).or_default().push(known);
        }
    }
    for (project, logs) in by_project {
        // `github.com/owner/repo`; what was made here is compared with public logs only.
        let is_own = |source: &str| if project.contains('/') { source.contains(&project) } else { source.is_empty() };
        let index = Index::of(rows().filter(|row| !is_own(row.source)));
        for known in logs {
            let similar = index.closest(&terms(&known));
            let is_right = |cause: &&str| known.right.iter().any(|id| id == cause);
            let ids: Vec<&str> = similar.iter().map(|similar| similar.cause.id.as_str()).collect();
            asked += 1;
            told += usize::from(!similar.is_empty());
            first += usize::from(ids.first().is_some_and(is_right));
            shown += usize::from(ids.iter().any(is_right));
        }
    }
    println!(
        "{asked} failures without a cause, {told} with a kind: the right one is first for {first}, shown for {shown}"
    );
    assert!(asked > 50 && shown * 100 >= told * FLOOR, "{shown} of {told}");
}
