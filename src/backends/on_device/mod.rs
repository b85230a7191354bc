//! Shared by all runs on a device, whatever the driver: files sent once and kept by hash, the libraries that belong
//! together, search paths and priority, the device's clock, its log, the link, and other users of the device.

pub(crate) mod around;
pub(crate) mod clock;
pub(crate) mod deploy;
pub(crate) mod environment;
mod error;
pub(crate) mod kit;
pub(crate) mod link;
pub(crate) mod logcat;
pub(crate) mod names;
pub(crate) mod outputs;
mod sdk;
pub(crate) mod tenants;
pub(crate) mod versions;

pub use deploy::{clean, remote_root};
pub use error::OnDeviceError;
pub use kit::DLC_LIBRARY;
pub use sdk::{LibraryTarget, Sdk};
pub use tenants::removed;

pub(crate) use sdk::TOOL;
