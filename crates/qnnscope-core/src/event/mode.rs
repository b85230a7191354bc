//! How a run measures, what it is compared with, and what that looks like on the stream.

use super::{Launches, Origin};
use serde::{Deserialize, Serialize};

/// How the inferences of a run follow each other, and how the run belongs together with others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mode {
    /// Starts a second that the clean phase plans; `None`: one inference right after the other.
    pub rate_hz: Option<f64>,
    /// Its place among runs at several rates.
    pub sweep: Option<Member>,
    /// Its place among repeated runs of the same plan.
    pub repeat: Option<Member>,
    /// Whether the figures over time are what the run is for.
    pub sustained: bool,
    /// A published way of measuring that this run follows.
    pub like: Option<Like>,
    /// A published latency to hold this one against, microseconds.
    pub published_us: Option<f64>,
    /// Longest time to let the device cool down before the run, if it is not the first, seconds.
    pub cool_down_s: Option<f64>,
    /// Which inferences are outliers; `None`: those that take more than twice the median.
    pub outlier_limit: Option<OutlierLimit>,
    /// The processes that share its inferences.
    pub launches: Launches,
    /// The file that it was read from, if another tool measured it.
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

/// The place of a run among runs that belong together. They follow in the order of their indices, with runs of other
/// groups between them; an index that does not go up restarts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Number of the group within the request.
    pub group: u32,
    /// From 0.
    pub index: u32,
    /// Runs of the group that were requested.
    pub of: u32,
}

/// Ways of measuring behind published figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Like {
    /// A profile job of Qualcomm AI Hub.
    Aihub,
    /// The single-stream scenario of `MLPerf` Inference.
    Mlperf,
}

impl Like {
    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aihub => "aihub",
            Self::Mlperf => "mlperf",
        }
    }
}

/// What the user wants a run to keep to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Constraints {
    /// Longest latency, microseconds.
    pub latency_budget_us: Option<f64>,
    /// The percentile that has to keep it; `None`: the highest of p99, p95, p90 and p50 that the samples support.
    pub latency_percent: Option<f64>,
    /// Whether power matters more than latency. Runs are not judged by it; recommendations are.
    pub power_critical: bool,
    /// Whether the slowest inferences matter more than the usual one. Runs are not judged by it; recommendations are.
    pub latency_critical: bool,
    /// Largest resident set, bytes.
    pub max_memory_bytes: Option<u64>,
    /// Smallest signal to noise of the outputs, dB.
    pub min_sqnr_db: Option<f64>,
    /// Largest loss of top-1 accuracy against the best run, percentage points. Runs are not judged by it; recommendations are.
    pub max_top1_loss: Option<f64>,
}

/// How a paced phase kept to its schedule; sent at its end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PaceReport {
    /// Planned starts a second.
    pub rate_hz: f64,
    /// Starts that were planned up to the end of the phase.
    pub planned: u64,
    /// Inferences made of them; the rest were still waiting behind others.
    pub done: u64,
    /// Wall time of the phase, microseconds.
    pub wall_us: f64,
    /// Time spent waiting for planned starts, microseconds.
    pub waited_us: f64,
    /// CPU time that the waiting took, microseconds: the last part of each wait is spun, to start on time.
    pub wait_cpu_us: f64,
    /// Largest time from a planned start to the start where nothing else was going on, microseconds.
    pub worst_start_us: f64,
}

/// A pause before a run, told from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoolDown {
    /// What is cooling down.
    pub device: String,
    /// Time waited so far, microseconds.
    pub waited_us: u64,
    /// Longest time to wait, microseconds.
    pub limit_us: u64,
    /// Counters that were compared with their values from before the first run.
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
    /// There is nothing to read that tells heat: a fixed time was waited.
    Fixed,
    /// The user ended it.
    Stopped,
}
