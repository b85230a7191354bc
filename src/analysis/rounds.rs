//! Interleaved runs: all rounds of one plan taken together, and whether they drift.

use super::figures::{LatencyFigures, pooled};
use crate::event::Member;
use crate::store::{LatencyStats, Run, Store};
use serde::Serialize;

/// All rounds of one plan among interleaved runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rounds {
    /// Device id.
    pub device: String,
    /// Backend.
    pub backend: &'static str,
    /// Index of the plan among the interleaved ones.
    pub group: u32,
    /// True if the backend only emulates the hardware.
    pub simulated: bool,
    /// Rounds requested.
    pub asked: u32,
    /// Rounds completed.
    pub rounds: Vec<Round>,
    /// Latencies of all rounds as one distribution, microseconds.
    pub latency_us: LatencyFigures,
    /// Median of the last round relative to the first, per cent; `None` with fewer than two rounds that have
    /// figures.
    pub drift_percent: Option<f64>,
    /// Largest median of a round relative to the smallest, per cent.
    pub spread_percent: Option<f64>,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Round {
    /// The run.
    pub run: u32,
    /// Clean inferences.
    pub samples: u64,
    /// Their median latency, microseconds.
    pub p50_us: Option<f64>,
}

/// The groups of interleaved runs, in the order of their first runs.
pub fn interleaved(store: &Store) -> Vec<Rounds> {
    groups(store, |run| run.plan.mode.repeat).iter().map(|runs| rounds(runs)).collect()
}

/// The clean latencies of all rounds of the plan that `run` belongs to; only the run's own if it was not
/// repeated.
pub fn clean_of_all_rounds(store: &Store, run: &Run) -> LatencyStats {
    let all = groups(store, |run| run.plan.mode.repeat);
    match all.iter().find(|group| group.iter().any(|member| member.id == run.id)) {
        Some(group) => pooled(group.iter().map(|member| &member.clean)),
        None => run.clean.clone(),
    }
}

/// Runs grouped by what `member` returns for each. An index that does not increase starts a new group, as
/// when the same request is made again.
pub(super) fn groups(store: &Store, member: impl Fn(&Run) -> Option<Member>) -> Vec<Vec<&Run>> {
    let mut open: Vec<(Member, Vec<&Run>)> = Vec::new();
    for run in store.runs() {
        let Some(place) = member(run) else { continue };
        let same = |known: &(Member, Vec<&Run>)| {
            let (last, runs) = known;
            let alike = |other: &Run| {
                (&other.plan.device, &other.plan.model, other.plan.backend)
                    == (&run.plan.device, &run.plan.model, run.plan.backend)
            };
            (last.group, last.of) == (place.group, place.of)
                && last.index < place.index
                && runs.iter().all(|r| alike(r))
        };
        match open.iter_mut().rev().find(|known| same(known)) {
            Some((last, runs)) => {
                *last = place;
                runs.push(run);
            }
            None => open.push((place, vec![run])),
        }
    }
    open.into_iter().map(|(_, runs)| runs).collect()
}

fn rounds(runs: &[&Run]) -> Rounds {
    let first = &runs[0].plan;
    let place = first.mode.repeat;
    let made: Vec<Round> = runs
        .iter()
        .map(|run| Round { run: run.id.0, samples: run.clean.count(), p50_us: run.clean.percentile_us(50.0) })
        .collect();
    let medians: Vec<f64> = made.iter().filter_map(|round| round.p50_us).filter(|us| *us > 0.0).collect();
    let against = |later: f64, earlier: f64| 100.0 * (later / earlier - 1.0);
    let several = medians.len() > 1;
    let (low, high) = medians.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &us| (low.min(us), high.max(us)));
    Rounds {
        device: first.device.clone(),
        backend: first.backend.name(),
        group: place.map_or(0, |place| place.group),
        simulated: first.simulated,
        asked: place.map_or(1, |place| place.of),
        latency_us: LatencyFigures::of(&pooled(runs.iter().map(|run| &run.clean))),
        drift_percent: several.then(|| against(medians[medians.len() - 1], medians[0])),
        spread_percent: several.then(|| against(high, low)),
        rounds: made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Feed, plan};
    use crate::event::RunPlan;

    fn round(group: u32, index: u32) -> RunPlan {
        let mut plan = plan();
        plan.mode.repeat = Some(Member { group, index, of: 2 });
        plan
    }

    #[test]
    fn rounds_of_a_plan_are_pooled_and_drift_is_told() {
        let mut feed = Feed::on_phone(round(0, 0), None);
        let make = |feed: &mut Feed, us: f64, next: Option<RunPlan>| {
            feed.clean(0, 10, |_| us);
            feed.end();
            if let Some(plan) = next {
                feed.start(plan);
            }
        };
        make(&mut feed, 1000.0, Some(round(1, 0)));
        make(&mut feed, 5000.0, Some(round(0, 1)));
        make(&mut feed, 1200.0, Some(round(1, 1)));
        make(&mut feed, 5000.0, None);
        let sets = interleaved(&feed.store);
        assert_eq!(sets.len(), 2);
        assert_eq!(sets[0].rounds.iter().map(|round| round.run).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((sets[0].latency_us.samples, sets[0].latency_us.mean), (20, Some(1100.0)));
        assert!((sets[0].drift_percent.unwrap() - 20.0).abs() < 0.2 && sets[1].drift_percent == Some(0.0));
        assert_eq!(clean_of_all_rounds(&feed.store, &feed.store.runs()[3]).count(), 20);
        // Repeating the request starts a new group, even if the first one was cut short.
        feed.start(round(0, 0));
        assert_eq!(interleaved(&feed.store).len(), 3);
    }
}
