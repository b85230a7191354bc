//! Words of failure that the line itself negates: `error 0`, `0 failed`, `no errors`.

use super::pattern::regex;
use regex::bytes::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Captures the negated word, in one of its groups.
static DENIALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    regex(concat!(
        r"(?:\b|_)(errors?|err|errno|fail|failed|fails|failures?|errorcode)",
        r"(?:[ _]?(?:code|count|status|number|no|num))?(?:\s*[:=]\s*|\s+)",
        // Matches neither `0.5.1` nor "none of the files".
        r#"(?:(?:0x0+|0|success|ok|no error)(?:$|[\s,;:)\]}'"|/]|\.(?:\s|$))|none\s*(?:$|[,;.)]))"#,
        r"|(?:^|[^\w.])(?:0|no|zero|without(?: any)?)\s+(errors?|failures?|failed|failing|unsupported|mismatch(?:es)?|timeouts?|crash(?:es)?)\b",
        r"|\b(unsupported|missing|mismatch(?:es)?|mismatched|refused|rejected|timeouts?|crashes|invalid)(?: (?:ops|nodes|tensors))?\s*[:=]\s*0(?:$|[\s,;)])",
    ))
    .ok()
});

/// A line with its negated words blanked out.
#[derive(Debug)]
pub struct Denied<'l>(Cow<'l, [u8]>);

impl<'l> Denied<'l> {
    /// Blanks the negated words of `line`.
    pub fn of(line: &'l [u8]) -> Self {
        let mut kept = Cow::Borrowed(line);
        for found in DENIALS.iter().flat_map(|denials| denials.captures_iter(line)) {
            if let Some(word) = found.get(1).or_else(|| found.get(2)).or_else(|| found.get(3)) {
                kept.to_mut()[word.range()].fill(b' ');
            }
        }
        Self(kept)
    }

    /// The line.
    pub fn line(&self) -> &[u8] {
        &self.0
    }

    /// True if a word was blanked.
    pub fn is_changed(&self) -> bool {
        matches!(self.0, Cow::Owned(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_zero_takes_back_is_no_failure() {
        for (line, kept) in [
            ("memRegister done, error 0", "memRegister done,       0"),
            ("error code: 0", "      code: 0"),
            ("error_code 0x0", "     _code 0x0"),
            ("0 failed, 12 passed", "0       , 12 passed"),
            ("num_errors=0", "num_      =0"),
            ("no errors", "no       "),
            ("unsupported: 0", "           : 0"),
        ] {
            assert_eq!(String::from_utf8_lossy(Denied::of(line.as_bytes()).line()), kept);
        }
        for line in ["error 0x2", "failed 3110", "error 0.5.1", "10 failed", "errors: 12", "error: none of the files"] {
            assert!(!Denied::of(line.as_bytes()).is_changed(), "{line}");
        }
    }
}
