//! Text for a device's shell: quoting, and the marker that proves that a command completed.

/// `text` as one word for a POSIX shell, whatever it contains (except NUL, which ends file names everywhere).
pub fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@%^".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A marker that no output contains by chance. A dropped link can look like success (adb may report exit status 0), so
/// only output that ends with the marker is complete.
#[derive(Debug, Clone)]
pub struct EndMarker(String);

impl Default for EndMarker {
    fn default() -> Self {
        Self::new()
    }
}

impl EndMarker {
    /// A new marker.
    pub fn new() -> Self {
        use std::hash::{BuildHasher, RandomState};
        // The standard library's per-map random state: unpredictable enough not to occur in output.
        Self(format!("__qnnscope_end_{:016x}", RandomState::new().hash_one(crate::event::now_us())))
    }

    /// `script`, followed by the marker and the script's exit status on a line of their own. The script runs
    /// in a subshell: an `exit` in it does not skip the marker.
    pub fn wrap(&self, script: &str) -> String {
        // The line ends keep a trailing comment in the script from reaching the bracket.
        format!("(\n{script}\n){}", self.after())
    }

    /// Text after a command that prints its exit status, for scripts of many commands; see [`EndMarker::next`].
    pub fn after(&self) -> String {
        format!("\nprintf '\\n{}:%d\\n' \"$?\"\n", self.0)
    }

    /// The output before the last marker and the exit status; `None` if there is no marker (an interrupted
    /// run).
    pub fn split<'a>(&self, output: &'a [u8]) -> Option<(&'a [u8], i32)> {
        let needle = self.needle();
        let at = output.windows(needle.len()).rposition(|window| window == needle)?;
        let status = self.status(&output[at + 1..])?;
        Some((&output[..at], status))
    }

    /// The output before the first marker, the exit status, and what follows the marker's line.
    pub fn next<'a>(&self, output: &'a [u8]) -> Option<(&'a [u8], i32, &'a [u8])> {
        let needle = self.needle();
        let at = output.windows(needle.len()).position(|window| window == needle)?;
        let line = &output[at + 1..];
        let status = self.status(line)?;
        let end = line.iter().position(|byte| *byte == b'\n')?;
        Some((&output[..at], status, &line[end + 1..]))
    }

    /// Whether an incomplete line that starts like this may become the marker's.
    pub fn may_begin(&self, start: &[u8]) -> bool {
        let name = self.0.as_bytes();
        let shared = start.len().min(name.len());
        start[..shared] == name[..shared]
    }

    fn needle(&self) -> Vec<u8> {
        format!("\n{}:", self.0).into_bytes()
    }

    /// The exit status, if `line` is the marker's.
    pub fn status(&self, line: &[u8]) -> Option<i32> {
        let rest = line.strip_prefix(self.0.as_bytes())?.strip_prefix(b":")?;
        let digits: &[u8] = rest.split(|byte| !byte.is_ascii_digit()).next()?;
        // Without its line end the number may be truncated.
        if rest.len() == digits.len() {
            return None;
        }
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    fn shell(script: &str) -> Vec<u8> {
        Command::new("sh").arg("-c").arg(script).output().unwrap().stdout
    }

    #[test]
    fn every_exit_status_is_told() {
        for (script, output, status) in [
            ("true", "", 0),
            ("printf abc", "abc", 0),
            ("echo abc; exit 7", "abc\n", 7),
            ("kill -9 $$", "", -1),
            ("false # a comment", "", 1),
            ("printf '%s' 'a\nb'", "a\nb", 0),
        ] {
            let marker = EndMarker::new();
            let printed = shell(&marker.wrap(script));
            match marker.split(&printed) {
                Some((text, told)) => assert_eq!((text, told), (output.as_bytes(), status), "{script}"),
                None => assert_eq!(status, -1, "{script} was interrupted"),
            }
        }
    }

    #[test]
    fn a_cut_marker_is_no_marker() {
        let marker = EndMarker::new();
        let whole = shell(&marker.wrap("echo abc; exit 12"));
        assert_eq!(marker.split(&whole).unwrap().1, 12);
        for cut in 0..whole.len() {
            assert!(marker.split(&whole[..cut]).is_none(), "cut at {cut}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn quoted_text_reaches_the_command_as_it_is(text in "[^\u{0}]{0,40}") {
            prop_assert_eq!(shell(&format!("printf %s {}", quote(&text))), text.as_bytes());
        }
    }
}
