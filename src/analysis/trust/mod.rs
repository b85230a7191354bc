//! Whether the figures of a run can be trusted, and why not.

mod cause;
mod conditions;
mod launches;
mod samples;
mod steadiness;

use super::course::{Block, blocks, dependence};
use super::heat::{HeldBack, held_back};
use super::load::{Load, load};
use super::{Evidence, Finding, FindingKind, Severity};
use crate::store::{LatencyStats, Launch, Run, Store, nanoseconds};
use serde::Serialize;

/// How far the latencies of a run can be trusted; also the weight of a single reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustVerdict {
    /// Nothing casts doubt on them.
    Trusted,
    /// They hold for this launch; another process may be faster or slower throughout.
    WithinLaunch,
    /// They hold, subject to the reasons.
    WithCare,
    /// They do not describe what was requested.
    Not,
}

/// Why figures are less certain than they look, or what to know about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// Its effect on the verdict.
    pub weight: TrustVerdict,
    /// What was found.
    pub finding: Finding,
}

/// A verdict with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Trust {
    /// The verdict.
    pub verdict: TrustVerdict,
    /// Its reasons, heaviest first.
    pub reasons: Vec<Reason>,
    /// What could not be judged, each with its reason.
    pub not_judged: Vec<String>,
}

impl TrustVerdict {
    /// Human-readable name.
    pub fn text(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::WithinLaunch => "trusted within this launch",
            Self::WithCare => "with care",
            Self::Not => "not as they are",
        }
    }
}

impl Reason {
    /// A reason; its severity follows from its weight.
    fn new(weight: TrustVerdict, id: &'static str, title: String, evidence: Vec<Evidence>) -> Self {
        let severity = match weight {
            TrustVerdict::Trusted | TrustVerdict::WithinLaunch => Severity::Info,
            TrustVerdict::WithCare => Severity::Warning,
            TrustVerdict::Not => Severity::Problem,
        };
        Self { weight, finding: Finding::new(id, FindingKind::Trust, severity, title, evidence) }
    }
}

/// What the reasons are derived from, computed once for all of them.
struct Seen<'a> {
    store: &'a Store,
    run: &'a Run,
    /// Its launches, one by one.
    parts: Vec<Part>,
    held_back: Vec<HeldBack<'a>>,
    load: Result<Load<'a>, String>,
    dependence: Option<f64>,
}

/// A single launch: launches fall on different levels, which is not a change within one of them.
struct Part {
    /// ` (launch 2 of 3)`, or empty if there is only one.
    which: String,
    latency: LatencyStats,
    blocks: Vec<Block>,
}

impl Part {
    fn of(run: &Run) -> Vec<Self> {
        let service = run.service();
        let launches = service.launches();
        let of = launches.len();
        let part = |launch: &Launch<'_>| {
            let mut latency = LatencyStats::default();
            let times = service.stride();
            launch.timed().for_each(|(start_us, us)| latency.push_for(times, start_us, nanoseconds(us)));
            let which = if of > 1 { format!(" (launch {} of {of})", launch.index + 1) } else { String::new() };
            Self { which, blocks: blocks(&latency), latency }
        };
        launches.iter().map(part).collect()
    }
}

/// The verdict on a run's latencies; `None` while the clean phase has none.
pub fn trust(store: &Store, run: &Run) -> Option<Trust> {
    if run.clean.is_empty() {
        return None;
    }
    let seen = Seen {
        store,
        run,
        parts: Part::of(run),
        held_back: held_back(store, run),
        load: load(store, run),
        dependence: None,
    };
    // Of the launch whose neighbouring inferences are most alike.
    let dependence = seen.parts.iter().filter_map(|part| dependence(&part.latency)).reduce(f64::max);
    let seen = Seen { dependence, ..seen };
    let mut reasons = Vec::new();
    let mut not_judged = Vec::new();
    if run.plan.simulated {
        // How steadily the emulator runs says nothing about a device.
        reasons.push(conditions::simulated(run));
    } else {
        steadiness::judge(&seen, &mut reasons, &mut not_judged);
        samples::judge(&seen, &mut reasons);
        launches::judge(&seen, &mut reasons);
        conditions::judge(&seen, &mut reasons, &mut not_judged);
    }
    conditions::whole(&seen, &mut reasons);
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weight));
    let verdict = reasons.iter().map(|reason| reason.weight).max().unwrap_or(TrustVerdict::Trusted);
    Some(Trust { verdict, reasons, not_judged })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Made, only, steady};
    use crate::backends::Backend;

    #[test]
    fn a_steady_run_on_a_quiet_machine_is_trusted_without_a_word() {
        let store = Made::local(Backend::Cpu)
            .first(1500.0)
            .launches(vec![steady(10_000.0, 5.0, 300); 3])
            .runner_cores(1.0)
            .host_counter("host.cpu.busy", Some(100.0), |_| 14.0)
            .host_counter("host.load.1m", Some(8.0), |_| 1.0)
            .store();
        let trust = trust(&store, only(&store)).unwrap();
        assert_eq!(trust, Trust { verdict: TrustVerdict::Trusted, reasons: Vec::new(), not_judged: Vec::new() });
    }

    #[test]
    fn nothing_measured_has_no_verdict() {
        let store = Made::local(Backend::Cpu).first(10.0).store();
        assert_eq!(trust(&store, only(&store)), None);
    }

    #[test]
    fn the_weightiest_reason_decides_and_comes_first() {
        let mut latencies = steady(1000.0, 5.0, 200);
        latencies[100..].iter_mut().for_each(|us| *us *= 2.0);
        let store = Made::local(Backend::Cpu).clean(latencies).confound("screen_on", "the screen is on").store();
        let trust = trust(&store, only(&store)).unwrap();
        assert_eq!(trust.verdict, TrustVerdict::Not);
        let weights: Vec<TrustVerdict> = trust.reasons.iter().map(|reason| reason.weight).collect();
        assert!(weights.len() >= 2 && weights.is_sorted_by(|a, b| a >= b), "{weights:?}");
        assert_eq!(trust.reasons[0].finding.severity, Severity::Problem);
    }
}
