//! Models before conversion: ONNX, TFLite and ExecuTorch programs, read without a runtime and without their
//! tensor data.
//!
//! The readers in `models/onnx`, `models/tflite` and `models/executorch` all fill in a [`SourceModel`]. They
//! read files in blocks, never whole: a 2 GB model takes only as much memory as its names and shapes.

mod beside;
mod budget;
mod element;
mod embedded;
mod error;
mod file;
mod flatbuffer;
mod format;
mod graph;
mod islands;
mod model;

pub use beside::beside;
pub use element::ElementType;
pub use embedded::{ContextSite, EmbeddedContext};
pub use error::SourceError;
pub use file::{SourceFile, Span};
pub use flatbuffer::{List, Table, f32_in, i64_in};
pub use format::SourceFormat;
pub use graph::{
    Attribute, AttributeValue, Constant, Dim, Quantized, ShapeIndex, Small, SourceGraph, SourceNode, SourceValue,
    Storage, Subgraph, count_macs, product, shape_text,
};
pub use islands::islands;
pub use model::{
    ExternalFile, FloatIsland, FreeDimension, Function, Opset, QuantizationSummary, SourceModel, TypeTotal,
};
