//! Which nodes of an ONNX model ran where, and why.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What ran a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeProvider {
    /// QNN, on the backend of the run.
    Qnn,
    /// ONNX Runtime's own kernels on the processor.
    Cpu,
    /// Nothing: ONNX Runtime folded it while loading the model, or merged it into another node.
    None,
}

impl NodeProvider {
    /// Lower-case name, as in the result document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qnn => "qnn",
            Self::Cpu => "cpu",
            Self::None => "none",
        }
    }
}

/// Where a node of the model ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodePlacement {
    /// Name of the node in the model; for inserted nodes, ONNX Runtime's own name.
    pub node: String,
    /// Operator.
    pub op_type: String,
    /// What ran it.
    pub provider: NodeProvider,
    /// Its partition, numbered from 0, if QNN ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<usize>,
    /// Names of the QNN ops it became, as the backend reports them; none if merged into another op.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qnn_ops: Vec<String>,
    /// Mean time per inference under profiling, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_us: Option<f64>,
    /// True if the time was derived from cycles.
    #[serde(default)]
    pub time_derived: bool,
    /// Code with which the backend refused it, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u64>,
    /// Why QNN did not run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// True for nodes not in the model.
    #[serde(default)]
    pub inserted: bool,
}

/// A part of the model that QNN ran as one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodePartition {
    /// Name of its graph.
    pub name: String,
    /// Its nodes.
    pub nodes: usize,
    /// Mean time of the whole partition as seen by ONNX Runtime, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_us: Option<f64>,
    /// Mean time QNN itself reports for it, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qnn_us: Option<f64>,
}

impl NodePartition {
    /// Mean time spent at its borders: copies, binding, quantising; microseconds.
    pub fn boundary_us(&self) -> Option<f64> {
        Some((self.node_us? - self.qnn_us?).max(0.0))
    }
}

/// Where all nodes of a model ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodesPlaced {
    /// The nodes in the model's order, then those that ONNX Runtime inserted.
    pub nodes: Vec<NodePlacement>,
    /// The pieces that QNN ran.
    pub partitions: Vec<NodePartition>,
    /// Why QNN ran nothing at all, if there is a single reason: a backend that does not load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl NodesPlaced {
    /// Nodes of the model run by this provider.
    pub fn count(&self, provider: NodeProvider) -> usize {
        self.of_model().filter(|node| node.provider == provider).count()
    }

    /// The nodes of the model.
    pub fn of_model(&self) -> impl Iterator<Item = &NodePlacement> {
        self.nodes.iter().filter(|node| !node.inserted)
    }

    /// True if QNN ran not one node.
    pub fn is_all_cpu(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.provider != NodeProvider::Qnn)
    }
}

/// The origin of a converted model, from the map beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceNames {
    /// File name of the model before conversion.
    pub source: String,
    /// Nodes of that model, keyed by the names of the QNN ops they became.
    pub nodes: BTreeMap<String, String>,
}
