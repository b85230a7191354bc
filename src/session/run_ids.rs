//! Run ids, assigned by the hub, so that two sources of runs in one session never use the same one.

use crate::event::RunId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Allocates run ids for one session. Clones share the counter.
#[derive(Debug, Clone, Default)]
pub struct RunIds(Arc<AtomicU32>);

impl RunIds {
    /// An id not used by any other run of the session.
    pub fn next(&self) -> RunId {
        RunId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}
