//! How much of a TFLite model is quantised: its tensors contain their own quantisation.

use crate::models::source::{Constant, ElementType, QuantizationSummary, SourceGraph, SourceNode, islands};
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Copy, PartialEq)]
enum QuantizedVerdict {
    Other,
    Quantized,
    Float,
}

/// The quantisation summary of the graphs; `None` if no activation is quantised.
pub fn summary(graphs: &[SourceGraph]) -> Option<QuantizationSummary> {
    let mut summary = QuantizationSummary {
        compute_nodes: 0,
        quantized_nodes: 0,
        undecided_nodes: 0,
        activations: BTreeMap::new(),
        weights: BTreeMap::new(),
        float_islands: Vec::new(),
    };
    for graph in graphs {
        for value in graph.values().iter().filter(|value| value.quantization.is_some()) {
            let dtype = value.dtype.filter(|dtype| !dtype.is_float());
            if let Some(dtype) = dtype {
                *summary.activations.entry(dtype.to_string()).or_insert(0) += 1;
            }
        }
        let constants = graph.constants.iter().map(|constant| (constant.name.as_str(), constant)).collect();
        let verdicts: Vec<QuantizedVerdict> = graph.nodes.iter().map(|node| verdict(graph, &constants, node)).collect();
        let count = |wanted: QuantizedVerdict| verdicts.iter().filter(|&&verdict| verdict == wanted).count() as u64;
        summary.quantized_nodes += count(QuantizedVerdict::Quantized);
        summary.compute_nodes += count(QuantizedVerdict::Quantized) + count(QuantizedVerdict::Float);
        summary.float_islands.extend(islands(graph, |index| verdicts[index] == QuantizedVerdict::Float));
        for constant in graph.constants.iter().filter(|constant| constant.quantization.is_some()) {
            if let Some(dtype) = constant.dtype.filter(|dtype| !dtype.is_float()) {
                *summary.weights.entry(dtype.to_string()).or_insert(0) += 1;
            }
        }
    }
    (!summary.activations.is_empty()).then_some(summary)
}

/// An operator is quantised if none of the activations that it reads or writes is float.
fn verdict(graph: &SourceGraph, constants: &HashMap<&str, &Constant>, node: &SourceNode) -> QuantizedVerdict {
    if matches!(node.op_type.as_str(), "QUANTIZE" | "DEQUANTIZE") {
        return QuantizedVerdict::Other;
    }
    let names = node.inputs.iter().chain(&node.outputs).filter(|name| !constants.contains_key(name.as_str()));
    let mut verdict = QuantizedVerdict::Other;
    for value in names.filter_map(|name| graph.value(name)) {
        if value.dtype.is_some_and(ElementType::is_float) {
            return QuantizedVerdict::Float;
        }
        if value.quantization.is_some() {
            verdict = QuantizedVerdict::Quantized;
        }
    }
    verdict
}
