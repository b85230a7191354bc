//! The two sides of a comparison.

/// One of the two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The side taken as correct.
    Reference,
    /// The side under test.
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
