//! The child process that uses the QNN libraries.

pub mod runner;

#[cfg(unix)]
pub use qnnscope_qnn::{api, onnx};
