//! Runs of real models on the real libraries, through the binary: figures, failures, limits, what is left
//! behind.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/profile_log.rs"]
mod profile_log;
#[path = "../support/mod.rs"]
mod support;

mod accuracy;
mod accuracy_records;
mod analysis;
mod bad_input;
mod compare;
mod explain;
mod failed_op;
mod launches;
mod model_library;
mod modes;
mod onnx_run;
mod run;
mod sandbox;
mod save_profile_log;
mod session;
mod suggestions;
mod supervision;
mod truth;
mod unknown_runtime;
