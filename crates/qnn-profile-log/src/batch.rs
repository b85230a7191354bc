//! Whole chunks of a log in batches, so that several threads can work on one log.

use super::chunk::Chunk;
use super::decoder::{LENGTH_WORD, check_begun, failure, framed, read_some};
use super::error::{Damage, ProfileLogError};
use super::reader::ReadOutcome;
use super::shape::Shapes;
use super::table::u32_at;
use super::verify::visit;
use super::visit::Visit;
use std::io::{self, Read};

/// Bytes read at once. A batch and its rows should fit into a core's cache.
const READ_BYTES: usize = 512 << 10;
/// Above this size, bytes, a batch is read on its own and its buffer is freed afterwards.
const LARGE_BYTES: usize = 16 << 20;

/// Consecutive chunks.
#[derive(Debug, Default)]
pub(super) struct Batch {
    buffer: Vec<u8>,
    /// Used bytes of the buffer. Only the last batch of a log can hold more than whole chunks.
    filled: usize,
    /// Where it begins in the log, bytes.
    offset: u64,
    /// Chunks before it.
    chunks: u64,
}

/// Why processing a batch stopped early.
pub(super) enum Stop {
    /// Nobody needs its results any more.
    Gone,
    /// The chunk is damaged.
    Damaged(Damage),
    /// Any other error.
    Failed(ProfileLogError),
}

impl From<Damage> for Stop {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

impl From<ProfileLogError> for Stop {
    fn from(error: ProfileLogError) -> Self {
        Self::Failed(error)
    }
}

/// The result of checking a batch.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// For this batch alone; `damage` is not set.
    pub(super) outcome: ReadOutcome,
    /// What ended it early, if anything.
    pub(super) error: Option<ProfileLogError>,
}

impl Batch {
    /// Checks the chunks one by one with `visitor`, and passes each sound one to `each`. `None` if one of them returns
    /// [`Stop::Gone`].
    pub(super) fn check<'a, V: Visit<'a, Error = Stop>>(
        &'a self,
        shapes: &mut Shapes<V::Plan>,
        visitor: &mut V,
        mut each: impl FnMut(&mut V, Chunk<'a>) -> Result<(), Stop>,
    ) -> Option<Checked> {
        let bytes = &self.buffer[..self.filled];
        let (mut outcome, mut at) = (ReadOutcome::default(), 0);
        let error = loop {
            let (index, offset) = (self.chunks + outcome.chunks, self.offset + at as u64);
            let length = match framed(&bytes[at..]) {
                Ok(Some(length)) => length,
                // Before the end of the log, batches begin and end with a chunk.
                Ok(None) if index == 0 => break check_begun(bytes).err(),
                Ok(None) => break None,
                Err(damage) => break Some(failure(index, offset, damage)),
            };
            let end = at + LENGTH_WORD + length;
            let sound = visit(&bytes[at + LENGTH_WORD..end], shapes, visitor).and_then(|root| {
                let chunk = Chunk { root, index, offset };
                outcome.messages += chunk.messages().len() as u64;
                each(visitor, chunk)
            });
            match sound {
                Ok(()) => {}
                Err(Stop::Gone) => return None,
                Err(Stop::Damaged(damage)) => break Some(failure(index, offset, damage)),
                Err(Stop::Failed(error)) => break Some(error),
            }
            outcome.chunks += 1;
            at = end;
        };
        outcome.whole_bytes = at as u64;
        outcome.incomplete_bytes = if error.is_none() { (self.filled - at) as u64 } else { 0 };
        Some(Checked { outcome, error })
    }

    /// True if memory allows only one such batch at a time.
    pub(super) fn is_large(&self) -> bool {
        self.filled > LARGE_BYTES
    }

    /// Makes room for this many more bytes.
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        let needed = self.filled + bytes;
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
        &mut self.buffer[self.filled..needed]
    }
}

/// Cuts a log into batches.
#[derive(Debug)]
pub(super) struct Batches<R> {
    source: R,
    /// The start of a chunk, for the next batch.
    begun: Vec<u8>,
    offset: u64,
    chunks: u64,
    ended: bool,
}

impl<R: Read> Batches<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, begun: Vec::new(), offset: 0, chunks: 0, ended: false }
    }

    /// Fills a batch with the next chunks; false if there are no more. The last batch ends with any incomplete chunk.
    pub(super) fn next(&mut self, batch: &mut Batch) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        (batch.filled, batch.offset, batch.chunks) = (0, self.offset, self.chunks);
        let begun = self.begun.len();
        batch.room(begun).copy_from_slice(&self.begun);
        batch.filled = begun;
        self.begun.clear();
        // Only a batch that was cut to its last chunk is followed by another.
        self.ended = true;
        let mut whole = 0;
        loop {
            let waiting = &batch.buffer[whole..batch.filled];
            match framed(waiting) {
                Ok(Some(length)) => {
                    whole += LENGTH_WORD + length;
                    self.chunks += 1;
                    continue;
                }
                Ok(None) => {}
                // Checking the batch finds it, too.
                Err(_) => return Ok(true),
            }
            // Reading the last chunk to its end avoids copying its start.
            let limit = match (whole, missing(waiting)) {
                (0, _) => READ_BYTES,
                (_, Some(missing)) if missing <= READ_BYTES => missing,
                _ => break,
            };
            let count = read_some(&mut self.source, batch.room(limit))?;
            batch.filled += count;
            if count == 0 {
                return Ok(true);
            }
        }
        self.begun.extend_from_slice(&batch.buffer[whole..batch.filled]);
        batch.filled = whole;
        self.offset += whole as u64;
        self.ended = false;
        Ok(true)
    }
}

/// Missing bytes of a chunk; `None` if its length has not arrived.
fn missing(begun: &[u8]) -> Option<usize> {
    let length = usize::try_from(u32_at(begun, 0)?).ok()?;
    (LENGTH_WORD + length).checked_sub(begun.len())
}
