//! qnnscope together with other programs: tapped ones, terminals, pip.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod runtime_install;
mod tap;
mod tap_net_run;
mod terminal;
