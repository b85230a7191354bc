//! The document `qnnscope.accuracy/1`.

use super::cause::Cause;
use super::compare::Outcome;
use super::metrics::ChannelFigures;
use super::pairing::How;
use super::verdict::Layer;
use crate::event::{ModelInfo, RuntimeInfo};
use serde::Serialize;

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccuracyDocument {
    schema: &'static str,
    reference: SideDocument,
    test: SideDocument,
    inputs: String,
    inferences: usize,
    min_sqnr_db: f64,
    bisected: bool,
    layers: Vec<LayerDocument>,
    first_diverging: Option<DivergingDocument>,
    verdict: Option<VerdictDocument>,
    pairs: Vec<PairDocument>,
    reference_only: Vec<String>,
    test_only: Vec<String>,
    notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct SideDocument {
    model: String,
    sha256: String,
    backend: &'static str,
    simulated: bool,
    runtime: RuntimeInfo,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct LayerDocument {
    reference: String,
    test: String,
    op: String,
    #[serde(rename = "type")]
    op_type: String,
    sqnr_db: Option<f64>,
    mse: Option<f64>,
    max_abs: Option<f64>,
    mean_abs: Option<f64>,
    cosine: Option<f64>,
    clipped_share: Option<f64>,
    own_sqnr_db: Option<f64>,
    worst_channels: Vec<ChannelFigures>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct DivergingDocument {
    #[serde(flatten)]
    layer: LayerDocument,
    cause: Cause,
    remedy: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct VerdictDocument {
    layer: usize,
    tensor: String,
    because: String,
    inherited_sqnr_db: Option<f64>,
}

/// What is known of a pair beside its figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct PairDocument {
    reference: String,
    test: String,
    how: How,
    permutation: Option<String>,
    dtype: String,
    shape: Vec<u32>,
    read: bool,
    elements: u64,
    not_finite: u64,
    differing_share: Option<f64>,
    used_share: Option<f64>,
    seen_min: Option<f64>,
    seen_max: Option<f64>,
    encoded_min: Option<f64>,
    encoded_max: Option<f64>,
}

/// JSON has no infinity: a tensor without any error has no ratio, and an `mse` of 0.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

impl AccuracyDocument {
    /// The document of a comparison.
    pub fn new(outcome: &Outcome) -> Self {
        let side = |at: usize| {
            let model: &ModelInfo = &outcome.models[at];
            SideDocument {
                model: model.path.clone(),
                sha256: model.sha256.clone(),
                backend: outcome.sides[at].backend.name(),
                simulated: outcome.sides[at].backend.is_simulated_here(),
                runtime: outcome.runtimes[at].clone(),
            }
        };
        let layers: Vec<LayerDocument> = outcome.layers.iter().map(|layer| layer_document(layer, outcome)).collect();
        let first_diverging = outcome.first.as_ref().map(|first| DivergingDocument {
            layer: layers[first.layer].clone(),
            cause: first.cause,
            remedy: first.remedy.clone(),
        });
        let verdict = outcome.first.as_ref().map(|first| VerdictDocument {
            layer: first.layer,
            tensor: first.tensor.clone(),
            because: first.because.clone(),
            inherited_sqnr_db: finite(Some(first.inherited_db)),
        });
        Self {
            schema: "qnnscope.accuracy/1",
            reference: side(0),
            test: side(1),
            inputs: outcome.inputs.clone(),
            inferences: outcome.inferences,
            min_sqnr_db: outcome.min_sqnr_db,
            bisected: outcome.bisected,
            layers,
            first_diverging,
            verdict,
            pairs: (0..outcome.pairing.pairs.len()).map(|pair| pair_document(pair, outcome)).collect(),
            reference_only: outcome.pairing.reference_only.clone(),
            test_only: outcome.pairing.test_only.clone(),
            notes: outcome.notes.clone(),
        }
    }
}

fn layer_document(layer: &Layer, outcome: &Outcome) -> LayerDocument {
    let pair = &outcome.pairing.pairs[layer.pair];
    let figures = &layer.figures;
    LayerDocument {
        reference: pair.reference.tensor.name.clone(),
        test: pair.test.tensor.name.clone(),
        op: layer.op.clone(),
        op_type: layer.op_type.clone(),
        sqnr_db: finite(figures.sqnr_db),
        mse: figures.mse,
        max_abs: figures.max_abs,
        mean_abs: figures.mean_abs,
        cosine: figures.cosine,
        clipped_share: figures.clipped_share,
        own_sqnr_db: finite(layer.own_sqnr_db),
        worst_channels: figures
            .worst_channels
            .iter()
            .map(|row| ChannelFigures { sqnr_db: finite(row.sqnr_db), ..row.clone() })
            .collect(),
    }
}

fn pair_document(at: usize, outcome: &Outcome) -> PairDocument {
    let pair = &outcome.pairing.pairs[at];
    let layer = outcome.layers.iter().find(|layer| layer.pair == at);
    let seen = layer.map(|layer| &layer.sums.whole);
    PairDocument {
        reference: pair.reference.tensor.name.clone(),
        test: pair.test.tensor.name.clone(),
        how: pair.how,
        permutation: pair.layout.text(),
        dtype: pair.test.tensor.dtype.name(),
        shape: pair.test.tensor.shape.clone(),
        read: layer.is_some(),
        elements: seen.map_or(0, |sums| sums.count + sums.not_finite),
        not_finite: seen.map_or(0, |sums| sums.not_finite),
        differing_share: layer.and_then(|layer| layer.figures.differing_share),
        used_share: finite(layer.and_then(|layer| layer.figures.used_share)),
        seen_min: finite(seen.map(|sums| sums.min)),
        seen_max: finite(seen.map(|sums| sums.max)),
        encoded_min: layer.and_then(|layer| layer.range).map(|range| range.min),
        encoded_max: layer.and_then(|layer| layer.range).map(|range| range.max),
    }
}
