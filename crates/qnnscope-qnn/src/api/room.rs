//! The bound on what a recorder keeps of graphs being composed.

use qnnscope_core::models::{Op, Quantization, Tensor};

/// Fixed part of a tensor in its table, bytes.
const TENSOR: usize = 256;
/// Fixed part of an op, bytes.
const OP: usize = 384;
/// A parameter of an op as JSON, bytes.
const PARAMETER: usize = 160;

/// Bytes kept, and the limit.
#[derive(Debug, Default)]
pub(super) struct Room {
    limit: Option<usize>,
    kept: usize,
}

impl Room {
    /// With a limit of about this many bytes.
    pub fn of(limit: usize) -> Self {
        Self { limit: Some(limit), kept: 0 }
    }

    pub fn add(&mut self, bytes: usize) {
        self.kept = self.kept.saturating_add(bytes);
    }

    pub fn give_back(&mut self, bytes: usize) {
        self.kept = self.kept.saturating_sub(bytes);
    }

    /// More is kept than allowed.
    pub fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.kept > limit)
    }
}

/// Approximate size of a tensor in bytes.
pub(super) fn tensor_bytes(tensor: &Tensor) -> usize {
    let encoding = match &tensor.quantization {
        Some(Quantization::AxisScaleOffset { scales, offsets, .. }) => scales.len() * 8 + offsets.len() * 4,
        _ => 0,
    };
    TENSOR + tensor.name.len() + tensor.shape.len() * 8 + encoding
}

/// Approximate size of an op in bytes, with its own copies of its tensors.
pub(super) fn op_bytes(op: &Op) -> usize {
    let tensors: usize = op.inputs.iter().chain(&op.outputs).map(tensor_bytes).sum();
    let names = op.name.len() + op.op_type.len() + op.package.len();
    OP + names + tensors + op.params.len() * PARAMETER
}
