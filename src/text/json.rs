//! JSON that no terminal takes for commands: unsafe characters are escaped in what we write, and replaced in
//! what comes from someone else's file.

use crate::event::{clean_whole, disturbs};
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter};
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes strings without control characters (including the C1 ones, which terminals obey too) and
/// bidirectional controls: they become escapes such as `\u009b`, so a reader gets the original back. The rest
/// is up to the inner formatter.
#[derive(Debug)]
pub struct Printable<F>(pub F);

impl Default for Printable<CompactFormatter> {
    /// A formatter for a single line.
    fn default() -> Self {
        Self(CompactFormatter)
    }
}

impl<F: Formatter> Formatter for Printable<F> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut written = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| disturbs(*c)) {
            writer.write_all(&fragment.as_bytes()[written..at])?;
            write!(writer, "\\u{:04x}", u32::from(c))?;
            written = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[written..])
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_key(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

/// A value from an untrusted file, with sanitised strings. Anything but JSON stays as it is.
pub fn clean_json(bytes: &[u8]) -> Cow<'_, [u8]> {
    // Plain ASCII without escapes, like nearly all of a session, contains nothing to sanitise.
    if bytes.is_ascii() && memchr::memchr2(b'\\', 0x7f, bytes).is_none() {
        return Cow::Borrowed(bytes);
    }
    let cleaned = serde_json::from_slice(bytes).and_then(|mut value: Value| {
        clean(&mut value);
        serde_json::to_vec(&value)
    });
    cleaned.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

fn clean(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(disturbs) => *text = clean_whole(text),
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => {
            if fields.keys().any(|key| key.contains(disturbs)) {
                *fields = std::mem::take(fields).into_iter().map(|(key, value)| (clean_whole(&key), value)).collect();
            }
            fields.values_mut().for_each(clean);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use serde_json::json;
    use serde_json::ser::PrettyFormatter;

    #[test]
    fn what_is_written_is_printable_and_comes_back() {
        let value = json!({"a\u{9b}": ["\u{1b}[31m", "\u{9b}31m", "\u{202e}x\u{2066}", "\u{7f}\u{61c}", "é中 ok"]});
        let mut text = Vec::new();
        let mut out = serde_json::Serializer::with_formatter(&mut text, Printable(PrettyFormatter::new()));
        value.serialize(&mut out).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.chars().any(|c| c != '\n' && disturbs(c)), "{text:?}");
        assert!(text.contains("\\u009b31m") && text.contains("é中 ok"));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(
            text,
            serde_json::to_string_pretty(&json!({"a\u{9b}": value["a\u{9b}"]}))
                .unwrap()
                .replace('\u{9b}', "\\u009b")
                .replace('\u{202e}', "\\u202e")
                .replace('\u{2066}', "\\u2066")
                .replace('\u{7f}', "\\u007f")
                .replace('\u{61c}', "\\u061c")
        );
    }

    #[test]
    fn what_is_read_is_clean() {
        let read = |bytes: &[u8]| serde_json::from_slice::<Value>(&clean_json(bytes)).unwrap();
        let escaped = br#"{"a\u009b": ["\u001b[31m", "\u202ex", {"b": "\u0085"}], "c": "\u00e9", "d": 0.1}"#;
        let clean = json!({"a\u{fffd}": ["\u{fffd}[31m", "\u{fffd}x", {"b": "\u{fffd}"}], "c": "é", "d": 0.1});
        assert_eq!(read(escaped), clean);
        assert_eq!(read("{\"a\": \"\u{9b}31m\"}".as_bytes()), json!({"a": "\u{fffd}31m"}));
        assert!(matches!(clean_json(b"{\"a\": 1}"), Cow::Borrowed(b"{\"a\": 1}")));
        assert_eq!(*clean_json(b"{\\"), *b"{\\");
    }
}
