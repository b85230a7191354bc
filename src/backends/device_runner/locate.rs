//! Finds a runner for a device and checks that it fits.

use super::DeviceRunnerError;
use crate::backends::on_device::names::machine;
use crate::backends::runtime::elf_machine;
use crate::devices::{Device, quote};
use crate::event::{DeviceFacts, clean_text};
use crate::facts::loader;
use crate::facts::machine_name;
use std::path::{Path, PathBuf};

/// File name of the runner.
const NAME: &str = "qnnscope";

/// Where to look for runners.
#[derive(Debug, Clone, Copy)]
pub struct RunnerSearch<'a> {
    /// The one the user named.
    pub named: Option<&'a Path>,
    /// The data folder, searched for `runners/TARGET/qnnscope`.
    pub data_dir: Option<&'a Path>,
}

/// Finds the runner for a device.
///
/// # Errors
/// The device cannot execute the named or found file, or there is none ([`DeviceRunnerError::NoRunner`]).
pub async fn locate(
    search: RunnerSearch<'_>,
    device: &Device,
    facts: &DeviceFacts,
) -> Result<PathBuf, DeviceRunnerError> {
    let path = find(search, facts)?;
    let unreadable = |source| DeviceRunnerError::Io {
        action: format!("read the runner {}", clean_text(&path.to_string_lossy())),
        source,
    };
    let found = elf_machine(&path).map_err(unreadable)?;
    let needed = machine(&facts.abi);
    if machine_name(found) != needed {
        let found =
            found.map_or_else(|| "no 64-bit ELF program".to_owned(), |_| format!("for {}", machine_name(found)));
        let (device, needed) = (facts.id.clone(), needed.to_owned());
        return Err(DeviceRunnerError::WrongMachine { path, device, found, needed });
    }
    if let Some(loader) = loader(&path).map_err(unreadable)? {
        let script = format!("[ -e {} ]", quote(&loader));
        if device.run(&script, "looking for the loader of programs").await?.status != 0 {
            let loader = clean_text(&loader);
            return Err(DeviceRunnerError::NoLoader { path, device: facts.id.clone(), loader });
        }
    }
    Ok(path)
}

fn find(search: RunnerSearch<'_>, facts: &DeviceFacts) -> Result<PathBuf, DeviceRunnerError> {
    if let Some(path) = search.named {
        return Ok(path.to_owned());
    }
    let mut looked = vec!["--runner is not given".to_owned()];
    let folders = search.data_dir.map(|dir| dir.join("runners"));
    for path in folders.iter().flat_map(|dir| targets(facts).map(|target| dir.join(target).join(NAME))) {
        if path.is_file() {
            return Ok(path);
        }
        looked.push(format!("{} is not there", clean_text(&path.to_string_lossy())));
    }
    Err(DeviceRunnerError::NoRunner { device: facts.id.clone(), looked })
}

/// Rust's target names for programs of this device, best first.
fn targets(facts: &DeviceFacts) -> impl Iterator<Item = String> {
    let machine = machine(&facts.abi).to_owned();
    let systems: &[&str] =
        if facts.os.starts_with("Android") { &["linux-android"] } else { &["unknown-linux-gnu", "unknown-linux-musl"] };
    systems.iter().map(move |system| format!("{machine}-{system}"))
}
