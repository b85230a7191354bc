//! Turns arriving bytes into whole chunks.

use super::chunk::Chunk;
use super::error::{Damage, ProfileLogError};
use super::shape::Shapes;
use super::table::u32_at;
use super::verify::{could_begin, visit};
use super::visit::Nothing;
use std::io::{self, Read};

/// Longest chunk accepted, bytes. Writers flush about every 1000 messages; FlatBuffers themselves are limited to 2 GiB.
pub const MAX_CHUNK_BYTES: u32 = 1 << 30;

/// Bytes of a chunk's length word.
pub(super) const LENGTH_WORD: usize = 4;
/// A root offset, a table and its list of fields.
const MIN_CHUNK_BYTES: usize = 12;
/// Above this size, a buffer left by a large chunk is freed.
const KEPT_BYTES: usize = 16 << 20;

/// Accepts the bytes of a log in pieces of any size and returns its whole chunks. An incomplete chunk waits; memory is
/// bounded by the bytes received, not by the declared length.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Bytes of the buffer that have arrived; the rest is free.
    filled: usize,
    /// Bytes of the buffer that belong to chunks already returned.
    used: usize,
    /// Bytes of the log before the buffer's first one.
    base: u64,
    chunks: u64,
    stopped: bool,
    shapes: Shapes<()>,
}

impl Decoder {
    /// At the start of a log.
    pub fn new() -> Self {
        Self::default()
    }

    /// More bytes of the log.
    pub fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// Accepts the result of one read of a source, at most `limit` bytes; returns their number, 0 at the end.
    ///
    /// # Errors
    /// The source's.
    pub fn read_from(&mut self, source: &mut impl Read, limit: usize) -> io::Result<usize> {
        let count = read_some(source, &mut self.room(limit)[..limit])?;
        self.filled += count;
        Ok(count)
    }

    /// Drops what was returned; returns room for at least this many bytes.
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.used > 0 {
            self.base += self.used as u64;
            self.buffer.copy_within(self.used..self.filled, 0);
            self.filled -= self.used;
            self.used = 0;
        }
        let needed = self.filled + bytes;
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        } else if self.buffer.len() > KEPT_BYTES && needed < KEPT_BYTES / 2 {
            self.buffer.truncate(KEPT_BYTES);
            self.buffer.shrink_to_fit();
        }
        &mut self.buffer[self.filled..]
    }

    /// Bytes received but not returned yet.
    fn waiting(&self) -> &[u8] {
        &self.buffer[self.used..self.filled]
    }

    /// The next whole chunk; `None` until more bytes arrive.
    ///
    /// # Errors
    /// [`ProfileLogError::NotALog`] if the first chunk is invalid, [`ProfileLogError::Damaged`] for a later one;
    /// nothing after it can be trusted, so the decoder returns no more chunks.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>, ProfileLogError> {
        let Some(length) = self.whole_chunk()? else { return Ok(None) };
        let (index, offset) = (self.chunks, self.offset());
        let from = self.used + LENGTH_WORD;
        match visit(&self.buffer[from..from + length], &mut self.shapes, &mut Nothing) {
            Ok(root) => {
                self.used = from + length;
                self.chunks += 1;
                Ok(Some(Chunk { root, index, offset }))
            }
            Err(damage) => {
                self.stopped = true;
                Err(failure(index, offset, damage))
            }
        }
    }

    /// True if [`next_chunk`](Self::next_chunk) would return a chunk or its damage.
    ///
    /// # Errors
    /// As there, for an invalid length.
    pub fn has_chunk(&mut self) -> Result<bool, ProfileLogError> {
        self.whole_chunk().map(|length| length.is_some())
    }

    /// Length of the next chunk if it is complete, bytes.
    fn whole_chunk(&mut self) -> Result<Option<usize>, ProfileLogError> {
        if self.stopped {
            return Ok(None);
        }
        framed(self.waiting()).map_err(|damage| {
            self.stopped = true;
            failure(self.chunks, self.offset(), damage)
        })
    }

    /// Offset of the next chunk in the log, bytes.
    pub fn offset(&self) -> u64 {
        self.base + self.used as u64
    }

    /// Chunks returned so far.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Bytes after the last returned chunk. At the end of a log: the size of its incomplete chunk.
    pub fn incomplete_bytes(&self) -> u64 {
        self.waiting().len() as u64
    }

    /// Call at the end of a log: distinguishes a log cut within its first chunk from something else.
    ///
    /// # Errors
    /// [`ProfileLogError::NotALog`].
    pub fn finish(&self) -> Result<(), ProfileLogError> {
        if self.chunks == 0 && !self.stopped { check_begun(self.waiting()) } else { Ok(()) }
    }
}

/// One read of a source; returns the number of bytes, 0 at the end.
pub(super) fn read_some(source: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(room) {
            // A source that claims more bytes than it had room for is wrong.
            Ok(count) => return Ok(count.min(room.len())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Length of the chunk whose length word comes first, bytes; `None` if it has not fully arrived.
pub(super) fn framed(waiting: &[u8]) -> Result<Option<usize>, Damage> {
    let Some(claimed) = u32_at(waiting, 0) else { return Ok(None) };
    let length = usize::try_from(claimed).unwrap_or(usize::MAX);
    if claimed > MAX_CHUNK_BYTES {
        return Err(Damage::TooLong { length: claimed.into() });
    }
    if length < MIN_CHUNK_BYTES {
        return Err(Damage::TooShort { length: claimed.into() });
    }
    Ok((waiting.len() - LENGTH_WORD >= length).then_some(length))
}

/// Only the start of the first chunk has arrived: checks whether it could be a log.
pub(super) fn check_begun(waiting: &[u8]) -> Result<(), ProfileLogError> {
    let Some(length) = u32_at(waiting, 0).and_then(|length| usize::try_from(length).ok()) else { return Ok(()) };
    if could_begin(&waiting[LENGTH_WORD..], length) {
        return Ok(());
    }
    Err(not_a_log(format!("its first chunk would have {length} bytes and does not start like one")))
}

fn not_a_log(reason: String) -> ProfileLogError {
    ProfileLogError::NotALog { reason }
}

/// Adds the position to damage.
pub(super) fn failure(chunk: u64, offset: u64, damage: Damage) -> ProfileLogError {
    match chunk {
        0 => not_a_log(format!("its first chunk is invalid: {damage}")),
        chunk => ProfileLogError::Damaged { chunk, offset, damage },
    }
}
