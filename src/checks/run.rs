//! Runs the checks suggested by a diagnosis.

use super::gather::gather;
use super::scene::{About, Scene};
use super::settle::settle;
use super::table::confirming;
use crate::devices::Device;
use crate::diagnosis::Diagnosis;
use crate::event::CheckResult;
use std::time::Duration;

/// Time limit for all checks of one failure, so that an unresponsive device does not delay the rest.
const LIMIT: Duration = Duration::from_mins(1);

/// Runs the checks worth running after this diagnosis. Examines nothing if there are none.
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
