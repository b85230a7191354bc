//! The op at which a backend stopped, as composed, with the backend's messages about it.

use crate::Backend;
use crate::models::Op;
use serde::{Deserialize, Serialize};

/// An op that a backend refused while composing a graph, or could not build while finalizing it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Backend.
    pub backend: Backend,
    /// Hexagon architecture the graph is for, such as `v75`, if known.
    #[serde(default)]
    pub hardware: Option<String>,
    /// Graph; empty if the log names only the op.
    pub graph: String,
    /// The op. If only a log names it, just its name (and its type, if logged) is known.
    pub op: Op,
    /// The backend's own messages about it, oldest first.
    pub log: Vec<String>,
    /// The log's numbers for the op's tensors: inputs, then outputs; empty if unknown.
    #[serde(default)]
    pub tensor_ids: Vec<u32>,
    /// The answer of the backend's validator when asked about the op after another call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<u64>,
}
