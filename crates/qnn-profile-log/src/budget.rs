//! A bound on the names kept, so that a hostile log cannot exhaust memory.

use super::error::ProfileLogError;

/// Real logs stay far below: 100,000 names of 100 bytes are less than a third of it.
const LIMIT_BYTES: usize = 64 << 20;
/// Approximate cost of a kept name beyond its bytes.
const PER_NAME: usize = 100;

/// Bytes of names kept.
#[derive(Debug, Clone, Default)]
pub(super) struct NameBudget {
    used: usize,
}

impl NameBudget {
    /// Reserves room for a name of `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> Result<(), ProfileLogError> {
        self.used = self.used.saturating_add(length + PER_NAME);
        if self.used > LIMIT_BYTES {
            return Err(ProfileLogError::TooManyNames { limit_bytes: LIMIT_BYTES });
        }
        Ok(())
    }

    /// Releases a name of `length` bytes.
    pub(super) fn give_back(&mut self, length: usize) {
        self.used = self.used.saturating_sub(length + PER_NAME);
    }
}
