//! Error codes in a line of text.

use super::pattern;
use crate::backends::errors;
use aho_corasick::AhoCorasick;
use memchr::memmem;
use std::sync::LazyLock;

/// Farthest distance, in bytes, between a number and an earlier word that makes it a code, with other words
/// in between.
const REACH: usize = 44;
/// The same for a number that ends the line, after a colon.
const REACH_OF_LAST: usize = 100;
/// Bytes of a call before its result.
const LONGEST_CALL: usize = 120;
/// Words that make the number right after them a code.
const DIRECT: [&str; 14] = [
    "error",
    "err",
    "errno",
    "code",
    "status",
    "rc",
    "ret",
    "retval",
    "errorcode",
    "errcode",
    "retcode",
    "fehler",
    "fehlercode",
    "erreur",
];
/// The same, but their object may also be a count: "returned 1008 ops".
const COUNTING: [&str; 12] = [
    "return",
    "returns",
    "returned",
    "returning",
    "result",
    "exit",
    "exits",
    "exited",
    "fail",
    "fails",
    "failed",
    "failure",
];
/// Words that may stand between one of those and its number.
const BETWEEN: [&str; 14] =
    ["number", "no", "nr", "value", "val", "with", "was", "is", "of", "the", "a", "an", "qnn", "id"];
/// "Error", "error code", "failure" and "return" in Chinese, Japanese and Korean.
const FOREIGN: [&str; 6] = ["错误", "错误码", "失败", "返回", "エラー", "오류"];
/// Words that make a later number a code even with other words in between.
const DISTANT: [&str; 9] = ["fail", "fails", "failed", "failure", "unable", "error", "err", "exits", "cannot"];
/// Names of numbers that are not codes.
const NO_CODES: [&str; 14] = [
    "pid", "tid", "uid", "gid", "port", "line", "lines", "tokens", "size", "length", "offset", "buffer", "prio",
    "priority",
];
/// What follows a number that is a quantity and not a code.
const UNITS: [&str; 16] = [
    "ms",
    "us",
    "ns",
    "kb",
    "mb",
    "gb",
    "kib",
    "mib",
    "bytes",
    "sec",
    "nodes",
    "ops",
    "times",
    "iterations",
    "tokens",
    "passed",
];
/// Marks of lines that report success.
const INFO: [&[u8]; 9] =
    [b"<i>", b"<v>", b"<d>", b"[info]", b"[verbose]", b"[debug]", b"[ info ]", b"[  info ]", b"[ verbose ]"];
/// Marks of lines that do not.
const NOT_INFO: [&[u8]; 11] = [
    b"<e>",
    b"<w>",
    b"[error]",
    b"[ error ]",
    b"fail",
    b"unable",
    b"could not",
    b"cannot",
    b"exits ",
    b"status 0x",
    b"status: 0x",
];

/// True if the line names `code` as an error, by number or by symbol.
pub fn names(line: &[u8], code: u64) -> bool {
    let mut codes = Vec::new();
    named(line, &mut codes);
    codes.contains(&code) || has_symbol(line, code)
}

/// Collects the numbers that a line names as errors: those after a word such as "error".
pub fn named(line: &[u8], codes: &mut Vec<u64>) {
    codes.clear();
    let mut informs = None;
    let errors = numbers(line).filter(|&(start, end, _)| is_error(line, start, end));
    codes.extend(errors.filter(|_| !*informs.get_or_insert_with(|| is_info(line))).map(|(_, _, value)| value));
}

/// True if the line contains a symbol of the code.
pub fn has_symbol(line: &[u8], code: u64) -> bool {
    static MARK: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("_ERROR_"));
    let is_word = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_';
    // All symbols contain it, and few lines do.
    MARK.find(line).is_some()
        && symbols(code)
            .any(|symbol| memmem::find_iter(line, symbol).any(|at| !line.get(at + symbol.len()).is_some_and(is_word)))
}

/// Numbers that could be QNN codes, with their positions: decimal ones of 4 or 5 digits, hexadecimal ones
/// with `0x`.
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
    // `qnn_model.cc:1002` is a source location, `12:31:1002` a time.
    if before == Some(&b':') {
        let word: Vec<u8> = line[..start - 1].iter().rev().take_while(|c| part_of_word(c)).copied().collect();
        if word.contains(&b'.') || word.first().is_some_and(u8::is_ascii_digit) {
            return false;
        }
    }
    // `1007L`, `1007u`: a number in C notation.
    let suffix = line[end..].iter().take_while(|c| matches!(c, b'u' | b'U' | b'l' | b'L')).count();
    let end = if suffix <= 3 { end + suffix } else { end };
    match line.get(end) {
        Some(b'.') => !line.get(end + 1).is_some_and(u8::is_ascii_digit),
        Some(c) => !(c.is_ascii_alphanumeric() || *c == b'_'),
        None => true,
    }
}

/// True if the line calls the number between `start` and `end` an error.
pub(super) fn is_error(line: &[u8], start: usize, end: usize) -> bool {
    let next = word_after(&line[end..]);
    if UNITS.contains(&next.as_str()) {
        return false;
    }
    // "1002 detections" is a count. Verbs such as "means" end the same way, and then a code precedes them.
    let counts = next.len() > 3 && next.ends_with('s') && !next.ends_with("ss");
    match word_before(&line[..start]) {
        Some(word) if DIRECT.contains(&word.as_str()) => return true,
        Some(word) if COUNTING.contains(&word.as_str()) => return !counts,
        _ => {}
    }
    if is_result(&line[..start], &line[start..end]) {
        return true;
    }
    // From a distance, only a number at the end of a clause is a code.
    let ends = line[end..].trim_ascii_start().first().is_none_or(|c| !c.is_ascii_alphanumeric());
    let window = &line[start.saturating_sub(REACH)..start];
    !window.is_ascii()
        && FOREIGN.iter().any(|word| {
            memmem::rfind(window, word.as_bytes())
                .is_some_and(|at| !window[at + word.len()..].iter().any(u8::is_ascii_alphanumeric))
        })
        || ends && !counts && is_distant(line, start, end)
}

/// True for what a call of QNN returned: `graphExecute() -> 6001`, `frame 1: graphExecute -> 0x1771`.
fn is_result(before: &[u8], number: &[u8]) -> bool {
    const OBJECTS: [&str; 6] = ["graph", "context", "device", "backend", "mem", "tensor"];
    const VERBS: [&str; 8] = ["create", "execute", "finalize", "retrieve", "register", "free", "addnode", "init"];
    let before = before.trim_ascii_end();
    let Some(call) = before.strip_suffix(b"->").or_else(|| before.strip_suffix(b"=>")) else { return false };
    let call = &call[call.len().saturating_sub(LONGEST_CALL)..];
    let call = String::from_utf8_lossy(call).to_ascii_lowercase();
    let call = call.trim_end();
    let has_arguments = call.ends_with(')');
    let name = call.split('(').next().unwrap_or_default().trim_end();
    let name = name.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let is_call = OBJECTS.iter().any(|object| {
        name.split_once(object)
            .is_some_and(|(_, verb)| VERBS.iter().any(|known| verb.trim_start_matches('_').starts_with(known)))
    });
    // Whoever asks for something optional is told 1000, not supported, and goes on.
    is_call && (has_arguments || number.starts_with(b"0x")) && number != b"0x3e8" && number != b"1000"
}

/// The word that classifies the number after `text`, in lower case: the last one that is not a filler such as
/// "with" or "value".
fn word_before(text: &[u8]) -> Option<String> {
    let mut rest = text;
    for _ in 0..4 {
        let separator = |c: &u8| {
            matches!(
                c,
                b' ' | b'\t'
                    | b':'
                    | b'='
                    | b'('
                    | b'#'
                    | b','
                    | b'\''
                    | b'"'
                    | b'`'
                    | b'_'
                    | b'-'
                    | b'['
                    | b'<'
                    | b'>'
            )
        };
        let kept = rest.iter().rposition(|c| !separator(c)).map_or(0, |at| at + 1);
        rest = &rest[..kept];
        let start = word_start(rest);
        let word = String::from_utf8_lossy(&rest[start..]).to_ascii_lowercase();
        if word.is_empty() || !BETWEEN.contains(&word.as_str()) {
            return (!word.is_empty()).then_some(word);
        }
        rest = &rest[..start];
    }
    None
}

/// Position of the last word of `text`; `errorCode` and `QNNError` are two words each.
fn word_start(text: &[u8]) -> usize {
    let run = text.iter().rposition(|c| !c.is_ascii_alphabetic()).map_or(0, |at| at + 1);
    let hump = text[run..].iter().rposition(u8::is_ascii_uppercase).map_or(run, |at| run + at);
    // All capitals: the whole run.
    if hump + 1 == text.len() { run } else { hump }
}

fn word_after(text: &[u8]) -> String {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let word = text.iter().take(16).take_while(|c| c.is_ascii_alphabetic());
    word.map(|c| char::from(c.to_ascii_lowercase())).collect()
}

/// True if a word such as "failed" comes before the number and nothing in between makes it a different kind
/// of number.
fn is_distant(line: &[u8], start: usize, end: usize) -> bool {
    // `Failed to create context 0: 5005`
    let last = line[end..].trim_ascii().is_empty() && line[..start].trim_ascii_end().ends_with(b":");
    let from = start.saturating_sub(if last { REACH_OF_LAST } else { REACH });
    let mut words = Vec::new();
    let mut at = from;
    // Skip a word that the window cuts.
    while from > 0 && at < start && line[at].is_ascii_alphanumeric() {
        at += 1;
    }
    while at < start {
        if !line[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let length = line[at..start].iter().take_while(|c| c.is_ascii_alphanumeric()).count();
        words.push((at, at + length));
        at += length;
    }
    let lower = |word: &(usize, usize)| String::from_utf8_lossy(&line[word.0..word.1]).to_ascii_lowercase();
    // `[ERROR]` is the level of the line.
    let is_level = |word: &(usize, usize)| line[word.0..word.1].iter().all(u8::is_ascii_uppercase);
    let Some(place) = words.iter().rposition(|word| !is_level(word) && DISTANT.contains(&lower(word).as_str())) else {
        return false;
    };
    let between = &words[place + 1..];
    let is_number = |word: &(usize, usize)| line[word.0].is_ascii_digit();
    !between.iter().any(|word| is_number(word) && !last || NO_CODES.contains(&lower(word).as_str()))
        && !line[words[place].1..start].contains(&b'=')
}

/// True for an informational line, whatever its words.
fn is_info(line: &[u8]) -> bool {
    static WORDS: LazyLock<[Option<AhoCorasick>; 2]> =
        LazyLock::new(|| [pattern::words(INFO), pattern::words(NOT_INFO)]);
    let [informs, fails] = WORDS.each_ref().map(|words| words.as_ref().is_some_and(|words| words.is_match(line)));
    informs && !fails
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_from_other_numbers() {
        for (line, code) in [
            ("Failed to finalize graph (id: 1) with err 1002", 1002),
            ("QnnGraph_finalize done. status 0x3ea", 1002),
            ("<I> QnnGraph_finalize done. status 0x3ea", 1002),
            ("memRegister ERROR(8002)", 8002),
            ("device_handle for Backend ID 6, error=1008", 1008),
            ("Failed to validate op x with error 0xc26", 3110),
            ("exits device initialization with  14001", 14001),
            ("Unable to load Remote symbols 4000", 4000),
            ("op validator (quantized and FP16) failed 3110 and 3110.", 3110),
            ("got QNN_GRAPH_ERROR_INVALID_HANDLE from it", 6001),
            ("Failed to create QNN device: 14001", 14001),
            ("failed to create context 0: 5005", 5005),
            ("createFromBinary failed, error handle 0x00000000000003ea", 1002),
            ("QnnErrorCode=1002", 1002),
            ("retCode: 1002", 1002),
            ("execute failed: 1007L", 1007),
            ("QNN Fehler 1007", 1007),
            ("QNN 错误码：1007", 1007),
            ("error 1002 means memory", 1002),
            ("[INFO] compile failed with 3110", 3110),
            ("frame 1: graphExecute -> 0x1771 (6001) out 1.0", 6001),
            ("contextCreateFromBinary(net.bin) -> 5005", 5005),
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
            ("[Qnn ExecuTorch]: planned buffer 1100", 1100),
            ("qnn search window 6001", 6001),
            ("qnn source 8002", 8002),
            ("qnn interpreter 13003", 13003),
            ("status=ok tokens=6001", 6001),
            ("rc=0 latency=1100", 1100),
            ("errors=0 avg=1002", 1002),
            ("unable to start uid=1002 pid=3110", 3110),
            ("unable to set scheduler for tid 14001", 14001),
            ("returned 1008 ops", 1008),
            ("returns 1002 detections", 1002),
            ("[ERROR] [Qnn]: planned 1100", 1100),
            ("qnn_open failed, 0x80000406, prio 6001", 6001),
            ("[INFO] error codes: 1002, 1008", 1002),
            ("<V> property not supported (status 1000)", 1000),
        ] {
            assert!(!names(line.as_bytes(), code), "{line}");
        }
    }
}
