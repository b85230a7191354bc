//! One run: the task, the runner, and its events as the tool's lines.

use super::config;
use super::console::Console;
use super::ending::Ending;
use super::options::{Model, Options};
use super::{BUILD, inputs, metadata};
use qnnscope::backends::local::{Limits, Supervisor};
use qnnscope::backends::qnn::runner::{Pin, RunTask, Straight, Task};
use qnnscope::backends::settings::{self, SettingRequest};
use qnnscope::backends::{Backend, ProfilingLevel};
use qnnscope::event::{Budget, Event, Failure, LogLevel, RunId, Stage};
use qnnscope::models::Graph;
use qnnscope::session::Hub;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;

/// Runs the tool with these options.
pub fn run(options: &Options, arguments: &[String], console: &Console) -> Ending {
    console.info(&format!("qnn-net-run build version: {BUILD}"));
    let prepared = match prepare(options, console) {
        Ok(prepared) => prepared,
        Err(ending) => return ending,
    };
    for option in &options.without_effect {
        console.line(LogLevel::Warning, &format!("{option} has no effect in this stand-in"));
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            console.error(&format!("cannot start: {error}"));
            return Ending::InitializationFailure;
        }
    };
    runtime.block_on(watch_run(options, arguments, console, &prepared))
}

/// Everything determined before the runner starts.
struct Prepared {
    task: RunTask,
    lines: Vec<Vec<String>>,
}

fn prepare(options: &Options, console: &Console) -> Result<Prepared, Ending> {
    let from_library = matches!(options.model, Model::Library(_));
    if !matches!(options.model, Model::Context(_)) {
        console.info("Loading model shared library ([model].so)");
    }
    let model = match &options.model {
        Model::Library(name) => found(name).ok_or_else(|| unopened(console, "model", "ModelLib!", name, NO_FILE))?,
        Model::Dlc(path) | Model::Context(path) => path.clone(),
    };
    console.info("Inferences will run in sync mode");
    let library = found(&options.backend);
    let known = library.as_ref().and_then(|path| {
        let name = path.file_name()?.to_str()?;
        Some((path.parent()?.to_owned(), Backend::ALL.into_iter().find(|backend| backend.library() == name)?))
    });
    let (folder, backend) =
        known.ok_or_else(|| unopened(console, "backend", "backendLib! ", &options.backend, NO_FILE))?;
    let runtime_dir = std::path::absolute(&folder).unwrap_or(folder);
    if !from_library && !model.exists() {
        console.error(&format!("Could not open {}: No such file or directory", model.display()));
        return Err(match options.model {
            Model::Context(_) => Ending::CreateFromBinaryFailure,
            _ => Ending::InitializationFailure,
        });
    }
    let settings = settings_of(options, backend).map_err(|reason| {
        console.error(&format!("Error in parsing the config file: {reason}"));
        Ending::InitializationFailure
    })?;
    let lines = inputs::read(&options.input_list).map_err(|error| {
        console.error(&format!("Failed to open input list {}: {error}", options.input_list.display()));
        Ending::InitializationFailure
    })?;
    let output_error = |error: std::io::Error| {
        console.error(&format!("Could not create {}: {error}", options.output_dir.display()));
        Ending::InitializationFailure
    };
    std::fs::create_dir_all(&options.output_dir).map_err(output_error)?;
    let budget = match (options.num_inferences, options.duration_s) {
        (Some(count), _) => Budget::Iterations(count),
        (None, Some(seconds)) => Budget::Seconds(seconds),
        (None, None) => Budget::Iterations(lines.len() as u64),
    };
    if let Some(level) = options.profiling {
        let level = match level {
            ProfilingLevel::Off => 0,
            ProfilingLevel::Basic => 1,
            ProfilingLevel::Detailed => 2,
        };
        console.info(&format!("Profiling turned on; level = {level}"));
    }
    let task = RunTask {
        runtime_dir,
        backend,
        model,
        graph: None,
        inputs: Vec::new(),
        input_list: Some(options.input_list.clone()),
        native_input: options.native_input,
        seed: 0,
        save_outputs: Some(options.output_dir.clone()),
        save_context: None,
        staged_context: None,
        profile_log: options.profiling.is_some().then(|| new_log(&options.output_dir)),
        straight: Some(Straight { keep_outputs: options.keep_num_outputs, native_outputs: options.native_output }),
        warmup: 0,
        budget,
        rate_hz: None,
        profiling: options.profiling.unwrap_or(ProfilingLevel::Off),
        profiling_budget: Budget::Iterations(0),
        settings,
        log_level: options.log_level,
        allow_unknown_runtime: false,
        slow_load: None,
        pin: Pin::Unset,
        onnx: None,
        // Like the vendor's tool, which overwrites without asking.
        overwrite: true,
        protected: Vec::new(),
    };
    Ok(Prepared { task, lines })
}

const NO_FILE: &str = "cannot open shared object file: No such file or directory";

/// Prints what the tool prints about a library that does not open.
fn unopened(console: &Console, what: &str, part: &str, name: &str, reason: &str) -> Ending {
    console.error(&format!("Unable to load {what}. dlerror(): {name}: {reason}"));
    console.error(&format!("Failed to load {part}"));
    console.error(&format!("Could not load {what} : {name}!"));
    Ending::InitializationFailure
}

/// Finds a library as dlopen does: by path if the name contains a slash, otherwise on LD_LIBRARY_PATH.
fn found(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let folders = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.exists())
}

/// Settings from the flag, then from the file, which takes precedence on HTP; invalid values are errors.
fn settings_of(options: &Options, backend: Backend) -> Result<Vec<SettingRequest>, String> {
    let mut requests = Vec::new();
    if let Some(profile) = &options.perf_profile {
        let (origin, name) = ("--perf_profile".to_owned(), "perf_profile".to_owned());
        requests.push(SettingRequest { origin, name, value: profile.clone().into(), backend: None });
    }
    if let Some(path) = &options.config_file {
        requests.extend(config::read(path)?);
    }
    settings::resolve(&requests, backend).map_err(|error| error.to_string())?;
    Ok(requests)
}

/// Name of the next log: numbered one above the highest existing one.
fn new_log(dir: &Path) -> PathBuf {
    let number =
        |name: &str| -> Option<u32> { name.strip_prefix("qnn-profiling-data_")?.strip_suffix(".log")?.parse().ok() };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let highest = entries.filter_map(|entry| number(entry.file_name().to_str()?)).max();
    dir.join(format!("qnn-profiling-data_{}.log", highest.map_or(0, |number| number + 1)))
}

/// Points `qnn-profiling-data.log` at the newest log.
fn link_newest(log: &Path) {
    let (Some(name), true) = (log.file_name(), log.exists()) else { return };
    let link = log.with_file_name("qnn-profiling-data.log");
    let _ = std::fs::remove_file(&link);
    let _ = std::os::unix::fs::symlink(name, link);
}

async fn watch_run(options: &Options, arguments: &[String], console: &Console, prepared: &Prepared) -> Ending {
    let (mut hub, source) = Hub::new(None);
    // The caller sets the limits, not this program.
    let limits = Limits { stage_timeout: Duration::from_secs(u64::from(u32::MAX)), memory_bytes: None };
    let supervisor = Supervisor::new(Some((source, RunId(0))), limits);
    let task = Task::Run(Box::new(prepared.task.clone()));
    let (_stop, stopped) = watch::channel(false);
    let mut seen = Seen::default();
    let watch = async {
        while let Some(record) = hub.next().await {
            seen.take(record.event, options, &prepared.task, console);
        }
    };
    let (ended, ()) = tokio::join!(supervisor.run(&task, stopped), watch);
    if let Err(error) = ended {
        console.error(&error.to_string());
        return Ending::InitializationFailure;
    }
    if let Some(failure) = seen.failure {
        return explain(&failure, options, prepared, seen.graph.as_ref(), console);
    }
    if let Some(graph) = &seen.graph
        && let Err(error) = metadata::write(&options.output_dir, arguments, seen.inferences, graph)
    {
        console.error(&format!("Could not write execution_metadata.yaml: {error}"));
    }
    Ending::Success
}

/// What the events reported.
#[derive(Default)]
struct Seen {
    graph: Option<Graph>,
    inferences: u64,
    failure: Option<Box<Failure>>,
}

impl Seen {
    fn take(&mut self, event: Event, options: &Options, task: &RunTask, console: &Console) {
        let from_binary = matches!(options.model, Model::Context(_));
        match event {
            Event::Log(line) => console.log(&line, task.backend == Backend::Htp),
            Event::RuntimeLoaded(runtime) => {
                if let Some(log) = &task.profile_log {
                    link_newest(log);
                }
                console.info(&format!("Backend     build version: {}", runtime.build_id.unwrap_or_default()));
            }
            Event::GraphComposed(graph) => {
                self.graph.get_or_insert(*graph);
            }
            Event::Inferences(batch) => self.inferences += batch.latency_ns.len() as u64,
            Event::StageStarted { stage: Stage::ContextCreate } if from_binary => {
                console.info("Loading context from cached bin file");
            }
            Event::StageStarted { stage: Stage::Compose } => console.info("Composing Graphs"),
            Event::StageFinished { stage: Stage::Compose, .. } => console.info("Graphs composed"),
            Event::StageStarted { stage: Stage::Finalize } => console.info("Finalizing Graphs"),
            Event::StageFinished { stage: Stage::Finalize, .. } => console.info("Graphs Finalized"),
            Event::StageFinished { stage: Stage::Execute, .. } => console.info("Executed Graph"),
            Event::StageStarted { stage: Stage::Teardown } if self.inferences > 0 => console.info("Freeing graphsInfo"),
            Event::Failed(failure) => self.failure = Some(failure),
            _ => {}
        }
    }
}

/// Explains a failure in the tool's words.
fn explain(
    failure: &Failure,
    options: &Options,
    prepared: &Prepared,
    graph: Option<&Graph>,
    console: &Console,
) -> Ending {
    if let Some(crashed) = Ending::crashed(&failure.call) {
        return crashed;
    }
    let from_binary = matches!(options.model, Model::Context(_));
    match failure.stage {
        Stage::Prepare if failure.call == "inputs" => {
            let tensors = graph.map_or(&[][..], |graph| &graph.inputs);
            inputs::explain(&prepared.lines, tensors, options.native_input, &failure.message, console)
        }
        Stage::Prepare | Stage::ContextCreate if from_binary => {
            console.error("Could not create context from binary");
            Ending::CreateFromBinaryFailure
        }
        Stage::Prepare => match &options.model {
            Model::Library(name) => unopened(console, "model", "ModelLib!", name, &failure.message),
            _ => {
                console.error(&failure.message);
                Ending::InitializationFailure
            }
        },
        Stage::LibraryLoad => unopened(console, "backend", "backendLib! ", &options.backend, &failure.message),
        Stage::BackendCreate => Ending::BackendInitializationFailure,
        Stage::DeviceCreate => Ending::DeviceCreationFailure,
        Stage::ContextCreate => Ending::ContextCreationFailure,
        Stage::Compose => {
            console.error("Failed in composeGraphs()");
            console.error("ComposeGraphs Failed with error = 1");
            Ending::PrepareFailure
        }
        Stage::Finalize => Ending::FinalizeFailure,
        Stage::FirstInference | Stage::Execute | Stage::Teardown => {
            console.error(&failure.message);
            Ending::ExecutionFailure
        }
    }
}
