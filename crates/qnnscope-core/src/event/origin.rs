//! The origin of a run measured by another tool.

use crate::ProfilingLevel;
use serde::{Deserialize, Serialize};

/// The other tool's file that a run was read from, and the nature of its latencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Kind of the file, such as `qnn-profile-log` or `ai-hub`.
    pub kind: String,
    /// Display name, such as `AI Hub profile`.
    pub label: String,
    /// Profiling level of the latencies, as far as the file shows.
    pub clean_level: ProfilingLevel,
    /// True if the file has the start of each inference. Else only the order is known: inferences are placed back to
    /// back, and no throughput follows.
    pub has_moments: bool,
    /// True if the latency is a single figure computed by the tool, not that of an inference.
    pub is_summary: bool,
}

#[cfg(test)]
mod tests {
    use crate::event::{Driver, RunPlan};

    #[test]
    fn plans_of_own_runs_have_no_origin_and_do_not_write_one() {
        let text = r#"{"device":"local","backend":"cpu","model":"m","warmup":1,"budget":{"iterations":3},
            "profiling":"detailed","profiling_budget":null,"simulated":false}"#;
        let plan: RunPlan = serde_json::from_str(text).unwrap();
        assert_eq!((plan.driver, &plan.mode.origin), (Driver::Runner, &None));
        assert!(!serde_json::to_string(&plan).unwrap().contains("origin"));
    }
}
