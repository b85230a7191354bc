//! What runs: formats, graphs (ops, tensors, MACs), tensor data types, facts about context binaries.

mod dtype;
mod format;
mod graph;
mod macs;

pub use dtype::DataType;
pub use format::ModelFormat;
pub use graph::{
    ContextBinaryInfo, ContextGraphInfo, Graph, Op, OpTypeTotal, Quantization, Tensor, TensorKind, op_type_totals,
};
pub use macs::macs;
