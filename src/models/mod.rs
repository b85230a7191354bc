//! What runs: formats, graphs (ops, tensors, MACs), tensor data types, context-binary facts.

mod dtype;
mod format;
mod graph;
mod macs;

pub use dtype::DataType;
pub use format::{FormatError, ModelFormat, dlc_sdk_version, identify, identify_for, starts_context_binary};
pub use graph::{
    ContextBinaryInfo, ContextGraphInfo, Graph, Op, OpTypeTotal, Quantization, Tensor, TensorKind, op_type_totals,
};
pub use macs::macs;
