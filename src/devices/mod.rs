//! Where things run: one [`Device`] for this machine and for those behind an adb server.

mod adb;
mod confounds;
mod describe;
mod device;
mod error;
mod local;
mod process_group;
mod root;
mod script;
mod soc;
mod stream;
mod watch;

pub use adb::{AdbServer, AdbTransport, Attached, DEFAULT_PORT};
pub use confounds::confounds;
pub use describe::{free_bytes, meminfo, thermal_status};
pub use device::{COMMAND_LIMIT, Device, FileError, Output, Pending, Progress, Transport};
pub use error::DeviceError;
pub use local::{LocalTransport, is_root, is_snapdragon, local_device};
pub use process_group::Group;
pub use qnnscope_core::device_state::{DeviceState, Root};
pub use root::as_root;
pub use script::{EndMarker, quote};
pub use soc::{Soc, soc_by_id, soc_by_part, socs, socs_by_model};
pub use stream::{MAX_LINE_BYTES, Piece, ShellStream, StreamFeed};
pub use watch::watch;
