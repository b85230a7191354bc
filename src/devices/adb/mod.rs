//! Devices behind an adb server.
//!
//! Requests to the server itself (list devices, connect to one) are made here, over tokio: crate adb_client starts a
//! process for each of them. Everything sent to a device goes through adb_client.

mod server;
mod transport;

pub(crate) use server::parse_devices;
pub use server::{AdbServer, Attached, DEFAULT_PORT};
pub use transport::{AdbTransport, settle};
