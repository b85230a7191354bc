//! Judging the outputs of a run, when its first launch is over.

use crate::event::OutputsJudged;
use crate::truth::Truth;
use std::sync::Arc;
use tempfile::TempDir;

/// What the outputs of a run are judged by.
#[derive(Debug, Clone)]
pub struct Judging {
    /// What is right.
    pub truth: Arc<Truth>,
    /// Where the outputs go that the user does not want to keep.
    pub folder: Option<Arc<TempDir>>,
}

impl Judging {
    /// Judges the outputs in these files; those that nobody wants are removed.
    pub(super) async fn judge(&self, files: Vec<String>) -> Option<OutputsJudged> {
        let own = self.clone();
        let judged = tokio::task::spawn_blocking(move || {
            let judged = own.truth.judge(&files);
            if let Some(folder) = &own.folder {
                // The same run may be made again.
                for entry in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                    let _ = std::fs::remove_dir_all(entry.path());
                }
            }
            judged
        });
        judged.await.ok()
    }
}
