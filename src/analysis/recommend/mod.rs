//! Which backend to use: from measurements if available, else from the graph and the SoC's known properties.
//!
//! Scores rank the backends of one answer; they are not predictions, and scores of measured and unmeasured
//! backends are never mixed. A simulated run never wins on time.

mod checks;
mod expected;
mod measured;
mod plans;
#[cfg(test)]
mod tests;

pub use expected::expected;
pub use measured::measured;

use super::compare::Arithmetic;
use crate::backends::Backend;
use crate::devices::Soc;
use serde::Serialize;

/// The user's constraints.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constraints {
    /// Maximum latency, milliseconds.
    pub latency_budget_ms: Option<f64>,
    /// The percentile that must meet it; `None` for the highest of p99, p95, p90 and p50 that the inferences
    /// support.
    pub latency_percent: Option<f64>,
    /// Maximum memory, MB (1024 x 1024 bytes): the peak resident set of the process.
    pub max_memory_mb: Option<f64>,
    /// Prefer low energy to low latency.
    pub power_critical: bool,
    /// Judge by the slowest inferences, not the typical one.
    pub latency_critical: bool,
    /// Minimum signal-to-quantisation-noise ratio of the outputs, dB.
    pub min_sqnr_db: Option<f64>,
    /// Maximum loss of top-1 accuracy relative to the best run, percentage points.
    pub max_top1_loss: Option<f64>,
}

impl Constraints {
    /// True if a run has any limit to meet.
    pub fn has_limits(&self) -> bool {
        let limits = [self.latency_budget_ms, self.max_memory_mb, self.min_sqnr_db, self.max_top1_loss];
        limits.iter().any(Option::is_some)
    }
}

impl From<&crate::event::Constraints> for Constraints {
    fn from(of_run: &crate::event::Constraints) -> Self {
        Self {
            latency_budget_ms: of_run.latency_budget_us.map(|us| us / 1000.0),
            latency_percent: of_run.latency_percent,
            max_memory_mb: of_run.max_memory_bytes.map(|bytes| bytes as f64 / checks::MB),
            power_critical: of_run.power_critical,
            latency_critical: of_run.latency_critical,
            min_sqnr_db: of_run.min_sqnr_db,
            max_top1_loss: of_run.max_top1_loss,
        }
    }
}

/// What an answer is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Runs on real hardware.
    Measured,
    /// The graph and the SoC catalogue.
    Graph,
}

/// Whether a constraint is met.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConstraintCheck {
    /// `latency_budget_ms`, `max_memory_mb`, `min_sqnr_db` or `max_top1_loss`.
    pub constraint: &'static str,
    /// The limit, in the unit of the name.
    pub limit: f64,
    /// What was measured, if anything.
    pub value: Option<f64>,
    /// `None` if unknown.
    pub met: Option<bool>,
    /// What was measured, or what is missing.
    pub text: String,
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Backend.
    pub backend: Backend,
    /// Column of the comparison, from 0; `None` for a backend that was not run.
    pub column: Option<usize>,
    /// True if the run was simulated.
    pub simulated: bool,
    /// 0 to 100; `None` if it cannot be scored.
    pub score: Option<f64>,
    /// False if it cannot be used: it failed, or misses a constraint.
    pub eligible: bool,
    /// Why, strongest reason first.
    pub reasons: Vec<String>,
    /// Checks of the constraints.
    pub constraints: Vec<ConstraintCheck>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// What it is based on.
    pub basis: Basis,
    /// The backend; `None` if none can be named.
    pub backend: Option<Backend>,
    /// Its column of the comparison, from 0.
    pub column: Option<usize>,
    /// One sentence.
    pub summary: String,
    /// All candidates, best first.
    pub candidates: Vec<Candidate>,
    /// What would change the answer.
    pub would_change: Vec<String>,
    /// What must be measured to be certain.
    pub to_measure: Vec<String>,
}

/// A backend's answer to pre-flight validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// Backend.
    pub backend: Backend,
    /// Number of ops asked about.
    pub asked: usize,
    /// Names of the ops it refuses.
    pub refused: Vec<String>,
    /// SoC it answered for, if it distinguishes SoCs.
    pub soc: Option<String>,
}

/// Where a model is to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecommendTarget<'a> {
    /// The SoC, if known.
    pub soc: Option<&'a Soc>,
}

impl<'a> RecommendTarget<'a> {
    fn name(self) -> &'a str {
        self.soc.map_or("the SoC", |soc| soc.part)
    }

    /// Whether float graphs run on its HTP.
    fn fp16(self) -> Option<bool> {
        self.soc.and_then(|soc| soc.fp16)
    }

    fn has_htp(self) -> Option<bool> {
        self.soc.and_then(Soc::has_htp)
    }
}

fn is_fixed_point(arithmetic: Arithmetic) -> bool {
    matches!(arithmetic, Arithmetic::Int8 | Arithmetic::Int16)
}

/// Best first: usable ones by score, then the others.
fn rank(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| {
        let score = |candidate: &Candidate| candidate.score.unwrap_or(-1.0);
        b.eligible.cmp(&a.eligible).then(score(b).total_cmp(&score(a)))
    });
}
