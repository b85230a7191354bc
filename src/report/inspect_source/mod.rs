//! A description of a model before conversion: the `qnnscope.inspect-source/1` document and its text.

mod text;

pub use text::source_text;

use crate::models::source::{
    Attribute, AttributeValue, Constant, Dim, ElementType, EmbeddedContext, ExternalFile, FreeDimension, Function,
    Opset, QuantizationSummary, SourceFormat, SourceGraph, SourceModel, SourceNode, SourceValue, Storage, Subgraph,
    TypeTotal,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceDocument {
    schema: &'static str,
    path: String,
    format: SourceFormat,
    sha256: String,
    bytes: u64,
    format_version: Option<i64>,
    producer: Option<String>,
    producer_version: Option<String>,
    opsets: Vec<Opset>,
    functions: Vec<Function>,
    free_dimensions: Vec<FreeDimension>,
    external_files: Vec<ExternalFile>,
    quantization: Option<QuantizationSummary>,
    context_binaries: Vec<ContextDocument>,
    graphs: Vec<GraphDocument>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ContextDocument {
    name: String,
    site: crate::models::source::ContextSite,
    partitions: Vec<String>,
    sdk_version: Option<String>,
    file: String,
    offset: u64,
    bytes: u64,
    recognised: bool,
    problem: Option<String>,
    extracted: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct GraphDocument {
    name: String,
    inputs: Vec<SourceValue>,
    outputs: Vec<SourceValue>,
    node_count: u64,
    macs: u64,
    nodes_without_macs: u64,
    parameters: u64,
    parameter_bytes: u64,
    op_types: Vec<TypeTotal>,
    nodes: Vec<NodeDocument>,
    values: Vec<SourceValue>,
    constants: Vec<ConstantDocument>,
    subgraphs: Vec<Subgraph>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct NodeDocument {
    index: usize,
    name: String,
    label: String,
    #[serde(rename = "type")]
    op_type: String,
    domain: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    attributes: Map<String, Value>,
    macs: Option<u64>,
    /// Type and shape of the first output, for the table.
    #[serde(skip)]
    output: Option<(Option<ElementType>, Option<Vec<Dim>>)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ConstantDocument {
    name: String,
    dtype: Option<ElementType>,
    shape: Vec<u64>,
    bytes: Option<u64>,
    /// The file that holds its data, if that is not the model itself.
    file: Option<String>,
    offset: Option<u64>,
}

impl SourceDocument {
    /// Builds the document. `extracted` are the files the context binaries were written to, in the same
    /// order.
    pub fn new(model: SourceModel, sha256: String, extracted: &[Option<PathBuf>]) -> Self {
        let shown = |path: &Path| crate::event::clean_text(&path.to_string_lossy());
        let contexts = model.contexts.iter().enumerate();
        let context_binaries = contexts
            .map(|(index, context)| {
                ContextDocument::new(context, extracted.get(index).and_then(Option::as_ref).map(|path| shown(path)))
            })
            .collect();
        Self {
            schema: "qnnscope.inspect-source/1",
            path: shown(&model.path),
            format: model.format,
            sha256,
            bytes: model.bytes,
            format_version: model.format_version,
            producer: model.producer,
            producer_version: model.producer_version,
            opsets: model.opsets,
            functions: model.functions,
            free_dimensions: model.free_dimensions,
            external_files: model.external_files,
            quantization: model.quantization,
            context_binaries,
            graphs: model.graphs.into_iter().map(GraphDocument::new).collect(),
        }
    }
}

impl ContextDocument {
    fn new(context: &EmbeddedContext, extracted: Option<String>) -> Self {
        Self {
            name: context.name.clone(),
            site: context.site,
            partitions: context.partitions.clone(),
            sdk_version: context.sdk_version.clone(),
            file: crate::event::clean_text(&context.file.to_string_lossy()),
            offset: context.span.at,
            bytes: context.span.len,
            recognised: context.recognised,
            problem: context.problem.clone(),
            extracted,
        }
    }
}

impl GraphDocument {
    fn new(graph: SourceGraph) -> Self {
        let constants: HashMap<&String, &Constant> =
            graph.constants.iter().map(|constant| (&constant.name, constant)).collect();
        let named = |names: &[String]| -> Vec<SourceValue> {
            let of_constant = |name: &String| constants.get(name).map(|constant| value_of(constant));
            let one = |name: &String| graph.value(name).cloned().or_else(|| of_constant(name));
            names.iter().map(|name| one(name).unwrap_or_else(|| SourceValue::named(name.clone()))).collect()
        };
        let (inputs, outputs) = (named(&graph.inputs), named(&graph.outputs));
        let ends: HashSet<&String> = graph.inputs.iter().chain(&graph.outputs).collect();
        // Before ONNX IR version 4, constants are also declared as values.
        let between = |value: &&SourceValue| !ends.contains(&value.name) && !constants.contains_key(&value.name);
        Self {
            inputs,
            outputs,
            node_count: graph.nodes.len() as u64,
            macs: graph.macs(),
            nodes_without_macs: graph.nodes.iter().filter(|node| node.macs.is_none()).count() as u64,
            parameters: graph.parameters(),
            parameter_bytes: graph.parameter_bytes(),
            op_types: TypeTotal::of(&graph.nodes),
            nodes: graph.nodes.iter().map(|node| NodeDocument::new(node, &graph)).collect(),
            values: graph.values().iter().filter(between).cloned().collect(),
            constants: graph.constants.iter().map(ConstantDocument::new).collect(),
            subgraphs: graph.subgraphs.clone(),
            name: graph.name,
        }
    }
}

/// A constant in the form of an output.
fn value_of(constant: &Constant) -> SourceValue {
    let mut value = SourceValue::named(constant.name.clone());
    value.dtype = constant.dtype;
    value.shape = Some(constant.shape.iter().map(|&dim| Dim::Known(dim)).collect());
    value
}

impl NodeDocument {
    fn new(node: &SourceNode, graph: &SourceGraph) -> Self {
        let output = node.outputs.first().and_then(|name| graph.value(name));
        Self {
            index: node.index,
            name: node.name.clone(),
            label: node.label(),
            op_type: node.op_type.clone(),
            domain: node.domain.clone(),
            inputs: node.inputs.clone(),
            outputs: node.outputs.clone(),
            attributes: node.attributes.iter().map(attribute).collect(),
            macs: node.macs,
            output: output.map(|value| (value.dtype, value.shape.clone())),
        }
    }
}

fn attribute(attribute: &Attribute) -> (String, Value) {
    // Only the first values of long lists are shown.
    fn list<T: Serialize>(count: u64, values: &[T]) -> Value {
        if count == values.len() as u64 { json!(values) } else { json!({"count": count, "first": values}) }
    }
    let value = match &attribute.value {
        AttributeValue::Int(value) => json!(value),
        AttributeValue::Float(value) => json!(value),
        AttributeValue::Bytes(_, Some(text)) => json!(text),
        AttributeValue::Bytes(span, None) => json!({"bytes": span.len, "offset": span.at}),
        AttributeValue::Ints(count, values) => list(*count, values),
        AttributeValue::Floats(count, values) => list(*count, values),
        AttributeValue::Texts(count, values) => list(*count, values),
        AttributeValue::Tensor(tensor) => json!({"dtype": tensor.dtype, "shape": tensor.shape}),
        AttributeValue::Graph(nodes) => json!({"nodes": nodes}),
        AttributeValue::Other => Value::Null,
    };
    (attribute.name.clone(), value)
}

impl ConstantDocument {
    fn new(constant: &Constant) -> Self {
        let (file, offset) = match &constant.storage {
            Storage::Inside(span) => (None, Some(span.at)),
            Storage::External { file, offset, .. } => (Some(file.clone()), Some(*offset)),
            Storage::Scattered => (None, None),
        };
        Self {
            name: constant.name.clone(),
            dtype: constant.dtype,
            shape: constant.shape.clone(),
            bytes: constant.bytes,
            file,
            offset,
        }
    }
}
