//! Computes an ONNX model with ONNX Runtime's own kernels, with readable tensors between its nodes.

use super::{at, tensor, to_stream};
use crate::backends::qnn::onnx::{OnnxRuntime, OnnxSession, SessionSpec};
use crate::backends::qnn::runner::child::emit::Emitter;
use crate::backends::qnn::runner::child::failed::Failed;
use crate::backends::qnn::runner::child::model::check_whole;
use crate::backends::qnn::runner::protocol::Frame;
use crate::backends::qnn::runner::run_task::OnnxTask;
use crate::backends::qnn::runner::tensors_protocol::{
    EXCHANGE_CONSTANTS, EXCHANGE_INPUTS, EXCHANGE_TENSORS, OpenedTensors, TensorsTask,
};
use crate::event::{LogLevel, RuntimeInfo, Stage, clean_text};
use crate::models::read_source;
use crate::models::source::SourceFormat;
use crate::models::{Tensor, TensorKind};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// The model with more outputs, in the folder of the exchange.
const MODEL: &str = "model.onnx";
/// Field of a `ModelProto` that holds the graph, and of a `GraphProto` that holds an output, with their wire type.
const GRAPH: u8 = 7 << 3 | 2;
const OUTPUT: u8 = 12 << 3 | 2;
/// Field of a `ValueInfoProto` that holds the name.
const NAME: u8 = 1 << 3 | 2;

/// Computes until there are no more orders.
pub fn serve(
    task: &TensorsTask,
    onnx: &OnnxTask,
    emitter: &Arc<Emitter>,
    orders: &Receiver<u64>,
) -> Result<(), Failed> {
    let (runtime, mut session, tensors) = open(task, onnx, emitter)?;
    let shapes = |tensor: &Tensor| tensor.shape.iter().map(|size| u64::from(*size)).collect();
    let inputs =
        session.inputs().iter().map(|input| tensor(input, TensorKind::Input)).collect::<Result<Vec<_>, _>>()?;
    session.allocate(&inputs.iter().map(shapes).collect::<Vec<_>>()).map_err(at(Stage::Prepare))?;
    emitter.frame(&Frame::Opened(Box::new(OpenedTensors {
        runtime: info(onnx, &runtime),
        graph: String::new(),
        inputs: inputs.clone(),
        given: Vec::new(),
        tensors: tensors.iter().flatten().cloned().collect(),
        constants: Vec::new(),
        refused: Vec::new(),
    })));
    while let Ok(index) = orders.recv() {
        give(&mut session, &task.exchange.join(EXCHANGE_INPUTS), &inputs)
            .map_err(|e| exchange("read the inputs", &e))?;
        let got = session.run_for_outputs().map_err(at(Stage::FirstInference))?;
        let mut file = File::create(task.exchange.join(EXCHANGE_TENSORS))
            .map(BufWriter::new)
            .map_err(|e| exchange("write the tensors", &e))?;
        for (output, declared) in got.iter().zip(&tensors) {
            let Some(declared) = declared else { continue };
            let bytes = output.as_ref().map(|output| output.bytes.as_slice()).unwrap_or_default();
            if Some(bytes.len() as u64) != declared.bytes() {
                let text = format!("tensor `{}` does not have the size its graph declares", clean_text(&declared.name));
                return Err(Failed::lost(Stage::FirstInference, "Run", text));
            }
            file.write_all(bytes).map_err(|e| exchange("write the tensors", &e))?;
        }
        file.flush().map_err(|e| exchange("write the tensors", &e))?;
        emitter.frame(&Frame::Computed { index });
    }
    Ok(())
}

fn exchange(what: &str, error: &io::Error) -> Failed {
    Failed::lost(Stage::FirstInference, "exchange", format!("cannot {what} in the folder for temporary files: {error}"))
}

fn info(onnx: &OnnxTask, runtime: &OnnxRuntime) -> RuntimeInfo {
    RuntimeInfo {
        path: clean_text(&onnx.library.to_string_lossy()),
        build_id: Some(format!("ONNX Runtime {}", super::load::version(runtime))),
        core_api: String::new(),
        backend_api: String::new(),
        provider: "ONNX Runtime's CPU provider".to_owned(),
    }
}

type Ready = (OnnxRuntime, OnnxSession, Vec<Option<Tensor>>);

/// The session, and for each output its tensor, if its numbers have a known size.
fn open(task: &TensorsTask, onnx: &OnnxTask, emitter: &Arc<Emitter>) -> Result<Ready, Failed> {
    if !task.given.is_empty() {
        let text = "ONNX Runtime runs the model as a whole: single nodes cannot be given values".to_owned();
        return Err(Failed::lost(Stage::Prepare, "given", text));
    }
    check_whole(&onnx.library)?;
    let failed = |error| exchange("put the model", &error);
    let model = prepared(task, onnx).map_err(failed)?;
    File::create(task.exchange.join(EXCHANGE_CONSTANTS)).map_err(failed)?;
    let runtime =
        OnnxRuntime::open(&onnx.library, to_stream(emitter, LogLevel::Error)).map_err(at(Stage::LibraryLoad))?;
    let spec = SessionSpec {
        provider_options: Vec::new(),
        entries: Vec::new(),
        dimensions: onnx.dimensions.clone(),
        with_qnn: false,
        log_level: LogLevel::Error,
        sink: to_stream(emitter, LogLevel::Error),
        profile: None,
    };
    let session =
        runtime.session(&model, &spec).map_err(|error| Failed::session(&error, &task.model, &[], runtime.version()))?;
    let sizes = known_sizes(task, onnx);
    let readable = |output: &crate::backends::qnn::onnx::OnnxTensor| {
        let known = sizes.iter().find(|tensor| tensor.name == clean_text(&output.name))?;
        Some(Tensor { kind: TensorKind::Output, ..known.clone() })
    };
    let tensors = session.outputs().iter().map(readable).collect();
    Ok((runtime, session, tensors))
}

/// Types and shapes that the parent found in the file.
fn known_sizes(task: &TensorsTask, onnx: &OnnxTask) -> Vec<Tensor> {
    let source = read_source(&task.model, SourceFormat::Onnx, &onnx.dimensions);
    let Ok(source) = source else { return Vec::new() };
    super::model::graph_of(&source, &task.model)
        .ops
        .into_iter()
        .flat_map(|op| op.outputs)
        .filter(|tensor| tensor.bytes().is_some())
        .collect()
}

/// A copy of the model with additional graph outputs, and its weight files beside it. A second graph in the message
/// extends the first one: later parts of a protobuf message are merged with earlier ones.
fn prepared(task: &TensorsTask, onnx: &OnnxTask) -> io::Result<PathBuf> {
    let path = task.exchange.join(MODEL);
    let mut file = BufWriter::new(File::create(&path)?);
    io::copy(&mut File::open(&task.model)?, &mut file)?;
    let mut outputs = Vec::new();
    for name in &task.readable {
        let mut value = Vec::new();
        field(&mut value, NAME, name.as_bytes());
        field(&mut outputs, OUTPUT, &value);
    }
    let mut graph = Vec::new();
    field(&mut graph, GRAPH, &outputs);
    file.write_all(&graph)?;
    file.flush()?;
    let source = read_source(&task.model, SourceFormat::Onnx, &onnx.dimensions);
    let folder = task.model.parent().unwrap_or(Path::new(""));
    for weights in source.map(|source| source.external_files).unwrap_or_default() {
        // The reader refuses names that lead outside the folder.
        let to = task.exchange.join(&weights.file);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let from = folder.join(&weights.file);
        if std::fs::hard_link(&from, &to).is_err() {
            std::fs::copy(&from, &to)?;
        }
    }
    Ok(path)
}

/// A field of bytes.
fn field(out: &mut Vec<u8>, key: u8, bytes: &[u8]) {
    out.push(key);
    let mut length = bytes.len();
    loop {
        let part = u8::try_from(length & 0x7f).unwrap_or(0);
        length >>= 7;
        if length == 0 {
            out.push(part);
            break;
        }
        out.push(part | 0x80);
    }
    out.extend_from_slice(bytes);
}

/// Fills the inputs from the data file.
fn give(session: &mut OnnxSession, path: &Path, inputs: &[Tensor]) -> io::Result<()> {
    let mut file = BufReader::new(File::open(path)?);
    for (position, tensor) in inputs.iter().enumerate() {
        let mut data = vec![0; usize::try_from(tensor.bytes().unwrap_or(0)).unwrap_or(0)];
        file.read_exact(&mut data)?;
        let _ = session.set_input(position, &data);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_varints() {
        let mut out = Vec::new();
        field(&mut out, NAME, b"ab");
        assert_eq!(out, [0x0a, 2, b'a', b'b']);
        out.clear();
        field(&mut out, GRAPH, &[7; 300]);
        assert_eq!((&out[..3], out.len()), (&[0x3a, 0xac, 0x02][..], 303));
    }
}
