//! What is known about an ONNX model besides its placement: nodes from its file, inputs and outputs from its session.

use super::tensor;
use crate::backends::onnx::ModelNode;
use crate::backends::onnx::placement::Known;
use crate::backends::qnn::onnx::{Dimension, OnnxSession};
use crate::backends::qnn::runner::child::failed::Failed;
use crate::backends::qnn::runner::run_task::{OnnxTask, RunTask};
use crate::event::{Stage, clean_text};
use crate::models::read_source;
use crate::models::source::{Constant, ElementType, SourceError, SourceFormat, SourceGraph, SourceModel, SourceNode};
use crate::models::{DataType, Graph, Op, Tensor, TensorKind};
use std::collections::HashMap;
use std::path::Path;

/// A model as described by session and file.
pub struct Described {
    pub graph: Graph,
    pub outputs: Vec<Tensor>,
    nodes: Vec<ModelNode>,
    /// Free dimensions of the inputs, in the form of `--dim`.
    pub free: Vec<String>,
}

impl Described {
    /// What the placement needs to know about it.
    pub fn known(&self) -> Known<'_> {
        Known { model: &self.nodes, free_dimensions: &self.free, ..Known::default() }
    }
}

/// Reads the model's file: its nodes, and whether its dimensions and the files beside it are valid.
pub fn read(task: &RunTask, onnx: &OnnxTask) -> Result<SourceModel, Failed> {
    read_source(&task.model, SourceFormat::Onnx, &onnx.dimensions).map_err(|error| unreadable(&error))
}

fn unreadable(error: &SourceError) -> Failed {
    let advice = error.advice().map_or_else(String::new, |advice| format!("; {advice}"));
    Failed::bad_input(Stage::Prepare, "read model", clean_text(&format!("{error}{advice}")))
}

/// Combines the information from file and session.
pub fn describe(task: &RunTask, source: &SourceModel, session: &OnnxSession, named: bool) -> Result<Described, Failed> {
    let inputs =
        session.inputs().iter().map(|input| tensor(input, TensorKind::Input)).collect::<Result<Vec<_>, _>>()?;
    // An output that is not a numeric tensor is computed, but not shown.
    let outputs: Vec<Tensor> =
        session.outputs().iter().filter_map(|output| tensor(output, TensorKind::Output).ok()).collect();
    let empty = SourceGraph::default();
    let written = source.graphs.first().unwrap_or(&empty);
    let nodes = written.nodes.iter().map(|node| ModelNode {
        // That of the copy, if there is one.
        name: if named { node.label() } else { node.name.clone() },
        label: node.label(),
        op_type: node.op_type.clone(),
    });
    let name = match written.name.as_str() {
        "" => task.model.file_stem().map_or_else(String::new, |stem| clean_text(&stem.to_string_lossy())),
        name => name.to_owned(),
    };
    let constants: HashMap<&str, &Constant> =
        written.constants.iter().filter(|one| !one.nested).map(|one| (one.name.as_str(), one)).collect();
    let graph = Graph {
        name,
        inputs,
        outputs: outputs.clone(),
        ops: (0u32..).zip(&written.nodes).map(|(index, node)| op(index, node, written, &constants)).collect(),
        parameter_bytes: constants.values().filter_map(|one| one.bytes).fold(0, u64::saturating_add),
    };
    Ok(Described { graph, outputs, nodes: nodes.collect(), free: free_dimensions(session) })
}

/// The graph of a model from its file, before any session: tensors with known type and shape; the model's
/// outputs are marked as such.
pub fn graph_of(source: &SourceModel, path: &Path) -> Graph {
    let empty = SourceGraph::default();
    let written = source.graphs.first().unwrap_or(&empty);
    let constants: HashMap<&str, &Constant> =
        written.constants.iter().filter(|one| !one.nested).map(|one| (one.name.as_str(), one)).collect();
    let computing = written.nodes.iter().filter(|node| node.op_type != "Constant");
    let mut ops: Vec<Op> = (0u32..).zip(computing).map(|(index, node)| op(index, node, written, &constants)).collect();
    for tensor in ops.iter_mut().flat_map(|op| &mut op.outputs) {
        if written.outputs.contains(&tensor.name) {
            tensor.kind = TensorKind::Output;
        }
    }
    let value = |name: &String, kind| {
        let value = written.value(name)?;
        // Free dimensions are 1, as in runs.
        let shape = value.shape.as_ref()?.iter().map(|dim| dim.known().unwrap_or(1)).collect::<Vec<_>>();
        made(&value.name, value.dtype?, &shape, kind)
    };
    let name = match written.name.as_str() {
        "" => path.file_stem().map_or_else(String::new, |stem| clean_text(&stem.to_string_lossy())),
        name => name.to_owned(),
    };
    Graph {
        name,
        inputs: written.inputs.iter().filter_map(|name| value(name, TensorKind::Input)).collect(),
        outputs: written.outputs.iter().filter_map(|name| value(name, TensorKind::Output)).collect(),
        ops,
        parameter_bytes: constants.values().filter_map(|one| one.bytes).fold(0, u64::saturating_add),
    }
}

/// A node as a graph op, with the tensors of known type and shape.
fn op(index: u32, node: &SourceNode, graph: &SourceGraph, constants: &HashMap<&str, &Constant>) -> Op {
    let constant = |name: &String| constants.get(name.as_str());
    let parameter_bytes =
        node.inputs.iter().filter_map(constant).filter_map(|one| one.bytes).fold(0, u64::saturating_add);
    let value = |name: &String, kind| {
        let value = graph.value(name)?;
        made(&value.name, value.dtype?, &value.dims()?, kind)
    };
    let static_one = |name: &String| {
        let one = constant(name)?;
        made(&one.name, one.dtype?, &one.shape, TensorKind::Static)
    };
    let inputs: Vec<Option<Tensor>> = node
        .inputs
        .iter()
        .filter(|name| !name.is_empty())
        .map(|name| static_one(name).or_else(|| value(name, TensorKind::Native)))
        .collect();
    let outputs: Vec<Option<Tensor>> = node.outputs.iter().map(|name| value(name, TensorKind::Native)).collect();
    let moved = inputs.iter().chain(&outputs).map(|tensor| tensor.as_ref()?.bytes());
    Op {
        index,
        name: node.label(),
        op_type: node.op_type.clone(),
        package: if node.domain.is_empty() { "ai.onnx".to_owned() } else { node.domain.clone() },
        bytes_moved: moved.sum::<Option<u64>>(),
        inputs: inputs.into_iter().flatten().collect(),
        outputs: outputs.into_iter().flatten().collect(),
        params: serde_json::Map::new(),
        macs: node.macs,
        parameter_bytes,
    }
}

fn made(name: &str, element: ElementType, shape: &[u64], kind: TensorKind) -> Option<Tensor> {
    let dtype = match element.name().as_str() {
        "bool" => "bool8".to_owned(),
        name => name.to_owned(),
    };
    let dtype: DataType = serde_json::from_value(serde_json::Value::String(dtype)).ok()?;
    let shape = shape.iter().map(|size| u32::try_from(*size)).collect::<Result<_, _>>().ok()?;
    Some(Tensor { name: name.to_owned(), dtype, shape, quantization: None, kind })
}

/// Free dimensions of the inputs, each once, as the options that would fix them.
fn free_dimensions(session: &OnnxSession) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    for dimension in session.inputs().iter().flat_map(|input| &input.shape) {
        let Dimension::Free(name) = dimension else { continue };
        let name = if name.is_empty() { "NAME" } else { name.as_str() };
        let option = format!("--dim {}=1", clean_text(name));
        if !options.contains(&option) {
            options.push(option);
        }
    }
    options
}
