//! TFLite and LiteRT models, read without their runtime: a FlatBuffer, of which names, shapes and sizes are
//! kept.
//!
//! Slots are those of `schema.fbs` (version 3d). Options of built-in ops are read only as far as counting
//! multiply-accumulates requires.

mod contexts;
mod flex;
mod macs;
mod ops;
mod quantized;

use super::source::{
    Attribute, AttributeValue, Constant, Dim, ElementType, FreeDimension, Quantized, SourceError, SourceFile,
    SourceFormat, SourceGraph, SourceModel, SourceNode, SourceValue, Span, Storage, Table, count_macs, f32_in, i64_in,
};
use std::collections::HashSet;

/// Domain of ops that are not built in.
pub const CUSTOM: &str = "custom";

/// Location and length of a tensor's data.
struct Buffer {
    span: Span,
}

/// Reads a model.
pub fn read(file: &SourceFile) -> Result<SourceModel, SourceError> {
    let root = Table::root(file, 0)?;
    let mut model = SourceModel::new(file.path(), SourceFormat::Tflite, file.size());
    model.format_version = Some(i64::from(root.u32(0)?));
    model.producer = Some(root.text(3)?).filter(|text| !text.is_empty());
    let codes = codes(&root)?;
    let buffers = buffers(&root)?;
    let subgraphs = root.tables(2)?;
    for index in 0..subgraphs.len {
        let table = root.entry(subgraphs, index)?;
        let mut graph = graph(&table, &codes, &buffers)?;
        contexts::find(file, &table, &graph, &mut model.contexts)?;
        if graph.name.is_empty() {
            graph.name = if index == 0 { "main".to_owned() } else { format!("subgraph {index}") };
        }
        model.graphs.push(graph);
    }
    if model.graphs.is_empty() {
        return Err(file.damaged(0, "it has no graph"));
    }
    model.quantization = quantized::summary(&model.graphs);
    model.free_dimensions = free_dimensions(&model.graphs[0]);
    Ok(model)
}

/// Name and domain of each operator code.
fn codes(root: &Table<'_>) -> Result<Vec<(String, &'static str)>, SourceError> {
    let list = root.tables(1)?;
    (0..list.len)
        .map(|index| {
            let code = root.entry(list, index)?;
            // Small numbers are in the old field too; models from before the new field have only that.
            let old = i32::from(code.u8(0, 0)?.cast_signed());
            let number = old.max(code.i32(3)?);
            let custom = code.text(1)?;
            root.file.keep(64)?;
            Ok(match ops::name(number) {
                _ if number == ops::CUSTOM => (custom, CUSTOM),
                Some(name) => (name.to_owned(), ""),
                None => (format!("BUILTIN_{number}"), ""),
            })
        })
        .collect()
}

fn buffers(root: &Table<'_>) -> Result<Vec<Option<Buffer>>, SourceError> {
    let list = root.tables(4)?;
    root.file.keep(usize::try_from(list.len).unwrap_or(usize::MAX).saturating_mul(size_of::<Option<Buffer>>()))?;
    (0..list.len)
        .map(|index| {
            let buffer = root.entry(list, index)?;
            // Beyond 2 GB the data follows the FlatBuffer.
            let (at, len) = (buffer.u64(1)?, buffer.u64(2)?);
            let span = if at > 1 { Some(Span { at, len }) } else { buffer.bytes(0)? };
            if span.is_some_and(|span| span.at.checked_add(span.len).is_none_or(|end| end > root.file.size())) {
                return Err(root.file.damaged(at, format!("buffer {index} extends past the end of the file")));
            }
            Ok(span.filter(|span| span.len > 0).map(|span| Buffer { span }))
        })
        .collect()
}

fn graph(
    table: &Table<'_>,
    codes: &[(String, &'static str)],
    buffers: &[Option<Buffer>],
) -> Result<SourceGraph, SourceError> {
    let file = table.file;
    let mut graph = SourceGraph::new(table.text(4)?);
    let tensor_names = tensors(table, buffers, &mut graph)?;
    let all_named = |indices: Vec<i32>| -> Result<Vec<String>, SourceError> {
        let one = |index: i32| match usize::try_from(index) {
            // An absent optional tensor.
            Err(_) => Ok(String::new()),
            Ok(at) => {
                let name = tensor_names
                    .get(at)
                    .ok_or_else(|| file.damaged(0, format!("tensor {index} of {} is used", tensor_names.len())))?;
                file.keep(name.len() + size_of::<String>())?;
                Ok(name.clone())
            }
        };
        indices.into_iter().map(one).collect()
    };
    graph.inputs = all_named(table.ints(1)?)?;
    graph.outputs = all_named(table.ints(2)?)?;
    let operators = table.tables(3)?;
    for index in 0..operators.len {
        let operator = table.entry(operators, index)?;
        let code = usize::try_from(operator.u32(0)?).unwrap_or(usize::MAX);
        let Some((op_type, domain)) = codes.get(code) else {
            return Err(file.damaged(0, format!("operator {index} has code {code} of {}", codes.len())));
        };
        let outputs = all_named(operator.ints(2)?)?;
        let mut node = SourceNode {
            index: graph.nodes.len(),
            // Operators have no names: they are identified by their output.
            name: outputs.first().cloned().unwrap_or_default(),
            op_type: op_type.clone(),
            domain: (*domain).to_owned(),
            inputs: all_named(operator.ints(1)?)?,
            outputs,
            attributes: Vec::new(),
            macs: None,
        };
        file.keep(size_of::<SourceNode>() + op_type.len() + node.name.len())?;
        if op_type == "BATCH_MATMUL"
            && let Some(options) = operator.table(4)?
        {
            let turned = AttributeValue::Int(i64::from(options.u8(0, 0)?));
            node.attributes.push(Attribute { name: macs::TURNED.to_owned(), value: turned });
        }
        graph.nodes.push(node);
    }
    count_macs(&mut graph, macs::of);
    Ok(graph)
}

/// Adds the tensors to the graph as values or constants; returns their names, which are made unique.
fn tensors(table: &Table<'_>, buffers: &[Option<Buffer>], graph: &mut SourceGraph) -> Result<Vec<String>, SourceError> {
    let file = table.file;
    let list = table.tables(0)?;
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for index in 0..list.len {
        let tensor = table.entry(list, index)?;
        let mut name = tensor.text(3)?;
        if name.is_empty() {
            name = format!("tensor_{index}");
        }
        if !seen.insert(name.clone()) {
            name = format!("{name}#{index}");
            seen.insert(name.clone());
        }
        file.keep(size_of::<SourceValue>() + 4 * name.len())?;
        let dtype = Some(ElementType::from_tflite(i32::from(tensor.u8(1, 0)?.cast_signed())));
        let (stated, signature) = (tensor.ints(0)?, tensor.ints(7)?);
        let dims = if signature.is_empty() { stated } else { signature };
        file.keep(dims.len() * size_of::<Dim>())?;
        let buffer = buffers.get(usize::try_from(tensor.u32(2)?).unwrap_or(usize::MAX)).and_then(Option::as_ref);
        names.push(name.clone());
        if let Some(Buffer { span }) = buffer {
            let shape: Result<Vec<u64>, _> = dims.iter().map(|&dim| u64::try_from(dim)).collect();
            let shape =
                shape.map_err(|_| file.damaged(span.at, format!("constant {name} has a negative dimension")))?;
            graph.constants.push(Constant {
                name,
                dtype,
                shape,
                bytes: Some(span.len),
                storage: Storage::Inside(*span),
                small: None,
                quantization: quantization(&tensor)?,
                nested: false,
            });
            continue;
        }
        let dim = |size: &i32| u64::try_from(*size).map_or(Dim::Unknown, Dim::Known);
        // Without dimensions it may be a scalar or of any rank, unless the tensor states that it has a rank.
        let has_rank = !dims.is_empty() || tensor.u8(8, 0)? != 0;
        let shape = has_rank.then(|| dims.iter().map(dim).collect());
        let quantization = quantization(&tensor)?;
        graph.declare(SourceValue { name, dtype, shape, inferred: false, quantization });
    }
    Ok(names)
}

fn quantization(tensor: &Table<'_>) -> Result<Option<Quantized>, SourceError> {
    let Some(table) = tensor.table(4)? else { return Ok(None) };
    let (scales, zeros) = (table.numbers(2, 4)?, table.numbers(3, 8)?);
    if scales.len == 0 {
        return Ok(None);
    }
    let one = scales.len == 1;
    Ok(Some(Quantized {
        scales: scales.len,
        scale: if one { Some(f64::from(f32_in(table.file, scales.at)?)) } else { None },
        zero_point: if one && zeros.len == 1 { Some(i64_in(table.file, zeros.at)?) } else { None },
        axis: if one { None } else { Some(i64::from(table.i32(6)?)) },
    }))
}

fn free_dimensions(graph: &SourceGraph) -> Vec<FreeDimension> {
    let is_free = |value: &&SourceValue| value.shape.iter().flatten().any(|dim| dim.known().is_none());
    let inputs: Vec<String> = graph
        .inputs
        .iter()
        .filter_map(|name| graph.value(name))
        .filter(is_free)
        .map(|value| value.name.clone())
        .collect();
    if inputs.is_empty() { Vec::new() } else { vec![FreeDimension { name: None, inputs }] }
}
