//! Which device a command is about, and what a run there needs.

use super::options::{self, RunOptions};
use super::{CliError, Global};
use crate::backends::net_run::{NetRunOptions, Sdk};
use crate::backends::runtime::{Env, RuntimeDir, choose};
use crate::devices::{AdbServer, AdbTransport, Device, DeviceError, is_snapdragon};
use crate::probes::CounterOptions;
use std::path::PathBuf;

/// Where runs are made, with what they need there.
#[derive(Debug, Clone)]
pub enum Site {
    /// On this machine.
    Here {
        /// Its libraries.
        runtime: RuntimeDir,
        /// Counters that are sampled as those of a device are.
        counters: Option<CounterOptions>,
    },
    /// On a device, by the SDK's qnn-net-run.
    NetRun {
        /// The device.
        device: Device,
        /// With what.
        options: NetRunOptions,
        /// True where the libraries only emulate the HTP.
        emulated: bool,
    },
}

/// Finds out where the device of this name runs models, and with what.
pub async fn site(name: &str, run: &RunOptions, global: &Global) -> Result<Site, CliError> {
    if name == LOCAL {
        // This machine's own probe tells load and memory; a Snapdragon has more to tell, and the user may want more.
        let more = is_snapdragon() || !run.counters.is_empty() || run.counter_file.is_some();
        let counters = if more { Some(run.counter_options()?) } else { None };
        return Ok(Site::Here { runtime: options::runtime(global)?, counters });
    }
    let device = find(name, global).await?;
    let sdk = Sdk::locate(global.runtime.as_deref(), &Env::from_process())?;
    let target = sdk.target(&device.describe().await?)?;
    let options = NetRunOptions {
        sdk,
        host_runtime: host_runtime(global),
        vendor_libraries: !run.no_vendor_libs,
        counters: run.counter_options()?,
    };
    Ok(Site::NetRun { device, options, emulated: target.is_emulated() })
}

/// Libraries for this machine, which read what is in a model. None is no reason to fail.
fn host_runtime(global: &Global) -> Option<PathBuf> {
    let env = Env::from_process();
    let named = global.runtime.as_deref().and_then(|path| choose(Some(path), &env).ok());
    named.or_else(|| choose(None, &env).ok()).map(|runtime| runtime.path)
}

/// Word for the only device attached.
const ANY_ADB: &str = "adb";
/// Word for this machine.
pub const LOCAL: &str = "local";

/// The device's name as `--device` or `$ANDROID_SERIAL` give it; this machine if neither does.
pub fn named(global: &Global) -> String {
    let variable = || std::env::var("ANDROID_SERIAL").ok().filter(|serial| !serial.is_empty());
    global.device.clone().or_else(variable).unwrap_or_else(|| LOCAL.to_owned())
}

/// The device with this name, if it is ready.
pub async fn find(name: &str, global: &Global) -> Result<Device, CliError> {
    if name == LOCAL {
        return Ok(Device::local());
    }
    let server = AdbServer::locate(global.adb_server.as_deref())?;
    server.ensure().await?;
    let attached = server.devices().await?;
    let ready: Vec<&str> =
        attached.iter().filter(|device| device.state.is_ready()).map(|device| device.serial.as_str()).collect();
    let serial = match (name, ready.as_slice()) {
        (ANY_ADB, [only]) => *only,
        (ANY_ADB, []) if attached.len() == 1 => attached[0].serial.as_str(),
        (ANY_ADB, []) => {
            return Err(DeviceError::NotFound { id: "behind adb".to_owned(), others: String::new() }.into());
        }
        (ANY_ADB, several) => {
            let ids = several.iter().map(ToString::to_string).collect();
            return Err(DeviceError::Ambiguous { ids }.into());
        }
        (serial, _) => serial,
    };
    let Some(found) = attached.iter().find(|device| device.serial == serial) else {
        let others: Vec<&str> = attached.iter().map(|device| device.serial.as_str()).collect();
        let others = if others.is_empty() { String::new() } else { format!("; attached: {}", others.join(", ")) };
        return Err(DeviceError::NotFound { id: crate::event::clean_text(serial), others }.into());
    };
    if !found.state.is_ready() {
        return Err(DeviceError::NotReady { id: found.serial.clone(), state: found.state.clone() }.into());
    }
    Ok(Device::new(AdbTransport::new(server, &found.serial)))
}
