//! Fast output of numbers and names, through one buffer that is written in large pieces.

use super::chunk::Value;
use super::error::ProfileLogError;
use qnnscope_core::event::{clean_text, disturbs};
use std::io::Write;

/// Bytes collected before the buffer is written.
const FLUSH_BYTES: usize = 256 << 10;
/// From this size on, text is written without being copied.
const PASSED_BYTES: usize = 32 << 10;

/// A sink with a buffer in front.
pub(super) struct Output<W: Write> {
    pub(super) buffer: Vec<u8>,
    sink: W,
}

impl<W: Write> Output<W> {
    pub(super) fn new(sink: W) -> Self {
        Self { buffer: Vec::with_capacity(FLUSH_BYTES + (FLUSH_BYTES >> 2)), sink }
    }

    /// Writes the buffer out if it is large.
    #[inline]
    pub(super) fn settle(&mut self) -> Result<(), ProfileLogError> {
        if self.buffer.len() < FLUSH_BYTES { Ok(()) } else { self.send() }
    }

    /// Writes the buffer, then text, which is not copied into it if large.
    pub(super) fn pass(&mut self, text: &[u8]) -> Result<(), ProfileLogError> {
        if text.len() < PASSED_BYTES {
            self.buffer.extend_from_slice(text);
            return self.settle();
        }
        self.send()?;
        self.sink.write_all(text).map_err(ProfileLogError::Write)
    }

    fn send(&mut self) -> Result<(), ProfileLogError> {
        self.sink.write_all(&self.buffer).map_err(ProfileLogError::Write)?;
        self.buffer.clear();
        Ok(())
    }

    /// Sends everything.
    pub(super) fn finish(&mut self) -> Result<(), ProfileLogError> {
        self.send()?;
        self.sink.flush().map_err(ProfileLogError::Write)
    }
}

/// A short text of up to 32 bytes. It is copied at full width in one go and then cut, which is faster than copying
/// just so many bytes.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    bytes: [u8; Piece::WIDTH],
    len: usize,
}

impl Piece {
    const WIDTH: usize = 32;

    /// What does not fit is cut.
    pub(super) const fn new(text: &[u8]) -> Self {
        let mut piece = Self { bytes: [0; Self::WIDTH], len: 0 };
        while piece.len < text.len() && piece.len < Self::WIDTH {
            piece.bytes[piece.len] = text[piece.len];
            piece.len += 1;
        }
        piece
    }

    /// The first `len` bytes of a text. Fast if the text is at least as wide as a piece.
    #[inline]
    pub(super) fn first(text: &[u8], len: usize) -> Self {
        match text.first_chunk() {
            Some(bytes) => Self { bytes: *bytes, len: len.min(Self::WIDTH) },
            None => Self::new(text.get(..len).unwrap_or(text)),
        }
    }

    #[inline]
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.len;
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }
}

/// An integer in decimal digits.
#[inline]
pub(super) fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A float with a fixed number of decimals, as C prints it.
pub(super) fn fixed(out: &mut Vec<u8>, value: f64, decimals: usize) {
    // Writing to memory cannot fail.
    let _ = if value.is_nan() { out.write_all(b"nan") } else { write!(out, "{value:.decimals$}") };
}

/// A value as in CSV and text: integers as they are, floats with six decimals. Objects have no text.
#[inline]
pub(super) fn value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Unsigned(value) => integer(out, value),
        Value::Signed(value) => integer(out, value),
        Value::Float(value) => fixed(out, value.into(), 6),
        Value::Double(value) => fixed(out, value, 6),
        Value::Object { .. } => {}
    }
}

/// True if the bytes need no cleaning; one pass without branches.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |plain, byte| plain & (0x20..0x7f).contains(byte))
}

/// A name for CSV and text, without anything that could disturb a terminal or a table.
#[inline]
pub(super) fn name(out: &mut Vec<u8>, bytes: &[u8]) {
    if is_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        out.extend_from_slice(clean_text(&String::from_utf8_lossy(bytes)).as_bytes());
    }
}

/// An event's name; the vendor's viewer writes `null` if there is none.
#[inline]
pub(super) fn identifier(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    name(out, bytes.unwrap_or(b"null"));
}

/// A JSON string. Anything that could disturb a terminal is escaped, invalid UTF-8 is replaced.
pub(super) fn json_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    if is_plain(bytes) && !bytes.contains(&b'"') && !bytes.contains(&b'\\') {
        out.extend_from_slice(bytes);
    } else {
        for c in String::from_utf8_lossy(bytes).chars() {
            match c {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                // All of these lie in the basic plane, so four digits suffice.
                c if disturbs(c) => out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes()),
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }
    out.push(b'"');
}

/// A JSON string, or null.
pub(super) fn json_text(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => json_string(out, bytes),
        None => out.extend_from_slice(b"null"),
    }
}

/// A JSON number; null for anything else.
pub(super) fn json_float(out: &mut Vec<u8>, value: f64) {
    // Writing to memory cannot fail; serde_json writes null for infinities and the like.
    let _ = serde_json::to_writer(out, &value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_strings_are_what_they_were() {
        for text in ["", "plain", "a\"b\\c", "\u{1b}[31m\n\t\0", "é中\u{202e}\u{85}\u{7f}", "\u{1f600}"] {
            let json = written(|out| json_string(out, text.as_bytes()));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
            assert!(!json.chars().any(char::is_control), "{json:?}");
        }
        assert_eq!(written(|out| json_string(out, b"a\xffb")), "\"a\u{fffd}b\"");
    }

    #[test]
    fn names_are_clean() {
        assert_eq!(written(|out| name(out, b"a b~")), "a b~");
        assert_eq!(written(|out| name(out, b"a\x1b[0m\nb")), "a\u{fffd}[0m\u{fffd}b");
        assert_eq!(written(|out| name(out, "é".as_bytes())), "é");
        assert_eq!(written(|out| identifier(out, None)), "null");
    }

    #[test]
    fn pieces_are_cut() {
        let text: Vec<u8> = (b'0'..b'z').collect();
        for (width, len) in [(0, 0), (5, 5), (5, 9), (31, 29), (32, 29), (32, 32), (40, 29), (60, 40)] {
            let piece = Piece::first(&text[..width], len);
            let expected = &text[..len.min(width).min(Piece::WIDTH)];
            assert_eq!(written(|out| piece.put(out)).as_bytes(), expected, "{width} {len}");
        }
    }

    #[test]
    fn numbers_as_c_prints_them() {
        assert_eq!(written(|out| value(out, Value::Signed(i64::MIN))), "-9223372036854775808");
        assert_eq!(written(|out| value(out, Value::Unsigned(u64::MAX))), "18446744073709551615");
        assert_eq!(written(|out| value(out, Value::Float(1.5))), "1.500000");
        assert_eq!(written(|out| value(out, Value::Double(-0.000_000_4))), "-0.000000");
        assert_eq!(written(|out| value(out, Value::Double(f64::INFINITY))), "inf");
        assert_eq!(written(|out| value(out, Value::Double(f64::NAN))), "nan");
        assert_eq!(written(|out| json_float(out, f64::NAN)), "null");
    }
}
