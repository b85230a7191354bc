//! Reads a model's graphs without executing it, and without a backend that runs it.

use super::emit::Emitter;
use super::failed::{Failed, report_failure, unreadable_dlc};
use super::model::{identify_model, open_library, open_system};
use crate::backends::Backend;
use crate::backends::qnn::api::{
    ComposedGraph, Composition, Dlc, Library, ModelLibrary, QnnError, Recording, SystemLibrary, VersionPolicy,
    read_binary_info,
};
use crate::backends::qnn::runner::protocol::{Frame, InspectTask, TABLE_LENDERS};
use crate::event::{ModelInfo, Stage};
use crate::models::{Graph, ModelFormat};
use std::path::Path;
use std::rc::Rc;

/// Executes the task; a failure is a `failed` event.
pub fn inspect(task: &InspectTask, emitter: &Emitter) {
    match read(task, emitter) {
        Ok((model, graphs)) => {
            let sandbox = emitter.sandbox();
            emitter.frame(&Frame::Inspected { model: Box::new(model), graphs, sandbox });
        }
        Err(failed) => report_failure(&failed, emitter),
    }
}

fn read(task: &InspectTask, emitter: &Emitter) -> Result<(ModelInfo, Vec<Graph>), Failed> {
    let (mut model, bytes) = identify_model(&task.model).map_err(|e| e.at(Stage::Prepare))?;
    // For the supervisor: where a crash happened.
    let begin = |stage| emitter.event(crate::event::Event::StageStarted { stage });
    let load = |e: Failed| e.at(Stage::LibraryLoad);
    let policy = if task.allow_unknown_runtime { VersionPolicy::CountSlots } else { VersionPolicy::KnownOnly };
    let graphs = match model.format {
        ModelFormat::Dlc => {
            begin(Stage::LibraryLoad);
            let system = open_system(&task.runtime_dir).map_err(load)?;
            let lender = lender(&task.runtime_dir, policy).map_err(load)?;
            begin(Stage::Compose);
            let unreadable = |e: QnnError| unreadable_dlc(&task.model, e);
            let dlc = Dlc::open(&system, &task.model).map_err(unreadable)?;
            let (composed, recording) = dlc.compose(&Composition::reading(&lender));
            let none = recording.graphs.is_empty();
            let failed = |e| if none { unreadable(e) } else { Failed::qnn(Stage::Compose, e) };
            with_order(&composed.map_err(failed)?, recording)
        }
        ModelFormat::ModelLibrary => {
            begin(Stage::LibraryLoad);
            let lender = lender(&task.runtime_dir, policy).map_err(load)?;
            begin(Stage::Compose);
            let library = ModelLibrary::open(&task.model).map_err(|e| Failed::qnn(Stage::Compose, e))?;
            let (composed, recording) = library.compose(&Composition::reading(&lender));
            with_order(&composed.map_err(|e| Failed::qnn(Stage::Compose, e))?, recording)
        }
        ModelFormat::Onnx => {
            let message = "QNN's libraries do not read ONNX models".to_owned();
            return Err(Failed::bad_input(Stage::Compose, "identify", message));
        }
        ModelFormat::ContextBinary => {
            begin(Stage::ContextCreate);
            let system: Rc<SystemLibrary> = open_system(&task.runtime_dir).map_err(load)?;
            let (info, graphs) =
                read_binary_info(&system, &bytes).map_err(|e| Failed::not_a_binary(&task.model, &e))?;
            model.context_binary = Some(info);
            with_order(&graphs, Recording::default())
        }
    };
    emitter.runner_log(crate::event::LogLevel::Verbose, "the model was read without a backend");
    Ok((model, graphs))
}

fn lender(dir: &Path, policy: VersionPolicy) -> Result<Rc<Library>, Failed> {
    let mut last = None;
    for name in TABLE_LENDERS.iter().filter(|name| dir.join(name).exists()) {
        match Library::open(&dir.join(name), policy) {
            Ok(library) => return Ok(library),
            Err(error) => last = Some(Failed::qnn(Stage::LibraryLoad, error)),
        }
    }
    match last {
        Some(failed) => Err(failed),
        None => open_library(dir, Backend::Cpu, policy),
    }
}

/// The recorded graphs, with inputs and outputs in execution order; a graph that was not recorded (of a context
/// binary) has no ops.
pub fn with_order(composed: &[ComposedGraph], recording: Recording) -> Vec<Graph> {
    let mut recorded = recording.graphs;
    let mut graphs: Vec<Graph> = Vec::with_capacity(composed.len());
    for entry in composed {
        let at = recorded.iter().position(|graph| graph.name == entry.name);
        let mut graph = at.map_or_else(
            || Graph { name: entry.name.clone(), inputs: vec![], outputs: vec![], ops: vec![], parameter_bytes: 0 },
            |at| recorded.remove(at),
        );
        graph.inputs = entry.inputs.iter().map(|t| t.info().clone()).collect();
        graph.outputs = entry.outputs.iter().map(|t| t.info().clone()).collect();
        graphs.push(graph);
    }
    graphs
}
