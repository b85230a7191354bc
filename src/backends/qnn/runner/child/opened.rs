//! A backend with a device, for tasks other than runs.

use super::emit::Emitter;
use super::failed::Failed;
use super::model::{open_library, runtime_info};
use crate::backends;
use crate::backends::qnn::api::{Backend, Device, DeviceTarget, Library, Logger, VersionPolicy};
use crate::event::{Event, LogLevel, RuntimeInfo, Stage};
use std::path::Path;
use std::rc::Rc;

/// The hardware a task opens a backend on.
#[derive(Debug)]
pub struct Hardware<'a> {
    pub runtime_dir: &'a Path,
    pub backend: backends::Backend,
    pub allow_unknown_runtime: bool,
    pub target: DeviceTarget,
}

/// A backend on the task's hardware.
pub struct Opened {
    pub library: Rc<Library>,
    pub runtime: RuntimeInfo,
    pub backend: Rc<Backend>,
    pub device: Rc<Device>,
}

/// For the supervisor: where a crash happened.
pub fn begin(emitter: &Emitter, stage: Stage) {
    emitter.event(Event::StageStarted { stage });
}

impl Hardware<'_> {
    /// Opens the library and creates backend and device.
    pub fn open(&self, level: LogLevel, emitter: &Emitter) -> Result<Opened, Failed> {
        begin(emitter, Stage::LibraryLoad);
        let policy = if self.allow_unknown_runtime { VersionPolicy::CountSlots } else { VersionPolicy::KnownOnly };
        let library = open_library(self.runtime_dir, self.backend, policy)?;
        let runtime = runtime_info(&library);
        begin(emitter, Stage::BackendCreate);
        let at = |e| Failed::qnn(Stage::BackendCreate, e);
        let logger = Logger::create(&library, level).map_err(at)?;
        let backend = Backend::create(&logger).map_err(at)?;
        begin(emitter, Stage::DeviceCreate);
        let (device, _) = Device::create(&backend, self.target).map_err(|e| Failed::qnn(Stage::DeviceCreate, e))?;
        Ok(Opened { library, runtime, backend, device })
    }
}
