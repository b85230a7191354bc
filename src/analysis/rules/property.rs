//! Properties that an op has or lacks, as rules name them.

use super::graph::Node;
use super::measure::{axis, numbers};
use crate::models::{DataType, Quantization, Tensor, TensorKind};
use serde::Deserialize;

/// A property of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// It reads an input of the graph.
    AtTheInput,
    /// It writes an output of the graph.
    AtTheOutput,
    /// Its second input is constant.
    ByAConstant,
    /// It works along the last axis.
    AlongTheLastAxis,
    /// It works over all rows and columns of a feature map.
    OverTheWholeMap,
    /// It reads floats.
    Float,
    /// It reads 8-bit fixed point.
    EightBit,
    /// It reads 16-bit fixed point.
    SixteenBit,
    /// It writes 32-bit integers.
    MakesIntegers,
    /// Its weights are constant and have 8 bits.
    EightBitWeights,
    /// The zero point of its weights is not in the middle of their range.
    AsymmetricWeights,
    /// A convolution of stride 1 that keeps height and width by padding.
    PaddedToTheSameSize,
}

impl Property {
    /// True if the op has the property. One that is unknown does not hold.
    pub fn holds(self, node: &Node<'_>) -> bool {
        let input = |test: &dyn Fn(DataType) -> bool| node.input().is_some_and(|tensor| test(tensor.dtype));
        let constant = |at: usize| node.op.inputs.get(at).is_some_and(|tensor| tensor.kind == TensorKind::Static);
        match self {
            Self::AtTheInput => {
                node.activations().any(|tensor| matches!(tensor.kind, TensorKind::Input | TensorKind::InputOutput))
            }
            Self::AtTheOutput => {
                let is_output = |kind| matches!(kind, TensorKind::Output | TensorKind::InputOutput);
                node.op.outputs.iter().any(|tensor| is_output(tensor.kind))
            }
            Self::ByAConstant => constant(1),
            Self::AlongTheLastAxis => {
                let last = node.input().map(|tensor| tensor.shape.len().saturating_sub(1));
                match numbers(node, "axes") {
                    Some(axes) => last.is_some_and(|last| axes.contains(&(last as u64))),
                    // QNN's default axis is the last one.
                    None => node.op.params.get("axis").is_none() || axis(node) == last,
                }
            }
            Self::OverTheWholeMap => over_the_whole_map(node),
            Self::Float => input(&DataType::is_float),
            Self::EightBit => input(&|dtype| dtype.is_fixed_point() && dtype.bits() == Some(8)),
            Self::SixteenBit => input(&|dtype| dtype.is_fixed_point() && dtype.bits() == Some(16)),
            Self::MakesIntegers => {
                node.output().is_some_and(|tensor| matches!(tensor.dtype.name().as_str(), "int32" | "uint32"))
            }
            Self::EightBitWeights => node.weights().is_some_and(|tensor| tensor.dtype.bits() == Some(8)),
            Self::AsymmetricWeights => node.weights().is_some_and(is_asymmetric),
            Self::PaddedToTheSameSize => {
                let map = |tensor: Option<&Tensor>| tensor.and_then(|t| Some([*t.shape.get(1)?, *t.shape.get(2)?]));
                let window = node.window().is_some_and(|elements| elements > 1);
                window && map(node.input()).is_some() && map(node.input()) == map(node.output())
            }
        }
    }
}

fn over_the_whole_map(node: &Node<'_>) -> bool {
    let Some([_, height, width, _]) = node.input().map(|tensor| tensor.shape.as_slice()) else { return false };
    let map = [u64::from(*height), u64::from(*width)];
    if map.iter().product::<u64>() <= 1 {
        return false;
    }
    match node.kind.map(super::kind::Kind::name) {
        Some("InstanceNorm") => true,
        Some("AveragePool" | "MaxPool") => numbers(node, "filter_size").is_some_and(|filter| filter == map),
        Some("ReduceMean") => numbers(node, "axes").is_some_and(|axes| axes.contains(&1) && axes.contains(&2)),
        _ => false,
    }
}

/// Unsigned fixed point is symmetric if its zero point is half of the range, signed if it is 0.
fn is_asymmetric(weights: &Tensor) -> bool {
    let Some((low, high)) = weights.dtype.integer_range().filter(|_| weights.dtype.is_fixed_point()) else {
        return false;
    };
    let middle = -(low + high + 1) / 2;
    let off = |offset: i32| i64::from(offset) != middle;
    match &weights.quantization {
        Some(Quantization::ScaleOffset { offset, .. }) => off(*offset),
        Some(Quantization::AxisScaleOffset { offsets, .. }) if offsets.is_empty() => off(0),
        Some(Quantization::AxisScaleOffset { offsets, .. }) => offsets.iter().any(|offset| off(*offset)),
        _ => false,
    }
}
