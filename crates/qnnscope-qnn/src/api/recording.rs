//! What is written down while a model composes its graphs.

#![expect(unsafe_code, reason = "FFI")]

use super::interface::text;
use super::tensor::{describe, param_value};
use super::verdict::Verdict;
use crate::sys;
use qnnscope_core::models::{Graph, Op, Tensor, TensorKind, macs};
use std::collections::HashMap;

/// An op that the backend refused while composing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Op name.
    pub op: String,
    /// Op type.
    pub op_type: String,
    /// The call that refused.
    pub call: &'static str,
    /// Returned code.
    pub code: u64,
}

/// What was written down.
#[derive(Debug, Default)]
pub struct Recording {
    /// Graphs in the order of creation, without inputs and outputs in execution order.
    pub graphs: Vec<Graph>,
    /// Ops that were refused.
    pub refusals: Vec<Refusal>,
    /// What the backend answered about each op, where it was asked.
    pub verdicts: Vec<Verdict>,
    /// Code of a graphCreate that failed while options of ours were in it.
    pub options_refused: Option<u64>,
}

/// A tensor as it was created.
pub(super) struct KnownTensor {
    pub(super) info: Tensor,
    pub(super) bytes: u64,
}

/// A graph that is being composed.
pub(super) struct OpenGraph {
    pub(super) handle: usize,
    pub(super) graph: Graph,
    pub(super) tensors: HashMap<u32, KnownTensor>,
}

/// Parameters of an op by name.
pub(super) fn params(op: &sys::OpConfig) -> serde_json::Map<String, serde_json::Value> {
    if op.v1.params.is_null() {
        return serde_json::Map::new();
    }
    // SAFETY: the op carries `param_count` parameters of 160 bytes (core 2.14 and later; older libraries are refused
    // before they are opened).
    let params = unsafe { std::slice::from_raw_parts(op.v1.params, op.v1.param_count as usize) };
    params.iter().map(|param| (text(param.name), param_value(param))).collect()
}

impl OpenGraph {
    /// Writes an op down.
    pub(super) fn add_op(
        &mut self,
        op: &sys::OpConfig,
        inputs: &[sys::Tensor],
        outputs: &[sys::Tensor],
        params: serde_json::Map<String, serde_json::Value>,
        context_tensors: &HashMap<u32, KnownTensor>,
    ) {
        // Ops may repeat a tensor as a bare id; what was said at its creation is complete.
        let find = |raw: &sys::Tensor| {
            let known = self.tensors.get(&raw.body.id).or_else(|| context_tensors.get(&raw.body.id));
            match known {
                Some(known) => (known.info.clone(), known.bytes),
                None => (describe(raw), 0),
            }
        };
        let (inputs, sizes): (Vec<Tensor>, Vec<u64>) = inputs.iter().map(find).unzip();
        let outputs: Vec<Tensor> = outputs.iter().map(|raw| find(raw).0).collect();
        let mut row = Op {
            index: u32::try_from(self.graph.ops.len()).unwrap_or(u32::MAX),
            name: text(op.v1.name),
            op_type: text(op.v1.op_type),
            package: text(op.v1.package),
            inputs,
            outputs,
            params,
            macs: None,
            parameter_bytes: sizes.iter().sum(),
            bytes_moved: None,
        };
        row.macs = macs(&row);
        row.bytes_moved = row
            .inputs
            .iter()
            .chain(&row.outputs)
            .filter(|tensor| tensor.kind != TensorKind::Null)
            .try_fold(0u64, |sum, tensor| sum.checked_add(tensor.bytes()?));
        self.graph.ops.push(row);
    }
}
