//! Compares DLCs with the tensors of the model that they were converted from.

use super::computed::{Computed, Known};
use super::tflite::TfliteReference;
use super::{Check, Verified};
use crate::accuracy::{Inputs, Layout, Side, SideError, base_name, is_real, store_values};
use crate::analysis::compare::{OutputValues, accuracy};
use crate::backends::onnx::placement::base_name as node_name;
use crate::models::{Graph, Quantization, Tensor, TensorKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// What computes the source.
#[derive(Debug, Clone)]
pub enum Reference {
    /// ONNX Runtime's own kernels.
    Onnx(Box<Side>),
    /// The interpreter from the user's Python package.
    Tflite(Box<TfliteReference>),
}

/// Compares each file with the source; calls `tell` with the file it is working on.
pub async fn verify_files(
    reference: &Reference,
    files: &[PathBuf],
    side: &(dyn Fn(PathBuf) -> Side + Sync),
    inputs: &Inputs,
    tell: &(dyn Fn(&str) + Sync),
) -> Vec<Check> {
    let mut checks = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tell(&format!("comparing {name} with the source"));
        let result = side(file.clone());
        let (inputs, verified) = match one(reference, &result, inputs).await {
            Ok(found) => found,
            Err(reason) => (0, Err(reason)),
        };
        checks.push(Check { file: file.clone(), backend: result.backend, inputs, verified, htp_ops: BTreeMap::new() });
    }
    checks
}

async fn one(reference: &Reference, result: &Side, inputs: &Inputs) -> Result<(usize, Verified), String> {
    let (_, graph) = result.read().await.map_err(|error| format!("the result cannot be read: {error}"))?;
    let wanted: Vec<String> = graph.inputs.iter().chain(&graph.outputs).map(|tensor| tensor.name.clone()).collect();
    let computed = match reference {
        Reference::Onnx(side) => onnx(side, &graph, inputs).await,
        Reference::Tflite(tflite) => tflite.compute(&wanted, inputs).await,
    }
    .map_err(|reason| format!("the source does not run: {reason}"))?;
    let theirs =
        outputs(result, &graph, &computed).await.map_err(|reason| format!("the result does not run: {reason}"))?;
    let ours: Result<Vec<OutputValues>, String> = computed
        .iter()
        .zip(0u32..)
        .flat_map(|(known, inference)| graph.outputs.iter().map(move |tensor| (known, inference, tensor)))
        .map(|(known, inference, tensor)| {
            let values = for_tensor(known, tensor)?;
            Ok(values_of(inference, tensor, &values))
        })
        .collect();
    Ok((computed.len(), accuracy(&ours?, &theirs)))
}

/// What the result computes from the source's tensors.
async fn outputs(result: &Side, graph: &Graph, computed: &Computed) -> Result<Vec<OutputValues>, String> {
    let words = |error: SideError| error.to_string();
    let mut opened = result.open(Vec::new(), Vec::new(), Vec::new()).await.map_err(words)?;
    let mut outputs = Vec::new();
    for (known, inference) in computed.iter().zip(0u32..) {
        let mut stored = Vec::new();
        for tensor in &opened.facts.inputs {
            let values = for_tensor(known, tensor)?;
            let bytes = store_values(&values, tensor);
            stored.push(bytes.ok_or_else(|| format!("input `{}` has type {}", tensor.name, tensor.dtype))?);
        }
        opened.begin(u64::from(inference), stored.iter().map(Vec::as_slice)).await.map_err(words)?;
        opened.computed().await.map_err(words)?;
        for tensor in &graph.outputs {
            let values = opened.values(&tensor.name).map_err(words)?;
            let values = values.ok_or_else(|| format!("output `{}` has no numbers", tensor.name))?;
            outputs.push(values_of(inference, tensor, &values));
        }
    }
    opened.close().await;
    Ok(outputs)
}

fn values_of(inference: u32, tensor: &Tensor, values: &[f64]) -> OutputValues {
    #[expect(clippy::cast_possible_truncation, reason = "the result computes in float32 at most")]
    let values = values.iter().map(|value| *value as f32).collect();
    let shape = tensor.shape.iter().map(|size| u64::from(*size)).collect();
    OutputValues { inference, name: tensor.name.clone(), shape: Some(shape), values }
}

/// The source's values for a tensor of the result, in the result's layout, as real numbers.
fn for_tensor(known: &HashMap<String, Known>, tensor: &Tensor) -> Result<Vec<f64>, String> {
    let name = &tensor.name;
    let Known { tensor: source, values } =
        known.get(name).ok_or_else(|| format!("the source has no tensor named `{name}`"))?;
    let layout = Layout::between(&source.shape, &tensor.shape).ok_or_else(|| {
        format!("tensor `{name}` is {} in the source and {} in the result", source.shape_text(), tensor.shape_text())
    })?;
    let values = layout.arranged(values.clone(), &source.shape);
    // The source has quantised tensors as their stored integers.
    match &tensor.quantization {
        Some(Quantization::ScaleOffset { scale, offset, .. }) if !is_real(source.dtype) => {
            Ok(values.into_iter().map(|value| (value + f64::from(*offset)) * scale).collect())
        }
        _ => Ok(values),
    }
}

/// A name as DLCs spell it: all characters but letters and digits are replaced.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Computes tensors of an ONNX model.
async fn onnx(side: &Side, result: &Graph, inputs: &Inputs) -> Result<Computed, String> {
    let words = |error: SideError| error.to_string();
    let (_, graph) = side.read().await.map_err(words)?;
    let made: Vec<&Tensor> = graph.ops.iter().flat_map(|op| &op.outputs).collect();
    let by_base: HashMap<&str, &str> =
        made.iter().map(|tensor| (base_name(&tensor.name), tensor.name.as_str())).collect();
    let all: HashSet<&str> =
        made.iter().chain(&graph.inputs.iter().collect::<Vec<_>>()).map(|t| t.name.as_str()).collect();
    let ends: HashSet<&str> = graph.inputs.iter().chain(&graph.outputs).map(|tensor| tensor.name.as_str()).collect();
    let by_node: HashMap<String, &str> =
        graph.ops.iter().filter_map(|op| Some((plain(&op.name), op.outputs.first()?.name.as_str()))).collect();
    // The source's name for each wanted tensor; tensors between partitions are named after the nodes that
    // produce them.
    let mut names: HashMap<&str, &str> = HashMap::new();
    for (theirs, ours) in [(&result.inputs, &graph.inputs), (&result.outputs, &graph.outputs)] {
        for (position, tensor) in theirs.iter().enumerate() {
            let name = tensor.name.as_str();
            // A tensor that ONNX Runtime inserted at an input or output of the model stands for that input or
            // output.
            let end = || {
                let end = ours
                    .get(position)
                    .filter(|end| theirs.len() == ours.len() && Layout::between(&end.shape, &tensor.shape).is_some())?;
                Some(end.name.as_str())
            };
            let own = ends.get(name).or_else(|| by_node.get(&plain(node_name(name)))).or_else(|| all.get(name));
            let own = own.or_else(|| by_base.get(base_name(name))).copied().or_else(end);
            names.insert(name, own.ok_or_else(|| format!("it has no tensor named `{name}`"))?);
        }
    }
    let mut readable: Vec<String> = made
        .iter()
        .filter(|tensor| tensor.kind == TensorKind::Native && names.values().any(|name| *name == tensor.name))
        .map(|tensor| tensor.name.clone())
        .collect();
    readable.sort();
    readable.dedup();
    let mut opened = side.open(readable, Vec::new(), Vec::new()).await.map_err(words)?;
    let given = opened.facts.inputs.clone();
    let planned = inputs.plan(&given, &given).map_err(|error| error.to_string())?;
    let mut computed = Vec::new();
    for index in 0..planned.count() {
        let values = planned.values(index).map_err(|error| error.to_string())?;
        let (stored, _) = planned.stored(&values).map_err(|error| error.to_string())?;
        opened.begin(index as u64, stored.iter().map(Vec::as_slice)).await.map_err(words)?;
        opened.computed().await.map_err(words)?;
        let mut known = HashMap::new();
        for (name, own) in &names {
            let found = match planned.position(own) {
                Some(at) => Known { tensor: given[at].clone(), values: values[at].clone() },
                None => {
                    let values = opened.values(own).map_err(words)?;
                    let tensor = opened.tensor(own).cloned();
                    let (tensor, values) =
                        tensor.zip(values).ok_or_else(|| format!("tensor `{own}` could not be read"))?;
                    Known { tensor, values }
                }
            };
            known.insert((*name).to_owned(), found);
        }
        computed.push(known);
    }
    opened.close().await;
    Ok(computed)
}
