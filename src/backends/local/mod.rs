//! Runs tasks in a runner child on this machine, and supervises runners wherever they are.

mod confinement;
mod console;
mod environment;
mod frames;
mod leftovers;
mod link;
mod probe;
mod process;
mod scratch;
mod staged;
mod supervise;

pub use confinement::run_unconfined;
pub(crate) use console::events as console_events;
pub(in crate::backends) use link::{Exit, Process, Running, Translate};
pub use probe::probe_library;
pub use process::RunnerError;
pub use process::signal_name;
pub(crate) use process::{DSP_PATH, LIBRARY_PATH, search_path};
pub use scratch::Scratch;
pub(in crate::backends) use supervise::request;
pub use supervise::{Dialogue, Ended, Limits, Supervisor, ask};
