//! Why a program on a device cannot be tapped.

use crate::backends::on_device::OnDeviceError;
use crate::devices::DeviceError;
use std::path::PathBuf;
use thiserror::Error;

/// Something on the way to the program on the device is missing or wrong.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DeviceTapError {
    #[error("{program} is not a file on {device}")]
    NoProgram { program: String, device: String },
    #[error("{program} cannot be executed on {device}: it lacks execute permission")]
    NotExecutable { program: String, device: String },
    #[error("there is no tap library for {program}, {needed}: {}", looked.join("; "))]
    NoLibrary { program: String, needed: String, looked: Vec<String> },
    #[error("{path} cannot be the tap for {program}: it is {found}; the program is {needed}")]
    WrongLibrary { path: PathBuf, program: String, found: String, needed: String },
    #[error(
        "{program} uses Android's C library, where the tap only loads under a backend's name, and the folder with the backends on {device} is unknown"
    )]
    NoFolder { program: String, device: String },
    #[error("{folder} on {device} has none of {names}")]
    NoBackends { folder: String, device: String, names: String },
    #[error("there is no app {package} on {device}")]
    NoPackage { package: String, device: String },
    #[error("{package} on {device} is not debuggable, so nothing can be loaded into it")]
    NotDebuggable { package: String, device: String },
    #[error("{device} does not let the shell act as {package}: {message}")]
    AppRefused { package: String, device: String, message: String },
    #[error("the name of {package} is too long for the property that starts it with the tap")]
    LongName { package: String },
    #[error("{program} did not start on {device}")]
    NotStarted { program: String, device: String },
    #[error("{program} disappeared from {device} without an exit status")]
    Gone { program: String, device: String },
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    NetRun(#[from] OnDeviceError),
    #[error("cannot {action}: {source}")]
    Io { action: String, source: std::io::Error },
}

impl DeviceTapError {
    /// What to do next, if known.
    pub fn advice(&self) -> Option<String> {
        let text = match self {
            Self::NoProgram { .. } => "push it first: adb push my_app /data/local/tmp/, and name it by its full path",
            Self::NotExecutable { program, .. } => return Some(format!("adb shell chmod 755 {program}")),
            Self::NoLibrary { .. } | Self::WrongLibrary { .. } => {
                "build it for the program's system and processor, and name it with --tap-library FILE: for Android `cargo ndk -t \
                 arm64-v8a build --release -p qnnscope-tap`, for Linux boards `cargo build --release -p qnnscope-tap --target \
                 aarch64-unknown-linux-gnu`"
            }
            Self::NoFolder { .. } | Self::NoBackends { .. } => {
                "name the folder on the device with the QNN libraries that the program uses: --swap DIR"
            }
            Self::NoPackage { .. } => "`adb shell pm list packages` lists the installed ones",
            Self::NotDebuggable { .. } => {
                "install a build with android:debuggable=\"true\" (a debug build); release builds cannot be tapped"
            }
            Self::AppRefused { .. } | Self::LongName { .. } => {
                "package the variables with the app instead: lib/arm64-v8a/wrap.sh, as docs/tap.md describes"
            }
            Self::NotStarted { .. } => "start it by hand and read its messages: `adb logcat` shows those of apps",
            Self::Gone { .. } => {
                "the device may have restarted or killed all shell processes: run it again; earlier data is kept"
            }
            Self::Device(error) => return error.advice(),
            Self::NetRun(error) => return error.advice(),
            Self::Io { .. } => return None,
        };
        Some(text.to_owned())
    }

    /// True if something needed is missing: exit status 3.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NoProgram { .. } | Self::NoPackage { .. } | Self::NoLibrary { .. } | Self::NoBackends { .. } => true,
            Self::Device(error) => error.is_link(),
            Self::NetRun(error) => error.is_missing(),
            _ => false,
        }
    }

    /// True if the request itself was wrong: exit status 2.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::NotExecutable { .. }
            | Self::WrongLibrary { .. }
            | Self::NoFolder { .. }
            | Self::NotDebuggable { .. } => true,
            Self::NetRun(error) => error.is_bad_input(),
            _ => false,
        }
    }
}
