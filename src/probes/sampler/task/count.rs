//! Whether ticks are on schedule, and their cost on the device.

use super::Task;
use crate::event::{Event, SamplerReport};
use std::time::Duration;

/// Minimum time before the files are timed again.
const RETIME_AFTER: Duration = Duration::from_secs(15);

/// Counts since the last report.
#[derive(Debug, Default)]
pub(super) struct Tally {
    ticks: u64,
    late: u64,
    missed: u64,
    since_us: Option<u64>,
    /// CPU time of the main stream's shell at the last report.
    cpu_ns: Option<u64>,
    /// CPU time of the second stream since then, nanoseconds.
    slow_ns: u64,
}

impl Task {
    /// Counts a tick: whether lines were lost, and whether it was on time.
    pub(super) async fn count(&mut self, seq: u64, device_us: u64) {
        if let Some(lost) = self.last_seq.and_then(|last| seq.checked_sub(last + 1)).filter(|lost| *lost > 0) {
            let (source, reason) = (format!("counters of {}", self.device.id()), "lines did not arrive".to_owned());
            self.source.send(None, Event::Lost { source, reason, count: lost }).await;
        }
        self.last_seq = Some(seq);
        self.tally.ticks += 1;
        self.tally.since_us.get_or_insert(device_us);
        let interval = self.last_device_us.replace(device_us).map(|last| device_us.saturating_sub(last));
        // Uptimes alone have steps of 10 ms: too coarse for anything below.
        let resolution = if self.has_epoch { 0 } else { 10_000 };
        if let Some(interval) = interval.filter(|_| self.period_us > 0)
            && interval > self.period_us * 3 / 2 + resolution
        {
            self.tally.late += 1;
            self.tally.missed += (interval + self.period_us / 2) / self.period_us - 1;
        }
    }

    /// Records the CPU time of the second stream's shell and its commands since its start.
    pub(super) fn slow_cost(&mut self, cpu_ns: Option<u64>) {
        let Some(now) = cpu_ns else { return };
        self.tally.slow_ns = self.tally.slow_ns.saturating_add(now.saturating_sub(self.slow_cpu_ns));
        self.slow_cpu_ns = now;
    }

    pub(super) async fn report(&mut self, cpu_ns: Option<u64>) {
        let before = std::mem::take(&mut self.tally);
        self.tally.cpu_ns = cpu_ns;
        self.tally.since_us = self.last_device_us;
        let (Some(since), Some(now)) = (before.since_us, self.last_device_us) else { return };
        if before.ticks == 0 || now <= since {
            // The loop has only just started.
            self.tally = Tally { cpu_ns, ..before };
            return;
        }
        let of_main = cpu_ns.zip(before.cpu_ns).map(|(now, before)| now.saturating_sub(before));
        let used_us = of_main.map(|ns| ns.saturating_add(before.slow_ns) as f64 / 1000.0);
        let report = SamplerReport {
            device: self.device.id().to_owned(),
            ticks: before.ticks,
            late: before.late,
            missed: before.missed,
            rate_hz: before.ticks as f64 * 1e6 / (now - since) as f64,
            cpu_us_per_tick: used_us.map(|us| us / before.ticks as f64),
        };
        self.source.send(None, Event::SamplerReported(report)).await;
        let is_due = self.retimed.is_none_or(|when| when.elapsed() > RETIME_AFTER);
        self.wants_retiming |= before.late * 4 > before.ticks && is_due;
    }
}
