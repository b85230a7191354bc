//! What the hardware and the processes are doing.

mod host;
pub mod process;

pub use host::HostProbe;
