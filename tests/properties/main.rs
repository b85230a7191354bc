//! What holds for any input: parsers of foreign bytes on a kept corpus, statistics on simulated machines.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../support/launches.rs"]
mod launches;

mod fuzz;
mod mutated_sessions;
mod repeatability;
