//! The profile logs of all rounds in one local file, as written by the tool: each begins with its own header.

use crate::backends::on_device::OnDeviceError;
use crate::backends::qnn::runner::RunTask;
use crate::event::clean_text;
use crate::files::{Kind, OutputFile};
use std::io::{self, Write};
use std::path::PathBuf;

/// The file for the logs; locked while open.
#[derive(Debug)]
pub struct KeptLog {
    path: PathBuf,
    file: OutputFile,
}

impl KeptLog {
    /// Creates the requested file, or empties it.
    ///
    /// # Errors
    /// A file that must not or cannot be written: better to report this before the run than after it.
    pub fn open(task: &RunTask) -> Result<Option<Self>, OnDeviceError> {
        let Some(path) = &task.profile_log else { return Ok(None) };
        let refused = |text: String| OnDeviceError::Input(clean_text(&text));
        let mut file = task
            .guard()
            .open("--save-profile-log", path, Kind::ProfileLog)
            .map_err(|error| refused(error.to_string()))?;
        file.empty().map_err(|error| refused(format!("cannot write {}: {error}", path.display())))?;
        Ok(Some(Self { path: path.clone(), file }))
    }

    /// Appends a round's log and syncs it to disk.
    ///
    /// # Errors
    /// The system's error, with the file's name.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", clean_text(&self.path.to_string_lossy())))
        };
        self.file.write_all(bytes).and_then(|()| self.file.sync()).map_err(named)
    }
}
