//! Runs at several rates: what the pauses between inferences cost. Accelerators and clocks go to sleep in them, and the next
//! inference wakes them up.

use super::figures::Figures;
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
    /// True where the backend only emulates the hardware.
    pub simulated: bool,
    /// One row per run, in the order they were made in.
    pub points: Vec<CadencePoint>,
}

/// A rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CadencePoint {
    /// The run.
    pub run: u32,
    /// Planned starts a second; `None`: one inference right after the other.
    pub rate_hz: Option<f64>,
    /// Inferences a second that came out.
    pub throughput_ips: Option<f64>,
    /// Latency from the planned start, microseconds.
    pub latency_us: Figures,
    /// What the inferences themselves took, microseconds.
    pub service_us: Figures,
    /// Inferences that were not done at the next planned start.
    pub missed: u64,
    /// Planned inferences that were never begun.
    pub unstarted: u64,
    /// True if the mean inference takes longer than a period: the latency then says how long the run was.
    pub overloaded: bool,
    /// Median inference against that of the quickest rate, microseconds: what waking up costs at this rate. `None` where
    /// the rate leaves no pauses to sleep in.
    pub wake_us: Option<f64>,
    /// False where the 95 % intervals of the two medians overlap, or one has none: the difference may be chance.
    pub wake_is_sure: bool,
}

/// Sweeps over rates in the order of their first runs.
pub fn cadence(store: &Store) -> Vec<Cadence> {
    groups(store, |run| run.plan.mode.sweep).iter().map(|runs| sweep(runs)).collect()
}

fn sweep(runs: &[&Run]) -> Cadence {
    let median = |run: &Run| run.service().percentile(50.0);
    let quickest = runs
        .iter()
        .filter_map(|run| Some((median(run).value_us?, median(run))))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, median)| median);
    let points = runs.iter().map(|run| {
        let mine = median(run);
        let overloaded = run.pace.as_ref().is_some_and(PaceStats::is_overloaded);
        let base = quickest.as_ref().filter(|_| !overloaded);
        CadencePoint {
            run: run.id.0,
            rate_hz: run.plan.mode.rate_hz,
            throughput_ips: run.throughput_ips(),
            latency_us: Figures::of(&run.clean),
            service_us: Figures::of(run.service()),
            missed: run.pace.as_ref().map_or(0, |pace| pace.missed),
            unstarted: run.pace.as_ref().map_or(0, PaceStats::unstarted),
            overloaded,
            wake_us: mine.value_us.zip(base.and_then(|base| base.value_us)).map(|(mine, base)| mine - base),
            wake_is_sure: match (mine.ci95_us.0, base.and_then(|base| base.ci95_us.1)) {
                (Some(low), Some(high)) => low > high,
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
        assert!(tight.wake_us.unwrap().abs() < 10.0 && !tight.wake_is_sure);
        assert!((slow.throughput_ips.unwrap() - 10.0).abs() < 1e-6);
    }
}
