//! Running models on a device with the SDK's own qnn-net-run.
//!
//! qnn-net-run prints no times while it runs, writes nothing to its profile log for about the first thousand messages, and
//! leaves it empty when it is killed. So a run is a row of short rounds; each round's log is read as it grows and becomes
//! the same events that the runner on this machine sends.

pub(super) mod around;
pub(super) mod clock;
pub(super) mod command;
mod config;
mod console;
pub(super) mod deploy;
mod driver;
pub(super) mod environment;
mod error;
mod fits;
mod fold;
pub(super) mod kit;
pub(super) mod logcat;
mod memory;
mod messages;
pub(super) mod outputs;
mod pace;
pub(super) mod prepare;
mod round;
mod rounds;
mod sdk;
pub(super) mod versions;

pub use deploy::{clean, remote_root};
pub use driver::{NetRun, NetRunOptions};
pub use error::NetRunError;
pub use pace::Pace;
pub use sdk::{Sdk, Target};
