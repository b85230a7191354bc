//! Ranges as a document, as text, and as encodings.

use super::collect::{Ranges, TensorRange};
use super::proposals::{Method, Proposal, propose};
use super::weights::Weights;
use crate::encodings::{Encoding, Encodings, Format, Slice, Use};
use crate::event::clean_text;
use crate::text::{counted, three_digits};
use serde::Serialize;
use std::fmt::Write;

/// Shares that are told as percentiles, with their names.
const PERCENTILES: [(&str, f64); 7] =
    [("0.01", 0.0001), ("0.1", 0.001), ("1", 0.01), ("50", 0.5), ("99", 0.99), ("99.9", 0.999), ("99.99", 0.9999)];
/// Loss from which 16 bits are suggested, dB.
const POOR_DB: f64 = 25.0;
/// Longest tensor name in the table.
const NAME: usize = 34;

/// The document `qnnscope.ranges/1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RangesDocument {
    schema: &'static str,
    model: String,
    sha256: String,
    backend: &'static str,
    simulated: bool,
    inputs: String,
    inferences: usize,
    resumed: usize,
    device: Option<String>,
    tensors: Vec<TensorDocument>,
    weights: Vec<WeightsDocument>,
    unknown_names: Vec<String>,
    refused: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct TensorDocument {
    name: String,
    op: String,
    shape: Vec<u32>,
    values: u64,
    not_finite: u64,
    min: Option<f64>,
    max: Option<f64>,
    percentiles: serde_json::Map<String, serde_json::Value>,
    histogram: Vec<(f64, u64)>,
    channels: Vec<(f64, f64)>,
    proposals: Vec<Proposal>,
    given: Option<GivenDocument>,
}

/// The float weights of an op, with the symmetric encoding that fits them.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct WeightsDocument {
    name: String,
    axis: Option<usize>,
    largest: Vec<f64>,
    bits: u32,
    scales: Vec<f64>,
}

impl WeightsDocument {
    fn new(weights: &Weights, bits: u32) -> Self {
        let scales = weights.encoding(bits).slices.iter().filter_map(|slice| slice.scale).collect();
        Self { name: weights.name.clone(), axis: weights.axis, largest: weights.largest.clone(), bits, scales }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct GivenDocument {
    bits: u32,
    min: f64,
    max: f64,
    scale: f64,
    offset: i32,
    mse: Option<f64>,
    sqnr_db: Option<f64>,
    clipped_share: Option<f64>,
    used_share: Option<f64>,
    sqnr_db_16_bits: Option<f64>,
}

fn ends(tensor: &TensorRange) -> (f64, f64) {
    (tensor.min.unwrap_or(0.0), tensor.max.unwrap_or(0.0))
}

fn given(tensor: &TensorRange) -> Option<GivenDocument> {
    let given = tensor.given.as_ref()?;
    let (range, sums) = (given.range, &given.sums);
    let (min, max) = ends(tensor);
    Some(GivenDocument {
        bits: given.bits,
        min: range.min,
        max: range.max,
        scale: range.step,
        offset: range.offset,
        mse: sums.mse(),
        sqnr_db: sums.sqnr_db().filter(|db| db.is_finite()),
        clipped_share: (sums.count > 0).then(|| sums.clipped as f64 / sums.count as f64),
        used_share: (sums.count > 0).then(|| (max - min) / (range.max - range.min)),
        sqnr_db_16_bits: propose(&tensor.histogram, (min, max), Method::MinMax, 16, 1.0).sqnr_db,
    })
}

impl RangesDocument {
    /// The document, with the proposals of every method at this many bits, and the weights at theirs.
    pub fn new(ranges: &Ranges, bits: u32, percentile: f64, (weights, weight_bits): (&[Weights], u32)) -> Self {
        let tensors = ranges.tensors.iter().map(|tensor| {
            let percentiles = PERCENTILES.iter().map(|&(name, share)| {
                // The ends are exact, and no percentile lies beyond them.
                let value = tensor.histogram.quantile(share).map(|value| value.max(ends(tensor).0).min(ends(tensor).1));
                (name.to_owned(), value.into())
            });
            TensorDocument {
                name: tensor.name.clone(),
                op: tensor.op.clone(),
                shape: tensor.shape.clone(),
                values: tensor.histogram.count(),
                not_finite: tensor.not_finite,
                min: tensor.min,
                max: tensor.max,
                percentiles: percentiles.collect(),
                histogram: tensor.histogram.bins().collect(),
                channels: tensor.channels.clone(),
                proposals: Method::ALL
                    .into_iter()
                    .map(|method| propose(&tensor.histogram, ends(tensor), method, bits, percentile))
                    .collect(),
                given: given(tensor),
            }
        });
        Self {
            schema: "qnnscope.ranges/1",
            model: ranges.model.path.clone(),
            sha256: ranges.model.sha256.clone(),
            backend: ranges.side.backend.name(),
            simulated: ranges.side.is_simulated(),
            inputs: ranges.inputs.clone(),
            inferences: ranges.inferences,
            resumed: ranges.resumed,
            device: ranges.side.device().map(clean_text),
            tensors: tensors.collect(),
            weights: weights.iter().map(|weights| WeightsDocument::new(weights, weight_bits)).collect(),
            unknown_names: ranges.unknown.clone(),
            refused: ranges.refused.clone(),
        }
    }
}

/// The encodings that a method proposes, for tensors that hold numbers, and those of the weights.
pub fn encodings_of(
    ranges: &Ranges,
    method: Method,
    bits: u32,
    percentile: f64,
    (weights, weight_bits): (&[Weights], u32),
) -> Encodings {
    let tensors = ranges.tensors.iter().filter(|tensor| tensor.histogram.count() > 0).map(|tensor| {
        let proposal = propose(&tensor.histogram, ends(tensor), method, bits, percentile);
        Encoding {
            name: tensor.name.clone(),
            used: Use::Activation,
            bits,
            is_float: false,
            symmetric: Some(false),
            slices: vec![Slice {
                scale: Some(proposal.scale),
                offset: Some(proposal.offset as f64),
                min: Some(proposal.min),
                max: Some(proposal.max),
            }],
            per_channel: false,
            axis: None,
        }
    });
    let weights = weights.iter().map(|weights| weights.encoding(weight_bits));
    Encodings { format: Format::Overrides, tensors: tensors.chain(weights).collect(), findings: Vec::new() }
}

/// The ranges for people.
pub fn ranges_text(ranges: &Ranges, method: Method, bits: u32, percentile: f64) -> String {
    let mut out = String::new();
    let simulated = if ranges.side.is_simulated() { " (simulated)" } else { "" };
    let device = ranges.side.device().map_or_else(String::new, |id| format!(" of {}", clean_text(id)));
    let _ = writeln!(out, "{} on {}{device}{simulated}", ranges.model.path, ranges.side.backend);
    let resumed =
        if ranges.resumed > 0 { format!(", {} of them from the state file", ranges.resumed) } else { String::new() };
    let _ = writeln!(out, "{}{resumed}; {}\n", ranges.inputs, counted(ranges.tensors.len() as u64, "tensor"));
    let is_given = ranges.tensors.iter().any(|tensor| tensor.given.is_some());
    if is_given {
        given_table(&mut out, ranges);
    } else {
        table(&mut out, ranges, method, bits, percentile);
    }
    for (what, names) in
        [("no tensor of the model has the name", &ranges.unknown), ("the backend did not let be read", &ranges.refused)]
    {
        if !names.is_empty() {
            let _ = writeln!(out, "note: {what}: {}", names.join(", "));
        }
    }
    let odd: Vec<String> = ranges
        .tensors
        .iter()
        .filter(|tensor| tensor.not_finite > 0)
        .map(|tensor| format!("{} ({})", tensor.name, tensor.not_finite))
        .collect();
    if !odd.is_empty() {
        let _ = writeln!(out, "note: values that are NaN or infinite were left out: {}", odd.join(", "));
    }
    out
}

fn table(out: &mut String, ranges: &Ranges, method: Method, bits: u32, percentile: f64) {
    let _ = writeln!(
        out,
        "{:<NAME$} {:>10} {:>10} {:>10} {:>10}  {bits} bits by {:<10} {:>8} {:>8} {:>9}",
        "tensor",
        "min",
        "0.1 %",
        "99.9 %",
        "max",
        method.name(),
        "clip %",
        "SQNR dB",
        "16 bits"
    );
    for tensor in &ranges.tensors {
        let proposal = propose(&tensor.histogram, ends(tensor), method, bits, percentile);
        let (low, high) = ends(tensor);
        let quantile = |share| tensor.histogram.quantile(share).map(|value: f64| value.max(low).min(high));
        let span = format!("{}..{}", figure(Some(proposal.min)), figure(Some(proposal.max)));
        let poor = proposal.sqnr_db.is_some_and(|db| db < POOR_DB);
        let _ = writeln!(
            out,
            "{:<NAME$} {:>10} {:>10} {:>10} {:>10}  {span:<20} {:>8} {:>8} {:>9}{}",
            tail(&tensor.name),
            figure(tensor.min),
            figure(quantile(0.001)),
            figure(quantile(0.999)),
            figure(tensor.max),
            three_digits(proposal.clipped_share * 100.0),
            decibel(proposal.sqnr_db),
            decibel(proposal.sqnr_db_16_bits),
            if poor { " <" } else { "" }
        );
    }
    let _ = writeln!(out, "< marks tensors for which {bits} bits are few: below {POOR_DB} dB");
}

fn given_table(out: &mut String, ranges: &Ranges) {
    let _ = writeln!(
        out,
        "{:<NAME$} {:>21} {:>21} {:>4} {:>8} {:>8} {:>10} {:>8} {:>8}",
        "tensor", "seen", "given", "bits", "clip %", "used %", "MSE", "SQNR dB", "16 bits"
    );
    for tensor in &ranges.tensors {
        let Some(given) = given(tensor) else { continue };
        let poor = given.sqnr_db.is_some_and(|db| db < POOR_DB);
        let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| three_digits(share * 100.0));
        let _ = writeln!(
            out,
            "{:<NAME$} {:>21} {:>21} {:>4} {:>8} {:>8} {:>10} {:>8} {:>8}{}",
            tail(&tensor.name),
            format!("{}..{}", figure(tensor.min), figure(tensor.max)),
            format!("{}..{}", figure(Some(given.min)), figure(Some(given.max))),
            given.bits,
            share(given.clipped_share),
            share(given.used_share),
            given.mse.map_or_else(|| "-".to_owned(), |mse| format!("{mse:.2e}")),
            decibel(given.sqnr_db),
            decibel(given.sqnr_db_16_bits),
            if poor { " <" } else { "" }
        );
    }
    let without = ranges.tensors.iter().filter(|tensor| tensor.given.is_none()).count();
    let _ = writeln!(
        out,
        "{} without an encoding in the file; < marks those below {POOR_DB} dB",
        counted(without as u64, "tensor")
    );
}

fn figure(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(value) if (0.001..10_000.0).contains(&value.abs()) => {
            let digits = if value.abs() >= 100.0 { 1 } else { 4 };
            format!("{value:.digits$}")
        }
        Some(value) => format!("{value:.2e}"),
    }
}

fn decibel(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

fn tail(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME {
        name.to_owned()
    } else {
        format!("…{}", name.chars().skip(count - NAME + 1).collect::<String>())
    }
}
