//! A bounded FlatBuffers reader: whatever the bytes contain, it reads nothing outside them. An absent field
//! is `None`.

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Target of the offset at `at`.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    let to = at.checked_add(usize::try_from(u32_at(bytes, at)?).ok()?)?;
    (to < bytes.len()).then_some(to)
}

impl<'a> Table<'a> {
    /// The root table of a buffer.
    pub fn root(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { bytes, at: follow(bytes, 0)? })
    }

    /// Position of a field.
    fn field(&self, slot: usize) -> Option<usize> {
        let offset = i64::from(u32_at(self.bytes, self.at)?.cast_signed());
        let vtable = usize::try_from(i64::try_from(self.at).ok()?.checked_sub(offset)?).ok()?;
        let size = usize::from(u16_at(self.bytes, vtable)?);
        let at = slot.checked_mul(2)?.checked_add(4)?;
        if at + 2 > size {
            return None;
        }
        match u16_at(self.bytes, vtable.checked_add(at)?)? {
            0 => None,
            field => self.at.checked_add(usize::from(field)),
        }
    }

    /// A `u64` field.
    pub fn u64(&self, slot: usize) -> Option<u64> {
        let at = self.field(slot)?;
        Some(u64::from_le_bytes(self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }

    /// A string; invalid UTF-8 is replaced.
    pub fn text(&self, slot: usize) -> Option<String> {
        let at = follow(self.bytes, self.field(slot)?)?;
        let length = usize::try_from(u32_at(self.bytes, at)?).ok()?;
        let from = at.checked_add(4)?;
        Some(String::from_utf8_lossy(self.bytes.get(from..from.checked_add(length)?)?).into_owned())
    }

    /// A nested table.
    pub fn table(&self, slot: usize) -> Option<Self> {
        Some(Self { bytes: self.bytes, at: follow(self.bytes, self.field(slot)?)? })
    }

    /// The tables of a vector; none if the vector is absent or does not fit into the bytes.
    pub fn tables(&self, slot: usize) -> impl Iterator<Item = Self> + use<'a> {
        let bytes = self.bytes;
        let list = self.field(slot).and_then(|at| follow(bytes, at));
        let found = list.and_then(|at| {
            let count = usize::try_from(u32_at(bytes, at)?).ok()?;
            let end = count.checked_mul(4)?.checked_add(at)?.checked_add(4)?;
            (end <= bytes.len()).then_some((at + 4, count))
        });
        let (from, count) = found.unwrap_or((0, 0));
        (0..count).filter_map(move |index| Some(Self { bytes, at: follow(bytes, from + 4 * index)? }))
    }
}
