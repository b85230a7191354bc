//! Makes the checks that a diagnosis calls for.

use super::gather::gather;
use super::scene::{About, Scene};
use super::table::confirming;
use crate::devices::Device;
use crate::diagnosis::Diagnosis;
use crate::event::CheckResult;
use std::time::Duration;

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
    rows.iter().map(result).collect()
}
