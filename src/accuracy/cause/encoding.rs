//! What is wrong with the encoding of a tensor or a constant.

use super::words::{channel_remedy, list, percent, span};
use super::{Cause, Said};
use crate::accuracy::fit::{CLIPPED_SHARE, USED_SHARE, turned};
use crate::accuracy::layer::Constant;
use crate::accuracy::metrics::TensorSums;
use crate::accuracy::values::{EncodedRange, stored_bits};
use crate::text::three_digits;

/// If at most this share of the channels causes most of the error, those channels are the problem.
const FEW_CHANNELS: f64 = 0.125;
/// Share of the error that counts as most of it.
const MOST_OF_ERROR: f64 = 0.9;

/// What is wrong with an encoding by itself.
pub fn encoding(
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

pub fn is_few(hit: usize, of: usize) -> bool {
    hit > 0 && of >= 4 && hit as f64 <= (of as f64 * FEW_CHANNELS).max(1.0)
}

/// The slices that hold most of the error, if they are few.
pub fn loudest_errors(sums: &TensorSums) -> Option<Vec<usize>> {
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

pub fn bad_constant(constant: &Constant) -> Said {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_channels_are_few_of_many() {
        assert!(is_few(1, 16) && is_few(2, 16) && !is_few(3, 16) && !is_few(1, 3) && is_few(1, 4) && !is_few(0, 16));
    }
}
