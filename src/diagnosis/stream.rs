//! Filters the bytes of a log: converts UTF-16 to UTF-8 and strips terminal escapes, however the log is
//! split.

/// State of the filter.
#[derive(Debug, Default, Clone)]
pub struct Filter {
    encoding: Option<Encoding>,
    /// The first bytes, until the encoding is known; after that, half a UTF-16 unit.
    pending: Vec<u8>,
    /// A carriage return is held back until the next byte shows whether it ends a line by itself.
    carriage: bool,
    /// The last byte was part of a multibyte character.
    in_character: bool,
    /// First half of a surrogate pair.
    high: Option<u16>,
    escape: Escape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Bytes,
    Utf16Le,
    Utf16Be,
}

/// The position within a terminal escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Begun,
    /// In `ESC [ ...`, up to a letter.
    Control,
    /// In `ESC ] ...`, up to BEL or ESC \.
    Title,
}

const ESC: u8 = 0x1b;
/// ESC [ as one byte, in 8-bit text.
const CSI: u8 = 0x9b;
/// Bytes from which the encoding is detected.
const HEAD: usize = 4;

impl Filter {
    /// A filter for text that has already been split into lines.
    pub fn lines() -> Self {
        Self { encoding: Some(Encoding::Bytes), ..Self::default() }
    }

    /// Passes on the filtered bytes; `data` itself if there is nothing to filter.
    pub fn pass(&mut self, data: &[u8], mut next: impl FnMut(&[u8])) {
        if self.encoding.is_none() {
            let taken = data.len().min(HEAD - self.pending.len());
            self.pending.extend(&data[..taken]);
            if self.pending.len() < HEAD {
                return;
            }
            self.begin(&mut next);
            self.pass(&data[taken..], next);
            return;
        }
        match self.encoding {
            Some(encoding @ (Encoding::Utf16Le | Encoding::Utf16Be)) => self.wide(data, encoding, &mut next),
            _ => self.plain(data, &mut next),
        }
    }

    /// Passes on what is left at the end: a log of a few bytes, a carriage return.
    pub fn finish(&mut self, mut next: impl FnMut(&[u8])) {
        if self.encoding.is_none() {
            self.begin(&mut next);
        }
        if std::mem::take(&mut self.carriage) {
            next(b"\n");
        }
    }

    /// Detects the encoding from the first bytes and passes them on. Without a byte order mark, every other
    /// byte of UTF-16 is zero.
    fn begin(&mut self, next: &mut impl FnMut(&[u8])) {
        let start = std::mem::take(&mut self.pending);
        let (encoding, mark) = match start[..] {
            [0xff, 0xfe, ..] => (Encoding::Utf16Le, 2),
            [0xfe, 0xff, ..] => (Encoding::Utf16Be, 2),
            [a, 0, b, 0] if a != 0 && b != 0 => (Encoding::Utf16Le, 0),
            [0, a, 0, b] if a != 0 && b != 0 => (Encoding::Utf16Be, 0),
            _ => (Encoding::Bytes, 0),
        };
        self.encoding = Some(encoding);
        if encoding == Encoding::Bytes {
            self.plain(&start, next);
        } else {
            self.wide(&start[mark..], encoding, next);
        }
    }

    fn wide(&mut self, data: &[u8], encoding: Encoding, next: &mut impl FnMut(&[u8])) {
        let mut text = String::with_capacity(data.len() / 2);
        for &byte in data {
            let Some(first) = self.pending.pop() else {
                self.pending.push(byte);
                continue;
            };
            let unit = match encoding {
                Encoding::Utf16Be => u16::from_be_bytes([first, byte]),
                _ => u16::from_le_bytes([first, byte]),
            };
            let units = self.high.take().into_iter().chain([unit]);
            if (0xd800..0xdc00).contains(&unit) {
                // This drops a lone first half that precedes it.
                self.high = Some(unit);
                continue;
            }
            text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        }
        self.plain(text.as_bytes(), next);
    }

    fn plain(&mut self, data: &[u8], next: &mut impl FnMut(&[u8])) {
        let Some(&last) = data.last() else { return };
        if self.escape == Escape::None && memchr::memchr2(ESC, CSI, data).is_none() {
            self.in_character = last >= 0x80;
            self.lines_of(data, next);
            return;
        }
        let mut kept = Vec::with_capacity(data.len());
        let mut at = 0;
        while at < data.len() {
            // Coloured logs are text between short escapes: the text goes through in one piece.
            if self.escape == Escape::None {
                let text = memchr::memchr2(ESC, CSI, &data[at..]).unwrap_or(data.len() - at);
                if text > 0 {
                    kept.extend(&data[at..at + text]);
                    at += text;
                    self.in_character = data[at - 1] >= 0x80;
                    continue;
                }
            }
            let byte = data[at];
            at += 1;
            let in_character = std::mem::replace(&mut self.in_character, byte >= 0x80);
            self.escape = match (self.escape, byte) {
                (Escape::None, CSI) if !in_character => Escape::Control,
                // No escape continues past the end of a line, so that a broken one cannot swallow the log.
                (_, b'\n') => {
                    kept.push(byte);
                    Escape::None
                }
                (Escape::None | Escape::Begun | Escape::Control, ESC) => Escape::Begun,
                (Escape::None, _) => {
                    kept.push(byte);
                    Escape::None
                }
                (Escape::Begun, b'[') => Escape::Control,
                (Escape::Begun, b']') => Escape::Title,
                (Escape::Begun, _) | (Escape::Control, 0x40..=0x7e) | (Escape::Title, 0x07) => Escape::None,
                (Escape::Title, ESC) => Escape::Begun,
                (state, _) => state,
            };
        }
        self.lines_of(&kept, next);
    }

    /// Passes on text in which a lone carriage return ends a line.
    fn lines_of(&mut self, mut data: &[u8], next: &mut impl FnMut(&[u8])) {
        let Some(first) = data.first() else { return };
        if std::mem::take(&mut self.carriage) {
            next(if *first == b'\n' { b"\r" } else { b"\n" });
        }
        if let Some(rest) = data.strip_suffix(b"\r") {
            self.carriage = true;
            data = rest;
        }
        let lone = |at: &usize| data.get(at + 1) != Some(&b'\n');
        if !memchr::memchr_iter(b'\r', data).any(|at| lone(&at)) {
            if !data.is_empty() {
                next(data);
            }
            return;
        }
        let mut kept = data.to_vec();
        memchr::memchr_iter(b'\r', data).filter(lone).for_each(|at| kept[at] = b'\n');
        next(&kept);
    }
}
