//! A bound on the names that are kept, so that a hostile log cannot fill the memory.

use super::error::ProfileLogError;

/// Real logs stay far below: 100,000 names of 100 bytes are a fifth of it.
const LIMIT_BYTES: usize = 64 << 20;
/// What a kept name costs beside its bytes, about.
const PER_NAME: usize = 100;

/// Bytes of names that are kept.
#[derive(Debug, Clone, Default)]
pub(super) struct NameBudget {
    used: usize,
}

impl NameBudget {
    /// Room for a name of `length` bytes.
    pub(super) fn take(&mut self, length: usize) -> Result<(), ProfileLogError> {
        self.used = self.used.saturating_add(length + PER_NAME);
        if self.used > LIMIT_BYTES {
            return Err(ProfileLogError::TooManyNames { limit_bytes: LIMIT_BYTES });
        }
        Ok(())
    }

    /// A name of `length` bytes is kept no longer.
    pub(super) fn give_back(&mut self, length: usize) {
        self.used = self.used.saturating_sub(length + PER_NAME);
    }
}
