//! Graphs as text: one op per line, `TIME TYPE NAME {PARAMETERS}: TENSORS -> TENSORS`; see [`tensor`].

use crate::models::{DataType, Graph, Op, Quantization, Tensor, TensorKind};
use std::collections::BTreeMap;

/// A graph and the time of each op from its lines.
pub fn graph(name: &str, text: &str, dtype: &str) -> (Graph, Vec<u64>) {
    let mut known: BTreeMap<String, Tensor> = BTreeMap::new();
    let mut ops: Vec<Op> = Vec::new();
    let mut times = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // Parameters are JSON, which also contains colons.
        let (head, body) = match line.split_once("}: ") {
            Some((head, body)) => (format!("{head}}}"), body),
            None => {
                let (head, body) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
                (head.to_owned(), body)
            }
        };
        let (head, params) = head.split_once(" {").map_or((&*head, "{}".to_owned()), |(h, p)| (h, format!("{{{p}")));
        let [time, op_type, op_name] = head.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (inputs, outputs) = body.split_once(" -> ").unwrap_or_else(|| panic!("no ` -> ` in {line}"));
        let mut list =
            |text: &str| text.split(", ").map(|text| tensor(text.trim(), dtype, &mut known)).collect::<Vec<_>>();
        let mut op = Op {
            index: u32::try_from(ops.len()).unwrap(),
            name: op_name.to_owned(),
            op_type: op_type.to_owned(),
            package: "qti.aisw".to_owned(),
            inputs: list(inputs),
            outputs: list(outputs),
            params: serde_json::from_str(&params).unwrap_or_else(|error| panic!("{params}: {error}")),
            macs: None,
            parameter_bytes: 0,
            bytes_moved: None,
        };
        let constants = op.inputs.iter().filter(|tensor| tensor.kind == TensorKind::Static);
        op.parameter_bytes = constants.filter_map(Tensor::bytes).sum();
        op.bytes_moved = Some(op.inputs.iter().chain(&op.outputs).filter_map(Tensor::bytes).sum());
        times.push(time.parse().unwrap());
        ops.push(op);
    }
    // A tensor that no op writes is a graph input, one that no op reads an output.
    let written: Vec<String> = ops.iter().flat_map(|op| &op.outputs).map(|tensor| tensor.name.clone()).collect();
    let read: Vec<String> = ops.iter().flat_map(|op| &op.inputs).map(|tensor| tensor.name.clone()).collect();
    let (mut graph_inputs, mut graph_outputs) = (Vec::new(), Vec::new());
    for op in &mut ops {
        for tensor in op.inputs.iter_mut().filter(|tensor| tensor.kind == TensorKind::Native) {
            if !written.contains(&tensor.name) {
                tensor.kind = TensorKind::Input;
                graph_inputs.push(tensor.clone());
            }
        }
        for tensor in &mut op.outputs {
            if !read.contains(&tensor.name) {
                tensor.kind = TensorKind::Output;
                graph_outputs.push(tensor.clone());
            }
        }
    }
    let graph = Graph { name: name.to_owned(), inputs: graph_inputs, outputs: graph_outputs, ops, parameter_bytes: 0 };
    (graph, times)
}

/// `NAME SHAPE:TYPE` is a tensor, `NAME=SHAPE:TYPE@OFFSET` a constant. Type and offset may be omitted, and
/// everything but the name for a tensor seen before.
fn tensor(text: &str, dtype: &str, known: &mut BTreeMap<String, Tensor>) -> Tensor {
    if let Some(tensor) = known.get(text) {
        return tensor.clone();
    }
    let (name, rest, kind) = match text.split_once('=') {
        Some((name, rest)) => (name, rest, TensorKind::Static),
        None => {
            let (name, rest) = text.split_once(' ').unwrap_or_else(|| panic!("unknown tensor {text}"));
            (name, rest, TensorKind::Native)
        }
    };
    let (rest, offset) = rest.split_once('@').map_or((rest, None), |(rest, offset)| (rest, Some(offset)));
    let (shape, dtype) = rest.split_once(':').unwrap_or((rest, dtype));
    let dtype: DataType = serde_json::from_value(dtype.into()).unwrap();
    let tensor = Tensor {
        name: name.to_owned(),
        dtype,
        shape: shape.split('x').map(|d| d.parse().unwrap()).collect(),
        quantization: dtype.is_fixed_point().then(|| Quantization::ScaleOffset {
            scale: 0.5,
            // The middle of an unsigned type, unless another offset is given.
            offset: offset.map_or(if dtype.name() == "ufixed8" { -128 } else { 0 }, |offset| offset.parse().unwrap()),
            bitwidth: None,
        }),
        kind,
    };
    known.insert(name.to_owned(), tensor.clone());
    tensor
}
