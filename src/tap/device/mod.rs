//! A program on a device with the tap in it.
//!
//! The tap writes a file per process on the device, and the program's own output goes to files too. All of
//! them are read from here by offset, so that nothing is lost if the link breaks. The program is not a child
//! of the connection: it keeps running until the device is back.

mod app;
mod error;
mod follow;
mod library;
mod look;
mod prepare;
mod program;
mod script;
mod tellers;

pub use app::is_package;
pub use error::DeviceTapError;
pub use follow::replay_listing;
pub use library::LibrarySearch;
pub use prepare::{DeviceTap, DeviceTapOptions};
pub use program::Pipe;
