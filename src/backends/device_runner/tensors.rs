//! Graphs on a device with readable tensors: the same dialogue as with a local runner, with the exchange folder on the
//! device.

use super::script::{RUNNER, Start};
use super::translate::Names;
use super::{DeviceRunnerError, DeviceRunnerOptions, inspect, process};
use crate::backends::local::{Dialogue, Ended, Limits, RunnerError, Supervisor, request};
use crate::backends::on_device::deploy::{self, deploy, remote_root};
use crate::backends::on_device::kit::{Needs, hexagon_arch, runner_libraries};
use crate::backends::on_device::names::{machine, model_name};
use crate::backends::on_device::tenants::{Claim, tidy};
use crate::backends::qnn::runner::{InspectTask, Task, TensorsTask};
use crate::backends::settings;
use crate::devices::{Device, Root, quote};
use crate::event::DeviceFacts;
use crate::models::identify_for;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Folder of the exchange within the folder of a run.
const EXCHANGE: &str = "exchange";

/// A device prepared for opening graphs.
#[derive(Debug)]
pub struct TensorSite {
    device: Device,
    facts: DeviceFacts,
    options: DeviceRunnerOptions,
}

impl TensorSite {
    /// Prepares this device; removes leftovers of finished runs.
    ///
    /// # Errors
    /// The device does not answer.
    pub async fn new(
        device: Device,
        facts: DeviceFacts,
        options: DeviceRunnerOptions,
    ) -> Result<Self, DeviceRunnerError> {
        tidy(&device, &remote_root(&device).await?).await?;
        Ok(Self { device, facts, options })
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.device.id()
    }

    /// The processor its models are built for.
    pub fn machine(&self) -> &str {
        machine(&self.facts.abi)
    }

    /// True if it has no DSP.
    pub fn is_emulated(&self) -> bool {
        self.options.libraries.is_emulated()
    }

    /// Reads a model's graphs there; `task.runtime_dir` is ignored.
    ///
    /// # Errors
    /// As [`inspect`].
    pub async fn inspect(&self, task: &InspectTask, limits: Limits) -> Result<Ended, DeviceRunnerError> {
        inspect(&self.device, &self.facts, &self.options, task, on_device(limits)).await
    }

    /// Opens a graph there; folders of `task` are ignored. The runner ends with the dialogue.
    ///
    /// # Errors
    /// Required files cannot be sent.
    pub async fn open(
        &self,
        task: &TensorsTask,
        limits: Limits,
        dialogue: Dialogue,
    ) -> Result<(Exchange, JoinHandle<Result<Ended, RunnerError>>), DeviceRunnerError> {
        let format = identify_for(&task.model, self.machine())?;
        let model = model_name(format);
        let resolved = settings::resolve(&task.settings, task.backend)
            .map_err(|error| DeviceRunnerError::Input(error.to_string()))?;
        let has_dsp = !self.is_emulated();
        let arch = if has_dsp { hexagon_arch(task.backend, &resolved, &self.facts)? } else { None };
        let needs = Needs { backend: task.backend, format, arch, configured: false, has_dsp };
        let mut files = runner_libraries(&self.options.libraries, needs)?;
        files.insert(RUNNER.to_owned(), self.options.runner.clone());
        files.insert(model.to_owned(), task.model.clone());
        let folder = deploy(&self.device, &files, &(Arc::new(|_| ()) as deploy::Tell)).await?.folder;
        let exchange = Exchange { claim: Claim::new(&self.device, &folder), device: self.device.clone() };
        let there = exchange.folder();
        let script = format!("umask 077 && mkdir -p {}", quote(&there));
        self.device.run_ok(&script, "making the folder for tensors").await?;
        let mut names = Names::default();
        names.add(format!("{folder}/{model}"), &task.model);
        let sent = request(&Task::Tensors(Box::new(TensorsTask {
            runtime_dir: PathBuf::from(&folder),
            model: PathBuf::from(format!("{folder}/{model}")),
            exchange: PathBuf::from(there),
            ..task.clone()
        })))?;
        let start = Start { folder, root: Root::None, vendor_libraries: self.options.vendor_libraries };
        let device = self.device.clone();
        let child = tokio::spawn(async move {
            let (_stop, stopped) = watch::channel(false);
            let mut supervisor = Supervisor::new(None, on_device(limits)).talking(dialogue);
            let exit = supervisor.watch(&sent, process::start(&device, start).0, stopped).await;
            let mut ended = supervisor.finish(exit).await;
            if let Ended::Failed(failure) = &mut ended {
                names.translate_failure(failure);
            }
            Ok(ended)
        });
        Ok((exchange, child))
    }
}

/// Memory is up to the device.
fn on_device(limits: Limits) -> Limits {
    Limits { memory_bytes: None, ..limits }
}

/// The exchange folder for a runner's tensors on the device.
#[derive(Debug)]
pub struct Exchange {
    claim: Claim,
    device: Device,
}

impl Exchange {
    fn folder(&self) -> String {
        format!("{}/{EXCHANGE}", self.claim.folder())
    }

    /// Sends a file of `folder` there.
    ///
    /// # Errors
    /// The link broke, or the device is full.
    pub async fn send(&self, folder: &Path, name: &str) -> Result<(), DeviceRunnerError> {
        let to = format!("{}/{name}", self.folder());
        Ok(self.device.push(&folder.join(name), &to, Arc::new(|_| ())).await?)
    }

    /// Fetches a file from there into `folder`.
    ///
    /// # Errors
    /// The link broke, or the disk is full.
    pub async fn fetch(&self, folder: &Path, name: &str) -> Result<(), DeviceRunnerError> {
        let from = format!("{}/{name}", self.folder());
        Ok(self.device.pull(&from, folder.join(name), Arc::new(|_| ())).await?)
    }

    /// Removes what was sent; the next run, or `clean`, removes the rest.
    pub async fn close(self) {
        let _ = self.claim.remove().await;
    }
}
