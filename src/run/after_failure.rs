//! Checks after a failure: confirms its likely causes and reports the results on the stream.

use crate::backends::asked_to_stop;
use crate::checks::{About, confirm};
use crate::devices::Device;
use crate::diagnosis::diagnose_run;
use crate::event::{Event, RunId};
use crate::session::Source;
use std::pin::Pin;
use tokio::sync::watch;

/// Checks the likely causes of a failed run, based on its tape; does nothing for other runs. Ends at once if
/// the user ends the run.
pub fn after_failure<'a>(
    source: &'a Source,
    run: RunId,
    device: &'a Device,
    stop: &'a watch::Receiver<bool>,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(look(source, run, device, stop))
}

async fn look(source: &Source, run: RunId, device: &Device, stop: &watch::Receiver<bool>) {
    let Some(tape) = source.tape() else { return };
    let known = tape.with(|store| {
        let run = store.run(run)?;
        // A lost device cannot be examined.
        if run.failure.as_ref()?.call == "adb" {
            return None;
        }
        Some((diagnose_run(store, run)?, About::run(store, run)))
    });
    let Some((diagnosis, about)) = known else { return };
    let mut stop = stop.clone();
    let results = tokio::select! {
        results = confirm(&diagnosis, about, device) => results,
        () = asked_to_stop(&mut stop) => return,
    };
    for result in results {
        source.send(Some(run), Event::CheckFinished(Box::new(result))).await;
    }
}
