//! The start of a file, which identifies its kind.

use crate::files::read_at_most;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Bytes examined to identify a kind.
const HEAD_BYTES: u64 = 64 << 10;
/// Largest file that is read whole, in bytes. Profile logs can be larger and are streamed.
const MAX_BYTES: u64 = 256 << 20;

/// A file and its first bytes.
#[derive(Debug)]
pub struct Sample {
    path: PathBuf,
    name: PathBuf,
    head: Vec<u8>,
    keys: Vec<String>,
}

impl Sample {
    /// Reads the start of a file, which the user knows by `name`.
    pub fn read(path: &Path, name: &Path) -> io::Result<Self> {
        let mut head = Vec::new();
        File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
        let keys = keys(&head);
        Ok(Self { path: path.to_owned(), name: name.to_owned(), head, keys })
    }

    /// Its path as given by the user.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The path to read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its first bytes.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Its first bytes as text.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.head)
    }

    /// True if its first bytes start a JSON object with all of these keys at the top level, or an array of
    /// such objects.
    pub fn has_keys(&self, wanted: &[&str]) -> bool {
        wanted.iter().all(|wanted| self.keys.iter().any(|key| key == wanted))
    }

    /// True if it starts with a JSON array.
    pub fn is_json_array(&self) -> bool {
        self.head.trim_ascii_start().first() == Some(&b'[')
    }

    /// The whole file.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        read_at_most(&self.path, MAX_BYTES)
    }

    /// Modification time, microseconds since 1970: the only date for files that do not contain one.
    pub fn written_us(&self) -> u64 {
        let time = std::fs::metadata(&self.path).and_then(|metadata| metadata.modified()).ok();
        let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0))
    }
}

/// Top-level keys of a JSON object, or of the objects in an array, as far as the bytes go. Not a parser: for
/// anything but JSON it may return any keys.
fn keys(bytes: &[u8]) -> Vec<String> {
    const MOST: usize = 64;
    let bytes = bytes.trim_ascii_start();
    let top = match bytes.first() {
        Some(b'{') => 1,
        Some(b'[') => 2,
        _ => return Vec::new(),
    };
    let (mut found, mut depth, mut at) = (Vec::new(), 0usize, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at;
                while let Some(&byte) = bytes.get(at) {
                    match byte {
                        b'"' => break,
                        b'\\' => at += 2,
                        _ => at += 1,
                    }
                }
                let end = at.min(bytes.len());
                at += 1;
                let rest = bytes.get(at..).unwrap_or_default().trim_ascii_start();
                if depth == top && rest.first() == Some(&b':') && found.len() < MOST {
                    found.push(String::from_utf8_lossy(&bytes[start..end]).into_owned());
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::keys;

    #[test]
    fn keys_at_the_top_are_found_and_others_are_not() {
        assert_eq!(keys(br#" {"a": {"b": 1}, "c\"d" : ["e", {"f": 2}], "g": "h:"}"#), ["a", r#"c\"d"#, "g"]);
        assert_eq!(keys(br#"[{"cat": "x", "args": {"y": 1}}, {"ph": "X"}"#), ["cat", "args", "ph"]);
        assert_eq!(keys(br#"{"cut": "of"#), ["cut"]);
        assert_eq!(keys(b"{\"cut\\"), [""; 0]);
        assert_eq!(keys(b"hello"), [""; 0]);
    }
}
