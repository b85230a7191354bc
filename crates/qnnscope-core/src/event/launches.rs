//! The launches of a run: fresh processes that share its inferences.

use serde::{Deserialize, Serialize};

/// How many processes share the inferences of a run. Variation between processes (thread placement, memory layout,
/// clocks, power state) shows in the figures only if there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Launches {
    /// Launches that share the requested inferences.
    pub planned: u32,
    /// Maximum number of launches: above `planned` so that more can be made while they disagree and time allows, lower
    /// if loading takes long. Equal to `planned` if the user gave a number.
    pub limit: u32,
    /// Seed of the random order in which launches of several runs alternate.
    pub seed: u64,
}

impl Default for Launches {
    /// One launch.
    fn default() -> Self {
        Self { planned: 1, limit: 1, seed: 0 }
    }
}

impl Launches {
    /// True if qnnscope chooses the number.
    pub fn is_automatic(&self) -> bool {
        self.limit > self.planned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Mode;

    #[test]
    fn plans_of_earlier_versions_are_one_launch() {
        let mode: Mode = serde_json::from_str(r#"{"rate_hz":30.0}"#).unwrap();
        assert_eq!(mode.launches, Launches { planned: 1, limit: 1, seed: 0 });
        assert!(!mode.launches.is_automatic());
    }
}
