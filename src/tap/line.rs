//! Lines from the tap, which runs in processes that may write anything.

use crate::text::clean_json;
use qnnscope_core::tap::{TAP_PROTOCOL, TapMessage};
use serde::Deserialize;

/// Longest line read; the tap writes far shorter ones. Longer lines are skipped and counted.
pub const MOST_BYTES: usize = 16 << 20;

/// What a line contains.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A message.
    Message(Box<TapMessage>),
    /// The greeting of a tap that speaks a newer protocol.
    Newer {
        /// Its protocol.
        protocol: u32,
        /// Its version.
        version: String,
    },
    /// A message of unknown kind.
    Unknown,
    /// Not a message: garbage, or part of one.
    Damaged,
}

/// Reads a line. Control characters are removed from texts.
pub fn read(line: &[u8]) -> Line {
    let cleaned = clean_json(line);
    match serde_json::from_slice::<TapMessage>(&cleaned) {
        Ok(TapMessage::Hello(process) | TapMessage::Loaded(process)) if process.protocol > TAP_PROTOCOL => {
            Line::Newer { protocol: process.protocol, version: process.tap_version }
        }
        Ok(message) => Line::Message(Box::new(message)),
        Err(_) => foreign(&cleaned),
    }
}

/// Recognises a newer greeting, which may have another shape, and newer kinds of messages, which have other
/// names.
fn foreign(line: &[u8]) -> Line {
    #[derive(Deserialize)]
    struct Greeting {
        protocol: u32,
        #[serde(default)]
        tap_version: String,
    }
    let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(line) else { return Line::Damaged };
    let mut members = object.into_iter();
    let (Some((kind, payload)), None) = (members.next(), members.next()) else { return Line::Damaged };
    if kind == "hello" || kind == "loaded" {
        return match serde_json::from_value::<Greeting>(payload) {
            Ok(greeting) if greeting.protocol > TAP_PROTOCOL => {
                Line::Newer { protocol: greeting.protocol, version: greeting.tap_version }
            }
            _ => Line::Damaged,
        };
    }
    if KINDS.contains(&&*kind) { Line::Damaged } else { Line::Unknown }
}

/// Names of the messages of this version.
const KINDS: [&str; 19] = [
    "loaded",
    "hello",
    "again",
    "provider",
    "began",
    "ended",
    "composed",
    "graph_ops",
    "bound",
    "refused",
    "executions",
    "detail",
    "voted",
    "memory_shared",
    "log",
    "binary",
    "note",
    "lost",
    "bye",
];

/// Cuts a stream of bytes into lines of at most [`MOST_BYTES`].
#[derive(Debug, Default)]
pub struct Lines {
    held: Vec<u8>,
    skipping: bool,
    /// Lines that were too long.
    too_long: u64,
}

impl Lines {
    /// Processes bytes; `each` gets every complete line without its end.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if std::mem::take(&mut self.skipping) || self.held.len() + line.len() > MOST_BYTES {
                self.too_long += 1;
                self.held.clear();
            } else if self.held.is_empty() {
                each(line);
            } else {
                self.held.extend_from_slice(line);
                each(&self.held);
                self.held.clear();
            }
        }
        if self.skipping {
            return;
        }
        if self.held.len() + bytes.len() > MOST_BYTES {
            self.held = Vec::new();
            self.skipping = true;
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    /// Lines that were too long so far.
    pub fn take_too_long(&mut self) -> u64 {
        std::mem::take(&mut self.too_long)
    }

    /// Drops the incomplete line, if any.
    pub fn take_cut(&mut self) -> bool {
        let was_cut = self.is_cut();
        (self.held, self.skipping) = (Vec::new(), false);
        was_cut
    }

    /// True if the stream ended within a line.
    pub fn is_cut(&self) -> bool {
        self.skipping || !self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Lines) {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(piece, |line| found.push(line.to_vec()));
        }
        (found, lines)
    }

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let (found, lines) = cut(&[b"a\nb", b"b\n\nc", b"c", b"c\nrest"]);
        assert_eq!(found, [&b"a"[..], b"bb", b"", b"ccc"]);
        assert!(lines.is_cut());
        let long = vec![b'x'; MOST_BYTES];
        let (found, mut lines) = cut(&[b"a\n", &long, b"y", b"y\nb\n"]);
        assert_eq!(found, [b"a", b"b"]);
        assert_eq!(lines.take_too_long(), 1);
        assert!(!lines.is_cut());
    }

    #[test]
    fn what_is_no_message_is_told_apart() {
        assert_eq!(read(b"{\"bye\":{\"t_ns\":5}}"), Line::Message(Box::new(TapMessage::Bye { t_ns: 5 })));
        assert_eq!(read(b"{\"seance\":{\"t_ns\":5}}"), Line::Unknown);
        for damaged in [&b""[..], b"{", b"[]", b"{\"log\":{}}", b"{\"bye\":{\"t_ns\":5},\"log\":1}", b"\xff\xfe", b"12"]
        {
            assert_eq!(read(damaged), Line::Damaged, "{}", String::from_utf8_lossy(damaged));
        }
        let newer = br#"{"hello":{"protocol":9,"tap_version":"7\u001b.1","colour":"blue"}}"#;
        let Line::Newer { protocol: 9, version } = read(newer) else { panic!() };
        assert!(version.starts_with('7') && !version.contains('\x1b'));
    }

    #[test]
    fn every_kind_of_message_is_listed() {
        let unknown = serde_json::from_str::<TapMessage>(r#"{"nothing":1}"#).unwrap_err().to_string();
        for kind in KINDS {
            assert!(unknown.contains(&format!("`{kind}`")), "{kind}: {unknown}");
        }
        assert_eq!(unknown.matches('`').count() / 2, KINDS.len() + 1, "{unknown}");
    }
}
