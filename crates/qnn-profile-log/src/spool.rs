//! Rows of several graphs, sorted by graph through a temporary file, in constant memory.

use super::error::ProfileLogError;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Memory limit for all graphs together.
const MEMORY_BYTES: usize = 4 << 20;

/// Rows of one graph.
#[derive(Default)]
struct Part {
    waiting: Vec<u8>,
    /// Pieces in the file: position and length.
    pieces: Vec<(u64, u64)>,
}

/// Rows waiting for their turn.
#[derive(Default)]
pub(super) struct Spool {
    parts: Vec<Part>,
    waiting: usize,
    file: Option<File>,
    end: u64,
}

impl Spool {
    /// More rows of a part. Parts are numbered from 0.
    pub(super) fn add(&mut self, part: usize, rows: &[u8]) -> Result<(), ProfileLogError> {
        if self.parts.len() <= part {
            self.parts.resize_with(part + 1, Part::default);
        }
        self.parts[part].waiting.extend_from_slice(rows);
        self.waiting += rows.len();
        if self.waiting >= MEMORY_BYTES { self.store().map_err(ProfileLogError::Temporary) } else { Ok(()) }
    }

    /// Flushes everything waiting to the file in one write.
    fn store(&mut self) -> io::Result<()> {
        let mut all = Vec::with_capacity(self.waiting);
        for part in self.parts.iter_mut().filter(|part| !part.waiting.is_empty()) {
            part.pieces.push((self.end + all.len() as u64, part.waiting.len() as u64));
            all.append(&mut part.waiting);
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.write_all(&all)?;
        self.end += all.len() as u64;
        self.waiting = 0;
        Ok(())
    }

    /// Passes all rows of a part to `take`, in order and in pieces.
    pub(super) fn take(
        &mut self,
        part: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), ProfileLogError>,
    ) -> Result<(), ProfileLogError> {
        let Some(part) = self.parts.get_mut(part) else { return Ok(()) };
        let mut piece = Vec::new();
        for (from, length) in part.pieces.drain(..) {
            let Some(file) = &mut self.file else { break };
            piece.clear();
            file.seek(SeekFrom::Start(from)).map_err(ProfileLogError::Temporary)?;
            file.take(length).read_to_end(&mut piece).map_err(ProfileLogError::Temporary)?;
            take(&piece)?;
        }
        take(&std::mem::take(&mut part.waiting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_in_order() {
        let mut spool = Spool::default();
        let mut expected = vec![Vec::<u8>::new(); 5];
        for i in 0..200_000_usize {
            let (part, row) = (i * 7 % 5, format!("{i},some row of a table that is long enough to fill the memory\n"));
            spool.add(part, row.as_bytes()).unwrap();
            expected[part].extend(row.as_bytes());
        }
        assert!(spool.file.is_some() && spool.end > MEMORY_BYTES as u64, "nothing was stored");
        for (part, expected) in expected.iter().enumerate().rev() {
            let mut rows = Vec::<u8>::new();
            spool
                .take(part, |piece| {
                    rows.extend(piece);
                    Ok(())
                })
                .unwrap();
            assert!(rows == *expected, "part {part}");
        }
        spool.take(9, |piece| panic!("{piece:?}")).unwrap();
    }
}
