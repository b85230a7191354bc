//! What runs: formats told by content; graphs and data types come from the base. Models before conversion are read in
//! [`source`].

mod executorch;
mod format;
mod onnx;
pub mod source;
mod tflite;

pub use format::{FormatError, dlc_sdk_version, identify, identify_for, starts_context_binary};
pub use qnnscope_core::models::{
    ContextBinaryInfo, ContextGraphInfo, DataType, Graph, ModelFormat, Op, OpTypeTotal, Quantization, Tensor,
    TensorKind, macs, op_type_totals,
};
