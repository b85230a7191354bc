//! QNN libraries: raw declarations (`sys`), the safe wrapper ([`api`]) and the child process that uses them
//! ([`runner`]).

#[cfg(unix)]
pub mod api;
pub mod runner;
#[cfg(unix)]
mod sys;

/// What stands before the name of an op in the log when a backend is asked about it: should it crash, the last such line
/// names the op.
pub const ASKING: &str = "asking about op ";
