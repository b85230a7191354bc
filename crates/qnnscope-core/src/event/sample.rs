//! Samples: inferences, op times, backend figures, memory.

use serde::{Deserialize, Serialize};

/// Phases of measuring. Percentiles come from [`Phase::Clean`], layer times from [`Phase::Detailed`]; never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The very first inference.
    First,
    /// Warm-up.
    Warmup,
    /// No per-op profiling.
    Clean,
    /// Detailed profiling.
    Detailed,
}

impl Phase {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Warmup => "warmup",
            Self::Clean => "clean",
            Self::Detailed => "detailed",
        }
    }
}

/// Consecutive inferences of one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InferenceBatch {
    /// Phase they belong to.
    pub phase: Phase,
    /// Index of the first one within the phase, from 0.
    pub first_index: u64,
    /// Start of each, host monotonic microseconds.
    pub start_us: Vec<u64>,
    /// Wall time of graphExecute for each, nanoseconds.
    pub latency_ns: Vec<u64>,
    /// Time from planned to actual start of each, nanoseconds; empty without planned starts. A duration rather than a
    /// timestamp, so that it holds on every clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_ns: Vec<u64>,
}

/// What an op's numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpUnit {
    /// Microseconds (CPU).
    Us,
    /// Accelerator cycles (HTP).
    Cycles,
}

/// One row of the op times: the backend's name for it, and the graph op it represents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpRow {
    /// The backend's name without its decoration.
    pub name: String,
    /// Index into the graph's ops; `None` for rows the backend added itself.
    pub op: Option<u32>,
    /// Unit of the row's values.
    pub unit: OpUnit,
    /// HTP's number of the op; `None` if the backend reports none, and in sessions from versions that did not record
    /// it.
    #[serde(default)]
    pub htp_op: Option<u64>,
}

impl OpRow {
    /// True if it represents the same thing. Another process may number its ops differently.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.name, self.op, self.unit) == (&other.name, other.op, other.unit)
    }
}

/// Op values of one inference of the detailed phase, one per declared row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpSample {
    /// Index of the inference within the detailed phase.
    pub inference: u64,
    /// Values in each row's unit.
    pub values: Vec<u64>,
}

/// One figure of the backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The backend's name for it.
    pub name: String,
    /// `us`, `cycles`, `bytes`, `count` or empty.
    pub unit: String,
    /// The value.
    pub value: f64,
}

/// The backend's figures for one inference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSample {
    /// Phase of the inference.
    pub phase: Phase,
    /// Its index within the phase.
    pub inference: u64,
    /// The figures in the backend's order.
    pub metrics: Vec<Metric>,
}

/// When a memory sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMark {
    /// Before the vendor libraries were opened.
    BeforeLoad,
    /// At the end of a stage.
    After(super::Stage),
    /// Before the first inference, with the model ready.
    Loaded,
    /// While running.
    Running,
    /// After the last inference.
    End,
}

/// Memory of the process that runs the model, bytes. `None` if the system does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySample {
    /// When.
    pub mark: MemoryMark,
    /// Resident set.
    pub rss: u64,
    /// Highest resident set so far.
    pub rss_peak: Option<u64>,
    /// Proportional set.
    pub pss: Option<u64>,
    /// Inferences finished so far, for the growth per inference.
    pub inferences: u64,
}
