//! Reads a model's graphs on a device without running it.

use super::script::{RUNNER, Start};
use super::translate::Names;
use super::{DeviceRunnerError, DeviceRunnerOptions, process};
use crate::backends::local::{Ended, Limits, Supervisor, request};
use crate::backends::on_device::deploy::{self, deploy};
use crate::backends::on_device::kit::inspection_libraries;
use crate::backends::on_device::names::machine;
use crate::backends::on_device::names::model_name;
use crate::backends::on_device::tenants::Claim;
use crate::backends::qnn::runner::{Frame, InspectTask, TABLE_LENDERS, Task};
use crate::devices::{Device, Root};
use crate::event::DeviceFacts;
use crate::models::identify_for;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Inspects `task.model` on the device; `task.runtime_dir` is ignored.
pub async fn inspect(
    device: &Device,
    facts: &DeviceFacts,
    options: &DeviceRunnerOptions,
    task: &InspectTask,
    limits: Limits,
) -> Result<Ended, DeviceRunnerError> {
    let model = model_name(identify_for(&task.model, machine(&facts.abi))?);
    let mut files = inspection_libraries(&options.libraries, &TABLE_LENDERS)?;
    files.insert(RUNNER.to_owned(), options.runner.clone());
    files.insert(model.to_owned(), task.model.clone());
    let folder = deploy(device, &files, &(Arc::new(|_| ()) as deploy::Tell)).await?.folder;
    let claim = Claim::new(device, &folder);
    let mut names = Names::default();
    names.add(format!("{folder}/{model}"), &task.model);
    let sent = Task::Inspect(InspectTask {
        runtime_dir: PathBuf::from(&folder),
        model: PathBuf::from(format!("{folder}/{model}")),
        ..task.clone()
    });
    let start = Start { folder: folder.clone(), root: Root::None, vendor_libraries: options.vendor_libraries };
    let (_stop, stopped) = watch::channel(false);
    let mut supervisor = Supervisor::new(None, limits);
    let exit = supervisor.watch(&request(&sent)?, process::start(device, start).0, stopped).await;
    let mut ended = supervisor.finish(exit).await;
    match &mut ended {
        Ended::Done(Some(Frame::Inspected { model, .. })) => names.translate(&mut model.path),
        Ended::Failed(failure) => names.translate_failure(failure),
        Ended::Done(_) => {}
    }
    // The next run, or `clean`, removes what is left there; a lost device is out of reach now.
    let _ = claim.remove().await;
    Ok(ended)
}
