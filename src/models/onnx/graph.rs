//! Graphs and nodes of an ONNX model.

use super::tensor::{constant, sparse, text};
use super::wire::{Field, Message, floats, ints};
use crate::models::source::{
    Attribute, AttributeValue, Dim, ElementType, SourceError, SourceFile, SourceGraph, SourceNode, SourceValue,
    Subgraph,
};

/// Deepest nesting of graphs in nodes.
const MOST_DEPTH: u32 = 32;
/// Most values kept of a list attribute.
const KEPT_VALUES: usize = 64;
/// Longest attribute text kept, in bytes; longer ones are data.
const KEPT_TEXT: u64 = 4096;

/// Reads a `GraphProto` into `graph`.
pub fn read(mut message: Message<'_>, graph: &mut SourceGraph, depth: u32) -> Result<(), SourceError> {
    let file = message.file;
    if depth > MOST_DEPTH {
        return Err(file.damaged(message.at(), format!("graphs are nested more than {MOST_DEPTH} deep")));
    }
    loop {
        let at = message.at();
        let Some((number, field)) = message.next()? else { break };
        match number {
            1 => node(Message::of(file, field, at)?, graph, depth)?,
            2 => graph.name = text(file, field)?,
            5 => graph.constants.push(constant(Message::of(file, field, at)?, depth > 0)?),
            15 => graph.constants.push(sparse(Message::of(file, field, at)?, depth > 0)?),
            11 => {
                let input = value(Message::of(file, field, at)?)?;
                graph.inputs.push(input.name.clone());
                graph.declare(input);
            }
            12 => {
                let output = value(Message::of(file, field, at)?)?;
                graph.outputs.push(output.name.clone());
                graph.declare(output);
            }
            13 => graph.declare(value(Message::of(file, field, at)?)?),
            _ => {}
        }
    }
    Ok(())
}

/// Reads a `NodeProto`.
fn node(mut message: Message<'_>, graph: &mut SourceGraph, depth: u32) -> Result<(), SourceError> {
    let file = message.file;
    let mut node = SourceNode { index: graph.nodes.len(), ..SourceNode::default() };
    // Some files have attributes before the name, and graphs in attributes are identified by the node's name.
    let mut attributes = Vec::new();
    loop {
        let at = message.at();
        let Some((number, field)) = message.next()? else { break };
        match number {
            1 => node.inputs.push(text(file, field)?),
            2 => node.outputs.push(text(file, field)?),
            3 => node.name = text(file, field)?,
            4 => node.op_type = text(file, field)?,
            5 => attributes.push((at, field)),
            7 => node.domain = domain(text(file, field)?),
            _ => {}
        }
    }
    for (at, field) in attributes {
        let found = attribute(Message::of(file, field, at)?, graph, &node.label(), depth)?;
        node.attributes.extend(found);
    }
    file.keep(size_of::<SourceNode>() + size_of::<Attribute>() * node.attributes.len())?;
    for output in &node.outputs {
        if graph.value(output).is_none() {
            file.keep(2 * output.len() + size_of::<SourceValue>())?;
            graph.declare(SourceValue::named(output.clone()));
        }
    }
    graph.nodes.push(node);
    Ok(())
}

/// Normalises the two spellings of ONNX's own domain.
pub fn domain(name: String) -> String {
    if name == "ai.onnx" { String::new() } else { name }
}

/// Reads an `AttributeProto`; references to a function's parameters are ignored.
fn attribute(
    mut message: Message<'_>,
    graph: &mut SourceGraph,
    node: &str,
    depth: u32,
) -> Result<Option<Attribute>, SourceError> {
    let file = message.file;
    let (mut name, mut value, mut kind) = (String::new(), None, 0);
    let (mut kept_ints, mut int_count) = (Vec::new(), 0);
    let (mut kept_floats, mut float_count) = (Vec::new(), 0);
    let (mut kept_texts, mut text_count) = (Vec::new(), 0);
    let mut graphs = Vec::new();
    loop {
        let at = message.at();
        let Some((number, field)) = message.next()? else { break };
        match (number, field) {
            (1, _) => name = text(file, field)?,
            (2, Field::Fixed32(bits)) => value = Some(AttributeValue::Float(f32::from_bits(bits))),
            (3, Field::Varint(number)) => value = Some(AttributeValue::Int(number.cast_signed())),
            (4, Field::Bytes(span)) => {
                let short = if span.len <= KEPT_TEXT { Some(file.text(span)?) } else { None };
                value = Some(AttributeValue::Bytes(span, short));
            }
            (5, _) => {
                let mut tensor = constant(Message::of(file, field, at)?, true)?;
                if tensor.name.is_empty() {
                    tensor.name = format!("{node}.{name}");
                }
                value = Some(AttributeValue::Tensor(Box::new(tensor)));
            }
            (6 | 11, _) => graphs.push((at, field)),
            (7, _) => float_count += floats(file, field, at, KEPT_VALUES, &mut kept_floats)?,
            (8, _) => int_count += ints(file, field, at, KEPT_VALUES, &mut kept_ints)?,
            (9, _) => {
                text_count += 1;
                if kept_texts.len() < KEPT_VALUES {
                    kept_texts.push(text(file, field)?);
                }
            }
            (20, Field::Varint(number)) => kind = number,
            // Lists of tensors and sparse tensors contain data as well.
            (10, _) => graph.constants.push(constant(Message::of(file, field, at)?, true)?),
            (22 | 23, _) => graph.constants.push(sparse(Message::of(file, field, at)?, true)?),
            _ => {}
        }
    }
    for (at, field) in graphs {
        let nodes = nested(Message::of(file, field, at)?, graph, node, &name, depth)?;
        value = Some(AttributeValue::Graph(nodes));
    }
    // Some writers omit a zero or empty value; then the type determines what it is.
    let value = value.unwrap_or(match kind {
        _ if int_count > 0 => AttributeValue::Ints(int_count, kept_ints),
        _ if float_count > 0 => AttributeValue::Floats(float_count, kept_floats),
        _ if text_count > 0 => AttributeValue::Texts(text_count, kept_texts),
        1 => AttributeValue::Float(0.0),
        2 => AttributeValue::Int(0),
        3 => AttributeValue::Bytes(crate::models::source::Span { at: 0, len: 0 }, Some(String::new())),
        6 => AttributeValue::Floats(0, Vec::new()),
        7 => AttributeValue::Ints(0, Vec::new()),
        8 => AttributeValue::Texts(0, Vec::new()),
        _ => AttributeValue::Other,
    });
    file.keep(name.len() + 8 * KEPT_VALUES.min(usize::try_from(int_count + float_count).unwrap_or(KEPT_VALUES)))?;
    Ok((!name.is_empty()).then_some(Attribute { name, value }))
}

/// Counts the nodes of a graph in a node; its constants belong to the model like any others.
fn nested(
    message: Message<'_>,
    graph: &mut SourceGraph,
    node: &str,
    attribute: &str,
    depth: u32,
) -> Result<u64, SourceError> {
    let mut inner = SourceGraph::default();
    read(message, &mut inner, depth + 1)?;
    let nodes = inner.nodes.len() as u64;
    graph.subgraphs.push(Subgraph { node: node.to_owned(), attribute: attribute.to_owned(), nodes });
    absorb(graph, inner);
    Ok(nodes)
}

/// Counts the nodes of a function.
pub fn loose_nodes(file: &SourceFile, nodes: &[(u64, Field)], graph: &mut SourceGraph) -> Result<u64, SourceError> {
    let mut inner = SourceGraph::default();
    for &(at, field) in nodes {
        node(Message::of(file, field, at)?, &mut inner, 1)?;
    }
    let count = inner.nodes.len() as u64;
    absorb(graph, inner);
    Ok(count)
}

/// Merges the contents of a nested graph: its constants, and graphs nested deeper.
fn absorb(graph: &mut SourceGraph, mut inner: SourceGraph) {
    graph.subgraphs.append(&mut inner.subgraphs);
    graph.constants.append(&mut inner.constants);
    for attribute in inner.nodes.into_iter().flat_map(|node| node.attributes) {
        if let AttributeValue::Tensor(tensor) = attribute.value {
            graph.constants.push(*tensor);
        }
    }
}

/// Reads a `ValueInfoProto`.
fn value(mut message: Message<'_>) -> Result<SourceValue, SourceError> {
    let file = message.file;
    let mut value = SourceValue::named(String::new());
    loop {
        let at = message.at();
        let Some((number, field)) = message.next()? else { break };
        match number {
            1 => value.name = text(file, field)?,
            2 => {
                let mut kind = Message::of(file, field, at)?;
                loop {
                    let at = kind.at();
                    let Some((number, field)) = kind.next()? else { break };
                    // A tensor, or a sparse one; sequences and maps have no shape.
                    if matches!(number, 1 | 8) {
                        tensor_type(Message::of(file, field, at)?, &mut value)?;
                    }
                }
            }
            _ => {}
        }
    }
    file.keep(size_of::<SourceValue>() + 2 * value.name.len() + 32 * value.shape.as_ref().map_or(0, Vec::len))?;
    Ok(value)
}

fn tensor_type(mut message: Message<'_>, value: &mut SourceValue) -> Result<(), SourceError> {
    let file = message.file;
    loop {
        let at = message.at();
        let Some((number, field)) = message.next()? else { break };
        match number {
            1 => {
                value.dtype = field.int().and_then(|kind| ElementType::from_onnx(i32::try_from(kind).unwrap_or(-1)));
            }
            2 => {
                let mut dims = Vec::new();
                let mut shape = Message::of(file, field, at)?;
                loop {
                    let at = shape.at();
                    let Some((number, field)) = shape.next()? else { break };
                    if number == 1 {
                        dims.push(dim(file, Message::of(file, field, at)?)?);
                        file.keep(size_of::<Dim>())?;
                    }
                }
                value.shape = Some(dims);
            }
            _ => {}
        }
    }
    Ok(())
}

fn dim(file: &SourceFile, mut message: Message<'_>) -> Result<Dim, SourceError> {
    let mut dim = Dim::Unknown;
    while let Some((number, field)) = message.next()? {
        match number {
            // Exporters write -1 for unknown sizes.
            1 => dim = field.int().and_then(|value| u64::try_from(value).ok()).map_or(Dim::Unknown, Dim::Known),
            2 => {
                let name = text(file, field)?;
                dim = if name.is_empty() { Dim::Unknown } else { Dim::Named(name) };
            }
            _ => {}
        }
    }
    Ok(dim)
}
