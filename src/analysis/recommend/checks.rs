//! Whether a run stays within the limits, by the same percentile as its own finding.

use super::{ConstraintCheck, Constraints};
use crate::analysis::compare::Side;
use crate::analysis::constraints::{percent_that_counts, too_few};
use crate::store::LatencyStats;
use crate::text::{bytes_text, duration_text};

/// Bytes per MB, as used by limits.
pub const MB: f64 = 1_048_576.0;

/// What is known about a run's outputs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quality {
    /// Signal-to-quantisation-noise ratio, dB: infinite if outputs are identical.
    pub sqnr_db: Option<f64>,
    /// Top-1 accuracy relative to the best run's, percentage points lost.
    pub top1_loss: Option<f64>,
}

/// True if a check is about outputs, which a simulator computes just as a device does.
pub fn is_of_outputs(check: &ConstraintCheck) -> bool {
    matches!(check.constraint, "min_sqnr_db" | "max_top1_loss")
}

/// Checks a run against its limits. A simulator's times do not predict a device and are not judged; its
/// outputs are.
pub fn checks(side: &Side, quality: Quality, constraints: &Constraints) -> Vec<ConstraintCheck> {
    let latency = constraints.latency_budget_ms.map(|limit_ms| latency(side, limit_ms, constraints.latency_percent));
    let memory = constraints.max_memory_mb.map(|limit_mb| memory(side, limit_mb));
    let sqnr = constraints.min_sqnr_db.map(|limit_db| sqnr(quality, limit_db));
    let top1 = constraints.max_top1_loss.map(|limit| top1_loss(quality, limit));
    latency.into_iter().chain(memory).chain(sqnr).chain(top1).collect()
}

fn sqnr(quality: Quality, limit_db: f64) -> ConstraintCheck {
    const ID: &str = "min_sqnr_db";
    let Some(sqnr_db) = quality.sqnr_db else {
        let why = "its outputs were not compared: run with --expected DIR, or give all runs --save-outputs DIR and the same inputs";
        return unknown(ID, limit_db, &format!("{ID}: {why}"));
    };
    let shown = if sqnr_db.is_infinite() { "outputs as expected".to_owned() } else { format!("SQNR {sqnr_db:.1} dB") };
    ConstraintCheck {
        constraint: ID,
        limit: limit_db,
        value: sqnr_db.is_finite().then_some(sqnr_db),
        met: Some(sqnr_db >= limit_db),
        text: format!("{shown} against at least {limit_db} dB"),
    }
}

fn top1_loss(quality: Quality, limit: f64) -> ConstraintCheck {
    const ID: &str = "max_top1_loss";
    match quality.top1_loss {
        Some(loss) => known(ID, limit, loss, format!("top-1 {loss:.2} points below the best, at most {limit} allowed")),
        None => unknown(ID, limit, &format!("{ID}: its classes were not judged: run with --labels FILE")),
    }
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
            if few { too_few(percent, latency.support) } else { format!("the kept latencies do not give p{percent}") };
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
    if side.simulated { "a simulated run does not show it" } else { "it was not measured" }
}

fn known(constraint: &'static str, limit: f64, value: f64, text: String) -> ConstraintCheck {
    ConstraintCheck { constraint, limit, value: Some(value), met: Some(value <= limit), text }
}

fn unknown(constraint: &'static str, limit: f64, text: &str) -> ConstraintCheck {
    ConstraintCheck { constraint, limit, value: None, met: None, text: text.to_owned() }
}
