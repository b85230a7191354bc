//! Runs at several rates: the cost of pauses between inferences. Accelerators and clocks go to sleep during
//! pauses, and the next inference has to wake them up.

use super::figures::LatencyFigures;
use super::rounds::groups;
use crate::store::{PaceStats, Run, Store};
use serde::Serialize;

/// Runs of one backend at several rates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cadence {
    /// Device id.
    pub device: String,
    /// Backend.
    pub backend: &'static str,
    /// True if the backend only emulates the hardware.
    pub simulated: bool,
    /// The run with the lowest median latency; `None` if no run has one.
    pub quickest: Option<u32>,
    /// True if the rate with the fewest pauses was clearly slower than the fastest one. Pauses do not explain
    /// that: other load or heat changed between the runs and may explain differences at the other rates, too.
    pub densest_is_slower: bool,
    /// One row per run, in the order they were made.
    pub points: Vec<CadencePoint>,
}

/// One rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CadencePoint {
    /// The run.
    pub run: u32,
    /// Planned starts per second; `None` for back-to-back inferences.
    pub rate_hz: Option<f64>,
    /// Achieved inferences per second.
    pub throughput_ips: Option<f64>,
    /// Latency from the planned start, microseconds.
    pub latency_us: LatencyFigures,
    /// Execution time of the inferences alone, microseconds.
    pub service_us: LatencyFigures,
    /// Inferences not finished by the next planned start.
    pub missed: u64,
    /// Planned inferences that never started.
    pub unstarted: u64,
    /// True if the mean inference takes longer than a period: latency then depends on the length of the run.
    pub overloaded: bool,
    /// Median inference minus that of the fastest rate, microseconds: the wake-up cost at this rate. `None`
    /// if there are no pauses to sleep in: in a tight loop, or at a rate too fast for the model.
    pub wake_us: Option<f64>,
    /// False if the 95 % intervals of the two medians overlap or one is missing, or if the rate with the
    /// fewest pauses was slower: the difference may be chance or have another cause.
    pub wake_is_sure: bool,
}

/// Rate sweeps in the order of their first runs.
pub fn cadence(store: &Store) -> Vec<Cadence> {
    groups(store, |run| run.plan.mode.sweep).iter().map(|runs| sweep(runs)).collect()
}

/// Without an interval, a median above the fastest one by this factor counts as slower.
const SLOWER: f64 = 1.05;

fn sweep(runs: &[&Run]) -> Cadence {
    let median = |run: &Run| run.service().percentile(50.0);
    let overloaded = |run: &Run| run.pace.as_ref().is_some_and(PaceStats::is_overloaded);
    let has_pauses = |run: &Run| run.plan.mode.rate_hz.is_some() && !overloaded(run);
    let medians = || runs.iter().filter_map(|run| Some((*run, median(run).value_us?, median(run))));
    let quickest = medians().min_by(|a, b| a.1.total_cmp(&b.1));
    let base = quickest.as_ref().map(|(_, _, median)| median);
    let rate = |run: &Run| if has_pauses(run) { run.plan.mode.rate_hz.unwrap_or(f64::INFINITY) } else { f64::INFINITY };
    let densest = medians().map(|(run, ..)| rate(run)).reduce(f64::max);
    // Of several rates without pauses the fastest counts: none of them left time to sleep.
    let densest = medians()
        .filter(|(run, ..)| densest.is_some_and(|densest| rate(run) >= densest))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let densest_is_slower =
        densest.zip(quickest.as_ref()).is_some_and(|((run, value, median), (other, least, base))| {
            run.id != other.id
                && match (median.ci95_us.0, base.ci95_us.1) {
                    (Some(low), Some(high)) => low > high,
                    _ => value > least * SLOWER,
                }
        });
    let points = runs.iter().map(|run| {
        let mine = median(run);
        let base = base.filter(|_| has_pauses(run));
        CadencePoint {
            run: run.id.0,
            rate_hz: run.plan.mode.rate_hz,
            throughput_ips: run.throughput_ips(),
            latency_us: LatencyFigures::of(&run.clean),
            service_us: LatencyFigures::of(run.service()),
            missed: run.pace.as_ref().map_or(0, |pace| pace.missed),
            unstarted: run.pace.as_ref().map_or(0, PaceStats::unstarted),
            overloaded: overloaded(run),
            wake_us: mine.value_us.zip(base.and_then(|base| base.value_us)).map(|(mine, base)| mine - base),
            wake_is_sure: match (mine.ci95_us.0, base.and_then(|base| base.ci95_us.1)) {
                (Some(low), Some(high)) => low > high && !densest_is_slower,
                _ => false,
            },
        }
    });
    let plan = &runs[0].plan;
    Cadence {
        device: plan.device.clone(),
        backend: plan.backend.name(),
        simulated: plan.simulated,
        points: points.collect(),
        quickest: quickest.as_ref().map(|(run, ..)| run.id.0),
        densest_is_slower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Feed, plan};
    use crate::event::{Member, RunPlan};

    fn at(index: u32, rate_hz: Option<f64>) -> RunPlan {
        let mut plan = plan();
        plan.mode.sweep = Some(Member { group: 0, index, of: 3 });
        plan.mode.rate_hz = rate_hz;
        plan
    }

    #[test]
    fn waking_up_is_told_against_the_quickest_rate() {
        let mut feed = Feed::on_phone(at(0, Some(10.0)), None);
        feed.paced(10.0, 20, 8_000);
        feed.end();
        feed.start(at(1, Some(1000.0)));
        feed.paced(1000.0, 20, 5_000);
        feed.end();
        feed.start(at(2, None));
        feed.clean(0, 20, |_| 5_000.0);
        feed.end();
        let sweeps = cadence(&feed.store);
        assert_eq!(sweeps.len(), 1);
        let [slow, fast, tight] = sweeps[0].points.as_slice() else { panic!("{sweeps:?}") };
        assert!((slow.wake_us.unwrap() - 3000.0).abs() < 10.0 && slow.wake_is_sure, "{slow:?}");
        assert_eq!((slow.missed, slow.overloaded), (0, false));
        assert_eq!((fast.overloaded, fast.wake_us, fast.missed), (true, None, 20), "no pauses, no sleep");
        assert_eq!((tight.wake_us, tight.wake_is_sure), (None, false), "a tight loop has no pauses either");
        assert!(sweeps[0].quickest.is_some() && !sweeps[0].densest_is_slower);
        assert!((slow.throughput_ips.unwrap() - 10.0).abs() < 1e-6);
    }

    #[test]
    fn a_tight_loop_that_is_slower_makes_wake_ups_unsure() {
        let sweep = |tight_us: f64| {
            let mut feed = Feed::on_phone(at(0, Some(10.0)), None);
            feed.paced(10.0, 40, 9_000);
            feed.end();
            feed.start(at(1, Some(50.0)));
            feed.paced(50.0, 40, 6_000);
            feed.end();
            feed.start(at(2, None));
            feed.clean(0, 40, |_| tight_us);
            feed.end();
            cadence(&feed.store).remove(0)
        };
        let odd = sweep(8_000.0);
        assert!(odd.densest_is_slower && odd.quickest == Some(1), "{odd:?}");
        assert!(odd.points.iter().all(|point| !point.wake_is_sure), "{odd:?}");
        assert!(odd.points[0].wake_us.unwrap() > 2_900.0 && odd.points[2].wake_us.is_none(), "{odd:?}");
        let plain = sweep(6_000.0);
        assert!(!plain.densest_is_slower && plain.points[0].wake_is_sure, "{plain:?}");
    }
}
