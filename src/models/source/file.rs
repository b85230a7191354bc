//! Reads a model file in blocks at any position, in constant memory and never past its end.

use super::SourceError;
use super::budget::Budget;
use crate::event::clean_text;
use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes read at a time: a few hundred nodes.
const BLOCK_BYTES: u64 = 32 << 10;
/// Number of cached blocks. FlatBuffers refer back and forth, so one is not enough.
const BLOCKS: usize = 64;
/// Longest name or text kept, in bytes.
const MOST_TEXT_BYTES: u64 = 64 << 10;

/// A range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub at: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Span {
    /// Position after the last byte.
    pub fn end(self) -> u64 {
        self.at.saturating_add(self.len)
    }
}

#[derive(Debug)]
struct Blocks {
    file: File,
    /// Number and content of the block in each slot.
    kept: Vec<Option<(u64, Vec<u8>)>>,
}

/// An open model file.
#[derive(Debug)]
pub struct SourceFile {
    path: PathBuf,
    format: &'static str,
    len: u64,
    budget: Budget,
    blocks: RefCell<Blocks>,
}

impl SourceFile {
    /// Opens a regular file; `format` is the format's name for messages.
    pub fn open(path: &Path, format: &'static str) -> Result<Self, SourceError> {
        let io = |source| SourceError::Io { path: path.to_owned(), source };
        // Opening a pipe would block.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(io(std::io::Error::other("it is not a file")));
        }
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let blocks = RefCell::new(Blocks { file, kept: (0..BLOCKS).map(|_| None).collect() });
        Ok(Self { path: path.to_owned(), format, len, budget: Budget::for_file(len), blocks })
    }

    /// Its path, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length, in bytes.
    pub fn size(&self) -> u64 {
        self.len
    }

    /// The whole file.
    pub fn whole(&self) -> Span {
        Span { at: 0, len: self.len }
    }

    /// An error that gives the position.
    pub fn damaged(&self, at: u64, reason: impl Into<String>) -> SourceError {
        SourceError::Damaged { path: self.path.clone(), format: self.format, reason: reason.into(), at }
    }

    /// Accounts for `bytes` kept in memory.
    pub fn keep(&self, bytes: usize) -> Result<(), SourceError> {
        let refused = |limit| SourceError::TooLarge { path: self.path.clone(), limit };
        self.budget.take(bytes as u64).map_err(refused)
    }

    /// Fills `target` with the bytes at `at`.
    pub fn read(&self, at: u64, target: &mut [u8]) -> Result<(), SourceError> {
        let end = at.checked_add(target.len() as u64).filter(|&end| end <= self.len);
        if end.is_none() {
            return Err(self.damaged(at, format!("{} bytes should follow", target.len())));
        }
        let (mut at, mut done) = (at, 0);
        while done < target.len() {
            let number = at / BLOCK_BYTES;
            let from = usize::try_from(at % BLOCK_BYTES).unwrap_or(0);
            let copied = self.in_block(number, |block| {
                let part = block.get(from..)?;
                let count = part.len().min(target.len() - done);
                target[done..done + count].copy_from_slice(&part[..count]);
                (count > 0).then_some(count)
            })?;
            let Some(copied) = copied else {
                return Err(self.damaged(at, "the file was truncated while it was being read"));
            };
            done += copied;
            at += copied as u64;
        }
        Ok(())
    }

    /// Passes a block to `look`, reading it first if it is not cached.
    fn in_block<T>(&self, number: u64, look: impl FnOnce(&[u8]) -> T) -> Result<T, SourceError> {
        let io = |source| SourceError::Io { path: self.path.clone(), source };
        let mut blocks = self.blocks.borrow_mut();
        let place = usize::try_from(number % BLOCKS as u64).unwrap_or(0);
        let Blocks { file, kept } = &mut *blocks;
        if let Some((_, block)) = kept[place].as_ref().filter(|(known, _)| *known == number) {
            return Ok(look(block));
        }
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(number * BLOCK_BYTES)).map_err(io)?;
        file.take(BLOCK_BYTES).read_to_end(&mut block).map_err(io)?;
        Ok(look(&kept[place].insert((number, block)).1))
    }

    /// One byte.
    pub fn byte(&self, at: u64) -> Result<u8, SourceError> {
        let mut byte = [0];
        self.read(at, &mut byte)?;
        Ok(byte[0])
    }

    /// The bytes of a range of at most `limit` bytes; `None` if it is longer.
    pub fn bytes(&self, span: Span, limit: u64) -> Result<Option<Vec<u8>>, SourceError> {
        if span.len > limit {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(span.len).unwrap_or(0)];
        self.read(span.at, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// A name or short text without control characters; long ones are cut. Invalid UTF-8 is replaced.
    pub fn text(&self, span: Span) -> Result<String, SourceError> {
        let kept = Span { at: span.at, len: span.len.min(MOST_TEXT_BYTES) };
        let bytes = self.bytes(kept, MOST_TEXT_BYTES)?.unwrap_or_default();
        let text = clean_text(&String::from_utf8_lossy(&bytes));
        self.keep(text.len() + size_of::<String>())?;
        Ok(text)
    }

    /// Copies a range in constant memory.
    pub fn copy(&self, span: Span, mut target: impl std::io::Write) -> Result<(), SourceError> {
        let io = |source| SourceError::Io { path: self.path.clone(), source };
        let mut blocks = self.blocks.borrow_mut();
        blocks.file.seek(SeekFrom::Start(span.at)).map_err(io)?;
        let copied = std::io::copy(&mut (&blocks.file).take(span.len), &mut target).map_err(io)?;
        drop(blocks);
        if copied == span.len {
            Ok(())
        } else {
            Err(self.damaged(span.at, format!("{} bytes should follow", span.len)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_place_can_be_read_and_nothing_behind_the_end() {
        let made = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..5_000_000_u32).map(|number| (number * 7 % 251) as u8).collect();
        std::fs::write(made.path(), &bytes).unwrap();
        let file = SourceFile::open(made.path(), "test").unwrap();
        for at in [0usize, 32_767, 32_768, 2_097_151, 4_999_990, 3, 2_097_152] {
            let mut part = [0; 10];
            file.read(at as u64, &mut part).unwrap();
            assert_eq!(part, bytes[at..at + 10]);
        }
        let mut many = vec![0; 100_000];
        file.read(1_000, &mut many).unwrap();
        assert_eq!(many, bytes[1_000..101_000]);
        assert!(matches!(file.byte(5_000_000), Err(SourceError::Damaged { .. })));
        assert!(matches!(file.read(u64::MAX, &mut [0; 2]), Err(SourceError::Damaged { .. })));
        assert_eq!(file.bytes(Span { at: 0, len: 11 }, 10).unwrap(), None);
        let mut copy = Vec::new();
        file.copy(Span { at: 4_000_000, len: 1_000_000 }, &mut copy).unwrap();
        assert_eq!(copy, bytes[4_000_000..]);
        assert!(file.copy(Span { at: 4_000_000, len: 1_000_001 }, &mut copy).is_err());
        assert!(SourceFile::open(Path::new("/dev/null"), "test").is_err());
    }
}
