//! What a lane remembers about a run, so that a failure can be examined immediately.

use crate::event::{Event, Record, RunId};
use crate::store::Store;
use std::sync::{Arc, Mutex};

/// A store with the facts and the log of one run, without its samples. Clones share it.
#[derive(Debug, Clone)]
pub struct Tape {
    run: RunId,
    store: Arc<Mutex<Store>>,
}

impl Tape {
    /// An empty tape for a run.
    pub fn new(run: RunId) -> Self {
        Self { run, store: Arc::default() }
    }

    /// The run it records.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Inspects its contents. `look` must not block: the run's events wait for it.
    pub fn with<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        // Folding does not panic midway; a poisoned store is still the best available.
        look(&self.store.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub(super) fn take(&self, t_us: u64, run: Option<RunId>, event: &Event) {
        if run != Some(self.run) || is_sample(event) {
            return;
        }
        let record = Record { seq: 0, t_us, run, event: event.clone() };
        self.store.lock().unwrap_or_else(std::sync::PoisonError::into_inner).apply(&record);
    }
}

/// True for frequent events that are irrelevant to causes.
fn is_sample(event: &Event) -> bool {
    matches!(
        event,
        Event::Inferences(_)
            | Event::OpTimes(_)
            | Event::OpsDeclared(_)
            | Event::Metrics(_)
            | Event::Memory(_)
            | Event::Counters(_)
            | Event::FilesSent(_)
    )
}
