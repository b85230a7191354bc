//! A paced phase: what was on time, and the time of the inferences alone.

use super::LatencyStats;
use super::bounds::MOST;
use crate::event::{InferenceBatch, PaceReport};
use serde::{Deserialize, Serialize};

/// Clean inferences that started on a schedule. The run's clean latencies count from the planned starts, so that a
/// stall shows in the figures of all inferences delayed by it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PaceStats {
    /// Planned starts a second.
    pub rate_hz: f64,
    /// Wall time of the inferences alone.
    pub service: LatencyStats,
    /// Inferences not done by the next planned start.
    pub missed: u64,
    /// The whole schedule, once the phase has ended.
    pub report: Option<PaceReport>,
}

impl PaceStats {
    /// A phase without inferences yet.
    pub fn new(rate_hz: f64) -> Self {
        Self { rate_hz, service: LatencyStats::default(), missed: 0, report: None }
    }

    /// False for a state that folding events cannot produce.
    pub(super) fn is_sound(&self) -> bool {
        let report = |report: &PaceReport| report.planned < MOST && report.done < MOST;
        self.rate_hz.is_finite()
            && self.rate_hz > 0.0
            && self.missed <= self.service.count()
            && self.service.is_sound()
            && self.report.as_ref().is_none_or(report)
    }

    /// Time from a planned start to the next, microseconds.
    pub fn period_us(&self) -> f64 {
        1e6 / self.rate_hz
    }

    /// Adds a batch, with the latencies from the planned starts added to `latency`.
    pub(super) fn push(&mut self, batch: &InferenceBatch, latency: &mut LatencyStats) {
        let period_ns = self.period_us() * 1e3;
        for ((&start_us, &service_ns), &late_ns) in batch.start_us.iter().zip(&batch.latency_ns).zip(&batch.late_ns) {
            let latency_ns = late_ns.saturating_add(service_ns);
            latency.push(start_us.saturating_sub(late_ns / 1000), latency_ns);
            self.service.push(start_us, service_ns);
            self.missed += u64::from(latency_ns as f64 > period_ns);
        }
    }

    /// Adds how a launch kept its schedule.
    pub(super) fn take(&mut self, report: &PaceReport) {
        self.report = Some(match self.report {
            None => *report,
            Some(known) => PaceReport {
                rate_hz: report.rate_hz,
                planned: known.planned.saturating_add(report.planned),
                done: known.done.saturating_add(report.done),
                wall_us: known.wall_us + report.wall_us,
                waited_us: known.waited_us + report.waited_us,
                wait_cpu_us: known.wait_cpu_us + report.wait_cpu_us,
                worst_start_us: known.worst_start_us.max(report.worst_start_us),
            },
        });
    }

    /// Planned starts whose inference had not even started when the phase ended.
    pub fn unstarted(&self) -> u64 {
        self.report.map_or(0, |report| report.planned.saturating_sub(report.done))
    }

    /// True if the backend was slower than the schedule, so that the queue grew as long as the phase lasted: the mean
    /// inference takes longer than a period.
    pub fn is_overloaded(&self) -> bool {
        self.service.mean_us().is_some_and(|mean| mean > self.period_us())
    }

    /// Inferences a second: those of the schedule where it is kept, for its last period counts whole.
    pub(super) fn throughput_ips(&self, latency: &LatencyStats) -> Option<f64> {
        let span_us = latency.span_us().max(latency.count() as f64 * self.period_us());
        (latency.count() > 0).then(|| latency.count() as f64 * 1e6 / span_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Phase;

    /// Inferences of 20 ms every 10 ms: each waits 10 ms longer than the one before it.
    #[test]
    fn a_stall_is_in_the_figures_of_those_behind_it() {
        let (mut pace, mut latency) = (PaceStats::new(100.0), LatencyStats::default());
        let batch = InferenceBatch {
            phase: Phase::Clean,
            first_index: 0,
            start_us: (0..10).map(|i| 1_000_000 + i * 20_000).collect(),
            latency_ns: vec![20_000_000; 10],
            late_ns: (0..10).map(|i| i * 10_000_000).collect(),
        };
        pace.push(&batch, &mut latency);
        assert_eq!((latency.min_us(), latency.max_us()), (Some(20_000.0), Some(110_000.0)));
        assert_eq!((pace.service.min_us(), pace.service.max_us()), (Some(20_000.0), Some(20_000.0)));
        assert!(pace.is_overloaded());
        assert_eq!(pace.missed, 10);
        let planned: Vec<u64> = latency.timed().map(|(planned_us, _)| planned_us).collect();
        assert_eq!(planned, (0..10).map(|i| 1_000_000 + i * 10_000).collect::<Vec<u64>>());
        assert!((pace.throughput_ips(&latency).unwrap() - 50.0).abs() < 0.1);
    }

    #[test]
    fn a_kept_schedule_has_its_own_rate() {
        let (mut pace, mut latency) = (PaceStats::new(100.0), LatencyStats::default());
        let batch = InferenceBatch {
            phase: Phase::Clean,
            first_index: 0,
            start_us: (0..10).map(|i| i * 10_000).collect(),
            latency_ns: vec![1_000_000; 10],
            late_ns: vec![0; 10],
        };
        pace.push(&batch, &mut latency);
        assert_eq!((pace.missed, pace.is_overloaded(), pace.unstarted()), (0, false, 0));
        assert!((pace.throughput_ips(&latency).unwrap() - 100.0).abs() < 1e-9);
    }
}
