//! State of one run.

mod fold;

use super::{LatencyStats, LaunchFacts, OpTable, PaceStats, StageTime};
use crate::event::{
    Budget, CheckResult, Confound, CoolDown, Failure, ModelInfo, NodesPlaced, OpUnit, OutputsJudged, Phase, Placement,
    RunId, RunPlan, RunStatus, RuntimeInfo, Sandbox, Setting, SettingOutcome, Stage, SubStage, TensorData, Transfer,
};
use crate::models::{Graph, Op};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

const PHASES: [Phase; 4] = [Phase::First, Phase::Warmup, Phase::Clean, Phase::Detailed];

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// In a stage.
    In(Stage),
    /// Between stages.
    Between,
    /// Ended.
    Ended(RunStatus),
}

/// Mean, smallest and largest value of a backend figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricStats {
    /// The backend's name for it.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// Samples.
    pub count: u64,
    /// Sum of the samples.
    pub sum: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl MetricStats {
    /// Mean over the samples.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
}

/// Memory of the runner, bytes. The marks are those of the first launch, the highest is that of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStats {
    /// Resident set before the vendor libraries were opened.
    pub rss_before: Option<u64>,
    /// Resident set with the model ready, before the first inference.
    pub rss_loaded: Option<u64>,
    /// Proportional set at the same moment.
    pub pss_loaded: Option<u64>,
    /// Resident set after the first inference, which allocates what stays.
    pub rss_after_first: Option<u64>,
    /// Highest resident set.
    pub rss_peak: Option<u64>,
    /// Latest resident set.
    pub rss_now: Option<u64>,
    /// Resident set after the last inference.
    pub rss_end: Option<u64>,
    /// Inferences up to `rss_end`, including the first one.
    pub inferences: u64,
}

impl MemoryStats {
    /// `rss_loaded - rss_before`.
    pub fn rss_delta(&self) -> Option<i64> {
        difference(self.rss_loaded?, self.rss_before?)
    }

    /// Growth of the resident set per inference between the end of the first inference and that of the last, bytes.
    pub fn growth_per_inference(&self) -> Option<f64> {
        let grown = difference(self.rss_end?, self.rss_after_first?)?;
        let later = self.inferences.checked_sub(1).filter(|&later| later > 0)?;
        Some(grown as f64 / later as f64)
    }
}

fn difference(after: u64, before: u64) -> Option<i64> {
    i64::try_from(after).ok()?.checked_sub(i64::try_from(before).ok()?)
}

/// State of one run.
#[derive(Debug)]
pub struct Run {
    /// Identity.
    pub id: RunId,
    /// What was asked.
    pub plan: RunPlan,
    /// Start, host monotonic microseconds.
    pub started_us: u64,
    /// End, once ended.
    pub ended_us: Option<u64>,
    /// Where it is.
    pub state: RunState,
    /// Start of the current stage.
    pub stage_started_us: u64,
    /// The model file, once identified.
    pub model: Option<ModelInfo>,
    /// The opened runtime.
    pub runtime: Option<RuntimeInfo>,
    /// Its process's confinement; `None` if not reported.
    pub sandbox: Option<Sandbox>,
    /// Runtime files that differ from the installed ones.
    pub changed_files: Vec<String>,
    /// All composed graphs in the model's order; [`Run::graph`] is the one that runs.
    pub graphs: Vec<Graph>,
    chosen: usize,
    /// Which nodes of an ONNX model ran where.
    pub nodes: Option<NodesPlaced>,
    /// Nodes of the model before conversion, by the QNN ops they became.
    sources: HashMap<String, String>,
    /// Settings and their outcomes.
    pub settings: Vec<Setting>,
    /// Times of finished stages, of the first launch.
    pub stages: Vec<StageTime>,
    /// Its launches in order; at least one.
    pub launches: Vec<LaunchFacts>,
    /// Launches planned so far.
    pub launches_planned: u32,
    /// Inferences of each phase before the current launch.
    pub(super) before_launch: [u64; 4],
    /// Parts of stages, timed by the backend.
    pub sub_stages: Vec<SubStage>,
    /// Seed of random inputs.
    pub seed: Option<u64>,
    /// Where input data came from.
    pub inputs: Vec<TensorData>,
    /// The current phase, with its budget and start.
    pub phase: Option<(Phase, Budget, u64)>,
    /// First inference.
    pub first: LatencyStats,
    /// Warm-up.
    pub warmup: LatencyStats,
    /// Clean phase: the percentiles.
    pub clean: LatencyStats,
    /// Schedule of the clean phase, if it has one; [`Run::clean`] then counts from the planned starts.
    pub pace: Option<PaceStats>,
    /// Detailed phase: wall times under profiling.
    pub detailed: LatencyStats,
    /// Op times of the detailed phase.
    pub ops: OpTable,
    /// Backend figures.
    pub metrics: Vec<MetricStats>,
    /// Memory.
    pub memory: MemoryStats,
    /// Recent resident-set samples for the chart: (host monotonic us, bytes).
    pub memory_series: Vec<(u64, u64)>,
    /// CPU time and wall time of the clean phase, all launches, microseconds.
    pub cpu_used_us: Option<(f64, f64)>,
    /// Files of saved outputs.
    pub outputs: Vec<String>,
    /// How far its outputs are from known correct ones.
    pub judged: Option<OutputsJudged>,
    /// What may have disturbed its figures, determined before it started.
    pub confounds: Vec<Confound>,
    /// The pause before it.
    pub cool_down: Option<CoolDown>,
    /// Files being sent to the device.
    pub transfer: Option<Transfer>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Where its files are.
    pub placement: Option<Placement>,
    /// Results of the checks after a failure, in order.
    pub checks: Vec<CheckResult>,
    stage_rss: Option<u64>,
    /// The stage that began last.
    last_stage: Option<Stage>,
}

impl Run {
    /// A run that just started.
    pub fn new(id: RunId, plan: RunPlan, started_us: u64) -> Self {
        let pace = plan.mode.rate_hz.map(PaceStats::new);
        Self {
            id,
            plan,
            pace,
            cool_down: None,
            started_us,
            ended_us: None,
            state: RunState::Between,
            stage_started_us: started_us,
            model: None,
            runtime: None,
            sandbox: None,
            changed_files: Vec::new(),
            graphs: Vec::new(),
            chosen: 0,
            nodes: None,
            sources: HashMap::new(),
            settings: Vec::new(),
            stages: Vec::new(),
            launches: vec![LaunchFacts::new(started_us)],
            launches_planned: 1,
            before_launch: [0; 4],
            sub_stages: Vec::new(),
            seed: None,
            inputs: Vec::new(),
            phase: None,
            first: LatencyStats::default(),
            warmup: LatencyStats::default(),
            clean: LatencyStats::default(),
            detailed: LatencyStats::default(),
            ops: OpTable::default(),
            metrics: Vec::new(),
            memory: MemoryStats::default(),
            memory_series: Vec::new(),
            cpu_used_us: None,
            outputs: Vec::new(),
            judged: None,
            confounds: Vec::new(),
            transfer: None,
            failure: None,
            placement: None,
            checks: Vec::new(),
            stage_rss: None,
            last_stage: None,
        }
    }

    /// Its current stage, or that when it ended.
    pub fn last_stage(&self) -> Stage {
        self.last_stage.unwrap_or(Stage::Prepare)
    }

    /// The first option whose result could not be written, with the reason.
    pub fn lost_output(&self) -> Option<(&str, &str)> {
        self.settings.iter().find_map(|setting| match &setting.outcome {
            SettingOutcome::Refused(reason) if setting.key.starts_with("--save-") => Some((&*setting.key, &**reason)),
            _ => None,
        })
    }

    /// Inferences of a phase in the current launch.
    pub fn done_in_launch(&self, phase: Phase) -> u64 {
        let before = PHASES.iter().zip(self.before_launch).find(|(known, _)| **known == phase);
        self.latency(phase).count() - before.map_or(0, |(_, count)| count)
    }

    /// The first inference of the first launch, microseconds: the one with cold caches.
    pub fn first_us(&self) -> Option<f64> {
        self.launches[0].first_us
    }

    /// Latency of a phase.
    pub fn latency(&self, phase: Phase) -> &LatencyStats {
        match phase {
            Phase::First => &self.first,
            Phase::Warmup => &self.warmup,
            Phase::Clean => &self.clean,
            Phase::Detailed => &self.detailed,
        }
    }

    fn latency_mut(&mut self, phase: Phase) -> &mut LatencyStats {
        match phase {
            Phase::First => &mut self.first,
            Phase::Warmup => &mut self.warmup,
            Phase::Clean => &mut self.clean,
            Phase::Detailed => &mut self.detailed,
        }
    }

    /// The graph that runs.
    pub fn graph(&self) -> Option<&Graph> {
        self.graphs.get(self.chosen)
    }

    /// True once the run has ended.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, RunState::Ended(_))
    }

    /// How it ended, once it has.
    pub fn status(&self) -> Option<RunStatus> {
        match self.state {
            RunState::Ended(status) => Some(status),
            _ => None,
        }
    }

    /// The graph's op behind a row of the op table.
    pub fn op(&self, row: usize) -> Option<&Op> {
        let index = self.ops.rows().get(row)?.op?;
        self.graph()?.ops.get(index as usize)
    }

    /// Inferences of all phases.
    pub fn inferences(&self) -> u64 {
        self.first.count() + self.warmup.count() + self.clean.count() + self.detailed.count()
    }

    /// Time of the clean inferences alone: not counted from planned starts, if any.
    pub fn service(&self) -> &LatencyStats {
        self.pace.as_ref().map_or(&self.clean, |pace| &pace.service)
    }

    /// Clean inferences a second.
    /// `None` if their start times are unknown.
    pub fn throughput_ips(&self) -> Option<f64> {
        if self.plan.mode.origin.as_ref().is_some_and(|origin| !origin.has_moments) {
            return None;
        }
        match &self.pace {
            Some(pace) => pace.throughput_ips(&self.clean),
            None => self.clean.throughput_ips(),
        }
    }

    /// Mean latency of the detailed phase divided by that of the clean phase: the cost of tracing.
    pub fn overhead_factor(&self) -> Option<f64> {
        let clean = self.service().mean_us().filter(|mean| *mean > 0.0)?;
        Some(self.detailed.mean_us()? / clean)
    }

    /// Microseconds per unit of the op table: 1 for microseconds; for cycles the accelerator's mean time divided by the
    /// mean sum of the op cycles, so a *derived* figure. `None` where the backend tells no accelerator time.
    pub fn us_per_op_unit(&self) -> Option<f64> {
        match self.ops.unit()? {
            OpUnit::Us => Some(1.0),
            OpUnit::Cycles => {
                let accelerator = self.metric("Accelerator (execute) time").filter(|metric| metric.unit == "us")?;
                let cycles = self.ops.mean_total().filter(|cycles| *cycles > 0.0)?;
                Some(accelerator.mean() / cycles)
            }
        }
    }

    /// The node of the model before conversion that an op of this name belongs to, if known.
    pub fn source_node(&self, op: &str) -> Option<&str> {
        self.sources.get(op).map(String::as_str)
    }

    /// The same for a row of the op table.
    pub fn source_of_row(&self, row: usize) -> Option<&str> {
        self.source_node(&self.ops.rows().get(row)?.name)
    }

    /// True if microseconds of ops are derived from cycles.
    pub fn op_time_is_derived(&self) -> bool {
        self.ops.unit() == Some(OpUnit::Cycles)
    }

    /// Mean time of a row scaled to the clean latency: its share of the op sum times the clean mean, microseconds.
    pub fn scaled_op_us(&self, row: usize) -> Option<f64> {
        Some(self.ops.share(row) * self.service().mean_us()?)
    }

    /// A backend figure by name.
    pub fn metric(&self, name: &str) -> Option<&MetricStats> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Time of a stage, microseconds.
    pub fn stage_us(&self, stage: Stage) -> Option<f64> {
        self.stages.iter().find(|time| time.stage == stage).map(|time| time.duration_us)
    }

    /// CPU use of the runner during the clean phase, per cent of one core.
    pub fn cpu_utilization_percent(&self) -> Option<f64> {
        let (cpu_us, wall_us) = self.cpu_used_us?;
        (wall_us > 0.0).then(|| 100.0 * cpu_us / wall_us)
    }
}
