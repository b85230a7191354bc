//! Words and regular expressions over log lines.

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder};
use std::sync::OnceLock;

/// Compiles an expression that ignores case, matches bytes (logs are not always UTF-8) and stays below 4 MiB.
pub(super) fn regex(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).case_insensitive(true).unicode(false).size_limit(4 << 20).build()
}

/// Finds any of these words, whatever their case; `None` if they are too many.
pub(super) fn words(words: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Option<AhoCorasick> {
    AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
}

/// An expression that is compiled when the first line asks for it: most logs need few of the catalogue's.
#[derive(Debug)]
pub(super) struct Deferred {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Deferred {
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: OnceLock::new() }
    }

    /// False also if the expression is invalid; those of the user's file are checked when it is read.
    pub fn is_match(&self, line: &[u8]) -> bool {
        self.compiled.get_or_init(|| regex(&self.text).ok()).as_ref().is_some_and(|re| re.is_match(line))
    }
}
