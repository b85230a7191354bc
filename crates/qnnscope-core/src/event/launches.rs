//! The launches of a run: fresh processes that share its inferences.

use serde::{Deserialize, Serialize};

/// How many processes share the inferences of a run. What differs between processes (placement of threads, memory layout,
/// clocks, power state) is only in the figures when there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Launches {
    /// Launches that share the inferences that were requested.
    pub planned: u32,
    /// Launches that there may be in all: more than planned while they disagree and time allows, or fewer where loading
    /// takes long. The same as `planned` where the user asked for a number.
    pub limit: u32,
    /// Seed of the random order in which launches of several runs take turns.
    pub seed: u64,
}

impl Default for Launches {
    /// One launch.
    fn default() -> Self {
        Self { planned: 1, limit: 1, seed: 0 }
    }
}

impl Launches {
    /// True where the number is left to qnnscope.
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
