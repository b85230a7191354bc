//! Why a run on a device cannot start.

use crate::devices::DeviceError;
use crate::models::FormatError;
use std::path::PathBuf;
use thiserror::Error;

/// Something between the user's files and the device is missing or wrong.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum OnDeviceError {
    #[error("no SDK with qnn-net-run found: {}", looked.join("; "))]
    NoSdk { looked: Vec<String> },
    #[error("the SDK in {root} has no tools for {device}: it has none of {}", wanted.join(", "))]
    NoTarget { root: PathBuf, device: String, wanted: Vec<String> },
    #[error("the SDK in {root} lacks {file}, which {why}")]
    NoFile { root: PathBuf, file: String, why: String },
    #[error("the Hexagon architecture of {device} is unknown (SoC {soc})")]
    NoArch { device: String, soc: String },
    #[error("{device} has no HTP: its Hexagon is {arch}")]
    NoHtp { device: String, arch: String },
    #[error("{file} does not run on {device}: it is {found}, and the device needs {needed}")]
    WrongMachine { file: PathBuf, device: String, found: String, needed: String },
    #[error("{file} does not start on {device}: its loader {loader} is missing there")]
    NoLoader { file: PathBuf, device: String, loader: String },
    #[error("{file} does not start on {device}: it needs {}, found neither in the SDK nor on the device", names.join(", "))]
    NoNeeded { file: PathBuf, device: String, names: Vec<String> },
    #[error("the inputs of {model} are unknown: {reason}")]
    NoInputs { model: PathBuf, reason: String },
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("{error}")]
    Gone { error: DeviceError, advice: String },
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error("{0}")]
    Input(String),
    #[error("cannot {action}: {source}")]
    Io { action: String, source: std::io::Error },
}

impl OnDeviceError {
    /// What to do next, if known.
    pub fn advice(&self) -> Option<String> {
        let text = match self {
            Self::NoSdk { .. } => {
                "set $QNN_SDK_ROOT (or $QAIRT_SDK_ROOT) to the root of Qualcomm's SDK, or give --runtime DIR; a runner built \
                 for the device needs no SDK tool: --runner FILE"
            }
            Self::NoTarget { .. } => {
                "use an SDK with tools for this device, or give a runner built for it: --runner FILE"
            }
            Self::NoFile { .. } => "the SDK is incomplete or of another version: reinstall it",
            Self::NoArch { .. } => {
                "name it with --htp-arch, such as v75; `qnnscope devices` shows what is known about the SoC"
            }
            Self::NoHtp { .. } => "run on cpu or gpu",
            Self::WrongMachine { .. } | Self::NoLoader { .. } => {
                "the files in this SDK folder do not match its name, or are for another system: reinstall the SDK, or name \
                 the right one with --runtime DIR"
            }
            Self::NoNeeded { .. } => {
                "put the missing libraries into the SDK's library folder for this target; qnnscope sends them with the tool"
            }
            Self::NoInputs { .. } => {
                "give them with --input NAME=FILE or --input-list FILE; for DLCs and context binaries, a runtime on this \
                 machine can read them: `qnnscope runtime install`"
            }
            Self::Device(error) => return error.advice(),
            Self::Gone { advice, .. } => return Some(advice.clone()),
            Self::Format(_) | Self::Input(_) | Self::Io { .. } => return None,
        };
        Some(text.to_owned())
    }

    /// True if something needed is missing: exit status 3.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NoSdk { .. }
            | Self::NoTarget { .. }
            | Self::NoFile { .. }
            | Self::NoHtp { .. }
            | Self::NoNeeded { .. } => true,
            Self::Device(error) | Self::Gone { error, .. } => error.is_link(),
            _ => false,
        }
    }

    /// True if the request itself was wrong: exit status 2.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Format(_)
                | Self::Input(_)
                | Self::NoInputs { .. }
                | Self::NoArch { .. }
                | Self::WrongMachine { .. }
                | Self::NoLoader { .. }
        )
    }
}
