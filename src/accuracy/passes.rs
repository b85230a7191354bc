//! Passes over both models: as many tensors read at a time as memory allows.

use super::compare::{AccuracyError, Comparison, Progress};
use super::inputs::Planned;
use super::metrics::{Figures, TensorSums};
use super::pairing::{Pair, Pairing, is_real};
use super::runner::{Opened, SideError};
use super::values::{encoded_range, real_values};
use super::verdict::Layer;
use crate::event::RuntimeInfo;
use crate::models::{Graph, Tensor, TensorKind};
use npyz::WriterBuilder;
use std::collections::HashSet;

/// Figures of one pair from one pass.
pub struct Read {
    /// Position of the pair.
    pub pair: usize,
    /// Its sums.
    pub sums: TensorSums,
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
    /// Takes a pass in.
    pub fn take(&mut self, pass: Pass) {
        self.reads.extend(pass.reads);
        self.runtimes = pass.runtimes;
        self.refused.extend(pass.refused);
    }
}

/// What one pass found.
pub struct Pass {
    reads: Vec<Read>,
    runtimes: [RuntimeInfo; 2],
    refused: Vec<String>,
}

/// Everything that the passes share.
pub struct Work<'a> {
    /// What is compared.
    pub comparison: &'a Comparison,
    /// Data.
    pub planned: Planned,
    /// Both graphs.
    pub graphs: [&'a Graph; 2],
    /// Their pairs.
    pub pairing: &'a Pairing,
    /// Hears how far it is.
    pub tell: &'a dyn Fn(&Progress),
}

/// Names of tensors that have to be opened to be read: outputs can be read as they are, inputs are known.
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

    /// Pairs in groups whose tensors fit into memory together; one that alone does not is a group of its own.
    pub fn groups(&self, pairs: &[usize]) -> Vec<Vec<usize>> {
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

    /// Tells how many inferences are done.
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

    /// The reference with these tensors open.
    pub async fn open_reference<'p>(&self, tensors: impl Iterator<Item = &'p Tensor>) -> Result<Opened, AccuracyError> {
        let side = &self.comparison.reference;
        side.open(to_open(tensors), Vec::new(), Vec::new()).await.map_err(AccuracyError::Reference)
    }

    /// The reference's numbers of a pair, in the test's order.
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

    /// Looks for the first pair below the limit by reading a few, spread over the range that is left, at a time.
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

    /// The layer of a pair that was read.
    pub fn layer(&self, read: &Read) -> Layer {
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
}

/// Tensors that a step of a search reads at most.
const PICKS: usize = 8;

/// An array as NumPy reads it.
fn npy(values: &[f64], shape: &[u32]) -> std::io::Result<Vec<u8>> {
    let shape: Vec<u64> = shape.iter().map(|&size| u64::from(size)).collect();
    let mut bytes = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut bytes).begin_nd()?;
    writer.extend(values.iter().copied())?;
    writer.finish()?;
    Ok(bytes)
}

/// Hands the inputs of one inference over.
pub async fn begin(opened: &mut Opened, index: usize, inputs: &[Vec<u8>]) -> Result<(), SideError> {
    opened.begin(index as u64, inputs.iter().map(Vec::as_slice)).await
}

/// The numbers of a tensor that was read.
pub fn values_of(opened: &Opened, tensor: &Tensor) -> Result<Option<Vec<f64>>, SideError> {
    let Some(bytes) = opened.data(&tensor.name)? else { return Ok(None) };
    Ok(opened.tensor(&tensor.name).and_then(|tensor| real_values(&bytes, tensor)))
}
