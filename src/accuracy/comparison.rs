//! What is compared, and what came of it.

use super::cause::Judged;
use super::inputs::Inputs;
use super::layer::Layer;
use super::pairs::Pairing;
use super::side::Side;
use crate::event::{ModelInfo, RuntimeInfo};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is compared, and how far.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The side that is right.
    pub reference: Side,
    /// The other one.
    pub test: Side,
    /// Data.
    pub inputs: Inputs,
    /// A layer below this diverges, dB.
    pub min_sqnr_db: f64,
    /// Look for the first layer that diverges by halves, instead of reading all.
    pub bisect: bool,
    /// Most bytes of tensors that both runners and this process hold at a time.
    pub tensor_bytes: u64,
    /// Folder for the tensors of both sides, as .npy of float64 in the test's layout.
    pub save_tensors: Option<PathBuf>,
}

/// How far it is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// What is being done.
    pub step: String,
    /// Inferences that are done.
    pub done: usize,
    /// Inferences in all.
    pub of: usize,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct AccuracyOutcome {
    /// The models' files.
    pub models: [Box<ModelInfo>; 2],
    /// Libraries that computed them.
    pub runtimes: [RuntimeInfo; 2],
    /// The sides.
    pub sides: [Side; 2],
    /// Data in words.
    pub inputs: String,
    /// Data.
    pub data: Inputs,
    /// Inputs of the reference.
    pub input_names: Vec<String>,
    /// Folder with the tensors of both sides.
    pub saved: Option<PathBuf>,
    /// Inferences.
    pub inferences: usize,
    /// The limit.
    pub min_sqnr_db: f64,
    /// Nodes of the model that the test was made of, by the test's ops, as far as that is known.
    pub names: BTreeMap<String, String>,
    /// All pairs, read or not.
    pub pairing: Pairing,
    /// Layers that were read, in the order of the graph.
    pub layers: Vec<Layer>,
    /// The first one that diverges.
    pub first: Option<Judged>,
    /// True if only some of the tensors were read.
    pub bisected: bool,
    /// What limits the answer.
    pub notes: Vec<String>,
}
