//! What can be read on a device, and why the rest cannot.
//!
//! One script reads every file of the catalogue once, on the device, using only the shell; a second one does the same
//! as root if the first was denied something and root is available. Nothing is guessed from model or version.

mod build;
mod script;

use super::counter::{Counter, Unreadable};
use crate::devices::{Device, DeviceError, Root};

/// The counters that exist, in the catalogue's order.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// The ones that can be sampled.
    pub readable: Vec<Counter>,
    /// The ones that cannot, and why.
    pub unreadable: Vec<Unreadable>,
    /// How long the device has slept since boot, microseconds, if reported (see [`super::HostClock::from_steady_us`]).
    pub suspended_us: Option<u64>,
}

impl Discovery {
    /// The counters sampled by default.
    pub fn chosen(&self) -> Vec<Counter> {
        self.readable.iter().filter(|counter| counter.chosen).cloned().collect()
    }

    /// The counters whose id, group or instance `patterns` name (globs, such as `thermal.*`); patterns that
    /// match nothing are returned as well.
    pub fn select(&self, patterns: &[String]) -> (Vec<Counter>, Vec<String>) {
        let hit = |pattern: &String, counter: &Counter| {
            super::catalogue::matches(pattern, &counter.id) || counter.id.starts_with(&format!("{pattern}."))
        };
        let chosen = self
            .readable
            .iter()
            .filter(|counter| patterns.iter().any(|pattern| hit(pattern, counter)))
            .cloned()
            .collect();
        let unknown = |pattern: &&String| !self.readable.iter().any(|counter| hit(pattern, counter));
        (chosen, patterns.iter().filter(unknown).cloned().collect())
    }
}

/// Determines what can be read on `device`; `custom` are the user's own counters, see [`super::load_custom`].
///
/// # Errors
/// The device cannot be reached. Unreadable files are not an error.
pub async fn discover(device: &Device, root: Root, custom: &[Counter]) -> Result<Discovery, DeviceError> {
    let requests = script::requests(custom);
    let mut found = script::run(device, Root::None, &requests).await?;
    if root.is_available() && root != Root::Shell && found.was_refused() {
        found.add_from_root(script::run(device, root, &requests).await?);
    }
    Ok(build::build(&found, custom, root.is_available()))
}
