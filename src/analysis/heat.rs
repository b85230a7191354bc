//! Whether a device throttled, as shown by cooling states, clock limits, or heat that correlates with
//! latency.

use super::course::Block;
use super::window::{Watched, watched};
use crate::backends::Backend;
use crate::store::{LatencyStats, Run, Store};

/// Relative drop from which a clock limit counts as lowered.
const LIMIT_FALL: f64 = 0.05;
/// Rank correlation above which latency correlates with a counter.
const GOES_WITH: f64 = 0.8;
/// Minimum number of blocks for a correlation.
const MIN_PAIRS: usize = 8;
/// Minimum temperature rise that may matter, °C.
const MIN_RISE_CELSIUS: f64 = 3.0;
/// Minimum relative clock drop that may matter.
const MIN_FALL: f64 = 0.03;

/// A counter that shows throttling.
pub struct HeldBack<'a> {
    /// The counter.
    pub counter: Watched<'a>,
    /// Time of the first such reading, host monotonic microseconds.
    pub since_us: u64,
    /// True if this was already so when measuring began.
    pub from_start: bool,
    /// Value before throttling.
    pub before: f64,
    /// Most extreme value while measuring.
    pub after: f64,
    /// True if it throttles hardware that the run's backend uses.
    pub concerns_backend: bool,
}

/// Counters that showed throttling while the run was measured (during the clean phase or, before that, the
/// run so far), earliest first.
pub fn held_back<'a>(store: &'a Store, run: &'a Run) -> Vec<HeldBack<'a>> {
    let (from_us, to_us) = measured_us(store, run);
    let mut found: Vec<HeldBack<'a>> =
        watched(store, run).filter_map(|counter| one(run, counter, from_us, to_us)).collect();
    found.sort_by_key(|held| (!held.concerns_backend, held.since_us));
    found
}

/// The subset of [`held_back`] that counts: throttling of hardware that the backend does not use counts only
/// if inferences slowed down.
pub fn that_count<'a>(store: &'a Store, run: &'a Run, slower: bool) -> Vec<HeldBack<'a>> {
    let mut held = held_back(store, run);
    held.retain(|held| held.concerns_backend || slower && !held.from_start);
    held
}

/// When throttling that counts began, host monotonic microseconds. Every report of that moment uses this
/// value.
pub fn throttled_from_us(store: &Store, run: &Run, slower: bool) -> Option<u64> {
    that_count(store, run, slower).iter().map(|held| held.since_us).min().filter(|since_us| *since_us >= run.started_us)
}

/// A point from which a device was throttled.
#[derive(Debug, Clone, PartialEq)]
pub struct ThrottlingMark {
    /// Host monotonic microseconds.
    pub since_us: u64,
    /// The counter that shows it.
    pub label: String,
    /// True if it throttles hardware that the run's backend uses.
    pub concerns_backend: bool,
}

/// When the run's device was throttled, and which counter shows it; counters that concern the backend come
/// first.
pub fn throttling_marks(store: &Store, run: &Run) -> Vec<ThrottlingMark> {
    let mark = |held: HeldBack<'_>| ThrottlingMark {
        since_us: held.since_us,
        label: held.counter.label().to_owned(),
        concerns_backend: held.concerns_backend,
    };
    held_back(store, run).into_iter().map(mark).collect()
}

/// True if any counter that could show throttling was read.
pub fn can_tell(store: &Store, run: &Run) -> bool {
    watched(store, run)
        .any(|counter| (is_state(&counter.info().id) || is_limit(&counter.info().id)) && counter.series.count() > 0)
}

fn is_state(id: &str) -> bool {
    id.starts_with("cooling.") || id.starts_with("service.cooling.") || id == "service.thermal.status"
}

fn is_limit(id: &str) -> bool {
    id.starts_with("cpu.limit") || id == "gpu.freq.limit"
}

/// From the first to the last inference of any phase; if there is none yet, the run so far.
fn measured_us(store: &Store, run: &Run) -> (u64, u64) {
    let windows = [&run.first, &run.warmup, &run.clean, &run.detailed].into_iter().filter_map(LatencyStats::window_us);
    let (from, to) = windows.fold((u64::MAX, 0), |(from, to), window| (from.min(window.0), to.max(window.1)));
    let now_us = run.ended_us.unwrap_or_else(|| store.now_us());
    // Values that the device reports once a second may be up to a second late.
    if to == 0 { (run.started_us, now_us) } else { (from, (to + 1_000_000).min(now_us.max(to))) }
}

fn one<'a>(run: &Run, counter: Watched<'a>, from_us: u64, to_us: u64) -> Option<HeldBack<'a>> {
    let id = counter.info().id.as_str();
    let (state, limit) = (is_state(id), is_limit(id));
    if !state && !limit {
        return None;
    }
    let values = counter.values(run.started_us.min(from_us), to_us);
    let first = values.first()?;
    let before = values.iter().take_while(|(t_us, _)| *t_us <= from_us).last().unwrap_or(first).1;
    // A constant limit may be the manufacturer's policy; one that drops under load is heat.
    let worse = |value: f64| if state { value > before } else { value < before * (1.0 - LIMIT_FALL) };
    let from_start = state && before > 0.0;
    let mut measured = values.iter().filter(|(t_us, _)| *t_us >= from_us);
    let onset = if from_start { values.iter().find(|(_, value)| *value > 0.0) } else { measured.find(|v| worse(v.1)) };
    let since_us = onset?.0;
    let later = values.iter().filter(|(t_us, _)| *t_us >= since_us).map(|(_, value)| *value);
    let after = if state { later.fold(before, f64::max) } else { later.fold(before, f64::min) };
    let concerns_backend = concerns(run.plan.backend, id);
    Some(HeldBack { counter, since_us, from_start, before, after, concerns_backend })
}

/// True if a cooling or limit counter belongs to hardware that the backend computes on.
fn concerns(backend: Backend, id: &str) -> bool {
    let any = |words: &[&str]| words.iter().any(|word| id.contains(word));
    match backend {
        _ if id == "service.thermal.status" || any(&["ddr"]) => true,
        Backend::Htp => any(&["cdsp", "nsp", "npu"]),
        Backend::Gpu => any(&["gpu"]),
        Backend::Cpu => any(&["cpu", "pause"]),
        Backend::Unknown => false,
    }
}

/// A counter that correlates with latency, block by block.
pub struct GoesWith<'a> {
    /// The counter.
    pub counter: Watched<'a>,
    /// Rank correlation, -1 to 1.
    pub correlation: f64,
    /// Mean over the first quarter of the blocks.
    pub first: f64,
    /// Mean over the last quarter.
    pub last: f64,
}

/// The rising temperature or falling clock that correlates best with rising latency.
pub fn slows_with<'a>(store: &'a Store, run: &'a Run, blocks: &[Block]) -> Option<GoesWith<'a>> {
    let candidates = watched(store, run).filter_map(|counter| {
        let id = counter.info().id.as_str();
        let degrees = (id.starts_with("thermal.") || id.starts_with("service.thermal.")) && !id.ends_with(".status");
        let heat = degrees || ["host.temp.max", "gpu.temp", "battery.temp"].contains(&id);
        let clock = ["host.cpu.freq", "gpu.freq", "gpu.freq.mean"].contains(&id) || id.starts_with("cpu.freq");
        if !heat && !clock {
            return None;
        }
        let pairs: Vec<(f64, f64)> = blocks
            .iter()
            .filter_map(|block| Some((block.median_us, counter.mean(block.from_us, block.to_us)?)))
            .collect();
        if pairs.len() < MIN_PAIRS {
            return None;
        }
        let correlation = rank_correlation(&pairs);
        let quarter = (pairs.len() / 4).max(1);
        let mean = |pairs: &[(f64, f64)]| pairs.iter().map(|pair| pair.1).sum::<f64>() / pairs.len() as f64;
        let (first, last) = (mean(&pairs[..quarter]), mean(&pairs[pairs.len() - quarter..]));
        let moved = if heat { last - first >= MIN_RISE_CELSIUS } else { last <= first * (1.0 - MIN_FALL) };
        let agrees = if heat { correlation >= GOES_WITH } else { correlation <= -GOES_WITH };
        (moved && agrees).then_some(GoesWith { counter, correlation, first, last })
    });
    candidates.max_by(|a, b| a.correlation.abs().total_cmp(&b.correlation.abs()))
}

/// Spearman's rank correlation; 0 if one side is constant.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let a = ranks(pairs.iter().map(|pair| pair.0));
    let b = ranks(pairs.iter().map(|pair| pair.1));
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    let scale = (sum(&a, &a) * sum(&b, &b)).sqrt();
    if scale > 0.0 { sum(&a, &b) / scale } else { 0.0 }
}

/// Ranks from 0; equal values share their mean rank.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut at = 0;
    while at < order.len() {
        let equal = order[at..].iter().take_while(|next| values[**next].total_cmp(&values[order[at]]).is_eq()).count();
        let rank = at as f64 + (equal as f64 - 1.0) / 2.0;
        order[at..at + equal].iter().for_each(|index| ranks[*index] = rank);
        at += equal;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::course::blocks;
    use crate::analysis::testing::{Made, moment, only, steady};

    #[test]
    fn a_cooling_state_that_rises_is_found_within_one_reading() {
        let store = Made::on_phone(Backend::Htp)
            .clean(steady(10_000.0, 5.0, 500))
            .phone_counter("cooling.cdsp", Some(7.0), |t_s| if t_s < 3.03 { 0.0 } else { 2.0 })
            .phone_counter("cooling.gpu", Some(7.0), |_| 0.0)
            .phone_counter("cpu.limit.policy0", Some(3000.0), |_| 2000.0)
            .store();
        let held = held_back(&store, only(&store));
        assert_eq!(held.len(), 1, "a limit that always stood is none");
        assert_eq!(held[0].counter.info().id, "cooling.cdsp");
        assert!((moment(3.03)..=moment(3.13)).contains(&held[0].since_us), "{}", held[0].since_us);
        assert!(!held[0].from_start && held[0].concerns_backend && held[0].after > 1.9);
    }

    #[test]
    fn what_holds_back_another_part_is_told_apart() {
        let made = |backend| {
            Made::on_phone(backend)
                .clean(steady(10_000.0, 5.0, 500))
                .phone_counter("gpu.freq.limit", Some(900.0), |t_s| if t_s < 1.0 { 900.0 } else { 500.0 })
                .phone_counter("cooling.thermal-cpufreq-0", Some(9.0), |_| 3.0)
                .store()
        };
        let concerned = |backend| -> Vec<(String, bool, bool)> {
            let store = made(backend);
            let held = held_back(&store, only(&store));
            held.iter().map(|held| (held.counter.info().id.clone(), held.concerns_backend, held.from_start)).collect()
        };
        let (gpu, cpu) = ("gpu.freq.limit".to_owned(), "cooling.thermal-cpufreq-0".to_owned());
        assert_eq!(concerned(Backend::Gpu), [(gpu.clone(), true, false), (cpu.clone(), false, true)]);
        assert_eq!(concerned(Backend::Cpu), [(cpu, true, true), (gpu, false, false)]);
    }

    fn warming(latencies: Vec<f64>, per_second: f64) -> Store {
        let heat = move |t_s: f64| 40.0 + per_second * t_s.max(0.0);
        Made::on_phone(Backend::Htp).clean(latencies).phone_counter("thermal.npu.nsphvx-0", None, heat).store()
    }

    #[test]
    fn latency_that_rises_with_heat_goes_with_it() {
        let rising: Vec<f64> =
            steady(10_000.0, 2.0, 500).iter().enumerate().map(|(i, us)| us * (1.0 + i as f64 / 1500.0)).collect();
        for (latencies, per_second, expected) in
            [(rising.clone(), 5.0, true), (rising, 0.1, false), (steady(10_000.0, 2.0, 500), 5.0, false)]
        {
            let store = warming(latencies, per_second);
            let run = only(&store);
            let found = slows_with(&store, run, &blocks(&run.clean));
            assert_eq!(found.is_some(), expected, "{per_second}");
        }
    }
}
