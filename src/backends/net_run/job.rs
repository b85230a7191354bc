//! A run on a device: its parts, and what stays the same across its rounds.

use super::kept_log::KeptLog;
use super::prepare::Prepared;
use crate::backends::AfterFailure;
use crate::backends::local::Limits;
use crate::backends::on_device::link::Link;
use crate::backends::on_device::tenants::Claim;
use crate::backends::on_device::{OnDeviceError, Sdk};
use crate::backends::qnn::runner::RunTask;
use crate::backends::settings::Resolved;
use crate::devices::{Device, DeviceError};
use crate::event::{DeviceFacts, Event, Failure, LogLevel, LogLine, LogSource, RunId};
use crate::probes::CounterOptions;
use crate::session::Source;
use std::path::PathBuf;

/// Options that a run on a device has beyond those of a local run.
#[derive(Debug, Clone)]
pub struct NetRunOptions {
    /// The SDK.
    pub sdk: Sdk,
    /// Libraries for this machine, to read graphs and inputs of DLCs and context binaries with.
    pub host_runtime: Option<PathBuf>,
    /// Whether to search the system's library folders too.
    pub vendor_libraries: bool,
    /// Device counters to sample meanwhile.
    pub counters: CounterOptions,
}

/// One run.
pub struct NetRun<'a> {
    /// Where to run.
    pub device: &'a Device,
    /// With which options.
    pub options: &'a NetRunOptions,
    /// What to run.
    pub task: &'a RunTask,
    /// Limits; only the time without progress counts here.
    pub limits: Limits,
    /// Where events go.
    pub source: &'a Source,
    /// The run they belong to.
    pub run: RunId,
    /// What to do after a failure.
    pub after_failure: AfterFailure,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Setup(#[from] OnDeviceError),
    #[error("{}", .0.message)]
    Failed(Box<Failure>),
}

impl From<DeviceError> for Broken {
    fn from(error: DeviceError) -> Self {
        Self::Setup(error.into())
    }
}

/// What stays the same across all rounds.
pub(super) struct Setup {
    pub facts: DeviceFacts,
    pub prepared: Prepared,
    pub folder: String,
    pub claim: Option<Claim>,
    pub kept_log: Option<KeptLog>,
    pub resolved: Resolved,
    pub configured: bool,
}

impl NetRun<'_> {
    /// The link to the device.
    pub(super) fn link<'a>(&'a self, facts: &'a DeviceFacts) -> Link<'a> {
        Link { device: self.device, model: facts.model.as_deref(), source: self.source, run: Some(self.run) }
    }

    pub(super) async fn send(&self, event: Event) {
        self.source.send(Some(self.run), event).await;
    }

    pub(super) async fn note(&self, level: LogLevel, text: &str) {
        self.send(Event::Log(LogLine::new(level, LogSource::Qnnscope, text))).await;
    }
}
