//! Judges the outputs of a run after its first launch.

use crate::event::OutputsJudged;
use crate::truth::Truth;
use std::sync::Arc;
use tempfile::TempDir;

/// The reference for judging a run's outputs.
#[derive(Debug, Clone)]
pub struct Judging {
    /// The correct outputs.
    pub truth: Arc<Truth>,
    /// Folder for outputs that the user does not want to keep.
    pub folder: Option<Arc<TempDir>>,
}

impl Judging {
    /// Judges the outputs in these files; removes them if they are not to be kept.
    pub(super) async fn judge(&self, files: Vec<String>) -> Option<OutputsJudged> {
        let own = self.clone();
        let judged = tokio::task::spawn_blocking(move || {
            let judged = own.truth.judge(&files);
            if let Some(folder) = &own.folder {
                // The same run may be repeated.
                for entry in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                    let _ = std::fs::remove_dir_all(entry.path());
                }
            }
            judged
        });
        judged.await.ok()
    }
}
