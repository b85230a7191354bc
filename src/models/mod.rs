//! Runnable models: detects their formats by content; graphs and data types come from the base crate. Models
//! before conversion are read into the types of [`source`].

mod executorch;
mod format;
mod names;
mod onnx;
mod reading;
pub mod source;
mod tflite;

pub use format::{FormatError, dlc_sdk_version, identify, identify_for};
pub use names::{NAMES_SCHEMA, map_beside, names_file, source_names};
pub use onnx::Named;
pub use qnnscope_core::models::{
    ContextBinaryInfo, ContextGraphInfo, DataType, Graph, ModelFormat, Op, OpTypeTotal, Quantization, Tensor,
    TensorKind, macs, op_type_totals,
};
pub use reading::{identify_source, read_source};

/// Op types that only move stored values, so that their inputs and outputs share one encoding.
const MOVERS: [&str; 11] = [
    "Reshape",
    "Transpose",
    "StridedSlice",
    "Split",
    "DepthToSpace",
    "SpaceToDepth",
    "Tile",
    "Gather",
    "PoolMax2d",
    "ExpandDims",
    "Squeeze",
];

/// Whether ops of this type pass stored values on unchanged.
pub fn hands_numbers_on(op_type: &str) -> bool {
    MOVERS.contains(&op_type)
}
