//! Runs models on a device with qnnscope's own runner, built for the device.
//!
//! Unlike qnn-net-run, it reports every inference as it finishes, sees whole graphs through the interposer, and can
//! inspect a model there. The runner is the same program as on this machine, under the same supervisor; only its
//! process, clock and files are on the device.

mod error;
mod fetch;
mod filter;
mod inspect;
mod libraries;
mod locate;
mod process;
mod resume;
mod run;
mod script;
mod shipment;
mod tensors;
mod translate;

pub use error::DeviceRunnerError;
pub use inspect::inspect;
pub use libraries::find_libraries;
pub use locate::{RunnerSearch, locate};
pub use run::{DeviceRun, DeviceRunnerOptions};
pub use tensors::{Exchange, TensorSite};
