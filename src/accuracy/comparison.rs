//! The input and the outcome of a comparison.

use super::cause::Judged;
use super::inputs::Inputs;
use super::layer::Layer;
use super::pairs::Pairing;
use super::side::Side;
use crate::event::{ModelInfo, RuntimeInfo};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to compare, and to what extent.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The side taken as correct.
    pub reference: Side,
    /// The side under test.
    pub test: Side,
    /// Input data.
    pub inputs: Inputs,
    /// SQNR below which a layer diverges, dB.
    pub min_sqnr_db: f64,
    /// Find the first diverging layer by bisection, instead of reading all layers.
    pub bisect: bool,
    /// Maximum size of tensors that both runners and this process hold at a time, bytes.
    pub tensor_bytes: u64,
    /// Folder to save the tensors of both sides to, as float64 .npy in the test's layout.
    pub save_tensors: Option<PathBuf>,
}

/// Progress of a comparison.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The current step.
    pub step: String,
    /// Inferences completed.
    pub done: usize,
    /// Total number of inferences.
    pub of: usize,
}

/// Outcome of a comparison.
#[derive(Debug, Clone)]
pub struct AccuracyOutcome {
    /// Files of the models.
    pub models: [Box<ModelInfo>; 2],
    /// Libraries that computed them.
    pub runtimes: [RuntimeInfo; 2],
    /// The sides.
    pub sides: [Side; 2],
    /// Description of the input data.
    pub inputs: String,
    /// Input data.
    pub data: Inputs,
    /// Names of the reference's inputs.
    pub input_names: Vec<String>,
    /// Folder with the tensors of both sides.
    pub saved: Option<PathBuf>,
    /// Number of inferences.
    pub inferences: usize,
    /// SQNR below which a layer diverges, dB.
    pub min_sqnr_db: f64,
    /// Nodes of the model that the test was converted from, by the test's ops, as far as known.
    pub names: BTreeMap<String, String>,
    /// All pairs, read or not.
    pub pairing: Pairing,
    /// Layers that were read, in graph order.
    pub layers: Vec<Layer>,
    /// The first diverging layer.
    pub first: Option<Judged>,
    /// True if only some of the tensors were read.
    pub bisected: bool,
    /// Limitations of the result.
    pub notes: Vec<String>,
}
