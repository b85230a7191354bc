//! What is known about one launch of a run.

use crate::event::Stage;

/// Time of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageTime {
    /// Which stage.
    pub stage: Stage,
    /// Microseconds.
    pub duration_us: f64,
    /// Growth of the resident set during it, bytes, if both ends were sampled.
    pub rss_delta: Option<i64>,
}

/// A process that makes a share of the run's inferences. Its latencies are with those of the run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LaunchFacts {
    /// Start, host monotonic microseconds.
    pub started_us: u64,
    /// Why it was added to the initially planned launches.
    pub reason: Option<String>,
    /// Times of its finished stages; of the first launch without memory, which `Run::stages` has.
    pub stages: Vec<StageTime>,
    /// Its first inference, microseconds.
    pub first_us: Option<f64>,
    /// CPU time and wall time of its clean phase, microseconds.
    pub cpu_used_us: Option<(f64, f64)>,
}

impl LaunchFacts {
    /// A launch that just started.
    pub(super) fn new(started_us: u64) -> Self {
        Self { started_us, ..Self::default() }
    }

    /// CPU use during its clean phase, per cent of one core.
    pub fn cpu_utilization_percent(&self) -> Option<f64> {
        let (cpu_us, wall_us) = self.cpu_used_us?;
        (wall_us > 0.0).then(|| 100.0 * cpu_us / wall_us)
    }
}
