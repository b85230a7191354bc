//! The digest of a compressed session: a frame at its end that zstd skips, with the few records that matter
//! and aggregates of the many others. With it, a session with millions of op times opens at once; it adds
//! nothing to the stream.
//!
//! | part | what |
//! |---|---|
//! | frame header | `0x184D2A57`, length of the rest; both 32 bits, little-endian |
//! | records | zstd: the session's lines, without the aggregated ones |
//! | figures | zstd: [`StoreDigest`] as postcard writes it |
//! | trailer | lengths of records and figures (32 bits each), length of the stream before the frame (64 bits), mark |

use super::coding;
use crate::event::Record;
use crate::files::open_regular;
use crate::store::{Store, StoreDigest};
use crate::text::clean_json;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::Path;
use zstd::stream::write::Encoder;

const FRAME: u32 = 0x184D_2A57;
/// Identifies the layout of [`StoreDigest`], which postcard does not. A reader with another layout folds the
/// stream instead.
const MARK: [u8; 8] = *b"qnnsdig3";
const TRAILER_BYTES: usize = 24;
const HEADER_BYTES: usize = 8;
/// Maximum accepted size of the figures, bytes: a million latencies per phase and 10,000 ops of several runs
/// stay far below.
const MAX_FIGURES: u64 = 512 << 20;
/// Size of the text below which folding a session takes negligible time, bytes.
const WORTH_BYTES: u64 = 1 << 20;
const LEVEL: i32 = 3;

/// Collects the records of a digest while the session is written.
pub struct DigestWriter {
    records: Encoder<'static, Vec<u8>>,
    text_bytes: u64,
}

impl std::fmt::Debug for DigestWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DigestWriter").field("text_bytes", &self.text_bytes).finish_non_exhaustive()
    }
}

impl DigestWriter {
    /// A writer that has collected nothing yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self { records: Encoder::new(Vec::new(), LEVEL)?, text_bytes: 0 })
    }

    /// Adds a line of the session, with its record.
    pub fn take(&mut self, record: &Record, line: &[u8]) -> io::Result<()> {
        self.text_bytes += line.len() as u64;
        if StoreDigest::stands_for(&record.event) { Ok(()) } else { self.records.write_all(line) }
    }

    /// True if the session is long enough for a digest to save time.
    pub fn is_worth_it(&self) -> bool {
        self.text_bytes >= WORTH_BYTES
    }

    /// The frame that follows a stream of this many bytes. `None` if it would be too large.
    pub fn frame(self, store: &Store, stream_bytes: u64) -> io::Result<Option<Vec<u8>>> {
        let records = self.records.finish()?;
        let figures = store.digest().to_bytes().map_err(io::Error::other)?;
        let figures = zstd::bulk::compress(&figures, LEVEL)?;
        let length = records.len() as u64 + figures.len() as u64 + TRAILER_BYTES as u64;
        let Ok(length) = u32::try_from(length) else { return Ok(None) };
        let mut frame = Vec::with_capacity(length as usize + HEADER_BYTES);
        frame.extend(FRAME.to_le_bytes());
        frame.extend(length.to_le_bytes());
        frame.extend(&records);
        frame.extend(&figures);
        // Both are parts of `length`, which fits.
        for part in [records.len(), figures.len()] {
            frame.extend(u32::try_from(part).unwrap_or(u32::MAX).to_le_bytes());
        }
        frame.extend(stream_bytes.to_le_bytes());
        frame.extend(MARK);
        Ok(Some(frame))
    }
}

/// The store of a session that ends with a digest; `None` if it has no usable one, for whatever reason: the
/// stream holds the same data.
pub fn store(path: &Path) -> Option<Store> {
    let mut file = open_regular(path).ok()?;
    let parts = Parts::find(&mut file).ok()??;
    read(file, &parts).ok()?
}

/// Location of the parts of a digest.
struct Parts {
    records_at: u64,
    records: u64,
    figures: u64,
}

impl Parts {
    fn find(file: &mut File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let Some(trailer_at) = length.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
        let mut trailer = [0; TRAILER_BYTES];
        file.seek(SeekFrom::Start(trailer_at))?;
        file.read_exact(&mut trailer)?;
        let small = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|byte| trailer[at + byte])));
        let stream = small(8) | small(12) << 32;
        let (records, figures) = (small(0), small(4));
        let records_at = stream.saturating_add(HEADER_BYTES as u64);
        if trailer[16..] != MARK || records_at.checked_add(records + figures) != Some(trailer_at) {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES];
        file.seek(SeekFrom::Start(stream))?;
        file.read_exact(&mut header)?;
        Ok((header[..4] == FRAME.to_le_bytes()).then_some(Self { records_at, records, figures }))
    }
}

fn read(mut file: File, parts: &Parts) -> io::Result<Option<Store>> {
    file.seek(SeekFrom::Start(parts.records_at))?;
    let mut store = Store::new();
    let mut lines = coding::decode(file.try_clone()?.take(parts.records))?;
    let mut line = Vec::new();
    while lines.by_ref().take(super::reader::MAX_LINE_BYTES).read_until(b'\n', &mut line)? > 0 {
        store.apply(&Record::read(&clean_json(&line)).map_err(io::Error::other)?);
        line.clear();
    }
    // The copy shares the file position, and its buffer has read ahead.
    file.seek(SeekFrom::Start(parts.records_at + parts.records))?;
    let mut figures = Vec::new();
    zstd::stream::read::Decoder::new(file.take(parts.figures))?.take(MAX_FIGURES).read_to_end(&mut figures)?;
    let digest = StoreDigest::from_bytes(&figures).map_err(io::Error::other)?;
    Ok(store.restore(digest).then_some(store))
}
