//! What a check comes to.

use crate::event::{CheckOutcome, clean_text};

/// Outcome and what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckVerdict {
    /// What it says about the cause.
    pub outcome: CheckOutcome,
    /// One sentence, free of control characters.
    pub detail: String,
}

impl CheckVerdict {
    /// It is so.
    pub fn confirms(detail: impl AsRef<str>) -> Self {
        Self::new(CheckOutcome::Confirms, detail)
    }

    /// It is not so.
    pub fn refutes(detail: impl AsRef<str>) -> Self {
        Self::new(CheckOutcome::Refutes, detail)
    }

    /// It fits either way.
    pub fn neutral(detail: impl AsRef<str>) -> Self {
        Self::new(CheckOutcome::Neutral, detail)
    }

    /// It could not be told.
    pub fn unknown(detail: impl AsRef<str>) -> Self {
        Self::new(CheckOutcome::Unknown, detail)
    }

    fn new(outcome: CheckOutcome, detail: impl AsRef<str>) -> Self {
        Self { outcome, detail: clean_text(detail.as_ref()) }
    }
}
