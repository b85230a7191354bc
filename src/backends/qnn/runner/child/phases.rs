//! The inferences of a run, phase by phase.

use super::clock::cpu_ns;
use super::failed::Failed;
use super::layers::{Layers, send_metrics, split};
use super::measure::{self, Loop};
use super::pin::Pinning;
use super::run::Stages;
use super::{outputs, straight};
use crate::backends::ProfilingLevel;
use crate::backends::qnn::api::{Backend as QnnBackend, Profile, QnnError};
use crate::backends::qnn::runner::run_task::RunTask;
use crate::event::{Budget, Event, LogLevel, Phase, Stage, clean_text};
use crate::models::Graph;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Stages<'_> {
    /// First inference, warm-up, lead of the detailed phase, clean phase, rest of the detailed phase; or all in one go.
    pub(super) fn measure(
        &mut self,
        task: &RunTask,
        backend: &Rc<QnnBackend>,
        graph: &Graph,
        measuring: &mut Loop<'_>,
        pinning: &Pinning,
    ) -> Result<(), Failed> {
        let (emitter, log) = (self.emitter, &self.log);
        log.begin_inferences(&graph.name);
        if let Some(straight) = &task.straight {
            let count = self
                .stage(Stage::Execute, || straight::run(task, straight, (backend, graph), emitter, measuring, log))?;
            self.inferences += count;
            self.log.end_inferences();
            return Ok(());
        }
        let load_s = self.began.elapsed().as_secs_f64();
        let (budget, profiling_budget) = task.budgets(load_s);
        if let Some(text) = task.slow_load_text(load_s) {
            emitter.runner_log(LogLevel::Warning, &text);
        }
        let first = |e| Failed::qnn(Stage::FirstInference, e);
        self.stage(Stage::FirstInference, || {
            measuring
                .run(Phase::First, 0, Budget::Iterations(1), None, |_, inference| log.inference(&inference))
                .map_err(first)
        })?;
        self.inferences += 1;
        // The backend's threads exist now, wherever it placed them.
        self.pinned(pinning.settle());
        if let Some(dir) = &task.save_outputs {
            self.save_outputs(task, dir, measuring)?;
        }
        emitter.event(Event::StageStarted { stage: Stage::Execute });
        let begun = Instant::now();
        let at = |e| Failed::qnn(Stage::Execute, e);
        self.inferences += measuring
            .run(Phase::Warmup, 0, Budget::Iterations(task.warmup), None, |_, inference| self.log.inference(&inference))
            .map_err(at)?;
        let mut layers = match task.profiling {
            ProfilingLevel::Detailed => {
                Some(Layers::new(emitter, graph, Profile::create(backend, ProfilingLevel::Detailed).map_err(at)?))
            }
            _ => None,
        };
        let (lead, rest) = split(profiling_budget);
        if let Some(layers) = &mut layers {
            layers.measure(lead, measuring, &self.log).map_err(at)?;
        }
        self.clean(task, budget, backend, measuring).map_err(at)?;
        if let Some(layers) = &mut layers {
            layers.measure(rest, measuring, &self.log).map_err(at)?;
            self.inferences += layers.done();
        }
        self.log.end_inferences();
        emitter.event(Event::StageFinished { stage: Stage::Execute, duration_us: begun.elapsed().as_secs_f64() * 1e6 });
        Ok(())
    }

    /// The phase that yields the percentiles.
    fn clean(
        &mut self,
        task: &RunTask,
        budget: Budget,
        backend: &Rc<QnnBackend>,
        measuring: &mut Loop<'_>,
    ) -> Result<(), QnnError> {
        if measuring.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Basic profiling costs nothing per op, so its totals can be recorded here on request.
        let level = if task.profiling == ProfilingLevel::Basic { ProfilingLevel::Basic } else { ProfilingLevel::Off };
        let profile = Profile::create(backend, level)?;
        let emitter = self.emitter;
        let (cpu, wall) = (cpu_ns(), Instant::now());
        self.inferences += measuring.run(Phase::Clean, 0, budget, profile.as_ref(), |_, inference| {
            self.log.inference(&inference);
            send_metrics(emitter, Phase::Clean, inference.index, &inference.events);
        })?;
        emitter.event(Event::CpuUsed {
            cpu_us: (cpu_ns() - cpu) as f64 / 1e3,
            wall_us: wall.elapsed().as_secs_f64() * 1e6,
        });
        Ok(())
    }

    /// Runs every input set once and writes its outputs, outside all measuring.
    fn save_outputs(&self, task: &RunTask, dir: &Path, measuring: &mut Loop<'_>) -> Result<(), Failed> {
        let tensors = measuring.execution.outputs();
        let checked = outputs::check(&task.guard(), dir, measuring.sets.len(), &tensors);
        checked.map_err(|error| Failed::from(error).at(Stage::Execute))?;
        let mut files = Vec::new();
        for (index, set) in measuring.sets.iter().enumerate() {
            measure::load(measuring.execution, set);
            measuring.execution.run(None).map_err(|e| Failed::qnn(Stage::Execute, e))?;
            let data: Vec<_> = tensors
                .iter()
                .enumerate()
                .map(|(i, tensor)| (tensor.clone(), measuring.execution.output(i).unwrap_or_default().to_vec()))
                .collect();
            let written = outputs::save(dir, index, &data).map_err(|e| {
                let message = format!("cannot write outputs to {}: {e}", dir.display());
                Failed::lost(Stage::Execute, "save outputs", message)
            })?;
            files.extend(written.iter().map(|path| clean_text(&path.to_string_lossy())));
        }
        if let Some(set) = measuring.sets.first() {
            measure::load(measuring.execution, set);
        }
        self.emitter.event(Event::OutputsSaved { files });
        Ok(())
    }
}
