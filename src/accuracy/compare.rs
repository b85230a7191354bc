//! Two models on the same inputs, all tensors of both read.

use super::cause::{self, Judged};
use super::inputs::{InputError, Inputs};
use super::pairing::{Pairing, pair};
use super::passes::{Found, Work};
use super::runner::{Side, SideError};
use super::verdict::{Layer, first_diverging};
use crate::backends::device_runner::DeviceRunnerError;
use crate::event::{Failure, ModelInfo, RuntimeInfo};
use crate::models::source_names;
use std::collections::BTreeMap;
use std::path::PathBuf;
use thiserror::Error;

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
    /// Search for the first diverging layer by bisection, instead of reading all.
    pub bisect: bool,
    /// Maximum bytes of tensors held by both runners and this process at a time.
    pub tensor_bytes: u64,
    /// Folder for the tensors of both sides, as .npy of float64 in the test's layout.
    pub save_tensors: Option<PathBuf>,
}

/// Why nothing was compared.
#[derive(Debug, Error)]
pub enum AccuracyError {
    /// The reference was not computed.
    #[error("the reference: {0}")]
    Reference(SideError),
    /// The test was not computed.
    #[error("the test: {0}")]
    Test(SideError),
    /// The only model was not computed.
    #[error(transparent)]
    Model(SideError),
    /// No inputs.
    #[error(transparent)]
    Inputs(#[from] InputError),
    /// The models have nothing in common.
    #[error("no tensor of {test} matches one of {reference}, neither by name nor by shape")]
    NoPairs {
        /// The reference.
        reference: String,
        /// The test.
        test: String,
    },
    /// Tensors that were to be kept.
    #[error("cannot write the tensors to {path}: {source}")]
    Save {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A context binary.
    #[error("{0} exposes no ops: a context binary is compiled; give the DLC or model library it was made from")]
    Compiled(String),
}

impl AccuracyError {
    /// What a runner failed of.
    pub fn failure(&self) -> Option<&Failure> {
        match self.side() {
            Some(SideError::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    fn side(&self) -> Option<&SideError> {
        match self {
            Self::Reference(error) | Self::Test(error) | Self::Model(error) => Some(error),
            _ => None,
        }
    }

    /// The device on which a side could not be computed.
    pub fn device(&self) -> Option<&DeviceRunnerError> {
        match self.side() {
            Some(SideError::Device(error)) => Some(error),
            _ => None,
        }
    }

    /// True if the request was wrong.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Inputs(_) | Self::NoPairs { .. } | Self::Compiled(_) | Self::Model(SideError::State(_)) => true,
            Self::Reference(error) | Self::Test(error) | Self::Model(error) => match error {
                SideError::NoGraph { .. } | SideError::Source(_) | SideError::Changed { .. } => true,
                SideError::Device(error) => error.is_bad_input(),
                SideError::Failed(failure) => failure.bad_input,
                _ => false,
            },
            Self::Save { .. } => false,
        }
    }
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

/// Compares the two sides, reporting progress to `tell`.
///
/// # Errors
/// Anything that prevents computing a side.
pub async fn compare(comparison: &Comparison, tell: &dyn Fn(&Progress)) -> Result<AccuracyOutcome, AccuracyError> {
    let say = |step: &str| tell(&Progress { step: step.to_owned(), done: 0, of: 0 });
    say("reading the models");
    let (reference_model, reference) = comparison.reference.read().await.map_err(AccuracyError::Reference)?;
    let (test_model, test) = comparison.test.read().await.map_err(AccuracyError::Test)?;
    for (model, graph) in [(&reference_model, &reference), (&test_model, &test)] {
        if graph.ops.is_empty() {
            return Err(AccuracyError::Compiled(model.path.clone()));
        }
    }
    let planned = comparison.inputs.plan(&reference.inputs, &test.inputs)?.over([&reference, &test]);
    let names = source_names(&comparison.test.model).unwrap_or_default().nodes;
    let pairing = pair(&reference, &test, &names);
    if pairing.pairs.is_empty() {
        let (reference, test) = (reference_model.path.clone(), test_model.path.clone());
        return Err(AccuracyError::NoPairs { reference, test });
    }
    let work = Work { comparison, planned, graphs: [&reference, &test], pairing: &pairing, tell };
    let mut notes = Vec::new();
    let mut found = Found::default();
    if comparison.bisect {
        work.bisect(&mut found).await?;
    } else {
        let all: Vec<usize> = (0..pairing.pairs.len()).collect();
        for (number, group) in work.groups(&all).iter().enumerate() {
            found.take(work.pass(group, &format!("pass {}", number + 1)).await?);
        }
    }
    found.reads.sort_by_key(|read| read.pair);
    let left_out = found.without_values(&pairing);
    if !left_out.is_empty() {
        notes.push(format!("these tensors were not kept and are left out: {}", left_out.join(", ")));
    }
    let mut layers: Vec<Layer> = found.reads.iter().map(|read| work.layer(read)).collect();
    match work.own(&layers, &mut found).await {
        Ok(own) => {
            for (pair, sqnr) in own {
                if let Some(layer) = layers.iter_mut().find(|layer| layer.pair == pair) {
                    layer.own_sqnr_db = sqnr;
                }
            }
        }
        Err(error) => {
            notes.push(format!("the layers' own errors are unknown: the ops cannot run one by one: {error}"));
        }
    }
    let first = match first_diverging(&layers, &pairing, comparison.min_sqnr_db) {
        Some(at) => {
            say("reading the constants of the diverging layer");
            let constants = work.constants(&layers[at]).await.unwrap_or_else(|error| {
                notes.push(format!("the constants of the layer could not be read: {error}"));
                Vec::new()
            });
            Some(cause::judge(&layers, at, &pairing, &test, &constants, comparison.min_sqnr_db))
        }
        None => None,
    };
    if !found.refused.is_empty() {
        found.refused.sort();
        found.refused.dedup();
        notes.push(format!("the backend did not expose these tensors: {}", found.refused.join(", ")));
    }
    let missing = found.reads.len() < pairing.pairs.len();
    Ok(AccuracyOutcome {
        models: [reference_model, test_model],
        runtimes: found.runtimes,
        sides: [comparison.reference.clone(), comparison.test.clone()],
        inputs: work.planned.text(),
        data: comparison.inputs.clone(),
        input_names: reference.inputs.iter().map(|tensor| tensor.name.clone()).collect(),
        saved: comparison.save_tensors.clone(),
        inferences: work.planned.count(),
        min_sqnr_db: comparison.min_sqnr_db,
        bisected: comparison.bisect && missing,
        names,
        pairing,
        layers,
        first,
        notes,
    })
}
