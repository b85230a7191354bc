//! Multiply-accumulates of ONNX nodes, from their types and shapes.

use crate::models::source::{ShapeIndex, SourceNode, product};

/// Op types that multiply matrices in ways that are not derived here, or that run other graphs.
const NOT_DERIVED: [&str; 16] = [
    "Attention",
    "DFT",
    "DeformConv",
    "EPContext",
    "Einsum",
    "GRU",
    "GroupQueryAttention",
    "If",
    "LSTM",
    "LinearAttention",
    "Loop",
    "MultiHeadAttention",
    "RNN",
    "STFT",
    "Scan",
    "SequenceMap",
];
/// Op types of other domains whose counts equal those of the ONNX ops with the same names, or that multiply
/// no matrices.
const KNOWN_ELSEWHERE: [&str; 12] = [
    "BiasGelu",
    "DequantizeLinear",
    "FastGelu",
    "FusedConv",
    "FusedMatMul",
    "Gelu",
    "LayerNormalization",
    "QuantizeLinear",
    "QuickGelu",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
];

/// Multiply-accumulates of one node, if its shapes are known.
pub fn of(node: &SourceNode, shapes: &ShapeIndex<'_>) -> Option<u64> {
    let input = |index: usize| shapes.input(node, index);
    let output = || shapes.output_elements(node);
    let op_type = node.op_type.as_str();
    if !node.domain.is_empty() && !KNOWN_ELSEWHERE.contains(&op_type) {
        // A matrix with packed weights states its depth itself.
        let depth = if op_type == "MatMulNBits" { node.int("K") } else { None };
        return output()?.checked_mul(u64::try_from(depth?).ok()?);
    }
    match op_type {
        // Weights are [out, in per group, window...]: every output element is a sum over a window of its
        // group.
        "Conv" | "ConvInteger" | "FusedConv" => output()?.checked_mul(product(input(1)?.get(1..)?)?),
        "QLinearConv" => output()?.checked_mul(product(input(3)?.get(1..)?)?),
        // Weights are [in, out per group, window...]: every input element is spread over such a window.
        "ConvTranspose" => product(&input(0)?)?.checked_mul(product(input(1)?.get(1..)?)?),
        "Gemm" => {
            let left = input(0)?;
            let depth = if node.int("transA").unwrap_or(0) == 0 { left.get(1) } else { left.first() };
            output()?.checked_mul(*depth?)
        }
        "MatMul" | "MatMulInteger" | "QLinearMatMul" => output()?.checked_mul(*input(0)?.last()?),
        "FusedMatMul" => {
            let turned = ["transA", "transBatchA"].iter().any(|name| node.int(name).unwrap_or(0) != 0);
            if turned { None } else { output()?.checked_mul(*input(0)?.last()?) }
        }
        other if NOT_DERIVED.contains(&other) => None,
        _ => Some(0),
    }
}
