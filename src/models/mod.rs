//! What runs: formats told by content; graphs and data types come from the base.

mod format;

pub use format::{FormatError, dlc_sdk_version, identify, identify_for};
pub use qnnscope_core::models::{
    ContextBinaryInfo, ContextGraphInfo, DataType, Graph, ModelFormat, Op, OpTypeTotal, Quantization, Tensor,
    TensorKind, macs, op_type_totals,
};
