//! One run of an ONNX model, stage by stage: through ONNX Runtime with QNN as a plug-in.
//!
//! Latencies come from a session without profiling and with almost no logging. Anything that needs a verbose
//! log or a profile (the reasons for the placement, the times of ops and nodes) comes from a second session
//! afterwards.

pub mod convert;
mod detail;
mod load;
mod model;
pub mod tensors;

pub use model::graph_of;

use super::clock::cpu_ns;
use super::emit::Emitter;
use super::failed::Failed;
use super::inputs;
use super::measure::{self, Executes, Loop};
use super::outputs;
use super::pin::Pinning;
use super::run::Stages;
use crate::backends::ProfilingLevel;
use crate::backends::onnx::{PlacementLog, place, placement::Known};
use crate::backends::qnn::api::{Profile, ProfileEvent};
use crate::backends::qnn::onnx::{LogLine, LogSink, OnnxError, OnnxSession, PROVIDER};
use crate::backends::qnn::runner::run_task::{OnnxTask, RunTask};
use crate::event::{
    Budget, Event, LogLevel, MemoryMark, NodeProvider, NodesPlaced, Phase, Setting, SettingOutcome, Stage, clean_text,
};
use crate::models::{Tensor, TensorKind};
use load::Loaded;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

impl Executes for OnnxSession {
    type Error = OnnxError;

    fn execute(&mut self, _profile: Option<&Profile>) -> Result<(), OnnxError> {
        self.run()
    }

    fn events(_profile: &Profile) -> Result<Vec<ProfileEvent>, OnnxError> {
        // The plug-in owns QNN's handle; its profiling data comes from its log.
        Ok(Vec::new())
    }

    fn set(&mut self, index: usize, data: &[u8]) -> bool {
        self.set_input(index, data)
    }
}

/// A failed call at a stage.
fn at(stage: Stage) -> impl Fn(OnnxError) -> Failed {
    move |error| Failed::onnx(stage, &error)
}

impl Stages<'_> {
    /// Executes a run of an ONNX model.
    pub(super) fn run_onnx(&mut self, task: &RunTask, onnx: &OnnxTask, stop: &AtomicBool) -> Result<(), Failed> {
        self.memory(MemoryMark::BeforeLoad);
        let (pinning, pinned) = Pinning::begin(&task.pin);
        self.pinned(pinned);
        let source = self.stage(Stage::Prepare, || model::read(task, onnx))?;
        let loaded = self.load_onnx(task, onnx)?;
        let mut session = self.create(task, &loaded)?;
        let model = model::describe(task, &source, &session, loaded.model != task.model)?;
        if !model.free.is_empty() {
            let text = format!(
                "the model has free dimensions, set to 1 in this run; give them a size, or QNN takes no node: {}",
                model.free.join(" ")
            );
            self.emitter.runner_log(LogLevel::Warning, &text);
        }
        self.emitter.event(Event::GraphComposed(Box::new(model.graph.clone())));
        self.emitter.event(Event::GraphChosen { name: model.graph.name.clone() });
        let placed = self.placed(task, onnx, &loaded, &model, &session)?;
        if onnx.placement_only {
            drop(session);
            return self.only_placed(task, loaded, &model, &placed);
        }
        let shapes: Vec<Vec<u64>> = model
            .graph
            .inputs
            .iter()
            .map(|tensor| tensor.shape.iter().map(|size| u64::from(*size)).collect())
            .collect();
        let (sets, origin) = inputs::prepare(task, &model.graph.inputs)?;
        self.emitter.event(Event::InputsPrepared { seed: task.seed, inputs: origin });
        session.allocate(&shapes).map_err(at(Stage::Prepare))?;
        if let Some(set) = sets.first() {
            measure::load(&mut session, set);
        }
        self.memory(MemoryMark::Loaded);
        let mut measuring =
            Loop { emitter: self.emitter, execution: &mut session, sets: &sets, stop, rate_hz: task.rate_hz };
        let profiling_budget = self.measure_onnx(task, &mut measuring, &pinning, &model.outputs)?;
        self.memory(MemoryMark::End);
        drop(session);
        let wants_times = task.profiling == ProfilingLevel::Detailed && profiling_budget != Budget::Iterations(0);
        let wants_reasons = !onnx.reference && (placed.count(NodeProvider::Cpu) > 0 || placed.is_all_cpu());
        if !stop.load(Ordering::Relaxed) && (wants_times || wants_reasons) {
            let budget = wants_times.then_some(profiling_budget);
            let detailed = self.detail(task, &loaded, &model, &shapes, &sets, stop, budget);
            // The latencies are valid even without it.
            if let Err(failed) = detailed {
                let text = format!("no reasons and times per node: {}", failed.message());
                self.emitter.runner_log(LogLevel::Warning, &text);
            }
        }
        self.stage(Stage::Teardown, || {
            drop(loaded);
            Ok(())
        })
    }

    /// Ends a check: with the reasons, if QNN leaves nodes to the CPU.
    fn only_placed(
        &mut self,
        task: &RunTask,
        loaded: Loaded,
        model: &model::Described,
        placed: &NodesPlaced,
    ) -> Result<(), Failed> {
        let wants_reasons = placed.count(NodeProvider::Cpu) > 0 || placed.is_all_cpu();
        if wants_reasons && let Some(placed) = self.reasons(task, &loaded, model) {
            self.emitter.event(Event::NodesPlaced(Box::new(placed)));
        }
        self.stage(Stage::Teardown, || {
            drop(loaded);
            Ok(())
        })
    }

    /// First inference, outputs, warm-up, clean phase; returns the budget of the detailed phase.
    fn measure_onnx(
        &mut self,
        task: &RunTask,
        measuring: &mut Loop<'_, OnnxSession>,
        pinning: &Pinning,
        outputs: &[Tensor],
    ) -> Result<Budget, Failed> {
        let load_s = self.began.elapsed().as_secs_f64();
        let (budget, profiling_budget) = task.budgets(load_s);
        if let Some(text) = task.slow_load_text(load_s) {
            self.emitter.runner_log(LogLevel::Warning, &text);
        }
        self.stage(Stage::FirstInference, || {
            measuring.run(Phase::First, 0, Budget::Iterations(1), None, |_, _| {}).map_err(at(Stage::FirstInference))
        })?;
        self.inferences += 1;
        self.pinned(pinning.settle());
        if let Some(dir) = &task.save_outputs {
            save_outputs(task, dir, measuring, outputs, self.emitter)?;
        }
        self.emitter.event(Event::StageStarted { stage: Stage::Execute });
        let begun = Instant::now();
        let failed = at(Stage::Execute);
        self.inferences +=
            measuring.run(Phase::Warmup, 0, Budget::Iterations(task.warmup), None, |_, _| {}).map_err(&failed)?;
        if !measuring.stop.load(Ordering::Relaxed) {
            let (cpu, wall) = (cpu_ns(), Instant::now());
            self.inferences += measuring.run(Phase::Clean, 0, budget, None, |_, _| {}).map_err(&failed)?;
            self.emitter.event(Event::CpuUsed {
                cpu_us: (cpu_ns() - cpu) as f64 / 1e3,
                wall_us: wall.elapsed().as_secs_f64() * 1e6,
            });
        }
        let duration_us = begun.elapsed().as_secs_f64() * 1e6;
        self.emitter.event(Event::StageFinished { stage: Stage::Execute, duration_us });
        Ok(profiling_budget)
    }

    /// Reports which provider has which node; an error if the CPU has one although it must not.
    fn placed(
        &self,
        task: &RunTask,
        onnx: &OnnxTask,
        loaded: &Loaded,
        model: &model::Described,
        session: &OnnxSession,
    ) -> Result<NodesPlaced, Failed> {
        let assignment = session.assignment().map_err(at(Stage::Finalize))?;
        let known = Known { assignment: &assignment, provider: PROVIDER, ..model.known() };
        let placed = place(known);
        self.emitter.event(Event::NodesPlaced(Box::new(placed.clone())));
        if !onnx.no_cpu_fallback || placed.nodes.iter().all(|node| node.provider != NodeProvider::Cpu) {
            return Ok(placed);
        }
        // Only a verbose session shows why.
        let placed = self.reasons(task, loaded, model).unwrap_or(placed);
        self.emitter.event(Event::NodesPlaced(Box::new(placed.clone())));
        Err(fallback_refused(&placed))
    }

    /// Settings and their outcomes.
    fn settle(&self, settings: &[Setting]) {
        for setting in settings {
            self.emitter.event(Event::SettingApplied(setting.clone()));
        }
    }
}

/// Maximum number of nodes named in a message.
const NAMED: usize = 5;

fn fallback_refused(placed: &NodesPlaced) -> Failed {
    let on_cpu: Vec<_> = placed.nodes.iter().filter(|node| node.provider == NodeProvider::Cpu).collect();
    let mut named: Vec<String> = on_cpu
        .iter()
        .take(NAMED)
        .map(|node| {
            let reason = node.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            format!("`{}` ({}){reason}", node.node, node.op_type)
        })
        .collect();
    if on_cpu.len() > NAMED {
        named.push(format!("and {} more", on_cpu.len() - NAMED));
    }
    let all = placed.nodes.iter().filter(|node| node.provider != NodeProvider::None).count();
    let message = format!(
        "{} of {all} nodes fell back to the CPU, which --no-cpu-fallback forbids: {}",
        on_cpu.len(),
        named.join("; ")
    );
    let code = on_cpu.iter().find_map(|node| node.code);
    Failed::with_code(Stage::Finalize, "GetCapability", code, message)
}

/// Warnings of healthy sessions; the placement reports what they hint at node by node.
const HARMLESS: [&str; 4] = [
    "Some nodes were not assigned to the preferred execution providers",
    "Rerunning with verbose output",
    "File mapped weights feature is only available",
    "Unable to get producer node for OrtValueInfo",
];

/// Sink for a session's log lines: passes to the stream those the user wants to see.
fn to_stream(emitter: &Arc<Emitter>, most: LogLevel) -> LogSink {
    let emitter = emitter.clone();
    Arc::new(move |line: LogLine<'_>| {
        let harmless = HARMLESS.iter().any(|words| line.text.contains(words));
        let level = if harmless { LogLevel::Verbose.max(line.level) } else { line.level };
        if level <= most {
            emitter.backend_log(line.level, line.text.trim_end());
        }
    })
}

/// A log read for the placement.
#[derive(Clone, Default)]
struct Overheard(Arc<Mutex<PlacementLog>>);

impl Overheard {
    /// Processes lines, and puts on the stream those that the user wants to see and the first session did not
    /// report.
    fn sink(&self, emitter: &Arc<Emitter>, most: LogLevel) -> LogSink {
        let (log, emitter) = (self.0.clone(), emitter.clone());
        Arc::new(move |line: LogLine<'_>| {
            log.lock().unwrap_or_else(PoisonError::into_inner).take(line.level, line.text);
            if line.level <= most && line.level > LogLevel::Warning {
                emitter.backend_log(line.level, line.text.trim_end());
            }
        })
    }

    /// Inspects what was collected.
    fn with<T>(&self, look: impl FnOnce(&PlacementLog) -> T) -> T {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs every input set once and writes its outputs, outside all measuring.
fn save_outputs(
    task: &RunTask,
    dir: &Path,
    measuring: &mut Loop<'_, OnnxSession>,
    declared: &[Tensor],
    emitter: &Emitter,
) -> Result<(), Failed> {
    let checked = outputs::check(&task.guard(), dir, measuring.sets.len(), declared);
    checked.map_err(|error| Failed::from(error).at(Stage::Execute))?;
    let mut files = Vec::new();
    for (index, set) in measuring.sets.iter().enumerate() {
        measure::load(measuring.execution, set);
        let got = measuring.execution.run_for_outputs().map_err(at(Stage::Execute))?;
        let mut data = Vec::with_capacity(got.len());
        for (tensor, output) in declared.iter().zip(got) {
            let Some(output) = output else {
                let text = format!("output `{}` is not a tensor of plain numbers and is not saved", tensor.name);
                emitter.runner_log(LogLevel::Warning, &text);
                continue;
            };
            let shape = output.shape.iter().map(|size| u32::try_from(*size).unwrap_or(u32::MAX)).collect();
            data.push((Tensor { shape, ..tensor.clone() }, output.bytes));
        }
        let written = outputs::save(dir, index, &data).map_err(|error| {
            let message = format!("cannot write outputs to {}: {error}", dir.display());
            Failed::lost(Stage::Execute, "save outputs", message)
        })?;
        files.extend(written.iter().map(|path| clean_text(&path.to_string_lossy())));
    }
    if let Some(set) = measuring.sets.first() {
        measure::load(measuring.execution, set);
    }
    emitter.event(Event::OutputsSaved { files });
    Ok(())
}

/// An input or output of the model in graph form; free dimensions are 1.
fn tensor(declared: &crate::backends::qnn::onnx::OnnxTensor, kind: TensorKind) -> Result<Tensor, Failed> {
    use crate::backends::qnn::onnx::Dimension;
    let Some(dtype) = declared.dtype else {
        let error = OnnxError::NotNumbers { name: clean_text(&declared.name), found: clean_text(&declared.type_name) };
        return Err(Failed::onnx(Stage::Prepare, &error));
    };
    let size = |dimension: &Dimension| match dimension {
        Dimension::Fixed(size) => u32::try_from(*size).unwrap_or(u32::MAX),
        Dimension::Free(_) => 1,
    };
    Ok(Tensor {
        name: clean_text(&declared.name),
        dtype,
        shape: declared.shape.iter().map(size).collect(),
        quantization: None,
        kind,
    })
}

/// An option that has no effect in a run of an ONNX model.
fn no_use(key: &str, value: &Path, instead: &str) -> Setting {
    Setting {
        key: key.to_owned(),
        value: clean_text(&value.to_string_lossy()),
        outcome: SettingOutcome::NoEffect(instead.to_owned()),
    }
}
