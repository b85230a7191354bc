//! Whether a run keeps within the limits, by the same percentile as its own finding.

use super::{ConstraintCheck, Constraints};
use crate::analysis::compare::Side;
use crate::analysis::constraints::{percent_that_counts, too_few};
use crate::store::LatencyStats;
use crate::text::{bytes_text, duration_text};

/// Bytes of a MB, as limits count it.
pub const MB: f64 = 1_048_576.0;

/// Whether a run keeps within its limits. A simulator's times do not predict a device, so they are not judged.
pub fn checks(side: &Side, constraints: &Constraints) -> Vec<ConstraintCheck> {
    let latency = constraints.latency_budget_ms.map(|limit_ms| latency(side, limit_ms, constraints.latency_percent));
    let memory = constraints.max_memory_mb.map(|limit_mb| memory(side, limit_mb));
    latency.into_iter().chain(memory).collect()
}

fn latency(side: &Side, limit_ms: f64, asked: Option<f64>) -> ConstraintCheck {
    const ID: &str = "latency_budget_ms";
    let Some(latency) = side.latency.as_ref().filter(|_| !side.simulated) else {
        return unknown(ID, limit_ms, &format!("{ID}: {}", not_measured(side)));
    };
    let percent = percent_that_counts(asked, latency.support);
    let Some(us) = latency.percentile_us(percent) else {
        let few = !LatencyStats::supports(latency.support, percent);
        let why =
            if few { too_few(percent, latency.support) } else { format!("the latencies kept do not tell p{percent}") };
        return unknown(ID, limit_ms, &format!("{ID}: {why}"));
    };
    let budget = duration_text(limit_ms * 1000.0);
    known(ID, limit_ms, us / 1000.0, format!("p{percent} {} against a budget of {budget}", duration_text(us)))
}

fn memory(side: &Side, limit_mb: f64) -> ConstraintCheck {
    const ID: &str = "max_memory_mb";
    let Some(bytes) = side.memory_peak.filter(|_| !side.simulated) else {
        return unknown(ID, limit_mb, &format!("{ID}: {}", not_measured(side)));
    };
    let limit = bytes_text(limit_mb * MB);
    known(ID, limit_mb, bytes / MB, format!("memory peak {} against a limit of {limit}", bytes_text(bytes)))
}

fn not_measured(side: &Side) -> &'static str {
    if side.simulated { "a simulated run does not tell it" } else { "it was not measured" }
}

fn known(constraint: &'static str, limit: f64, value: f64, text: String) -> ConstraintCheck {
    ConstraintCheck { constraint, limit, value: Some(value), met: Some(value <= limit), text }
}

fn unknown(constraint: &'static str, limit: f64, text: &str) -> ConstraintCheck {
    ConstraintCheck { constraint, limit, value: None, met: None, text: text.to_owned() }
}
