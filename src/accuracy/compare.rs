//! Two models on the same inputs, all tensors of both read.

use super::cause::{self, Judged};
use super::inputs::{InputError, Inputs, Planned};
use super::metrics::{Figures, TensorSums};
use super::pairing::{Pair, Pairing, is_real, pair};
use super::runner::{Opened, Side, SideError};
use super::values::{EncodedRange, encoded_range, real_values, store_values};
use super::verdict::{Layer, first_diverging};
use crate::backends::qnn::runner::GivenTensor;
use crate::event::{Failure, ModelInfo, RuntimeInfo};
use crate::models::{Graph, Tensor, TensorKind};
use npyz::WriterBuilder;
use std::collections::HashSet;
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
    /// Look for the first layer that diverges by halves, instead of reading all.
    pub bisect: bool,
    /// Most bytes of tensors that both runners and this process hold at a time.
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
    #[error("no tensor of {test} could be paired with one of {reference}: neither names nor shapes agree")]
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
    #[error(
        "{0} holds no ops to look into: a context binary is compiled; give the DLC or model library it was made from"
    )]
    Compiled(String),
}

impl AccuracyError {
    /// What a runner failed of.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Reference(SideError::Failed(failure))
            | Self::Test(SideError::Failed(failure))
            | Self::Model(SideError::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// True if the request was wrong.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Reference(SideError::NoGraph { .. })
            | Self::Test(SideError::NoGraph { .. })
            | Self::Model(SideError::NoGraph { .. } | SideError::State(_)) => true,
            Self::Reference(_) | Self::Test(_) | Self::Model(_) => {
                self.failure().is_some_and(|failure| failure.bad_input)
            }
            Self::Inputs(_) | Self::NoPairs { .. } | Self::Compiled(_) => true,
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
pub struct Outcome {
    /// The models' files.
    pub models: [Box<ModelInfo>; 2],
    /// Libraries that computed them.
    pub runtimes: [RuntimeInfo; 2],
    /// The sides.
    pub sides: [Side; 2],
    /// Data in words.
    pub inputs: String,
    /// Inferences.
    pub inferences: usize,
    /// The limit.
    pub min_sqnr_db: f64,
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

/// Figures of one pair from one pass.
struct Read {
    pair: usize,
    sums: TensorSums,
}

/// Compares the two sides; `tell` hears how far it is.
///
/// # Errors
/// Whatever keeps a side from being computed.
pub async fn compare(comparison: &Comparison, tell: &dyn Fn(&Progress)) -> Result<Outcome, AccuracyError> {
    let say = |step: &str| tell(&Progress { step: step.to_owned(), done: 0, of: 0 });
    say("reading the models");
    let (reference_model, reference) = comparison.reference.read().await.map_err(AccuracyError::Reference)?;
    let (test_model, test) = comparison.test.read().await.map_err(AccuracyError::Test)?;
    for (model, graph) in [(&reference_model, &reference), (&test_model, &test)] {
        if graph.ops.is_empty() {
            return Err(AccuracyError::Compiled(model.path.clone()));
        }
    }
    let planned = comparison.inputs.plan(&reference.inputs, &test.inputs)?;
    let pairing = pair(&reference, &test);
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
            notes.push(format!("the layers' own errors are unknown: the ops cannot be computed one by one: {error}"));
        }
    }
    let first = match first_diverging(&layers, &pairing, comparison.min_sqnr_db) {
        Some(at) => {
            say("looking at the constants of the layer that diverges");
            let constants = work.constants(&layers[at]).await.unwrap_or_else(|error| {
                notes.push(format!("the constants of the layer could not be read: {error}"));
                Vec::new()
            });
            Some(cause::judge(&layers, at, &pairing, &test, constants, comparison.min_sqnr_db))
        }
        None => None,
    };
    if !found.refused.is_empty() {
        found.refused.sort();
        found.refused.dedup();
        notes.push(format!("the backend did not let these tensors be read: {}", found.refused.join(", ")));
    }
    let missing = found.reads.len() < pairing.pairs.len();
    Ok(Outcome {
        models: [reference_model, test_model],
        runtimes: found.runtimes,
        sides: [comparison.reference.clone(), comparison.test.clone()],
        inputs: work.planned.text(),
        inferences: work.planned.count(),
        min_sqnr_db: comparison.min_sqnr_db,
        bisected: comparison.bisect && missing,
        pairing,
        layers,
        first,
        notes,
    })
}

#[derive(Default)]
struct Found {
    reads: Vec<Read>,
    runtimes: [RuntimeInfo; 2],
    refused: Vec<String>,
}

impl Found {
    fn take(&mut self, pass: Pass) {
        self.reads.extend(pass.reads);
        self.runtimes = pass.runtimes;
        self.refused.extend(pass.refused);
    }
}

struct Pass {
    reads: Vec<Read>,
    runtimes: [RuntimeInfo; 2],
    refused: Vec<String>,
}

/// A constant of the op that diverges, compared with the reference's.
#[derive(Debug, Clone)]
pub struct Constant {
    /// The test's tensor.
    pub tensor: Tensor,
    /// Figures, by what its encoding can hold.
    pub figures: Figures,
    /// Sums, by slice of the encoding's axis, or by output channel.
    pub sums: TensorSums,
    /// What the encoding can hold, for one scale.
    pub range: Option<EncodedRange>,
}

struct Work<'a> {
    comparison: &'a Comparison,
    planned: Planned,
    graphs: [&'a Graph; 2],
    pairing: &'a Pairing,
    tell: &'a dyn Fn(&Progress),
}

/// Names of tensors that have to be opened to be read: outputs can be read as they are, inputs are known.
fn to_open<'p>(tensors: impl Iterator<Item = &'p Tensor>) -> Vec<String> {
    let mut seen = HashSet::new();
    let native = tensors.filter(|tensor| tensor.kind == TensorKind::Native);
    native.filter(|tensor| seen.insert(tensor.name.clone())).map(|tensor| tensor.name.clone()).collect()
}

impl Work<'_> {
    fn bytes(&self, pair: usize) -> u64 {
        let Pair { reference, test, .. } = &self.pairing.pairs[pair];
        reference.tensor.bytes().unwrap_or(0).saturating_add(test.tensor.bytes().unwrap_or(0))
    }

    /// Pairs in groups whose tensors fit into memory together; one that alone does not is a group of its own.
    fn groups(&self, pairs: &[usize]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut held = 0u64;
        for &pair in pairs {
            // Ours are as 64-bit numbers, one pair at a time.
            let bytes = self.bytes(pair);
            match groups.last_mut() {
                Some(group) if held.saturating_add(bytes) <= self.comparison.tensor_bytes => group.push(pair),
                _ => {
                    groups.push(vec![pair]);
                    held = 0;
                }
            }
            held = held.saturating_add(bytes);
        }
        groups
    }

    fn progress(&self, step: &str, done: usize) {
        (self.tell)(&Progress { step: step.to_owned(), done, of: self.planned.count() });
    }

    /// Reads these pairs on all inputs.
    async fn pass(&self, group: &[usize], step: &str) -> Result<Pass, AccuracyError> {
        let pairs: Vec<&Pair> = group.iter().map(|&pair| &self.pairing.pairs[pair]).collect();
        self.progress(&format!("{step}: compiling"), 0);
        let mut reference = self.open_reference(pairs.iter().map(|pair| &pair.reference.tensor)).await?;
        let readable = to_open(pairs.iter().map(|pair| &pair.test.tensor));
        let mut test =
            self.comparison.test.open(readable, Vec::new(), Vec::new()).await.map_err(AccuracyError::Test)?;
        let mut reads: Vec<Read> = group.iter().map(|&pair| Read { pair, sums: TensorSums::default() }).collect();
        for index in 0..self.planned.count() {
            self.progress(step, index);
            let values = self.planned.values(index)?;
            let (for_reference, for_test) = self.planned.stored(&values)?;
            begin(&mut reference, index, &for_reference).await.map_err(AccuracyError::Reference)?;
            begin(&mut test, index, &for_test).await.map_err(AccuracyError::Test)?;
            reference.computed().await.map_err(AccuracyError::Reference)?;
            test.computed().await.map_err(AccuracyError::Test)?;
            for (read, pair) in reads.iter_mut().zip(&pairs) {
                let x = self.reference_values(&reference, pair, &values)?;
                let y = values_of(&test, &pair.test.tensor).map_err(AccuracyError::Test)?;
                if let (Some(x), Some(y)) = (x, y) {
                    self.save(index, read.pair, [&x, &y])?;
                    let axis = pair.layout.channel_axis(&pair.test.tensor.shape);
                    read.sums.take(&x, &y, &pair.test.tensor.shape, axis, encoded_range(&pair.test.tensor));
                }
                // A signal, and the runners' deadlines, come between.
                tokio::task::yield_now().await;
            }
        }
        self.progress(step, self.planned.count());
        let runtimes = [reference.facts.runtime.clone(), test.facts.runtime.clone()];
        let refused = reference.facts.refused.iter().chain(&test.facts.refused).cloned().collect();
        reference.close().await;
        test.close().await;
        Ok(Pass { reads, runtimes, refused })
    }

    /// Keeps both sides of a pair, where that was asked for.
    fn save(&self, inference: usize, pair: usize, sides: [&[f64]; 2]) -> Result<(), AccuracyError> {
        let Some(folder) = &self.comparison.save_tensors else { return Ok(()) };
        let tensor = &self.pairing.pairs[pair].test.tensor;
        let folder = folder.join(format!("input_{inference}"));
        let name: String =
            tensor.name.chars().take(100).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        for (role, values) in ["reference", "test"].into_iter().zip(sides) {
            // The number keeps names apart that differ in what a file's name cannot hold.
            let path = folder.join(format!("{pair:04}_{name}.{role}.npy"));
            let written = std::fs::create_dir_all(&folder)
                .and_then(|()| npy(values, &tensor.shape))
                .and_then(|bytes| crate::files::write_whole(&path, &bytes));
            written.map_err(|source| AccuracyError::Save { path, source })?;
        }
        Ok(())
    }

    async fn open_reference<'p>(&self, tensors: impl Iterator<Item = &'p Tensor>) -> Result<Opened, AccuracyError> {
        let side = &self.comparison.reference;
        side.open(to_open(tensors), Vec::new(), Vec::new()).await.map_err(AccuracyError::Reference)
    }

    /// The reference's numbers of a pair, in the test's order.
    fn reference_values(
        &self,
        reference: &Opened,
        pair: &Pair,
        inputs: &[Vec<f64>],
    ) -> Result<Option<Vec<f64>>, AccuracyError> {
        let tensor = &pair.reference.tensor;
        let values = match pair.reference.op {
            None => self.planned.position(&tensor.name).and_then(|at| inputs.get(at).cloned()),
            Some(_) => values_of(reference, tensor).map_err(AccuracyError::Reference)?,
        };
        Ok(values.map(|values| pair.layout.arranged(values, &tensor.shape)))
    }

    /// Looks for the first pair below the limit by reading a few, spread over the range that is left, at a time.
    async fn bisect(&self, found: &mut Found) -> Result<(), AccuracyError> {
        let (mut low, mut high) = (0, self.pairing.pairs.len());
        let mut number = 0;
        while low < high {
            let room = high - low;
            let mut picks: Vec<usize> = Vec::new();
            let mut bytes = 0u64;
            let wanted = room.min(PICKS);
            for pick in 0..wanted {
                let at = low + (pick + 1) * room / (wanted + 1);
                let at = if room <= PICKS { low + pick } else { at };
                bytes = bytes.saturating_add(self.bytes(at));
                if !picks.is_empty() && bytes > self.comparison.tensor_bytes {
                    break;
                }
                picks.push(at);
            }
            picks.dedup();
            number += 1;
            let pass = self.pass(&picks, &format!("step {number}: {room} layers left")).await?;
            let limit = self.comparison.min_sqnr_db;
            let bad = pass.reads.iter().find(|read| read.sums.whole.sqnr_db().is_some_and(|sqnr| sqnr < limit));
            match bad.map(|read| read.pair) {
                // All before it that were read are good: it is this one, or one between it and the last good one.
                Some(bad) => {
                    let good = picks.iter().copied().filter(|&pick| pick < bad).max();
                    low = good.map_or(low, |good| good + 1);
                    high = bad;
                }
                None => low = picks.last().map_or(high, |&last| last + 1),
            }
            found.take(pass);
        }
        Ok(())
    }

    fn layer(&self, read: &Read) -> Layer {
        let pair = &self.pairing.pairs[read.pair];
        let range = encoded_range(&pair.test.tensor);
        let op = pair.test.op.and_then(|op| self.graphs[1].ops.get(op));
        Layer {
            pair: read.pair,
            op: op.map_or_else(String::new, |op| op.name.clone()),
            op_type: op.map_or_else(String::new, |op| op.op_type.clone()),
            figures: Figures::new(&read.sums, range, !is_real(pair.test.tensor.dtype)),
            sums: read.sums.clone(),
            range,
            own_sqnr_db: None,
        }
    }

    /// What each op adds by itself: computed on the reference's values. Only of layers that were read, on the first inputs.
    async fn own(&self, layers: &[Layer], found: &mut Found) -> Result<Vec<(usize, Option<f64>)>, AccuracyError> {
        let wanted: Vec<usize> = layers.iter().filter(|layer| layer.op_type != "").map(|layer| layer.pair).collect();
        let mut own = Vec::new();
        for group in self.groups(&wanted) {
            own.extend(self.own_pass(&group, layers, found).await?);
        }
        Ok(own)
    }

    async fn own_pass(
        &self,
        group: &[usize],
        layers: &[Layer],
        found: &mut Found,
    ) -> Result<Vec<(usize, Option<f64>)>, AccuracyError> {
        let step = "each op on the reference's values";
        self.progress(&format!("{step}: compiling"), 0);
        let pairs = &self.pairing.pairs;
        // A tensor that several pairs share is given once.
        let mut sources: Vec<usize> = group.iter().flat_map(|&pair| pairs[pair].sources.iter().copied()).collect();
        sources.sort_unstable();
        sources.dedup();
        let given = sources.iter().map(|&source| GivenTensor {
            name: pairs[source].name().to_owned(),
            encoding: layers.iter().find(|layer| layer.pair == source).and_then(Layer::better_encoding),
        });
        let read: Vec<usize> = group.iter().chain(&sources).copied().collect();
        let mut reference = self.open_reference(read.iter().map(|&pair| &pairs[pair].reference.tensor)).await?;
        let readable = to_open(group.iter().map(|&pair| &pairs[pair].test.tensor));
        let mut test =
            self.comparison.test.open(readable, given.collect(), Vec::new()).await.map_err(AccuracyError::Test)?;
        let stands_for: Vec<(&Pair, Tensor)> = test
            .facts
            .given
            .iter()
            .filter_map(|(of, tensor)| {
                let pair = sources.iter().map(|&source| &pairs[source]).find(|pair| pair.name() == of)?;
                Some((pair, tensor.clone()))
            })
            .collect();
        let mut sums: Vec<TensorSums> = group.iter().map(|_| TensorSums::default()).collect();
        for index in 0..self.planned.count().min(OWN_INFERENCES) {
            self.progress(step, index);
            let values = self.planned.values(index)?;
            let (for_reference, mut for_test) = self.planned.stored(&values)?;
            begin(&mut reference, index, &for_reference).await.map_err(AccuracyError::Reference)?;
            reference.computed().await.map_err(AccuracyError::Reference)?;
            for (pair, tensor) in &stands_for {
                let x = self.reference_values(&reference, pair, &values)?.unwrap_or_default();
                for_test.push(store_values(&x, tensor).unwrap_or_default());
            }
            begin(&mut test, index, &for_test).await.map_err(AccuracyError::Test)?;
            test.computed().await.map_err(AccuracyError::Test)?;
            for (sums, &at) in sums.iter_mut().zip(group) {
                let pair = &pairs[at];
                let x = self.reference_values(&reference, pair, &values)?;
                let y = values_of(&test, &pair.test.tensor).map_err(AccuracyError::Test)?;
                if let (Some(x), Some(y)) = (x, y) {
                    sums.take(&x, &y, &pair.test.tensor.shape, None, None);
                }
                tokio::task::yield_now().await;
            }
        }
        found.refused.extend(test.facts.refused.iter().cloned());
        reference.close().await;
        test.close().await;
        Ok(group.iter().zip(&sums).map(|(&pair, sums)| (pair, sums.whole.sqnr_db())).collect())
    }

    /// The constants of a layer's op against the reference's.
    async fn constants(&self, layer: &Layer) -> Result<Vec<Constant>, AccuracyError> {
        let Pair { reference, test, .. } = &self.pairing.pairs[layer.pair];
        let of = |graph: &Graph, op: Option<usize>| -> Vec<Tensor> {
            let inputs = op.and_then(|op| graph.ops.get(op)).map(|op| op.inputs.clone()).unwrap_or_default();
            inputs.into_iter().filter(|tensor| tensor.kind == TensorKind::Static).collect()
        };
        // The reference's op may be the activation behind the one with the constants.
        let mut at = reference.op;
        let graph = self.graphs[0];
        let wanted = of(self.graphs[1], test.op);
        while let Some(op) = at.and_then(|op| graph.ops.get(op))
            && of(graph, at).is_empty()
            && !wanted.is_empty()
        {
            let before = op.inputs.first().map(|tensor| tensor.name.clone()).unwrap_or_default();
            at = graph.ops.iter().position(|other| other.outputs.iter().any(|tensor| tensor.name == before));
        }
        let theirs = of(graph, at);
        if wanted.is_empty() || theirs.is_empty() {
            return Ok(Vec::new());
        }
        let names = |tensors: &[Tensor]| tensors.iter().map(|tensor| tensor.name.clone()).collect();
        let (one, other) = (&self.comparison.reference, &self.comparison.test);
        let reference = one.open(Vec::new(), Vec::new(), names(&theirs)).await.map_err(AccuracyError::Reference)?;
        let test = other.open(Vec::new(), Vec::new(), names(&wanted)).await.map_err(AccuracyError::Test)?;
        let ours = reference.constants().map_err(AccuracyError::Reference)?;
        let data = test.constants().map_err(AccuracyError::Test)?;
        reference.close().await;
        test.close().await;
        let mut rows = Vec::new();
        for (position, tensor) in wanted.iter().enumerate() {
            let y = data.iter().find(|(other, _)| other.name == tensor.name);
            let x = theirs.get(position).and_then(|theirs| ours.iter().find(|(other, _)| other.name == theirs.name));
            let (Some((_, y)), Some((of, x))) = (y, x) else { continue };
            let Some(layout) = super::layout::Layout::between(&of.shape, &tensor.shape) else { continue };
            let (Some(x), Some(y)) = (real_values(x, of), real_values(y, tensor)) else { continue };
            let x = layout.arranged(x, &of.shape);
            let range = encoded_range(tensor);
            let mut sums = TensorSums::default();
            sums.take(&x, &y, &tensor.shape, cause::slice_axis(tensor), range);
            rows.push(Constant { tensor: tensor.clone(), figures: Figures::new(&sums, range, false), sums, range });
        }
        Ok(rows)
    }
}

/// Tensors that a step of a search reads at most.
const PICKS: usize = 8;
/// Inferences from which the ops' own errors are taken.
const OWN_INFERENCES: usize = 4;

/// An array as NumPy reads it.
fn npy(values: &[f64], shape: &[u32]) -> std::io::Result<Vec<u8>> {
    let shape: Vec<u64> = shape.iter().map(|&size| u64::from(size)).collect();
    let mut bytes = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut bytes).begin_nd()?;
    writer.extend(values.iter().copied())?;
    writer.finish()?;
    Ok(bytes)
}

async fn begin(opened: &mut Opened, index: usize, inputs: &[Vec<u8>]) -> Result<(), SideError> {
    opened.begin(index as u64, inputs.iter().map(Vec::as_slice)).await
}

fn values_of(opened: &Opened, tensor: &Tensor) -> Result<Option<Vec<f64>>, SideError> {
    let Some(bytes) = opened.data(&tensor.name)? else { return Ok(None) };
    Ok(opened.tensor(&tensor.name).and_then(|tensor| real_values(&bytes, tensor)))
}
