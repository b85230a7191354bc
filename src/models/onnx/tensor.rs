//! Tensors of an ONNX model, except for their data.

use super::wire::{Field, Message, floats, ints};
use crate::models::source::{Constant, ElementType, Small, SourceError, SourceFile, Span, Storage};

/// Highest rank of a tensor; frameworks stop at 8 or 32.
const MOST_DIMENSIONS: usize = 64;
/// Number of elements up to which a constant's values are kept: shapes, axes, pads and the like have no more.
const SMALL: usize = 64;
/// Longest encoding of that many integers, in bytes: each takes at most ten.
const SMALL_BYTES: u64 = 10 * SMALL as u64;

/// What was found out about a tensor's data.
#[derive(Default)]
struct Data {
    raw: Option<Span>,
    ints: Vec<i64>,
    floats: Vec<f32>,
    external: Vec<(String, String)>,
    is_external: bool,
}

/// Reads a `TensorProto`.
pub fn constant(mut message: Message<'_>, nested: bool) -> Result<Constant, SourceError> {
    let file = message.file;
    let begun = message.at();
    let (mut name, mut dtype, mut dims, mut data) = (String::new(), None, Vec::new(), Data::default());
    loop {
        let at = message.at();
        let Some((number, field)) = message.next()? else { break };
        match number {
            1 => drop(ints(file, field, at, MOST_DIMENSIONS + 1, &mut dims)?),
            2 => dtype = field.int().and_then(|value| ElementType::from_onnx(i32::try_from(value).unwrap_or(-1))),
            4 if is_small(field) => drop(floats(file, field, at, SMALL, &mut data.floats)?),
            5 | 7 | 11 if is_small(field) => drop(ints(file, field, at, SMALL, &mut data.ints)?),
            8 => name = text(file, field)?,
            9 => data.raw = field.span(),
            13 => data.external.push(entry(Message::of(file, field, at)?)?),
            14 => data.is_external = field.int() == Some(1),
            _ => {}
        }
    }
    if dims.len() > MOST_DIMENSIONS {
        return Err(file.damaged(begun, format!("tensor {name} has more than {MOST_DIMENSIONS} dimensions")));
    }
    let shape: Result<Vec<u64>, _> = dims.iter().map(|&dim| u64::try_from(dim)).collect();
    let shape = shape.map_err(|_| file.damaged(begun, format!("tensor {name} has a negative dimension")))?;
    let elements = shape.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
    let elements = elements.ok_or_else(|| file.damaged(begun, format!("tensor {name} is larger than any memory")))?;
    let bytes = dtype.and_then(|dtype: ElementType| dtype.bytes(elements));
    let small = small(file, dtype, elements, &data)?;
    let storage = match (data.is_external, data.raw) {
        (true, _) => external(file, begun, &name, &data.external)?,
        (false, Some(span)) => Storage::Inside(span),
        (false, None) => Storage::Scattered,
    };
    if let (Storage::Inside(span), Some(needed)) = (&storage, bytes)
        && span.len != needed
    {
        let (path, stored) = (file.path().to_owned(), span.len);
        return Err(SourceError::WrongSize { path, tensor: name, stored, needed });
    }
    file.keep(size_of::<Constant>() + 8 * (shape.len() + SMALL.min(data.ints.len() + data.floats.len())))?;
    Ok(Constant { name, dtype, shape, bytes, storage, small, quantization: None, nested })
}

/// True for a single value and for a few packed ones; those of weights are not read.
fn is_small(field: Field) -> bool {
    field.span().is_none_or(|span| span.len <= SMALL_BYTES)
}

/// The text in a field.
pub fn text(file: &SourceFile, field: Field) -> Result<String, SourceError> {
    field.span().map_or_else(|| Ok(String::new()), |span| file.text(span))
}

/// Reads a `StringStringEntryProto`.
pub fn entry(mut message: Message<'_>) -> Result<(String, String), SourceError> {
    let (mut key, mut value) = (String::new(), String::new());
    while let Some((number, field)) = message.next()? {
        match number {
            1 => key = text(message.file, field)?,
            2 => value = text(message.file, field)?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// Location of the data that these entries describe.
fn external(file: &SourceFile, at: u64, name: &str, entries: &[(String, String)]) -> Result<Storage, SourceError> {
    let (mut location, mut offset, mut len) = (None, 0, None);
    for (key, value) in entries {
        let number = || {
            let wrong = || format!("tensor {name} has {value:?} as {key} of its external data, not a number of bytes");
            value.parse::<u64>().map_err(|_| file.damaged(at, wrong()))
        };
        match key.as_str() {
            "location" => location = Some(value.clone()),
            "offset" => offset = number()?,
            "length" => len = Some(number()?),
            _ => {}
        }
    }
    let nowhere = || file.damaged(at, format!("tensor {name} has external data without a location"));
    Ok(Storage::External { file: location.ok_or_else(nowhere)?, offset, len })
}

/// Values of a small integer or float32 tensor.
fn small(
    file: &SourceFile,
    dtype: Option<ElementType>,
    elements: u64,
    data: &Data,
) -> Result<Option<Small>, SourceError> {
    let Ok(count) = usize::try_from(elements) else { return Ok(None) };
    if count > SMALL || data.is_external {
        return Ok(None);
    }
    let raw = match data.raw {
        Some(span) => file.bytes(span, 8 * SMALL as u64)?,
        None => None,
    };
    Ok(match (dtype, raw) {
        (Some(ElementType::Int64), Some(raw)) if raw.len() == 8 * count => {
            let one = |bytes: &[u8]| bytes.try_into().map_or(0, i64::from_le_bytes);
            Some(Small::Ints(raw.chunks_exact(8).map(one).collect()))
        }
        (Some(ElementType::Int32), Some(raw)) if raw.len() == 4 * count => {
            let one = |bytes: &[u8]| bytes.try_into().map_or(0, |bytes| i64::from(i32::from_le_bytes(bytes)));
            Some(Small::Ints(raw.chunks_exact(4).map(one).collect()))
        }
        (Some(ElementType::Float32), Some(raw)) if raw.len() == 4 * count => {
            let one = |bytes: &[u8]| bytes.try_into().map_or(0.0, f32::from_le_bytes);
            Some(Small::Floats(raw.chunks_exact(4).map(one).collect()))
        }
        (Some(ElementType::Int64 | ElementType::Int32), None) if data.ints.len() == count => {
            Some(Small::Ints(data.ints.clone()))
        }
        (Some(ElementType::Float32), None) if data.floats.len() == count => Some(Small::Floats(data.floats.clone())),
        _ => None,
    })
}

/// Reads a `SparseTensorProto`: its size is that of its values and its indices.
pub fn sparse(mut message: Message<'_>, nested: bool) -> Result<Constant, SourceError> {
    let file = message.file;
    let begun = message.at();
    let (mut values, mut indices, mut dims) = (None, None, Vec::new());
    loop {
        let at = message.at();
        let Some((number, field)) = message.next()? else { break };
        match number {
            1 => values = Some(constant(Message::of(file, field, at)?, nested)?),
            2 => indices = Some(constant(Message::of(file, field, at)?, nested)?),
            3 => drop(ints(file, field, at, MOST_DIMENSIONS, &mut dims)?),
            _ => {}
        }
    }
    let mut found = values.ok_or_else(|| file.damaged(begun, "a sparse tensor has no values"))?;
    found.bytes = found.bytes.zip(indices.and_then(|indices| indices.bytes)).and_then(|(a, b)| a.checked_add(b));
    found.shape = dims.iter().map(|&dim| u64::try_from(dim).unwrap_or(0)).collect();
    found.small = None;
    Ok(found)
}
