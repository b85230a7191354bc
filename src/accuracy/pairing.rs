//! Which tensor of the test is which of the reference: by name, by the op that makes it, else by order, type and shape.

use super::layout::Layout;
use crate::models::{DataType, Graph, Op, Tensor, TensorKind};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// Ends of names that quantisers and composers put behind a tensor's own.
const NAME_ENDS: [&str; 13] = [
    "_QuantizeLinear_Input",
    "_QuantizeLinear_Output",
    "_QuantizeLinear",
    "_DequantizeLinear_Output",
    "_DequantizeLinear",
    "_quantized",
    "_dequantized",
    "_converted_QNN_DATATYPE_UFIXED_POINT_8",
    "_converted_QNN_DATATYPE_FLOAT_16",
    ".nchw",
    ".nhwc",
    ".ncf",
    ".nfc",
];

/// Op types that a quantised graph folds into the op before them.
const ACTIVATIONS: [&str; 8] =
    ["ElementWiseNeuron", "Relu", "Relu1", "Relu6", "ReluMinMax", "Sigmoid", "Tanh", "HardSwish"];

/// How a pair was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The tensors have one name.
    Name,
    /// The ops that make them have one name.
    Op,
    /// They are the next ones of one op type and shape.
    Order,
}

/// A tensor that an op makes, or an input of the graph.
#[derive(Debug, Clone)]
pub struct Slot {
    /// The tensor.
    pub tensor: Tensor,
    /// Position of its op; `None` for an input of the graph.
    pub op: Option<usize>,
}

/// Two tensors that are the same one.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The reference's.
    pub reference: Slot,
    /// The test's, which an op makes.
    pub test: Slot,
    /// How the elements of the reference stand in the test.
    pub layout: Layout,
    /// How they were found.
    pub how: How,
    /// Positions of the pairs that the test's op computes from, through ops without a pair; inputs of the graph are none.
    pub sources: Vec<usize>,
}

impl Pair {
    /// Name of the test's tensor.
    pub fn name(&self) -> &str {
        &self.test.tensor.name
    }
}

/// All pairs, in the order of the test's ops, and what has no pair.
#[derive(Debug, Clone, Default)]
pub struct Pairing {
    /// Pairs.
    pub pairs: Vec<Pair>,
    /// Names of tensors of the reference that no tensor of the test is.
    pub reference_only: Vec<String>,
    /// Names of tensors of the test without a pair.
    pub test_only: Vec<String>,
}

/// The name without what quantisers and composers put behind it.
pub fn base_name(name: &str) -> &str {
    let mut name = name;
    while let Some(short) = NAME_ENDS.iter().find_map(|end| name.strip_suffix(end)).filter(|short| !short.is_empty()) {
        name = short;
    }
    name
}

/// The name of an op without its number: `conv1_token_7` is `conv1`.
fn base_op(name: &str) -> &str {
    match name.rfind("_token_") {
        Some(at) if at > 0 && name[at + 7..].chars().all(|c| c.is_ascii_digit()) => &name[..at],
        _ => name,
    }
}

/// One graph, with what reads what.
struct Side<'a> {
    graph: &'a Graph,
    slots: Vec<Slot>,
    by_name: HashMap<&'a str, usize>,
    by_base: HashMap<&'a str, usize>,
    by_op: HashMap<&'a str, Vec<usize>>,
    readers: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Side<'a> {
    fn new(graph: &'a Graph) -> Self {
        let inputs = graph.inputs.iter().map(|tensor| (tensor, None));
        let made =
            graph.ops.iter().enumerate().flat_map(|(at, op)| op.outputs.iter().map(move |tensor| (tensor, Some(at))));
        let mut side = Self {
            graph,
            slots: Vec::new(),
            by_name: HashMap::new(),
            by_base: HashMap::new(),
            by_op: HashMap::new(),
            readers: HashMap::new(),
        };
        for (tensor, op) in inputs.chain(made).filter(|(tensor, _)| can_be_read(tensor)) {
            let at = side.slots.len();
            side.slots.push(Slot { tensor: tensor.clone(), op });
            side.by_name.entry(&tensor.name).or_insert(at);
            side.by_base.entry(base_name(&tensor.name)).or_insert(at);
            if let Some(op) = op {
                side.by_op.entry(base_op(&graph.ops[op].name)).or_default().push(at);
            }
        }
        for (at, op) in graph.ops.iter().enumerate() {
            for tensor in &op.inputs {
                side.readers.entry(&tensor.name).or_default().push(at);
            }
        }
        side
    }

    fn op(&self, slot: usize) -> Option<&'a Op> {
        self.slots[slot].op.map(|op| &self.graph.ops[op])
    }

    /// The activation that alone reads this tensor.
    fn activation(&self, slot: usize) -> Option<usize> {
        let [reader] = self.readers.get(self.slots[slot].tensor.name.as_str())?.as_slice() else { return None };
        let op = &self.graph.ops[*reader];
        let output = op.outputs.first()?;
        ACTIVATIONS.contains(&op.op_type.as_str()).then(|| self.by_name.get(output.name.as_str()).copied()).flatten()
    }
}

/// Whether a tensor has numbers that a runner can hand out.
pub fn can_be_read(tensor: &Tensor) -> bool {
    let numbers = !matches!(&tensor.quantization, Some(crate::models::Quantization::Other { .. }))
        || !tensor.dtype.is_fixed_point();
    let sized = tensor.bytes().is_some_and(|bytes| u32::try_from(bytes).is_ok());
    let used =
        matches!(tensor.kind, TensorKind::Native | TensorKind::Output | TensorKind::Input | TensorKind::InputOutput);
    numbers && sized && used
}

/// Whether one can be compared with the other: numbers with numbers, counts with counts.
fn comparable(a: DataType, b: DataType) -> bool {
    is_real(a) == is_real(b)
}

/// True for types that stand for real numbers.
pub fn is_real(dtype: DataType) -> bool {
    dtype.is_float() || dtype.is_fixed_point()
}

/// Finds the pairs of two graphs.
pub fn pair(reference: &Graph, test: &Graph) -> Pairing {
    let (reference, test) = (Side::new(reference), Side::new(test));
    let mut found: Vec<Option<(usize, How)>> = vec![None; test.slots.len()];
    let fits = |at: usize, candidate: usize| {
        let (a, b) = (&reference.slots[candidate].tensor, &test.slots[at].tensor);
        comparable(a.dtype, b.dtype) && Layout::between(&a.shape, &b.shape).is_some()
    };
    for (at, slot) in test.slots.iter().enumerate() {
        let name = slot.tensor.name.as_str();
        let named = reference.by_name.get(name).or_else(|| reference.by_base.get(base_name(name))).copied();
        if let Some(candidate) = named.filter(|&candidate| fits(at, candidate)) {
            // A tensor before its activation has the op's name in some graphs, and its activation's in others.
            found[at] = Some((behind_activation(&reference, &test, candidate, at), How::Name));
        }
    }
    for (at, pair) in found.iter_mut().enumerate() {
        let Some(op) = test.op(at).filter(|_| pair.is_none()) else { continue };
        let position = op.outputs.iter().position(|tensor| tensor.name == test.slots[at].tensor.name).unwrap_or(0);
        let same_type = |&&candidate: &&usize| {
            reference.op(candidate).is_some_and(|other| {
                other.op_type == op.op_type
                    && other.outputs.iter().position(|t| t.name == reference.slots[candidate].tensor.name)
                        == Some(position)
            })
        };
        let candidates = reference.by_op.get(base_op(&op.name)).map(Vec::as_slice).unwrap_or_default();
        let same: Vec<&usize> = candidates.iter().filter(same_type).collect();
        // A name of several ops of one type says nothing.
        if let [candidate] = same.as_slice() {
            let candidate = behind_activation(&reference, &test, **candidate, at);
            if fits(at, candidate) {
                *pair = Some((candidate, How::Op));
            }
        }
    }
    by_order(&reference, &test, &mut found, fits);
    assemble(&reference, &test, &found)
}

/// What quantised graphs fold: a convolution and its activation make one tensor, that behind the activation.
fn behind_activation(reference: &Side<'_>, test: &Side<'_>, candidate: usize, at: usize) -> usize {
    match reference.activation(candidate) {
        Some(activation)
            if test.activation(at).is_none()
                && test.op(at).is_some_and(|op| !ACTIVATIONS.contains(&op.op_type.as_str()))
                && reference.op(candidate).map(|op| &op.op_type) == test.op(at).map(|op| &op.op_type)
                && !test.by_op.contains_key(base_op(reference.op(activation).map_or("", |op| &op.name))) =>
        {
            activation
        }
        _ => candidate,
    }
}

/// Gives each tensor that is left the next one of its op type and shape between its neighbours' pairs.
fn by_order(
    reference: &Side<'_>,
    test: &Side<'_>,
    found: &mut [Option<(usize, How)>],
    fits: impl Fn(usize, usize) -> bool,
) {
    let mut taken: HashSet<usize> = found.iter().flatten().map(|(candidate, _)| *candidate).collect();
    let mut low = 0;
    for at in 0..found.len() {
        if let Some((candidate, _)) = found[at] {
            low = low.max(candidate);
            continue;
        }
        let Some(op) = test.op(at) else { continue };
        let high = found[at + 1..].iter().flatten().map(|(candidate, _)| *candidate).find(|&next| next > low);
        let high = high.unwrap_or(reference.slots.len());
        let candidate = (low..high).find(|candidate| {
            let same = reference.op(*candidate).is_some_and(|other| other.op_type == op.op_type);
            same && !taken.contains(candidate) && fits(at, *candidate)
        });
        if let Some(candidate) = candidate {
            let candidate = Some(behind_activation(reference, test, candidate, at))
                .filter(|behind| !taken.contains(behind) && fits(at, *behind))
                .unwrap_or(candidate);
            taken.insert(candidate);
            found[at] = Some((candidate, How::Order));
            low = candidate;
        }
    }
}

fn assemble(reference: &Side<'_>, test: &Side<'_>, found: &[Option<(usize, How)>]) -> Pairing {
    let mut pairing = Pairing::default();
    let mut used = HashSet::new();
    // What each tensor of the test comes from: itself where it has a pair, else what its op reads.
    let mut origins: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut slots: HashMap<&str, usize> = HashMap::new();
    for (at, slot) in test.slots.iter().enumerate() {
        slots.entry(&slot.tensor.name).or_insert(at);
    }
    for op in &test.graph.ops {
        let mut sources: Vec<usize> = op
            .inputs
            .iter()
            .flat_map(|tensor| origins.get(tensor.name.as_str()).cloned().unwrap_or_default())
            .collect();
        sources.sort_unstable();
        sources.dedup();
        for tensor in &op.outputs {
            let own = slots.get(tensor.name.as_str()).and_then(|&at| Some((at, found[at]?)));
            let Some((at, (candidate, how))) = own else {
                if tensor.kind != TensorKind::Null {
                    pairing.test_only.push(tensor.name.clone());
                }
                origins.insert(&tensor.name, sources.clone());
                continue;
            };
            let (a, b) = (&reference.slots[candidate], &test.slots[at]);
            let Some(layout) = Layout::between(&a.tensor.shape, &b.tensor.shape) else { continue };
            used.insert(candidate);
            origins.insert(&tensor.name, vec![pairing.pairs.len()]);
            let sources = sources.clone();
            pairing.pairs.push(Pair { reference: a.clone(), test: b.clone(), layout, how, sources });
        }
    }
    pairing.reference_only = reference
        .slots
        .iter()
        .enumerate()
        .filter(|(at, slot)| slot.op.is_some() && !used.contains(at))
        .map(|(_, slot)| slot.tensor.name.clone())
        .collect();
    pairing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, dtype: u32, shape: &[u32], kind: TensorKind) -> Tensor {
        Tensor { name: name.into(), dtype: DataType(dtype), shape: shape.into(), quantization: None, kind }
    }

    /// Ops as `name type input output`, all tensors of one shape.
    fn graph(dtype: u32, inputs: &[&str], ops: &[(&str, &str, &[&str], &str)]) -> Graph {
        let native = |name: &&str| tensor(name, dtype, &[1, 4, 4, 8], TensorKind::Native);
        Graph {
            name: "g".into(),
            inputs: inputs.iter().map(|name| tensor(name, dtype, &[1, 4, 4, 8], TensorKind::Input)).collect(),
            outputs: vec![],
            ops: ops
                .iter()
                .enumerate()
                .map(|(index, (name, op_type, inputs, output))| Op {
                    index: u32::try_from(index).unwrap(),
                    name: (*name).into(),
                    op_type: (*op_type).into(),
                    package: String::new(),
                    inputs: inputs.iter().map(native).collect(),
                    outputs: vec![native(output)],
                    params: serde_json::Map::new(),
                    macs: None,
                    parameter_bytes: 0,
                    bytes_moved: None,
                })
                .collect(),
            parameter_bytes: 0,
        }
    }

    fn names(pairing: &Pairing) -> Vec<(&str, &str, How)> {
        pairing.pairs.iter().map(|pair| (&*pair.reference.tensor.name, &*pair.test.tensor.name, pair.how)).collect()
    }

    #[test]
    fn a_folded_activation_is_the_tensor_behind_it() {
        // As the plug-in composes a float model and its quantised form.
        let float = graph(
            0x0232,
            &["image"],
            &[
                ("conv1_token_1", "Conv2d", &["image"], "conv1"),
                ("relu1", "ElementWiseNeuron", &["conv1"], "relu1"),
                ("softmax", "Softmax", &["relu1"], "probs"),
            ],
        );
        let quantised = graph(
            0x0408,
            &["image"],
            &[
                ("image_QuantizeLinear", "Quantize", &["image"], "image_QuantizeLinear_Output"),
                ("conv1_token_7", "Conv2d", &["image_QuantizeLinear_Output"], "r1_QuantizeLinear"),
                ("softmax", "Softmax", &["r1_QuantizeLinear"], "probs_QuantizeLinear_Output"),
                ("probs_DequantizeLinear", "Dequantize", &["probs_QuantizeLinear_Output"], "probs"),
            ],
        );
        let pairing = pair(&float, &quantised);
        assert_eq!(
            names(&pairing),
            [
                ("image", "image_QuantizeLinear_Output", How::Name),
                ("relu1", "r1_QuantizeLinear", How::Op),
                ("probs", "probs_QuantizeLinear_Output", How::Name),
                ("probs", "probs", How::Name),
            ]
        );
        let sources: Vec<&[usize]> = pairing.pairs.iter().map(|pair| &*pair.sources).collect();
        assert_eq!(sources, [&[][..], &[0], &[1], &[2]]);
        assert_eq!(pairing.reference_only, ["conv1"]);
    }

    #[test]
    fn the_same_graph_pairs_each_tensor_with_itself() {
        let ops: &[(&str, &str, &[&str], &str)] = &[
            ("a", "Conv2d", &["x"], "t1"),
            ("b", "Relu", &["t1"], "t2"),
            ("c", "Conv2d", &["t2"], "t3"),
            ("d", "ElementWiseAdd", &["t3", "t1"], "t4"),
        ];
        let one = graph(0x0232, &["x"], ops);
        let pairing = pair(&one, &one);
        assert!(pairing.pairs.iter().all(|pair| pair.reference.tensor.name == pair.test.tensor.name));
        assert_eq!(pairing.pairs.len(), 4);
        assert_eq!(pairing.pairs[3].sources, [0, 2]);
    }

    #[test]
    fn without_names_order_type_and_shape_decide() {
        let one = graph(0x0232, &["x"], &[("a", "Conv2d", &["x"], "t1"), ("b", "Softmax", &["t1"], "t2")]);
        let other = graph(
            0x0408,
            &["in"],
            &[("o1", "Quantize", &["in"], "u0"), ("o2", "Conv2d", &["u0"], "u1"), ("o3", "Softmax", &["u1"], "u2")],
        );
        let pairing = pair(&one, &other);
        assert_eq!(names(&pairing), [("t1", "u1", How::Order), ("t2", "u2", How::Order)]);
        assert_eq!(pairing.test_only, ["u0"]);
        // What has no pair passes on what it was made from.
        assert_eq!(pairing.pairs[0].sources, Vec::<usize>::new());
    }

    #[test]
    fn counts_are_not_paired_with_numbers() {
        let one = graph(0x0232, &["x"], &[("a", "Argmax", &["x"], "t")]);
        let other = graph(0x0032, &["x"], &[("a", "Argmax", &["x"], "t")]);
        assert!(pair(&one, &other).pairs.is_empty());
    }

    #[test]
    fn names_lose_what_was_put_behind_them() {
        assert_eq!(base_name("r1_QuantizeLinear_Output"), "r1");
        assert_eq!(base_name("w1_quantized"), "w1");
        assert_eq!(base_name("_quantized"), "_quantized");
        assert_eq!(base_op("conv_token_12"), "conv");
        assert_eq!(base_op("conv_token_x"), "conv_token_x");
    }
}
