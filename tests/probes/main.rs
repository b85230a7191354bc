//! Counters of devices: discovery and sampling, with real shells.
#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

mod adb;
mod device;
mod discovery;
mod reference;
mod sampling;
mod tree;
#[path = "../support/virtual_device/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other tests use more of the device")]
mod virtual_device;
