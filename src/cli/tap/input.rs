//! What a program on a device reads: our own standard input, if it is a file.

use super::super::CliError;
use crate::backends::local::Scratch;
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::path::{Path, PathBuf};

/// The unread rest of a file that is our standard input.
pub struct Input {
    path: PathBuf,
    _folder: Scratch,
}

impl Input {
    /// Copies it if it is a file with something left to read. This moves the offset that other readers share
    /// to the end.
    pub fn of_stdin() -> Result<Option<Self>, CliError> {
        let io = |action: &str| {
            let action = action.to_owned();
            move |source| CliError::Io { action, source }
        };
        let stdin = std::io::stdin();
        let is_file = fstat(&stdin).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if !is_file {
            return Ok(None);
        }
        let folder = Scratch::new().map_err(io("make a folder for temporary files"))?;
        let path = folder.path().join("stdin");
        let mut copy = File::create_new(&path).map_err(io("copy the standard input"))?;
        let bytes = std::io::copy(&mut stdin.lock(), &mut copy).map_err(io("copy the standard input"))?;
        Ok((bytes > 0).then_some(Self { path, _folder: folder }))
    }

    /// Path of the copy.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Refuses piped input: it would be lost silently, and waiting for its end might take forever.
pub fn refuse_pipe() -> Result<(), CliError> {
    let stdin = std::io::stdin();
    let is_pipe = fstat(&stdin)
        .is_ok_and(|stat| matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket));
    if is_pipe && rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0) {
        let text = "piped input does not reach a program on a device: write it to a file and use < FILE";
        return Err(CliError::Usage(text.to_owned()));
    }
    Ok(())
}
