//! Multiply-accumulates of an op, from its type and shapes.

use super::Op;

/// Multiply-accumulates of one execution of `op`; `Some(0)` for op types without matrix products, `None` if the count
/// is not derived (recurrent ops, foreign packages, missing shapes).
///
/// Shapes follow QNN's op definitions: activations NHWC, convolution weights `[..., channels in per group, channels out]`.
pub fn macs(op: &Op) -> Option<u64> {
    if op.package != "qti.aisw" {
        return None;
    }
    let output = || op.outputs.first()?.elements();
    let input_shape = |i: usize| op.inputs.get(i).map(|t| t.shape.as_slice());
    match op.op_type.as_str() {
        // Every output element is a sum over the window and the channels of its group.
        "Conv1d" | "Conv2d" | "Conv3d" => {
            let (_, per_output) = input_shape(1)?.split_last()?;
            output()?.checked_mul(product(per_output)?)
        }
        "DepthWiseConv1d" | "DepthWiseConv2d" => {
            let shape = input_shape(1)?;
            let window = shape.len().checked_sub(2)?;
            output()?.checked_mul(product(&shape[..window])?)
        }
        // Every input element contributes to the window and the output channels of its group.
        "TransposeConv1d" | "TransposeConv2d" | "TransposeConv3d" => {
            let shape = input_shape(1)?;
            let channels_in = shape.len().checked_sub(2)?;
            let window = product(&shape[..channels_in])?;
            op.inputs.first()?.elements()?.checked_mul(window)?.checked_mul(u64::from(*shape.last()?))
        }
        // Weights are [out, in].
        "FullyConnected" => output()?.checked_mul(u64::from(*input_shape(1)?.last()?)),
        "MatMul" => {
            let shape = input_shape(0)?;
            let transposed = param_is_true(op, "transpose_in0");
            let depth = if transposed { shape.len().checked_sub(2).map(|i| shape[i])? } else { *shape.last()? };
            output()?.checked_mul(u64::from(depth))
        }
        "Lstm" | "Gru" | "Rnn" | "If" | "While" | "MaskedSoftmax" | "StatefulLstm" | "StatefulGru" => None,
        _ => Some(0),
    }
}

fn product(shape: &[u32]) -> Option<u64> {
    shape.iter().try_fold(1u64, |p, &d| p.checked_mul(u64::from(d)))
}

fn param_is_true(op: &Op, name: &str) -> bool {
    match op.params.get(name) {
        Some(serde_json::Value::Bool(value)) => *value,
        Some(serde_json::Value::Number(value)) => value.as_u64() == Some(1),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{DataType, Tensor, TensorKind};

    fn tensor(shape: &[u32]) -> Tensor {
        Tensor {
            name: "t".into(),
            dtype: DataType::FLOAT_32,
            shape: shape.to_vec(),
            quantization: None,
            kind: TensorKind::Native,
        }
    }

    fn op(op_type: &str, inputs: &[&[u32]], output: &[u32]) -> Op {
        Op {
            index: 0,
            name: "op".into(),
            op_type: op_type.into(),
            package: "qti.aisw".into(),
            inputs: inputs.iter().map(|s| tensor(s)).collect(),
            outputs: vec![tensor(output)],
            params: serde_json::Map::new(),
            macs: None,
            parameter_bytes: 0,
            bytes_moved: None,
        }
    }

    #[test]
    fn convolutions() {
        // 112x112x32 outputs, each over 3x3x3.
        assert_eq!(macs(&op("Conv2d", &[&[1, 224, 224, 3], &[3, 3, 3, 32]], &[1, 112, 112, 32])), Some(10_838_016));
        // Grouped: 2 groups of 4 in, 8 out each: weights [1,1,4,16].
        assert_eq!(macs(&op("Conv2d", &[&[1, 2, 2, 8], &[1, 1, 4, 16]], &[1, 2, 2, 16])), Some(256));
        assert_eq!(macs(&op("DepthWiseConv2d", &[&[1, 8, 8, 6], &[3, 3, 1, 6]], &[1, 8, 8, 6])), Some(3456));
        assert_eq!(macs(&op("TransposeConv2d", &[&[1, 4, 4, 3], &[2, 2, 3, 5]], &[1, 8, 8, 5])), Some(960));
    }

    #[test]
    fn matrices() {
        assert_eq!(macs(&op("FullyConnected", &[&[1, 64], &[10, 64]], &[1, 10])), Some(640));
        assert_eq!(macs(&op("MatMul", &[&[2, 5, 7], &[2, 7, 3]], &[2, 5, 3])), Some(210));
        let mut transposed = op("MatMul", &[&[2, 7, 5], &[2, 7, 3]], &[2, 5, 3]);
        transposed.params.insert("transpose_in0".into(), true.into());
        assert_eq!(macs(&transposed), Some(210));
    }

    #[test]
    fn the_rest_is_zero_or_unknown_never_guessed() {
        assert_eq!(macs(&op("Relu", &[&[1, 4]], &[1, 4])), Some(0));
        assert_eq!(macs(&op("Lstm", &[&[1, 4]], &[1, 4])), None);
        let mut foreign = op("Conv2d", &[&[1, 4, 4, 1], &[1, 1, 1, 1]], &[1, 4, 4, 1]);
        foreign.package = "my.package".into();
        assert_eq!(macs(&foreign), None);
        assert_eq!(macs(&op("Conv2d", &[&[1, 4, 4, 1]], &[1, 4, 4, 1])), None);
        assert_eq!(macs(&op("MatMul", &[&[u32::MAX, u32::MAX, 2], &[2, 2]], &[u32::MAX, u32::MAX, u32::MAX])), None);
    }
}
