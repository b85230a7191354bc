//! Running models on a device with qnnscope's own runner, built for the device.
//!
//! What qnn-net-run cannot do: every inference is reported as it finishes, whole graphs are seen through the interposer, and a
//! model can be inspected there. The runner is the same program as on this machine, and so is what watches over it; only its
//! process, its clock and its files are the device's.

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
