//! Encodings that a model brings along.

use super::{Encoding, Encodings, Format, Slice, Use};
use crate::accuracy::stored_bits;
use crate::models::{Graph, Quantization, Tensor, TensorKind};
use std::collections::HashSet;

/// The encodings inside a model's graphs, in the order of its ops, each tensor once.
pub fn from_graphs(graphs: &[Graph]) -> Encodings {
    let mut seen = HashSet::new();
    let mut tensors = Vec::new();
    for graph in graphs {
        let of_ops = graph.ops.iter().flat_map(|op| op.inputs.iter().chain(&op.outputs));
        for tensor in graph.inputs.iter().chain(of_ops).chain(&graph.outputs) {
            if seen.insert(tensor.name.clone()) {
                tensors.extend(encoding(tensor));
            }
        }
    }
    Encodings { format: Format::Model, tensors, findings: Vec::new() }
}

fn encoding(tensor: &Tensor) -> Option<Encoding> {
    if !tensor.dtype.is_fixed_point() {
        return None;
    }
    let bits = stored_bits(tensor)?;
    let is_signed = tensor.dtype.integer_range().is_some_and(|(low, _)| low < 0);
    let middle = if is_signed { -((1u64 << (bits.clamp(1, 32) - 1)) as f64) } else { 0.0 };
    let slice = |scale: f64, offset: i32| Slice {
        scale: Some(scale),
        offset: Some(f64::from(offset) + middle),
        min: None,
        max: None,
    };
    let (slices, axis) = match tensor.quantization.as_ref()? {
        Quantization::ScaleOffset { scale, offset, .. } => (vec![slice(*scale, *offset)], None),
        Quantization::AxisScaleOffset { axis, scales, offsets, .. } => {
            let offset = |at: usize| offsets.get(at).copied().unwrap_or(0);
            let rows = scales.iter().enumerate().map(|(at, scale)| slice(*scale, offset(at)));
            (rows.collect(), Some(i64::from(*axis)))
        }
        Quantization::Other { .. } => return None,
    };
    let symmetric = is_signed.then(|| slices.iter().all(|slice: &Slice| slice.offset == Some(middle)));
    Some(Encoding {
        name: tensor.name.clone(),
        used: if tensor.kind == TensorKind::Static { Use::Parameter } else { Use::Activation },
        bits,
        is_float: false,
        symmetric,
        per_channel: axis.is_some(),
        slices,
        axis,
    })
}
