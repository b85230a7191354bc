//! What the figures mean: pure functions of the store.

mod bounds;
mod cadence;
pub mod compare;
pub(crate) mod constraints;
mod course;
mod energy;
mod figures;
mod finding;
mod heat;
pub mod launches;
mod like;
mod load;
mod nodes;
mod outliers;
pub mod recommend;
mod roofline;
mod rounds;
pub mod rules;
mod slowdown;
mod summary;
mod sustained;
pub mod tap;
#[cfg(test)]
pub(crate) mod testing;
mod trust;
mod verdicts;
mod visible;
mod window;

pub use bounds::{Bound, Bounds, Share};
pub use cadence::{Cadence, CadencePoint, cadence};
pub use energy::{Energy, NoEnergy, energy};
pub use figures::LatencyFigures;
pub use finding::{Advice, Effort, Evidence, EvidencePlace, Finding, FindingKind, Severity};
pub use heat::{ThrottlingMark, throttling_marks};
pub use like::{Condition, Gap, LikeReport, State as ConditionState, like};
pub use load::crowded;
pub use nodes::{NodeTimes, node_times};
pub use outliers::{Around, LineAround, Outlier, Outliers, limit_not_supported, outliers};
pub use roofline::{Achieved, Roofline, roofline};
pub use rounds::{Round, Rounds, clean_of_all_rounds, interleaved};
pub use slowdown::{Cause, Slowdown, Window, moment};
pub use summary::summary;
pub use sustained::{Steady, Sustained, Unsteady, sustained};
pub use trust::{Reason, Trust, TrustVerdict, trust};
pub use verdicts::{Verdicts, verdicts};

use crate::store::{Run, Store};

/// All findings about a run, most important first.
pub fn findings(store: &Store, run: &Run) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(constraints::findings(store, run));
    findings.extend(verdicts(store, run).findings());
    findings.extend(rules::findings(store, run));
    findings.extend(tap::graph_findings(store, run));
    findings.extend(nodes::findings(run));
    visible::say(run, &mut findings);
    told_once(&mut findings);
    slowdown::tell(run, sustained(store, run).and_then(|told| told.slowdown).as_ref(), &mut findings);
    finding::rank(&mut findings);
    findings
}

/// Drops findings that another one covers better: of several based on the same readings, the most informative
/// one stays.
fn told_once(findings: &mut Vec<Finding>) {
    const AGAIN: [(&str, &str); 6] = [
        ("trust.throttled", "bound.thermal-throttling"),
        ("bound.contention", "trust.background-load"),
        ("m2-warm-up", "trust.few-samples"),
        ("tap.float-graph", "q2-fp16-to-a16"),
        ("r3-shared-buffers", "tap.copied-inputs"),
        ("r1-context-cache", "tap.loading"),
    ];
    for (less, more) in AGAIN {
        if findings.iter().any(|finding| finding.id == more) {
            findings.retain(|finding| finding.id != less);
        }
    }
}

/// True for temperatures that follow the workload: not the battery's or the modem's, which have other causes.
pub fn is_heat(id: &str) -> bool {
    let parts =
        ["thermal.npu", "thermal.cpu", "thermal.gpu", "thermal.memory", "thermal.skin", "gpu.temp", "host.temp.max"];
    parts.into_iter().any(|part| id.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::testing::{Made, only, steady};
    use super::*;
    use crate::backends::Backend;

    fn ids(made: Made) -> Vec<&'static str> {
        let store = made.clean(steady(10_000.0, 5.0, 500)).store();
        findings(&store, only(&store)).iter().map(|finding| finding.id).collect()
    }

    #[test]
    fn one_observation_is_told_once() {
        let hot = Made::on_phone(Backend::Htp).phone_counter("cooling.cdsp", Some(5.0), |t_s| f64::from(t_s > 2.0));
        let hot = ids(hot);
        assert!(hot.contains(&"bound.thermal-throttling") && !hot.contains(&"trust.throttled"), "{hot:?}");
        let busy = Made::local(Backend::Cpu).runner_cores(1.0).host_counter("host.cpu.busy", Some(100.0), |_| 90.0);
        let busy = ids(busy.host_counter("host.load.1m", Some(4.0), |_| 1.0));
        assert!(busy.contains(&"trust.background-load") && !busy.contains(&"bound.contention"), "{busy:?}");
    }
}
