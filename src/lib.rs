//! qnnscope: an interactive terminal profiler and debugger for Qualcomm QNN models.
//!
//! One stream of events: sources (runner, probes, devices) produce [`event::Event`]s, the session hub numbers and records
//! them, the [`store`] folds them, and panes and reports are pure functions of the store. See `docs/architecture.md`.

pub mod backends;
pub mod event;
pub mod models;
pub mod probes;
pub mod store;
