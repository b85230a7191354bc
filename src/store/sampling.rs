//! How well a device is sampled over a session: rate, late ticks, and gaps.

use crate::event::{ClockAligned, SamplerEnded, SamplerReport};

/// How well a device is sampled.
#[derive(Debug, Clone, Default)]
pub struct SamplerState {
    /// The latest report.
    pub report: Option<SamplerReport>,
    /// Late ticks of the whole session.
    pub late: u64,
    /// Planned ticks of the whole session that were missed.
    pub missed: u64,
    /// How the device's clock relates to the host's.
    pub clock: Option<ClockAligned>,
    /// How sampling ended or was interrupted, while that lasts.
    pub ended: Option<SamplerEnded>,
    /// Gaps, oldest first, as far as kept.
    pub gaps: Vec<SamplingGap>,
    /// Stretches that are not kept.
    pub gaps_dropped: u64,
    /// Planned time between two readings of the fastest counters, microseconds; 0: as fast as possible.
    pub period_us: Option<u64>,
    /// Ticks of those.
    ticks: u64,
    /// First and newest sample of the fastest counters, host monotonic microseconds.
    span_us: Option<(u64, u64)>,
    fast_set: Option<u32>,
}

/// A gap in a device's samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingGap {
    /// The last sample before it, host monotonic microseconds.
    pub from_us: u64,
    /// The first sample after it; `None` while it lasts.
    pub to_us: Option<u64>,
    /// Why.
    pub reason: String,
}

/// Maximum number of gaps kept per device.
const MAX_GAPS: usize = 100;
/// A value older than this many periods is not current.
pub const FRESH_PERIODS: u64 = 3;
/// Samples arrive in bursts, whatever their rate: none is old before this, microseconds.
pub const FRESH_US: u64 = 500_000;

impl SamplerState {
    /// Ticks per second over the whole session, including gaps. `None` before the second tick.
    pub fn mean_rate_hz(&self) -> Option<f64> {
        let (first, last) = self.span_us.filter(|(first, last)| last > first)?;
        Some((self.ticks.saturating_sub(1)) as f64 * 1e6 / (last - first) as f64)
    }

    /// Time without samples so far, microseconds; an open gap counts up to `now_us`.
    pub fn gaps_us(&self, now_us: u64) -> u64 {
        self.gaps.iter().map(|gap| gap.to_us.unwrap_or(now_us).saturating_sub(gap.from_us)).sum()
    }

    /// Adds a sample of one of the device's sets.
    pub(super) fn tick(&mut self, set: u32, period_us: u64, t_us: u64) {
        let since = |last: u64| t_us.saturating_sub(last);
        let is_faster = self.period_us.is_none_or(|known| period_us <= known);
        // A set that stopped was replaced by one that is read less often.
        let is_gone = |(_, last): (u64, u64)| since(last) > self.period_us.unwrap_or(0) * FRESH_PERIODS + FRESH_US;
        if self.fast_set != Some(set) && !is_faster && !self.span_us.is_some_and(is_gone) {
            return;
        }
        (self.fast_set, self.period_us) = (Some(set), Some(period_us));
        self.ticks += 1;
        self.span_us = Some((self.span_us.map_or(t_us, |(first, _)| first), t_us));
        if let Some(gap) = self.gaps.last_mut().filter(|gap| gap.to_us.is_none()) {
            gap.to_us = Some(t_us);
        }
    }

    /// No samples follow the last one.
    pub(super) fn interrupt(&mut self, reason: &str) {
        if let Some(open) = self.gaps.last_mut().filter(|gap| gap.to_us.is_none()) {
            // More is known now about the same gap.
            reason.clone_into(&mut open.reason);
            return;
        }
        let Some((_, from_us)) = self.span_us else { return };
        if self.gaps.len() == MAX_GAPS {
            self.gaps.remove(0);
            self.gaps_dropped += 1;
        }
        self.gaps.push(SamplingGap { from_us, to_us: None, reason: reason.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_without_samples_count_and_say_why() {
        let mut state = SamplerState::default();
        for t_us in (1_000_000..=2_000_000).step_by(50_000) {
            state.tick(1, 50_000, t_us);
        }
        assert!((state.mean_rate_hz().unwrap() - 20.0).abs() < 1e-9);
        state.interrupt("nothing came for 3 s");
        state.interrupt("reading /x does not come to an end");
        assert_eq!(state.gaps_us(3_000_000), 1_000_000, "it lasts");
        // Declared again: the numbers of the sets are new. Those that are read once a second do not count as ticks.
        state.tick(5, 50_000, 7_000_000);
        state.tick(6, 1_000_000, 7_000_000);
        state.tick(5, 50_000, 7_050_000);
        let gap = SamplingGap {
            from_us: 2_000_000,
            to_us: Some(7_000_000),
            reason: "reading /x does not come to an end".to_owned(),
        };
        assert_eq!(state.gaps, [gap]);
        assert_eq!(state.gaps_us(9_000_000), 5_000_000);
        assert!((state.mean_rate_hz().unwrap() - 22.0 / 6.05).abs() < 1e-9, "{:?}", state.mean_rate_hz());
        // A slower rate is not a gap.
        state.tick(9, 1_000_000, 9_000_000);
        state.tick(9, 1_000_000, 10_000_000);
        assert_eq!((state.period_us, state.gaps.len()), (Some(1_000_000), 1));
        for _ in 0..300 {
            state.interrupt("again");
            state.tick(9, 1_000_000, 11_000_000);
        }
        assert_eq!((state.gaps.len(), state.gaps_dropped), (100, 201));
    }
}
