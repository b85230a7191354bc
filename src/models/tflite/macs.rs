//! Multiply-accumulates of TFLite operators, from their types and shapes.

use crate::models::source::{ShapeIndex, SourceNode, product};

/// Attribute of BATCH_MATMUL: the left matrix is transposed.
pub const TURNED: &str = "adj_x";

/// Multiply-accumulates of one operator, if its shapes are known.
pub fn of(node: &SourceNode, shapes: &ShapeIndex<'_>) -> Option<u64> {
    let input = |index: usize| shapes.input(node, index);
    let output = || shapes.output_elements(node);
    if !node.domain.is_empty() || node.op_type.starts_with("STABLEHLO_") || node.op_type.starts_with("BUILTIN_") {
        return None;
    }
    match node.op_type.as_str() {
        // Weights are [out, height, width, in per group].
        "CONV_2D" => output()?.checked_mul(product(input(1)?.get(1..)?)?),
        // Weights are [1, height, width, out].
        "DEPTHWISE_CONV_2D" => output()?.checked_mul(product(input(1)?.get(1..3)?)?),
        // The inputs are the output's shape, the weights [out, height, width, in], and the activations.
        "TRANSPOSE_CONV" => product(&input(2)?)?.checked_mul(product(input(1)?.get(..3)?)?),
        // Weights are [depth, height, width, in, out].
        "CONV_3D" => output()?.checked_mul(product(input(1)?.get(..4)?)?),
        // Weights are [depth, height, width, out, in].
        "CONV_3D_TRANSPOSE" => product(&input(2)?)?.checked_mul(product(input(1)?.get(..4)?)?),
        // Weights are [out, in].
        "FULLY_CONNECTED" => output()?.checked_mul(*input(1)?.last()?),
        "BATCH_MATMUL" => {
            let left = input(0)?;
            let turned = node.int(TURNED).unwrap_or(0) != 0;
            let depth = if turned { left.len().checked_sub(2).map(|at| left[at]) } else { left.last().copied() };
            output()?.checked_mul(depth?)
        }
        "LSTM"
        | "RNN"
        | "SVDF"
        | "UNIDIRECTIONAL_SEQUENCE_RNN"
        | "UNIDIRECTIONAL_SEQUENCE_LSTM"
        | "BIDIRECTIONAL_SEQUENCE_RNN"
        | "BIDIRECTIONAL_SEQUENCE_LSTM"
        | "IF"
        | "WHILE"
        | "CALL"
        | "CALL_ONCE"
        | "DELEGATE"
        | "RFFT2D" => None,
        _ => Some(0),
    }
}
