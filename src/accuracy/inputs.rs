//! The inputs of both models: the same real numbers, each model with its own types and layout.

mod files;

use self::files::{read, sets_in};
use super::file_names::{INPUT, file_name};
use super::layout::Layout;
use super::pairing::{base_name, is_real};
use super::values::{EncodedRange, encoded_range, store_values};
use crate::backends::qnn::runner::read_list;
use crate::files::hex;
use crate::models::{Graph, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use thiserror::Error;

/// Why there are no inputs. The messages say what would be correct.
#[derive(Debug, Error)]
pub enum InputError {
    /// A folder or file that cannot be read.
    #[error("cannot read {path}: {reason}")]
    File {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A folder without inputs for the model.
    #[error("{path} has no inputs: {expected}")]
    Empty {
        /// The folder.
        path: PathBuf,
        /// What was expected.
        expected: String,
    },
    /// A file with a different size than its tensor.
    #[error("{path} has {found} values for input `{name}`, which has {expected} ({shape})")]
    Size {
        /// The file.
        path: PathBuf,
        /// The input.
        name: String,
        /// Number of values in the file.
        found: usize,
        /// Number of values required.
        expected: usize,
        /// Its shape.
        shape: String,
    },
    /// Two models with different inputs.
    #[error("the models take different inputs: {0}")]
    Different(String),
    /// A type for which no data can be generated.
    #[error("input `{name}` has type {dtype}, for which no data can be generated")]
    Type {
        /// The input.
        name: String,
        /// Its type.
        dtype: String,
    },
}

/// Where the data comes from.
#[derive(Debug, Clone)]
pub enum Inputs {
    /// Generated from a seed.
    Random {
        /// Number of inferences.
        count: usize,
        /// Seed.
        seed: u64,
    },
    /// A folder: files named like the inputs, one such subfolder per inference, or one file per inference for
    /// a single input.
    Folder(PathBuf),
    /// A file in qnn-net-run's list format.
    List(PathBuf),
    /// Files of one inference, with the names of their inputs.
    Files(Vec<(String, PathBuf)>),
    /// The inputs of an earlier comparison, with their names in the order of its files.
    Kept {
        /// Folder of the comparison.
        folder: PathBuf,
        /// Names of the inputs.
        names: Vec<String>,
        /// Number of inferences.
        count: usize,
    },
}

/// Inputs that were found: for each inference one file per input of the reference.
#[derive(Debug, Clone)]
pub struct Planned {
    /// Files; empty for generated data.
    sets: Vec<Vec<PathBuf>>,
    count: usize,
    seed: u64,
    /// The test's input for each of the reference's, and its layout.
    order: Vec<(usize, Layout)>,
    /// The range of random numbers for each of the reference's inputs.
    spans: Vec<(f64, f64)>,
    reference: Vec<Tensor>,
    test: Vec<Tensor>,
}

/// The bytes of each input of a model.
pub type Stored = Vec<Vec<u8>>;

/// Op types that quantise.
const QUANTISERS: [&str; 3] = ["Quantize", "Convert", "QuantizeLinear"];

impl Inputs {
    /// Finds the data of two models' inputs.
    ///
    /// # Errors
    /// The inputs differ, or there is no data for them.
    pub fn plan(&self, reference: &[Tensor], test: &[Tensor]) -> Result<Planned, InputError> {
        let order = order(reference, test)?;
        let (sets, count, seed) = match self {
            Self::Random { count, seed } => (Vec::new(), (*count).max(1), *seed),
            Self::Folder(folder) => {
                let sets = sets_in(folder, reference)?;
                let count = sets.len();
                (sets, count, 0)
            }
            Self::List(path) => {
                let failed = |reason: String| InputError::File { path: path.clone(), reason };
                let lines = read_list(path, reference).map_err(|error| failed(error.to_string()))?;
                let whole: Option<Vec<Vec<PathBuf>>> =
                    lines.into_iter().map(|line| line.into_iter().collect()).collect();
                let sets = whole.ok_or_else(|| failed("a line has no file for one input".to_owned()))?;
                let count = sets.len();
                (sets, count, 0)
            }
            Self::Files(files) => {
                let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
                let set = recorded(&names, reference)?.into_iter().map(|at| files[at].1.clone()).collect();
                (vec![set], 1, 0)
            }
            Self::Kept { folder, names, count } => {
                let places = recorded(&names.iter().map(String::as_str).collect::<Vec<_>>(), reference)?;
                let file = |index: usize, at: usize| {
                    folder.join(format!("input_{index}")).join(file_name(at, &names[at], INPUT))
                };
                let set = |index: usize| places.iter().map(|&at| file(index, at)).collect();
                ((0..*count).map(set).collect(), *count, 0)
            }
        };
        let span = |(tensor, (at, _)): (&Tensor, &(usize, Layout))| {
            let range = encoded_range(&test[*at]).or_else(|| encoded_range(tensor));
            range.map_or((0.0, 1.0), |range| (range.min, range.max))
        };
        let spans = reference.iter().zip(&order).map(span).collect();
        Ok(Planned { sets, count, seed, order, spans, reference: reference.to_vec(), test: test.to_vec() })
    }
}

impl Planned {
    /// Generates random numbers over the range that the graphs quantise their float inputs to; the test's
    /// range takes precedence.
    #[must_use]
    pub fn over(mut self, [reference, test]: [&Graph; 2]) -> Self {
        for ((span, tensor), (at, _)) in self.spans.iter_mut().zip(&self.reference).zip(&self.order) {
            let quantised = quantised_as(test, &self.test[*at]).or_else(|| quantised_as(reference, tensor));
            if let Some(range) = quantised {
                *span = (range.min, range.max);
            }
        }
        self
    }

    /// Number of inferences.
    pub fn count(&self) -> usize {
        self.count
    }

    /// `8 made-up inputs (seed 1)` or `8 inputs from files`.
    pub fn text(&self) -> String {
        let plural = if self.count == 1 { "" } else { "s" };
        if self.sets.is_empty() {
            format!("{} random input{plural} (seed {})", self.count, self.seed)
        } else {
            format!("{} input{plural} from files", self.count)
        }
    }

    /// Identifies this data: its description, and the names of its files.
    pub fn identity(&self) -> String {
        let mut hasher = Sha256::new();
        for path in self.sets.iter().flatten() {
            hasher.update(path.as_os_str().as_encoded_bytes());
            hasher.update([0]);
        }
        format!("{}, {}", self.text(), hex(&hasher.finalize()[..8]))
    }

    /// The real numbers of one inference, in the order of the reference's inputs.
    ///
    /// # Errors
    /// A file does not fit.
    pub fn values(&self, index: usize) -> Result<Vec<Vec<f64>>, InputError> {
        match self.sets.get(index) {
            Some(files) => files.iter().zip(&self.reference).map(|(path, tensor)| read(path, tensor)).collect(),
            None => Ok(self.random(index)),
        }
    }

    /// The stored bytes of both models' inputs, each in its own order.
    ///
    /// # Errors
    /// A type cannot be written.
    pub fn stored(&self, values: &[Vec<f64>]) -> Result<(Stored, Stored), InputError> {
        let refused = |tensor: &Tensor| InputError::Type { name: tensor.name.clone(), dtype: tensor.dtype.name() };
        let mut reference = Vec::with_capacity(values.len());
        let mut test = vec![Vec::new(); self.test.len()];
        for ((values, tensor), (at, layout)) in values.iter().zip(&self.reference).zip(&self.order) {
            reference.push(store_values(values, tensor).ok_or_else(|| refused(tensor))?);
            let arranged = layout.arranged(values.clone(), &tensor.shape);
            test[*at] = store_values(&arranged, &self.test[*at]).ok_or_else(|| refused(&self.test[*at]))?;
        }
        Ok((reference, test))
    }

    /// Index of the reference's input with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.reference.iter().position(|tensor| tensor.name == name)
    }

    /// Random numbers over the range of an encoded input of either model; floats in [0, 1); integers 0 or 1.
    fn random(&self, index: usize) -> Vec<Vec<f64>> {
        let rows = self.reference.iter().zip(&self.spans).enumerate();
        rows.map(|(number, (tensor, &(low, high)))| {
            let mut generator = ChaCha8Rng::seed_from_u64(self.seed.wrapping_add(index as u64));
            generator.set_stream(number as u64);
            let mut unit = || f64::from(generator.next_u32()) / (f64::from(u32::MAX) + 1.0);
            let elements = tensor.elements().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
            let real = is_real(tensor.dtype);
            // Both sides accept float32, so neither gets more precision.
            #[expect(clippy::cast_possible_truncation, reason = "see above")]
            let value = |unit: f64| f64::from((low + unit * (high - low)) as f32);
            (0..elements).map(|_| if real { value(unit()) } else { unit().round() }).collect()
        })
        .collect()
    }
}

/// The encoding that the first op reading a float input quantises it to, if it does.
fn quantised_as(graph: &Graph, input: &Tensor) -> Option<EncodedRange> {
    let reader = graph.ops.iter().find(|op| op.inputs.iter().any(|tensor| tensor.name == input.name))?;
    let output = reader.outputs.first().filter(|_| QUANTISERS.contains(&reader.op_type.as_str()))?;
    encoded_range(output).filter(|_| input.dtype.is_float())
}

/// The recorded input for each of a model's: by name, by name without its suffix, otherwise by position.
fn recorded(names: &[&str], inputs: &[Tensor]) -> Result<Vec<usize>, InputError> {
    let place = |(position, tensor): (usize, &Tensor)| {
        let exact = names.iter().position(|name| *name == tensor.name);
        let based = || names.iter().position(|name| base_name(name) == base_name(&tensor.name));
        exact.or_else(based).or((names.len() == inputs.len()).then_some(position))
    };
    let places: Option<Vec<usize>> = inputs.iter().enumerate().map(place).collect();
    places.ok_or_else(|| {
        let given: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let wanted: Vec<String> = inputs.iter().map(|tensor| format!("`{}`", tensor.name)).collect();
        InputError::Different(format!(
            "the record has data for {}; the model takes {}",
            given.join(", "),
            wanted.join(", ")
        ))
    })
}

/// The test's input for each of the reference's: by name, by name without its suffix, otherwise by position.
fn order(reference: &[Tensor], test: &[Tensor]) -> Result<Vec<(usize, Layout)>, InputError> {
    let told = |tensors: &[Tensor]| {
        let rows: Vec<String> =
            tensors.iter().map(|t| format!("`{}` ({} {})", t.name, t.dtype, t.shape_text())).collect();
        rows.join(", ")
    };
    let different = || InputError::Different(format!("{} against {}", told(reference), told(test)));
    if reference.len() != test.len() {
        return Err(different());
    }
    let mut taken = vec![false; test.len()];
    let mut order = Vec::new();
    for (position, tensor) in reference.iter().enumerate() {
        let fits = |at: usize| Layout::between(&tensor.shape, &test[at].shape);
        let named = |same: &dyn Fn(&str) -> bool| {
            (0..test.len()).find(|&at| !taken[at] && same(&test[at].name) && fits(at).is_some())
        };
        let at = named(&|name| name == tensor.name)
            .or_else(|| named(&|name| base_name(name) == base_name(&tensor.name)))
            .or_else(|| (!taken[position] && fits(position).is_some()).then_some(position))
            .ok_or_else(different)?;
        taken[at] = true;
        order.push((at, fits(at).unwrap_or(Layout::Same)));
    }
    Ok(order)
}

#[cfg(test)]
mod tests;
