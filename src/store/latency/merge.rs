//! Merges the latencies of several parts, and handles latencies that each represent several inferences.

use super::LatencyStats;

impl LatencyStats {
    /// Adds one inference that represents `times` of them, for thinned latencies.
    pub fn push_for(&mut self, times: u64, start_us: u64, latency_ns: u64) {
        self.push(start_us, latency_ns);
        let more = times.saturating_sub(1);
        if more > 0 {
            let _ = self.histogram.record_n(latency_ns.max(1), u32::try_from(more).unwrap_or(u32::MAX));
            self.moments.push_for(more, latency_ns);
            self.launches.push_for(more, latency_ns);
            self.weight = self.weight.max(times);
        }
    }

    /// Adds another part of the same phase; its launches stay separate, and the time before it is not
    /// counted. In a thinned part, the kept latencies represent all.
    pub fn merge(&mut self, part: &Self) {
        for launch in part.launches() {
            self.interrupt();
            for (start_us, latency_us) in launch.timed() {
                self.push_for(part.stride(), start_us, nanoseconds(latency_us));
            }
        }
        if !part.is_empty() {
            self.moments.widen(&part.moments);
        }
    }
}

/// Converts a stored latency back to nanoseconds, for pushing.
pub fn nanoseconds(latency_us: f32) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency is positive and below 2^53")]
    let ns = (f64::from(latency_us) * 1000.0).round() as u64;
    ns
}
