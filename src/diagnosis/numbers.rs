//! Error codes in a line of text.

use crate::backends::errors;
use std::sync::LazyLock;

/// How far before a number a word must stand that makes it a code.
const REACH: usize = 44;
/// Words that make the number after them a code.
const WORDS: [&[u8]; 10] =
    [b"err", b"fail", b"status", b"code", b"exits ", b"unable", b"return", b"rc", b"ret", b"result"];
/// What follows a number that is a quantity and no code.
const UNITS: [&[u8]; 12] =
    [b"ms", b"us", b"ns", b"kb", b"mb", b"gb", b"bytes", b"sec", b"nodes", b"ops", b"times", b"iterations"];

/// True if the line names `code` as an error: as a number after a word such as "error", or by symbol.
pub fn names(line: &[u8], code: u64) -> bool {
    numbers(line).any(|(start, end, value)| value == code && is_error(line, start, end)) || has_symbol(line, code)
}

/// Numbers that could be QNN codes, with their place: decimal ones of 4 or 5 digits, hexadecimal ones with `0x`.
fn numbers(line: &[u8]) -> impl Iterator<Item = (usize, usize, u64)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < line.len() {
            let start = at;
            if !line[at].is_ascii_digit() {
                at += 1;
                continue;
            }
            let hex = line[at] == b'0' && line.get(at + 1).is_some_and(|c| c | 0x20 == b'x');
            at += if hex { 2 } else { 0 };
            let digits = at;
            while line.get(at).is_some_and(|c| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() }) {
                at += 1;
            }
            let text = std::str::from_utf8(&line[digits..at]).unwrap_or_default();
            let value = u64::from_str_radix(text, if hex { 16 } else { 10 });
            if let Ok(value @ 1000..=0xffff) = value
                && stands_alone(line, start, at)
            {
                return Some((start, at, value));
            }
        }
        None
    })
}

fn stands_alone(line: &[u8], start: usize, end: usize) -> bool {
    let part_of_word = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_' || *c == b'.' || *c == b'/' || *c == b'-';
    let before = start.checked_sub(1).and_then(|at| line.get(at));
    if before.is_some_and(part_of_word) {
        return false;
    }
    // `qnn_model.cc:1002` is a place in a source file, `12:31:1002` a time.
    if before == Some(&b':') {
        let word: Vec<u8> = line[..start - 1].iter().rev().take_while(|c| part_of_word(c)).copied().collect();
        if word.contains(&b'.') || word.first().is_some_and(u8::is_ascii_digit) {
            return false;
        }
    }
    match line.get(end) {
        Some(b'.') => !line.get(end + 1).is_some_and(u8::is_ascii_digit),
        Some(c) => !(c.is_ascii_alphanumeric() || *c == b'_'),
        None => true,
    }
}

fn is_error(line: &[u8], start: usize, end: usize) -> bool {
    let rest: Vec<u8> = line[end..].iter().take(12).map(u8::to_ascii_lowercase).collect();
    let rest = rest.trim_ascii_start();
    if UNITS.iter().any(|unit| rest.starts_with(unit) && !rest.get(unit.len()).is_some_and(u8::is_ascii_alphabetic)) {
        return false;
    }
    let window: Vec<u8> = line[start.saturating_sub(REACH)..start].iter().map(u8::to_ascii_lowercase).collect();
    WORDS.iter().any(|word| memchr::memmem::find(&window, word).is_some())
}

/// Symbols by code, so that a line with `QNN_GRAPH_ERROR_INVALID_HANDLE` counts as one with 6001.
static SYMBOLS: LazyLock<Vec<(u64, &'static str)>> = LazyLock::new(|| {
    let named = errors::all().filter(|row| row.symbol.contains("_ERROR_") && row.code >= 1000);
    named.map(|row| (row.code, row.symbol)).collect()
});

/// The symbols of a code.
pub fn symbols(code: u64) -> impl Iterator<Item = &'static str> {
    SYMBOLS.iter().filter(move |row| row.0 == code).map(|row| row.1)
}

fn has_symbol(line: &[u8], code: u64) -> bool {
    let is_word = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_';
    symbols(code).any(|symbol| {
        memchr::memmem::find_iter(line, symbol).any(|at| !line.get(at + symbol.len()).is_some_and(is_word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_from_other_numbers() {
        for (line, code) in [
            ("Failed to finalize graph (id: 1) with err 1002", 1002),
            ("QnnGraph_finalize done. status 0x3ea", 1002),
            ("memRegister ERROR(8002)", 8002),
            ("device_handle for Backend ID 6, error=1008", 1008),
            ("Failed to validate op x with error 0xc26", 3110),
            ("exits device initialization with  14001", 14001),
            ("Unable to load Remote symbols 4000", 4000),
            ("op validator (quantized and FP16) failed 3110 and 3110.", 3110),
            ("got QNN_GRAPH_ERROR_INVALID_HANDLE from it", 6001),
        ] {
            assert!(names(line.as_bytes(), code), "{line}");
        }
        for (line, code) in [
            ("qnn_model.cc:1002 FinalizeGraphs] error", 1002),
            ("error after 1002 ms", 1002),
            ("08-04 13:56:51.508 1002 1002 E QnnDsp", 1002),
            ("error 10020", 1002),
            ("error 1002.5", 1002),
            ("error id11002", 1002),
            ("tensor of 1002 elements", 1002),
            ("err 12:31:1002", 1002),
            ("QNN_GRAPH_ERROR_INVALID_HANDLE_X", 6001),
        ] {
            assert!(!names(line.as_bytes(), code), "{line}");
        }
    }
}
