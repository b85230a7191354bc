//! The aggregates of a session's many events, stored at its end: opening it then folds only the few others.

use super::bounds::MOST;
use super::run::MetricStats;
use super::{LatencyStats, OpTable, PaceStats, Run, Store};
use crate::event::{Event, Phase, RunId};
use serde::{Deserialize, Serialize};

/// The state that the events replaced by a digest ([`StoreDigest::stands_for`]) produce in a store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoreDigest {
    records: u64,
    last_t_us: u64,
    runs: Vec<RunDigest>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct RunDigest {
    id: RunId,
    before_launch: [u64; 4],
    first: LatencyStats,
    warmup: LatencyStats,
    clean: LatencyStats,
    detailed: LatencyStats,
    pace: Option<PaceStats>,
    ops: OpTable,
    metrics: Vec<MetricStats>,
}

impl StoreDigest {
    /// True for an event that need not be folded if there is a digest. Everything such an event changes in a store is
    /// in the digest.
    pub fn stands_for(event: &Event) -> bool {
        match event {
            Event::Inferences(batch) => batch.phase != Phase::First,
            Event::OpTimes(_) | Event::Metrics(_) => true,
            _ => false,
        }
    }

    /// Serialises it; the bytes do not name their layout, so their container must.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn to_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_allocvec(self)
    }

    /// A digest from a file.
    ///
    /// # Errors
    /// The bytes have another layout, or were never a digest.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, postcard::Error> {
        postcard::from_bytes(bytes)
    }
}

impl Store {
    /// The digest of everything folded so far.
    pub fn digest(&self) -> StoreDigest {
        let of = |run: &Run| RunDigest {
            id: run.id,
            before_launch: run.before_launch,
            first: run.first.clone(),
            warmup: run.warmup.clone(),
            clean: run.clean.clone(),
            detailed: run.detailed.clone(),
            pace: run.pace.clone(),
            ops: run.ops.clone(),
            metrics: run.metrics.clone(),
        };
        StoreDigest { records: self.records, last_t_us: self.last_t_us, runs: self.runs.iter().map(of).collect() }
    }

    /// Merges a digest into a store built from the session's other events. False, without changes, if it does not
    /// belong to them or could not result from folding.
    #[must_use]
    pub fn restore(&mut self, digest: StoreDigest) -> bool {
        let fits = digest.records < MOST
            && digest.last_t_us < MOST
            && self.runs.len() == digest.runs.len()
            && self.runs.iter().zip(&digest.runs).all(|(run, digest)| run.id == digest.id && digest.is_sound());
        if !fits {
            return false;
        }
        self.records = digest.records;
        self.last_t_us = self.last_t_us.max(digest.last_t_us);
        for (run, digest) in self.runs.iter_mut().zip(digest.runs) {
            run.before_launch = digest.before_launch;
            (run.first, run.warmup) = (digest.first, digest.warmup);
            (run.clean, run.detailed) = (digest.clean, digest.detailed);
            (run.pace, run.ops, run.metrics) = (digest.pace, digest.ops, digest.metrics);
        }
        true
    }
}

impl RunDigest {
    fn is_sound(&self) -> bool {
        let phases = [&self.first, &self.warmup, &self.clean, &self.detailed];
        phases.into_iter().zip(self.before_launch).all(|(stats, before)| stats.is_sound() && before <= stats.count())
            && self.pace.as_ref().is_none_or(PaceStats::is_sound)
            && self.ops.is_sound()
            && self.metrics.iter().all(|metric| metric.count < MOST && metric.sum.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Budget, InferenceBatch, Metric, MetricSample, OpRow, OpSample, OpUnit, Record, RunPlan};
    use qnnscope_core::{Backend, ProfilingLevel};

    /// A run with something of everything that a digest holds.
    fn store() -> Store {
        let plan = RunPlan {
            device: "local".to_owned(),
            backend: Backend::Htp,
            model: "m".to_owned(),
            warmup: 1,
            budget: Budget::Iterations(4),
            profiling: ProfilingLevel::Detailed,
            profiling_budget: None,
            simulated: false,
            driver: crate::event::Driver::default(),
            energy_while_charging: false,
            mode: crate::event::Mode { rate_hz: Some(100.0), ..Default::default() },
            constraints: crate::event::Constraints::default(),
        };
        let batch = |phase, late: bool| {
            let (start_us, latency_ns) = (vec![100, 200], vec![5_000, 70_000]);
            let late_ns = if late { vec![1, 2] } else { Vec::new() };
            Event::Inferences(InferenceBatch { phase, first_index: 0, start_us, latency_ns, late_ns })
        };
        let metric = Metric { name: "m".to_owned(), unit: "us".to_owned(), value: 1.5 };
        let launch = |index| Event::LaunchStarted { index, of: 2, reason: None };
        let rows = vec![OpRow { name: "a".to_owned(), op: Some(0), unit: OpUnit::Cycles, htp_op: None }];
        let events = [
            Event::RunStarted(Box::new(plan)),
            launch(0),
            batch(Phase::First, false),
            batch(Phase::Warmup, false),
            batch(Phase::Clean, true),
            Event::OpsDeclared(rows),
            Event::OpTimes(OpSample { inference: 0, values: vec![77_777] }),
            Event::Metrics(MetricSample { phase: Phase::Detailed, inference: 0, metrics: vec![metric] }),
            launch(1),
            batch(Phase::Clean, true),
            batch(Phase::Detailed, false),
        ];
        let mut store = Store::new();
        for (seq, event) in (0..).zip(events) {
            store.apply(&Record { seq, t_us: 100 * seq, run: Some(RunId(0)), event });
        }
        store
    }

    /// Files contain these bytes. If this fails because a type of the store changed, increment the mark in
    /// `session/digest.rs`, so that older digests are ignored and their streams read instead; then `UPDATE_DATA=1`
    /// writes the new bytes.
    #[test]
    fn the_layout_is_that_of_the_mark() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fuzz/session_digest/one-run");
        let bytes = store().digest().to_bytes().unwrap();
        if std::env::var_os("UPDATE_DATA").is_some() {
            std::fs::write(path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(path).unwrap(), bytes, "see the comment above");
        assert!(StoreDigest::from_bytes(&bytes).is_ok());
    }

    #[test]
    fn what_no_folding_comes_to_is_refused() {
        let whole = store();
        let digest = || whole.digest();
        let light = || {
            let mut store = Store::new();
            let plan = whole.runs()[0].plan.clone();
            let event = Event::RunStarted(Box::new(plan));
            store.apply(&Record { seq: 0, t_us: 0, run: Some(RunId(0)), event });
            store
        };
        assert!(light().restore(digest()));
        assert!(!Store::new().restore(digest()), "of another session");
        let mut other = digest();
        other.runs[0].ops = OpTable::default();
        other.runs[0].before_launch = [9; 4];
        assert!(!light().restore(other), "more before a launch than in all");
        let mut other = digest();
        other.runs[0].id = RunId(7);
        assert!(!light().restore(other));
    }
}
