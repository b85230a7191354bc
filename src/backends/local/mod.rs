//! Running tasks in a runner child on this machine.

mod console;
mod frames;
mod process;
mod supervise;

pub(crate) use console::events as console_events;
pub use process::RunnerError;
pub use supervise::{Ended, Limits, Supervisor, ask};
