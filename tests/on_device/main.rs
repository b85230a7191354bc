//! Devices behind the real adb server: the virtual device, runs on it, its counters.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/profile_log.rs"]
mod profile_log;
#[path = "../support/mod.rs"]
mod support;

mod accuracy;
mod checks;
mod device_counters;
mod device_run;
mod device_runner;
mod device_tap;
mod devices;
mod net_run_stand_in;
mod two_devices;
mod virtual_device;
