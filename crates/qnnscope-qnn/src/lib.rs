//! QNN libraries: raw declarations (`sys`), the safe wrapper ([`api`]), and what their error codes mean ([`errors`]).
//!
//! The one package of qnnscope with unsafe code. Its libraries are loaded when they are requested: nothing of QNN is needed
//! to build it.

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

/// What stands before the name of an op in the log when a backend is asked about it: should it crash, the last such line
/// names the op.
pub const ASKING: &str = "asking about op ";
