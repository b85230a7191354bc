//! What is wrong, and why: checks before a run, causes of failures in logs, the doctor.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/examples.rs"]
mod examples;
#[path = "../support/logs.rs"]
mod logs;
#[path = "../support/mod.rs"]
mod support;

mod check;
mod check_onnx;
mod diagnose;
mod diagnose_long;
mod diagnose_program;
mod diagnosis_truth;
mod doctor;
mod dsp_lab;
mod learned;
mod similar;
mod vendor_messages;
