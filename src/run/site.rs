//! Where runs are made, and with which driver.

use crate::backends::Backend;
use crate::backends::device_runner::DeviceRunnerOptions;
use crate::backends::net_run::NetRunOptions;
use crate::backends::runtime::RuntimeDir;
use crate::devices::Device;
use crate::event::{Driver, LOCAL_DEVICE};
use crate::files::Guard;
use crate::probes::CounterOptions;
use std::path::Path;

/// A place for runs, with what they need there.
#[derive(Debug, Clone)]
pub enum Site {
    /// On this machine, in a runner child.
    Here {
        /// Its libraries.
        runtime: RuntimeDir,
        /// Counters sampled like a device's: on a Snapdragon board, or if the user names some.
        counters: Option<CounterOptions>,
    },
    /// On a device, by the SDK's qnn-net-run.
    NetRun {
        /// The device.
        device: Device,
        /// Its options.
        options: NetRunOptions,
        /// True if the libraries only emulate the HTP.
        emulated: bool,
    },
    /// On a device, by qnnscope's own runner.
    DeviceRunner {
        /// The device.
        device: Device,
        /// Its options.
        options: DeviceRunnerOptions,
    },
}

impl Site {
    /// True for this machine.
    pub fn is_here(&self) -> bool {
        matches!(self, Self::Here { .. })
    }

    /// The device's name on the stream.
    pub fn device_id(&self) -> &str {
        match self {
            Self::Here { .. } => LOCAL_DEVICE,
            Self::NetRun { device, .. } | Self::DeviceRunner { device, .. } => device.id(),
        }
    }

    /// The driver used there. A model may need another one:
    /// [`RunTask::onnx`](crate::backends::qnn::runner::RunTask::onnx).
    pub fn driver(&self) -> Driver {
        match self {
            Self::Here { .. } => Driver::Runner,
            Self::NetRun { .. } => Driver::NetRun,
            Self::DeviceRunner { .. } => Driver::DeviceRunner,
        }
    }

    /// True if this backend is simulated there.
    pub fn simulates(&self, backend: Backend) -> bool {
        match self {
            Self::Here { .. } => backend.is_simulated_here(),
            Self::NetRun { emulated, .. } => *emulated && backend == Backend::Htp,
            Self::DeviceRunner { options, .. } => backend == Backend::Htp && options.libraries.is_emulated(),
        }
    }

    /// The folder of libraries that a task on this machine loads; empty for a device.
    pub fn runtime_dir(&self) -> &Path {
        match self {
            Self::Here { runtime, .. } => &runtime.path,
            Self::NetRun { .. } | Self::DeviceRunner { .. } => Path::new(""),
        }
    }

    /// Lists the files sent from this machine, so that no output of a run overwrites them.
    pub fn protect(&self, guard: &mut Guard) {
        match self {
            Self::Here { .. } => {}
            Self::NetRun { options, .. } => {
                options.sdk.folders().iter().for_each(|folder| guard.reads_tree("the SDK's file", folder));
                options.host_runtime.iter().for_each(|folder| guard.reads_folder("the library", folder));
            }
            Self::DeviceRunner { options, .. } => {
                guard.reads("the runner", &options.runner);
                guard.reads_tree("the library", &options.libraries.folder());
            }
        }
    }
}
