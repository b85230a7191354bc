//! Which device a command is about, and what a run there requires.

use super::options::{self, RunOptions};
use super::{CliError, Global};
use crate::backends::device_runner::{DeviceRunnerError, DeviceRunnerOptions, RunnerSearch, find_libraries, locate};
use crate::backends::net_run::NetRunOptions;
use crate::backends::on_device::Sdk;
use crate::backends::runtime::{Env, choose};
use crate::devices::{AdbServer, AdbTransport, Device, DeviceError, is_snapdragon};
use crate::event::{DeviceFacts, LOCAL_DEVICE};
use crate::probes::CounterOptions;
use crate::run::Site;
use std::path::PathBuf;
use std::sync::Arc;

/// Determines where the named device runs models, and with what.
pub async fn site(name: &str, run: &RunOptions, global: &Global) -> Result<Arc<Site>, CliError> {
    if name == LOCAL_DEVICE {
        // This machine's own probe reports load and memory; a Snapdragon has more counters, and the user may
        // request more.
        let more = is_snapdragon() || !run.counters.is_empty() || run.counter_file.is_some();
        let counters = if more { Some(run.counter_options()?) } else { None };
        return Ok(Arc::new(Site::Here { runtime: options::runtime(global)?, counters }));
    }
    let device = find(name, global).await?;
    let facts = device.describe().await?;
    match runner(&device, &facts, !run.no_vendor_libs, global).await {
        Ok(options) => {
            let options = DeviceRunnerOptions { counters: run.counter_options()?, ..options };
            return Ok(Arc::new(Site::DeviceRunner { device, options }));
        }
        // Without a runner, qnn-net-run is still an option.
        Err(CliError::DeviceRunner(DeviceRunnerError::NoRunner { .. })) => {}
        Err(error) => return Err(error),
    }
    let sdk = Sdk::locate(global.runtime.as_deref(), &Env::from_process())?;
    let target = sdk.target(&facts)?;
    let options = NetRunOptions {
        sdk,
        host_runtime: host_runtime(global),
        vendor_libraries: !run.no_vendor_libs,
        counters: run.counter_options()?,
    };
    Ok(Arc::new(Site::NetRun { device, options, emulated: target.is_emulated() }))
}

/// The runner for a named or detected device, with its libraries but without counters.
pub async fn runner(
    device: &Device,
    facts: &DeviceFacts,
    vendor_libraries: bool,
    global: &Global,
) -> Result<DeviceRunnerOptions, CliError> {
    let env = Env::from_process();
    let search = RunnerSearch { named: global.runner.as_deref(), data_dir: env.data_dir.as_deref() };
    let runner = locate(search, device, facts).await?;
    let libraries = find_libraries(global.runtime.as_deref(), &env, facts)?;
    Ok(DeviceRunnerOptions { runner, libraries, vendor_libraries, counters: CounterOptions::default() })
}

/// A runner for a device has no use on this machine, and nothing the user gives is silently dropped.
pub fn refuse_runner_here(name: &str, global: &Global) -> Result<(), CliError> {
    match global.runner {
        Some(_) if name == LOCAL_DEVICE => {
            Err(CliError::Usage("--runner is for runs on a device: name one with --device SERIAL".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Libraries of this machine, which read what is in a model. Having none is not a failure.
fn host_runtime(global: &Global) -> Option<PathBuf> {
    let env = Env::from_process();
    let named = global.runtime.as_deref().and_then(|path| choose(Some(path), &env).ok());
    named.or_else(|| choose(None, &env).ok()).map(|runtime| runtime.path)
}

/// Name that stands for the only device attached.
const ANY_ADB: &str = "adb";

/// The device's name as given by `--device` or `$ANDROID_SERIAL`; this machine if neither is set.
pub fn named(global: &Global) -> String {
    let variable = || std::env::var("ANDROID_SERIAL").ok().filter(|serial| !serial.is_empty());
    global.device().map(str::to_owned).or_else(variable).unwrap_or_else(|| LOCAL_DEVICE.to_owned())
}

/// All named devices, in the order given.
pub fn all_named(global: &Global) -> Vec<String> {
    if global.device.len() > 1 { global.device.clone() } else { vec![named(global)] }
}

/// Determines the same as [`site`] for each of these devices. A device given under two names is refused.
pub async fn sites(names: &[String], run: &RunOptions, global: &Global) -> Result<Vec<Arc<Site>>, CliError> {
    let mut sites: Vec<Arc<Site>> = Vec::new();
    for name in names {
        let site = site(name, run, global).await?;
        if sites.iter().any(|known| known.device_id() == site.device_id()) {
            let id = crate::event::clean_text(site.device_id());
            return Err(CliError::Usage(format!("--device names {id} twice")));
        }
        sites.push(site);
    }
    Ok(sites)
}

/// The device with this name, if it is ready.
pub async fn find(name: &str, global: &Global) -> Result<Device, CliError> {
    if name == LOCAL_DEVICE {
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
