//! How much of an ONNX model is quantised: by pairs of QuantizeLinear and DequantizeLinear around a node, or
//! by ops that compute on integers directly.

use crate::models::source::{Constant, ElementType, QuantizationSummary, SourceGraph, SourceNode, islands};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Ops that count as quantised only if their weights are.
const WEIGHTED: [&str; 4] = ["Conv", "ConvTranspose", "Gemm", "MatMul"];
/// Activations that are fused into the op before them, so that no pair stands between the two.
const FUSED: [&str; 2] = ["Clip", "Relu"];

struct Net<'a> {
    graph: &'a SourceGraph,
    constants: HashMap<&'a str, &'a Constant>,
    writer: HashMap<&'a str, usize>,
    readers: HashMap<&'a str, Vec<usize>>,
}

fn quantizes(node: &SourceNode) -> bool {
    matches!(node.op_type.as_str(), "QuantizeLinear" | "DynamicQuantizeLinear")
}

fn dequantizes(node: &SourceNode) -> bool {
    node.op_type == "DequantizeLinear"
}

/// Ops that read and write integers.
fn is_integer_op(node: &SourceNode) -> bool {
    node.op_type.starts_with("QLinear") || node.op_type.ends_with("Integer")
}

/// The quantisation summary of the model; `None` if nothing in it is quantised.
pub fn summary(graph: &SourceGraph) -> Option<QuantizationSummary> {
    let net = Net::new(graph);
    if !graph.nodes.iter().any(|node| quantizes(node) || dequantizes(node) || is_integer_op(node)) {
        return None;
    }
    let stored = net.integers();
    let verdicts: Vec<QdqVerdict> = graph.nodes.iter().map(|node| net.verdict(node, &stored)).collect();
    let count = |wanted: QdqVerdict| verdicts.iter().filter(|&&verdict| verdict == wanted).count() as u64;
    let (activations, weights) = net.types();
    Some(QuantizationSummary {
        compute_nodes: count(QdqVerdict::Quantized) + count(QdqVerdict::Float) + count(QdqVerdict::Undecided),
        quantized_nodes: count(QdqVerdict::Quantized),
        undecided_nodes: count(QdqVerdict::Undecided),
        activations,
        weights,
        float_islands: islands(graph, |index| verdicts[index] == QdqVerdict::Float),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QdqVerdict {
    /// Does not compute on real numbers.
    Other,
    Quantized,
    Float,
    Undecided,
}

impl<'a> Net<'a> {
    fn new(graph: &'a SourceGraph) -> Self {
        let (mut writer, mut readers) = (HashMap::new(), HashMap::<&str, Vec<usize>>::new());
        for (index, node) in graph.nodes.iter().enumerate() {
            for name in &node.outputs {
                writer.insert(name.as_str(), index);
            }
            for name in node.inputs.iter().filter(|name| !name.is_empty()) {
                readers.entry(name).or_default().push(index);
            }
        }
        let constants = graph.constants.iter().filter(|constant| !constant.nested);
        let constants = constants.map(|constant| (constant.name.as_str(), constant)).collect();
        Self { graph, constants, writer, readers }
    }

    fn dtype(&self, name: &str) -> Option<ElementType> {
        self.constants.get(name).map_or_else(|| self.graph.value(name)?.dtype, |constant| constant.dtype)
    }

    fn writer(&self, name: &str) -> Option<&'a SourceNode> {
        self.writer.get(name).map(|&index| &self.graph.nodes[index])
    }

    fn readers(&self, name: &str) -> impl Iterator<Item = &'a SourceNode> + Clone {
        self.readers.get(name).into_iter().flatten().map(|&index| &self.graph.nodes[index])
    }

    /// Values that contain quantised integers: from QuantizeLinear, and from ops that only move them.
    fn integers(&self) -> HashSet<&'a str> {
        let mut found: HashSet<&str> = HashSet::new();
        for node in &self.graph.nodes {
            let moves = node.inputs.first().is_some_and(|input| found.contains(input.as_str()))
                && !dequantizes(node)
                && node.outputs.iter().all(|output| self.dtype(output).is_none_or(|dtype| !dtype.is_float()));
            if quantizes(node) || is_integer_op(node) || moves {
                found.extend(node.outputs.iter().map(String::as_str));
            }
        }
        found
    }

    fn verdict(&self, node: &SourceNode, stored: &HashSet<&str>) -> QdqVerdict {
        if quantizes(node) || dequantizes(node) || node.op_type == "Constant" {
            return QdqVerdict::Other;
        }
        let activations: Vec<&str> = node
            .inputs
            .iter()
            .map(String::as_str)
            .filter(|name| !name.is_empty() && !self.constants.contains_key(name))
            .collect();
        if is_integer_op(node) || activations.iter().any(|name| stored.contains(name)) {
            return QdqVerdict::Quantized;
        }
        let outputs: Vec<Option<ElementType>> = node.outputs.iter().map(|name| self.dtype(name)).collect();
        let has_pair = activations.iter().any(|name| self.writer(name).is_some_and(dequantizes))
            || node.outputs.iter().any(|name| self.readers(name).any(quantizes));
        if !has_pair {
            if outputs.iter().flatten().any(|dtype| dtype.is_float()) {
                // A fused activation is judged with its op, whatever feeds or follows it.
                return if self.is_fused_tail(node) { self.tail_verdict(node) } else { self.float_or_fused(node) };
            }
            // Shape arithmetic uses integers throughout; booleans do not count as computation either.
            return if outputs.iter().all(Option::is_some) { QdqVerdict::Other } else { QdqVerdict::Undecided };
        }
        let reads = self.reads_quantized(node, &activations) || self.is_fused_tail(node);
        let writes = node.outputs.iter().all(|name| self.is_requantized(name));
        if reads && writes { QdqVerdict::Quantized } else { QdqVerdict::Float }
    }

    /// Every activation comes from a DequantizeLinear, and so do the weights.
    fn reads_quantized(&self, node: &SourceNode, activations: &[&str]) -> bool {
        let of_pair = |name: &str| {
            self.writer(name).is_some_and(dequantizes) || self.dtype(name).is_some_and(|dtype| !dtype.is_float())
        };
        let weights = if WEIGHTED.contains(&node.op_type.as_str()) { 2 } else { 0 };
        activations.iter().all(|name| of_pair(name)) && node.inputs.iter().take(weights).all(|name| of_pair(name))
    }

    /// True if all readers of the value quantise it first, or if it passes through one activation that is
    /// fused into the op.
    fn is_requantized(&self, name: &str) -> bool {
        let mut readers = self.readers(name);
        if readers.clone().all(quantizes) {
            // Outputs of the model stay float if nothing reads them.
            return readers.next().is_some() || !self.graph.outputs.iter().any(|output| output == name);
        }
        match (readers.next(), readers.next()) {
            (Some(tail), None) if FUSED.contains(&tail.op_type.as_str()) => {
                tail.outputs.iter().all(|name| self.readers(name).all(quantizes) && self.readers(name).next().is_some())
            }
            _ => false,
        }
    }

    /// An activation between an op and the QuantizeLinear after both.
    fn is_fused_tail(&self, node: &SourceNode) -> bool {
        let head = node.inputs.first().and_then(|name| self.writer(name));
        FUSED.contains(&node.op_type.as_str())
            && head.is_some_and(|head| {
                let activations: Vec<&str> =
                    head.inputs.iter().map(String::as_str).filter(|name| !self.constants.contains_key(name)).collect();
                self.reads_quantized(head, &activations) && head.outputs.iter().all(|name| self.is_requantized(name))
            })
    }

    fn tail_verdict(&self, node: &SourceNode) -> QdqVerdict {
        if node.outputs.iter().all(|name| self.is_requantized(name)) {
            QdqVerdict::Quantized
        } else {
            QdqVerdict::Float
        }
    }

    /// A node without a pair of its own: float, unless it reads only constants.
    fn float_or_fused(&self, node: &SourceNode) -> QdqVerdict {
        let reads_nothing =
            node.inputs.iter().all(|name| name.is_empty() || self.constants.contains_key(name.as_str()));
        // Constants that are computed once at load time are not part of an inference.
        if reads_nothing { QdqVerdict::Other } else { QdqVerdict::Float }
    }

    /// Types of quantised activations and constants.
    fn types(&self) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
        let (mut activations, mut weights) = (BTreeMap::new(), BTreeMap::new());
        for node in &self.graph.nodes {
            let Some(input) = node.inputs.first() else { continue };
            let constant = self.constants.contains_key(input.as_str());
            let dtype = match node {
                node if quantizes(node) => node.outputs.first().and_then(|output| self.dtype(output)),
                // A value that no QuantizeLinear wrote is a constant, or an integer input of the model.
                node if dequantizes(node) && !self.writer(input).is_some_and(quantizes) => self.dtype(input),
                _ => continue,
            };
            let name = dtype.map_or_else(|| "unknown".to_owned(), |dtype| dtype.to_string());
            *if constant { &mut weights } else { &mut activations }.entry(name).or_insert(0) += 1;
        }
        (activations, weights)
    }
}
