//! QNN libraries: raw declarations ([`sys`]), the safe wrapper ([`api`]) and the child process that uses them
//! ([`runner`]).

pub mod api;
pub mod runner;
mod sys;
