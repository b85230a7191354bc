//! The adb program, its server, and the devices behind it.

use super::item::Item;
use super::start::{Started, on_path, start};
use crate::devices::{AdbServer, AdbTransport, Attached, Device, DeviceError};
use crate::event::LOCAL_DEVICE;
use std::time::Duration;

/// Time limit for starting adb.
const LIMIT: Duration = Duration::from_secs(5);
/// Name that stands for the only device attached.
const ANY: &str = "adb";

/// The findings about adb.
pub struct Adb {
    /// Its lines.
    pub items: Vec<Item>,
    /// The selected devices that are ready.
    pub ready: Vec<Device>,
}

/// Examines adb and attached devices; `asked` selects one of several devices.
pub async fn examine(server: AdbServer, asked: Option<&str>) -> Adb {
    let mut items = vec![program().await];
    let answered = async {
        server.ensure().await?;
        server.devices().await
    };
    let attached = match answered.await {
        Ok(attached) => {
            items.push(Item::ok("server", "adb server", format!("answers at {server}")));
            attached
        }
        Err(error) => {
            // A missing adb is already reported above.
            if !matches!(error, DeviceError::NoAdb) {
                let fix = error.advice().unwrap_or_default();
                items.push(Item::warning("server", "adb server", error.to_string(), fix));
            }
            Vec::new()
        }
    };
    if attached.is_empty() {
        let fix = "turn on USB debugging and plug in a device, or `qnnscope connect HOST:PORT`";
        items.push(Item::warning("devices", "devices", "none is attached", fix));
    }
    items.extend(attached.iter().map(state));
    let named = asked.filter(|asked| ![ANY, LOCAL_DEVICE].contains(asked));
    if let Some(name) = named.filter(|name| !attached.iter().any(|device| device.serial == *name)) {
        let detail = format!("{name} was requested but is not attached");
        items.push(Item::problem("asked", "requested device", detail, "`qnnscope devices` lists what is attached"));
    }
    let is_meant = |device: &&Attached| match asked {
        None | Some(ANY) => true,
        Some(name) => device.serial == name,
    };
    let ready = attached.iter().filter(is_meant).filter(|device| device.state.is_ready());
    Adb { ready: ready.map(|device| Device::new(AdbTransport::new(server, &device.serial))).collect(), items }
}

async fn program() -> Item {
    let Some(path) = on_path("adb") else {
        let fix = DeviceError::NoAdb.advice().unwrap_or_default();
        return Item::warning("adb", "adb", "there is no adb on PATH", fix);
    };
    match start(&path, &["version"], &[], LIMIT).await {
        Started::Ended { status: Some(0), output } => {
            let version = output.lines().find_map(|line| line.strip_prefix("Version ")).map(str::trim);
            let version = version.map_or_else(String::new, |version| format!(", {version}"));
            Item::ok("adb", "adb", format!("{}{version}", path.display()))
        }
        Started::Ended { .. } | Started::Hangs | Started::Refused(_) => {
            let detail = format!("{} does not run", path.display());
            Item::problem("adb", "adb", detail, "run `adb version` by hand and read its messages")
        }
    }
}

fn state(device: &Attached) -> Item {
    let model = device.model.as_ref().map_or_else(String::new, |model| format!(", {model}"));
    let what = format!("device {}", device.serial);
    let detail = format!("{}{model}", device.state);
    match device.state.advice() {
        None => Item::ok(&device.serial, &what, detail),
        Some(advice) => Item::problem(&device.serial, &what, detail, advice),
    }
}
