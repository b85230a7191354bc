//! Running models on a device with the SDK's own qnn-net-run.
//!
//! qnn-net-run prints no times while it runs, writes nothing to its profile log for about the first thousand messages, and
//! leaves it empty when it is killed. So a run is a row of short rounds; each round's log is read as it grows and becomes
//! the same events that the runner on this machine sends.

mod clock;
mod command;
mod config;
mod console;
mod deploy;
mod driver;
mod error;
mod fold;
mod kit;
mod logcat;
mod memory;
mod messages;
mod outputs;
mod pace;
mod prepare;
mod round;
mod sdk;

pub use deploy::{clean, remote_root};
pub use driver::{NetRun, NetRunOptions};
pub use error::NetRunError;
pub use sdk::{Sdk, Target};
