//! The words of the end of a log, as far as they say how it failed.

use crate::diagnosis::foreign::is_chatter;
use crate::diagnosis::pattern::{regex, words};
use crate::diagnosis::similar::HOT;
use aho_corasick::AhoCorasick;
use regex::bytes::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Lines at the end that are read.
const LAST: usize = 8;
/// Lines before them with a word of failure that are read as well.
const HOT_LINES: usize = 6;
/// Bytes of a line that are read.
const LINE_BYTES: usize = 300;
/// What stands for a number.
const NUMBER: &str = "9";
/// What stands for the name of a file.
const FILE: &str = "file";
/// Files that programs read or write. Their names are their authors' own.
const EXTENSIONS: [&str; 29] = [
    "onnx", "dlc", "tflite", "pte", "bin", "so", "dll", "json", "yaml", "yml", "toml", "ini", "cfg", "conf", "npy",
    "npz", "raw", "jpg", "jpeg", "png", "bmp", "wav", "csv", "txt", "pt", "pth", "pb", "ort", "gguf",
];

/// A line of source code.
static CODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(r"^\s*(raise|return|if|for|def|class|with|try|import|from|print|let|fn|const)\b.*[:);]$|^\s*[\w.:]+\(\S*\)$|[;{}]\s*$|^\s*(//|#include)|^\s*(fi|esac|then|else|exit \d+)$|^\s*echo [\x22\x27]").ok()
});
static HOT_WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| words(HOT));

/// The lines that are read, of lines that come the last one first; with each its place among them.
pub fn telling<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<(usize, &'a [u8])> {
    let is_hot = |line: &[u8]| HOT_WORDS.as_ref().is_some_and(|words| words.is_match(line));
    let mut said = lines.enumerate().filter(|(_, line)| !is_chatter(line));
    let mut found: Vec<(usize, &[u8])> = said.by_ref().take(LAST).collect();
    found.extend(said.filter(|(_, line)| is_hot(line)).take(HOT_LINES));
    for (_, line) in &mut found {
        *line = &line[..line.len().min(LINE_BYTES)];
    }
    found
}

/// True for a line of source code, with which no log ends.
pub fn is_code(line: &[u8]) -> bool {
    !line.trim_ascii_start().starts_with(b"{") && CODE.as_ref().is_some_and(|code| code.is_match(line))
}

/// Counts of the words of a line, and of pairs of neighbours.
pub fn count(line: &[u8], counts: &mut BTreeMap<String, u32>) {
    let line = String::from_utf8_lossy(line).to_ascii_lowercase();
    let mut words: Vec<&str> = Vec::new();
    for run in runs(&line) {
        // The folders of a path are a machine's own.
        let name = run.rsplit(['/', '\\']).next().unwrap_or(run);
        match name.rsplit_once('.').filter(|(_, end)| EXTENSIONS.contains(end)) {
            Some((stem, end)) => {
                words.extend(stem.contains("qnn").then_some(stem));
                words.push(FILE);
                words.push(&name[name.len() - end.len() - 1..]);
            }
            None => words.extend(pieces(name)),
        }
    }
    for word in &words {
        *counts.entry((*word).to_owned()).or_default() += 1;
    }
    for pair in words.windows(2) {
        *counts.entry(pair.join(" ")).or_default() += 1;
    }
}

/// Runs of characters of words and paths.
fn runs(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || "_./~\\-".contains(c))).filter(|run| !run.is_empty())
}

/// Words, numbers as one word, and what follows a dot.
fn pieces(name: &str) -> impl Iterator<Item = &str> {
    let kind = |byte: u8| match byte {
        b'a'..=b'z' | b'_' => 0,
        b'0'..=b'9' => 1,
        b'.' => 2,
        _ => 3,
    };
    let bytes = name.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let begin = at;
            let of = kind(bytes[at]);
            at += 1;
            while at < bytes.len()
                && (kind(bytes[at]) == of || of == 2 && kind(bytes[at]) == 0)
                && !(of == 2 && bytes[at] == b'.')
            {
                at += 1;
            }
            match of {
                0 => return Some(&name[begin..at]),
                1 => return Some(NUMBER),
                2 if at > begin + 1 => return Some(&name[begin..at]),
                _ => {}
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let mut counts = BTreeMap::new();
        count(line.as_bytes(), &mut counts);
        counts.into_keys().filter(|word| !word.contains(' ')).collect()
    }

    #[test]
    fn names_numbers_and_folders_are_a_machines_own() {
        assert_eq!(
            words("E 12: /home/ann/x/net_v3.onnx: got 32 bytes, libQnnHtp.so wants 768 ('in')"),
            [".onnx", ".so", "9", "bytes", "e", "file", "got", "in", "libqnnhtp", "wants"]
        );
        assert_eq!(words("np.float32 error_code -2"), [".float", "9", "error_code", "np"]);
    }

    #[test]
    fn the_last_lines_and_earlier_failures_are_read() {
        let log = "loading\nerror: a\nok\nStarting stage: x\nok\nok\nok\nok\nok\nok\nend\n";
        let lines: Vec<&[u8]> = log.trim_end().lines().rev().map(str::as_bytes).collect();
        let read = telling(lines.into_iter());
        assert_eq!(read.len(), 9);
        assert_eq!((read[0].1, read[8]), (&b"end"[..], (9, &b"error: a"[..])));
    }
}
