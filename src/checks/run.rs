//! Makes the checks of a failed run, and tells them on the stream.

use super::gather::gather;
use super::scene::{About, Scene};
use super::settle::settle;
use super::table::confirming;
use crate::devices::Device;
use crate::diagnosis::{Diagnosis, diagnose_run};
use crate::event::{CheckResult, Event, RunId};
use crate::session::Source;
use std::time::Duration;
use tokio::sync::watch;

/// Longest time that all checks of one failure may take; a device that does not answer must not hold up the rest.
const LIMIT: Duration = Duration::from_mins(1);

/// The checks that are worth making after this diagnosis. Nothing is looked at where there are none.
pub async fn confirm(diagnosis: &Diagnosis, about: About, device: &Device) -> Vec<CheckResult> {
    let rows = confirming(diagnosis);
    if rows.is_empty() {
        return Vec::new();
    }
    let looked = async {
        let mut about = about.clone();
        if about.facts.is_none() {
            about.facts = device.describe().await.ok();
        }
        gather(about, device).await
    };
    let scene = match tokio::time::timeout(LIMIT, looked).await {
        Ok(scene) => scene,
        Err(_) => {
            Scene { look: Err(format!("{} did not answer in {} s", device.id(), LIMIT.as_secs())), ..Scene::new(about) }
        }
    };
    let result = |row: &&super::Confirming| {
        let verdict = (row.test)(&scene);
        CheckResult {
            cause: row.cause.to_owned(),
            check: row.check.to_owned(),
            outcome: verdict.outcome,
            detail: verdict.detail,
        }
    };
    let mut results: Vec<CheckResult> = rows.iter().map(result).collect();
    settle(&mut results);
    results
}

/// Checks the likely causes of a run that has failed, by what its tape holds; tells nothing of one that has not. Ends at once
/// when the user wants the run to end.
pub async fn after_failure(source: &Source, run: RunId, device: &Device, stop: &watch::Receiver<bool>) {
    let Some(tape) = source.tape() else { return };
    let known = tape.with(|store| {
        let run = store.run(run)?;
        // A device that went away cannot be looked at.
        if run.failure.as_ref()?.call == "adb" {
            return None;
        }
        Some((diagnose_run(store, run)?, About::run(store, run)))
    });
    let Some((diagnosis, about)) = known else { return };
    let mut stop = stop.clone();
    let results = tokio::select! {
        results = confirm(&diagnosis, about, device) => results,
        () = stopped(&mut stop) => return,
    };
    for result in results {
        source.send(Some(run), Event::CheckFinished(Box::new(result))).await;
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
