//! ONNX models, read without ONNX Runtime: a protobuf message, of which names, shapes and sizes are kept.
//!
//! Field numbers are those of `onnx.proto` (IR version 13). Unknown fields are skipped, so newer files are
//! readable as far as they are the same.

mod contexts;
mod external;
mod graph;
mod macs;
mod naming;
mod qdq;
mod shapes;
mod tensor;
mod wire;

pub use naming::Named;

use self::tensor::text;
use self::wire::{Field, Message};
use super::source::{
    AttributeValue, Dim, FreeDimension, Function, Opset, SourceError, SourceFile, SourceFormat, SourceGraph,
    SourceModel, count_macs,
};
use std::collections::{BTreeMap, HashSet};

/// Largest IR version for which a file counts as an ONNX model; the current one is 13.
const PLAUSIBLE_IR: u64 = 100;

/// True if the file is an ONNX model, intact or damaged: its fields are those of a `ModelProto`, and one of
/// them is the graph or the first is the IR version.
pub fn looks_like(file: &SourceFile) -> Result<bool, SourceError> {
    let mut message = Message::new(file, file.whole());
    let (mut fields, mut has_version, mut has_graph) = (0u32, false, false);
    loop {
        match message.next() {
            Ok(None) => return Ok(has_graph),
            Ok(Some((number, field))) => {
                let fits = match (number, field) {
                    (1, Field::Varint(version)) => {
                        has_version |= fields == 0;
                        version < PLAUSIBLE_IR
                    }
                    (7, Field::Bytes(_)) => {
                        has_graph = true;
                        true
                    }
                    (5, Field::Varint(_)) | (2 | 3 | 4 | 6 | 8 | 14 | 20 | 25 | 26, Field::Bytes(_)) => true,
                    _ => return Ok(false),
                };
                if !fits {
                    return Ok(false);
                }
                fields += 1;
            }
            // A truncated file still starts like a model.
            Err(SourceError::Damaged { .. }) => return Ok(has_version && fields > 1 || is_cut(file)?),
            Err(error) => return Err(error),
        }
    }
}

/// True if the file starts with an IR version followed by a field that extends past its end, like the graph
/// of a truncated file.
fn is_cut(file: &SourceFile) -> Result<bool, SourceError> {
    let mut start = [0; 3];
    if file.size() < 3 {
        return Ok(false);
    }
    file.read(0, &mut start)?;
    Ok(matches!(start, [0x08, 1..=99, 0x3a]))
}

/// Reads a model.
pub fn read(file: &SourceFile, dimensions: &[(String, u64)]) -> Result<SourceModel, SourceError> {
    let mut model = SourceModel::new(file.path(), SourceFormat::Onnx, file.size());
    let mut graph = SourceGraph::default();
    let mut message = Message::new(file, file.whole());
    let mut has_graph = false;
    loop {
        let at = message.at();
        let Some((number, field)) = message.next()? else { break };
        match number {
            1 => model.format_version = field.int(),
            2 => model.producer = Some(text(file, field)?).filter(|name| !name.is_empty()),
            3 => model.producer_version = Some(text(file, field)?).filter(|name| !name.is_empty()),
            7 => {
                graph::read(Message::of(file, field, at)?, &mut graph, 0)?;
                has_graph = true;
            }
            8 => model.opsets.push(opset(Message::of(file, field, at)?)?),
            25 => model.functions.push(function(Message::of(file, field, at)?, &mut graph)?),
            _ => {}
        }
    }
    if !has_graph {
        return Err(file.damaged(0, "it has no graph"));
    }
    keep_attribute_tensors(&mut graph);
    drop_initialised_inputs(&mut graph);
    model.free_dimensions = free_dimensions(&graph);
    check_dimensions(file, &model.free_dimensions, dimensions)?;
    graph.fix(dimensions);
    model.free_dimensions.retain(|free| !dimensions.iter().any(|(name, _)| free.name.as_ref() == Some(name)));
    model.external_files = external::check(file, &graph)?;
    shapes::infer(file, &mut graph)?;
    count_macs(&mut graph, macs::of);
    model.quantization = qdq::summary(&graph);
    model.contexts = contexts::find(file, &graph)?;
    model.graphs.push(graph);
    Ok(model)
}

/// Tensors in attributes, such as those of Constant nodes, are constants like any others.
fn keep_attribute_tensors(graph: &mut SourceGraph) {
    let mut found = Vec::new();
    for node in &graph.nodes {
        for attribute in &node.attributes {
            if let AttributeValue::Tensor(tensor) = &attribute.value {
                let mut tensor = (**tensor).clone();
                // The output of a Constant node is that tensor.
                if node.op_type == "Constant"
                    && let Some(output) = node.outputs.first()
                {
                    tensor.name.clone_from(output);
                    tensor.nested = false;
                }
                found.push(tensor);
            }
        }
    }
    graph.constants.append(&mut found);
}

/// Before IR version 4, constants also had to be listed as inputs; nobody supplies them.
fn drop_initialised_inputs(graph: &mut SourceGraph) {
    let constants: HashSet<&str> =
        graph.constants.iter().filter(|constant| !constant.nested).map(|constant| constant.name.as_str()).collect();
    let mut inputs = std::mem::take(&mut graph.inputs);
    inputs.retain(|name| !constants.contains(name.as_str()));
    graph.inputs = inputs;
}

fn free_dimensions(graph: &SourceGraph) -> Vec<FreeDimension> {
    let mut named: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
    for input in graph.inputs.iter().filter_map(|name| graph.value(name)) {
        for dim in input.shape.iter().flatten() {
            let name = match dim {
                Dim::Known(_) => continue,
                Dim::Named(name) => Some(name.clone()),
                Dim::Unknown => None,
            };
            let inputs = named.entry(name).or_default();
            if inputs.last() != Some(&input.name) {
                inputs.push(input.name.clone());
            }
        }
    }
    named.into_iter().map(|(name, inputs)| FreeDimension { name, inputs }).collect()
}

fn check_dimensions(file: &SourceFile, free: &[FreeDimension], given: &[(String, u64)]) -> Result<(), SourceError> {
    let known: Vec<&str> = free.iter().filter_map(|free| free.name.as_deref()).collect();
    match given.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((name, _)) => Err(SourceError::NoSuchDimension {
            path: file.path().to_owned(),
            name: name.clone(),
            known: if known.is_empty() { "none with a name".to_owned() } else { known.join(", ") },
        }),
    }
}

fn opset(mut message: Message<'_>) -> Result<Opset, SourceError> {
    let mut opset = Opset { domain: String::new(), version: 0 };
    while let Some((number, field)) = message.next()? {
        match number {
            1 => opset.domain = graph::domain(text(message.file, field)?),
            2 => opset.version = field.int().unwrap_or(0),
            _ => {}
        }
    }
    message.file.keep(size_of::<Opset>())?;
    Ok(opset)
}

/// Reads a `FunctionProto`: counts its nodes; the tensors in them belong to the model.
fn function(mut message: Message<'_>, model: &mut SourceGraph) -> Result<Function, SourceError> {
    let file = message.file;
    let mut function = Function { domain: String::new(), name: String::new(), nodes: 0 };
    let mut nodes = Vec::new();
    loop {
        let at = message.at();
        let Some((number, field)) = message.next()? else { break };
        match number {
            1 => function.name = text(file, field)?,
            7 => nodes.push((at, field)),
            10 => function.domain = graph::domain(text(file, field)?),
            _ => {}
        }
    }
    function.nodes = graph::loose_nodes(file, &nodes, model)?;
    file.keep(size_of::<Function>())?;
    Ok(function)
}
