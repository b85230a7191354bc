//! Matches tensors of test and reference: by name, by the op that produces them, otherwise by order, type and
//! shape.

use super::axes;
use super::kinds::alike;
use super::layout::Layout;
use super::pairs::{How, Pair, Pairing, Slot};
use crate::models::{DataType, Graph, Op, Tensor, TensorKind};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Suffixes that quantisers and composers append to a tensor's name.
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

/// Op types that a quantised graph folds into the preceding op.
const ACTIVATIONS: [&str; 9] =
    ["ElementWiseNeuron", "Clip", "Relu", "Relu1", "Relu6", "ReluMinMax", "Sigmoid", "Tanh", "HardSwish"];

/// Op types that leave values and their order unchanged.
const RESHAPES: [&str; 4] = ["Reshape", "ExpandDims", "Squeeze", "Flatten"];
/// Op types that optimisers fold into the preceding op: normalisation by constants, and adding a bias.
const FOLDED: [&str; 6] = ["BatchNormalization", "Batchnorm", "Add", "ElementWiseAdd", "Mul", "ElementWiseMultiply"];
/// Op types they are folded into.
const FOLDING: [&str; 8] =
    ["Conv", "ConvTranspose", "Gemm", "MatMul", "Conv2d", "DepthWiseConv2d", "TransposeConv2d", "FullyConnected"];

/// The name without suffixes added by quantisers and composers.
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

/// One graph, and which ops read which tensors.
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

    /// The activation that is the only reader of this tensor, directly or after a reshape.
    fn activation(&self, slot: usize) -> Option<usize> {
        let is = |next: usize, kinds: &[&str]| self.op(next).is_some_and(|op| kinds.contains(&op.op_type.as_str()));
        let mut next = self.only_reader(slot)?;
        while is(next, &RESHAPES) {
            next = self.only_reader(next)?;
        }
        is(next, &ACTIVATIONS).then_some(next)
    }

    /// The output of the only op that reads this tensor.
    fn only_reader(&self, slot: usize) -> Option<usize> {
        let [reader] = self.readers.get(self.slots[slot].tensor.name.as_str())?.as_slice() else { return None };
        let output = self.graph.ops[*reader].outputs.first()?;
        self.by_name.get(output.name.as_str()).copied()
    }

    /// The op after this tensor that an optimiser can fold into the one before: all its other inputs are
    /// constant.
    fn foldable(&self, slot: usize) -> Option<usize> {
        let next = self.only_reader(slot)?;
        let (op, before) = (self.op(next)?, self.op(slot)?);
        let computed = op.inputs.iter().filter(|tensor| tensor.kind != TensorKind::Static).count();
        let before = before.op_type.as_str();
        // A normalisation may itself consist of several ops.
        let takes = FOLDING.contains(&before) || FOLDED.contains(&before);
        (takes && FOLDED.contains(&op.op_type.as_str()) && computed == 1).then_some(next)
    }
}

/// Whether a tensor has values that a runner can hand out.
pub fn can_be_read(tensor: &Tensor) -> bool {
    let numbers = !matches!(&tensor.quantization, Some(crate::models::Quantization::Other { .. }))
        || !tensor.dtype.is_fixed_point();
    let sized = tensor.bytes().is_some_and(|bytes| u32::try_from(bytes).is_ok());
    let used =
        matches!(tensor.kind, TensorKind::Native | TensorKind::Output | TensorKind::Input | TensorKind::InputOutput);
    numbers && sized && used
}

/// Whether the two can be compared: real numbers with real numbers, integers with integers.
fn comparable(a: DataType, b: DataType) -> bool {
    is_real(a) == is_real(b)
}

/// True for types that represent real numbers.
pub fn is_real(dtype: DataType) -> bool {
    dtype.is_float() || dtype.is_fixed_point()
}

/// Finds the pairs of two graphs; `nodes` are the nodes that the test's ops were converted from, as far as
/// known.
pub fn pair(reference: &Graph, test: &Graph, nodes: &BTreeMap<String, String>) -> Pairing {
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
            // The tensor before an activation is named after the op in some graphs, and after the activation
            // in others.
            found[at] = Some((behind_activation(&reference, &test, candidate, at), How::Name));
        }
    }
    for (at, pair) in found.iter_mut().enumerate() {
        let Some(op) = test.op(at).filter(|_| pair.is_none()) else { continue };
        let position = op.outputs.iter().position(|tensor| tensor.name == test.slots[at].tensor.name).unwrap_or(0);
        let same_type = |&&candidate: &&usize| {
            reference.op(candidate).is_some_and(|other| {
                alike(&other.op_type, &op.op_type)
                    && other.outputs.iter().position(|t| t.name == reference.slots[candidate].tensor.name)
                        == Some(position)
            })
        };
        let node = nodes.get(&op.name);
        let named = base_op(node.unwrap_or(&op.name));
        let candidates = reference.by_op.get(named).map(Vec::as_slice).unwrap_or_default();
        let same: Vec<&usize> = candidates.iter().filter(same_type).collect();
        // A name shared by several ops of one type is ambiguous.
        if let [candidate] = same.as_slice() {
            let candidate = behind_activation(&reference, &test, **candidate, at);
            if fits(at, candidate) {
                *pair = Some((candidate, if node.is_some() { How::Map } else { How::Op }));
            }
        }
    }
    by_order(&reference, &test, &mut found, fits);
    assemble(&reference, &test, &found)
}

/// What quantised graphs fold: a convolution and its activation produce a single tensor, the activation's.
fn behind_activation(reference: &Side<'_>, test: &Side<'_>, own: usize, at: usize) -> usize {
    let is_gone = |next: &usize| !test.by_op.contains_key(base_op(reference.op(*next).map_or("", |op| &op.name)));
    let made = test.op(at).is_some_and(|op| FOLDING.contains(&op.op_type.as_str()));
    // Normalisation and bias come before the activation.
    let mut candidate = own;
    if made && test.foldable(at).is_none() {
        while let Some(next) = reference.foldable(candidate).filter(&is_gone) {
            candidate = next;
        }
    }
    match reference.activation(candidate) {
        Some(activation)
            if test.activation(at).is_none()
                && test.op(at).is_some_and(|op| !ACTIVATIONS.contains(&op.op_type.as_str()))
                && reference.op(own).zip(test.op(at)).is_some_and(|(a, b)| alike(&a.op_type, &b.op_type))
                && !test.by_op.contains_key(base_op(reference.op(activation).map_or("", |op| &op.name))) =>
        {
            activation
        }
        _ => candidate,
    }
}

/// Pairs each remaining tensor with the next one of its op type and shape between its neighbours' pairs.
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
            let same = reference.op(*candidate).is_some_and(|other| alike(&other.op_type, &op.op_type));
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
    // The origin of each tensor of the test: itself if it has a pair, otherwise what its op reads.
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
    axes::settle(&mut pairing.pairs, test.graph);
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
mod tests;
