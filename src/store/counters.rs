//! Time series of counters, bounded by age.

use super::history::{History, Span};
use super::sampling::{FRESH_PERIODS, FRESH_US, SamplerState};
use crate::event::{
    ClockAligned, CounterGap, CounterInfo, CounterSample, CounterSet, Gap, SamplerEnded, SamplerReport,
};
use std::collections::{BTreeMap, VecDeque};

/// Points kept per counter: ten minutes at 10 Hz.
pub const SERIES_CAPACITY: usize = 6_000;

/// One counter's recent values and overall extremes.
#[derive(Debug, Clone)]
pub struct CounterSeries {
    /// What it is.
    pub info: CounterInfo,
    points: VecDeque<(u64, Option<f64>)>,
    dropped: u64,
    history: History,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
}

impl CounterSeries {
    /// An empty series.
    pub fn new(info: CounterInfo) -> Self {
        Self {
            info,
            points: VecDeque::new(),
            dropped: 0,
            history: History::default(),
            count: 0,
            sum: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }

    /// Adds a tick; `None` is a gap.
    pub fn push(&mut self, t_us: u64, value: Option<f64>) {
        if self.points.len() == SERIES_CAPACITY {
            self.points.pop_front();
            self.dropped += 1;
        }
        let value = value.filter(|v| v.is_finite());
        self.points.push_back((t_us, value));
        if let Some(value) = value {
            self.count += 1;
            self.sum += value;
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.history.push(t_us, value);
        }
    }

    /// Recent points, oldest first: (host monotonic microseconds, value).
    pub fn points(&self) -> &VecDeque<(u64, Option<f64>)> {
        &self.points
    }

    /// Points that no longer fit; only [`Self::history`] covers them.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The whole course since the start of the session, in intervals that grow with it.
    pub fn history(&self) -> &[Span] {
        self.history.spans()
    }

    /// Mean from `from_us` up to `to_us`, host monotonic microseconds, with the resolution of an interval; `None`
    /// without values.
    pub fn mean_between(&self, from_us: u64, to_us: u64) -> Option<f64> {
        self.history.mean(from_us, to_us)
    }

    /// Newest value; `None` if the newest tick is a gap.
    pub fn latest(&self) -> Option<f64> {
        self.points.back().and_then(|point| point.1)
    }

    /// Mean, smallest and largest value of the whole session.
    pub fn summary(&self) -> Option<(f64, f64, f64)> {
        (self.count > 0).then(|| (self.sum / self.count as f64, self.min, self.max))
    }

    /// Values seen.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// A device's counter.
#[derive(Debug, Clone)]
pub struct DeviceSeries {
    /// Id of the device.
    pub device: String,
    /// Planned time between two readings, microseconds; 0: as fast as possible.
    pub period_us: u64,
    /// Why it has no value now.
    pub gap: Option<Gap>,
    /// Its values.
    pub series: CounterSeries,
}

impl DeviceSeries {
    /// Age of the newest reading at a given time, microseconds, if too old to be current: older than three periods, or
    /// while the device is not sampled. Also `None` if nothing was read before that time.
    pub fn old_us(&self, now_us: u64) -> Option<u64> {
        let points = self.series.points();
        let end = points.partition_point(|(t_us, _)| *t_us <= now_us);
        let age_us = now_us.saturating_sub(points.get(end.checked_sub(1)?)?.0);
        (age_us > (self.period_us * FRESH_PERIODS).max(FRESH_US)).then_some(age_us)
    }
}

/// Counters that are read together.
#[derive(Debug)]
struct Set {
    device: String,
    period_us: u64,
    /// Indices of the series.
    series: Vec<usize>,
}

/// Counters of all devices.
#[derive(Debug, Default)]
pub struct DeviceCounters {
    series: Vec<DeviceSeries>,
    /// Indices of the series of each set.
    sets: BTreeMap<u32, Set>,
    samplers: BTreeMap<String, SamplerState>,
}

impl DeviceCounters {
    /// Applies a declaration. A known counter continues where it was.
    pub fn declare(&mut self, set: &CounterSet) {
        let mut indices = Vec::with_capacity(set.counters.len());
        for info in &set.counters {
            let known =
                self.series.iter().position(|known| known.device == set.device && known.series.info.id == info.id);
            let index = known.unwrap_or(self.series.len());
            if known.is_none() {
                let series = CounterSeries::new(info.clone());
                self.series.push(DeviceSeries { device: set.device.clone(), period_us: 0, gap: None, series });
            }
            if let Some(known) = self.series.get_mut(index) {
                known.series.info = info.clone();
                (known.period_us, known.gap) = (set.period_us, None);
            }
            indices.push(index);
        }
        let (device, period_us) = (set.device.clone(), set.period_us);
        self.sets.insert(set.set, Set { device, period_us, series: indices });
        self.samplers.entry(set.device.clone()).or_default().ended = None;
    }

    /// Takes a tick.
    pub fn push(&mut self, sample: &CounterSample) {
        let Some(set) = self.sets.get(&sample.set) else { return };
        if let Some(sampler) = self.samplers.get_mut(&set.device) {
            sampler.tick(sample.set, set.period_us, sample.t_us);
        }
        for (index, value) in set.series.iter().zip(&sample.values) {
            if let Some(known) = self.series.get_mut(*index) {
                known.series.push(sample.t_us, *value);
            }
        }
    }

    /// Applies the start or end of a gap.
    pub fn gap(&mut self, gap: &CounterGap) {
        let index = self.sets.get(&gap.set).and_then(|set| set.series.get(usize::try_from(gap.counter).ok()?));
        if let Some(known) = index.and_then(|index| self.series.get_mut(*index)) {
            known.gap = gap.reason;
        }
    }

    /// Takes a report.
    pub fn report(&mut self, report: &SamplerReport) {
        let state = self.samplers.entry(report.device.clone()).or_default();
        state.late = state.late.saturating_add(report.late);
        state.missed = state.missed.saturating_add(report.missed);
        state.report = Some(report.clone());
    }

    /// Applies a clock measurement.
    pub fn align(&mut self, clock: &ClockAligned) {
        self.samplers.entry(clock.device.clone()).or_default().clock = Some(clock.clone());
    }

    /// Takes the end of a sampler.
    pub fn end(&mut self, ended: &SamplerEnded) {
        let state = self.samplers.entry(ended.device.clone()).or_default();
        if let Some(reason) = &ended.reason {
            state.interrupt(reason);
        }
        state.ended = Some(ended.clone());
    }

    /// Counters in the order of their declaration.
    pub fn series(&self) -> &[DeviceSeries] {
        &self.series
    }

    /// How well a device is sampled; `None` if it is not.
    pub fn sampler(&self, device: &str) -> Option<&SamplerState> {
        self.samplers.get(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: &str) -> CounterInfo {
        CounterInfo { id: id.to_owned(), label: id.to_owned(), unit: String::new(), maximum: None, unavailable: None }
    }

    fn set(set: u32, device: &str, ids: &[&str]) -> CounterSet {
        let counters = ids.iter().map(|id| info(id)).collect();
        CounterSet { set, device: device.to_owned(), period_us: 50_000, counters }
    }

    #[test]
    fn sets_of_two_devices_live_side_by_side_and_counters_may_move() {
        let mut counters = DeviceCounters::default();
        counters.declare(&set(1, "a", &["x", "y"]));
        counters.declare(&set(2, "b", &["x"]));
        let sample =
            |set, t_us, values: &[f64]| CounterSample { set, t_us, values: values.iter().map(|v| Some(*v)).collect() };
        counters.push(&sample(1, 10, &[1.0, 2.0]));
        counters.push(&sample(2, 20, &[3.0]));
        counters.push(&sample(9, 20, &[9.0]));
        // y is slow: it moves to its own set and keeps its values.
        counters.declare(&set(3, "a", &["x"]));
        counters.declare(&set(4, "a", &["y"]));
        counters.gap(&CounterGap { set: 4, counter: 0, reason: Some(Gap::Refused) });
        counters.push(&CounterSample { set: 4, t_us: 30, values: vec![None] });
        let of = |device: &str, id: &str| {
            counters.series().iter().find(|known| known.device == device && known.series.info.id == id).unwrap()
        };
        assert_eq!(counters.series().len(), 3);
        assert_eq!(of("b", "x").series.latest(), Some(3.0));
        assert_eq!(of("a", "y").series.points().iter().copied().collect::<Vec<_>>(), [(10, Some(2.0)), (30, None)]);
        assert_eq!((of("a", "y").gap, of("a", "x").gap), (Some(Gap::Refused), None));
    }

    #[test]
    fn a_value_is_old_after_three_periods() {
        let mut counters = DeviceCounters::default();
        counters.declare(&CounterSet { period_us: 1_000_000, ..set(1, "a", &["x"]) });
        assert_eq!(counters.series()[0].old_us(9_000_000), None, "nothing was read yet");
        counters.push(&CounterSample { set: 1, t_us: 1_000_000, values: vec![Some(1.0)] });
        let old = |now_us| counters.series()[0].old_us(now_us);
        assert_eq!((old(4_000_000), old(4_000_001)), (None, Some(3_000_001)));
        counters.declare(&set(2, "a", &["x"]));
        let old = |now_us| counters.series()[0].old_us(now_us);
        assert_eq!((old(1_500_000), old(1_500_001)), (None, Some(500_001)), "fast ones come in bursts");
    }
}
