//! Files that a confined runner writes and this process puts in place.

use super::confinement::is_confined;
use crate::backends::qnn::runner::Task;
use crate::files::{Kind, Replacement, is_special};
use std::io;
use std::path::{Path, PathBuf};

/// What a run leaves outside its own folders.
#[derive(Debug, Default)]
pub struct Staged {
    context: Option<(Replacement, PathBuf)>,
    profile_log: Option<ProfileLog>,
}

/// A profile log, which a confined runner can write but not remove.
#[derive(Debug)]
struct ProfileLog {
    path: PathBuf,
    /// Whether this run created the file.
    is_new: bool,
    /// Whether to remove it if empty; qnn-net-run leaves one if a run fails.
    goes_if_empty: bool,
}

impl ProfileLog {
    fn remove_empty(&self) {
        if self.is_new && self.path.metadata().is_ok_and(|data| data.is_file() && data.len() == 0) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Staged {
    /// Creates the files the task needs, and records them in the task. If a file must not or cannot be
    /// created, the runner finds out why and reports it.
    pub fn prepare(task: &mut Task) -> Self {
        let Task::Run(task) = task else { return Self::default() };
        if !is_confined() {
            return Self::default();
        }
        let may_write = |path: &Path| task.guard().claim("--save-context", path, Kind::Context).is_ok();
        let context = task
            .save_context
            .clone()
            .filter(|path| !is_special(path) && may_write(path))
            .and_then(|path| Some((Replacement::begin(&path).ok()?, path)));
        task.staged_context = context.as_ref().map(|(part, _)| part.path().to_owned());
        let profile_log = task.profile_log.clone().map(|path| ProfileLog {
            is_new: !path.exists(),
            goes_if_empty: task.straight.is_none(),
            path,
        });
        Self { context, profile_log }
    }

    /// Puts the compiled context in place and syncs it to disk.
    pub fn place_context(&mut self) -> Result<(), (PathBuf, io::Error)> {
        match self.context.take() {
            Some((part, path)) => part.commit().map_err(|error| (path, error)),
            None => Ok(()),
        }
    }

    /// Called when there will be no profile log: an empty file would look like an empty log.
    pub fn drop_profile_log(&mut self) {
        if let Some(log) = self.profile_log.take() {
            log.remove_empty();
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(log) = self.profile_log.take().filter(|log| log.goes_if_empty) {
            log.remove_empty();
        }
    }
}
