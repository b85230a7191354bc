//! Criteria for choosing a backend.

use super::modes::positive;
use super::values::{decibels, points};
use crate::analysis::recommend::Constraints;

/// Heading of options that a recommendation goes by.
pub(super) const RECOMMENDATION: &str = "Options of the recommendation";

/// What a choice of backends is to go by.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Wishes {
    /// Latency budget, milliseconds
    #[arg(long, value_name = "MS", value_parser = positive, help_heading = RECOMMENDATION)]
    latency_budget_ms: Option<f64>,
    /// Memory limit, MB (1024 x 1024 bytes)
    #[arg(long, value_name = "MB", value_parser = positive, help_heading = RECOMMENDATION)]
    max_memory_mb: Option<f64>,
    /// Prefer low energy to low latency
    #[arg(long, conflicts_with = "latency_critical", help_heading = RECOMMENDATION)]
    power_critical: bool,
    /// Judge by the slowest inferences, not the typical one
    #[arg(long, help_heading = RECOMMENDATION)]
    latency_critical: bool,
    /// Lowest SQNR of the outputs in dB, against the expected outputs or else the reference run's
    #[arg(long, value_name = "DB", value_parser = decibels, help_heading = RECOMMENDATION)]
    min_sqnr_db: Option<f64>,
    /// Largest loss of top-1 accuracy against the best run, percentage points
    #[arg(long, value_name = "POINTS", value_parser = points, help_heading = RECOMMENDATION)]
    max_top1_loss: Option<f64>,
}

impl Wishes {
    /// The same in the analysis's form.
    pub fn constraints(&self) -> Constraints {
        Constraints {
            latency_budget_ms: self.latency_budget_ms,
            latency_percent: None,
            max_memory_mb: self.max_memory_mb,
            power_critical: self.power_critical,
            latency_critical: self.latency_critical,
            min_sqnr_db: self.min_sqnr_db,
            max_top1_loss: self.max_top1_loss,
        }
    }
}
