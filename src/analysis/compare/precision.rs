//! The properties of a graph that matter for choosing a backend.

use crate::models::{Graph, Tensor, TensorKind};
use crate::store::Run;
use serde::{Deserialize, Serialize};

/// Arithmetic of a graph, by the types of its activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arithmetic {
    /// Fixed point of at most 8 bits.
    Int8,
    /// Fixed point, some of it 16-bit.
    Int16,
    /// Fixed point and float.
    Mixed,
    /// Float.
    Float,
    /// None of these.
    Other,
}

impl Arithmetic {
    /// Human-readable name.
    pub fn label(self) -> &'static str {
        match self {
            Self::Int8 => "8-bit fixed point",
            Self::Int16 => "16-bit fixed point",
            Self::Mixed => "mixed fixed point and float",
            Self::Float => "float",
            Self::Other => "neither fixed point nor float",
        }
    }
}

/// Facts about a graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphFacts {
    /// Number of ops.
    pub ops: usize,
    /// Multiply-accumulates, of the ops whose count is known.
    pub macs: u64,
    /// Bytes of all constants.
    pub parameter_bytes: u64,
    /// Bytes of the largest tensor between ops; 0 if no size is known.
    pub largest_activation_bytes: u64,
    /// Arithmetic of the activations.
    pub arithmetic: Arithmetic,
    /// Highest rank of a tensor.
    pub rank: usize,
    /// Number of ops that only move or convert data.
    pub movers: usize,
}

impl GraphFacts {
    /// From a run's graph; `None` if none was composed or its ops are unknown. Other tools' files name ops
    /// and their types, but no tensors.
    pub fn of_run(run: &Run) -> Option<Self> {
        run.graph().filter(|_| run.plan.mode.origin.is_none()).filter(|graph| !graph.ops.is_empty()).map(graph_facts)
    }
}

/// Op types that only move or convert data.
const MOVERS: [&str; 12] = [
    "Transpose",
    "Reshape",
    "Concat",
    "StridedSlice",
    "Split",
    "Cast",
    "Convert",
    "Quantize",
    "Dequantize",
    "Pack",
    "SpaceToDepth",
    "DepthToSpace",
];

/// Reads the facts from a graph.
pub fn graph_facts(graph: &Graph) -> GraphFacts {
    let activations = || {
        let tensors = graph.ops.iter().flat_map(|op| op.outputs.iter()).chain(&graph.inputs);
        tensors.filter(|tensor| !matches!(tensor.kind, TensorKind::Static | TensorKind::Null))
    };
    let count = |wanted: &dyn Fn(&Tensor) -> bool| activations().filter(|tensor| wanted(tensor)).count();
    let fixed = count(&|tensor| tensor.dtype.is_fixed_point());
    let wide = count(&|tensor| tensor.dtype.is_fixed_point() && tensor.dtype.bits().is_some_and(|bits| bits > 8));
    let float = count(&|tensor| tensor.dtype.is_float());
    // Float inputs and outputs of a quantised graph are its interface, not its arithmetic.
    let edges = graph.inputs.iter().chain(&graph.outputs).filter(|tensor| tensor.dtype.is_float()).count();
    let arithmetic = match (fixed, float) {
        (0, 0) => Arithmetic::Other,
        (0, _) => Arithmetic::Float,
        (_, float) if float > edges => Arithmetic::Mixed,
        _ if wide > 0 => Arithmetic::Int16,
        _ => Arithmetic::Int8,
    };
    GraphFacts {
        ops: graph.ops.len(),
        macs: graph.macs(),
        parameter_bytes: graph.parameter_bytes,
        largest_activation_bytes: activations().filter_map(Tensor::bytes).max().unwrap_or(0),
        arithmetic,
        rank: activations().map(|tensor| tensor.shape.len()).max().unwrap_or(0),
        movers: graph.ops.iter().filter(|op| MOVERS.contains(&op.op_type.as_str())).count(),
    }
}
