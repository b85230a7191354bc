//! How much of a file is kept in memory, whatever it claims to hold.

use std::cell::Cell;

/// What small files may take: names may be shared by many entries, which makes the model larger than its file.
const BASE_BYTES: u64 = 16 << 20;
/// Bytes in memory per byte of the file: an entry of a few bytes becomes a record of some hundred.
const PER_FILE_BYTE: u64 = 16;
/// What no model may exceed. Real ones of 100,000 nodes stay below a tenth of it.
const MOST_BYTES: u64 = 1 << 30;

/// What is left of the memory for one file.
#[derive(Debug)]
pub struct Budget {
    total: u64,
    left: Cell<u64>,
}

impl Budget {
    /// For a file of this length.
    pub fn for_file(len: u64) -> Self {
        let total = len.saturating_mul(PER_FILE_BYTE).saturating_add(BASE_BYTES).min(MOST_BYTES);
        Self { total, left: Cell::new(total) }
    }

    /// Takes `bytes`; the limit, if they are not left.
    pub fn take(&self, bytes: u64) -> Result<(), u64> {
        let left = self.left.get().checked_sub(bytes).ok_or(self.total)?;
        self.left.set(left);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_have_room_and_large_ones_an_end() {
        let small = Budget::for_file(10);
        small.take(BASE_BYTES).unwrap();
        small.take(160).unwrap();
        assert_eq!(small.take(1), Err(BASE_BYTES + 160));
        assert_eq!(Budget::for_file(u64::MAX).take(MOST_BYTES + 1), Err(MOST_BYTES));
    }
}
