//! Cached results about the shown run, since they cost more than a frame allows.

use super::Modes;
use crate::analysis::{Finding, Outliers, findings, outliers, summary, verdicts};
use crate::diagnosis::{Diagnosis, diagnose_failure, place};
use crate::event::RunId;
use crate::store::{Run, Store};
use std::time::Instant;

/// Minimum time between updates of an unfinished run's findings, microseconds ...
const REFRESH_US: u64 = 1_000_000;
/// ... which is also at least this many times what the last update took.
const SHARE: u64 = 20;

/// Results about the shown run.
#[derive(Debug, Clone)]
pub struct Known {
    /// Findings, most important first.
    pub findings: Vec<Finding>,
    /// The run in one paragraph of plain words.
    pub summary: Option<String>,
    /// Inferences far from the others; `None` while there are too few to judge.
    pub outliers: Option<Outliers>,
    /// Results of its measurement mode.
    pub modes: Modes,
    /// Causes of its failure, once determined. Lines are counted from the start of the session's log.
    pub diagnosis: Option<Diagnosis>,
    /// The function that finds them.
    pub find: fn(&Store, &Run) -> Vec<Finding>,
    found: Option<Taken>,
    /// The run that was diagnosed, and up to which line and check.
    diagnosed: Option<(RunId, u64, usize)>,
}

/// When the last search ran, and on what.
#[derive(Debug, Clone, Copy)]
struct Taken {
    run: RunId,
    /// Number of runs that had ended by then: comparisons use other runs' figures.
    ended: usize,
    records: u64,
    at_us: u64,
    cost_us: u64,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            findings: Vec::new(),
            summary: None,
            outliers: None,
            modes: Modes::default(),
            diagnosis: None,
            find: findings,
            found: None,
            diagnosed: None,
        }
    }
}

impl Known {
    /// Updates everything from the store, unless done a moment ago.
    pub fn refresh(&mut self, store: &Store, run: Option<&Run>, frozen: bool, now_us: u64) {
        let Some(run) = run else {
            *self = Self { find: self.find, ..Self::default() };
            return;
        };
        if self.is_due(store, run, frozen, now_us) {
            let begun = Instant::now();
            self.findings = (self.find)(store, run);
            self.outliers = outliers(store, run);
            self.modes = Modes::of(store, run);
            self.summary = summary(run, &verdicts(store, run), &self.findings);
            let cost_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            let records = store.records();
            self.found = Some(Taken { run: run.id, ended: ended(store), records, at_us: now_us, cost_us });
        }
        self.diagnose(store, run);
    }

    fn is_due(&self, store: &Store, run: &Run, frozen: bool, now_us: u64) -> bool {
        let Some(taken) = self.found.filter(|taken| taken.run == run.id) else { return true };
        let wait_us = REFRESH_US.max(taken.cost_us.saturating_mul(SHARE));
        let moved = || taken.records != store.records() && now_us.saturating_sub(taken.at_us) >= wait_us;
        !frozen && (taken.ended != ended(store) || (!run.is_ended() && moved()))
    }

    /// Searches for causes once the run has failed, and again when a late line or a check result arrives.
    fn diagnose(&mut self, store: &Store, run: &Run) {
        let Some(failure) = run.failure.as_ref().filter(|_| run.is_ended()) else {
            (self.diagnosis, self.diagnosed) = (None, None);
            return;
        };
        let last = store.logs().iter().rposition(|line| line.run == Some(run.id)).map_or(0, |at| number(store, at));
        // Results from lines dropped from memory are kept.
        let checks = run.checks.len();
        if self.diagnosed.is_none_or(|(known, seen, made)| known != run.id || last > seen || checks > made) {
            let lines = log_of(store, run.id).map(|(number, line)| (number, line.line.text.as_str()));
            let mut diagnosis = diagnose_failure(failure, lines);
            diagnosis.take_checks(&run.checks);
            place(&mut diagnosis, store, run);
            self.diagnosis = Some(diagnosis);
            self.diagnosed = Some((run.id, last, checks));
        }
    }
}

fn ended(store: &Store) -> usize {
    store.runs().iter().filter(|run| run.is_ended()).count()
}

/// Number of the line kept at `at`, from 1 at the start of the session.
pub(super) fn number(store: &Store, at: usize) -> u64 {
    store.logs_dropped() + at as u64 + 1
}

/// The kept lines of a run's log, with their numbers.
pub fn log_of(store: &Store, run: RunId) -> impl Iterator<Item = (u64, &crate::store::StoredLine)> {
    let lines = store.logs().iter().enumerate().filter(move |(_, line)| line.run == Some(run));
    lines.map(|(at, line)| (number(store, at), line))
}
