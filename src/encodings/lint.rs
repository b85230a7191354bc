//! Problems in a set of encodings: on their own, against their model, and for the hardware.

use super::{Encoding, Encodings, Finding, Format, Names, Slice, Use};
use crate::models::{Graph, Op, Tensor, TensorKind};
use std::collections::{HashMap, HashSet};

/// Tolerance between scale and ends, as a share of the range.
const CONTRADICTION: f64 = 0.005;
/// Half a step is still half a step where its figures were rounded.
const ROUNDING: f64 = 1.001;
/// How far a bias' scale may be off the product of its op's scales.
const BIAS_TOLERANCE: f64 = 1e-3;
/// Slices whose faults are told.
const MOST: usize = 4;
/// First Hexagon architecture that accepts 16-bit weights (tried: v68 refuses them, v75 accepts them).
const WIDE_WEIGHTS: u32 = 73;

/// Ops that only pass values on: their output has the encoding of their input.
const PASS_THROUGH: [&str; 18] = [
    "Reshape",
    "Transpose",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Identity",
    "Split",
    "StridedSlice",
    "Slice",
    "Gather",
    "Expand",
    "ExpandDims",
    "Tile",
    "DepthToSpace",
    "SpaceToDepth",
    "MaxPool",
    "PoolMax2d",
    "Dropout",
];
/// Ops whose output before an activation has no encoding on purpose: both become one.
const FUSED: [&str; 12] = [
    "Conv",
    "Conv2d",
    "Conv3d",
    "DepthWiseConv2d",
    "TransposeConv2d",
    "ConvTranspose",
    "FullyConnected",
    "Gemm",
    "MatMul",
    "Add",
    "ElementWiseAdd",
    "ElementWiseBinary",
];
/// Activations that are fused with the op before them.
const ACTIVATIONS: [&str; 6] = ["Relu", "Relu6", "ReluMinMax", "Clip", "ElementWiseNeuron", "PRelu"];
/// Ops between floats and integers.
const BORDERS: [&str; 6] = ["Quantize", "Dequantize", "Convert", "Cast", "QuantizeLinear", "DequantizeLinear"];

/// The target hardware of the encodings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hardware {
    /// Hexagon architecture, such as 75.
    pub hexagon_arch: Option<u32>,
}

/// All errors and doubtful findings. `model` holds the graphs the encodings are for.
pub fn lint(encodings: &Encodings, model: Option<&[Graph]>, hardware: Hardware) -> Vec<Finding> {
    let mut findings = encodings.findings.clone();
    let names = model.map(Names::of);
    for encoding in &encodings.tensors {
        alone(encoding, encodings.format, &mut findings);
        bits(encoding, hardware, &mut findings);
        if let Some(names) = &names {
            match names.tensor(&encoding.name) {
                Some(tensor) => channels(encoding, tensor, &mut findings),
                None => unknown(encoding, names, &mut findings),
            }
        }
    }
    if let Some(graphs) = model {
        let by_name: HashMap<&str, &Encoding> =
            encodings.tensors.iter().map(|encoding| (crate::accuracy::base_name(&encoding.name), encoding)).collect();
        for graph in graphs {
            islands(graph, &by_name, &mut findings);
            biases(graph, &by_name, &mut findings);
        }
    }
    findings
}

/// Which slices, for people.
fn which(hit: &[usize], encoding: &Encoding) -> String {
    if encoding.slices.len() < 2 {
        return String::new();
    }
    let numbers = hit.iter().take(MOST).map(usize::to_string).collect::<Vec<_>>().join(", ");
    let more = if hit.len() > MOST { format!(" and {} more", hit.len() - MOST) } else { String::new() };
    format!(" (channels {numbers}{more})")
}

/// One finding for all slices failing a test, worded for the first of them.
fn slices(
    encoding: &Encoding,
    id: &'static str,
    fix: &str,
    findings: &mut Vec<Finding>,
    test: impl Fn(&Slice) -> Option<String>,
) -> bool {
    let hit: Vec<(usize, String)> =
        encoding.slices.iter().enumerate().filter_map(|(at, slice)| Some((at, test(slice)?))).collect();
    let Some((_, first)) = hit.first() else { return false };
    let numbers: Vec<usize> = hit.iter().map(|(at, _)| *at).collect();
    findings.push(Finding::error(id, &encoding.name, format!("{first}{}", which(&numbers, encoding)), fix));
    true
}

/// Problems visible in the encoding itself.
fn alone(encoding: &Encoding, format: Format, findings: &mut Vec<Finding>) {
    if encoding.is_float {
        return;
    }
    let name = &encoding.name;
    if encoding.slices.is_empty() {
        let message = "it has no scale".to_owned();
        findings.push(Finding::error("bad-scale", name, message, "give scale and offset, or min and max"));
        return;
    }
    let bad_scale = slices(encoding, "bad-scale", "calibrate again; a scale is a number above 0", findings, |slice| {
        let incomplete = slice.scale.is_none() && (slice.min.is_none() || slice.max.is_none());
        match slice.scale {
            Some(scale) if scale <= 0.0 || !scale.is_finite() => Some(format!("its scale is {scale}")),
            _ if incomplete => Some("it has neither a scale nor min and max".to_owned()),
            _ => None,
        }
    });
    let bad_range =
        slices(encoding, "bad-range", "zero must be representable: min <= 0 <= max, min < max", findings, |slice| {
            let (min, max) = (slice.min?, slice.max?);
            if min >= max || min.is_nan() || max.is_nan() {
                return Some(format!("its range is empty: {min}..{max}"));
            }
            (min > 0.0 || max < 0.0).then(|| format!("zero is not in its range {min}..{max}"))
        });
    let levels = encoding.levels();
    let fix = match format {
        Format::Aimet200 => "a zero point lies within the stored range; the offset is its negative",
        _ => "offset = min / scale: 0 or negative; ONNX's zero point is minus the offset",
    };
    let bad_sign = slices(encoding, "offset-sign", fix, findings, |slice| {
        let offset = slice.offset.filter(|offset| *offset > 0.0)?;
        let turned = slice.min.map_or_else(String::new, |min| format!(", though its smallest number is {min}"));
        Some(format!("its offset is {offset}{turned}: converters flip the sign, other tools shift the range"))
    });
    slices(encoding, "offset-not-whole", "round it, and derive min and max from it", findings, |slice| {
        let offset = slice.offset?;
        (offset.fract() != 0.0).then(|| format!("its offset is {offset}, not an integer"))
    });
    slices(
        encoding,
        "offset-range",
        "calibrate again: with such an offset zero is not representable",
        findings,
        |slice| {
            let offset = slice.offset?;
            (offset.abs() > levels)
                .then(|| format!("its offset {offset} lies outside the {} stored values", levels + 1.0))
        },
    );
    if !(bad_scale || bad_range || bad_sign) {
        slices(
            encoding,
            "scale-range",
            "remove scale and offset, or compute them from min and max",
            findings,
            |slice| {
                let (scale, min, max) = (slice.scale?, slice.min?, slice.max?);
                let (width, said) = (scale * levels, max - min);
                if (width - said).abs() > CONTRADICTION * said.max(width) {
                    let right = said / levels;
                    return Some(format!(
                        "scale {scale} spans {width:.6}, but min and max span {said:.6}, which is scale {right:.8}"
                    ));
                }
                let offset = slice.offset?;
                ((min - offset * scale).abs() > scale / 2.0 * ROUNDING)
                    .then(|| format!("min is {min}, but offset x scale is {:.6}", offset * scale))
            },
        );
    }
    if encoding.symmetric == Some(true) {
        let middle = encoding.middle();
        let hit: Vec<usize> = encoding
            .slices
            .iter()
            .enumerate()
            .filter(|(_, slice)| {
                slice
                    .offset
                    .is_some_and(|offset| [middle, middle + 1.0, 0.0].iter().all(|right| (offset - right).abs() > 0.5))
            })
            .map(|(at, _)| at)
            .collect();
        if let Some(&at) = hit.first() {
            let offset = encoding.slices[at].offset.unwrap_or(0.0);
            let message =
                format!("it is marked symmetric, and its offset is {offset}, not {middle}{}", which(&hit, encoding));
            findings.push(Finding::warning(
                "symmetric-flag",
                name,
                message,
                "write False, or centre the range on zero",
            ));
        }
    } else if encoding.used == Use::Parameter && encoding.symmetric == Some(false) && encoding.per_channel {
        let message = "its per-channel weights are not symmetric: HTP takes only symmetric ones".to_owned();
        findings.push(Finding::warning("symmetric-weights", name, message, "quantise weights symmetrically"));
    }
}

/// Widths that backends refuse.
fn bits(encoding: &Encoding, hardware: Hardware, findings: &mut Vec<Finding>) {
    if encoding.is_float {
        return;
    }
    let name = &encoding.name;
    match (encoding.used, encoding.bits) {
        (Use::Activation, bits) if bits < 8 => {
            let message = format!("it is an activation with {bits} bits, which no backend supports");
            findings.push(Finding::error("bit-width", name, message, "give it 8 or 16 bits"));
        }
        (_, bits) if ![2, 4, 8, 16, 32].contains(&bits) => {
            let message = format!("QNN has no type with {bits} bits");
            findings.push(Finding::error("bit-width", name, message, "give it 4 (weights), 8 or 16 bits"));
        }
        (Use::Parameter, 4) if !encoding.per_channel => {
            let message =
                "its weights have 4 bits and a single scale, which HTP refuses (`No weight scales found`)".to_owned();
            findings.push(Finding::error("bit-width", name, message, "quantise 4-bit weights per channel"));
        }
        (Use::Parameter, 16) => {
            let message = "its weights have 16 bits, which HTP supports from v73 on (v68 refuses them)".to_owned();
            let fix = "give weights 8 bits, or compile for a newer SoC";
            match hardware.hexagon_arch {
                Some(arch) if arch >= WIDE_WEIGHTS => {}
                Some(_) => findings.push(Finding::error("bit-width", name, message, fix)),
                None => findings.push(Finding::info("bit-width", name, message, fix)),
            }
        }
        _ => {}
    }
}

fn unknown(encoding: &Encoding, names: &Names, findings: &mut Vec<Finding>) {
    let name = &encoding.name;
    let fix = match (names.made_by(name), names.nearest(name)) {
        (Some(output), _) => format!("this is the name of an op; its output tensor is `{output}`"),
        (None, Some(near)) => format!("did you mean `{near}`?"),
        (None, None) => "no name in the model resembles it: was the file made for another model, or for the model before conversion?".to_owned(),
    };
    let message = "the model has no tensor of this name; converters silently drop the record".to_owned();
    findings.push(Finding::error("unknown-tensor", name, message, fix));
}

/// The number of slices against the tensor's shape.
fn channels(encoding: &Encoding, tensor: &Tensor, findings: &mut Vec<Finding>) {
    let count = encoding.slices.len();
    if count < 2 && !(encoding.per_channel && encoding.axis.is_some()) {
        return;
    }
    let shape = tensor.shape_text();
    let rank = i64::try_from(tensor.shape.len()).unwrap_or(0);
    let Some(axis) = encoding.axis else {
        // Without an axis any that fits will do.
        if !tensor.shape.iter().any(|&size| size as usize == count) {
            let message = format!("it has {count} scales, and no axis of {shape} has that many channels");
            findings.push(Finding::error(
                "channel-count",
                &encoding.name,
                message,
                "write one scale for each output channel",
            ));
        }
        return;
    };
    let at = if axis < 0 { axis + rank } else { axis };
    let size = usize::try_from(at).ok().and_then(|at| tensor.shape.get(at));
    match size {
        None => {
            let message = format!("axis {axis} is outside {shape}");
            findings.push(Finding::error(
                "axis",
                &encoding.name,
                message,
                format!("use an axis from 0 to {}", rank - 1),
            ));
        }
        // The model may have the weights in another order than the file's.
        Some(&size) if size as usize != count => {
            let elsewhere = tensor.shape.iter().position(|&size| size as usize == count);
            let message = format!("it has {count} scales for axis {axis}, which has {size} channels ({shape})");
            match elsewhere {
                Some(other) => findings.push(Finding::warning(
                    "axis",
                    &encoding.name,
                    message,
                    format!("axis {other} of this model has that many; converters move axes, so check the axis in the file's own model"),
                )),
                None => findings.push(Finding::error("channel-count", &encoding.name, message, "write one scale for each channel")),
            }
        }
        Some(_) => {}
    }
}

fn is_value(tensor: &Tensor) -> bool {
    crate::accuracy::is_real(tensor.dtype)
        && matches!(tensor.kind, TensorKind::Native | TensorKind::Input | TensorKind::Output | TensorKind::InputOutput)
}

/// Tensors without an encoding between ops that have one.
fn islands(graph: &Graph, encodings: &HashMap<&str, &Encoding>, findings: &mut Vec<Finding>) {
    let base = crate::accuracy::base_name;
    let mut readers: HashMap<&str, Vec<&Op>> = HashMap::new();
    for op in &graph.ops {
        for tensor in &op.inputs {
            readers.entry(&tensor.name).or_default().push(op);
        }
    }
    // Ops that only pass values on keep their input's encoding.
    let mut known: HashSet<&str> = HashSet::new();
    let has = |known: &HashSet<&str>, name: &str| known.contains(name) || encodings.contains_key(base(name));
    for op in &graph.ops {
        let from = op.inputs.iter().any(|tensor| is_value(tensor) && has(&known, &tensor.name));
        if from && PASS_THROUGH.contains(&op.op_type.as_str()) {
            known.extend(op.outputs.iter().map(|tensor| tensor.name.as_str()));
        }
    }
    for op in graph.ops.iter().filter(|op| !BORDERS.contains(&op.op_type.as_str())) {
        let fed = op.inputs.iter().any(|tensor| is_value(tensor) && has(&known, &tensor.name));
        for tensor in op.outputs.iter().filter(|tensor| is_value(tensor) && !has(&known, &tensor.name)) {
            let readers = readers.get(tensor.name.as_str()).map(Vec::as_slice).unwrap_or_default();
            let is_fused = FUSED.contains(&op.op_type.as_str())
                && !readers.is_empty()
                && readers.iter().all(|reader| ACTIVATIONS.contains(&reader.op_type.as_str()));
            let goes_on = readers
                .iter()
                .any(|reader| reader.outputs.iter().any(|output| is_value(output) && has(&known, &output.name)));
            if fed && goes_on && !is_fused {
                let message = format!(
                    "it has no encoding between `{}` and ops that have one: a float island in an integer graph",
                    op.name
                );
                findings.push(Finding::warning(
                    "missing-encoding",
                    &tensor.name,
                    message,
                    "calibrate it with the rest, or override it",
                ));
            }
        }
    }
}

/// Biases against the scales that they are added to.
fn biases(graph: &Graph, encodings: &HashMap<&str, &Encoding>, findings: &mut Vec<Finding>) {
    let of = |tensor: &Tensor| encodings.get(crate::accuracy::base_name(&tensor.name)).copied();
    for op in graph.ops.iter().filter(|op| FUSED.contains(&op.op_type.as_str()) && op.inputs.len() >= 3) {
        let (Some(input), Some(weights), Some(bias)) = (of(&op.inputs[0]), of(&op.inputs[1]), of(&op.inputs[2])) else {
            continue;
        };
        if bias.bits != 32 || bias.used != Use::Parameter {
            continue;
        }
        let first = |encoding: &Encoding| {
            encoding.slices.first().and_then(|slice| encoding.resolved(slice)).map(|slice| slice.0)
        };
        let Some(step) = first(input) else { continue };
        let hit = bias.slices.iter().enumerate().find_map(|(at, slice)| {
            let weight = weights.slices.get(at).or(weights.slices.first())?;
            let (right, is) = (step * weights.resolved(weight)?.0, slice.scale?);
            ((is - right).abs() > BIAS_TOLERANCE * right.abs()).then_some((at, is, right))
        });
        if let Some((at, is, right)) = hit {
            let message = format!(
                "its scale {is:.6e}{} is not input x weight scale, {right:.6e}",
                if bias.slices.len() > 1 { format!(" of channel {at}") } else { String::new() }
            );
            findings.push(Finding::warning("bias-scale", &bias.name, message, "leave biases to the converter"));
        }
    }
}
