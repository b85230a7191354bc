//! Passes over both models: each reads as many tensors as fit in memory.

use super::comparison::{Comparison, Progress};
use super::error::AccuracyError;
use super::file_names::{INPUT, file_name};
use super::inputs::Planned;
use super::layer::Layer;
use super::metrics::{TensorFigures, TensorSums};
use super::pairing::is_real;
use super::pairs::{Pair, Pairing};
use super::role::Role;
use super::runner::Opened;
use super::side::SideError;
use super::spread::{DiffMap, Spread};
use super::values::encoded_range;
use crate::event::RuntimeInfo;
use crate::models::{Graph, Tensor, TensorKind};
use npyz::WriterBuilder;
use std::collections::HashSet;
use std::path::Path;

/// Figures of one pair from one pass.
pub struct Read {
    /// Index of the pair.
    pub pair: usize,
    /// Its sums.
    pub sums: TensorSums,
    /// Distribution of its values.
    pub spread: Option<Spread>,
    /// Where images differ.
    pub map: Option<DiffMap>,
}

impl Read {
    fn new(pair: usize) -> Self {
        Self { pair, sums: TensorSums::default(), spread: None, map: None }
    }

    /// Adds the values of one inference, both in the test's order.
    fn take(&mut self, x: &[f64], y: &[f64], pair: &Pair) {
        let tensor = &pair.test.tensor;
        let axis = pair.layout.channel_axis(&tensor.shape);
        self.sums.take(x, y, &tensor.shape, axis, encoded_range(tensor));
        if is_real(tensor.dtype) {
            self.spread = self.spread.take().or_else(|| Spread::over(x, y));
            self.map = self.map.take().or_else(|| DiffMap::of(&tensor.shape, axis));
        }
        if let Some(spread) = &mut self.spread {
            spread.take(x, y);
        }
        if let Some(map) = &mut self.map {
            map.take(x, y, &tensor.shape, axis);
        }
    }
}

#[derive(Default)]
pub struct Found {
    /// Sums of each pair.
    pub reads: Vec<Read>,
    /// Libraries that computed them.
    pub runtimes: [RuntimeInfo; 2],
    /// Tensors that the backends did not open.
    pub refused: Vec<String>,
}

impl Found {
    /// Adds the results of a pass.
    pub fn take(&mut self, pass: Pass) {
        self.reads.extend(pass.reads);
        self.runtimes = pass.runtimes;
        self.refused.extend(pass.refused);
    }
}

impl Found {
    /// Removes pairs for which a side has no values although the tensor has some; returns their names.
    pub fn without_values(&mut self, pairing: &Pairing) -> Vec<String> {
        let is_empty = |read: &Read| read.sums.whole.count + read.sums.whole.not_finite == 0;
        let has_some = |read: &Read| pairing.pairs[read.pair].test.tensor.elements().is_some_and(|count| count > 0);
        let (out, kept) =
            std::mem::take(&mut self.reads).into_iter().partition(|read| is_empty(read) && has_some(read));
        self.reads = kept;
        let out: Vec<Read> = out;
        out.iter().map(|read| pairing.pairs[read.pair].name().to_owned()).collect()
    }
}

/// The results of one pass.
pub struct Pass {
    reads: Vec<Read>,
    runtimes: [RuntimeInfo; 2],
    refused: Vec<String>,
}

/// Shared state of the passes.
pub struct Work<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// Input data.
    pub planned: Planned,
    /// Both graphs.
    pub graphs: [&'a Graph; 2],
    /// Their pairs.
    pub pairing: &'a Pairing,
    /// Called with the progress.
    pub tell: &'a dyn Fn(&Progress),
}

/// Names of tensors that must be opened to be read: outputs are readable anyway, and inputs are known.
pub fn to_open<'p>(tensors: impl Iterator<Item = &'p Tensor>) -> Vec<String> {
    let mut seen = HashSet::new();
    let native = tensors.filter(|tensor| tensor.kind == TensorKind::Native);
    native.filter(|tensor| seen.insert(tensor.name.clone())).map(|tensor| tensor.name.clone()).collect()
}

impl Work<'_> {
    fn bytes(&self, pair: usize) -> u64 {
        let Pair { reference, test, .. } = &self.pairing.pairs[pair];
        reference.tensor.bytes().unwrap_or(0).saturating_add(test.tensor.bytes().unwrap_or(0))
    }

    /// Pairs in groups whose tensors fit in memory together; a pair that does not fit forms its own group.
    pub fn groups(&self, pairs: &[usize]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut held = 0u64;
        for &pair in pairs {
            // This process holds 64-bit numbers, one pair at a time.
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

    /// Reports how many inferences are done.
    pub fn progress(&self, step: &str, done: usize) {
        (self.tell)(&Progress { step: step.to_owned(), done, of: self.planned.count() });
    }

    /// Reads these pairs on all inputs.
    pub async fn pass(&self, group: &[usize], step: &str) -> Result<Pass, AccuracyError> {
        let pairs: Vec<&Pair> = group.iter().map(|&pair| &self.pairing.pairs[pair]).collect();
        self.progress(&format!("{step}: compiling"), 0);
        let mut reference = self.open_reference(pairs.iter().map(|pair| &pair.reference.tensor)).await?;
        let readable = to_open(pairs.iter().map(|pair| &pair.test.tensor));
        let mut test =
            self.comparison.test.open(readable, Vec::new(), Vec::new()).await.map_err(AccuracyError::Test)?;
        let mut reads: Vec<Read> = group.iter().map(|&pair| Read::new(pair)).collect();
        for index in 0..self.planned.count() {
            self.progress(step, index);
            let values = self.planned.values(index)?;
            self.save_inputs(index, &values)?;
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
                    read.take(&x, &y, pair);
                }
                // Lets a signal or the runners' deadlines interrupt this.
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

    /// Saves both sides of a pair, if requested.
    fn save(&self, inference: usize, pair: usize, sides: [&[f64]; 2]) -> Result<(), AccuracyError> {
        let Some(folder) = &self.comparison.save_tensors else { return Ok(()) };
        let tensor = &self.pairing.pairs[pair].test.tensor;
        for (role, values) in [Role::Reference, Role::Test].into_iter().zip(sides) {
            keep(folder, inference, &file_name(pair, &tensor.name, role.name()), values, &tensor.shape)?;
        }
        Ok(())
    }

    /// Saves the inputs of an inference, in the reference's order.
    fn save_inputs(&self, inference: usize, values: &[Vec<f64>]) -> Result<(), AccuracyError> {
        let Some(folder) = &self.comparison.save_tensors else { return Ok(()) };
        for (number, (values, tensor)) in values.iter().zip(&self.graphs[0].inputs).enumerate() {
            keep(folder, inference, &file_name(number, &tensor.name, INPUT), values, &tensor.shape)?;
        }
        Ok(())
    }

    /// Opens the reference with these tensors readable.
    pub async fn open_reference<'p>(&self, tensors: impl Iterator<Item = &'p Tensor>) -> Result<Opened, AccuracyError> {
        let side = &self.comparison.reference;
        side.open(to_open(tensors), Vec::new(), Vec::new()).await.map_err(AccuracyError::Reference)
    }

    /// The reference's values of a pair, in the test's order.
    pub fn reference_values(
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

    /// Finds the first pair below the limit by reading a few at a time, spread over the remaining range.
    pub async fn bisect(&self, found: &mut Found) -> Result<(), AccuracyError> {
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
                // All pairs read before it are good: it is this one, or one between it and the last good one.
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

    /// The layer of a pair that was read.
    pub fn layer(&self, read: &Read) -> Layer {
        let pair = &self.pairing.pairs[read.pair];
        let range = encoded_range(&pair.test.tensor);
        let op = pair.test.op.and_then(|op| self.graphs[1].ops.get(op));
        Layer {
            pair: read.pair,
            op: op.map_or_else(String::new, |op| op.name.clone()),
            op_type: op.map_or_else(String::new, |op| op.op_type.clone()),
            figures: TensorFigures::new(&read.sums, range, !is_real(pair.test.tensor.dtype)),
            sums: read.sums.clone(),
            spread: read.spread.clone(),
            map: read.map.clone(),
            range,
            own_sqnr_db: None,
        }
    }
}

/// Maximum number of tensors read per search step.
const PICKS: usize = 8;

/// Writes an array into the folder of an inference.
fn keep(folder: &Path, inference: usize, name: &str, values: &[f64], shape: &[u32]) -> Result<(), AccuracyError> {
    let folder = folder.join(format!("input_{inference}"));
    let path = folder.join(name);
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| npy(values, shape))
        .and_then(|bytes| crate::files::write_whole(&path, &bytes));
    written.map_err(|source| AccuracyError::Save { path, source })
}

/// An array in NumPy's format.
fn npy(values: &[f64], shape: &[u32]) -> std::io::Result<Vec<u8>> {
    let shape: Vec<u64> = shape.iter().map(|&size| u64::from(size)).collect();
    let mut bytes = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut bytes).begin_nd()?;
    writer.extend(values.iter().copied())?;
    writer.finish()?;
    Ok(bytes)
}

/// Passes on the inputs of one inference.
pub async fn begin(opened: &mut Opened, index: usize, inputs: &[Vec<u8>]) -> Result<(), SideError> {
    opened.begin(index as u64, inputs.iter().map(Vec::as_slice)).await
}

/// The values of a tensor that was read.
pub fn values_of(opened: &Opened, tensor: &Tensor) -> Result<Option<Vec<f64>>, SideError> {
    opened.values(&tensor.name)
}
