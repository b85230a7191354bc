//! qnnscope: an interactive terminal profiler and debugger for Qualcomm QNN models.
//!
//! One stream of events: sources (runner, probes, devices) produce [`event::Event`]s, the session hub numbers and records
//! them, the [`store`] folds them, and panes and reports are pure functions of the store. See `docs/architecture.md`.

pub mod accuracy;
pub mod analysis;
pub mod app;
pub mod backends;
pub mod checks;
pub mod cli;
pub mod convert;
pub mod dataset;
pub mod devices;
pub mod diagnosis;
pub mod doctor;
pub mod encodings;
pub mod facts;
mod files;
#[doc(hidden)]
pub mod fuzz;
mod hints;
pub mod history;
pub mod imports;
pub mod models;
pub mod probes;
pub mod ranges;
pub mod report;
pub mod run;
pub mod session;
pub mod store;
#[cfg(unix)]
pub mod tap;
mod text;
pub mod truth;

pub use qnnscope_core::event;

/// Hidden subcommand under which the binary starts itself as a runner.
pub const RUNNER_SUBCOMMAND: &str = "__runner";
