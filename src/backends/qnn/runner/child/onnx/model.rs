//! What is known of an ONNX model besides its placement: nodes, inputs, outputs.

use super::tensor;
use crate::backends::onnx::ModelNode;
use crate::backends::onnx::placement::Known;
use crate::backends::qnn::onnx::{Dimension, OnnxSession};
use crate::backends::qnn::runner::child::failed::Failed;
use crate::backends::qnn::runner::protocol::RunTask;
use crate::event::clean_text;
use crate::models::{Graph, Op, Tensor, TensorKind};

/// A model as sessions and files tell of it.
pub struct Described {
    pub graph: Graph,
    pub outputs: Vec<Tensor>,
    nodes: Vec<ModelNode>,
    /// Free dimensions of the inputs, as `--dim` would be given them.
    pub free: Vec<String>,
}

impl Described {
    /// What the placement has to know of it.
    pub fn known(&self) -> Known<'_> {
        Known { model: &self.nodes, free_dimensions: &self.free, ..Known::default() }
    }
}

/// Reads what a session tells of its model.
pub fn describe(task: &RunTask, session: &OnnxSession) -> Result<Described, Failed> {
    let inputs =
        session.inputs().iter().map(|input| tensor(input, TensorKind::Input)).collect::<Result<Vec<_>, _>>()?;
    // An output that is no tensor of numbers can be computed, and is only not shown.
    let outputs: Vec<Tensor> =
        session.outputs().iter().filter_map(|output| tensor(output, TensorKind::Output).ok()).collect();
    let nodes: Vec<ModelNode> = Vec::new();
    let assignment = session.assignment().unwrap_or_default();
    let ops = (0u32..).zip(assignment.iter().flat_map(|piece| &piece.nodes)).map(|(index, node)| Op {
        index,
        name: clean_text(&node.name),
        op_type: clean_text(&node.op_type),
        package: if node.domain.is_empty() { "ai.onnx".to_owned() } else { clean_text(&node.domain) },
        inputs: Vec::new(),
        outputs: Vec::new(),
        params: serde_json::Map::new(),
        macs: None,
        parameter_bytes: 0,
        bytes_moved: None,
    });
    let name = task.model.file_stem().map_or_else(String::new, |stem| clean_text(&stem.to_string_lossy()));
    let graph = Graph { name, inputs, outputs: outputs.clone(), ops: ops.collect(), parameter_bytes: 0 };
    Ok(Described { graph, outputs, nodes, free: free_dimensions(session) })
}

/// Free dimensions of the inputs as the options that would give them a size, each once.
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
