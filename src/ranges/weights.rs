//! The weights of a model, which need no data: a symmetric encoding for each, per channel where converters accept that.

use crate::accuracy::{AccuracyError, Side, real_values};
use crate::encodings::{Encoding, Slice, Use};
use crate::models::{Graph, TensorKind};
use std::collections::HashSet;

/// Op types whose weights have a scale for each output channel, which is their last axis.
const BY_CHANNEL: [&str; 5] = ["Conv1d", "Conv2d", "Conv3d", "DepthWiseConv2d", "TransposeConv2d"];
/// Op types whose weights have one scale.
const WHOLE: [&str; 2] = ["FullyConnected", "MatMul"];

/// The numbers of one weight tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// Name.
    pub name: String,
    /// The axis of the slices; `None` for one of the whole tensor.
    pub axis: Option<usize>,
    /// Largest absolute value of each slice.
    pub largest: Vec<f64>,
}

/// Reads the float weights of a model.
///
/// # Errors
/// Whatever keeps the model from being composed.
pub async fn weights(side: &Side) -> Result<Vec<Weights>, AccuracyError> {
    let (_, graph) = side.read().await.map_err(AccuracyError::Model)?;
    let wanted = wanted(&graph);
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let names = wanted.iter().map(|(name, _)| name.clone()).collect();
    let opened = side.open(Vec::new(), Vec::new(), names).await.map_err(AccuracyError::Model)?;
    let constants = opened.constants().map_err(AccuracyError::Model)?;
    opened.close().await;
    let mut found = Vec::new();
    for (tensor, bytes) in constants {
        let Some((_, by_channel)) = wanted.iter().find(|(name, _)| *name == tensor.name) else { continue };
        let Some(values) = real_values(&bytes, &tensor) else { continue };
        let channels = tensor.shape.last().map_or(1, |&size| size as usize);
        let is_split = *by_channel && tensor.shape.len() > 1 && channels > 1;
        let axis = is_split.then(|| tensor.shape.len() - 1);
        found.push(Weights { name: tensor.name, axis, largest: largest(&values, if is_split { channels } else { 1 }) });
    }
    Ok(found)
}

/// Names of the constants that are weights, each once, and whether each channel has a scale.
fn wanted(graph: &Graph) -> Vec<(String, bool)> {
    let mut seen = HashSet::new();
    let weights = graph.ops.iter().filter_map(|op| {
        let kind = op.op_type.as_str();
        let tensor = op.inputs.get(1).filter(|tensor| tensor.kind == TensorKind::Static && tensor.dtype.is_float())?;
        (BY_CHANNEL.contains(&kind) || WHOLE.contains(&kind)).then(|| (tensor.name.clone(), BY_CHANNEL.contains(&kind)))
    });
    weights.filter(|(name, _)| seen.insert(name.clone())).collect()
}

/// The largest number of each slice of the last axis; what is not finite is left out.
fn largest(values: &[f64], slices: usize) -> Vec<f64> {
    let mut largest = vec![0.0f64; slices];
    for (at, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
        largest[at % slices] = largest[at % slices].max(value.abs());
    }
    largest
}

impl Weights {
    /// Its symmetric encoding.
    pub fn encoding(&self, bits: u32) -> Encoding {
        let middle = (1u64 << (bits - 1)) as f64;
        let slice = |&largest: &f64| {
            // A channel of zeros: any scale will do.
            let scale = if largest > 0.0 { largest / (middle - 1.0) } else { 1.0 / (middle - 1.0) };
            Slice {
                scale: Some(scale),
                offset: Some(-middle),
                min: Some(-middle * scale),
                max: Some((middle - 1.0) * scale),
            }
        };
        Encoding {
            name: self.name.clone(),
            used: Use::Parameter,
            bits,
            is_float: false,
            symmetric: Some(true),
            slices: self.largest.iter().map(slice).collect(),
            per_channel: self.axis.is_some(),
            axis: self.axis.and_then(|axis| i64::try_from(axis).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_has_its_largest_number() {
        assert_eq!(largest(&[1.0, -5.0, -3.0, 2.0, f64::NAN, f64::INFINITY], 2), [3.0, 5.0]);
        let weights = Weights { name: "w".to_owned(), axis: Some(3), largest: vec![1.27, 0.0] };
        let encoding = weights.encoding(8);
        let (scale, offset) = encoding.resolved(&encoding.slices[0]).unwrap();
        assert!((scale - 0.01).abs() < 1e-12 && (offset + 128.0).abs() < 1e-12);
        assert!(encoding.slices[1].scale.unwrap() > 0.0 && encoding.per_channel && encoding.axis == Some(3));
        let four = weights.encoding(4);
        assert_eq!(four.slices[0].offset, Some(-8.0));
    }
}
