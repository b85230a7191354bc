//! Encodings of ONNX models in QDQ form, and their graphs as far as encodings are concerned.

use super::{Encoding, Encodings, Format, Slice, Use};
use crate::accuracy::base_name;
use crate::models::read_source;
use crate::models::source::{
    Constant, ElementType, Small, SourceError, SourceFile, SourceFormat, SourceGraph, SourceNode, SourceValue, Storage,
};
use crate::models::{DataType, Graph, Op, Tensor, TensorKind};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Most scales that are read of one tensor.
const MOST_SCALES: u64 = 1 << 20;

/// The graphs of an ONNX model, and the encodings of its QuantizeLinear and DequantizeLinear nodes.
///
/// # Errors
/// A damaged file.
pub fn read_onnx(path: &Path) -> Result<(Vec<Graph>, Encodings), SourceError> {
    let model = read_source(path, SourceFormat::Onnx, &[])?;
    let file = SourceFile::open(path, "model")?;
    let mut tensors = Vec::new();
    let mut seen = HashSet::new();
    for graph in &model.graphs {
        let constants: HashMap<&str, &Constant> =
            graph.constants.iter().filter(|constant| !constant.nested).map(|one| (one.name.as_str(), one)).collect();
        for node in &graph.nodes {
            let encoding = encoding(node, graph, &constants, &file);
            tensors.extend(encoding.filter(|encoding| seen.insert(encoding.name.clone())));
        }
    }
    let graphs = model.graphs.iter().map(plain).collect();
    Ok((graphs, Encodings { format: Format::Model, tensors, findings: Vec::new() }))
}

/// What a node quantises: an activation on its way in, a constant on its way out.
fn encoding(
    node: &SourceNode,
    graph: &SourceGraph,
    constants: &HashMap<&str, &Constant>,
    file: &SourceFile,
) -> Option<Encoding> {
    let name = node.inputs.first()?;
    let used = match node.op_type.as_str() {
        "QuantizeLinear" => Use::Activation,
        "DequantizeLinear" if constants.contains_key(name.as_str()) => Use::Parameter,
        _ => return None,
    };
    let scales = numbers(constants.get(node.inputs.get(1)?.as_str())?, file)?;
    let zero = node.inputs.get(2).filter(|name| !name.is_empty()).and_then(|name| constants.get(name.as_str()));
    let zeros = zero.and_then(|zero| numbers(zero, file)).unwrap_or_default();
    // Without a zero point an activation becomes uint8; a constant says its type itself.
    let stored = match (zero, used) {
        (Some(zero), _) => zero.dtype,
        (None, Use::Parameter) => constants.get(name.as_str()).and_then(|constant| constant.dtype),
        (None, Use::Activation) => graph.value(node.outputs.first()?)?.dtype,
    };
    let stored = stored.unwrap_or(ElementType::Uint8);
    let bits = stored.bits()?;
    let is_signed = stored.name().starts_with("int");
    let middle = if is_signed { (1u64 << (bits.clamp(1, 32) - 1)) as f64 } else { 0.0 };
    let offset = |at: usize| -zeros.get(at).or(zeros.first()).copied().unwrap_or(0.0) - middle;
    let slices: Vec<Slice> = scales
        .iter()
        .enumerate()
        .map(|(at, &scale)| Slice { scale: Some(scale), offset: Some(offset(at)), min: None, max: None })
        .collect();
    let per_channel = slices.len() > 1;
    Some(Encoding {
        name: base_name(name).to_owned(),
        used,
        bits,
        is_float: stored.is_float(),
        symmetric: is_signed.then(|| slices.iter().all(|slice| slice.offset == Some(-middle))),
        slices,
        per_channel,
        axis: per_channel.then(|| node.int("axis").unwrap_or(1)),
    })
}

/// The numbers of a constant: kept ones, or those in the file.
fn numbers(constant: &Constant, file: &SourceFile) -> Option<Vec<f64>> {
    match &constant.small {
        Some(Small::Floats(values)) => return Some(values.iter().copied().map(f64::from).collect()),
        Some(Small::Ints(values)) => return Some(values.iter().map(|&value| value as f64).collect()),
        None => {}
    }
    let (dtype, Storage::Inside(span)) = (data_type(constant.dtype?), &constant.storage) else { return None };
    let count = constant.elements().filter(|&count| count <= MOST_SCALES)?;
    let size = dtype.bytes()?;
    let mut bytes = vec![0; usize::try_from(count).ok()?.checked_mul(size)?];
    if span.len < bytes.len() as u64 {
        return None;
    }
    file.read(span.at, &mut bytes).ok()?;
    bytes.chunks_exact(size).map(|element| dtype.load(element)).collect()
}

/// The type by QNN's number; others than QNN's are unknown.
fn data_type(element: ElementType) -> DataType {
    DataType(match element {
        ElementType::Float32 => 0x0232,
        ElementType::Float16 => 0x0216,
        ElementType::Bfloat16 => 0x0226,
        ElementType::Float64 => 0x0264,
        ElementType::Int4 => 0x0004,
        ElementType::Int8 => 0x0008,
        ElementType::Int16 => 0x0016,
        ElementType::Int32 => 0x0032,
        ElementType::Int64 => 0x0064,
        ElementType::Uint4 => 0x0104,
        ElementType::Uint8 => 0x0108,
        ElementType::Uint16 => 0x0116,
        ElementType::Uint32 => 0x0132,
        ElementType::Uint64 => 0x0164,
        ElementType::Bool => 0x0508,
        _ => 0x7fff_ffff,
    })
}

/// The graph with what linting looks at: names, types, shapes, what reads what.
fn plain(graph: &SourceGraph) -> Graph {
    let inputs: HashSet<&str> = graph.inputs.iter().map(String::as_str).collect();
    let outputs: HashSet<&str> = graph.outputs.iter().map(String::as_str).collect();
    let constants: HashMap<&str, &Constant> = graph.constants.iter().map(|one| (one.name.as_str(), one)).collect();
    let size = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
    let tensor = |name: &String| -> Tensor {
        if let Some(constant) = constants.get(name.as_str()) {
            return Tensor {
                name: name.clone(),
                dtype: constant.dtype.map_or(DataType(0x7fff_ffff), data_type),
                shape: constant.shape.iter().copied().map(size).collect(),
                quantization: None,
                kind: TensorKind::Static,
            };
        }
        let value = graph.value(name);
        let kind = match (name.is_empty(), inputs.contains(name.as_str()), outputs.contains(name.as_str())) {
            (true, _, _) => TensorKind::Null,
            (_, true, _) => TensorKind::Input,
            (_, _, true) => TensorKind::Output,
            _ => TensorKind::Native,
        };
        Tensor {
            name: name.clone(),
            // Most values are floats; one whose type nobody says counts as one.
            dtype: value.and_then(|value| value.dtype).map_or(DataType::FLOAT_32, data_type),
            shape: value.and_then(SourceValue::dims).unwrap_or_default().into_iter().map(size).collect(),
            quantization: None,
            kind,
        }
    };
    let ops = graph.nodes.iter().map(|node| Op {
        index: u32::try_from(node.index).unwrap_or(u32::MAX),
        name: node.label(),
        op_type: node.op_type.clone(),
        package: node.domain.clone(),
        inputs: node.inputs.iter().map(tensor).collect(),
        outputs: node.outputs.iter().map(tensor).collect(),
        params: serde_json::Map::new(),
        macs: node.macs,
        parameter_bytes: 0,
        bytes_moved: None,
    });
    Graph {
        name: graph.name.clone(),
        inputs: graph.inputs.iter().map(tensor).collect(),
        outputs: graph.outputs.iter().map(tensor).collect(),
        ops: ops.collect(),
        parameter_bytes: 0,
    }
}
