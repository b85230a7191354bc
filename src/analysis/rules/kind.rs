//! What an op computes, however a converter spells it.

use crate::models::Op;
use serde::{Deserialize, Deserializer, de::Error};
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// Kinds that rules refer to, with QNN's spellings of each: an op type, or a type and its `operation`. The
/// numbers were read from graphs that ONNX Runtime's QNN plug-in 2.3.0 made from ONNX ops of these names.
const SPELLINGS: &[(&str, &[&str])] = &[
    ("Conv", &["Conv1d", "Conv2d", "Conv3d"]),
    ("DepthWiseConv", &["DepthWiseConv1d", "DepthWiseConv2d"]),
    ("TransposeConv", &["TransposeConv1d", "TransposeConv2d", "TransposeConv3d"]),
    ("FullyConnected", &["FullyConnected"]),
    ("MatMul", &["MatMul"]),
    ("Add", &["ElementWiseAdd", "ElementWiseBinary/0"]),
    ("Divide", &["ElementWiseDivide", "ElementWiseBinary/2"]),
    ("Multiply", &["ElementWiseMultiply", "ElementWiseBinary/13"]),
    ("Power", &["ElementWisePower", "ElementWiseBinary/16"]),
    ("SquaredDifference", &["ElementWiseSquaredDifference", "ElementWiseBinary/17"]),
    ("Subtract", &["ElementWiseSubtract", "ElementWiseBinary/18"]),
    ("Maximum", &["ElementWiseMaximum", "ElementWiseBinary/10"]),
    ("Minimum", &["ElementWiseMinimum", "ElementWiseBinary/11"]),
    ("Rsqrt", &["ElementWiseRsqrt", "ElementWiseUnary/12"]),
    ("Sqrt", &["ElementWiseSquareRoot", "ElementWiseUnary/15"]),
    ("Relu", &["Relu", "Relu1", "Relu6", "ReluMinMax", "ElementWiseNeuron/4", "ElementWiseNeuron/5"]),
    ("PRelu", &["Prelu", "PRelu", "LeakyRelu"]),
    ("HardSwish", &["HardSwish", "ElementWiseNeuron/3"]),
    ("Elu", &["Elu", "ElementWiseNeuron/0"]),
    ("Gelu", &["Gelu", "ElementWiseNeuron/1"]),
    ("Sigmoid", &["Sigmoid", "ElementWiseNeuron/6"]),
    ("Tanh", &["Tanh", "ElementWiseNeuron/8"]),
    ("Softmax", &["Softmax", "LogSoftmax"]),
    ("BatchNorm", &["Batchnorm", "BatchNorm"]),
    ("InstanceNorm", &["InstanceNorm"]),
    ("LayerNorm", &["LayerNorm"]),
    ("ReduceMean", &["ReduceMean"]),
    ("AveragePool", &["PoolAvg2d", "PoolAvg3d"]),
    ("MaxPool", &["PoolMax2d", "PoolMax3d"]),
    ("Transpose", &["Transpose"]),
    ("Reshape", &["Reshape"]),
    ("Concat", &["Concat"]),
    ("Slice", &["StridedSlice", "Slice"]),
    ("Split", &["Split"]),
    ("SpaceToDepth", &["SpaceToDepth"]),
    ("DepthToSpace", &["DepthToSpace"]),
    ("Quantize", &["Quantize"]),
    ("Dequantize", &["Dequantize"]),
    ("Convert", &["Convert"]),
    ("Cast", &["Cast"]),
    ("TopK", &["TopK"]),
    ("Argmax", &["Argmax", "ArgMax"]),
    ("Argmin", &["Argmin", "ArgMin"]),
    ("NonMaxSuppression", &["NonMaxSuppression", "MultiClassNms"]),
    ("Gather", &["Gather", "GatherNd", "GatherElements"]),
];

/// Names for groups of kinds that rules may use.
const GROUPS: &[(&str, &[&str])] = &[
    ("any matrix op", &["Conv", "TransposeConv", "FullyConnected", "MatMul"]),
    ("any data mover", &["Transpose", "Reshape", "Concat", "Slice", "Split", "SpaceToDepth", "DepthToSpace"]),
    ("any conversion", &["Quantize", "Dequantize", "Convert", "Cast"]),
];

/// What an op computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(usize);

static BY_SPELLING: LazyLock<HashMap<(&str, Option<u64>), Kind>> = LazyLock::new(|| {
    let mut map = HashMap::new();
    for (index, (_, spellings)) in SPELLINGS.iter().enumerate() {
        for spelling in *spellings {
            let key = match spelling.split_once('/') {
                Some((op_type, operation)) => (op_type, operation.parse().ok()),
                None => (*spelling, None),
            };
            map.insert(key, Kind(index));
        }
    }
    map
});

impl Kind {
    /// The kind of an op; `None` if no rule refers to it, as with ops of other packages.
    pub fn of(op: &Op) -> Option<Self> {
        if op.package != "qti.aisw" {
            return None;
        }
        let operation = op.params.get("operation").and_then(serde_json::Value::as_u64);
        let op_type = op.op_type.as_str();
        BY_SPELLING.get(&(op_type, None)).or_else(|| BY_SPELLING.get(&(op_type, operation))).copied()
    }

    /// Looks up a kind by the name that rules use.
    pub fn named(name: &str) -> Option<Self> {
        SPELLINGS.iter().position(|row| row.0 == name).map(Self)
    }

    /// The name that rules use.
    pub fn name(self) -> &'static str {
        SPELLINGS.get(self.0).map_or("", |row| row.0)
    }
}

/// Kinds as listed in a rule: names and groups. Unknown names are errors.
#[derive(Debug, Clone, Default)]
pub struct Kinds(pub Vec<Kind>);

impl<'de> Deserialize<'de> for Kinds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let groups: BTreeMap<&str, &[&str]> = GROUPS.iter().copied().collect();
        let mut kinds = Vec::new();
        for name in Vec::<String>::deserialize(deserializer)? {
            let own = [name.as_str()];
            for name in *groups.get(name.as_str()).unwrap_or(&&own[..]) {
                kinds.push(Kind::named(name).ok_or_else(|| D::Error::custom(format!("no op has kind `{name}`")))?);
            }
        }
        Ok(Self(kinds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_spellings_stand_once_and_groups_are_made_of_kinds() {
        let names: BTreeSet<&str> = SPELLINGS.iter().map(|row| row.0).collect();
        assert_eq!(names.len(), SPELLINGS.len());
        assert_eq!(BY_SPELLING.len(), SPELLINGS.iter().map(|row| row.1.len()).sum::<usize>());
        assert!(GROUPS.iter().flat_map(|group| group.1).all(|name| Kind::named(name).is_some()));
    }
}
