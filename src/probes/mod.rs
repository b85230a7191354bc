//! What the hardware and the processes are doing.

mod catalogue;
mod clock;
mod counter;
mod custom;
mod device_probe;
mod discovery;
mod dumpsys;
mod host;
mod numbers;
pub mod process;
mod sampler;
mod value;

pub use catalogue::{Cadence, Group, Parse, Row, rows};
pub use clock::{DeviceClock, HostClock, Moment, RoundTrip, Stamp};
pub use counter::{Counter, FileRead, How, Unreadable};
pub use custom::{CustomError, default_path as custom_path, load as load_custom};
pub use device_probe::{CounterOptions, DeviceProbe};
pub use discovery::{Discovery, discover};
pub use host::{HostProbe, hottest_celsius};
pub(crate) use sampler::read_line;
pub use sampler::{Options, Rate, Sampler};
pub use value::Parser;
