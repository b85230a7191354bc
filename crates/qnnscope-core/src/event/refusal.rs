//! The op at which a backend stopped, as it was composed, with what the backend said about it.

use crate::Backend;
use crate::models::Op;
use serde::{Deserialize, Serialize};

/// An op that a backend refused while it composed a graph, or could not build while it finalized it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Backend.
    pub backend: Backend,
    /// Hexagon architecture that the graph is for, such as `v75`, where it is known.
    #[serde(default)]
    pub hardware: Option<String>,
    /// Graph; empty where the log names the op alone.
    pub graph: String,
    /// The op. Of one that only a log names, nothing but its name (and its type, if the log has it) is known.
    pub op: Op,
    /// The backend's own words about it, oldest first.
    pub log: Vec<String>,
    /// Numbers by which the log calls the op's tensors: its inputs, then its outputs; nothing where they are not known.
    #[serde(default)]
    pub tensor_ids: Vec<u32>,
    /// What the backend's validator answered when it was asked about the op after another call had failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<u64>,
}
