//! Preparation on this machine before anything is sent: identifies the model, reads it if possible, and
//! generates its inputs.

use crate::backends::local::{Ended, Limits, ask};
use crate::backends::on_device::OnDeviceError;
use crate::backends::on_device::names::{INPUT_LIST, machine};
use crate::backends::qnn::runner::{Frame, InspectTask, RunTask, Task, input_sets};
use crate::event::{DeviceFacts, ModelInfo, TensorData, clean_text};
use crate::models::{Graph, ModelFormat, identify_for};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The model and its inputs, ready to send.
#[derive(Debug)]
pub struct Prepared {
    /// Facts of the file.
    pub model: ModelInfo,
    /// Its graphs, if this machine could read them.
    pub graphs: Vec<Graph>,
    /// The one that runs, if known.
    pub graph: Option<Graph>,
    /// Its inputs.
    pub inputs: Inputs,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A file for an input, with the input's name if the user gave one.
type GivenInput = (Option<String>, PathBuf);

/// The input files and the list that names them.
#[derive(Debug)]
pub struct Inputs {
    /// The origin of each input of the first inference.
    pub origin: Vec<TensorData>,
    /// Files by their names on the device, including the list that names the others.
    pub files: Vec<(String, PathBuf)>,
    /// Holds generated files until they are sent.
    _folder: TempDir,
}

/// Identifies the model, reads its graphs if a local runtime can, and prepares the inputs.
pub async fn prepare(
    task: &RunTask,
    host_runtime: Option<&Path>,
    facts: &DeviceFacts,
) -> Result<Prepared, OnDeviceError> {
    let format = identify_for(&task.model, machine(&facts.abi))?;
    let hashed = crate::backends::on_device::deploy::hash(&task.model).await?;
    let mut model = ModelInfo {
        path: clean_text(&task.model.to_string_lossy()),
        format,
        sha256: hashed.sha256,
        bytes: hashed.bytes,
        context_binary: None,
    };
    let mut notes = Vec::new();
    let mut graphs = Vec::new();
    match read(task, format, host_runtime).await {
        Ok((info, found)) => {
            model.context_binary = info.context_binary;
            graphs = found;
        }
        Err(why) => notes.push(format!("op types and shapes are unknown: {why}")),
    }
    let graph = match &task.graph {
        Some(name) => graphs.iter().find(|graph| graph.name == *name).cloned(),
        None => graphs.first().cloned(),
    };
    if let (Some(name), None, false) = (&task.graph, &graph, graphs.is_empty()) {
        let names: Vec<&str> = graphs.iter().map(|graph| graph.name.as_str()).collect();
        let text = format!("the model has no graph `{}`; its graphs are {}", clean_text(name), names.join(", "));
        return Err(OnDeviceError::Input(text));
    }
    let inputs = match &graph {
        Some(graph) => made(task, graph)?,
        None => as_given(task, notes.last())?,
    };
    Ok(Prepared { model, graphs, graph, inputs, notes })
}

/// The graphs, read by a local runner; a model library for the device cannot be opened here.
async fn read(
    task: &RunTask,
    format: ModelFormat,
    host_runtime: Option<&Path>,
) -> Result<(ModelInfo, Vec<Graph>), String> {
    if format == ModelFormat::ModelLibrary {
        return Err("a model library for the device cannot be opened on this machine".to_owned());
    }
    let runtime =
        host_runtime.ok_or("there is no QNN runtime on this machine (`qnnscope runtime install` installs one)")?;
    let task = Task::Inspect(InspectTask {
        runtime_dir: runtime.to_owned(),
        model: task.model.clone(),
        allow_unknown_runtime: task.allow_unknown_runtime,
    });
    match ask(&task, Limits::default()).await {
        Ok(Ended::Done(Some(Frame::Inspected { model, graphs, .. }))) => Ok((*model, graphs)),
        Ok(Ended::Failed(failure)) => Err(failure.message),
        Ok(Ended::Done(_)) => Err("the runner did not answer".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Inputs in the tensors' own types, as in a local run: the same seed yields the same data.
fn made(task: &RunTask, graph: &Graph) -> Result<Inputs, OnDeviceError> {
    let (sets, origin) = input_sets(task, &graph.inputs).map_err(|error| OnDeviceError::Input(error.to_string()))?;
    let folder = temporary()?;
    let mut files = Vec::new();
    let mut list = String::new();
    for (inference, set) in sets.iter().enumerate() {
        let mut cells = Vec::new();
        for (index, data) in set.iter().enumerate() {
            let name = format!("in-{inference}-{index}.raw");
            let path = folder.path().join(&name);
            std::fs::write(&path, data)
                .map_err(|source| OnDeviceError::Io { action: format!("write {}", path.display()), source })?;
            cells.push(name.clone());
            files.push((name, path));
        }
        let _ = writeln!(list, "{}", cells.join(" "));
    }
    add_list(&mut files, &list, &folder)?;
    Ok(Inputs { origin, files, _folder: folder })
}

/// Inputs of a model that could not be read: raw files as they are, which must hold the tensors' own types.
fn as_given(task: &RunTask, why: Option<&String>) -> Result<Inputs, OnDeviceError> {
    let unknown = |reason: &str| OnDeviceError::NoInputs { model: task.model.clone(), reason: reason.to_owned() };
    let why = why.map_or("its graph could not be read", String::as_str);
    if !task.native_input {
        return Err(unknown(&format!("{why}; raw files in the tensors' own types can be given with --native-input")));
    }
    let lines: Vec<Vec<GivenInput>> = match &task.input_list {
        Some(path) => list_lines(path)?,
        None if task.inputs.is_empty() => return Err(unknown(why)),
        None => vec![task.inputs.iter().map(|input| (Some(input.name.clone()), input.path.clone())).collect()],
    };
    let mut files = Vec::new();
    let mut list = String::new();
    let mut origin = Vec::new();
    for (inference, line) in lines.iter().enumerate() {
        let mut cells = Vec::new();
        for (index, (tensor, path)) in line.iter().enumerate() {
            let bytes = std::fs::metadata(path)
                .map_err(|source| OnDeviceError::Io {
                    action: format!("read {}", clean_text(&path.to_string_lossy())),
                    source,
                })?
                .len();
            let name = format!("in-{inference}-{index}.raw");
            cells.push(tensor.as_ref().map_or_else(|| name.clone(), |tensor| format!("{tensor}:={name}")));
            files.push((name, path.clone()));
            if inference == 0 {
                origin.push(TensorData {
                    name: clean_text(tensor.as_deref().unwrap_or("")),
                    source: clean_text(&path.to_string_lossy()),
                    bytes,
                    quantization: None,
                    sha256: None,
                });
            }
        }
        let _ = writeln!(list, "{}", cells.join(" "));
    }
    let folder = temporary()?;
    add_list(&mut files, &list, &folder)?;
    Ok(Inputs { origin, files, _folder: folder })
}

fn list_lines(path: &Path) -> Result<Vec<Vec<GivenInput>>, OnDeviceError> {
    const MAX_LIST_BYTES: u64 = 64 << 20;
    let text = crate::files::read_text_at_most(path, MAX_LIST_BYTES).map_err(|source| OnDeviceError::Io {
        action: format!("read {}", clean_text(&path.to_string_lossy())),
        source,
    })?;
    let cell = |cell: &str| match cell.split_once(":=") {
        Some((name, file)) => (Some(name.to_owned()), PathBuf::from(file)),
        None => (None, PathBuf::from(cell)),
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '%']));
    Ok(lines.map(|line| line.split_whitespace().map(cell).collect()).collect())
}

/// The list as a file, whatever its length.
fn add_list(files: &mut Vec<(String, PathBuf)>, list: &str, folder: &TempDir) -> Result<(), OnDeviceError> {
    let path = folder.path().join(INPUT_LIST);
    std::fs::write(&path, list)
        .map_err(|source| OnDeviceError::Io { action: format!("write {}", path.display()), source })?;
    files.push((INPUT_LIST.to_owned(), path));
    Ok(())
}

fn temporary() -> Result<TempDir, OnDeviceError> {
    crate::files::private_folder()
        .map_err(|source| OnDeviceError::Io { action: "make a temporary folder".to_owned(), source })
}
