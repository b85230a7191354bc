//! Operations on a device, however it is reached.

use super::error::DeviceError;
use super::script::{EndMarker, quote};
use super::stream::{Piece, ShellStream};
use crate::event::DeviceKind;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How long a short command may take before the device counts as hanging.
pub const COMMAND_LIMIT: Duration = Duration::from_secs(20);

/// How many final bytes to search for a script's end marker, so that long outputs are not searched
/// again and again.
const MARKER_TAIL: usize = 256;

/// A boxed future, known only by its result.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Called with the bytes of a file transferred so far.
pub type Progress = Arc<dyn Fn(u64) + Send + Sync>;

/// A way to a device: this machine's own processes and files, or the adb server.
pub trait Transport: Debug + Send + Sync {
    /// `local`, or the serial.
    fn id(&self) -> &str;

    /// How the device is reached.
    fn kind(&self) -> DeviceKind;

    /// Starts `script` in the device's shell. Standard output and standard error come back together. Failures,
    /// including those to start, are on the stream.
    fn shell(&self, script: &str) -> ShellStream;

    /// Tries from here to restore a lost link.
    fn revive(&self) -> Pending<'_, Result<(), DeviceError>>;

    /// Copies a local file to `to` on the device, readable and executable by everybody.
    fn push<'a>(&'a self, from: &'a Path, to: &'a str, progress: Progress) -> Pending<'a, Result<(), DeviceError>>;

    /// Copies a file from the device to the local `to`.
    fn pull<'a>(&'a self, from: &'a str, to: PathBuf, progress: Progress) -> Pending<'a, Result<(), DeviceError>>;
}

/// A device. Clones refer to the same one.
#[derive(Debug, Clone)]
pub struct Device(Arc<dyn Transport>);

/// A completed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output and standard error.
    pub bytes: Vec<u8>,
    /// Exit status; 128 + n for signal n.
    pub status: i32,
}

impl Output {
    /// The output as text, without control characters except line ends and tabs.
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        text.lines().map(crate::event::clean_text).collect::<Vec<_>>().join("\n")
    }
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileError {
    /// It does not exist.
    Absent,
    /// It may not be opened.
    Refused,
    /// It opened but could not be read (`Invalid argument`, `I/O error`, `No data available`).
    Unreadable(String),
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => f.write_str("not on this device"),
            Self::Refused => f.write_str("permission denied"),
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}

impl Device {
    /// A device reached through `transport`.
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self(Arc::new(transport))
    }

    /// `local`, or the serial.
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// How it is reached.
    pub fn kind(&self) -> DeviceKind {
        self.0.kind()
    }

    /// Starts a long-running script; dropping the stream ends it.
    pub fn stream(&self, script: &str) -> ShellStream {
        self.0.shell(script)
    }

    /// Runs a short script to its end. `action` describes it in errors ("reading its properties").
    pub async fn run(&self, script: &str, action: &str) -> Result<Output, DeviceError> {
        self.run_within(script, action, COMMAND_LIMIT).await
    }

    /// Like [`Device::run`], with a custom time limit.
    pub async fn run_within(&self, script: &str, action: &str, limit: Duration) -> Result<Output, DeviceError> {
        let marker = EndMarker::new();
        let mut stream = self.stream(&marker.wrap(script));
        let whole = async {
            let mut bytes = Vec::new();
            while let Some(piece) = stream.next().await {
                match piece {
                    Piece::Output(more) => bytes.extend_from_slice(&more),
                    Piece::Failed(error) => return Err(error),
                }
                // The script has ended; a background child may keep the stream open for long.
                if marker.split(&bytes[bytes.len().saturating_sub(MARKER_TAIL)..]).is_some() {
                    break;
                }
            }
            match marker.split(&bytes) {
                Some((output, status)) => Ok(Output { bytes: output.to_vec(), status }),
                None => Err(DeviceError::LinkLost { id: self.id().to_owned(), action: action.to_owned() }),
            }
        };
        tokio::time::timeout(limit, whole).await.unwrap_or_else(|_| {
            Err(DeviceError::TimedOut { id: self.id().to_owned(), action: action.to_owned(), limit })
        })
    }

    /// Like [`Device::run`], but a non-zero exit status is an error too.
    pub async fn run_ok(&self, script: &str, action: &str) -> Result<Output, DeviceError> {
        let output = self.run(script, action).await?;
        if output.status == 0 {
            return Ok(output);
        }
        let message = output.text().lines().last().unwrap_or("it printed nothing").to_owned();
        Err(DeviceError::Command {
            id: self.id().to_owned(),
            action: action.to_owned(),
            status: output.status,
            message,
        })
    }

    /// Runs all scripts in one go, each with its own end. The results are in the order of `scripts`.
    pub async fn run_each(&self, scripts: &[&str], action: &str, limit: Duration) -> Result<Vec<Output>, DeviceError> {
        let fence = EndMarker::new();
        // Each in a subshell, so that its variables and `exit` do not affect the next.
        let whole: String = scripts.iter().map(|script| fence.wrap(script)).collect();
        let printed = self.run_within(&whole, action, limit).await?;
        let mut rest = printed.bytes.as_slice();
        let mut outputs = Vec::with_capacity(scripts.len());
        for _ in scripts {
            let Some((bytes, status, more)) = fence.next(rest) else {
                return Err(DeviceError::LinkLost { id: self.id().to_owned(), action: action.to_owned() });
            };
            outputs.push(Output { bytes: bytes.to_vec(), status });
            rest = more;
        }
        Ok(outputs)
    }

    /// Reads many small files in one go. The results are in the order of `paths`.
    pub async fn read_files(&self, paths: &[&str]) -> Result<Vec<Result<Vec<u8>, FileError>>, DeviceError> {
        let scripts: Vec<String> = paths.iter().map(|path| format!("cat -- {} 2>&1", quote(path))).collect();
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let outputs = self.run_each(&scripts, "reading files", COMMAND_LIMIT).await?;
        let content = |output: Output| match output.status {
            0 => Ok(output.bytes),
            _ => Err(FileError::from_message(&output.bytes)),
        };
        Ok(outputs.into_iter().map(content).collect())
    }

    /// Reads one small file.
    pub async fn read_file(&self, path: &str) -> Result<Result<Vec<u8>, FileError>, DeviceError> {
        Ok(self.read_files(&[path]).await?.pop().unwrap_or(Err(FileError::Absent)))
    }

    /// Tries from here to restore a lost link: starts the adb server, connects to a wireless device.
    pub async fn revive(&self) -> Result<(), DeviceError> {
        self.0.revive().await
    }

    /// Copies a local file to the device.
    pub async fn push(&self, from: &Path, to: &str, progress: Progress) -> Result<(), DeviceError> {
        self.0.push(from, to, progress).await
    }

    /// Copies a file from the device to this machine.
    pub async fn pull(&self, from: &str, to: PathBuf, progress: Progress) -> Result<(), DeviceError> {
        self.0.pull(from, to, progress).await
    }
}

impl FileError {
    /// The reason from the message of `cat` or a shell.
    pub fn from_message(message: &[u8]) -> Self {
        let text = String::from_utf8_lossy(message);
        let line = text.lines().last().unwrap_or_default();
        let reason = line.rsplit(": ").next().unwrap_or_default().trim();
        match reason.to_ascii_lowercase().as_str() {
            "no such file or directory" | "not a directory" => Self::Absent,
            "permission denied" | "operation not permitted" => Self::Refused,
            _ => Self::Unreadable(crate::event::clean_text(reason)),
        }
    }
}
