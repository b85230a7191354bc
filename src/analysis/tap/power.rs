//! Power votes of a process that uses HTP. Without a vote, the NPU runs at clocks chosen by the system.

use super::super::{Advice, Effort, Evidence, Finding, FindingKind, Severity};
use crate::backends::Backend;
use crate::store::{Store, TappedProcess};
use crate::text::counted;
use serde_json::Value;

/// The highest voltage corner.
const BURST_CORNER: f64 = 160.0;
/// Minimum number of executions for judging votes.
const FEWEST: u64 = 2;
/// Number of later votes from which they follow the inferences ...
const SEVERAL: u64 = 4;
/// ... with at most this many inferences per vote.
const PER: u64 = 4;

pub(super) fn findings(store: &Store, process: &TappedProcess) -> Vec<Finding> {
    let of_htp = process.graphs.iter().filter_map(|graph| store.run(graph.run));
    let Some(run) = of_htp.clone().find(|run| run.plan.backend == Backend::Htp) else { return Vec::new() };
    if process.timeline.executions < FEWEST {
        return Vec::new();
    }
    let seen = Seen { process, simulated: run.plan.simulated };
    [seen.level(), seen.dropped(), seen.polling()].into_iter().flatten().collect()
}

struct Seen<'a> {
    process: &'a TappedProcess,
    simulated: bool,
}

impl Seen<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        match self.process.voted.get(name)? {
            Value::Bool(on) => Some(f64::from(u8::from(*on))),
            value => value.as_f64(),
        }
    }

    fn finding(&self, id: &'static str, title: &str, evidence: Vec<String>, action: &str, why: &str) -> Finding {
        // The simulator has no clocks to vote for.
        let severity = if self.simulated { Severity::Info } else { Severity::Warning };
        let mut evidence: Vec<Evidence> = evidence.into_iter().map(Evidence::new).collect();
        if self.simulated {
            evidence.push(Evidence::new("simulated: the simulator has no clocks; this is what a device would do"));
        }
        let mut finding = Finding::new(id, FindingKind::Suggestion, severity, title.to_owned(), evidence);
        finding.suggestion = Some(Advice {
            action: action.to_owned(),
            why: why.to_owned(),
            effort: Effort::Setting,
            snippets: Vec::new(),
        });
        finding
    }

    fn level(&self) -> Option<Finding> {
        const ACTION: &str = "vote for burst while inferences run: htp_performance_mode=burst in ONNX Runtime, performance mode \
                              burst in ExecuTorch and LiteRT";
        if self.process.votes.iter().all(|vote| vote.action != "set") {
            let text = format!("{} without a vote", counted(self.process.timeline.executions, "execution"));
            let title = "no power vote: the NPU runs at the clocks the system chooses";
            return Some(self.finding(
                "tap.no-vote",
                title,
                vec![text],
                ACTION,
                "otherwise wake-ups and low clocks cost each inference time",
            ));
        }
        let corner = ["core_target", "bus_target", "core_max", "bus_max"].into_iter().filter_map(|name| {
            let value = self.number(name)?;
            (value < BURST_CORNER).then(|| format!("{name} {value}, burst has {BURST_CORNER}"))
        });
        let mut below: Vec<String> = corner.collect();
        if self.number("dcvs_enable").is_some_and(|on| on > 0.0) {
            below.push("dcvs_enable is on: clocks follow the load".to_owned());
        }
        if below.is_empty() {
            return None;
        }
        let title = "the power vote is below burst";
        Some(self.finding(
            "tap.vote-below-burst",
            title,
            below,
            ACTION,
            "higher corners raise the NPU's clocks at the cost of power",
        ))
    }

    fn dropped(&self) -> Option<Finding> {
        let (late, inferences) = (self.process.late_votes, self.process.timeline.inferences);
        if late < SEVERAL || late * PER < inferences {
            return None;
        }
        let text =
            format!("{} after the first execution, in {}", counted(late, "vote"), counted(inferences, "inference"));
        let mut evidence = vec![text];
        let gap = self.process.timeline.share().map(|share| share.program);
        evidence.extend(gap.map(|gap| format!("{:.0} % of the time passes between inferences", gap * 100.0)));
        Some(self.finding(
            "tap.votes-dropped",
            "the power vote changes with the inferences: each may find the NPU asleep",
            evidence,
            "hold the vote while frames arrive, and drop it when they stop",
            "clocks that fall between frames have to rise again: a wake-up in each inference",
        ))
    }

    fn polling(&self) -> Option<Finding> {
        if self.number("rpc_polling_us").is_some_and(|us| us > 0.0) {
            return None;
        }
        let text = match self.number("rpc_polling_us") {
            Some(_) => "rpc_polling_us was set to 0".to_owned(),
            None => "rpc_polling_us was never set".to_owned(),
        };
        Some(self.finding(
            "tap.polling-off",
            "RPC polling is off: an interrupt signals the end of each execution",
            vec![text],
            "turn polling on with the vote (burst does in ONNX Runtime; rpc_polling_time elsewhere)",
            "polling saves waking the waiting thread, some tens of microseconds per execution",
        ))
    }
}
