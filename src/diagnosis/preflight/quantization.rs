//! What is wrong or doubtful about the encodings of a graph. No backend is asked: many silently accept a bad
//! encoding and then compute garbage.

use super::sensitive;
use crate::models::{Graph, Op, Quantization, Tensor, TensorKind, hands_numbers_on};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// A range below this contains nothing but zero.
const ZERO_RANGE: f64 = 1e-12;
/// A range beyond the maximum of half floats: a masked -1e30 in the calibration, or a broken calibration.
const HUGE_RANGE: f64 = 65_504.0;
/// Largest relative deviation of a bias scale from the product of input and weight scales.
const BIAS_TOLERANCE: f64 = 0.02;
/// Largest relative difference between two scales that have to be equal.
const SAME_TOLERANCE: f64 = 1e-4;
/// Op types between float and fixed-point tensors, where both are correct.
const BORDERS: [&str; 4] = ["Quantize", "Dequantize", "Convert", "Cast"];
/// Op types whose second input is a weight tensor.
const WEIGHTED: [&str; 7] =
    ["Conv2d", "Conv3d", "DepthWiseConv2d", "TransposeConv2d", "TransposeConv3d", "FullyConnected", "MatMul"];
/// Op types that take or return integers by nature.
const INTEGER_OPS: [&str; 12] = [
    "Gather",
    "GatherNd",
    "GatherElements",
    "ScatterNd",
    "ScatterElements",
    "OneHot",
    "TopK",
    "Argmax",
    "Argmin",
    "NonZero",
    "Cast",
    "StridedSlice",
];

/// Severity of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Cannot work, or gives wrong results.
    Error,
    /// Often the reason for a refusal or poor accuracy.
    Warning,
    /// Worth knowing.
    Info,
}

/// A remark on the encoding of a tensor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Note {
    /// Stable id of this kind of note.
    pub id: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Its graph.
    pub graph: String,
    /// The tensor.
    pub tensor: Tensor,
    /// Names of the ops that read or write it.
    pub ops: Vec<String>,
    /// One sentence.
    pub message: String,
    /// How to fix it.
    pub remedy: &'static str,
}

/// A tensor with the ops that use it.
struct Seen<'a> {
    tensor: &'a Tensor,
    ops: Vec<&'a Op>,
}

/// Everything doubtful about a graph's encodings, worst first, then in the order of its ops.
pub fn notes(graph: &Graph) -> Vec<Note> {
    let mut order: Vec<&str> = Vec::new();
    let mut seen: HashMap<&str, Seen<'_>> = HashMap::new();
    for op in &graph.ops {
        for tensor in op.inputs.iter().chain(&op.outputs).filter(|tensor| tensor.kind != TensorKind::Null) {
            let entry = seen.entry(&tensor.name).or_insert_with(|| {
                order.push(&tensor.name);
                Seen { tensor, ops: Vec::new() }
            });
            if !entry.ops.iter().any(|known| known.index == op.index) {
                entry.ops.push(op);
            }
        }
    }
    let quantised = is_quantised(graph);
    let mut notes = Notes { graph, list: Vec::new() };
    for name in order {
        let entry = &seen[name];
        notes.of_tensor(entry);
        if quantised {
            notes.left_out(entry);
        }
    }
    for op in &graph.ops {
        notes.of_op(op);
    }
    notes.list.sort_by_key(|note| note.severity);
    notes.list
}

/// Whether most activations are fixed-point.
fn is_quantised(graph: &Graph) -> bool {
    let activations = graph.ops.iter().flat_map(|op| &op.outputs);
    let (fixed, float) = activations.fold((0, 0), |(fixed, float), tensor| {
        (fixed + u32::from(tensor.dtype.is_fixed_point()), float + u32::from(tensor.dtype.is_float()))
    });
    fixed > 0 && fixed >= float
}

struct Notes<'a> {
    graph: &'a Graph,
    list: Vec<Note>,
}

impl Notes<'_> {
    fn add(&mut self, id: &'static str, severity: Severity, (tensor, ops): (&Tensor, &[&Op]), message: String) {
        self.list.push(Note {
            id,
            severity,
            graph: self.graph.name.clone(),
            tensor: tensor.clone(),
            ops: ops.iter().map(|op| op.name.clone()).collect(),
            message,
            remedy: remedy(id),
        });
    }

    /// Checks what a tensor's own record says.
    fn of_tensor(&mut self, seen: &Seen<'_>) {
        let (tensor, at) = (seen.tensor, (seen.tensor, seen.ops.as_slice()));
        if tensor.shape.contains(&0) {
            let message = format!("`{}` has no elements: its shape is {}", tensor.name, tensor.shape_text());
            self.add("zero-size-tensor", Severity::Error, at, message);
        }
        let wide = matches!(tensor.dtype.name().as_str(), "int64" | "uint64" | "float64");
        if wide {
            let message = format!("`{}` is {}, which no backend computes with", tensor.name, tensor.dtype);
            self.add("wide-datatype", Severity::Warning, at, message);
        }
        let activation = !matches!(tensor.kind, TensorKind::Static | TensorKind::Null);
        let integer = matches!(tensor.dtype.name().as_str(), "int32" | "uint32");
        if activation && integer && seen.ops.iter().any(|op| !INTEGER_OPS.contains(&op.op_type.as_str())) {
            let message = format!("`{}` is an activation of {}, which HTP takes in few ops", tensor.name, tensor.dtype);
            self.add("integer-activation", Severity::Info, at, message);
        }
        match &tensor.quantization {
            None if tensor.dtype.is_fixed_point() => {
                let message = format!("`{}` is {} but has no encoding", tensor.name, tensor.dtype);
                self.add("missing-encoding", Severity::Error, at, message);
            }
            Some(Quantization::ScaleOffset { scale, offset, bitwidth }) => {
                self.encoding(at, *scale, *offset, *bitwidth);
            }
            Some(Quantization::AxisScaleOffset { axis, scales, offsets, bitwidth }) => {
                self.axis(at, *axis, scales, offsets);
                // One slice stands for all: the first bad one.
                let slices = scales.iter().zip(offsets.iter().copied().chain(std::iter::repeat(0)));
                for (scale, offset) in slices {
                    let before = self.list.len();
                    self.encoding(at, *scale, offset, *bitwidth);
                    if self.list.len() > before {
                        break;
                    }
                }
            }
            _ => {}
        }
    }

    /// Checks one scale and offset.
    fn encoding(&mut self, at: (&Tensor, &[&Op]), scale: f64, offset: i32, bitwidth: Option<u32>) {
        let tensor = at.0;
        if !tensor.dtype.is_fixed_point() {
            // Converters leave encodings on float tensors; they mean nothing there.
            return;
        }
        if !scale.is_finite() || scale < 0.0 {
            let message = format!("`{}` has the scale {scale}", tensor.name);
            self.add("invalid-scale", Severity::Error, at, message);
            return;
        }
        let bits = tensor.dtype.bits();
        if let (Some(used), Some(bits)) = (bitwidth, bits)
            && (used == 0 || used > bits)
        {
            let message =
                format!("the encoding of `{}` uses {used} bits, its type {} has {bits}", tensor.name, tensor.dtype);
            self.add("bitwidth-mismatch", Severity::Error, at, message);
        }
        let Some((least, most)) = tensor.dtype.integer_range() else { return };
        let range = scale * (most - least) as f64;
        let narrow = bits.is_some_and(|bits| bits <= 16);
        if range < ZERO_RANGE {
            let message =
                format!("`{}` has a range of zero (scale {scale:e}): everything becomes one number", tensor.name);
            self.add("zero-range", Severity::Error, at, message);
        } else if narrow && range > HUGE_RANGE {
            let (low, high) = real_range(scale, offset, least, most);
            let message = format!("`{}` spans {low:.4e} to {high:.4e}: one step is {scale:.3e}", tensor.name);
            self.add("huge-range", Severity::Warning, at, message);
        }
        let zero = -i64::from(offset);
        if !(least..=most).contains(&zero) {
            let (low, high) = real_range(scale, offset, least, most);
            let message = format!(
                "the range of `{}`, {low:.4} to {high:.4}, leaves 0 out: offset {offset} is outside {} to {}",
                tensor.name, -most, -least
            );
            self.add("offset-outside", Severity::Error, at, message);
        }
    }

    fn axis(&mut self, at: (&Tensor, &[&Op]), axis: i32, scales: &[f64], offsets: &[i32]) {
        let tensor = at.0;
        let slices = usize::try_from(axis).ok().and_then(|axis| tensor.shape.get(axis)).copied();
        if slices.is_none_or(|slices| slices as usize != scales.len()) {
            let has = slices.map_or_else(|| "no such axis".to_owned(), |slices| format!("{slices} slices there"));
            let message = format!("`{}` has {} scales on axis {axis}, its shape has {has}", tensor.name, scales.len());
            self.add("axis-mismatch", Severity::Error, at, message);
        }
        if offsets.iter().any(|offset| *offset != 0) && tensor.dtype.name().starts_with('s') {
            let message = format!("`{}` has per-channel offsets other than 0", tensor.name);
            self.add("asymmetric-weights", Severity::Warning, at, message);
        }
    }

    /// Reports a float tensor between fixed-point ones: usually one that the quantiser missed.
    fn left_out(&mut self, seen: &Seen<'_>) {
        let Seen { tensor, ops } = seen;
        let inner: Vec<&Op> = ops.iter().copied().filter(|op| !BORDERS.contains(&op.op_type.as_str())).collect();
        let mixed = inner.iter().any(|op| op.inputs.iter().chain(&op.outputs).any(|t| t.dtype.is_fixed_point()));
        if tensor.dtype.is_float() && mixed {
            let message = format!("`{}` is {} inside a quantised graph: it has no encoding", tensor.name, tensor.dtype);
            self.add("float-in-quantised-graph", Severity::Error, (tensor, &inner), message);
        }
    }

    /// Checks what only shows in the combination of an op's tensors.
    fn of_op(&mut self, op: &Op) {
        let one = |tensor: &Tensor| match tensor.quantization {
            Some(Quantization::ScaleOffset { scale, offset, .. }) if tensor.dtype.is_fixed_point() => {
                Some((scale, offset))
            }
            _ => None,
        };
        if WEIGHTED.contains(&op.op_type.as_str())
            && let [input, weights, rest @ ..] = op.inputs.as_slice()
        {
            if weights.kind == TensorKind::Static
                && weights.dtype.name().starts_with("sfixed")
                && let Some((_, offset)) = one(weights)
                && offset != 0
            {
                let message = format!("the weights `{}` are signed with offset {offset}", weights.name);
                self.add("asymmetric-weights", Severity::Warning, (weights, &[op]), message);
            }
            if let Some(bias) = rest.first().filter(|bias| bias.dtype.name() == "sfixed32")
                && let (Some((input, _)), Some((weight, _)), Some((scale, _))) = (one(input), one(weights), one(bias))
                && (scale / (input * weight) - 1.0).abs() > BIAS_TOLERANCE
            {
                let message = format!(
                    "the scale of the bias `{}` is {scale:.4e}, that of input times weights {:.4e}",
                    bias.name,
                    input * weight
                );
                self.add("bias-scale", Severity::Warning, (bias, &[op]), message);
            }
        }
        if (hands_numbers_on(&op.op_type) || op.op_type == "ChannelShuffle")
            && let (Some(input), Some(output)) = (op.inputs.first(), op.outputs.first())
            && input.dtype == output.dtype
            && let (Some((scale_in, offset_in)), Some((scale_out, offset_out))) = (one(input), one(output))
            && ((scale_in / scale_out - 1.0).abs() > SAME_TOLERANCE || offset_in != offset_out)
        {
            let message = format!(
                "{} `{}` only moves data, but its encodings differ: scale {scale_in:.4e}, offset {offset_in} in; \
                 {scale_out:.4e}, {offset_out} out",
                op.op_type, op.name
            );
            self.add("encoding-changed-by-move", Severity::Warning, (output, &[op]), message);
        }
        if let (Some(why), Some(output)) = (sensitive::why(op), op.outputs.first())
            && output.dtype.is_fixed_point()
            && output.dtype.bits() == Some(8)
        {
            let message = format!("{} `{}` writes 8-bit activations: {why}", op.op_type, op.name);
            self.add("sensitive-8-bit", Severity::Info, (output, &[op]), message);
        }
    }
}

/// The real values at the two ends of a range.
fn real_range(scale: f64, offset: i32, least: i64, most: i64) -> (f64, f64) {
    let real = |stored: i64| (stored + i64::from(offset)) as f64 * scale;
    (real(least), real(most))
}

fn remedy(id: &str) -> &'static str {
    match id {
        "zero-size-tensor" => "remove it: an empty optional input (a Resize's roi) has to be absent, not empty",
        "wide-datatype" => "cast it to int32 or float32 where it is made",
        "integer-activation" => "quantise it, or keep index arithmetic out of the part that HTP runs",
        "missing-encoding" => {
            "give it an encoding: include its op in the calibration, or override it in the encodings file"
        }
        "invalid-scale" => "quantise again: the calibration gave no usable minimum and maximum for it",
        "zero-range" => "calibrate with data for which this tensor is not constant, or fold it into a constant",
        "huge-range" => "clip what makes the range (a mask of -1e30 or -inf: use -100), or quantise it with 16 bits",
        "offset-outside" => "make the range include 0 (minimum <= 0 <= maximum): padding, ReLU and biases need it",
        "bitwidth-mismatch" => "quantise with a bit width that the container holds",
        "axis-mismatch" => "give one scale per slice of the axis along which the weights are quantised",
        "asymmetric-weights" => "quantise signed weights symmetrically: offset 0",
        "float-in-quantised-graph" => {
            "quantise it: an op without an encoding at its output is refused with 3110; calibrate it, or override its encoding"
        }
        "bias-scale" => "leave the bias to the converter, or give it the product of both scales",
        "encoding-changed-by-move" => "give input and output the same encoding: the difference costs a requantisation",
        "sensitive-8-bit" => "if accuracy suffers, give this op 16-bit activations first",
        _ => "quantise again",
    }
}

/// Notes grouped by id, worst and most frequent first.
pub fn grouped(notes: &[Note]) -> Vec<(&'static str, Vec<&Note>)> {
    let mut groups: BTreeMap<&'static str, Vec<&Note>> = BTreeMap::new();
    for note in notes {
        groups.entry(note.id).or_default().push(note);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, notes)| (notes[0].severity, std::cmp::Reverse(notes.len())));
    groups
}

#[cfg(test)]
mod tests;
