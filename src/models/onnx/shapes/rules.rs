//! Selects the rule for each op type: types and shapes of a node's outputs.

use super::layout::{
    axes, axis, blocks, broadcast, concat, expand, flatten, gather, pad, reshape, slice, split, squeeze, tile,
    transpose, unsqueeze,
};
use super::window::{kernel, known, resize, slide, spread};
use super::{Known, Scope};
use crate::models::source::{AttributeValue, Dim, ElementType, SourceNode};

/// Op types whose first output has the type and shape of the first input.
const SAME: &str = "\
    Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization BitwiseNot Ceil Celu Clip Cos Cosh CumSum Dropout \
    Elu Erf Exp Floor Gelu GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization LRN \
    LayerNormalization LeakyRelu Log LogSoftmax LpNormalization MeanVarianceNormalization Mish Neg PRelu \
    RMSNormalization Reciprocal Relu ReverseSequence Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid \
    Sign Sin Sinh SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization Softmax \
    Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Trilu BiasGelu FastGelu QuickGelu";
/// Op types whose inputs are broadcast.
const STRETCHED: &str = "Add BitShift BitwiseAnd BitwiseOr BitwiseXor Div Max Mean Min Mod Mul Pow Sub Sum";
/// The same, with booleans as the result.
const COMPARED: &str = "And Equal Greater GreaterOrEqual Less LessOrEqual Or Xor";

fn is_in(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == name)
}

/// What can be inferred about the node's outputs, in order; empty for op types without a rule.
pub(super) fn outputs(scope: &Scope<'_>, node: &SourceNode) -> Vec<Known> {
    let first = |index: usize| scope.dtype(node, index);
    let shape = |index: usize| scope.shape(node, index);
    let with = |shape: Option<Vec<Dim>>| vec![Known::new(first(0), shape)];
    let op_type = node.op_type.as_str();
    // Microsoft's domain repeats ONNX's quantisation ops and some activations; other domains may mean
    // anything.
    if !matches!(node.domain.as_str(), "" | "com.microsoft") {
        return Vec::new();
    }
    if is_in(SAME, op_type) {
        return with(shape(0));
    }
    if is_in(STRETCHED, op_type) {
        return with(stretched(scope, node, 0));
    }
    if is_in(COMPARED, op_type) {
        return vec![Known::new(Some(ElementType::Bool), stretched(scope, node, 0))];
    }
    if op_type.starts_with("Reduce") {
        return with(reduced(scope, node));
    }
    match op_type {
        "Constant" => constant(node),
        "Cast" => {
            let to = node.int("to").and_then(|kind| ElementType::from_onnx(i32::try_from(kind).unwrap_or(-1)));
            vec![Known::new(to, shape(0))]
        }
        "Not" | "IsNaN" | "IsInf" => vec![Known::new(Some(ElementType::Bool), shape(0))],
        "QuantizeLinear" => vec![Known::new(Some(quantized_type(scope, node)), shape(0))],
        // The type of the scale, or of the value to match.
        "DequantizeLinear" | "CastLike" => vec![Known::new(first(1), shape(0))],
        "DynamicQuantizeLinear" => {
            let scalar = Some(Vec::new());
            vec![
                Known::new(Some(ElementType::Uint8), shape(0)),
                Known::new(Some(ElementType::Float32), scalar.clone()),
                Known::new(Some(ElementType::Uint8), scalar),
            ]
        }
        "Where" => vec![Known::new(first(1), stretched(scope, node, 0))],
        "Conv" | "FusedConv" => with(convolution(scope, node, 1)),
        "ConvInteger" => vec![Known::new(Some(ElementType::Int32), convolution(scope, node, 1))],
        "QLinearConv" => vec![Known::new(first(7), convolution(scope, node, 3))],
        "ConvTranspose" => with(spread(scope, node)),
        "MaxPool" | "AveragePool" | "LpPool" => with(kernel(node).and_then(|window| slide(scope, node, &window, None))),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => with(shape(0).map(|mut shape| {
            shape.iter_mut().skip(2).for_each(|dim| *dim = Dim::Known(1));
            shape
        })),
        "Gemm" => with(gemm(scope, node)),
        "MatMul" => with(product(shape(0), shape(1))),
        "MatMulInteger" => vec![Known::new(Some(ElementType::Int32), product(shape(0), shape(1)))],
        "QLinearMatMul" => vec![Known::new(first(7), product(shape(0), shape(3)))],
        "MatMulNBits" => with(shape(0).and_then(|mut shape| {
            *shape.last_mut()? = Dim::Known(u64::try_from(node.int("N")?).ok()?);
            Some(shape)
        })),
        "Concat" => with(concat(scope, node)),
        "Split" => split(scope, node).into_iter().map(|shape| Known::new(first(0), shape)).collect(),
        "Slice" => with(slice(scope, node)),
        "Gather" => with(gather(scope, node)),
        "GatherElements" => with(shape(1)),
        "Reshape" => with(reshape(scope, node)),
        "Flatten" => with(flatten(scope, node)),
        "Transpose" => with(transpose(scope, node)),
        "Squeeze" => with(squeeze(scope, node)),
        "Unsqueeze" => with(unsqueeze(scope, node)),
        "Expand" => with(expand(scope, node)),
        "Tile" => with(tile(scope, node)),
        "Pad" => with(pad(scope, node)),
        "Resize" | "Upsample" => with(resize(scope, node)),
        "DepthToSpace" | "SpaceToDepth" => with(blocks(scope, node)),
        "ArgMax" | "ArgMin" => {
            let found = shape(0).and_then(|input| {
                let at = axis(node.int("axis").unwrap_or(0), input.len())?;
                Some(drop_or_one(&input, &[at], node.int("keepdims").unwrap_or(1) != 0))
            });
            vec![Known::new(Some(ElementType::Int64), found)]
        }
        "TopK" => {
            let found = shape(0).and_then(|mut shape| {
                let at = axis(node.int("axis").unwrap_or(-1), shape.len())?;
                let count = node.int("k").or_else(|| scope.ints(node, 1)?.first().copied());
                shape[at] = count.and_then(|count| u64::try_from(count).ok()).map_or(Dim::Unknown, Dim::Known);
                Some(shape)
            });
            vec![Known::new(first(0), found.clone()), Known::new(Some(ElementType::Int64), found)]
        }
        "Shape" if node.attributes.is_empty() => {
            let rank = shape(0).map(|shape| vec![Dim::Known(shape.len() as u64)]);
            vec![Known::new(Some(ElementType::Int64), rank)]
        }
        "Size" => vec![Known::new(Some(ElementType::Int64), Some(Vec::new()))],
        "Shape" | "NonZero" => vec![Known::new(Some(ElementType::Int64), None)],
        "ConstantOfShape" => {
            let dtype = match node.attribute("value") {
                Some(AttributeValue::Tensor(value)) => value.dtype,
                _ => Some(ElementType::Float32),
            };
            let dims = scope.ints(node, 0).and_then(|sizes| {
                sizes.iter().map(|&size| u64::try_from(size).ok().map(Dim::Known)).collect::<Option<Vec<_>>>()
            });
            vec![Known::new(dtype, dims)]
        }
        _ => Vec::new(),
    }
}

/// Type that QuantizeLinear writes: that of its zero point, or the one it states; uint8 if it has neither.
fn quantized_type(scope: &Scope<'_>, node: &SourceNode) -> ElementType {
    let named = || node.int("output_dtype").and_then(|kind| ElementType::from_onnx(i32::try_from(kind).ok()?));
    scope.dtype(node, 2).or_else(named).unwrap_or(ElementType::Uint8)
}

fn constant(node: &SourceNode) -> Vec<Known> {
    let list = |count: u64| Some(vec![Dim::Known(count)]);
    let found = match node.attributes.first().map(|attribute| (&attribute.name[..], &attribute.value)) {
        Some(("value", AttributeValue::Tensor(tensor))) => {
            Known::new(tensor.dtype, Some(tensor.shape.iter().map(|&dim| Dim::Known(dim)).collect()))
        }
        Some(("value_int", _)) => Known::new(Some(ElementType::Int64), Some(Vec::new())),
        Some(("value_float", _)) => Known::new(Some(ElementType::Float32), Some(Vec::new())),
        Some(("value_ints", AttributeValue::Ints(count, _))) => Known::new(Some(ElementType::Int64), list(*count)),
        Some(("value_floats", AttributeValue::Floats(count, _))) => {
            Known::new(Some(ElementType::Float32), list(*count))
        }
        _ => return Vec::new(),
    };
    vec![found]
}

/// Broadcast shape of all inputs from `from` on.
fn stretched(scope: &Scope<'_>, node: &SourceNode, from: usize) -> Option<Vec<Dim>> {
    let mut shape = scope.shape(node, from)?;
    for index in from + 1..node.inputs.len() {
        shape = broadcast(&shape, &scope.shape(node, index)?)?;
    }
    Some(shape)
}

/// Shape of a convolution whose weights `[out, in per group, window...]` are this input.
fn convolution(scope: &Scope<'_>, node: &SourceNode, weights: usize) -> Option<Vec<Dim>> {
    let weights = known(&scope.shape(node, weights)?)?;
    slide(scope, node, weights.get(2..)?, Some(Dim::Known(*weights.first()?)))
}

fn gemm(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let turned = |name: &str| node.int(name).unwrap_or(0) != 0;
    let (left, right) = (scope.shape(node, 0)?, scope.shape(node, 1)?);
    let rows = left.get(usize::from(turned("transA")))?.clone();
    let columns = right.get(usize::from(!turned("transB")))?.clone();
    (left.len() == 2 && right.len() == 2).then(|| vec![rows, columns])
}

/// Shape of a matrix product, with vectors and leading dimensions as in NumPy.
fn product(left: Option<Vec<Dim>>, right: Option<Vec<Dim>>) -> Option<Vec<Dim>> {
    let (mut left, mut right) = (left?, right?);
    let (is_row, is_column) = (left.len() == 1, right.len() == 1);
    if left.is_empty() || right.is_empty() {
        return None;
    }
    if is_row {
        left.insert(0, Dim::Known(1));
    }
    if is_column {
        right.push(Dim::Known(1));
    }
    let (rows, columns) = (left[left.len() - 2].clone(), right[right.len() - 1].clone());
    let mut shape = broadcast(&left[..left.len() - 2], &right[..right.len() - 2])?;
    if !is_row {
        shape.push(rows);
    }
    if !is_column {
        shape.push(columns);
    }
    Some(shape)
}

fn reduced(scope: &Scope<'_>, node: &SourceNode) -> Option<Vec<Dim>> {
    let input = scope.shape(node, 0)?;
    let keeps = node.int("keepdims").unwrap_or(1) != 0;
    if node.attribute("axes").is_none() && !Scope::has(node, 1) {
        if node.int("noop_with_empty_axes").unwrap_or(0) != 0 {
            return Some(input);
        }
        return Some(if keeps { vec![Dim::Known(1); input.len()] } else { Vec::new() });
    }
    let found: Option<Vec<usize>> = axes(scope, node, 1)?.into_iter().map(|value| axis(value, input.len())).collect();
    let found = found.filter(|found| !found.is_empty())?;
    Some(drop_or_one(&input, &found, keeps))
}

fn drop_or_one(input: &[Dim], axes: &[usize], keeps: bool) -> Vec<Dim> {
    let rest = input.iter().enumerate().filter(|(at, _)| keeps || !axes.contains(at));
    rest.map(|(at, dim)| if axes.contains(&at) { Dim::Known(1) } else { dim.clone() }).collect()
}
