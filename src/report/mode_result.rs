//! Ways of measuring in the result document.

use crate::analysis::LatencyFigures;
use crate::analysis::compare::{Series, SideLatency, SideLaunch};
use crate::store::{PaceStats, Run};
use serde::Serialize;

/// How well a paced run kept its schedule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PaceResult {
    rate_hz: f64,
    planned: Option<u64>,
    done: u64,
    on_time: u64,
    missed: u64,
    unstarted: u64,
    overloaded: bool,
    service_us: LatencyFigures,
    service_stddev_us: Option<f64>,
    service_series: Series,
    service_launches: Vec<SideLaunch>,
    wait_cpu_percent: Option<f64>,
    worst_start_us: Option<f64>,
}

/// The pacing of a run, if it was paced.
pub(super) fn pace(run: &Run) -> Option<PaceResult> {
    run.pace.as_ref().map(|pace| {
        let done = pace.service.count();
        PaceResult {
            rate_hz: pace.rate_hz,
            planned: pace.report.map(|report| report.planned),
            done,
            on_time: done - pace.missed,
            missed: pace.missed,
            unstarted: PaceStats::unstarted(pace),
            overloaded: pace.is_overloaded(),
            service_us: LatencyFigures::of(&pace.service),
            service_stddev_us: pace.service.stddev_us(),
            service_series: Series::of(&pace.service),
            service_launches: SideLatency::of(&pace.service).launches,
            wait_cpu_percent: pace.report.map(|report| 100.0 * report.wait_cpu_us / report.wall_us.max(1.0)),
            worst_start_us: pace.report.map(|report| report.worst_start_us),
        }
    })
}
