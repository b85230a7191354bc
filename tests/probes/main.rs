//! Counters of devices: discovery and sampling, with real shells.
#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![cfg(target_os = "linux")]

mod device;
mod discovery;
mod sampling;
mod tree;
