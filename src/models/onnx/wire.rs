//! Protobuf's wire format, read from a file field by field: nested messages are ranges of the file, and
//! fields that nobody needs are skipped without being read.

use crate::models::source::{SourceError, SourceFile, Span};

/// Value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// An integer as stored.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// Text, bytes, packed numbers or a message.
    Bytes(Span),
}

impl Field {
    /// The integer; `None` if it is something else.
    pub fn int(self) -> Option<i64> {
        if let Self::Varint(value) = self { Some(value.cast_signed()) } else { None }
    }

    /// The range in the file; `None` if it is something else.
    pub fn span(self) -> Option<Span> {
        if let Self::Bytes(span) = self { Some(span) } else { None }
    }
}

/// A message and the position up to which it has been read.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// The file.
    pub file: &'a SourceFile,
    at: u64,
    end: u64,
}

impl<'a> Message<'a> {
    /// The message in this range of the file.
    pub fn new(file: &'a SourceFile, span: Span) -> Self {
        Self { file, at: span.at, end: span.end() }
    }

    /// The message in a field; an error if the field is something else.
    pub fn of(file: &'a SourceFile, field: Field, at: u64) -> Result<Self, SourceError> {
        field
            .span()
            .map(|span| Self::new(file, span))
            .ok_or_else(|| file.damaged(at, "a message is encoded as a number"))
    }

    /// Position of the next field.
    pub fn at(&self) -> u64 {
        self.at
    }

    fn varint(&mut self) -> Result<u64, SourceError> {
        let from = self.at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            if self.at >= self.end {
                return Err(self.file.damaged(from, "a number extends past the end of its message"));
            }
            let byte = self.file.byte(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.file.damaged(from, "a number has more than 10 bytes"))
    }

    fn skip(&mut self, len: u64) -> Result<Span, SourceError> {
        let span = Span { at: self.at, len };
        match self.at.checked_add(len).filter(|&end| end <= self.end) {
            Some(end) => self.at = end,
            None => {
                let left = self.end - self.at;
                let reason = format!("a field of {len} bytes begins where {left} bytes are left of its message");
                return Err(self.file.damaged(self.at, reason));
            }
        }
        Ok(span)
    }

    /// The next field and its number; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u32, Field)>, SourceError> {
        if self.at >= self.end {
            return Ok(None);
        }
        let from = self.at;
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number > 0);
        let number = number.ok_or_else(|| self.file.damaged(from, "a field has no valid number"))?;
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => {
                let mut bytes = [0; 8];
                let span = self.skip(8)?;
                self.file.read(span.at, &mut bytes)?;
                Field::Fixed64(u64::from_le_bytes(bytes))
            }
            2 => {
                let len = self.varint()?;
                Field::Bytes(self.skip(len)?)
            }
            5 => {
                let mut bytes = [0; 4];
                let span = self.skip(4)?;
                self.file.read(span.at, &mut bytes)?;
                Field::Fixed32(u32::from_le_bytes(bytes))
            }
            other => return Err(self.file.damaged(from, format!("field {number} has wire type {other}"))),
        };
        Ok(Some((number, field)))
    }
}

/// Reads the integers of a repeated field, packed or single. Keeps at most `limit` of them; returns how many
/// there are.
pub fn ints(file: &SourceFile, field: Field, at: u64, limit: usize, kept: &mut Vec<i64>) -> Result<u64, SourceError> {
    match field {
        Field::Varint(value) => {
            if kept.len() < limit {
                kept.push(value.cast_signed());
            }
            Ok(1)
        }
        Field::Bytes(span) => {
            let mut packed = Message::new(file, span);
            let mut count = 0;
            while packed.at < packed.end {
                let value = packed.varint()?;
                if kept.len() < limit {
                    kept.push(value.cast_signed());
                }
                count += 1;
            }
            Ok(count)
        }
        _ => Err(file.damaged(at, "an integer has the wrong wire type")),
    }
}

/// The same for 32-bit floats.
pub fn floats(file: &SourceFile, field: Field, at: u64, limit: usize, kept: &mut Vec<f32>) -> Result<u64, SourceError> {
    match field {
        Field::Fixed32(bits) => {
            if kept.len() < limit {
                kept.push(f32::from_bits(bits));
            }
            Ok(1)
        }
        Field::Bytes(span) if span.len.is_multiple_of(4) => {
            let count = span.len / 4;
            for index in 0..count.min((limit - kept.len().min(limit)) as u64) {
                let mut bytes = [0; 4];
                file.read(span.at + 4 * index, &mut bytes)?;
                kept.push(f32::from_le_bytes(bytes));
            }
            Ok(count)
        }
        _ => Err(file.damaged(at, "a real number has the wrong wire type")),
    }
}
