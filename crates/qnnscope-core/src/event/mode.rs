//! How a run measures, what it is compared with, and how the stream represents that.

use super::{Launches, Origin};
use serde::{Deserialize, Serialize};

/// How the inferences of a run follow each other, and how the run relates to others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mode {
    /// Planned starts per second in the clean phase; `None`: back to back.
    pub rate_hz: Option<f64>,
    /// Its place among runs at several rates.
    pub sweep: Option<Member>,
    /// Its place among repeated runs of the same plan.
    pub repeat: Option<Member>,
    /// Whether the run is about figures over time.
    pub sustained: bool,
    /// The published procedure this run follows.
    pub like: Option<Like>,
    /// A published latency to compare with, microseconds.
    pub published_us: Option<f64>,
    /// Maximum time to let the device cool down before the run, unless it is the first, seconds.
    pub cool_down_s: Option<f64>,
    /// Which inferences are outliers; `None`: those above twice the median.
    pub outlier_limit: Option<OutlierLimit>,
    /// The processes that share its inferences.
    pub launches: Launches,
    /// The file it was read from, if another tool measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<Origin>>,
}

/// Latency beyond which an inference is an outlier.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutlierLimit {
    /// So many times the median.
    TimesMedian(f64),
    /// A percentile, 50 to 100.
    Percentile(f64),
}

impl Default for OutlierLimit {
    fn default() -> Self {
        Self::TimesMedian(2.0)
    }
}

impl std::fmt::Display for OutlierLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TimesMedian(times) => write!(f, "{times} x p50"),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

/// The place of a run in a group. Runs follow in index order, with runs of other groups in between; an index that does
/// not increase starts the group over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Number of the group within the request.
    pub group: u32,
    /// From 0.
    pub index: u32,
    /// Requested runs of the group.
    pub of: u32,
}

/// Procedures behind published figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Like {
    /// A profile job of Qualcomm AI Hub.
    Aihub,
    /// The single-stream scenario of `MLPerf` Inference.
    Mlperf,
}

impl Like {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aihub => "aihub",
            Self::Mlperf => "mlperf",
        }
    }
}

/// The user's constraints on a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Constraints {
    /// Longest latency, microseconds.
    pub latency_budget_us: Option<f64>,
    /// The percentile that must meet it; `None`: the highest of p99, p95, p90 and p50 that the samples support.
    pub latency_percent: Option<f64>,
    /// Whether power matters more than latency. Affects recommendations, not the judgement of runs.
    pub power_critical: bool,
    /// Whether the slowest inferences matter more than the typical one. Affects recommendations, not the judgement of
    /// runs.
    pub latency_critical: bool,
    /// Largest resident set, bytes.
    pub max_memory_bytes: Option<u64>,
    /// Smallest signal to noise of the outputs, dB.
    pub min_sqnr_db: Option<f64>,
    /// Largest loss of top-1 accuracy against the best run, percentage points. Affects recommendations, not the
    /// judgement of runs.
    pub max_top1_loss: Option<f64>,
}

/// How well a paced phase kept its schedule; sent at its end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PaceReport {
    /// Planned starts a second.
    pub rate_hz: f64,
    /// Planned starts up to the end of the phase.
    pub planned: u64,
    /// How many of them ran; the rest were still queued.
    pub done: u64,
    /// Wall time of the phase, microseconds.
    pub wall_us: f64,
    /// Time spent waiting for planned starts, microseconds.
    pub waited_us: f64,
    /// CPU time spent waiting, microseconds: the last part of each wait spins, to start on time.
    pub wait_cpu_us: f64,
    /// Largest delay from planned to actual start with an empty queue, microseconds.
    pub worst_start_us: f64,
}

/// A pause before a run, reported from start to end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoolDown {
    /// What is cooling down.
    pub device: String,
    /// Time waited so far, microseconds.
    pub waited_us: u64,
    /// Maximum wait, microseconds.
    pub limit_us: u64,
    /// Counters compared with their values from before the first run.
    pub watched: u64,
    /// Those that are not back yet.
    pub waiting_for: Vec<Cooling>,
    /// How it ended, once it has.
    pub end: Option<CoolDownEnd>,
}

/// A counter that is not back yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cooling {
    /// Counter id.
    pub id: String,
    /// Unit.
    pub unit: String,
    /// Its value now.
    pub value: f64,
    /// The value to get back to.
    pub target: f64,
}

/// How a cool-down ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoolDownEnd {
    /// Everything is back.
    Back,
    /// The limit was reached before.
    Limit,
    /// No temperature is readable: the pause had a fixed length.
    Fixed,
    /// The user ended it.
    Stopped,
}
