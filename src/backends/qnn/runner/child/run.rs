//! One run, stage by stage.

use super::emit::Emitter;
use super::events;
use super::failed::{Failed, explain_compose, report_failure, unreadable_dlc};
use super::inputs;
use super::inspect::with_order;
use super::listing;
use super::measure::{self, Loop};
use super::model::{identify_model, open_library, open_system, runtime_info};
use super::pin::Pinning;
use super::run_log::{RunLog, timed};
use crate::backends::qnn::api::{
    Backend as QnnBackend, ComposedGraph, Composition, Context, Device, DeviceTarget, Dlc, Execution, GraphOptions,
    Logger, Method, ModelLibrary, PowerProfile, PowerVote, Profile, ProfileEvent, Recording, SystemLibrary,
    VersionPolicy, errors_during, read_binary_info,
};
use crate::backends::qnn::runner::protocol::Frame;
use crate::backends::qnn::runner::run_task::RunTask;
use crate::backends::settings::{self, Resolved};
use crate::backends::stopped::{self, target_arch};
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{Event, LogLevel, MemoryMark, MemorySample, ModelInfo, RunStatus, Setting, SettingOutcome, Stage};
use crate::files::{Kind, OutputFile, write_whole};
use crate::models::{Graph, ModelFormat};
use crate::probes::process;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Runs the task.
pub fn run(task: &RunTask, emitter: &Arc<Emitter>, stop: &AtomicBool) {
    let mut stages = Stages { emitter, shared: emitter, inferences: 0, log: RunLog::default(), began: Instant::now() };
    let result = match &task.onnx {
        Some(onnx) => stages.run_onnx(task, onnx, stop),
        None => stages.run(task, stop),
    };
    match (&result, task.straight) {
        (Err(_), Some(_)) => stages.log.abandon(emitter),
        _ => stages.log.finish(emitter),
    }
    let status = match result {
        Ok(()) if stop.load(Ordering::Relaxed) => RunStatus::Stopped,
        Ok(()) => RunStatus::Ok,
        Err(failed) => {
            report_failure(&failed, emitter);
            RunStatus::Failed
        }
    };
    emitter.event(Event::RunFinished { status });
}

/// The stages of one run, with their shared state.
pub struct Stages<'a> {
    pub(super) emitter: &'a Emitter,
    /// The same, for objects that outlive a stage.
    pub(super) shared: &'a Arc<Emitter>,
    /// Inferences finished so far.
    pub(super) inferences: u64,
    pub(super) log: RunLog,
    /// When loading began.
    pub(super) began: Instant,
}

/// Everything needed before the first inference.
struct Ready {
    execution: Execution,
    context: Rc<Context>,
    graph: Graph,
    backend: Rc<QnnBackend>,
    device: Rc<Device>,
}

impl Stages<'_> {
    fn run(&mut self, task: &RunTask, stop: &AtomicBool) -> Result<(), Failed> {
        self.memory(MemoryMark::BeforeLoad);
        let (pinning, pinned) = Pinning::begin(&task.pin);
        self.pinned(pinned);
        let (model, bytes) = self.stage(Stage::Prepare, || identify_model(&task.model))?;
        let resolved = settings::resolve(&task.settings, task.backend)?;
        for setting in &resolved.settled {
            self.emitter.event(Event::SettingApplied(setting.clone()));
        }
        let log_file = RunLog::prepare(task)?;
        let ready = self.load(task, model, &bytes, &resolved, log_file)?;
        drop(bytes);
        let Ready { mut execution, context, graph, backend, device } = ready;
        let vote = self.vote(&device, &resolved);
        let (sets, origin) = inputs::prepare(task, &execution.inputs())?;
        self.emitter.event(Event::InputsPrepared { seed: task.seed, inputs: origin });
        if let Some(set) = sets.first() {
            measure::load(&mut execution, set);
        }
        self.memory(MemoryMark::Loaded);
        let mut measuring =
            Loop { emitter: self.emitter, execution: &mut execution, sets: &sets, stop, rate_hz: task.rate_hz };
        let result = self.measure(task, &backend, &graph, &mut measuring, &pinning);
        self.memory(MemoryMark::End);
        let torn = self.stage(Stage::Teardown, || {
            drop(vote);
            drop(execution);
            if result.is_ok() {
                self.release(task, &backend, context);
            } else {
                drop(context);
            }
            drop(device);
            drop(backend);
            Ok(())
        });
        result.and(torn)
    }

    /// Reports the outcome of `--pin`.
    pub(super) fn pinned(&self, setting: Option<Setting>) {
        if let Some(setting) = setting {
            self.emitter.event(Event::SettingApplied(setting));
        }
    }

    fn load(
        &mut self,
        task: &RunTask,
        mut model: ModelInfo,
        bytes: &[u8],
        resolved: &Resolved,
        log_file: Option<OutputFile>,
    ) -> Result<Ready, Failed> {
        let policy = if task.allow_unknown_runtime { VersionPolicy::CountSlots } else { VersionPolicy::KnownOnly };
        let (library, system) = self.stage(Stage::LibraryLoad, || {
            let library = open_library(&task.runtime_dir, task.backend, policy)?;
            // A model library brings its own graph; the system library reads everything else.
            let system = match model.format {
                ModelFormat::ModelLibrary => None,
                _ => Some(open_system(&task.runtime_dir)?),
            };
            Ok((library, system))
        })?;
        self.log = RunLog::open(task, log_file, &library, system.as_ref(), self.emitter);
        self.emitter.event(Event::RuntimeLoaded(runtime_info(&library)));
        let binary = match (&system, model.format) {
            (Some(system), ModelFormat::ContextBinary) => {
                let (info, graphs) =
                    read_binary_info(system, bytes).map_err(|e| Failed::not_a_binary(&task.model, &e))?;
                model.context_binary = Some(info);
                Some(graphs)
            }
            _ => None,
        };
        self.emitter.event(Event::ModelIdentified(Box::new(model.clone())));
        let backend = self.stage(Stage::BackendCreate, || {
            let logger = Logger::create(&library, task.log_level).map_err(|e| Failed::qnn(Stage::BackendCreate, e))?;
            QnnBackend::create(&logger).map_err(|e| Failed::qnn(Stage::BackendCreate, e))
        })?;
        let device = self.device(&backend, resolved)?;
        let options = GraphOptions {
            priority: resolved.priority,
            precision: resolved.precision,
            vtcm_mb: resolved.vtcm_mb,
            hvx_threads: resolved.hvx_threads,
            optimization_level: resolved.optimization_level,
            dlbc: resolved.dlbc,
        };
        let (graphs, context) = match (binary, system) {
            (Some(graphs), _) => {
                for setting in &resolved.with_graph {
                    let reason = "the graph of a context binary is already compiled".to_owned();
                    self.settled(setting, SettingOutcome::NoEffect(reason));
                }
                let context = self.restore(&backend, &device, bytes)?;
                let described = with_order(&graphs, Recording::default());
                ((graphs, described), context)
            }
            (None, system) => self.compose(task, system.as_ref(), &device, options, resolved)?,
        };
        let (entry, graph) = self.choose(task, graphs)?;
        let at_finalize = |e| Failed::qnn(Stage::Finalize, e);
        let handle = context.graph(&entry.name).map_err(at_finalize)?;
        if model.format != ModelFormat::ContextBinary {
            let level = if task.profiling == ProfilingLevel::Off { ProfilingLevel::Basic } else { task.profiling };
            let profile = Profile::create(&backend, level).map_err(at_finalize)?;
            let mut span = (0, 0);
            let (finalized, errors) = errors_during(|| {
                self.stage(Stage::Finalize, || {
                    timed(&mut span, || handle.finalize(profile.as_ref())).map_err(at_finalize)
                })
            });
            finalized.map_err(|failed| {
                let arch = target_arch(task.backend, resolved);
                failed.stopped_at(stopped::from_log(task.backend, arch, std::slice::from_ref(&graph), errors, true))
            })?;
            let events = self.sub_stages(Stage::Finalize, profile.as_ref());
            self.log.stage(Method::Finalize, span, Some(&entry.name), &events);
        }
        if let Some(path) = &task.save_context {
            save_context(&context, task, path, self.emitter)?;
        }
        let execution = Execution::new(handle, entry.inputs, entry.outputs).map_err(at_finalize)?;
        Ok(Ready { execution, context, graph, backend, device })
    }

    fn device(&mut self, backend: &Rc<QnnBackend>, resolved: &Resolved) -> Result<Rc<Device>, Failed> {
        let target = DeviceTarget { soc_model: resolved.soc_model, arch: resolved.arch };
        let result = self.stage(Stage::DeviceCreate, || {
            Device::create(backend, target).map_err(|e| Failed::qnn(Stage::DeviceCreate, e))
        });
        for setting in &resolved.with_device {
            let outcome = match (&setting.outcome, &result) {
                (SettingOutcome::Applied, Err(failed)) => SettingOutcome::Refused(failed.message().to_owned()),
                (outcome, _) => outcome.clone(),
            };
            self.settled(setting, outcome);
        }
        result.map(|(device, _)| device)
    }

    fn restore(&mut self, backend: &Rc<QnnBackend>, device: &Rc<Device>, bytes: &[u8]) -> Result<Rc<Context>, Failed> {
        let at = |e| Failed::qnn(Stage::ContextCreate, e);
        let profile = Profile::create(backend, ProfilingLevel::Basic).map_err(at)?;
        let mut span = (0, 0);
        let context = self.stage(Stage::ContextCreate, || {
            timed(&mut span, || Context::from_binary(device, bytes, profile.as_ref())).map_err(at)
        })?;
        let events = self.sub_stages(Stage::ContextCreate, profile.as_ref());
        self.log.stage(Method::CreateFromBinary, span, None, &events);
        Ok(context)
    }

    /// Frees the context, with a profile if the log needs its events. An error here invalidates the log, not
    /// the run, whose figures are complete.
    fn release(&self, task: &RunTask, backend: &Rc<QnnBackend>, context: Rc<Context>) {
        let level = if self.log.wants_events() { task.profiling } else { ProfilingLevel::Off };
        let profile = Profile::create(backend, level);
        let mut span = (0, 0);
        let events = profile.and_then(|profile| match profile {
            Some(profile) => {
                let freed = timed(&mut span, || context.release(&profile))?;
                if freed { profile.events() } else { Ok(Vec::new()) }
            }
            None => {
                timed(&mut span, || drop(context));
                Ok(Vec::new())
            }
        });
        match events {
            Ok(events) => self.log.stage(Method::Deinit, span, None, &events),
            Err(error) => self.log.refuse(&error),
        }
    }

    #[expect(clippy::type_complexity, reason = "graphs come as records to run and as descriptions to show")]
    fn compose(
        &mut self,
        task: &RunTask,
        system: Option<&Rc<SystemLibrary>>,
        device: &Rc<Device>,
        options: GraphOptions,
        resolved: &Resolved,
    ) -> Result<((Vec<ComposedGraph>, Vec<Graph>), Rc<Context>), Failed> {
        let mut span = (0, 0);
        let context = self.stage(Stage::ContextCreate, || {
            timed(&mut span, || Context::create(device)).map_err(|e| Failed::qnn(Stage::ContextCreate, e))
        })?;
        self.log.stage(Method::ContextCreate, span, None, &[]);
        let composition = Composition::into_context(&context, options);
        let mut noted = Recording::default();
        let result = self.stage(Stage::Compose, || {
            let at = |e| Failed::qnn(Stage::Compose, e);
            let (composed, recording) = timed(&mut span, || match system {
                Some(system) => Dlc::open(system, &task.model)
                    .map(|dlc| dlc.compose(&composition))
                    .map_err(|e| unreadable_dlc(&task.model, e)),
                None => ModelLibrary::open(&task.model).map(|library| library.compose(&composition)).map_err(at),
            })?;
            noted = recording;
            // If a DLC does not even start a graph, it contains none that this runtime can read.
            let none = system.is_some() && noted.graphs.is_empty() && noted.options_refused.is_none();
            composed.map_err(|e| if none { unreadable_dlc(&task.model, e) } else { at(e) })
        });
        for setting in &resolved.with_graph {
            let outcome = match (noted.options_refused, &result) {
                (Some(code), Ok(_)) => {
                    SettingOutcome::NoEffect(format!("this backend has no such option: graphCreate returned {code}"))
                }
                (Some(code), Err(_)) => SettingOutcome::Refused(format!("graphCreate returned {code} for this option")),
                (None, _) => setting.outcome.clone(),
            };
            self.settled(setting, outcome);
        }
        let arch = target_arch(task.backend, resolved);
        let composed = result.map_err(|failed| explain_compose(failed, &noted, task.backend, arch))?;
        self.log.stage(Method::ComposeGraphs, span, None, &[]);
        for problem in listing::problems(task.backend, &composed, &noted) {
            self.emitter.runner_log(LogLevel::Warning, &problem);
        }
        let described = with_order(&composed, noted);
        Ok(((composed, described), context))
    }

    /// Announces all graphs in the model's order and picks the one to run.
    fn choose(
        &self,
        task: &RunTask,
        (mut composed, mut described): (Vec<ComposedGraph>, Vec<Graph>),
    ) -> Result<(ComposedGraph, Graph), Failed> {
        let names: Vec<String> = composed.iter().map(|graph| graph.name.clone()).collect();
        let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let at = match &task.graph {
            Some(wanted) => names.iter().position(|name| name == wanted).ok_or_else(|| {
                let message = format!("the model has no graph `{wanted}`; its graphs are {listed}");
                Failed::bad_input(Stage::Compose, "graph", message)
            })?,
            None if names.is_empty() => {
                return Err(Failed::bad_input(Stage::Compose, "graph", "the model has no graph".to_owned()));
            }
            None => 0,
        };
        if names.len() > 1 && task.graph.is_none() {
            let message =
                format!("the model has {} graphs ({listed}); the first one runs; --graph picks another", names.len());
            self.emitter.runner_log(LogLevel::Warning, &message);
        }
        for graph in &described {
            self.emitter.event(Event::GraphComposed(Box::new(graph.clone())));
        }
        let chosen = described.swap_remove(at);
        self.emitter.event(Event::GraphChosen { name: chosen.name.clone() });
        Ok((composed.swap_remove(at), chosen))
    }

    fn vote(&self, device: &Rc<Device>, resolved: &Resolved) -> Option<PowerVote> {
        let (origin, name) = resolved.perf_profile.as_ref()?;
        let cast = PowerProfile::by_name(name)
            .ok_or_else(|| format!("`{name}` has no votes"))
            .and_then(|profile| PowerVote::cast(device, profile).map_err(|e| e.to_string()));
        let (vote, outcome) = match cast {
            Ok(vote) if Backend::Htp.is_simulated_here() => {
                let reason = "the vote was accepted, but the simulator has no clocks".to_owned();
                (Some(vote), SettingOutcome::NoEffect(reason))
            }
            Ok(vote) => (Some(vote), SettingOutcome::Applied),
            Err(reason) => (None, SettingOutcome::Refused(reason)),
        };
        let setting = Setting { key: origin.clone(), value: name.clone(), outcome };
        self.emitter.event(Event::SettingApplied(setting));
        vote
    }

    /// Runs a stage: announces it, times it, samples memory after it.
    pub(super) fn stage<T>(&self, stage: Stage, work: impl FnOnce() -> Result<T, Failed>) -> Result<T, Failed> {
        self.emitter.event(Event::StageStarted { stage });
        let begun = Instant::now();
        let value = work()?;
        let duration_us = begun.elapsed().as_secs_f64() * 1e6;
        self.emitter.event(Event::StageFinished { stage, duration_us });
        self.memory(MemoryMark::After(stage));
        Ok(value)
    }

    /// Sends the parts of a stage, timed by the backend; returns its events.
    fn sub_stages(&self, stage: Stage, profile: Option<&Profile>) -> Vec<ProfileEvent> {
        let Some(Ok(events)) = profile.map(Profile::events) else { return Vec::new() };
        for part in events::sub_stages(stage, &events) {
            self.emitter.event(Event::SubStageFinished(part));
        }
        events
    }

    fn settled(&self, setting: &Setting, outcome: SettingOutcome) {
        self.emitter.event(Event::SettingApplied(Setting { outcome, ..setting.clone() }));
    }

    pub(super) fn memory(&self, mark: MemoryMark) {
        if let Some(memory) = process::memory(None) {
            // The proportional set walks every mapping, so it is read only where the report needs it.
            let pss = matches!(mark, MemoryMark::Loaded | MemoryMark::End)
                .then(|| process::proportional_bytes(None))
                .flatten();
            self.emitter.event(Event::Memory(MemorySample {
                mark,
                rss: memory.rss,
                rss_peak: memory.rss_peak,
                pss,
                inferences: self.inferences,
            }));
        }
    }
}

/// Writes the serialised context, whole or not at all: if the parent created a file for it, the parent puts it in
/// place.
fn save_context(context: &Context, task: &RunTask, path: &Path, emitter: &Emitter) -> Result<(), Failed> {
    let bytes = context.binary().map_err(|e| Failed::qnn(Stage::Finalize, e))?;
    let written = match &task.staged_context {
        Some(staged) => std::fs::write(staged, &bytes),
        None => {
            let claimed = task.guard().claim("--save-context", path, Kind::Context);
            claimed.map_err(|e| Failed::from(e).at(Stage::Finalize))?;
            write_whole(path, &bytes)
        }
    };
    written.map_err(|error| {
        let message = format!("cannot write the context binary to {}: {error}", path.display());
        Failed::lost(Stage::Finalize, "save context", message)
    })?;
    if task.staged_context.is_some() {
        emitter.frame(&Frame::ContextStaged);
    }
    Ok(())
}
