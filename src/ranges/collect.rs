//! Computes a model on data, reads all tensors, and collects statistics of their values.

use super::histogram::Histogram;
use crate::accuracy::{
    AccuracyError, EncodedRange, Inputs, Layout, Progress, Side, SideError, Sums, base_name, can_be_read, is_real,
    real_values,
};
use crate::encodings::{Encoding, Encodings};
use crate::event::ModelInfo;
use crate::models::{Graph, Tensor, TensorKind};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum number of tensors whose channels are kept.
const MOST_CHANNELS: u32 = 4096;
/// How often results are saved to the state file.
const SAVE_EVERY: Duration = Duration::from_secs(5);
/// Name and version of the state file.
const STATE: &str = "qnnscope.ranges-state/1";
/// Largest state file.
const MAX_STATE_BYTES: u64 = 1 << 30;

/// What is collected.
#[derive(Debug)]
pub struct Collection<'a> {
    /// The model.
    pub side: Side,
    /// Data.
    pub inputs: Inputs,
    /// Maximum bytes of tensors held at a time.
    pub tensor_bytes: u64,
    /// Encodings whose errors to determine.
    pub given: Option<&'a Encodings>,
    /// File with the results so far, from which to continue.
    pub state: Option<&'a Path>,
}

/// Statistics of one tensor's values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TensorRange {
    /// Name.
    pub name: String,
    /// Op that makes it; empty for an input.
    pub op: String,
    /// Dimensions.
    pub shape: Vec<u32>,
    /// Inferences that it is known of.
    pub inferences: usize,
    /// Values that are NaN or infinite.
    pub not_finite: u64,
    /// Smallest number.
    #[serde(with = "exact::one")]
    pub min: Option<f64>,
    /// Largest number.
    #[serde(with = "exact::one")]
    pub max: Option<f64>,
    /// Smallest and largest number of each channel of the last axis; empty where there are none, or too many.
    #[serde(with = "exact::pairs")]
    pub channels: Vec<(f64, f64)>,
    /// Its numbers.
    pub histogram: Histogram,
    /// Errors of the given encoding.
    #[serde(skip)]
    pub given: Option<Given>,
}

/// The effect of a given encoding on a tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// Bits.
    pub bits: u32,
    /// What it can hold.
    pub range: EncodedRange,
    /// Sums over the values and their stored forms.
    pub sums: Sums,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Ranges {
    /// The model's file.
    pub model: Box<ModelInfo>,
    /// Where it was computed.
    pub side: Side,
    /// Data in words.
    pub inputs: String,
    /// Inferences.
    pub inferences: usize,
    /// Inferences made by an earlier call.
    pub resumed: usize,
    /// Tensors in the order of the graph.
    pub tensors: Vec<TensorRange>,
    /// Names in the given encodings that no tensor has.
    pub unknown: Vec<String>,
    /// Tensors that the backend did not let be read.
    pub refused: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct State {
    schema: String,
    model: String,
    inputs: String,
    tensors: Vec<TensorRange>,
}

/// Computes the model on all inputs, in as many passes as memory requires.
///
/// # Errors
/// Whatever keeps the model from being computed, or a state file of something else.
pub async fn collect(collection: &Collection<'_>, tell: &dyn Fn(&Progress)) -> Result<Ranges, AccuracyError> {
    let Collection { side, inputs, given, state, .. } = collection;
    let (model, graph) = side.read().await.map_err(AccuracyError::Model)?;
    if graph.ops.is_empty() {
        return Err(AccuracyError::Compiled(model.path.clone()));
    }
    let planned = inputs.plan(&graph.inputs, &graph.inputs)?.over([&graph, &graph]);
    let slots = slots(&graph);
    let mut known = match state {
        Some(path) => load(path, &model.sha256, &planned.identity())?,
        None => HashMap::new(),
    };
    // Errors of given encodings are not kept in the file, so they need all inferences.
    if given.is_some() {
        known.clear();
    }
    let by_name: HashMap<&str, &Encoding> =
        given.iter().flat_map(|given| &given.tensors).map(|encoding| (base_name(&encoding.name), encoding)).collect();
    let mut tensors: Vec<TensorRange> = slots
        .iter()
        .map(|(tensor, op)| {
            let mut range = known.remove(&tensor.name).unwrap_or_else(|| TensorRange {
                name: tensor.name.clone(),
                op: op.clone(),
                shape: tensor.shape.clone(),
                ..TensorRange::default()
            });
            range.given = by_name.get(base_name(&tensor.name)).and_then(|encoding| one_scale(encoding));
            range
        })
        .collect();
    let resumed = tensors.iter().map(|tensor| tensor.inferences).min().unwrap_or(0);
    let mut refused = Vec::new();
    let groups = groups(&slots, collection.tensor_bytes);
    let total = planned.count() * groups.len();
    let mut saved = Instant::now();
    for (number, group) in groups.iter().enumerate() {
        let first = group.iter().map(|&at| tensors[at].inferences).min().unwrap_or(0);
        if first >= planned.count() {
            continue;
        }
        let readable = group.iter().map(|&at| slots[at].0);
        let readable = readable.filter(|tensor| tensor.kind == TensorKind::Native).map(|tensor| tensor.name.clone());
        let mut opened = side.open(readable.collect(), Vec::new(), Vec::new()).await.map_err(AccuracyError::Model)?;
        refused.extend(opened.facts.refused.iter().cloned());
        for index in first..planned.count() {
            let step = format!("pass {} of {}: reading {} tensors", number + 1, groups.len(), group.len());
            tell(&Progress { step, done: number * planned.count() + index, of: total });
            let values = planned.values(index)?;
            let (stored, _) = planned.stored(&values)?;
            opened.begin(index as u64, stored.iter().map(Vec::as_slice)).await.map_err(AccuracyError::Model)?;
            opened.computed().await.map_err(AccuracyError::Model)?;
            for &at in group {
                let (tensor, _) = slots[at];
                let found = match planned.position(&tensor.name).filter(|_| tensors[at].op.is_empty()) {
                    Some(input) => values.get(input).cloned(),
                    None => {
                        let bytes = opened.data(&tensor.name).map_err(AccuracyError::Model)?;
                        bytes.and_then(|bytes| real_values(&bytes, tensor))
                    }
                };
                if tensors[at].inferences == index {
                    tensors[at].take(&found.unwrap_or_default());
                }
                tokio::task::yield_now().await;
            }
            if let Some(path) = state
                && (saved.elapsed() >= SAVE_EVERY || index + 1 == planned.count())
            {
                save(path, &model.sha256, &planned.identity(), &tensors)?;
                saved = Instant::now();
            }
        }
        opened.close().await;
    }
    let names: Vec<&str> = slots.iter().map(|(tensor, _)| base_name(&tensor.name)).collect();
    let constants: Vec<&str> = graph
        .ops
        .iter()
        .flat_map(|op| &op.inputs)
        .filter(|tensor| tensor.kind == TensorKind::Static)
        .map(|tensor| base_name(&tensor.name))
        .collect();
    let unknown = given.iter().flat_map(|given| &given.tensors).map(|encoding| base_name(&encoding.name));
    let unknown = unknown.filter(|name| !names.contains(name) && !constants.contains(name)).map(ToOwned::to_owned);
    Ok(Ranges {
        model,
        side: side.clone(),
        inputs: planned.text(),
        inferences: planned.count(),
        resumed: resumed.min(planned.count()),
        unknown: unknown.collect(),
        tensors,
        refused,
    })
}

/// Tensors with real numbers: inputs, and what ops make.
fn slots(graph: &Graph) -> Vec<(&Tensor, String)> {
    let inputs = graph.inputs.iter().map(|tensor| (tensor, String::new()));
    let made = graph.ops.iter().flat_map(|op| op.outputs.iter().map(|tensor| (tensor, op.name.clone())));
    inputs.chain(made).filter(|(tensor, _)| can_be_read(tensor) && is_real(tensor.dtype)).collect()
}

fn groups(slots: &[(&Tensor, String)], limit: u64) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut held = 0u64;
    for (at, (tensor, _)) in slots.iter().enumerate() {
        let bytes = tensor.bytes().unwrap_or(0);
        match groups.last_mut() {
            Some(group) if held.saturating_add(bytes) <= limit => group.push(at),
            _ => {
                groups.push(vec![at]);
                held = 0;
            }
        }
        held = held.saturating_add(bytes);
    }
    groups
}

/// An encoding with one scale as a range; others are for weights.
fn one_scale(encoding: &Encoding) -> Option<Given> {
    let [slice] = encoding.slices.as_slice() else { return None };
    let (scale, offset) = encoding.resolved(slice)?;
    if encoding.is_float
        || scale <= 0.0
        || !scale.is_finite()
        || encoding.bits > 32
        || offset.abs() > f64::from(i32::MAX)
    {
        return None;
    }
    let levels = encoding.levels();
    #[expect(clippy::cast_possible_truncation, reason = "bounded just above")]
    let range = EncodedRange {
        min: offset * scale,
        max: (offset + levels) * scale,
        step: scale,
        low: 0,
        high: levels as i64,
        offset: offset as i32,
        bits: encoding.bits,
    };
    Some(Given { bits: encoding.bits, range, sums: Sums::default() })
}

impl TensorRange {
    /// Takes the numbers of one inference in.
    fn take(&mut self, values: &[f64]) {
        self.inferences += 1;
        let finite = |value: &&f64| value.is_finite();
        self.not_finite += values.iter().filter(|value| !value.is_finite()).count() as u64;
        let (mut min, mut max) = (self.min.unwrap_or(f64::INFINITY), self.max.unwrap_or(f64::NEG_INFINITY));
        for &value in values.iter().filter(finite) {
            (min, max) = (min.min(value), max.max(value));
        }
        if min <= max {
            (self.min, self.max) = (Some(min), Some(max));
        }
        self.histogram.take_all(values);
        if let Some(&count) = Layout::Same.channel_axis(&self.shape).and_then(|axis| self.shape.get(axis))
            && (2..=MOST_CHANNELS).contains(&count)
            && self.shape.len() >= 3
        {
            let count = count as usize;
            self.channels.resize(count, (f64::MAX, f64::MIN));
            for (at, &value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                let (low, high) = &mut self.channels[at % count];
                (*low, *high) = (low.min(value), high.max(value));
            }
        }
        if let Some(Given { range, sums, .. }) = &mut self.given {
            let bounds = (range.min - range.step / 2.0, range.max + range.step / 2.0);
            for &value in values {
                let stored =
                    (value / range.step).round_ties_even().clamp(range.min / range.step, range.max / range.step);
                sums.take(value, stored * range.step, bounds);
            }
        }
    }
}

fn broken(path: &Path, reason: impl std::fmt::Display) -> AccuracyError {
    let text = format!("the state file {}: {reason}", path.display());
    AccuracyError::Model(SideError::State(text))
}

/// Results of an earlier call; nothing if there is no file yet.
fn load(path: &Path, model: &str, inputs: &str) -> Result<HashMap<String, TensorRange>, AccuracyError> {
    if !path.exists() {
        return Ok(HashMap::new());
    }
    let text = crate::files::read_text_at_most(path, MAX_STATE_BYTES).map_err(|error| broken(path, error))?;
    let state: State = serde_json::from_str(&text).map_err(|error| broken(path, error))?;
    if state.schema != STATE {
        return Err(broken(path, "it is from another version of qnnscope; remove it to start over"));
    }
    if state.model != model || state.inputs != inputs {
        return Err(broken(path, "it is of another model or other inputs; remove it to begin anew"));
    }
    Ok(state.tensors.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect())
}

fn save(path: &Path, model: &str, inputs: &str, tensors: &[TensorRange]) -> Result<(), AccuracyError> {
    let state = State {
        schema: STATE.to_owned(),
        model: model.to_owned(),
        inputs: inputs.to_owned(),
        tensors: tensors.to_vec(),
    };
    let text = serde_json::to_vec(&state).map_err(|error| broken(path, error))?;
    crate::files::write_whole(path, &text).map_err(|error| broken(path, error))
}

/// Numbers in the state file as their bits, since decimal digits may not round-trip.
mod exact {
    pub mod one {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        #[expect(clippy::ref_option, reason = "serde calls it so")]
        pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
            value.map(f64::to_bits).serialize(serializer)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
            Ok(Option::<u64>::deserialize(deserializer)?.map(f64::from_bits))
        }
    }

    pub mod pairs {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        pub fn serialize<S: Serializer>(pairs: &[(f64, f64)], serializer: S) -> Result<S::Ok, S::Error> {
            let bits: Vec<(u64, u64)> = pairs.iter().map(|(a, b)| (a.to_bits(), b.to_bits())).collect();
            bits.serialize(serializer)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(f64, f64)>, D::Error> {
            let bits = Vec::<(u64, u64)>::deserialize(deserializer)?;
            Ok(bits.into_iter().map(|(a, b)| (f64::from_bits(a), f64::from_bits(b))).collect())
        }
    }
}
