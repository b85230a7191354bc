//! Outcome of a tapped program.

use super::super::{CliError, setup};
use crate::session::{Hub, RecordError};
use crate::store::Store;
use crate::tap::Ended;

/// How a program ended, and the store of everything it did.
pub struct TapOutcome {
    pub store: Store,
    /// How the program ended; `None` if we started none.
    pub ended: Option<Ended>,
    pub record_error: Option<RecordError>,
    /// Why it is unknown how the program ended.
    pub failure: Option<CliError>,
}

/// Runs `work`, which drops the last source, and closes the session; returns its result and the store of all
/// that happened.
pub async fn folded<T>(hub: &mut Hub, work: impl Future<Output = T>) -> (T, Store) {
    let mut store = Store::new();
    let fold = async {
        while let Some(record) = hub.next().await {
            store.apply(&record);
        }
    };
    let (result, ()) = tokio::join!(work, fold);
    for record in hub.close() {
        store.apply(&record);
    }
    setup::close_session(hub, Some(&store));
    (result, store)
}
