//! Input data: from files, from input lists, or seeded random numbers.

use crate::backends::qnn::runner::run_task::{InputFile, RunTask};
use crate::event::{TensorData, clean_text};
use crate::files::{hex, read_at_most, read_text_at_most};
use crate::models::{Quantization, Tensor};
use npyz::NpyFile;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why inputs cannot be prepared. Every message says what would be correct.
#[derive(Debug, Error)]
pub enum InputError {
    /// A name that no input has.
    #[error("the model has no input `{name}`; its inputs are {expected}")]
    UnknownName { name: String, expected: String },
    /// A name given twice.
    #[error("input `{name}` is given twice")]
    Twice { name: String },
    /// An unreadable file.
    #[error("cannot read {path}: {reason}")]
    File { path: PathBuf, reason: String },
    /// A file of the wrong size.
    #[error("{path} has {found} for input `{name}`, which is {dtype} {shape}: expected {expected}")]
    Size { path: PathBuf, name: String, dtype: String, shape: String, found: String, expected: String },
    /// A line of the input list with a wrong number of files.
    #[error("{path}, line {line}: {reason}")]
    List { path: PathBuf, line: usize, reason: String },
    /// A type for which no data can be generated.
    #[error("input `{name}` has type {dtype}, for which no data can be generated; give a file and --native-input")]
    Type { name: String, dtype: String },
}

/// Largest input list.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// The data of one inference: bytes per input, in graph order.
pub type InputSet = Vec<Vec<u8>>;

/// Prepares every input set, and returns the origin of each input of the first set.
pub fn prepare(task: &RunTask, inputs: &[Tensor]) -> Result<(Vec<InputSet>, Vec<TensorData>), InputError> {
    let lines = match &task.input_list {
        Some(path) => read_list(path, inputs)?,
        None => vec![by_name(&task.inputs, inputs)?],
    };
    let mut sets = Vec::with_capacity(lines.len());
    let mut origin = Vec::new();
    let mut hashes = vec![None; inputs.len()];
    for line in &lines {
        let mut set = Vec::with_capacity(inputs.len());
        for (index, (tensor, file)) in inputs.iter().zip(line).enumerate() {
            let data = match file {
                Some(path) => read_file(path, tensor, task.native_input, hashes[index].get_or_insert_default())?,
                None => random(tensor, task.seed, index)?,
            };
            if sets.is_empty() {
                origin.push(TensorData {
                    name: tensor.name.clone(),
                    source: file.as_ref().map_or_else(|| "random".to_owned(), |p| clean_text(&p.to_string_lossy())),
                    bytes: data.len() as u64,
                    quantization: tensor.quantization.clone(),
                    sha256: None,
                });
            }
            set.push(data);
        }
        sets.push(set);
    }
    for (origin, hash) in origin.iter_mut().zip(hashes) {
        origin.sha256 = hash.map(|hash: Sha256| hex(&hash.finalize()));
    }
    Ok((sets, origin))
}

/// A file or nothing for each input, in graph order.
type Line = Vec<Option<PathBuf>>;

fn by_name(files: &[InputFile], inputs: &[Tensor]) -> Result<Line, InputError> {
    let mut line: Line = vec![None; inputs.len()];
    for file in files {
        let index = inputs.iter().position(|tensor| tensor.name == file.name).ok_or_else(|| {
            InputError::UnknownName { name: clean_text(&file.name), expected: describe_inputs(inputs) }
        })?;
        if line[index].replace(file.path.clone()).is_some() {
            return Err(InputError::Twice { name: clean_text(&file.name) });
        }
    }
    Ok(line)
}

fn describe_inputs(inputs: &[Tensor]) -> String {
    let rows: Vec<String> = inputs.iter().map(|t| format!("`{}` ({} {})", t.name, t.dtype, t.shape_text())).collect();
    if rows.is_empty() { "none".to_owned() } else { rows.join(", ") }
}

/// Reads qnn-net-run's format: a line per inference, files in graph order or `name:=file`; lines that start with `#` or
/// `%` are left out.
pub fn read_list(path: &Path, inputs: &[Tensor]) -> Result<Vec<Line>, InputError> {
    let text = read_text_at_most(path, MAX_LIST_BYTES)
        .map_err(|e| InputError::File { path: path.to_owned(), reason: e.to_string() })?;
    let mut lines = Vec::new();
    for (number, row) in text.lines().enumerate() {
        let row = row.trim();
        if row.is_empty() || row.starts_with(['#', '%']) {
            continue;
        }
        let wrong = |reason: String| InputError::List { path: path.to_owned(), line: number + 1, reason };
        let cells: Vec<&str> = row.split_whitespace().collect();
        let line = if cells.iter().any(|cell| cell.contains(":=")) {
            let named: Option<Vec<InputFile>> = cells
                .iter()
                .map(|cell| {
                    let (name, file) = cell.split_once(":=")?;
                    Some(InputFile { name: name.to_owned(), path: PathBuf::from(file) })
                })
                .collect();
            let named = named.ok_or_else(|| wrong("`name:=file` and bare files are mixed".to_owned()))?;
            by_name(&named, inputs).map_err(|e| wrong(e.to_string()))?
        } else if cells.len() == inputs.len() {
            cells.iter().map(|cell| Some(PathBuf::from(cell))).collect()
        } else {
            return Err(wrong(format!(
                "{} files for {} inputs; the model takes {}",
                cells.len(),
                inputs.len(),
                describe_inputs(inputs)
            )));
        };
        lines.push(line);
    }
    if lines.is_empty() {
        return Err(InputError::List { path: path.to_owned(), line: 1, reason: "the list names no inputs".to_owned() });
    }
    Ok(lines)
}

/// Every file named by an input list, valid or not; none if it cannot be read.
pub fn listed(path: &Path) -> Vec<PathBuf> {
    let text = read_text_at_most(path, MAX_LIST_BYTES).unwrap_or_default();
    let rows = text.lines().map(str::trim).filter(|row| !row.starts_with(['#', '%']));
    let cells = rows.flat_map(str::split_whitespace);
    cells.map(|cell| PathBuf::from(cell.split_once(":=").map_or(cell, |(_, file)| file))).collect()
}

fn read_file(path: &Path, tensor: &Tensor, native: bool, hash: &mut Sha256) -> Result<Vec<u8>, InputError> {
    let size = |found: String, expected: String| InputError::Size {
        path: path.to_owned(),
        name: tensor.name.clone(),
        dtype: tensor.dtype.name(),
        shape: tensor.shape_text(),
        found,
        expected,
    };
    let elements = tensor.elements().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    // The longest valid file: a .npy of 64-bit numbers. Slightly more is read, to detect wrong sizes.
    let limit = (elements as u64).saturating_mul(16).saturating_add(1 << 20);
    let bytes =
        read_at_most(path, limit).map_err(|e| InputError::File { path: path.to_owned(), reason: e.to_string() })?;
    hash.update(&bytes);
    if bytes.starts_with(b"\x93NUMPY") {
        let (shape, values) = read_npy(&bytes).map_err(|reason| InputError::File { path: path.to_owned(), reason })?;
        if values.len() != elements {
            return Err(size(
                format!("{} values of shape {shape:?}", values.len()),
                format!("{elements} values of shape {:?}", tensor.shape),
            ));
        }
        return encode(&values, tensor, native);
    }
    if native {
        let needed = tensor.bytes().unwrap_or(0);
        if bytes.len() as u64 != needed {
            return Err(size(format!("{} bytes", bytes.len()), format!("{needed} bytes of {}", tensor.dtype)));
        }
        return Ok(bytes);
    }
    if bytes.len() != elements * 4 {
        let mut expected = format!("{} bytes of float32", elements * 4);
        if tensor.bytes() == Some(bytes.len() as u64) {
            expected.push_str(" (or give --native-input: the size fits the tensor's own type)");
        }
        return Err(size(format!("{} bytes", bytes.len()), expected));
    }
    let values: Vec<f64> =
        bytes.chunks_exact(4).map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]]))).collect();
    encode(&values, tensor, false)
}

/// Shape and values of a .npy file of numbers, in C order.
pub fn read_npy(bytes: &[u8]) -> Result<(Vec<u64>, Vec<f64>), String> {
    let open = || NpyFile::new(bytes).map_err(|e| format!("not a readable .npy file: {e}"));
    let file = open()?;
    if file.order() != npyz::Order::C {
        return Err("the array is in Fortran order; save it with numpy.ascontiguousarray".to_owned());
    }
    let shape = file.shape().to_vec();
    macro_rules! try_types {
        ($($t:ty),*) => {$(
            if let Ok(reader) = open()?.data::<$t>() {
                let values: Result<Vec<$t>, _> = reader.collect();
                let values = values.map_err(|e| format!("truncated .npy file: {e}"))?;
                #[expect(clippy::allow_attributes, reason = "not every type of the list is lossy")]
                #[allow(clippy::cast_lossless, clippy::cast_precision_loss, reason = "one expression for every type")]
                return Ok((shape, values.into_iter().map(|v| v as f64).collect()));
            }
        )*};
    }
    try_types!(f32, f64, u8, i8, u16, i16, u32, i32, u64, i64);
    if let Ok(reader) = open()?.data::<bool>() {
        let values: Result<Vec<bool>, _> = reader.collect();
        let values = values.map_err(|e| format!("truncated .npy file: {e}"))?;
        return Ok((shape, values.into_iter().map(|v| f64::from(u8::from(v))).collect()));
    }
    Err(format!("its element type {} is not a plain number", file.dtype().descr()))
}

/// Real (or, for native data, stored) values as the tensor's bytes.
pub fn encode(values: &[f64], tensor: &Tensor, native: bool) -> Result<Vec<u8>, InputError> {
    let mut out = Vec::with_capacity(values.len() * tensor.dtype.bytes().unwrap_or(0));
    for (index, &value) in values.iter().enumerate() {
        let stored = if native { value } else { quantize(value, tensor, index) };
        if !tensor.dtype.store(stored, &mut out) {
            return Err(InputError::Type { name: tensor.name.clone(), dtype: tensor.dtype.name() });
        }
    }
    Ok(out)
}

/// Scale and offset of one element, if the encoding has them.
pub fn scale_offset(tensor: &Tensor, element: usize) -> Option<(f64, i32)> {
    match tensor.quantization.as_ref()? {
        Quantization::ScaleOffset { scale, offset, .. } => Some((*scale, *offset)),
        Quantization::AxisScaleOffset { axis, scales, offsets, .. } => {
            let rank = i32::try_from(tensor.shape.len()).ok()?;
            let axis = usize::try_from(if *axis < 0 { axis + rank } else { *axis }).ok()?;
            let inner: usize = tensor.shape.get(axis + 1..)?.iter().map(|&d| d as usize).product();
            let slice = element / inner.max(1) % (*tensor.shape.get(axis)? as usize).max(1);
            Some((*scales.get(slice)?, offsets.get(slice).copied().unwrap_or(0)))
        }
        Quantization::Other { .. } => None,
    }
}

fn quantize(value: f64, tensor: &Tensor, element: usize) -> f64 {
    if !tensor.dtype.is_fixed_point() {
        return value;
    }
    match scale_offset(tensor, element) {
        Some((scale, offset)) if scale != 0.0 => value / scale - f64::from(offset),
        _ => value,
    }
}

/// Random data that depends only on seed, input position and tensor: floats in [0, 1), fixed-point over the whole stored
/// range, plain integers and booleans 0 or 1 (larger ones would be indices out of range in many models).
fn random(tensor: &Tensor, seed: u64, input: usize) -> Result<Vec<u8>, InputError> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(input as u64);
    let elements = tensor.elements().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let mut unit = || f64::from(generator.next_u32()) / (f64::from(u32::MAX) + 1.0);
    let range = tensor.dtype.integer_range();
    let values: Vec<f64> = (0..elements)
        .map(|_| match range {
            Some((low, high)) if tensor.dtype.is_fixed_point() => {
                (low as f64 + unit() * (high - low + 1) as f64).floor()
            }
            _ if tensor.dtype.is_float() => unit(),
            _ => unit().round(),
        })
        .collect();
    encode(&values, tensor, true)
}

/// Stored bytes of an output as real numbers.
pub fn dequantize(bytes: &[u8], tensor: &Tensor) -> Option<Vec<f32>> {
    let size = tensor.dtype.bytes()?;
    bytes
        .chunks_exact(size)
        .enumerate()
        .map(|(index, element)| {
            let stored = tensor.dtype.load(element)?;
            let real = match scale_offset(tensor, index) {
                Some((scale, offset)) if tensor.dtype.is_fixed_point() => (stored + f64::from(offset)) * scale,
                _ => stored,
            };
            #[expect(clippy::cast_possible_truncation, reason = "outputs are written as float32")]
            Some(real as f32)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{DataType, TensorKind};
    use proptest::prelude::*;

    fn tensor(dtype: u32, shape: &[u32], quantization: Option<Quantization>) -> Tensor {
        Tensor { name: "x".into(), dtype: DataType(dtype), shape: shape.into(), quantization, kind: TensorKind::Input }
    }

    fn scale(scale: f64, offset: i32) -> Quantization {
        Quantization::ScaleOffset { scale, offset, bitwidth: None }
    }

    #[test]
    fn random_data_is_the_same_for_the_same_seed() {
        let t = tensor(0x0408, &[2, 50], Some(scale(0.1, -3)));
        let a = random(&t, 7, 0).unwrap();
        assert_eq!(a, random(&t, 7, 0).unwrap());
        assert_ne!(a, random(&t, 8, 0).unwrap());
        assert_ne!(a, random(&t, 7, 1).unwrap());
        // Pinned: recorded seeds must mean the same data in every release.
        assert_eq!(a[..6], [35, 40, 46, 43, 69, 180]);
    }

    #[test]
    fn axis_encodings_use_the_slice_of_the_element() {
        let t = tensor(
            0x0308,
            &[2, 3],
            Some(Quantization::AxisScaleOffset {
                axis: 1,
                scales: vec![1.0, 2.0, 4.0],
                offsets: vec![],
                bitwidth: None,
            }),
        );
        let bytes = encode(&[4.0, 4.0, 4.0, 8.0, 8.0, 8.0], &t, false).unwrap();
        assert_eq!(bytes, [4, 2, 1, 8, 4, 2]);
        assert_eq!(dequantize(&bytes, &t).unwrap(), [4.0, 4.0, 4.0, 8.0, 8.0, 8.0]);
    }

    #[test]
    fn list_lines_and_names() {
        let inputs = [tensor(0x0232, &[1], None), Tensor { name: "y".into(), ..tensor(0x0232, &[1], None) }];
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        std::fs::write(&path, "% out\n\na b\ny:=c x:=d\n").unwrap();
        let lines = read_list(&path, &inputs).unwrap();
        assert_eq!(lines[1], [Some(PathBuf::from("d")), Some(PathBuf::from("c"))]);
        for bad in ["a\n", "x:=a b\n", "z:=a x:=b\n", "", "x:=a x:=b\n"] {
            std::fs::write(&path, bad).unwrap();
            assert!(read_list(&path, &inputs).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn wrong_sizes_say_what_is_expected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in.raw");
        std::fs::write(&path, [0u8; 6]).unwrap();
        let t = tensor(0x0408, &[1, 6], Some(scale(1.0, 0)));
        let error = read_file(&path, &t, false, &mut Sha256::new()).unwrap_err().to_string();
        assert!(
            error.contains("24 bytes of float32") && error.contains("1x6") && error.contains("--native-input"),
            "{error}"
        );
        assert_eq!(read_file(&path, &t, true, &mut Sha256::new()).unwrap().len(), 6);
    }

    proptest! {
        #[test]
        fn quantised_values_come_back_within_half_a_step(value in -10.0f64..10.0, s in 0.05f64..1.0) {
            let t = tensor(0x0416, &[1], Some(scale(s, -32768)));
            let bytes = encode(&[value], &t, false).unwrap();
            let back = f64::from(dequantize(&bytes, &t).unwrap()[0]);
            prop_assert!((back - value).abs() <= s * 0.5001, "{value} {back}");
        }

        #[test]
        fn foreign_npy_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_npy(&bytes);
            bytes.splice(0..0, *b"\x93NUMPY\x01\x00");
            let _ = read_npy(&bytes);
        }
    }
}
