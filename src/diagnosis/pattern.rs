//! Regular expressions over log lines.

use regex::bytes::{Regex, RegexBuilder};

/// Compiles an expression that ignores case, matches bytes (logs are not always UTF-8) and stays below 4 MiB.
pub(super) fn regex(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).case_insensitive(true).unicode(false).size_limit(4 << 20).build()
}
