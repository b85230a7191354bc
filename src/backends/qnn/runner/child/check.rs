//! Asks a backend about a model without running it: whether it accepts each op, and whether it compiles the graphs.

use super::emit::Emitter;
use super::failed::{Failed, explain_compose, report_failure, unreadable_dlc};
use super::inspect::with_order;
use super::listing;
use super::model::{identify_model, open_system};
use super::opened::{Hardware, begin};
use crate::backends::qnn::api::{
    ComposedGraph, Composition, Context, DeviceTarget, Dlc, GraphOptions, ModelLibrary, OpAnswer, QnnError, Recording,
    read_binary_info,
};
use crate::backends::qnn::runner::protocol::{Asked, CheckTask, CheckWork, Compiled, CompiledGraph, Frame, OpVerdict};
use crate::event::{Event, LogLevel, ModelInfo, RunStatus, Stage};
use crate::models::{ContextBinaryInfo, ModelFormat};
use std::time::Instant;

/// Executes the task; a failure is a `failed` event.
pub fn check(task: &CheckTask, emitter: &Emitter) {
    let answer = match task.work {
        CheckWork::Ask => ask(task, emitter).map(|asked| Frame::Asked(Box::new(asked))),
        CheckWork::Compile => compile(task, emitter).map(|compiled| Frame::Compiled(Box::new(compiled))),
    };
    let status = match answer {
        Ok(frame) => {
            emitter.frame(&frame);
            RunStatus::Ok
        }
        Err(failed) => {
            report_failure(&failed, emitter);
            RunStatus::Failed
        }
    };
    emitter.event(Event::RunFinished { status });
}

fn hardware(task: &CheckTask) -> Hardware<'_> {
    Hardware {
        runtime_dir: &task.runtime_dir,
        backend: task.backend,
        allow_unknown_runtime: task.allow_unknown_runtime,
        // HTP's validator answers for the most recently created device, and for v68 if there is none.
        target: DeviceTarget { soc_model: task.soc_model, arch: task.arch },
    }
}

fn ask(task: &CheckTask, emitter: &Emitter) -> Result<Asked, Failed> {
    let (mut model, bytes) = identify_model(&task.model).map_err(|e| e.at(Stage::Prepare))?;
    let sandbox = emitter.sandbox();
    let opened = hardware(task).open(LogLevel::Warning, emitter)?;
    if model.format == ModelFormat::ContextBinary {
        begin(emitter, Stage::ContextCreate);
        let system = open_system(&task.runtime_dir)?;
        let (info, composed) = read_binary_info(&system, &bytes).map_err(|e| Failed::not_a_binary(&task.model, &e))?;
        model.context_binary = Some(info);
        let graphs = with_order(&composed, Recording::default());
        let (verdicts, lists) = (Vec::new(), Vec::new());
        return Ok(Asked { model, runtime: opened.runtime, graphs, verdicts, incomplete: None, lists, sandbox });
    }
    begin(emitter, Stage::Compose);
    let (composed, mut recording) = compose(task, &model, &Composition::asking(&opened.backend))?;
    let verdicts = std::mem::take(&mut recording.verdicts)
        .into_iter()
        .map(|verdict| {
            let OpAnswer { graph, op, code, log, tensor_ids } = verdict;
            OpVerdict { graph, op, code, log, tensor_ids }
        })
        .collect();
    let none = recording.graphs.iter().all(|graph| graph.ops.is_empty());
    let mut lists = Vec::new();
    let (graphs, incomplete) = match composed {
        Ok(composed) => {
            lists = listing::problems(task.backend, &composed, &recording);
            (in_recorded_order(&composed, recording), None)
        }
        // What was composed up to here is worth reporting.
        Err(error) if !none => (recording.graphs, Some(error.to_string())),
        Err(error) => return Err(refused(task, &model, error)),
    };
    Ok(Asked { model, runtime: opened.runtime, graphs, verdicts, incomplete, lists, sandbox })
}

/// The recorded graphs with their inputs and outputs. Verdicts number graphs in order of creation, so that order stays.
fn in_recorded_order(composed: &[ComposedGraph], recording: Recording) -> Vec<crate::models::Graph> {
    let names: Vec<String> = recording.graphs.iter().map(|graph| graph.name.clone()).collect();
    let mut graphs = with_order(composed, recording);
    graphs.sort_by_key(|graph| names.iter().position(|name| *name == graph.name).unwrap_or(usize::MAX));
    graphs
}

fn compose(
    task: &CheckTask,
    model: &ModelInfo,
    composition: &Composition<'_>,
) -> Result<(Result<Vec<ComposedGraph>, QnnError>, Recording), Failed> {
    if model.format == ModelFormat::Dlc {
        let system = open_system(&task.runtime_dir)?;
        let dlc = Dlc::open(&system, &task.model).map_err(|e| unreadable_dlc(&task.model, e))?;
        return Ok(dlc.compose(composition));
    }
    let library = ModelLibrary::open(&task.model).map_err(|e| Failed::qnn(Stage::Compose, e))?;
    Ok(library.compose(composition))
}

/// A model of which no op was reached.
fn refused(task: &CheckTask, model: &ModelInfo, error: QnnError) -> Failed {
    match model.format {
        ModelFormat::Dlc => unreadable_dlc(&task.model, error),
        _ => Failed::qnn(Stage::Compose, error),
    }
}

fn compile(task: &CheckTask, emitter: &Emitter) -> Result<Compiled, Failed> {
    let (model, bytes) = identify_model(&task.model).map_err(|e| e.at(Stage::Prepare))?;
    // The compiler reports its traffic at this level.
    let opened = hardware(task).open(LogLevel::Info, emitter)?;
    begin(emitter, Stage::ContextCreate);
    let at = |e| Failed::qnn(Stage::ContextCreate, e);
    if model.format == ModelFormat::ContextBinary {
        Context::from_binary(&opened.device, &bytes, None).map_err(at)?;
        return Ok(Compiled { runtime: opened.runtime, graphs: Vec::new(), binary_bytes: None, hexagon_arch: None });
    }
    let context = Context::create(&opened.device).map_err(at)?;
    begin(emitter, Stage::Compose);
    let options = GraphOptions { vtcm_mb: task.vtcm_mb, ..GraphOptions::default() };
    let (composed, recording) = compose(task, &model, &Composition::into_context(&context, options))?;
    let none = recording.graphs.is_empty() && recording.options_refused.is_none();
    let composed = composed.map_err(|error| {
        let failed = if none { refused(task, &model, error) } else { Failed::qnn(Stage::Compose, error) };
        explain_compose(failed, &recording, task.backend, None)
    })?;
    let mut graphs = Vec::with_capacity(composed.len());
    for entry in &composed {
        begin(emitter, Stage::Finalize);
        let at = |e| Failed::qnn(Stage::Finalize, e);
        let graph = context.graph(&entry.name).map_err(at)?;
        let begun = Instant::now();
        let code = match graph.finalize(None) {
            Ok(()) => 0,
            Err(error) => error.code().ok_or_else(|| at(error))?,
        };
        graphs.push(CompiledGraph {
            name: entry.name.clone(),
            code,
            finalize_us: begun.elapsed().as_secs_f64() * 1e6,
            vtcm_bytes: None,
            spill_fill_buffer_bytes: None,
            hvx_threads: None,
        });
    }
    let mut compiled = Compiled { runtime: opened.runtime, graphs, binary_bytes: None, hexagon_arch: None };
    if opened.library.table().backend_id() == HTP && compiled.graphs.iter().all(|graph| graph.code == 0) {
        match binary_facts(task, &context) {
            Ok((bytes, info)) => fill(&mut compiled, bytes, &info),
            Err(failed) => {
                let text = format!("what the compiled graphs need is unknown: {}", failed.message());
                emitter.runner_log(LogLevel::Warning, &text);
            }
        }
    }
    Ok(compiled)
}

/// QNN's backend id for HTP.
const HTP: u32 = 6;

/// Size of the context binary, and its own description.
fn binary_facts(task: &CheckTask, context: &Context) -> Result<(u64, ContextBinaryInfo), Failed> {
    let bytes = context.binary().map_err(|e| Failed::qnn(Stage::Finalize, e))?;
    let system = open_system(&task.runtime_dir)?;
    let (info, _) = read_binary_info(&system, &bytes).map_err(|e| Failed::qnn(Stage::Finalize, e))?;
    Ok((bytes.len() as u64, info))
}

fn fill(compiled: &mut Compiled, bytes: u64, info: &ContextBinaryInfo) {
    compiled.binary_bytes = Some(bytes);
    compiled.hexagon_arch = info.hexagon_arch;
    for graph in &mut compiled.graphs {
        let Some(facts) = info.graphs.iter().find(|facts| facts.name == graph.name) else { continue };
        graph.vtcm_bytes = facts.vtcm_bytes;
        graph.spill_fill_buffer_bytes = facts.spill_fill_bytes;
        graph.hvx_threads = facts.hvx_threads;
    }
}
