//! QNN libraries: raw declarations (`sys`), the safe wrapper ([`api`]), and what their error codes mean ([`errors`]).
//!
//! The home of qnnscope's unsafe code; only the tap's exported symbols need some elsewhere. Libraries are loaded on request: building it needs nothing of QNN.

#[cfg(unix)]
pub mod api;
pub mod errors;
#[cfg(all(unix, feature = "onnx"))]
pub mod onnx;
#[cfg(all(any(target_os = "linux", target_os = "android"), feature = "program"))]
pub mod streams;
#[cfg(unix)]
mod sys;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub mod tap;

/// Log prefix before the name of an op that a backend is asked about: if it crashes, the last such line names the op.
pub const ASKING: &str = "asking about op ";
