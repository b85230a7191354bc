//! ONNX Runtime with QNN as a plug-in: opens the library, creates and runs sessions, and reports node placement.
//!
//! Crate `ort` does most of it. What it has no safe call for, tensors of any type as bytes and the assignment of nodes
//! to providers, goes through its raw table here.

mod assignment;
mod error;
mod library;
mod log;
mod session;
mod tensor;

pub use assignment::{AssignedNode, Assignment};
pub use error::OnnxError;
pub use library::OnnxRuntime;
pub use log::{LogLine, LogSink, PROVIDER};
pub use session::{OnnxSession, SessionSpec};
pub use tensor::{Dimension, OnnxTensor, OutputTensor};
