//! What bounds a run and its layers.

mod account;
mod conditions;
mod layers;

pub use account::Share;

use super::Finding;
use super::course::{blocks, step, trend};
use super::heat::HeldBack;
use super::roofline::Roofline;
use crate::backends::Backend;
use crate::store::{Run, Store};
use serde::Serialize;

/// Minimum relative increase of latency during a run that counts as slower.
const SLOWER: f64 = 0.05;

/// What time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Arithmetic.
    Compute,
    /// Moving bytes.
    MemoryBandwidth,
    /// Starting and synchronising ops: short ones, and the time between ops.
    OpOverhead,
    /// Ops that take long yet compute and move data far below the backend's best.
    SlowOps,
    /// Conversions of types and layouts.
    Conversions,
    /// The call into the accelerator: transport, queueing, wake-up.
    CallOverhead,
    /// CPU work before and after that of the accelerator.
    HostProcessing,
    /// Other processes on the same cores.
    Contention,
    /// Heat: throttled clocks or cooling.
    Heat,
    /// Time the backend does not attribute.
    Unknown,
}

impl Bound {
    /// Human-readable name.
    pub fn text(self) -> &'static str {
        match self {
            Self::Compute => "computing",
            Self::MemoryBandwidth => "moving data",
            Self::OpOverhead => "op overhead",
            Self::SlowOps => "ops far below the best rate seen",
            Self::Conversions => "type and layout conversions",
            Self::CallOverhead => "the call into the accelerator",
            Self::HostProcessing => "CPU work before and after the call",
            Self::Contention => "waiting for other processes",
            Self::Heat => "thermal throttling",
            Self::Unknown => "not told apart",
        }
    }
}

/// What bounds a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// The largest part of an inference, or the external factor that determines its time; `None` if nothing
    /// stands out or the data does not show it.
    pub main: Option<Bound>,
    /// Parts of an inference's time, largest first. Empty if nothing is known.
    pub shares: Vec<Share>,
    /// What data would show more.
    pub would_tell: Vec<String>,
    /// By row of the op table; `None` if unknown.
    pub layers: Vec<Option<Bound>>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// Determines what bounds a run; empty before its first figures.
pub fn bounds(store: &Store, run: &Run, roofline: &Roofline) -> Bounds {
    let layers = layers::classified(run, roofline);
    let (shares, mut would_tell) = account::account(run, &layers);
    let blocks = blocks(run.service());
    let slower = trend(&blocks).is_some_and(|trend| trend.change >= SLOWER)
        || step(&blocks).is_some_and(|step| step.after_us >= step.before_us * (1.0 + SLOWER));
    let heat = conditions::heat(store, run, &blocks, slower);
    let contention = conditions::contention(store, run);
    // CPU times measured while other processes used the cores reflect those processes, not the model.
    let crowded = contention.is_some() && run.plan.backend == Backend::Cpu;
    if crowded {
        would_tell.push("measure on an idle machine: waiting for cores hides what bounds the model".to_owned());
    }
    let main = match () {
        () if crowded => Some(Bound::Contention),
        () if heat.is_some() && slower && !run.plan.simulated => Some(Bound::Heat),
        () => account::main(&shares),
    };
    let mut findings = Vec::new();
    if !crowded {
        findings.extend(account::finding(run, &shares, account::main(&shares)));
    }
    findings.extend(account::conversions(run, &layers, main));
    findings.extend(account::ddr(store, run));
    findings.extend(layers::hottest(run, roofline, &layers));
    findings.extend(heat);
    findings.extend(conditions::clocks(store, run));
    findings.extend(contention);
    findings.extend(conditions::cold_start(run));
    findings.extend(conditions::fallback(store, run));
    Bounds { main, shares, would_tell, layers, findings }
}

/// How a device was throttled, in one sentence.
pub(super) fn held_back_text(run: &Run, held: &HeldBack<'_>) -> String {
    let label = &held.counter.info().label;
    let unit = match held.counter.info().unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let of = held.counter.info().maximum.map_or_else(String::new, |maximum| format!(" of {maximum:.0}"));
    if held.from_start {
        return format!("{label} was at {:.0}{of}{unit} when measuring began, {:.0} at most", held.before, held.after);
    }
    let start_us = run.clean.window_us().map_or(run.started_us, |(from_us, _)| from_us);
    let when = if held.since_us >= start_us {
        format!("{:.1} s into the clean phase", (held.since_us - start_us) as f64 / 1e6)
    } else {
        "before the clean phase".to_owned()
    };
    format!("{label} went from {:.0} to {:.0}{of}{unit}, starting {when}", held.before, held.after)
}
