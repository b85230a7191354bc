//! Files that a confined runner writes and this process puts in place.

use super::process::is_confined;
use crate::backends::qnn::runner::Task;
use crate::files::is_special;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What a run leaves behind outside of folders that are its own.
#[derive(Debug, Default)]
pub struct Staged {
    context: Option<(NamedTempFile, PathBuf)>,
    profile_log: Option<PathBuf>,
}

impl Staged {
    /// Makes the files that the task needs, and names them in it. Where one cannot be made, the runner finds out why.
    pub fn prepare(task: &mut Task) -> Self {
        let Task::Run(task) = task else { return Self::default() };
        if !is_confined() {
            return Self::default();
        }
        let context = task.save_context.clone().filter(|path| !is_special(path)).and_then(|path| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some((NamedTempFile::new_in(folder).ok()?, path))
        });
        task.staged_context = context.as_ref().map(|(file, _)| file.path().to_owned());
        Self { context, profile_log: task.profile_log.clone() }
    }

    /// Puts the compiled context in place.
    pub fn place_context(&mut self) -> Result<(), (PathBuf, io::Error)> {
        match self.context.take() {
            Some((file, path)) => file.persist(&path).map(drop).map_err(|error| (path, error.error)),
            None => Ok(()),
        }
    }
}

impl Drop for Staged {
    /// An empty profile log would look like a log of nothing.
    fn drop(&mut self) {
        if let Some(path) = &self.profile_log
            && path.metadata().is_ok_and(|data| data.is_file() && data.len() == 0)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}
