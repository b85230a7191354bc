//! Limits the memory used for a file, whatever it claims to contain.

use std::cell::Cell;

/// Allowance for small files, in bytes: many entries may share names, which makes the model larger than its
/// file.
const BASE_BYTES: u64 = 16 << 20;
/// Bytes in memory per byte of the file: an entry of a few bytes becomes a record of a few hundred.
const PER_FILE_BYTE: u64 = 16;
/// Absolute limit, in bytes. Real models with 100,000 nodes stay below a tenth of it.
const MOST_BYTES: u64 = 1 << 30;

/// Remaining memory for one file.
#[derive(Debug)]
pub struct Budget {
    total: u64,
    left: Cell<u64>,
}

impl Budget {
    /// The budget for a file of this length.
    pub fn for_file(len: u64) -> Self {
        let total = len.saturating_mul(PER_FILE_BYTE).saturating_add(BASE_BYTES).min(MOST_BYTES);
        Self { total, left: Cell::new(total) }
    }

    /// Reserves `bytes`; the error is the limit if they exceed it.
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
