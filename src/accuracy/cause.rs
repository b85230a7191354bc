//! Why a layer diverges, as far as the figures show, and what to do about it.

mod encoding;
mod words;

pub use words::db;

use self::encoding::{bad_constant, encoding, is_few, loudest_errors};
use self::words::{channel_remedy, figure, list, more_bits, percent, span};
use super::layer::{Constant, Layer};
use super::pairs::Pairing;
use super::values::stored_bits;
use super::verdict::inherited_db;
use crate::models::{Graph, Tensor};
use crate::text::three_digits;
use serde::{Deserialize, Serialize};

/// The suspected cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Values lie outside the encoding's range.
    RangeTooSmall,
    /// The encoding's range far exceeds the values, which leaves few levels.
    RangeTooLarge,
    /// The encoding would fit if the sign of its offset, or of its ends, were flipped.
    OffsetSign,
    /// The encoding fits, but its steps are too coarse for the op.
    BitsTooFew,
    /// One channel needs a different encoding than the rest.
    ChannelRange,
    /// The op computes something else.
    Semantics,
    /// None of the above.
    Unknown,
}

impl Cause {
    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::RangeTooSmall => "range-too-small",
            Self::RangeTooLarge => "range-too-large",
            Self::OffsetSign => "offset-sign",
            Self::BitsTooFew => "bits-too-few",
            Self::ChannelRange => "channel-range",
            Self::Semantics => "semantics",
            Self::Unknown => "unknown",
        }
    }
}

/// The verdict on the first diverging layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Position among the layers.
    pub layer: usize,
    /// The suspected cause.
    pub cause: Cause,
    /// Why, in one sentence.
    pub because: String,
    /// What to do.
    pub remedy: String,
    /// The tensor whose encoding is at fault: the layer's own or a constant of its op.
    pub tensor: String,
    /// Signal-to-noise ratio of the layer's worst source tensor, dB.
    pub inherited_db: f64,
}

/// Constants below this are at fault themselves, dB: 8 bits give about 40.
const CONSTANT_DB: f64 = 22.0;
/// If the noise of the quantisation steps alone is this close to the limit, it explains the divergence, dB.
const NEAR_DB: f64 = 6.0;
/// A loss of this much in the graph, but not of the op alone, is not due to rounding, dB.
const LOST_IN_GRAPH_DB: f64 = 12.0;
/// Largest value of a half-precision float.
const HALF_MAX: f64 = 65_504.0;

/// Op types that move or select values: they cannot amplify noise.
const MOVERS: [&str; 20] = [
    "Quantize",
    "Dequantize",
    "Convert",
    "Cast",
    "Resize",
    "ResizeBilinear",
    "ResizeNearestNeighbor",
    "PoolMax2d",
    "PoolAvg2d",
    "Transpose",
    "Reshape",
    "StridedSlice",
    "Split",
    "Concat",
    "Pad",
    "Gather",
    "DepthToSpace",
    "SpaceToDepth",
    "Tile",
    "GridSample",
];

/// What is wrong with the layer at `at`.
pub fn judge(
    layers: &[Layer],
    at: usize,
    pairing: &Pairing,
    test: &Graph,
    constants: &[Constant],
    min_sqnr_db: f64,
) -> Judged {
    let layer = &layers[at];
    let pair = &pairing.pairs[layer.pair];
    let inherited_db = inherited_db(layers, at, pairing);
    let judged = |cause, because: String, remedy: String, tensor: &str| Judged {
        layer: at,
        cause,
        because,
        remedy,
        tensor: tensor.to_owned(),
        inherited_db,
    };
    let name = pair.name();
    if let Some((cause, because, remedy)) = not_finite(layer, name).or_else(|| counted(layer, name)) {
        return judged(cause, because, remedy, name);
    }
    if let Some((cause, because, remedy)) = layer
        .range
        .and_then(|range| encoding(&layer.sums, range, layer.figures.clipped_share, layer.figures.used_share, name))
    {
        return judged(cause, because, remedy, name);
    }
    let worst = constants.iter().filter(|constant| constant.figures.sqnr_db.is_some_and(|sqnr| sqnr < CONSTANT_DB));
    // A bias follows from the weights' encoding; if both are bad, the weights are the better answer.
    if let Some(constant) = worst.max_by_key(|constant| constant.tensor.elements()) {
        let (cause, because, remedy) = bad_constant(constant);
        return judged(cause, because, remedy, &constant.tensor.name);
    }
    if let Some((cause, because, remedy)) = uneven(layers, layer, pairing, min_sqnr_db) {
        return judged(cause, because, remedy, name);
    }
    let (cause, because, remedy) = other(layers, layer, pairing, test, inherited_db, min_sqnr_db);
    judged(cause, because, remedy, name)
}

type Said = (Cause, String, String);

fn not_finite(layer: &Layer, name: &str) -> Option<Said> {
    let whole = &layer.sums.whole;
    if whole.broken == 0 {
        return None;
    }
    let because = format!("{} values of `{name}` are NaN or infinite where the reference has numbers", whole.broken);
    Some(if whole.max.abs().max(whole.min.abs()) > HALF_MAX / 2.0 {
        let remedy = format!(
            "values near {} are too large for float16: scale them down before this op, or compute it in float32 or on 16-bit integers",
            figure(whole.max.abs().max(whole.min.abs()))
        );
        (Cause::RangeTooSmall, because, remedy)
    } else {
        (
            Cause::Semantics,
            because,
            "run this op alone on both backends, and look at divisions by zero and logarithms".to_owned(),
        )
    })
}

fn counted(layer: &Layer, name: &str) -> Option<Said> {
    layer.is_counted().then(|| {
        let share = layer.figures.differing_share.unwrap_or(0.0);
        let because = format!("{} of the integers or booleans in `{name}` differ", percent(share));
        (
            Cause::Unknown,
            because,
            "look at the tensors this op decides on: small differences there flip decisions".to_owned(),
        )
    })
}

/// Channels of very different magnitude, in the tensor or in what it is computed from.
fn uneven(layers: &[Layer], layer: &Layer, pairing: &Pairing, min_sqnr_db: f64) -> Option<Said> {
    let pair = &pairing.pairs[layer.pair];
    let bad = layer.bad_channels(min_sqnr_db);
    layer.range?;
    if let Some(hit) =
        loudest_errors(&layer.sums).or_else(|| is_few(bad.len(), layer.sums.channels.len()).then_some(bad))
    {
        let because = format!("most of the error of `{}` is in channel {}", pair.name(), list(&hit));
        let needed = span(layer.sums.whole.min.min(0.0), layer.sums.whole.max.max(0.0));
        return Some((Cause::ChannelRange, because, channel_remedy(pair.name(), &needed)));
    }
    let sources = layers.iter().filter(|other| pair.sources.contains(&other.pair));
    for other in std::iter::once(layer).chain(sources).filter(|other| other.range.is_some()) {
        if let Some((largest, middle)) = other.loud_channel() {
            let name = pairing.pairs[other.pair].name();
            let because = format!(
                "the channels of `{name}` differ in magnitude: the largest has {}, the median one {}; a single scale leaves the smaller ones few levels",
                figure(largest),
                figure(middle)
            );
            return Some((Cause::ChannelRange, because, channel_remedy(name, &span(-largest, largest))));
        }
    }
    None
}

fn other(
    layers: &[Layer],
    layer: &Layer,
    pairing: &Pairing,
    test: &Graph,
    inherited_db: f64,
    min_sqnr_db: f64,
) -> Said {
    let pair = &pairing.pairs[layer.pair];
    let name = pair.name();
    let whole = &layer.sums.whole;
    if let Some(range) = layer.range {
        let steps = range.step * range.step / 12.0 * whole.count as f64;
        let best = 10.0 * (whole.signal() / steps).log10();
        if best < min_sqnr_db + NEAR_DB {
            let because = format!(
                "{} bits over {} give steps of {}: rounding alone already limits it to {} dB",
                range.bits,
                span(range.min, range.max),
                figure(range.step),
                three_digits(best)
            );
            return (Cause::BitsTooFew, because, more_bits(name, range.bits));
        }
    }
    let op = pair.test.op.and_then(|op| test.ops.get(op));
    let fixed = |tensor: &Tensor| tensor.dtype.is_fixed_point().then(|| stored_bits(tensor)).flatten();
    let input_bits = op.and_then(|op| op.inputs.iter().filter_map(fixed).min());
    let bits = layer.range.map(|range| range.bits).into_iter().chain(input_bits).min();
    let own_is_bad = layer.own_sqnr_db.map_or(inherited_db >= min_sqnr_db, |own| own < min_sqnr_db + NEAR_DB + 4.0);
    let moves = MOVERS.contains(&layer.op_type.as_str());
    let alone = match layer.own_sqnr_db {
        Some(own) if own.is_finite() => format!("alone, on the reference's values, it has {} dB", three_digits(own)),
        Some(_) => "alone, on the reference's values, it is exact".to_owned(),
        None => format!("its inputs have {}", db(inherited_db)),
    };
    let is_fine_alone = layer.own_sqnr_db.is_some_and(|own| own >= min_sqnr_db) && inherited_db >= min_sqnr_db;
    let worth = layer.figures.sqnr_db.unwrap_or(f64::INFINITY);
    match bits {
        _ if is_fine_alone && worth + LOST_IN_GRAPH_DB < inherited_db && worth < min_sqnr_db => {
            let because = format!(
                "op and encodings are right, {alone}; but within the graph it has {}: the backend's compiler changes it and its neighbours",
                db(worth)
            );
            let remedy =
                "try another optimisation level or runtime, other types for its tensors, or an op in between; and \
                          report it with this graph to the backend's vendor"
                    .to_owned();
            (Cause::Semantics, because, remedy)
        }
        Some(bits) if own_is_bad && !moves && bits <= 8 => {
            let because = format!(
                "the encoding of `{name}` fits, but the op amplifies the rounding of its {bits}-bit inputs; {alone}"
            );
            let inputs: Vec<String> = layers
                .iter()
                .filter(|other| pair.sources.contains(&other.pair))
                .map(|other| format!("`{}`", pairing.pairs[other.pair].name()))
                .collect();
            let which = if inputs.is_empty() { format!("`{name}`") } else { inputs.join(" and ") };
            (Cause::BitsTooFew, because, more_bits(&which, bits))
        }
        _ if own_is_bad => {
            let because = format!("{} computes something different from the reference's op; {alone}", layer.op_type);
            let remedy = format!(
                "compare the parameters of op `{}` on both sides (rounding, padding, coordinate mode, epsilon), and the versions of the runtimes",
                layer.op
            );
            (Cause::Semantics, because, remedy)
        }
        Some(bits) if bits <= 8 => {
            let because =
                format!("its encoding fits, but it loses more to {bits} bits than the layers around it; {alone}");
            (Cause::BitsTooFew, because, more_bits(name, bits))
        }
        _ => {
            let because = format!("no encoding explains it; {alone}");
            (Cause::Unknown, because, "compare more inputs (-n), and the two backends on the same model".to_owned())
        }
    }
}
