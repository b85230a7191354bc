//! What can be wrong with a profiling log.

use std::io;
use thiserror::Error;

/// Why a log cannot be read, or only partly.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ProfileLogError {
    #[error("this is not a QNN profiling log: {reason}")]
    NotALog { reason: String },
    #[error("chunk {chunk} (at byte {offset}) is damaged: {damage}")]
    Damaged { chunk: u64, offset: u64, damage: Damage },
    #[error("the log has more names than any real one: over {limit_bytes} bytes of distinct graphs and events")]
    TooManyNames { limit_bytes: usize },
    #[error("the log changed while it was being read")]
    Changed,
    #[error("cannot read the log: {0}")]
    Read(#[source] io::Error),
    #[error("cannot write: {0}")]
    Write(#[source] io::Error),
    #[error("cannot use a temporary file: {0}")]
    Temporary(#[source] io::Error),
}

/// What is wrong inside a chunk. Positions are bytes from the start of its FlatBuffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Damage {
    #[error("{length} bytes are too few for a chunk")]
    TooShort { length: u64 },
    #[error("it declares {length} bytes, more than any real chunk")]
    TooLong { length: u64 },
    #[error("the {what} at byte {at} extends beyond the chunk")]
    OutOfBounds { what: &'static str, at: usize },
    #[error("the layout of the {what} at byte {at} is impossible")]
    BadLayout { what: &'static str, at: usize },
    #[error("its events nest deeper than {limit} levels")]
    TooDeep { limit: usize },
    #[error("it uses the same bytes as many events at once")]
    TooManyEvents,
    #[error("it uses the same bytes as many names at once")]
    TooMuchText,
}
