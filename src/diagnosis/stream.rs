//! Bytes of a log as they come: UTF-16 made UTF-8, terminal escapes taken out. Neither depends on how the log is cut.

/// State of the filter.
#[derive(Debug, Default)]
pub struct Filter {
    encoding: Option<Encoding>,
    /// The first bytes, until they tell the encoding; then half a UTF-16 unit.
    pending: Vec<u8>,
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

/// Where in a terminal escape the stream is.
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

impl Filter {
    /// For text that was made lines already.
    pub fn lines() -> Self {
        Self { encoding: Some(Encoding::Bytes), ..Self::default() }
    }

    /// Hands the filtered bytes on; `data` itself where nothing is to be done.
    pub fn pass(&mut self, data: &[u8], mut next: impl FnMut(&[u8])) {
        if self.encoding.is_none() {
            self.pending.extend(&data[..data.len().min(2)]);
            if self.pending.len() < 2 && data.len() < 2 {
                return;
            }
            let taken = data.len().min(2);
            let start = std::mem::take(&mut self.pending);
            let encoding = match start.get(..2) {
                Some([0xff, 0xfe]) => Encoding::Utf16Le,
                Some([0xfe, 0xff]) => Encoding::Utf16Be,
                _ => Encoding::Bytes,
            };
            self.encoding = Some(encoding);
            if encoding == Encoding::Bytes {
                self.plain(&start, &mut next);
            } else {
                self.wide(&start[2..], encoding, &mut next);
            }
            self.pass(&data[taken..], next);
            return;
        }
        match self.encoding {
            Some(encoding @ (Encoding::Utf16Le | Encoding::Utf16Be)) => self.wide(data, encoding, &mut next),
            _ => self.plain(data, &mut next),
        }
    }

    /// What is left at the end: a log of one byte.
    pub fn finish(&mut self, mut next: impl FnMut(&[u8])) {
        if self.encoding.is_none() {
            let rest = std::mem::take(&mut self.pending);
            self.plain(&rest, &mut next);
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
                // A lone first half before it is dropped.
                self.high = Some(unit);
                continue;
            }
            text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        }
        self.plain(text.as_bytes(), next);
    }

    fn plain(&mut self, data: &[u8], next: &mut impl FnMut(&[u8])) {
        if self.escape == Escape::None && memchr::memchr(ESC, data).is_none() {
            if !data.is_empty() {
                next(data);
            }
            return;
        }
        let mut kept = Vec::with_capacity(data.len());
        for &byte in data {
            self.escape = match (self.escape, byte) {
                // No escape goes over the end of a line, so that a broken one cannot swallow the log.
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
        if !kept.is_empty() {
            next(&kept);
        }
    }
}
