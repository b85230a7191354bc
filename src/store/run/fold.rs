//! Events of a run, folded into its state.

use super::{MetricStats, PHASES, Run, RunState, StageTime, difference};
use crate::event::{Event, MemoryMark, MemorySample, Metric, MetricSample, Phase, Stage};
use crate::store::LaunchFacts;

impl Run {
    /// Folds one event of this run in.
    pub(in crate::store) fn apply(&mut self, t_us: u64, event: &Event) {
        match event {
            Event::ModelIdentified(model) => self.model = Some((**model).clone()),
            Event::RuntimeLoaded(runtime) => self.runtime = Some(runtime.clone()),
            Event::LaunchStarted { index, of, reason } => self.begin_launch(t_us, *index, *of, reason.as_ref()),
            Event::Sandboxed(sandbox) => self.sandbox = Some((**sandbox).clone()),
            Event::RuntimeChanged { files, .. } => self.changed_files.clone_from(files),
            // Settings applied the same way by a later launch are already known.
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
            // A later launch loads the same model: it would only be counted twice.
            Event::SubStageFinished(_)
            | Event::GraphComposed(_)
            | Event::NodesPlaced(_)
            | Event::OutputsSaved { .. }
                if !self.is_first_launch() => {}
            Event::SubStageFinished(sub) => {
                // The compiler's planned traffic is also a backend figure.
                if sub.unit == "bytes" {
                    self.fold_metric(&Metric { name: sub.name.clone(), unit: sub.unit.clone(), value: sub.value });
                }
                self.sub_stages.push(sub.clone());
            }
            Event::GraphComposed(graph) => self.graphs.push((**graph).clone()),
            Event::GraphChosen { name } => {
                self.chosen = self.graphs.iter().position(|graph| graph.name == *name).unwrap_or(0);
            }
            Event::NodesPlaced(placed) => {
                for node in placed.of_model() {
                    for op in &node.qnn_ops {
                        self.sources.entry(op.clone()).or_insert_with(|| node.node.clone());
                    }
                }
                self.nodes = Some((**placed).clone());
            }
            // A compiled model's map knows more about its ops than the nodes that contain them.
            Event::SourceNamed(names) => {
                self.sources.extend(names.nodes.iter().map(|(op, node)| (op.clone(), node.clone())));
            }
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
            Event::OutputsJudged(judged) => self.judged = Some((**judged).clone()),
            Event::Failed(failure) => self.failure = Some((**failure).clone()),
            Event::RunPlaced(placement) => self.placement = Some((**placement).clone()),
            Event::CheckFinished(result) => self.checks.push((**result).clone()),
            // Later findings add to those from before the run.
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

    /// A fresh process continues the run. The first one exists from the start.
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

    /// The next inferences come from another process.
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

    /// The current launch, or the last one.
    fn launch(&mut self) -> &mut LaunchFacts {
        let last = self.launches.len() - 1;
        &mut self.launches[last]
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
