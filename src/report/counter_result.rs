//! Counters in documents.

use crate::store::{CounterSeries, SamplerState, SamplingGap, Store};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counter {
    id: String,
    unit: String,
    mean: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    samples: u64,
    unavailable: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceCounters {
    device: String,
    rate_hz: Option<f64>,
    planned_rate_hz: Option<f64>,
    mean_rate_hz: Option<f64>,
    gaps: Vec<SamplingGapResult>,
    gaps_not_listed: u64,
    late_ticks: u64,
    missed_ticks: u64,
    cpu_us_per_tick: Option<f64>,
    clock_offset_us: Option<i64>,
    clock_uncertainty_us: Option<u64>,
    counters: Vec<Counter>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct SamplingGapResult {
    seconds: f64,
    lasts: bool,
    reason: String,
}

/// The figures of a counter.
pub fn counter(series: &CounterSeries) -> Counter {
    let summary = series.summary();
    Counter {
        id: series.info.id.clone(),
        unit: series.info.unit.clone(),
        mean: summary.map(|s| s.0),
        min: summary.map(|s| s.1),
        max: summary.map(|s| s.2),
        samples: series.count(),
        unavailable: series.info.unavailable.clone(),
    }
}

/// Counters of every device that was sampled.
pub fn device_counters(store: &Store) -> Vec<DeviceCounters> {
    let all = store.device_counters();
    let mut devices: Vec<&str> = all.series().iter().map(|series| series.device.as_str()).collect();
    devices.dedup();
    devices.sort_unstable();
    devices.dedup();
    let gap = |gap: &SamplingGap| SamplingGapResult {
        seconds: gap.to_us.unwrap_or(store.now_us()).saturating_sub(gap.from_us) as f64 / 1e6,
        lasts: gap.to_us.is_none(),
        reason: gap.reason.clone(),
    };
    let of = |device: &str| {
        let sampler = all.sampler(device);
        let report = sampler.and_then(|sampler| sampler.report.as_ref());
        let clock = sampler.and_then(|sampler| sampler.clock.as_ref());
        let counters = all.series().iter().filter(|series| series.device == device);
        DeviceCounters {
            device: device.to_owned(),
            rate_hz: report.map(|report| report.rate_hz),
            planned_rate_hz: sampler
                .and_then(|sampler| sampler.period_us)
                .filter(|us| *us > 0)
                .map(|us| 1e6 / us as f64),
            mean_rate_hz: sampler.and_then(SamplerState::mean_rate_hz),
            gaps: sampler.map_or_else(Vec::new, |sampler| sampler.gaps.iter().map(gap).collect()),
            gaps_not_listed: sampler.map_or(0, |sampler| sampler.gaps_dropped),
            late_ticks: sampler.map_or(0, |sampler| sampler.late),
            missed_ticks: sampler.map_or(0, |sampler| sampler.missed),
            cpu_us_per_tick: report.and_then(|report| report.cpu_us_per_tick),
            clock_offset_us: clock.map(|clock| clock.offset_us),
            clock_uncertainty_us: clock.map(|clock| clock.uncertainty_us),
            counters: counters.map(|series| counter(&series.series)).collect(),
        }
    };
    devices.into_iter().map(of).collect()
}
