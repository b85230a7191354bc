//! The two sides of a comparison.

/// Which of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one that is right.
    Reference,
    /// The other one.
    Test,
}

impl Role {
    /// Its name in files and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Test => "test",
        }
    }
}
