//! Reading a log to its end.

use super::chunk::Chunk;
use super::decoder::Decoder;
use super::error::ProfileLogError;
use std::io::Read;

/// Bytes read at once.
const READ_BYTES: usize = 512 << 10;

/// The whole chunks of a source, in order.
#[derive(Debug)]
pub struct LogReader<R> {
    source: R,
    decoder: Decoder,
}

impl<R: Read> LogReader<R> {
    /// Reads from a source.
    pub fn new(source: R) -> Self {
        Self { source, decoder: Decoder::new() }
    }

    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// The decoder's and the source's.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>, ProfileLogError> {
        while !self.decoder.has_chunk()? {
            if self.decoder.read_from(&mut self.source, READ_BYTES).map_err(ProfileLogError::Read)? == 0 {
                self.decoder.finish()?;
                return Ok(None);
            }
        }
        self.decoder.next_chunk()
    }
}

/// How reading a log ended.
#[derive(Debug, Default)]
pub struct ReadOutcome {
    /// Bytes in whole chunks.
    pub whole_bytes: u64,
    /// Bytes after them: the log is still being written, or was cut.
    pub incomplete_bytes: u64,
    /// Whole chunks.
    pub chunks: u64,
    /// Messages in them, private ones included.
    pub messages: u64,
    /// Sessions in the log.
    pub sessions: u64,
    /// What ended reading early, if anything. The chunks before it are sound.
    pub damage: Option<ProfileLogError>,
}

impl ReadOutcome {
    /// Not one byte.
    pub fn is_empty(&self) -> bool {
        self.whole_bytes + self.incomplete_bytes == 0
    }
}

/// Passes every chunk of a source to `each`.
pub(super) fn read_all<R: Read>(
    source: R,
    mut each: impl FnMut(&Chunk<'_>) -> Result<(), ProfileLogError>,
) -> Result<ReadOutcome, ProfileLogError> {
    let mut reader = LogReader::new(source);
    let mut messages = 0;
    let damage = loop {
        match reader.next_chunk() {
            Ok(Some(chunk)) => {
                messages += chunk.messages().len() as u64;
                each(&chunk)?;
            }
            Ok(None) => break None,
            Err(damage @ ProfileLogError::Damaged { .. }) => break Some(damage),
            Err(error) => return Err(error),
        }
    };
    Ok(ReadOutcome {
        whole_bytes: reader.decoder.offset(),
        incomplete_bytes: if damage.is_some() { 0 } else { reader.decoder.incomplete_bytes() },
        chunks: reader.decoder.chunks(),
        messages,
        sessions: 0,
        damage,
    })
}
