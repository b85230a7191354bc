//! Fetches a run's results from the device to where the user wants them.

use super::DeviceRunnerError;
use super::shipment::{CONTEXT, OUTPUTS, PROFILE_LOG};
use crate::backends::on_device::outputs;
use crate::backends::qnn::runner::RunTask;
use crate::devices::{Device, quote};
use crate::event::clean_text;
use crate::files::{Kind, Replacement, is_special};
use std::path::Path;
use std::sync::Arc;

/// Fetches what exists; returns the output files. A failed run may have written nothing.
pub async fn fetch(device: &Device, folder: &str, task: &RunTask) -> Result<Vec<String>, DeviceRunnerError> {
    let mut guard = task.guard();
    for (name, to, option, kind) in [
        (CONTEXT, &task.save_context, "--save-context", Kind::Context),
        (PROFILE_LOG, &task.profile_log, "--save-profile-log", Kind::ProfileLog),
    ] {
        let Some(to) = to else { continue };
        // The run took a while: check again what may be written.
        guard.claim(option, to, kind).map_err(|error| DeviceRunnerError::Input(error.to_string()))?;
        let remote = format!("{folder}/{name}");
        if device.run(&format!("[ -f {} ]", quote(&remote)), "looking for results").await?.status == 0 {
            fetch_whole(device, &remote, to).await?;
        }
    }
    let Some(to) = &task.save_outputs else { return Ok(Vec::new()) };
    let remote = format!("{folder}/{OUTPUTS}");
    if device.run(&format!("[ -d {} ]", quote(&remote)), "looking for outputs").await?.status != 0 {
        return Ok(Vec::new());
    }
    Ok(outputs::fetch(device, &remote, to, &guard).await?)
}

/// Fetches a file whole or not at all: an old one stays until the new one is complete.
async fn fetch_whole(device: &Device, remote: &str, to: &Path) -> Result<(), DeviceRunnerError> {
    let failed =
        |source| DeviceRunnerError::Io { action: format!("write {}", clean_text(&to.to_string_lossy())), source };
    if is_special(to) {
        return Ok(device.pull(remote, to.to_owned(), Arc::new(|_| ())).await?);
    }
    let replacement = Replacement::begin(to).map_err(failed)?;
    device.pull(remote, replacement.path().to_owned(), Arc::new(|_| ())).await?;
    replacement.commit().map_err(failed)
}
