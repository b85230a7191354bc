//! Reads and deep-copies tensor records.

#![expect(unsafe_code, reason = "FFI")]

use super::raw::text;
use crate::sys;
use qnnscope_core::models::{DataType, Quantization, Tensor, TensorKind};
use serde_json::Value;
use std::ffi::{CStr, CString};

/// Highest plausible rank; QNN tensors have about 8 dimensions at most.
const MAX_RANK: u32 = 32;
/// Maximum number of slices copied from an axis encoding.
const MAX_SLICES: u32 = 1 << 20;
/// Maximum number of values kept of a tensor parameter, for display.
const MAX_PARAM_VALUES: usize = 64;

/// Encodings recognised by name but not decoded.
const OTHER_ENCODINGS: [(u32, &str); 10] = [
    (4, "block"),
    (5, "blockwise_expansion"),
    (6, "vector"),
    (7, "float_block"),
    (8, "bw_axis_scale_offset_mapped"),
    (9, "bw_block_mapped"),
    (10, "bw_blockwise_expansion_mapped"),
    (11, "bw_float_block"),
    (12, "microscaling"),
    (13, "array_of"),
];

/// The dimensions of a tensor record.
fn dimensions(raw: &sys::TensorV2) -> Vec<u32> {
    if raw.dimensions.is_null() || raw.rank == 0 || raw.rank > MAX_RANK {
        return Vec::new();
    }
    // SAFETY: a tensor record carries `rank` dimensions.
    unsafe { std::slice::from_raw_parts(raw.dimensions, raw.rank as usize) }.to_vec()
}

/// Copies a list that a record points to.
fn list<T: Copy>(pointer: *const T, count: u32) -> Vec<T> {
    if pointer.is_null() || count == 0 || count > MAX_SLICES {
        return Vec::new();
    }
    // SAFETY: the record says that there are `count` elements.
    unsafe { std::slice::from_raw_parts(pointer, count as usize) }.to_vec()
}

/// The encoding of a tensor record.
pub(super) fn quantization(raw: &sys::QuantizeParams) -> Option<Quantization> {
    if raw.definition != sys::DEFINITION_DEFINED {
        return None;
    }
    // SAFETY: the union member is the one that `encoding` names; all members are plain numbers and pointers.
    unsafe {
        Some(match raw.encoding {
            0 => Quantization::ScaleOffset {
                scale: f64::from(raw.data.scale_offset.scale),
                offset: raw.data.scale_offset.offset,
                bitwidth: None,
            },
            1 => {
                let axis = raw.data.axis_scale_offset;
                let rows = list(axis.scale_offsets, axis.count);
                Quantization::AxisScaleOffset {
                    axis: axis.axis,
                    scales: rows.iter().map(|r| f64::from(r.scale)).collect(),
                    offsets: rows.iter().map(|r| r.offset).collect(),
                    bitwidth: None,
                }
            }
            2 => Quantization::ScaleOffset {
                scale: f64::from(raw.data.bw_scale_offset.scale),
                offset: raw.data.bw_scale_offset.offset,
                bitwidth: Some(raw.data.bw_scale_offset.bitwidth),
            },
            3 => {
                let axis = raw.data.bw_axis_scale_offset;
                Quantization::AxisScaleOffset {
                    axis: axis.axis,
                    scales: list(axis.scales, axis.count).into_iter().map(f64::from).collect(),
                    offsets: list(axis.offsets, axis.count),
                    bitwidth: Some(axis.bitwidth),
                }
            }
            id => Quantization::Other {
                id,
                name: OTHER_ENCODINGS.iter().find(|row| row.0 == id).map(|row| row.1.to_owned()),
            },
        })
    }
}

/// A tensor record for display and files.
pub(crate) fn describe(raw: &sys::Tensor) -> Tensor {
    let body = &raw.body;
    Tensor {
        name: text(body.name),
        dtype: DataType(body.data_type),
        shape: dimensions(body),
        quantization: quantization(&body.quantize),
        kind: TensorKind::from_qnn(body.kind),
    }
}

/// Copies the records of a list of tensors.
pub(crate) fn records(pointer: *const sys::Tensor, count: u32) -> Vec<sys::Tensor> {
    list(pointer, count.min(1 << 16))
}

/// A parameter as JSON: scalars as numbers or text, tensors as `{dtype, shape, values}`.
pub(super) fn param_value(param: &sys::Param) -> Value {
    // SAFETY: the member is chosen by `kind` and, for scalars, by the data type.
    unsafe {
        if param.kind == 1 {
            return tensor_param(&param.value.tensor);
        }
        let scalar = param.value.scalar;
        match scalar.data_type {
            0x0008 | 0x0308 => scalar.value.i8.into(),
            0x0016 | 0x0316 => scalar.value.i16.into(),
            0x0032 | 0x0332 => scalar.value.i32.into(),
            0x0064 => scalar.value.i64.into(),
            0x0108 | 0x0408 => scalar.value.u8.into(),
            0x0116 | 0x0416 => scalar.value.u16.into(),
            0x0132 | 0x0432 => scalar.value.u32.into(),
            0x0164 => scalar.value.u64.into(),
            0x0508 => (scalar.value.u8 != 0).into(),
            0x0608 => text(scalar.value.text).into(),
            0x0232 => f64::from(scalar.value.float).into(),
            0x0264 => scalar.value.double.into(),
            _ => Value::Null,
        }
    }
}

fn tensor_param(raw: &sys::Tensor) -> Value {
    let tensor = describe(raw);
    let mut object = serde_json::Map::new();
    object.insert("dtype".into(), tensor.dtype.name().into());
    object.insert("shape".into(), tensor.shape.clone().into());
    if let (Some(size), false) = (tensor.dtype.bytes(), raw.body.buffer.data.is_null()) {
        let bytes = raw.body.buffer.size as usize;
        let count = (bytes / size).min(MAX_PARAM_VALUES);
        // SAFETY: the client buffer holds `size` bytes; fewer are read.
        let data = unsafe { std::slice::from_raw_parts(raw.body.buffer.data.cast::<u8>(), count * size) };
        let values: Vec<Value> = data
            .chunks_exact(size)
            .map(|element| {
                let value = tensor.dtype.load(element).unwrap_or(f64::NAN);
                #[expect(clippy::cast_possible_truncation, reason = "integers up to 32 bits are exact in f64")]
                if tensor.dtype.is_float() { value.into() } else { (value as i64).into() }
            })
            .collect();
        object.insert("values".into(), values.into());
        if bytes / size > count {
            object.insert("truncated".into(), true.into());
        }
    }
    object.into()
}

/// A deep copy of a tensor record that outlives its DLC, library or binary.
pub struct OwnedTensor {
    raw: sys::Tensor,
    name: CString,
    dimensions: Vec<u32>,
    scale_offsets: Vec<sys::ScaleOffset>,
    scales: Vec<f32>,
    offsets: Vec<i32>,
    info: Tensor,
}

// SAFETY: the pointers in `raw` lead to where it was copied from and are never followed: `bind` replaces each by one
// into its own storage.
unsafe impl Send for OwnedTensor {}

impl std::fmt::Debug for OwnedTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.info.fmt(f)
    }
}

impl OwnedTensor {
    /// The record as copied; its pointers may dangle.
    pub(super) fn raw(&self) -> &sys::Tensor {
        &self.raw
    }

    pub(super) fn c_name(&self) -> &CStr {
        &self.name
    }

    pub(super) fn copy_of(raw: &sys::Tensor) -> Self {
        let name = if raw.body.name.is_null() {
            CString::default()
        } else {
            // SAFETY: names are terminated strings.
            unsafe { CStr::from_ptr(raw.body.name) }.to_owned()
        };
        let mut copy = Self {
            raw: *raw,
            name,
            dimensions: dimensions(&raw.body),
            scale_offsets: Vec::new(),
            scales: Vec::new(),
            offsets: Vec::new(),
            info: describe(raw),
        };
        let quantize = &mut copy.raw.body.quantize;
        if quantize.definition == sys::DEFINITION_DEFINED {
            // SAFETY: as in `quantization`.
            unsafe {
                match quantize.encoding {
                    0 | 2 => {}
                    1 => {
                        let axis = quantize.data.axis_scale_offset;
                        copy.scale_offsets = list(axis.scale_offsets, axis.count);
                    }
                    3 => {
                        let axis = quantize.data.bw_axis_scale_offset;
                        copy.scales = list(axis.scales, axis.count);
                        copy.offsets = list(axis.offsets, axis.count);
                    }
                    // Encodings that are not decoded point into foreign memory.
                    _ => quantize.definition = 0x7fff_ffff,
                }
            }
        }
        copy.raw.body.dynamic_dimensions = std::ptr::null();
        copy
    }

    /// The tensor for display and files.
    pub fn info(&self) -> &Tensor {
        &self.info
    }

    /// The record with a raw client buffer. It points into `self` and `buffer`: both must outlive its use and not move.
    pub(super) fn bind(&self, buffer: &mut [u8]) -> sys::Tensor {
        let mut raw = self.raw;
        raw.body.name = self.name.as_ptr();
        raw.body.dimensions = self.dimensions.as_ptr();
        raw.body.rank = u32::try_from(self.dimensions.len()).unwrap_or(0);
        if raw.body.quantize.definition == sys::DEFINITION_DEFINED {
            match raw.body.quantize.encoding {
                1 => raw.body.quantize.data.axis_scale_offset.scale_offsets = self.scale_offsets.as_ptr(),
                3 => {
                    raw.body.quantize.data.bw_axis_scale_offset.scales = self.scales.as_ptr();
                    raw.body.quantize.data.bw_axis_scale_offset.offsets =
                        if self.offsets.is_empty() { std::ptr::null() } else { self.offsets.as_ptr() };
                }
                _ => {}
            }
        }
        raw.body.mem_type = sys::MEM_RAW;
        raw.body.buffer = sys::ClientBuffer {
            data: buffer.as_mut_ptr().cast(),
            size: u32::try_from(buffer.len()).unwrap_or(u32::MAX),
        };
        raw
    }
}
