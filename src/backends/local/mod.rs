//! Running tasks in a runner child on this machine.

mod conductor;
mod console;
mod frames;
mod process;
mod supervise;

pub use conductor::{Conductor, Order, RunRequest};
pub use process::RunnerError;
pub use supervise::{Ended, Limits, Supervisor, ask};
