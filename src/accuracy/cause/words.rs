//! Figures and remedies in words.

use crate::text::three_digits;

pub fn percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// `0.00316`: all the digits that an encoding needs, and no more.
pub fn figure(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the logarithm of a number is small")]
    let digits =
        if value == 0.0 || !value.is_finite() { 0 } else { (3 - value.abs().log10().floor() as i32).clamp(0, 9) };
    let text = format!("{value:.*}", usize::try_from(digits).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

pub fn span(min: f64, max: f64) -> String {
    format!("{}..{}", figure(min), figure(max))
}

pub fn list(channels: &[usize]) -> String {
    channels.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

pub fn channel_remedy(name: &str, needed: &str) -> String {
    format!(
        "one channel of `{name}` needs a different range from the rest ({needed} overall): equalise the channels (cross-layer equalisation), quantise weights per channel, or give this tensor 16 bits"
    )
}

/// `34.2 dB`, or a note that there is no error.
pub fn db(value: f64) -> String {
    if value.is_infinite() { "no error".to_owned() } else { format!("{} dB", three_digits(value)) }
}

pub fn more_bits(name: &str, bits: u32) -> String {
    let more = if bits < 8 { 8 } else { 16 };
    let quoted = if name.contains('`') { name.to_owned() } else { format!("`{name}`") };
    format!("give {quoted} {more} bits instead of {bits} (mixed precision), or keep the op in float")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_that_an_encoding_needs() {
        assert_eq!(
            (figure(0.003_163_9), figure(12.5), figure(0.0), figure(1234.567)),
            ("0.003164".into(), "12.5".into(), "0".into(), "1235".into())
        );
    }
}
