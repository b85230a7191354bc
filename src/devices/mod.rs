//! Where things run.

mod local;

pub use local::local_device;
