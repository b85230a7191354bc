//! Adds runs of the history as further launches of the compared runs.

use super::{LoadError, Named, load, read_document};
use crate::analysis::compare::{Side, same_thing, together};
use crate::history::{Entry, Filter, History, HistoryError, State};
use crate::session::SessionReader;
use std::collections::BTreeSet;

/// Maximum number of runs from the history per side: more would add little, and each must be read.
const MOST: usize = 20;

/// The sides, each with equal runs of the history as its launches. Sides that are equal to each other are
/// left unchanged, since the history would count for both.
///
/// # Errors
/// The history cannot be read.
pub fn with_history(sides: Vec<Side>, files: &[Named], history: &History) -> Result<Vec<Side>, HistoryError> {
    let given: BTreeSet<u64> = files.iter().filter_map(started_ms).collect();
    let is_alone =
        |at: usize| sides.iter().enumerate().all(|(other, side)| other == at || same_thing(&sides[at], side).is_err());
    let alone: Vec<bool> = (0..sides.len()).map(is_alone).collect();
    let mut more: Vec<Vec<Side>> = vec![Vec::new(); sides.len()];
    for entry in history.entries(&Filter::default())? {
        // The file of a session and its copy in the history are the same session.
        if entry.state != State::Whole || given.contains(&(entry.started_us / 1000)) {
            continue;
        }
        let wanted = |at: &usize| alone[*at] && more[*at].len() < MOST && may_hold(&entry, &sides[*at]);
        let wanted: Vec<usize> = (0..sides.len()).filter(wanted).collect();
        if wanted.is_empty() {
            continue;
        }
        // An unreadable session is skipped.
        for run in Named::new(&history.file(&entry.id)).and_then(|file| load(&file)).unwrap_or_default() {
            if let Some(at) = wanted.iter().find(|at| same_thing(&sides[**at], &run).is_ok()) {
                more[*at].push(run);
            }
        }
    }
    let joined = sides.into_iter().zip(more).zip(alone).map(|((side, more), alone)| join(side, more, alone));
    Ok(joined.collect())
}

fn join(mut side: Side, more: Vec<Side>, alone: bool) -> Side {
    if !alone {
        side.notes.push("the history is not used: another run here is the same thing".to_owned());
        return side;
    }
    let count = more.len();
    let mut all = vec![side];
    all.extend(more);
    let family: Vec<usize> = (0..all.len()).collect();
    match together(&all, &family, "runs").filter(|_| count > 0) {
        Some(mut side) => {
            side.notes.push(format!("with {count} of the history's runs of the same thing as launches"));
            side
        }
        None => all.swap_remove(0),
    }
}

fn may_hold(entry: &Entry, side: &Side) -> bool {
    let same = |backend: &str, sha256: &Option<String>| backend == side.backend.name() && *sha256 == side.model_sha256;
    side.model_sha256.is_some() && entry.runs.iter().any(|run| same(&run.backend, &run.sha256))
}

/// Start of a file's session, milliseconds since 1970-01-01 UTC, which identifies it.
fn started_ms(named: &Named) -> Option<u64> {
    use crate::event::Event;
    if let Some(Ok(record)) = SessionReader::open(named.path()).ok()?.next()
        && let Event::SessionStarted(started) = record.event
    {
        return Some(started.epoch_us / 1000);
    }
    let document: Result<_, LoadError> = read_document(&named.file);
    let started = document.ok()?.value().get("started_at")?.as_str()?.parse::<jiff::Timestamp>().ok()?;
    u64::try_from(started.as_millisecond()).ok()
}
