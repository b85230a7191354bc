//! A program on a device with the tap in it.
//!
//! The tap writes a file per process there, and the program's own outputs go to files, too: all are followed from here with
//! offsets, so that a link that is lost in the middle takes nothing with it. The program is no child of the connection: it runs
//! on until the device is back.

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
