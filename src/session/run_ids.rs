//! Names of runs: the hub's, so that two makers of runs in one session never take the same one.

use crate::event::RunId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Hands out ids of the runs of one session. Clones count on together.
#[derive(Debug, Clone, Default)]
pub struct RunIds(Arc<AtomicU32>);

impl RunIds {
    /// An id that no other run of the session has.
    pub fn next(&self) -> RunId {
        RunId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}
