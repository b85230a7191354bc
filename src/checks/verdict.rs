//! The outcome of a check.

use crate::event::{CheckOutcome, clean_text};

/// Outcome and observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckVerdict {
    /// What it says about the cause.
    pub outcome: CheckOutcome,
    /// One sentence, free of control characters.
    pub detail: String,
}

impl CheckVerdict {
    /// The cause applies.
    pub fn confirms(detail: impl AsRef<str>) -> Self {
        Self::new(CheckOutcome::Confirms, detail)
    }

    /// The cause does not apply.
    pub fn refutes(detail: impl AsRef<str>) -> Self {
        Self::new(CheckOutcome::Refutes, detail)
    }

    /// The observation fits either way.
    pub fn neutral(detail: impl AsRef<str>) -> Self {
        Self::new(CheckOutcome::Neutral, detail)
    }

    /// It could not be determined.
    pub fn unknown(detail: impl AsRef<str>) -> Self {
        Self::new(CheckOutcome::Unknown, detail)
    }

    fn new(outcome: CheckOutcome, detail: impl AsRef<str>) -> Self {
        Self { outcome, detail: clean_text(detail.as_ref()) }
    }
}
