//! Why launches of one run differ: what coincides with the slow ones and not with the fast ones.

use super::super::load::READING_US;
use super::super::window::{Watched, watched};
use super::super::{Advice, Effort, Evidence, is_heat};
use crate::backends::Backend;
use crate::event::{Setting, SettingOutcome};
use crate::store::{Run, Store};

/// Share of the slowdown that a lower clock must explain to be named.
const EXPLAINS: f64 = 0.33;
/// Degrees by which slow launches must be warmer, °C.
const WARMER_C: f64 = 4.0;
/// Number of additional cores that other processes must take in slow launches.
const CORES: f64 = 0.3;
/// Minimum factor by which launches are slower whose threads share cores that they had to themselves in fast
/// ones.
const SHARED_CORES: f64 = 1.25;

/// What coincides with slow launches.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// A lower clock.
    Clock(Evidence),
    /// A higher temperature.
    Heat(Evidence),
    /// Other processes taking cores.
    Others(Evidence),
    /// Nothing that was read: threads of the backend that wait for each other, placed on shared or on
    /// separate cores.
    Placement(Evidence),
}

impl Cause {
    /// What was observed.
    pub fn evidence(&self) -> Evidence {
        let (Self::Clock(evidence) | Self::Heat(evidence) | Self::Others(evidence) | Self::Placement(evidence)) = self;
        evidence.clone()
    }

    /// What to do about it.
    pub fn remedy(&self, run: &Run) -> Advice {
        let backend = run.plan.backend;
        let advice = |action: &str, why: &str, snippets: Vec<String>| Advice {
            action: action.to_owned(),
            why: why.to_owned(),
            effort: Effort::Setting,
            snippets,
        };
        match self {
            Self::Clock(_) => advice(
                "hold the clocks: a fixed governor on this machine, --set perf_profile=burst on an HTP, and a pause before each launch",
                "slow launches ran at a lower clock",
                vec![format!("qnnscope run MODEL -b {backend} --cool-down")],
            ),
            Self::Heat(_) => advice(
                "let it cool before each launch",
                "slow launches ran warmer than fast ones",
                vec![format!("qnnscope run MODEL -b {backend} --cool-down")],
            ),
            Self::Others(_) => advice(
                "stop the other processes, or wait until they finish",
                "slow launches had to share the CPU; threads that wait for each other suffer most, so a run on one core (--pin \
                 0) is slower but repeats better",
                if backend == Backend::Cpu {
                    vec![format!("qnnscope run MODEL -b {backend} --pin 0")]
                } else {
                    Vec::new()
                },
            ),
            Self::Placement(_) => advice(
                "give each compute thread its own core, and the calling thread that of the first (--pin spread)",
                "the CPU backend's threads spin while they wait for each other; a calling thread on the core of a \
                 spinning one, or two threads on sibling cores, take twice as long for the whole life of the process",
                vec![
                    format!("qnnscope run MODEL -b {backend} --pin spread"),
                    format!("qnnscope run MODEL -b {backend} --launches 10"),
                ],
            ),
        }
    }
}

/// Launches in two groups, split where neighbouring medians are furthest apart.
struct Groups {
    /// True for slow launches, in launch order.
    slow: Vec<bool>,
    /// Slow launches take this many times as long.
    factor: f64,
}

impl Groups {
    fn of(medians_us: &[f64]) -> Option<Self> {
        let mut sorted = medians_us.to_vec();
        sorted.sort_by(f64::total_cmp);
        let gap = sorted.windows(2).max_by(|a, b| (a[1] / a[0]).total_cmp(&(b[1] / b[0])))?;
        let slow: Vec<bool> = medians_us.iter().map(|us| *us >= gap[1]).collect();
        let mean = |wanted: bool| {
            let group: Vec<f64> =
                medians_us.iter().zip(&slow).filter(|(_, is)| **is == wanted).map(|(us, _)| us.ln()).collect();
            group.iter().sum::<f64>() / group.len() as f64
        };
        let factor = (mean(true) - mean(false)).exp();
        Some(Self { slow, factor })
    }

    /// Means of both groups, fast and slow, if the groups do not overlap in these values.
    fn parted(&self, values: &[Option<f64>]) -> Option<(f64, f64)> {
        let of = |wanted: bool| -> Option<Vec<f64>> {
            values.iter().zip(&self.slow).filter(|(_, slow)| **slow == wanted).map(|(value, _)| *value).collect()
        };
        let (fast, slow) = (of(false)?, of(true)?);
        let range =
            |values: &[f64]| values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
        let (fast_range, slow_range) = (range(&fast), range(&slow));
        let apart = fast_range.1 < slow_range.0 || slow_range.1 < fast_range.0;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        apart.then(|| (mean(&fast), mean(&slow)))
    }
}

/// The likely cause, the one that explains most taking precedence; `None` if nothing coincides with the slow
/// launches.
pub fn cause(store: &Store, run: &Run, medians_us: &[f64]) -> Option<Cause> {
    let windows: Vec<(u64, u64)> = run.service().windows_us().to_vec();
    if windows.len() != medians_us.len() {
        return None;
    }
    let groups = Groups::of(medians_us)?;
    let means = |counter: &Watched<'_>| -> Vec<Option<f64>> {
        windows.iter().map(|(from_us, to_us)| counter.mean((from_us + READING_US).min(*to_us), *to_us)).collect()
    };
    let others = others(store, run, &groups, &means);
    let clock = || clock(store, run, &groups, &means);
    let heat = || {
        watched(store, run).filter(|counter| is_heat(&counter.info().id)).find_map(|counter| {
            let (fast, slow) = groups.parted(&means(&counter)).filter(|(fast, slow)| slow - fast >= WARMER_C)?;
            let text =
                format!("{} was {slow:.0} °C in the slow launches, {fast:.0} °C in the fast ones", counter.label());
            Some(Cause::Heat(Evidence::at(text, counter.place())))
        })
    };
    others.or_else(clock).or_else(heat).or_else(|| placement(run, &groups))
}

fn others(
    store: &Store,
    run: &Run,
    groups: &Groups,
    means: &impl Fn(&Watched<'_>) -> Vec<Option<f64>>,
) -> Option<Cause> {
    let local = run.plan.device == "local";
    let busy = watched(store, run).find(|c| c.info().id == if local { "host.cpu.busy" } else { "cpu.busy" })?;
    let cores = watched(store, run).find(|c| c.info().id == "host.load.1m").and_then(|load| load.info().maximum)?;
    let own = own_cores(run);
    let whole = run.cpu_utilization_percent().map(|percent| percent / 100.0);
    let taken: Vec<Option<f64>> = means(&busy)
        .into_iter()
        .enumerate()
        .map(|(at, busy)| Some(busy? / 100.0 * cores - own.get(at).copied().flatten().or(whole)?))
        .collect();
    let (fast, slow) = groups.parted(&taken).filter(|(fast, slow)| slow - fast >= CORES)?;
    let text = format!(
        "other processes kept {:.1} of {cores:.0} cores busy during the slow launches, {:.1} during the fast ones",
        slow.max(0.0),
        fast.max(0.0)
    );
    Some(Cause::Others(Evidence::at(text, busy.place())))
}

fn clock(
    store: &Store,
    run: &Run,
    groups: &Groups,
    means: &impl Fn(&Watched<'_>) -> Vec<Option<f64>>,
) -> Option<Cause> {
    let clocks =
        watched(store, run).filter(|counter| counter.info().unit == "MHz" || counter.info().id.contains(".freq"));
    let lower = clocks.filter_map(|counter| {
        let (fast, slow) = groups.parted(&means(&counter)).filter(|(fast, slow)| 0.0 < *slow && slow < fast)?;
        let explains = (fast / slow).ln() / groups.factor.ln();
        (explains >= EXPLAINS).then_some((explains, counter, fast, slow))
    });
    let (_, counter, fast, slow) = lower.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let text =
        format!("the clock {} was {slow:.0} MHz in the slow launches, {fast:.0} MHz in the fast ones", counter.label());
    Some(Cause::Clock(Evidence::at(text, counter.place())))
}

/// CPU use of each launch, in cores.
fn own_cores(run: &Run) -> Vec<Option<f64>> {
    run.launches.iter().map(|launch| launch.cpu_utilization_percent().map(|percent| percent / 100.0)).collect()
}

/// Applies if nothing else coincides and the backend runs on threads of this process that were not pinned.
fn placement(run: &Run, groups: &Groups) -> Option<Cause> {
    let is_placed = |setting: &Setting| {
        setting.key == "--pin" && setting.value != "free" && setting.outcome == SettingOutcome::Applied
    };
    if run.plan.backend != Backend::Cpu || groups.factor < SHARED_CORES || run.settings.iter().any(is_placed) {
        return None;
    }
    let own = own_cores(run);
    let of = |wanted: bool| {
        let values: Vec<f64> =
            own.iter().zip(&groups.slow).filter(|(_, slow)| **slow == wanted).filter_map(|(own, _)| *own).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let text = match of(false).zip(of(true)) {
        Some((fast, slow)) if run.launches.len() == groups.slow.len() => format!(
            "likely the placement of the backend's threads: no clock, temperature or other process correlates with the slow launches; its threads \
             kept {slow:.1} cores busy in those and {fast:.1} in the fast ones"
        ),
        _ => "likely the placement of the backend's threads: no sampled clock, temperature or other process correlates with the slow launches"
            .to_owned(),
    };
    Some(Cause::Placement(Evidence::new(text)))
}
