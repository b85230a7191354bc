//! How a model runs: where the runtime is, how it is driven, and the child process that keeps its crashes away.

mod conductor;
mod cool_down;
pub mod device_runner;
pub mod errors;
mod kind;
mod launches;
pub mod local;
pub mod net_run;
mod preflight;
pub mod profile_log;
pub mod qnn;
pub mod runtime;
pub mod settings;

pub use conductor::{Conductor, Order, Place, RunRequest};
pub use kind::{Backend, ProfilingLevel};
pub use preflight::Preflight;
