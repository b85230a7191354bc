//! Expectations from the graph and the SoC, for when nothing was measured.

use super::checks::MB;
use super::{
    Basis, Candidate, ConstraintCheck, Constraints, RecommendTarget, Recommendation, Support, is_fixed_point, rank,
};
use crate::analysis::compare::{Arithmetic, GraphFacts};
use crate::backends::Backend;
use crate::text::bytes_text;

/// Number of multiply-accumulates below which the call into the DSP probably costs more than the graph.
const SMALL_MACS: u64 = 2_000_000;
/// Rank above which HTP refuses tensors.
const HTP_RANK: usize = 5;
/// Penalty for a backend that did not answer about the ops when another one did. It equals the most that a
/// graph's types can gain for the GPU, since they only count for a backend that accepts the ops.
const UNASKED: f64 = 20.0;
/// Share of data-moving ops from which a graph is less suited to HTP.
const MOVER_SHARE: f64 = 0.3;

/// A recommendation without a run. Weights follow what Qualcomm's documents say about the backends: fixed
/// point before float on HTP, float before fixed point on the GPU, small graphs on the CPU.
pub fn expected(
    facts: &GraphFacts,
    target: RecommendTarget<'_>,
    support: &[Support],
    constraints: &Constraints,
) -> Recommendation {
    let mut candidates: Vec<Candidate> = Backend::ALL
        .into_iter()
        .filter_map(|backend| {
            let mut scored = match backend {
                Backend::Htp => htp(facts, target, constraints),
                Backend::Gpu => gpu(facts, constraints),
                Backend::Cpu => cpu(facts, constraints),
                Backend::Unknown => return None,
            };
            match support.iter().find(|support| support.backend == backend) {
                Some(support) => scored.support(support),
                None if scored.eligible && !support.is_empty() => scored.unasked(),
                None => {}
            }
            Some(scored.candidate(backend, facts, constraints))
        })
        .collect();
    rank(&mut candidates);
    let best = candidates.first().filter(|best| best.eligible);
    let backend = best.map(|best| best.backend);
    let summary = match best {
        Some(best) => format!("{}: {} (from the graph; nothing was measured)", best.backend, best.reasons[0]),
        None => "no backend can be recommended: each has a drawback (see the reasons)".to_owned(),
    };
    let checked: Vec<Backend> = support.iter().map(|support| support.backend).collect();
    let would_change = would_change(facts, target, &checked, constraints);
    Recommendation {
        basis: Basis::Graph,
        backend,
        column: None,
        summary,
        candidates,
        would_change,
        to_measure: to_measure(),
    }
}

fn to_measure() -> Vec<String> {
    vec!["latency, memory and energy on the device: qnnscope run MODEL -b htp,gpu,cpu --device SERIAL".to_owned()]
}

/// A score in progress, with its reasons and their points; minus infinity if ruled out.
struct Scored {
    score: f64,
    eligible: bool,
    reasons: Vec<(f64, String)>,
}

impl Scored {
    fn at(score: f64) -> Self {
        Self { score, eligible: true, reasons: Vec::new() }
    }

    fn because(&mut self, points: f64, reason: impl Into<String>) {
        self.score += points;
        self.reasons.push((points, reason.into()));
    }

    fn refuse(&mut self, reason: impl Into<String>) {
        self.eligible = false;
        self.reasons.push((f64::NEG_INFINITY, reason.into()));
    }

    fn support(&mut self, support: &Support) {
        let (asked, refused) = (support.asked, support.refused.len());
        let place = support.soc.as_ref().map_or_else(String::new, |soc| format!(" on {soc}"));
        if refused == 0 {
            self.because(5.0, format!("it accepts all {asked} ops{place}"));
        } else {
            let names: Vec<&str> = support.refused.iter().take(3).map(String::as_str).collect();
            let more = if refused > names.len() { ", …" } else { "" };
            self.refuse(format!("it refuses {refused} of {asked} ops{place} ({}{more})", names.join(", ")));
        }
    }

    /// Listed last, since it says nothing about the graph.
    fn unasked(&mut self) {
        self.score -= UNASKED;
        self.reasons.push((0.0, "its op support is unknown: it was not checked here, or did not answer".to_owned()));
    }

    fn candidate(mut self, backend: Backend, facts: &GraphFacts, constraints: &Constraints) -> Candidate {
        let checks = checks(facts, constraints);
        if checks.iter().any(|check| check.met == Some(false)) {
            self.refuse("its constants alone exceed the memory limit");
        }
        // With equal weight, the reason in favour comes first.
        self.reasons.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()).then(b.0.total_cmp(&a.0)));
        Candidate {
            backend,
            column: None,
            simulated: false,
            score: Some(self.score.clamp(0.0, 100.0)),
            eligible: self.eligible,
            reasons: self.reasons.into_iter().map(|(_, reason)| reason).collect(),
            constraints: checks,
        }
    }
}

/// Constants are in memory on every backend, so more than the limit misses the constraint; less proves
/// nothing.
fn checks(facts: &GraphFacts, constraints: &Constraints) -> Vec<ConstraintCheck> {
    let mut checks = Vec::new();
    if let Some(limit) = constraints.latency_budget_ms {
        checks.push(ConstraintCheck {
            constraint: "latency_budget_ms",
            limit,
            value: None,
            met: None,
            text: "only a run can measure latency".to_owned(),
        });
    }
    if let Some(limit) = constraints.max_memory_mb {
        let constants_mb = facts.parameter_bytes as f64 / MB;
        let over = constants_mb > limit;
        checks.push(ConstraintCheck {
            constraint: "max_memory_mb",
            limit,
            value: over.then_some(constants_mb),
            met: over.then_some(false),
            text: format!(
                "constants are {}; only a run can measure the rest",
                bytes_text(facts.parameter_bytes as f64)
            ),
        });
    }
    let outputs = [("min_sqnr_db", constraints.min_sqnr_db), ("max_top1_loss", constraints.max_top1_loss)];
    for (constraint, limit) in outputs {
        let text = "only a run shows how accurate its outputs are".to_owned();
        checks.extend(limit.map(|limit| ConstraintCheck { constraint, limit, value: None, met: None, text }));
    }
    checks
}

fn htp(facts: &GraphFacts, target: RecommendTarget<'_>, constraints: &Constraints) -> Scored {
    let mut scored = Scored::at(50.0);
    if target.has_htp() == Some(false) {
        scored.refuse(format!("{} has no HTP", target.name()));
    }
    match facts.arithmetic {
        Arithmetic::Int8 => {
            scored.because(40.0, "the graph is 8-bit fixed point, which HTP computes fastest and at the lowest power");
        }
        Arithmetic::Int16 => {
            scored.because(30.0, "the graph is fixed point with 16-bit activations, which HTP computes natively");
        }
        Arithmetic::Mixed => scored.because(10.0, "part of the graph is fixed point; conversions to float cost time"),
        Arithmetic::Float | Arithmetic::Other => {}
    }
    if matches!(facts.arithmetic, Arithmetic::Float | Arithmetic::Mixed) {
        match target.fp16() {
            Some(true) => scored
                .because(10.0, format!("{} runs float graphs on HTP as fp16, slower than fixed point", target.name())),
            Some(false) => scored.refuse(format!("{} has no float on HTP: the graph must be quantised", target.name())),
            None => scored.because(-5.0, "whether HTP runs float depends on the SoC, which is unknown"),
        }
    }
    if facts.rank > HTP_RANK {
        scored.refuse(format!("a tensor has rank {}, and HTP takes at most {HTP_RANK}", facts.rank));
    } else if facts.rank == HTP_RANK {
        scored.because(-5.0, "tensors of rank 5 need extra layout work on HTP");
    }
    if facts.macs < SMALL_MACS && facts.macs > 0 {
        scored.because(-30.0, "the graph is small: the call into the DSP may cost more than it saves");
    }
    if facts.ops > 0 && facts.movers as f64 / facts.ops as f64 > MOVER_SHARE {
        scored.because(-10.0, format!("{} of {} ops only move or convert data", facts.movers, facts.ops));
    }
    if constraints.power_critical && is_fixed_point(facts.arithmetic) {
        scored.because(10.0, "power matters, and HTP needs the least for fixed point");
    }
    scored
}

fn gpu(facts: &GraphFacts, constraints: &Constraints) -> Scored {
    let mut scored = Scored::at(45.0);
    match facts.arithmetic {
        Arithmetic::Float => {
            scored.because(20.0, "the graph is float, which the GPU runs as fp16 or fp32 on every Snapdragon");
        }
        Arithmetic::Mixed => {
            scored.because(-25.0, "parts of the graph are fixed point, which the GPU refuses or runs slowly");
        }
        Arithmetic::Int8 | Arithmetic::Int16 => {
            scored.because(
                -35.0,
                "the graph is fixed point, which the GPU refuses or runs slowly: give it the float model",
            );
        }
        Arithmetic::Other => scored.because(0.0, "how the GPU runs its types is unknown"),
    }
    if facts.macs < SMALL_MACS && facts.macs > 0 {
        scored.because(-20.0, "the graph is small: starting its kernels may cost more than it saves");
    }
    if constraints.power_critical {
        scored.because(-5.0, "power matters, and the GPU usually needs more than HTP");
    }
    scored
}

fn cpu(facts: &GraphFacts, constraints: &Constraints) -> Scored {
    let mut scored = Scored::at(30.0);
    if facts.macs < SMALL_MACS && facts.macs > 0 {
        scored.because(40.0, "the graph is small, and needs no call to another processor");
    } else {
        scored.because(0.0, "it runs almost every model, as the reference; heavy graphs run slowly");
    }
    if constraints.power_critical {
        scored.because(-10.0, "power matters, and the CPU needs the most for the same work");
    }
    scored
}

fn would_change(
    facts: &GraphFacts,
    target: RecommendTarget<'_>,
    checked: &[Backend],
    constraints: &Constraints,
) -> Vec<String> {
    let mut changes = Vec::new();
    let is_float = matches!(facts.arithmetic, Arithmetic::Float | Arithmetic::Mixed);
    if is_float && target.fp16() == Some(false) {
        changes.push(format!("quantising the model: HTP of {} would run it then", target.name()));
    } else if is_float {
        changes.push("quantising the model: HTP runs 8-bit fixed point faster than fp16".to_owned());
    }
    if target.soc.is_none() {
        let what = if is_float { "whether HTP runs float, " } else { "" };
        changes.push(format!("the SoC (--soc PART): {what}whether it has HTP at all"));
    }
    let open: Vec<&str> =
        Backend::ALL.into_iter().filter(|backend| !checked.contains(backend)).map(Backend::name).collect();
    if !open.is_empty() {
        changes.push(format!("an op that {} refuses: not checked, or no answer", open.join(" or ")));
    }
    if !constraints.power_critical && facts.macs >= SMALL_MACS {
        changes.push("power before time (--power-critical): HTP gains on GPU and CPU".to_owned());
    }
    changes.push("a measurement: times on a device take precedence over everything here".to_owned());
    changes
}
