//! Session files as bytes: plain JSON lines, or the same compressed with zstd.

use crate::files::{OutputFile, open_regular};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use zstd::stream::{read::Decoder, write::Encoder};

/// First bytes of a zstd frame.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
/// First bytes of a frame that decoders skip, whatever its content; a session may also begin with one.
const SKIPPABLE: u32 = 0x184D_2A50;
/// The library's default level: fast enough for runs, with op times taking about 2 bytes each.
const LEVEL: i32 = 3;
/// Bytes of text per frame. Each frame ends with a checksum, so damage is detected within this many bytes.
const FRAME_BYTES: u64 = 8 << 20;

/// How a session is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// JSON lines.
    Plain,
    /// The same, compressed.
    Zstd,
}

impl Coding {
    /// Determined by the file's extension: `.zst` is compressed.
    pub fn of_name(path: &Path) -> Self {
        let packed = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zst"));
        if packed { Self::Zstd } else { Self::Plain }
    }
}

/// Opens a session for reading. It is recognised by its first bytes, so a renamed file can also be read.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    decode(open_regular(path)?)
}

/// The text of a session, whatever its encoding.
pub fn decode(source: impl Read + Send + 'static) -> io::Result<Box<dyn BufRead + Send>> {
    let mut source = BufReader::with_capacity(1 << 17, source);
    if is_packed(source.fill_buf()?) {
        return Ok(Box::new(BufReader::with_capacity(1 << 17, Decoder::with_buffer(source)?)));
    }
    Ok(Box::new(source))
}

/// True for the start of a zstd file.
pub fn is_packed(head: &[u8]) -> bool {
    let Some(magic) = head.first_chunk::<4>() else { return false };
    *magic == MAGIC || u32::from_le_bytes(*magic) & 0xFFFF_FFF0 == SKIPPABLE
}

/// Counts the bytes written to a file.
#[derive(Debug)]
struct Counted {
    file: OutputFile,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Compresses into a file. Flushed data stays readable whatever happens to the process.
pub struct PackedFile {
    /// Only taken in order to end a frame.
    encoder: Option<Encoder<'static, Counted>>,
    in_frame: u64,
    /// Length of the readable part of the file, bytes.
    readable: u64,
}

impl std::fmt::Debug for PackedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackedFile").field("readable", &self.readable).finish_non_exhaustive()
    }
}

impl PackedFile {
    /// Begins the first frame.
    pub fn new(file: OutputFile) -> io::Result<Self> {
        Ok(Self { encoder: Some(encoder(Counted { file, bytes: 0 })?), in_frame: 0, readable: 0 })
    }

    /// Adds text.
    pub fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.in_frame >= FRAME_BYTES {
            let file = self.end_frame()?;
            self.encoder = Some(encoder(file)?);
        }
        self.in_frame += text.len() as u64;
        self.encoder()?.write_all(text)
    }

    /// Flushes everything so far to the file, so that it can be read.
    pub fn flush(&mut self) -> io::Result<()> {
        let encoder = self.encoder()?;
        encoder.flush()?;
        self.readable = encoder.get_ref().bytes;
        Ok(())
    }

    /// Ends the last frame; returns the file and its length.
    pub fn finish(mut self) -> io::Result<(OutputFile, u64)> {
        let counted = self.end_frame()?;
        Ok((counted.file, counted.bytes))
    }

    /// After an error, truncates the file to its readable part.
    pub fn give_up(&mut self) {
        // Anything the encoder still holds is lost.
        if let Some(mut encoder) = self.encoder.take() {
            // Best effort: truncation may still work on a full disk.
            let _ = encoder.get_mut().file.cut(self.readable);
        }
    }

    fn end_frame(&mut self) -> io::Result<Counted> {
        self.in_frame = 0;
        let encoder = self.encoder.take().ok_or_else(|| io::Error::other("the file was given up"))?;
        let counted = encoder.finish()?;
        self.readable = counted.bytes;
        Ok(counted)
    }

    fn encoder(&mut self) -> io::Result<&mut Encoder<'static, Counted>> {
        self.encoder.as_mut().ok_or_else(|| io::Error::other("the file was given up"))
    }
}

fn encoder(file: Counted) -> io::Result<Encoder<'static, Counted>> {
    let mut encoder = Encoder::new(file, LEVEL)?;
    encoder.include_checksum(true)?;
    Ok(encoder)
}
