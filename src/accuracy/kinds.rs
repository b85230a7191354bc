//! Equivalent op types in different kinds of graphs.

use crate::models::hands_numbers_on;

/// ONNX operators and the QNN ops that composers make from them.
const SAME: [(&[&str], &[&str]); 14] = [
    (&["Conv"], &["Conv2d", "DepthWiseConv2d", "Conv1d", "Conv3d"]),
    (&["ConvTranspose"], &["TransposeConv2d"]),
    (
        &["Relu", "Clip", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Elu", "Gelu", "Softplus", "LeakyRelu"],
        &["ElementWiseNeuron", "Relu", "Relu1", "Relu6", "ReluMinMax", "Sigmoid", "Tanh", "HardSwish", "Gelu", "Prelu"],
    ),
    (&["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"], &["ElementWiseBinary"]),
    (&["MaxPool", "GlobalMaxPool"], &["PoolMax2d", "PoolMax3d"]),
    (&["AveragePool", "GlobalAveragePool"], &["PoolAvg2d", "PoolAvg3d", "ReduceMean"]),
    (&["Gemm", "MatMul"], &["FullyConnected", "MatMul"]),
    (&["Reshape", "Flatten", "Squeeze", "Unsqueeze"], &["Reshape", "Squeeze", "ExpandDims"]),
    (&["Resize", "Upsample"], &["Resize", "ResizeBilinear", "ResizeNearestNeighbor"]),
    (&["Slice"], &["StridedSlice"]),
    (&["QuantizeLinear"], &["Quantize"]),
    (&["DequantizeLinear"], &["Dequantize"]),
    (&["Cast"], &["Cast", "Convert"]),
    (&["LayerNormalization"], &["LayerNorm"]),
];

/// True if ops of this type pass stored numbers on unchanged.
pub fn hands_on(op_type: &str) -> bool {
    hands_numbers_on(op_type) || op_type == "ResizeNearestNeighbor"
}

/// True if two op types, from any kinds of graphs, are equivalent.
pub fn alike(a: &str, b: &str) -> bool {
    let elementwise = |name: &str, other: &str| other.strip_prefix("ElementWise") == Some(name);
    a == b
        || elementwise(a, b)
        || elementwise(b, a)
        || SAME
            .iter()
            .any(|(onnx, qnn)| (onnx.contains(&a) && qnn.contains(&b)) || (onnx.contains(&b) && qnn.contains(&a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn onnx_and_qnn_have_names_of_their_own() {
        for (a, b) in
            [("Conv", "Conv2d"), ("PoolAvg2d", "GlobalAveragePool"), ("Add", "ElementWiseAdd"), ("Softmax", "Softmax")]
        {
            assert!(alike(a, b) && alike(b, a), "{a} {b}");
        }
        for (a, b) in [("Conv", "PoolMax2d"), ("Add", "ElementWiseMultiply"), ("Relu", "Conv2d")] {
            assert!(!alike(a, b) && !alike(b, a), "{a} {b}");
        }
    }
}
