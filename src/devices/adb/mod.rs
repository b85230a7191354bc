//! Devices behind an adb server.
//!
//! Questions to the server itself (which devices are there, connect to one) are asked here, over tokio: crate adb_client
//! starts a process for each of them. Everything that goes to a device goes through adb_client.

mod server;
mod transport;

pub(crate) use server::parse_devices;
pub use server::{AdbServer, Attached, DEFAULT_PORT};
pub use transport::{AdbTransport, settle};
