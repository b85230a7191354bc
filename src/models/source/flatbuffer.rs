//! FlatBuffers in a file: tables whose fields are looked up in place. The reader of the imports works on
//! bytes in memory; models are too large for that, and damage in them is reported instead of ignored.

use super::{SourceError, SourceFile, Span};

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    /// The file.
    pub file: &'a SourceFile,
    at: u64,
    /// Its list of field offsets.
    fields: u64,
    fields_len: u16,
}

/// A vector of tables or numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct List {
    from: u64,
    /// Number of entries.
    pub len: u64,
}

fn u16_at(file: &SourceFile, at: u64) -> Result<u16, SourceError> {
    let mut bytes = [0; 2];
    file.read(at, &mut bytes)?;
    Ok(u16::from_le_bytes(bytes))
}

fn u32_at(file: &SourceFile, at: u64) -> Result<u32, SourceError> {
    let mut bytes = [0; 4];
    file.read(at, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn u64_at(file: &SourceFile, at: u64) -> Result<u64, SourceError> {
    let mut bytes = [0; 8];
    file.read(at, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Target of the offset at `at`.
fn follow(file: &SourceFile, at: u64) -> Result<u64, SourceError> {
    let to = at.saturating_add(u64::from(u32_at(file, at)?));
    if to < file.size() {
        Ok(to)
    } else {
        Err(file.damaged(at, format!("an offset points to byte {to}, past the end")))
    }
}

impl<'a> Table<'a> {
    /// The root table of a file whose FlatBuffer starts at `start`.
    pub fn root(file: &'a SourceFile, start: u64) -> Result<Self, SourceError> {
        Self::at(file, follow(file, start)?)
    }

    fn at(file: &'a SourceFile, at: u64) -> Result<Self, SourceError> {
        let offset = i64::from(u32_at(file, at)?.cast_signed());
        let fields = i64::try_from(at).ok().and_then(|at| u64::try_from(at.checked_sub(offset)?).ok());
        let fields = fields.ok_or_else(|| file.damaged(at, "a table has its fields before the beginning"))?;
        let fields_len = u16_at(file, fields)?;
        Ok(Self { file, at, fields, fields_len })
    }

    /// Position of a field; `None` if the table lacks it.
    fn field(&self, slot: u16) -> Result<Option<u64>, SourceError> {
        let entry = u64::from(slot) * 2 + 4;
        if entry + 2 > u64::from(self.fields_len) {
            return Ok(None);
        }
        match u16_at(self.file, self.fields + entry)? {
            0 => Ok(None),
            offset => Ok(Some(self.at + u64::from(offset))),
        }
    }

    /// A `u8` field; `otherwise` if absent.
    pub fn u8(&self, slot: u16, otherwise: u8) -> Result<u8, SourceError> {
        self.field(slot)?.map_or(Ok(otherwise), |at| self.file.byte(at))
    }

    /// A `u32` field; 0 if absent.
    pub fn u32(&self, slot: u16) -> Result<u32, SourceError> {
        self.field(slot)?.map_or(Ok(0), |at| u32_at(self.file, at))
    }

    /// An `i32` field; 0 if absent.
    pub fn i32(&self, slot: u16) -> Result<i32, SourceError> {
        Ok(self.u32(slot)?.cast_signed())
    }

    /// A `u64` field; 0 if absent.
    pub fn u64(&self, slot: u16) -> Result<u64, SourceError> {
        self.field(slot)?.map_or(Ok(0), |at| u64_at(self.file, at))
    }

    /// A nested table.
    pub fn table(&self, slot: u16) -> Result<Option<Self>, SourceError> {
        self.field(slot)?.map(|at| Self::at(self.file, follow(self.file, at)?)).transpose()
    }

    /// A vector whose entries take `size` bytes each; empty if absent.
    fn list_of(&self, slot: u16, size: u64) -> Result<List, SourceError> {
        let Some(at) = self.field(slot)? else { return Ok(List::default()) };
        let at = follow(self.file, at)?;
        let len = u64::from(u32_at(self.file, at)?);
        let from = at + 4;
        if from.saturating_add(len * size) > self.file.size() {
            return Err(self.file.damaged(at, format!("a list of {len} entries goes beyond the end")));
        }
        Ok(List { from, len })
    }

    /// A vector of tables.
    pub fn tables(&self, slot: u16) -> Result<List, SourceError> {
        self.list_of(slot, 4)
    }

    /// An entry of a vector of tables.
    pub fn entry(&self, list: List, index: u64) -> Result<Self, SourceError> {
        if index >= list.len {
            return Err(self.file.damaged(list.from, format!("entry {index} of a list of {} is referenced", list.len)));
        }
        Self::at(self.file, follow(self.file, list.from + 4 * index)?)
    }

    /// Range of a byte vector.
    pub fn bytes(&self, slot: u16) -> Result<Option<Span>, SourceError> {
        if self.field(slot)?.is_none() {
            return Ok(None);
        }
        self.list_of(slot, 1).map(|list| Some(Span { at: list.from, len: list.len }))
    }

    /// A string; empty if absent.
    pub fn text(&self, slot: u16) -> Result<String, SourceError> {
        self.bytes(slot)?.map_or_else(|| Ok(String::new()), |span| self.file.text(span))
    }

    /// A vector of 4-byte integers.
    pub fn ints(&self, slot: u16) -> Result<Vec<i32>, SourceError> {
        let list = self.list_of(slot, 4)?;
        self.file.keep(usize::try_from(4 * list.len).unwrap_or(usize::MAX))?;
        (0..list.len).map(|index| Ok(u32_at(self.file, list.from + 4 * index)?.cast_signed())).collect()
    }

    /// Range of a vector of numbers of `size` bytes each.
    pub fn numbers(&self, slot: u16, size: u64) -> Result<Span, SourceError> {
        self.list_of(slot, size).map(|list| Span { at: list.from, len: list.len })
    }
}

/// The 4-byte float at a position in the file.
pub fn f32_in(file: &SourceFile, at: u64) -> Result<f32, SourceError> {
    u32_at(file, at).map(f32::from_bits)
}

/// The 8-byte integer at a position in the file.
pub fn i64_in(file: &SourceFile, at: u64) -> Result<i64, SourceError> {
    u64_at(file, at).map(u64::cast_signed)
}
