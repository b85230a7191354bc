//! FlatBuffers tables with every access checked. Nothing here can panic: anything outside reads as absent.

/// A table: its position and that of its list of fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) vtable: usize,
    vtable_len: usize,
}

/// A vector of offsets or bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Vector<'a> {
    bytes: &'a [u8],
    /// Position of the first element.
    pub(super) at: usize,
    /// Elements.
    pub(super) len: usize,
}

macro_rules! read {
    ($name:ident, $type:ty) => {
        #[inline]
        pub(super) fn $name(bytes: &[u8], at: usize) -> Option<$type> {
            let word = bytes.get(at..)?.first_chunk()?;
            Some(<$type>::from_le_bytes(*word))
        }
    };
}

read!(u16_at, u16);
read!(u32_at, u32);
read!(i32_at, i32);
read!(u64_at, u64);

/// Follows the offset stored at `at`, which is relative to its own position, forward only.
#[inline]
pub(super) fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    let offset = usize::try_from(u32_at(bytes, at)?).ok()?;
    at.checked_add(offset)
}

impl<'a> Table<'a> {
    /// The table at `at`. Its list of fields may lie before or after it.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Option<Self> {
        let back = isize::try_from(i32_at(bytes, at)?).ok()?;
        let vtable = isize::try_from(at).ok()?.checked_sub(back)?;
        let vtable = usize::try_from(vtable).ok()?;
        let vtable_len = usize::from(u16_at(bytes, vtable)?);
        Some(Self { bytes, at, vtable, vtable_len })
    }

    /// Length of its list of fields, bytes.
    pub(super) fn vtable_len(&self) -> u16 {
        // Two words at least, whatever the list says.
        u16::try_from(self.vtable_len).unwrap_or(u16::MAX).max(4)
    }

    /// Length of the table, bytes.
    pub(super) fn length(&self) -> u16 {
        u16_at(self.bytes, self.vtable + 2).unwrap_or_default()
    }

    /// Position of a field, if the table has it.
    #[inline]
    pub(super) fn field(&self, slot: usize) -> Option<usize> {
        let entry = 4 + 2 * slot;
        if entry + 2 > self.vtable_len {
            return None;
        }
        match u16_at(self.bytes, self.vtable + entry)? {
            0 => None,
            offset => Some(self.at + usize::from(offset)),
        }
    }

    #[inline]
    pub(super) fn u8(&self, slot: usize) -> u8 {
        self.field(slot).and_then(|at| self.bytes.get(at)).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn u32(&self, slot: usize) -> u32 {
        self.field(slot).and_then(|at| u32_at(self.bytes, at)).unwrap_or_default()
    }

    #[inline]
    pub(super) fn u64(&self, slot: usize) -> u64 {
        self.field(slot).and_then(|at| u64_at(self.bytes, at)).unwrap_or_default()
    }

    pub(super) fn f32(&self, slot: usize) -> f32 {
        f32::from_bits(self.u32(slot))
    }

    pub(super) fn f64(&self, slot: usize) -> f64 {
        f64::from_bits(self.u64(slot))
    }

    #[inline]
    pub(super) fn table(&self, slot: usize) -> Option<Self> {
        Self::new(self.bytes, follow(self.bytes, self.field(slot)?)?)
    }

    /// A vector of elements of `size` bytes that lies entirely inside the buffer.
    #[inline]
    pub(super) fn vector(&self, slot: usize, size: usize) -> Option<Vector<'a>> {
        let at = follow(self.bytes, self.field(slot)?)?;
        let len = usize::try_from(u32_at(self.bytes, at)?).ok()?;
        let at = at.checked_add(4)?;
        let end = at.checked_add(len.checked_mul(size)?)?;
        (end <= self.bytes.len()).then_some(Vector { bytes: self.bytes, at, len })
    }

    /// Bytes of a string or a vector of bytes.
    #[inline]
    pub(super) fn bytes(&self, slot: usize) -> Option<&'a [u8]> {
        let vector = self.vector(slot, 1)?;
        self.bytes.get(vector.at..vector.at + vector.len)
    }
}

impl<'a> Vector<'a> {
    /// The table a 4-byte element points at.
    #[inline]
    pub(super) fn table(&self, index: usize) -> Option<Table<'a>> {
        if index >= self.len {
            return None;
        }
        Table::new(self.bytes, follow(self.bytes, self.at + 4 * index)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_read() {
        let bytes = [0xff; 16];
        // Its list of fields would lie at 1, and each field 65,535 bytes further.
        let table = Table::new(&bytes, 0).unwrap();
        assert_eq!((table.u8(0), table.u64(0)), (0, 0));
        assert!(table.table(0).is_none() && table.bytes(0).is_none());
        assert!(Table::new(&bytes, usize::MAX).is_none());
        assert_eq!(u64_at(&bytes, 9), None);
        assert_eq!(u64_at(&bytes, 8), Some(u64::MAX));
        assert_eq!(follow(&bytes, 14), None);
    }

    #[test]
    fn list_of_fields_behind_its_table() {
        // Table at 0 with one u32 of value 7; its list of fields at 8.
        let mut bytes = (-8_i32).to_le_bytes().to_vec();
        bytes.extend(7_u32.to_le_bytes());
        for word in [6_u16, 8, 4] {
            bytes.extend(word.to_le_bytes());
        }
        let table = Table::new(&bytes, 0).unwrap();
        assert_eq!((table.u32(0), table.u32(1)), (7, 0));
    }
}
