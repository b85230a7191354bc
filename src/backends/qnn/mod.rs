//! QNN libraries: raw declarations (`sys`), the safe wrapper ([`api`]) and the child process that uses them
//! ([`runner`]).

#[cfg(unix)]
pub mod api;
pub mod runner;
#[cfg(unix)]
mod sys;
