//! Why a runner cannot be used on a device.

use crate::backends::local::RunnerError;
use crate::backends::on_device::OnDeviceError;
use crate::devices::DeviceError;
use crate::models::FormatError;
use std::path::PathBuf;
use thiserror::Error;

/// Something between the user's files and the runner on the device is missing or wrong.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DeviceRunnerError {
    #[error("there is no runner for {device}: {}", looked.join("; "))]
    NoRunner { device: String, looked: Vec<String> },
    #[error("{path} cannot be the runner for {device}: it is {found}, and the device needs {needed}")]
    WrongMachine { path: PathBuf, device: String, found: String, needed: String },
    #[error("{path} cannot be the runner for {device}: its loader {loader} is missing there")]
    NoLoader { path: PathBuf, device: String, loader: String },
    #[error("there are no QNN libraries for {device} ({needed}): {}", looked.join("; "))]
    NoLibraries { device: String, needed: String, looked: Vec<String> },
    #[error("{0}")]
    Input(String),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error(transparent)]
    Request(#[from] RunnerError),
    #[error(transparent)]
    NetRun(#[from] OnDeviceError),
    #[error("cannot {action}: {source}")]
    Io { action: String, source: std::io::Error },
}

impl DeviceRunnerError {
    /// What to do next, if known.
    pub fn advice(&self) -> Option<String> {
        let text = match self {
            Self::NoRunner { .. } => {
                "build one (for Android: `cargo ndk -t arm64-v8a build --release`) and give it with --runner FILE, or put \
                 it in one of these folders"
            }
            Self::WrongMachine { .. } | Self::NoLoader { .. } => BUILD_ADVICE,
            Self::NoLibraries { .. } => {
                "set $QNN_SDK_ROOT (or $QAIRT_SDK_ROOT) to the root of Qualcomm's SDK, or name a folder with libraries for \
                 the device: --runtime DIR"
            }
            Self::Device(error) => return error.advice(),
            Self::NetRun(error) => return error.advice(),
            Self::Input(_) | Self::Format(_) | Self::Request(_) | Self::Io { .. } => return None,
        };
        Some(text.to_owned())
    }

    /// True if something needed is missing: exit status 3.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NoRunner { .. } | Self::NoLibraries { .. } => true,
            Self::Device(error) => error.is_link(),
            Self::NetRun(error) => error.is_missing(),
            _ => false,
        }
    }

    /// True if the request itself was wrong: exit status 2.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::WrongMachine { .. } | Self::NoLoader { .. } | Self::Input(_) | Self::Format(_) | Self::Request(_) => {
                true
            }
            Self::NetRun(error) => error.is_bad_input(),
            _ => false,
        }
    }

    /// The failed step, as named in failures.
    pub fn call(&self) -> &'static str {
        match self {
            Self::Device(_) | Self::NetRun(OnDeviceError::Device(_)) => "adb",
            Self::Input(_) | Self::NetRun(OnDeviceError::Input(_)) => "inputs",
            Self::Format(_) => "identify",
            _ => "prepare",
        }
    }
}

/// What to do about a runner that the device cannot execute.
pub const BUILD_ADVICE: &str = "build the runner for the system and processor of the device: for Android \
                                `cargo ndk -t arm64-v8a build --release`, for Linux boards `cargo build --release --target \
                                aarch64-unknown-linux-gnu`";
