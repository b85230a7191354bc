//! Why a layer diverges, as far as the figures show, and what to do about it.

use super::metrics::TensorSums;
use super::own::Constant;
use super::pairing::Pairing;
use super::values::{EncodedRange, stored_bits};
use super::verdict::{CLIPPED_SHARE, Layer, USED_SHARE, inherited_db};
use crate::models::{Graph, Quantization, Tensor};
use crate::text::three_digits;
use serde::{Deserialize, Serialize};

/// What is suspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Values lie outside the encoding's range.
    RangeTooSmall,
    /// The encoding's range far exceeds the values, which leaves few levels.
    RangeTooLarge,
    /// The encoding would fit with the sign of its offset, or of its ends, flipped.
    OffsetSign,
    /// The encoding fits, but its steps are too coarse for the op.
    BitsTooFew,
    /// One channel needs a different encoding than the rest.
    ChannelRange,
    /// The op computes something else.
    Semantics,
    /// Nothing of the above.
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
    /// What is suspected.
    pub cause: Cause,
    /// Why, in a sentence.
    pub because: String,
    /// What to do.
    pub remedy: String,
    /// The tensor whose encoding is at fault: the layer's own or a constant of its op.
    pub tensor: String,
    /// Signal to noise of the layer's worst source tensor, dB.
    pub inherited_db: f64,
}

/// Constants below this are at fault themselves, dB: 8 bits give about 40.
const CONSTANT_DB: f64 = 22.0;
/// If this few channels have most of the error, they are the cause.
const FEW_CHANNELS: f64 = 0.125;
/// Most of the error.
const MOST_OF_ERROR: f64 = 0.9;
/// Noise from the steps alone that is this close to the limit explains it, dB.
const NEAR_DB: f64 = 6.0;
/// A loss of this much in the graph but not alone, dB, is not due to rounding.
const LOST_IN_GRAPH_DB: f64 = 12.0;
/// Values this far beyond a range, as a share of it, still fit.
const HELD_BEYOND: f64 = 0.05;
/// The same of a range that was turned round.
const TURNED_BEYOND: f64 = 0.15;
/// Largest number of a half float.
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

/// The axis along which a constant's values go together: that of its encoding, else the last one of what is not a vector.
pub fn slice_axis(tensor: &Tensor) -> Option<usize> {
    match &tensor.quantization {
        Some(Quantization::AxisScaleOffset { axis, .. }) => {
            let rank = i32::try_from(tensor.shape.len()).ok()?;
            usize::try_from(if *axis < 0 { axis + rank } else { *axis }).ok().filter(|axis| *axis < tensor.shape.len())
        }
        _ if tensor.shape.len() >= 2 => Some(tensor.shape.len() - 1),
        _ => None,
    }
}

/// The fault of the layer at `at`.
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
    // A bias follows from the weights' encoding; weights are the better answer where both are bad.
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

fn percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// `0.00316`: as many digits as an encoding needs.
fn figure(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a number is small")]
    let digits =
        if value == 0.0 || !value.is_finite() { 0 } else { (3 - value.abs().log10().floor() as i32).clamp(0, 9) };
    let text = format!("{value:.*}", usize::try_from(digits).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn span(min: f64, max: f64) -> String {
    format!("{}..{}", figure(min), figure(max))
}

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

/// The fault of an encoding on its own.
fn encoding(
    sums: &TensorSums,
    range: EncodedRange,
    clipped: Option<f64>,
    used: Option<f64>,
    name: &str,
) -> Option<Said> {
    let whole = &sums.whole;
    let (seen, held) = (span(whole.min, whole.max), span(range.min, range.max));
    let needed = span(whole.min.min(0.0), whole.max.max(0.0));
    if let Some(clipped) = clipped.filter(|share| *share > CLIPPED_SHARE) {
        let said =
            format!("{} of the values are clipped: `{name}` has {seen}, its encoding holds {held}", percent(clipped));
        if let Some(turned) = turned(whole.min, whole.max, range) {
            let because = format!("{said}; with the opposite sign it would hold {}", span(turned.0, turned.1));
            let remedy = format!(
                "flip the sign of the offset of `{name}`: QNN counts (stored + offset) x scale, so an unsigned tensor's offset is \
                 minus the zero point; it needs {needed}"
            );
            return Some((Cause::OffsetSign, because, remedy));
        }
        let hit: Vec<usize> = (0..sums.channels.len()).filter(|&at| sums.channels[at].clipped > 0).collect();
        if is_few(hit.len(), sums.channels.len()) {
            let because = format!("{said}; all of them in channel {}", list(&hit));
            return Some((Cause::ChannelRange, because, channel_remedy(name, &needed)));
        }
        let remedy =
            format!("widen the range of `{name}` to {needed}: calibrate with data like this, or override its encoding");
        return Some((Cause::RangeTooSmall, said, remedy));
    }
    if let Some(used) = used.filter(|share| *share < USED_SHARE) {
        let levels = used * (range.high - range.low) as f64;
        let because = format!(
            "only {} of the range is used, about {levels:.0} levels: `{name}` has {seen}, its encoding holds {held}",
            percent(used)
        );
        let remedy = format!(
            "narrow the range of `{name}` to {needed}: look for an outlier in the calibration data, use percentiles, or override its encoding"
        );
        return Some((Cause::RangeTooLarge, because, remedy));
    }
    None
}

/// The range with its offset, or its ends, turned to the other sign, if that would hold the values and the present one does not.
pub fn turned(min: f64, max: f64, range: EncodedRange) -> Option<(f64, f64)> {
    let width = range.max - range.min;
    let real = |stored: i64, offset: f64| (stored as f64 + offset) * range.step;
    let offset = f64::from(range.offset);
    // How far values lie beyond a range. Data is never quite that of the calibration: what was turned need not fit to the last value.
    let beyond = |low: f64, high: f64| (low - min).max(max - high).max(0.0);
    let now = beyond(range.min, range.max);
    let holds = |low: f64, high: f64| beyond(low, high) <= (width * TURNED_BEYOND).min(now / 2.0);
    if now <= width * HELD_BEYOND || max - min < width * USED_SHARE {
        return None;
    }
    let flipped = (real(range.low, -offset), real(range.high, -offset));
    let mirrored = (-range.max, -range.min);
    [flipped, mirrored].into_iter().find(|&(low, high)| holds(low, high))
}

fn is_few(hit: usize, of: usize) -> bool {
    hit > 0 && of >= 4 && hit as f64 <= (of as f64 * FEW_CHANNELS).max(1.0)
}

fn list(channels: &[usize]) -> String {
    channels.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

fn channel_remedy(name: &str, needed: &str) -> String {
    format!(
        "one channel of `{name}` needs a different range from the rest ({needed} overall): equalise the channels (cross-layer equalisation), quantise weights per channel, or give this tensor 16 bits"
    )
}

/// The slices with most of the error, if few.
fn loudest_errors(sums: &TensorSums) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..sums.channels.len()).collect();
    order.sort_by(|&a, &b| sums.channels[b].noise().total_cmp(&sums.channels[a].noise()));
    let mut sum = 0.0;
    let mut hit = Vec::new();
    for at in order {
        hit.push(at);
        sum += sums.channels[at].noise();
        if sum >= sums.whole.noise() * MOST_OF_ERROR {
            break;
        }
    }
    (sums.whole.noise() > 0.0 && is_few(hit.len(), sums.channels.len())).then_some(hit)
}

fn bad_constant(constant: &Constant) -> Said {
    let name = &constant.tensor.name;
    let sqnr = constant.figures.sqnr_db.unwrap_or(f64::NEG_INFINITY);
    let lead = format!("the constant `{name}` of this op has only {} dB of its own", three_digits(sqnr));
    let again = "requantise the weights";
    if let Some(hit) = loudest_errors(&constant.sums) {
        let because = format!("{lead}; most of its error is in slice {}", list(&hit));
        let remedy =
            format!("slice {} of `{name}` has a wrong scale: {again}, per channel, and compare the scales", list(&hit));
        return (Cause::ChannelRange, because, remedy);
    }
    let judged = constant.range.and_then(|range| {
        encoding(&constant.sums, range, constant.figures.clipped_share, constant.figures.used_share, name)
    });
    match judged {
        Some((cause, because, remedy)) => (cause, format!("{lead}: {because}"), remedy),
        None => {
            let bits = stored_bits(&constant.tensor).map_or_else(String::new, |bits| format!("{bits} bits are "));
            let remedy = format!("{bits}too few for `{name}`: quantise it per channel, or with more bits");
            (Cause::BitsTooFew, lead, remedy)
        }
    }
}

/// Channels of very different magnitude, in the tensor or its sources.
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

/// `34.2 dB`, or that there is no error.
pub fn db(value: f64) -> String {
    if value.is_infinite() { "no error".to_owned() } else { format!("{} dB", three_digits(value)) }
}

fn more_bits(name: &str, bits: u32) -> String {
    let more = if bits < 8 { 8 } else { 16 };
    let quoted = if name.contains('`') { name.to_owned() } else { format!("`{name}`") };
    format!("give {quoted} {more} bits instead of {bits} (mixed precision), or keep the op in float")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(scale: f64, offset: i32) -> EncodedRange {
        let real = |stored: i64| (stored as f64 + f64::from(offset)) * scale;
        EncodedRange { min: real(0), max: real(255), step: scale, low: 0, high: 255, offset, bits: 8 }
    }

    #[test]
    fn a_wrong_sign_is_told_from_a_wrong_size() {
        // Values -0.5..1.5; the right encoding is offset -64.
        let right = range(2.0 / 255.0, -64);
        assert_eq!(turned(-0.5, 1.5, right), None);
        let plus = range(2.0 / 255.0, 64);
        let (low, high) = turned(-0.5, 1.5, plus).unwrap();
        assert!((low - right.min).abs() < 1e-9 && (high - right.max).abs() < 1e-9);
        // Ends swapped: -1.5..0.5.
        assert!(turned(-0.5, 1.5, range(2.0 / 255.0, -191)).is_some());
        // The data reaches a little further than that of the calibration did.
        assert!(turned(-0.6, 1.7, plus).is_some());
        // Ten times too small.
        assert_eq!(turned(-0.5, 1.5, range(0.2 / 255.0, -64)), None);
        assert_eq!(turned(0.0, 1.5, range(0.15 / 255.0, 0)), None);
    }

    #[test]
    fn figures_have_the_digits_that_an_encoding_needs() {
        assert_eq!(
            (figure(0.003_163_9), figure(12.5), figure(0.0), figure(1234.567)),
            ("0.003164".into(), "12.5".into(), "0".into(), "1235".into())
        );
    }

    #[test]
    fn few_channels_are_few_of_many() {
        assert!(is_few(1, 16) && is_few(2, 16) && !is_few(3, 16) && !is_few(1, 3) && is_few(1, 4) && !is_few(0, 16));
    }
}
