//! Runs models on a device with the SDK's own qnn-net-run.
//!
//! qnn-net-run prints no times while running, writes nothing to its profile log for about the first thousand messages,
//! and leaves it empty when killed. So a run is a series of short rounds; each round's log is read as it grows and
//! turned into the same events a local runner sends.

pub(super) mod command;
mod config;
mod console;
mod driver;
mod fits;
mod fold;
mod job;
mod kept_log;
mod memory;
mod messages;
mod pace;
pub(crate) mod prepare;
mod round;
mod rounds;

pub use job::{NetRun, NetRunOptions};
pub use pace::Pace;
