//! The profile logs of all rounds in one file of this machine, as the tool wrote them: each begins with its own header.

use super::NetRunError;
use crate::event::clean_text;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that takes the logs.
#[derive(Debug)]
pub struct KeptLog {
    path: PathBuf,
    file: File,
}

impl KeptLog {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// Better told before the run than after it.
    pub fn create(path: &Path) -> Result<Self, NetRunError> {
        let file = File::create(path).map_err(|error| {
            NetRunError::Input(format!("cannot write {}: {error}", clean_text(&path.to_string_lossy())))
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds what a round wrote.
    ///
    /// # Errors
    /// The system's, with the file's name.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", clean_text(&self.path.to_string_lossy())))
        };
        self.file.write_all(bytes).map_err(named)
    }
}
