//! State of one run.

use super::{LatencyStats, LaunchFacts, OpTable, PaceStats};
use crate::event::{
    Budget, CheckResult, Confound, CoolDown, Event, Failure, MemoryMark, MemorySample, Metric, MetricSample, ModelInfo,
    NodesPlaced, OpUnit, Phase, Placement, RunId, RunPlan, RunStatus, RuntimeInfo, Sandbox, Setting, SettingOutcome,
    Stage, SubStage, TensorData, Transfer,
};
use crate::models::{Graph, Op};
use serde::{Deserialize, Serialize};

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
    /// Inferences up to `rss_end`, the first one included.
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
    /// How far its process was confined; `None` where nobody told.
    pub sandbox: Option<Sandbox>,
    /// Files of the runtime that were not as they were installed.
    pub changed_files: Vec<String>,
    /// All composed graphs in the model's order; [`Run::graph`] is the one that runs.
    pub graphs: Vec<Graph>,
    chosen: usize,
    /// Which nodes of an ONNX model ran where.
    pub nodes: Option<NodesPlaced>,
    /// Settings and what became of them.
    pub settings: Vec<Setting>,
    /// Times of finished stages, of the first launch.
    pub stages: Vec<StageTime>,
    /// Its launches in the order they were made; there is at least one.
    pub launches: Vec<LaunchFacts>,
    /// Launches planned so far.
    pub launches_planned: u32,
    /// Inferences of each phase before the launch that goes on.
    pub(super) before_launch: [u64; 4],
    /// Parts of stages as the backend timed them.
    pub sub_stages: Vec<SubStage>,
    /// Seed of random inputs.
    pub seed: Option<u64>,
    /// Where input data came from.
    pub inputs: Vec<TensorData>,
    /// The phase going on, with its budget and start.
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
    /// Processor time and wall time of the clean phase, all launches, microseconds.
    pub cpu_used_us: Option<(f64, f64)>,
    /// Files of saved outputs.
    pub outputs: Vec<String>,
    /// What may have disturbed its figures, as found before it started.
    pub confounds: Vec<Confound>,
    /// The pause before it.
    pub cool_down: Option<CoolDown>,
    /// Files on their way to the device.
    pub transfer: Option<Transfer>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Where its files are.
    pub placement: Option<Placement>,
    /// What the checks after a failure found, in the order in which they were made.
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
            confounds: Vec::new(),
            transfer: None,
            failure: None,
            placement: None,
            checks: Vec::new(),
            stage_rss: None,
            last_stage: None,
        }
    }

    /// The stage that it is in, or that it was in when it ended.
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

    /// Folds one event of this run in.
    pub(super) fn apply(&mut self, t_us: u64, event: &Event) {
        match event {
            Event::ModelIdentified(model) => self.model = Some((**model).clone()),
            Event::RuntimeLoaded(runtime) => self.runtime = Some(runtime.clone()),
            Event::LaunchStarted { index, of, reason } => self.begin_launch(t_us, *index, *of, reason.as_ref()),
            Event::Sandboxed(sandbox) => self.sandbox = Some((**sandbox).clone()),
            Event::RuntimeChanged { files, .. } => self.changed_files.clone_from(files),
            // What a later launch settles in the same way was told already.
            Event::SettingApplied(setting) if !self.is_first_launch() && self.settings.contains(setting) => {}
            Event::SettingApplied(setting) => self.settings.push(setting.clone()),
            Event::StageStarted { stage } => {
                self.state = RunState::In(*stage);
                self.last_stage = Some(*stage);
                self.stage_started_us = t_us;
            }
            Event::StageFinished { stage, duration_us } => {
                self.state = RunState::Between;
                let time = StageTime { stage: *stage, duration_us: *duration_us, rss_delta: None };
                if self.is_first_launch() {
                    self.stages.push(time);
                }
                self.launch().stages.push(time);
                if *stage == Stage::Teardown {
                    self.phase = None;
                }
            }
            // What a later launch loads is the same model: it would only be counted twice.
            Event::SubStageFinished(_)
            | Event::GraphComposed(_)
            | Event::NodesPlaced(_)
            | Event::OutputsSaved { .. }
                if !self.is_first_launch() => {}
            Event::SubStageFinished(sub) => {
                // Traffic that the compiler foresees is a figure of the backend, too.
                if sub.unit == "bytes" {
                    self.fold_metric(&Metric { name: sub.name.clone(), unit: sub.unit.clone(), value: sub.value });
                }
                self.sub_stages.push(sub.clone());
            }
            Event::GraphComposed(graph) => self.graphs.push((**graph).clone()),
            Event::GraphChosen { name } => {
                self.chosen = self.graphs.iter().position(|graph| graph.name == *name).unwrap_or(0);
            }
            Event::NodesPlaced(placed) => self.nodes = Some((**placed).clone()),
            Event::InputsPrepared { seed, inputs } => {
                self.seed = Some(*seed);
                self.inputs.clone_from(inputs);
            }
            Event::PhaseStarted { phase, budget } => self.phase = Some((*phase, *budget, t_us)),
            Event::RoundStarted { .. } => self.interrupt(),
            Event::Inferences(batch) if !batch.late_ns.is_empty() && batch.phase == Phase::Clean => {
                if let Some(pace) = &mut self.pace {
                    pace.push(batch, &mut self.clean);
                }
            }
            Event::PaceReported(report) => {
                if let Some(pace) = &mut self.pace {
                    pace.take(report);
                }
            }
            Event::CoolingDown(cool_down) => self.cool_down = Some(cool_down.clone()),
            Event::Inferences(batch) => {
                if let (Phase::First, Some(&latency_ns)) = (batch.phase, batch.latency_ns.first()) {
                    self.launch().first_us.get_or_insert(latency_ns as f64 / 1000.0);
                }
                let stats = self.latency_mut(batch.phase);
                for (&start_us, &latency_ns) in batch.start_us.iter().zip(&batch.latency_ns) {
                    stats.push(start_us, latency_ns);
                }
            }
            Event::OpsDeclared(rows) if self.is_first_launch() => self.ops.declare(rows),
            Event::OpsDeclared(rows) => self.ops.declare_again(rows),
            Event::OpTimes(sample) => self.ops.push(&sample.values),
            Event::Metrics(sample) => self.fold_metrics(sample),
            Event::Memory(sample) => self.fold_memory(t_us, sample),
            Event::CpuUsed { cpu_us, wall_us } => {
                self.launch().cpu_used_us = Some((*cpu_us, *wall_us));
                let (cpu, wall) = self.cpu_used_us.unwrap_or_default();
                self.cpu_used_us = Some((cpu + cpu_us, wall + wall_us));
            }
            Event::OutputsSaved { files } => self.outputs.extend(files.iter().cloned()),
            Event::Failed(failure) => self.failure = Some((**failure).clone()),
            Event::RunPlaced(placement) => self.placement = Some((**placement).clone()),
            Event::CheckFinished(result) => self.checks.push((**result).clone()),
            // What is found later adds to what was found before the run.
            Event::ConfoundsFound(confounds) => {
                for confound in confounds {
                    self.confounds.retain(|known| known.id != confound.id);
                    self.confounds.push(confound.clone());
                }
            }
            Event::FilesSent(transfer) => self.transfer = Some(transfer.clone()),
            Event::RunFinished { status } => {
                self.state = RunState::Ended(*status);
                self.ended_us = Some(t_us);
                self.phase = None;
            }
            _ => {}
        }
    }

    /// A fresh process goes on with the run. The first one is there from the start.
    fn begin_launch(&mut self, t_us: u64, index: u32, of: u32, reason: Option<&String>) {
        self.launches_planned = of;
        if index == 0 {
            self.launches[0].started_us = t_us;
            return;
        }
        self.launches.push(LaunchFacts { reason: reason.cloned(), ..LaunchFacts::new(t_us) });
        self.state = RunState::Between;
        self.stage_started_us = t_us;
        self.phase = None;
        self.stage_rss = None;
        self.before_launch = PHASES.map(|phase| self.latency(phase).count());
        self.interrupt();
    }

    /// Inferences of a phase in the launch that goes on.
    pub fn done_in_launch(&self, phase: Phase) -> u64 {
        let before = PHASES.iter().zip(self.before_launch).find(|(known, _)| **known == phase);
        self.latency(phase).count() - before.map_or(0, |(_, count)| count)
    }

    /// The next inferences are those of another process.
    fn interrupt(&mut self) {
        for phase in PHASES {
            self.latency_mut(phase).interrupt();
        }
        if let Some(pace) = &mut self.pace {
            pace.service.interrupt();
        }
    }

    fn is_first_launch(&self) -> bool {
        self.launches.len() == 1
    }

    /// The launch that goes on, or the last one.
    fn launch(&mut self) -> &mut LaunchFacts {
        let last = self.launches.len() - 1;
        &mut self.launches[last]
    }

    /// The first inference of the first launch, microseconds: the one that may find cold caches.
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

    /// What the clean inferences themselves took: not counted from planned starts, where there are any.
    pub fn service(&self) -> &LatencyStats {
        self.pace.as_ref().map_or(&self.clean, |pace| &pace.service)
    }

    /// Clean inferences a second.
    /// `None` where nothing says when they began.
    pub fn throughput_ips(&self) -> Option<f64> {
        if self.plan.mode.origin.as_ref().is_some_and(|origin| !origin.has_moments) {
            return None;
        }
        match &self.pace {
            Some(pace) => pace.throughput_ips(&self.clean),
            None => self.clean.throughput_ips(),
        }
    }

    /// Mean latency of the detailed phase divided by that of the clean phase; what the tracing costs.
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

    /// Processor use of the runner during the clean phase, per cent of one core.
    pub fn cpu_utilization_percent(&self) -> Option<f64> {
        let (cpu_us, wall_us) = self.cpu_used_us?;
        (wall_us > 0.0).then(|| 100.0 * cpu_us / wall_us)
    }

    fn fold_metrics(&mut self, sample: &MetricSample) {
        for metric in &sample.metrics {
            self.fold_metric(metric);
        }
    }

    fn fold_metric(&mut self, metric: &Metric) {
        match self.metrics.iter_mut().find(|known| known.name == metric.name && known.unit == metric.unit) {
            Some(known) => {
                known.count += 1;
                known.sum += metric.value;
                known.min = known.min.min(metric.value);
                known.max = known.max.max(metric.value);
            }
            None => self.metrics.push(MetricStats {
                name: metric.name.clone(),
                unit: metric.unit.clone(),
                count: 1,
                sum: metric.value,
                min: metric.value,
                max: metric.value,
            }),
        }
    }

    fn fold_memory(&mut self, t_us: u64, sample: &MemorySample) {
        let memory = &mut self.memory;
        memory.rss_now = Some(sample.rss);
        let peak = sample.rss_peak.unwrap_or(sample.rss).max(sample.rss);
        memory.rss_peak = Some(memory.rss_peak.unwrap_or(0).max(peak));
        let first = self.launches.len() == 1;
        match sample.mark {
            MemoryMark::BeforeLoad => {
                if first {
                    memory.rss_before = Some(sample.rss);
                }
                self.stage_rss = Some(sample.rss);
            }
            MemoryMark::After(stage) => {
                if first && stage == Stage::FirstInference {
                    memory.rss_after_first = Some(sample.rss);
                }
                let delta = self.stage_rss.and_then(|before| difference(sample.rss, before));
                let times = if first { &mut self.stages } else { &mut self.launch().stages };
                if let Some(time) = times.iter_mut().rev().find(|time| time.stage == stage) {
                    time.rss_delta = delta;
                }
                self.stage_rss = Some(sample.rss);
            }
            MemoryMark::Loaded => {
                if first {
                    memory.rss_loaded = Some(sample.rss);
                    memory.pss_loaded = sample.pss;
                }
                self.stage_rss = Some(sample.rss);
            }
            MemoryMark::Running => {}
            MemoryMark::End => {
                if first {
                    memory.rss_end = Some(sample.rss);
                    memory.inferences = sample.inferences;
                }
            }
        }
        // A point per sample, thinned by halves, so that the series stays bounded and spans the whole run.
        if self.memory_series.len() >= 4096 {
            let mut keep = false;
            self.memory_series.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.memory_series.push((t_us, sample.rss));
    }
}
