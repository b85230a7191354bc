//! Computes a model with readable tensors between its ops, one inference at a time, on the parent's orders.

use super::emit::Emitter;
use super::failed::{Failed, explain_compose, report_failure, unreadable_dlc};
use super::model::{identify_model, open_system};
use super::onnx;
use super::opened::{Hardware, Opened, begin};
use crate::backends::qnn::api::{
    ComposedGraph, Composition, Context, DeviceTarget, Dlc, Execution, ExposedGraph, Exposure, GraphOptions,
    ModelLibrary, OwnedTensor, Recording, errors_during,
};
use crate::backends::qnn::runner::protocol::Frame;
use crate::backends::qnn::runner::tensors_protocol::{
    EXCHANGE_CONSTANTS, EXCHANGE_INPUTS, EXCHANGE_TENSORS, OpenedTensors, TensorsTask,
};
use crate::backends::settings;
use crate::backends::stopped::{self, target_arch};
use crate::event::{Event, LogLevel, RunStatus, Stage};
use crate::models::{ModelFormat, Tensor};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Executes the task until there are no more orders; a failure is a `failed` event.
pub fn tensors(task: &TensorsTask, emitter: &Arc<Emitter>, orders: &Receiver<u64>) {
    let served = match &task.onnx {
        Some(onnx) => onnx::tensors::serve(task, onnx, emitter, orders),
        None => serve(task, emitter, orders),
    };
    let status = match served {
        Ok(()) => RunStatus::Ok,
        Err(failed) => {
            report_failure(&failed, emitter);
            RunStatus::Failed
        }
    };
    emitter.event(Event::RunFinished { status });
}

fn serve(task: &TensorsTask, emitter: &Emitter, orders: &Receiver<u64>) -> Result<(), Failed> {
    let (mut execution, answer) = open(task, emitter)?;
    let inputs = execution.inputs();
    let outputs = answer.tensors.len();
    emitter.frame(&Frame::Opened(Box::new(answer)));
    begin(emitter, Stage::FirstInference);
    while let Ok(index) = orders.recv() {
        give(&mut execution, &task.exchange.join(EXCHANGE_INPUTS), &inputs)?;
        execution.run(None).map_err(|e| Failed::qnn(Stage::FirstInference, e))?;
        let written = write(&task.exchange.join(EXCHANGE_TENSORS), (0..outputs).filter_map(|at| execution.output(at)));
        written.map_err(|e| exchange("write the tensors", &e))?;
        emitter.frame(&Frame::Computed { index });
    }
    Ok(())
}

fn exchange(what: &str, error: &std::io::Error) -> Failed {
    Failed::lost(Stage::FirstInference, "exchange", format!("cannot {what} in the folder for temporary files: {error}"))
}

/// Fills the inputs from the data file.
fn give(execution: &mut Execution, path: &Path, inputs: &[Tensor]) -> Result<(), Failed> {
    let mut file = BufReader::new(File::open(path).map_err(|e| exchange("read the inputs", &e))?);
    let mut data = Vec::new();
    for (at, tensor) in inputs.iter().enumerate() {
        data.resize(usize::try_from(tensor.bytes().unwrap_or(0)).unwrap_or(0), 0);
        file.read_exact(&mut data).map_err(|e| exchange("read the inputs", &e))?;
        let _ = execution.set_input(at, &data);
    }
    Ok(())
}

fn write<'a>(path: &Path, parts: impl Iterator<Item = &'a [u8]>) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for part in parts {
        file.write_all(part)?;
    }
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.flush()
}

fn open(task: &TensorsTask, emitter: &Emitter) -> Result<(Execution, OpenedTensors), Failed> {
    let (model, _) = identify_model(&task.model)?;
    if model.format == ModelFormat::ContextBinary {
        let message = format!(
            "{} is a context binary: it is compiled and no longer has the tensors between ops; give the DLC or model library \
             it was made from",
            task.model.display()
        );
        return Err(Failed::bad_input(Stage::Prepare, "identify", message));
    }
    if !matches!(model.format, ModelFormat::Dlc | ModelFormat::ModelLibrary) {
        let message = format!(
            "{} is an {}: its tensors can be read only where QNN composes the graph; give a DLC or model library made from it",
            task.model.display(),
            model.format.label()
        );
        return Err(Failed::bad_input(Stage::Prepare, "identify", message));
    }
    let resolved = settings::resolve(&task.settings, task.backend)?;
    let hardware = Hardware {
        runtime_dir: &task.runtime_dir,
        backend: task.backend,
        allow_unknown_runtime: task.allow_unknown_runtime,
        target: DeviceTarget { soc_model: resolved.soc_model, arch: resolved.arch },
    };
    let Opened { runtime, device, .. } = hardware.open(LogLevel::Warning, emitter)?;
    begin(emitter, Stage::ContextCreate);
    let context = Context::create(&device).map_err(|e| Failed::qnn(Stage::ContextCreate, e))?;
    begin(emitter, Stage::Compose);
    let options = GraphOptions {
        priority: resolved.priority,
        precision: resolved.precision,
        vtcm_mb: resolved.vtcm_mb,
        hvx_threads: resolved.hvx_threads,
        optimization_level: resolved.optimization_level,
        dlbc: resolved.dlbc,
    };
    let exposure = Exposure {
        readable: task.readable.iter().cloned().collect(),
        given: task.given.iter().map(|given| (given.name.clone(), given.encoding)).collect(),
        constants: task.constants.iter().cloned().collect(),
    };
    let composition = Composition::into_context(&context, options).exposing(exposure);
    let (composed, recording) = compose(task, model.format, &composition)?;
    let arch = target_arch(task.backend, &resolved);
    let composed = composed.map_err(|failed| explain_compose(failed, &recording, task.backend, arch.clone()))?;
    let (entry, exposed, described) = choose(task, composed, recording)?;
    begin(emitter, Stage::Finalize);
    let handle = context.graph(&entry.name).map_err(|e| Failed::qnn(Stage::Finalize, e))?;
    let (finalized, errors) = errors_during(|| handle.finalize(None).map_err(|e| Failed::qnn(Stage::Finalize, e)));
    finalized.map_err(|failed| {
        failed.stopped_at(stopped::from_log(task.backend, arch, std::slice::from_ref(&described), errors, true))
    })?;
    let constants = exposed.constants.iter().map(|(_, data)| data.as_slice());
    write(&task.exchange.join(EXCHANGE_CONSTANTS), constants).map_err(|e| exchange("write the constants", &e))?;
    let info = |tensor: &OwnedTensor| tensor.info().clone();
    let opened = OpenedTensors {
        runtime,
        graph: entry.name.clone(),
        inputs: entry.inputs.iter().map(info).collect(),
        given: exposed.given.iter().map(|(of, tensor)| (of.clone(), info(tensor))).collect(),
        tensors: entry.outputs.iter().chain(&exposed.readable).map(info).collect(),
        constants: exposed.constants.iter().map(|(tensor, _)| info(tensor)).collect(),
        refused: exposed.refused,
    };
    let inputs = entry.inputs.into_iter().chain(exposed.given.into_iter().map(|(_, tensor)| tensor)).collect();
    let outputs = entry.outputs.into_iter().chain(exposed.readable).collect();
    let execution = Execution::new(handle, inputs, outputs).map_err(|e| Failed::qnn(Stage::Finalize, e))?;
    Ok((execution, opened))
}

type Composed = (Result<Vec<ComposedGraph>, Failed>, Recording);

fn compose(task: &TensorsTask, format: ModelFormat, composition: &Composition<'_>) -> Result<Composed, Failed> {
    let at = |e| Failed::qnn(Stage::Compose, e);
    if format == ModelFormat::Dlc {
        let system = open_system(&task.runtime_dir)?;
        let dlc = Dlc::open(&system, &task.model).map_err(|e| unreadable_dlc(&task.model, e))?;
        let (composed, recording) = dlc.compose(composition);
        let none = recording.graphs.is_empty();
        return Ok((composed.map_err(|e| if none { unreadable_dlc(&task.model, e) } else { at(e) }), recording));
    }
    let library = ModelLibrary::open(&task.model).map_err(at)?;
    let (composed, recording) = library.compose(composition);
    Ok((composed.map_err(at), recording))
}

fn choose(
    task: &TensorsTask,
    composed: Vec<ComposedGraph>,
    recording: Recording,
) -> Result<(ComposedGraph, ExposedGraph, crate::models::Graph), Failed> {
    let names: Vec<String> = composed.iter().map(|graph| format!("`{}`", graph.name)).collect();
    let wanted = |graph: &ComposedGraph| task.graph.as_ref().is_none_or(|name| *name == graph.name);
    let chosen = composed.into_iter().find(wanted).ok_or_else(|| {
        let message = match &task.graph {
            Some(name) => format!("the model has no graph `{name}`; its graphs are {}", names.join(", ")),
            None => "the model has no graph".to_owned(),
        };
        Failed::bad_input(Stage::Compose, "graph", message)
    })?;
    let exposed = recording.exposed.into_iter().find(|graph| graph.name == chosen.name).unwrap_or_default();
    let described = recording.graphs.into_iter().find(|graph| graph.name == chosen.name);
    let described = described.ok_or_else(|| {
        Failed::bad_input(Stage::Compose, "graph", format!("graph `{}` was not composed by the model", chosen.name))
    })?;
    Ok((chosen, exposed, described))
}
