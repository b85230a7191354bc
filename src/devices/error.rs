//! Errors between here and a device.

use crate::text::bytes_text;
use std::time::Duration;
use thiserror::Error;

/// A device, or the way to it, failed a request. The message says what failed and why;
/// [`DeviceError::advice`] says what to do next.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DeviceError {
    #[error("no adb server answers at {server}: {reason}")]
    NoServer { server: String, reason: String },
    #[error("adb is not installed: not found on $PATH")]
    NoAdb,
    #[error("the adb server could not be started: {reason}")]
    ServerStart { reason: String },
    #[error("{text} is not an adb server address: {reason}")]
    ServerAddress { text: String, reason: String },
    #[error("no device {id} is attached{others}")]
    NotFound { id: String, others: String },
    #[error("several devices are attached ({}) and none was chosen", ids.join(", "))]
    Ambiguous { ids: Vec<String> },
    #[error("device {id} is {state}")]
    NotReady { id: String, state: super::DeviceState },
    #[error("the connection to {id} was lost while {action}")]
    LinkLost { id: String, action: String },
    #[error("{id} did not answer within {} s while {action}", limit.as_secs_f64())]
    TimedOut { id: String, action: String, limit: Duration },
    #[error("adb refused {action}: {message}")]
    Refused { action: String, message: String },
    #[error("{action} failed on {id} (exit status {status}): {message}")]
    Command { id: String, action: String, status: i32, message: String },
    #[error("cannot {action}: {source}")]
    Io { action: String, source: std::io::Error },
    #[error(
        "{id} has too little space for {what}: it needs {} plus {} for logs and outputs; {} are free in {folder}",
        bytes_text(*needed_bytes as f64), bytes_text(*reserve_bytes as f64), bytes_text(*free_bytes as f64)
    )]
    NoSpace { id: String, what: String, folder: String, needed_bytes: u64, reserve_bytes: u64, free_bytes: u64 },
}

impl DeviceError {
    /// What to do next, if known.
    pub fn advice(&self) -> Option<String> {
        let text = match self {
            Self::NoAdb => {
                "install adb (Debian, Ubuntu: sudo apt-get install adb; macOS: brew install android-platform-tools; \
                 otherwise the platform tools of developer.android.com); local runs work without it"
            }
            Self::NoServer { .. } => {
                "start it with `adb start-server`, or name another one with --adb-server HOST:PORT"
            }
            Self::ServerStart { .. } => "run `adb start-server` by hand and read its messages",
            Self::ServerAddress { .. } => "write HOST:PORT, such as 127.0.0.1:5037 (or tcp:HOST:PORT)",
            Self::NotFound { .. } => {
                "`qnnscope devices` lists what is attached; check the cable and USB debugging, or `qnnscope connect \
                 HOST:PORT` for wireless adb"
            }
            Self::Ambiguous { .. } => "choose one with --device SERIAL or $ANDROID_SERIAL",
            Self::NotReady { state, .. } => return state.advice().map(ToOwned::to_owned),
            Self::LinkLost { .. } => {
                "check the cable or the network, and try again; `qnnscope devices` shows whether the device is back"
            }
            Self::TimedOut { .. } => "the device is busy or hangs: check whether `adb shell` answers at all",
            Self::NoSpace { .. } => {
                "free space on the device; `qnnscope clean --device SERIAL` removes what qnnscope put there"
            }
            Self::Refused { message, .. } if message.contains("No space left") => {
                "free space on the device; `qnnscope clean --device SERIAL` removes what qnnscope put there"
            }
            Self::Refused { .. } | Self::Command { .. } | Self::Io { .. } => return None,
        };
        Some(text.to_owned())
    }

    /// True if the device may come back, so that waiting makes sense.
    pub fn is_link(&self) -> bool {
        matches!(self, Self::LinkLost { .. } | Self::NotFound { .. } | Self::NotReady { .. } | Self::NoServer { .. })
    }
}
