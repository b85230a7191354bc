//! Numbers in what was read.

use crate::event::Gap;

/// Separates the lines of a table: a control character that the shell can put into one line of output.
pub const LINE: u8 = 0x1e;

/// The numbers among the words of `text`; other words are passed over.
pub fn numbers(text: &[u8]) -> impl Iterator<Item = f64> + '_ {
    text.split(|byte| byte.is_ascii_whitespace() || *byte == LINE).filter_map(number)
}

/// One word as a number.
pub fn number(word: &[u8]) -> Option<f64> {
    // Longer words are not numbers; neither are `inf` and `nan`.
    if word.is_empty() || word.len() > 32 || !word.iter().any(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The first word of `text` as a number.
pub fn first_number(text: &[u8]) -> Result<f64, Gap> {
    let mut words = text.split(|byte| byte.is_ascii_whitespace() || *byte == LINE).filter(|word| !word.is_empty());
    let word = words.next().ok_or(Gap::Unreadable)?;
    number(word.trim_ascii_end()).ok_or(Gap::NotANumber)
}
