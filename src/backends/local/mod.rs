//! Running tasks in a runner child on this machine.

mod conductor;
mod console;
mod frames;
mod supervise;

pub use conductor::{Conductor, Order, RunRequest};
pub use supervise::{Ended, Limits, RunnerError, Supervisor, ask};
