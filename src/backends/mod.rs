//! How a model runs: where the runtime is, how it is driven, and the child process that keeps its crashes away.

pub mod errors;
mod kind;
pub mod qnn;
pub mod settings;
// pub mod runtime;

pub use kind::{Backend, ProfilingLevel};
