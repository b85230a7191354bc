//! Ops that lose accuracy with 8-bit activations, and why.

use crate::models::{Op, TensorKind};

/// Op types, and what 8 bits do to them.
const TYPES: [(&str, &str); 17] = [
    ("LayerNorm", "the mean and variance of rounded values shift the whole row"),
    ("RmsNorm", "the variance of rounded values scales the whole row"),
    ("InstanceNorm", "the variance of rounded values scales the whole channel"),
    ("GroupNorm", "the variance of rounded values scales the whole group"),
    ("L2Norm", "squares need twice the bits"),
    ("LogSoftmax", "a logarithm spreads small values over a wide range"),
    ("ElementWiseExp", "an exponential spreads its output over a wide range"),
    ("ElementWiseLog", "a logarithm spreads small values over a wide range"),
    ("ElementWisePower", "powers spread their output over a wide range"),
    ("ElementWiseRsqrt", "small inputs give large outputs"),
    ("ElementWiseDivide", "small divisors give large outputs"),
    ("ElementWiseSquaredDifference", "squares need twice the bits"),
    ("CumulativeSum", "rounding errors add up"),
    ("GridSample", "coordinates need more than 256 steps"),
    ("Gru", "rounding errors are carried from step to step"),
    ("Lstm", "rounding errors are carried from step to step"),
    ("ReduceSum", "the sum's range leaves few steps for its terms"),
];
/// The same for kinds of `ElementWiseUnary`, by its `operation` (exp, log, reciprocal, rsqrt).
const UNARY: [(u64, &str); 4] = [
    (5, "an exponential spreads its output over a wide range"),
    (7, "a logarithm spreads small values over a wide range"),
    (10, "small inputs give large outputs"),
    (12, "small inputs give large outputs"),
];
/// The same for `ElementWiseBinary` (divide, power, squared difference).
const BINARY: [(u64, &str); 3] = [
    (2, "small divisors give large outputs"),
    (16, "powers spread their output over a wide range"),
    (17, "squares need twice the bits"),
];

/// What 8-bit activations do to an op; `None` if they usually work well.
pub fn why(op: &Op) -> Option<&'static str> {
    let operation = || op.params.get("operation").and_then(serde_json::Value::as_u64);
    let of = |table: &[(u64, &'static str)]| {
        let operation = operation()?;
        table.iter().find(|row| row.0 == operation).map(|row| row.1)
    };
    match op.op_type.as_str() {
        "ElementWiseUnary" => of(&UNARY),
        "ElementWiseBinary" => of(&BINARY),
        // Attention: both sides are activations, and there are no per-channel scales to help.
        "MatMul" => {
            let activations = op.inputs.iter().take(2).all(|tensor| tensor.kind != TensorKind::Static);
            activations.then_some("both factors are activations with one scale each (attention)")
        }
        name => TYPES.iter().find(|row| row.0 == name).map(|row| row.1),
    }
}
