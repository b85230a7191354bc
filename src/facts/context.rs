//! A context binary's plain-text metadata, for use without a system library. Seen in files of QAIRT 2.47 and
//! 2.51: `soc_type=SM8550;arch=73`, `vtcm_size=8388608` (bytes); other writers may omit it or use MiB. The
//! first bytes give its length.

use super::build_id::{BuildId, build_id_in};
use crate::files::{open_regular, starts_context_binary};
use regex::bytes::Regex;
use std::io::{self, Read};
use std::path::Path;

/// Maximum part of the file that is read, bytes.
const MOST_BYTES: u64 = 64 << 20;

/// The values in the text; `None` if absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextText {
    /// SoC that it was made for, such as `SM8550`.
    pub soc: Option<String>,
    /// Hexagon architecture, such as 73.
    pub arch: Option<u32>,
    /// VTCM, MiB.
    pub vtcm_mb: Option<u32>,
    /// Build that wrote it.
    pub writer: Option<BuildId>,
    /// Actual size of the file, bytes.
    pub bytes: u64,
    /// Size that the file must have according to its header, bytes; `None` if the header is of an unknown
    /// kind.
    pub needs_bytes: Option<u64>,
}

/// Where the header gives, in little-endian, the number of bytes before the contents and the length of the
/// contents: for CPU and HTP in QAIRT 2.47 and 2.51.
const LENGTHS: std::ops::Range<usize> = 24..40;
/// Maximum plausible number of bytes before the contents.
const MOST_BEFORE: u64 = 1 << 20;
/// Maximum plausible length of the contents, bytes.
const MOST_CONTENTS: u64 = 1 << 40;

/// Reads the metadata.
///
/// # Errors
/// The file cannot be read.
pub fn context_text(path: &Path) -> io::Result<ContextText> {
    let mut bytes = Vec::new();
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(ContextText { bytes: length, ..in_bytes(&bytes) })
}

fn needs_bytes(bytes: &[u8]) -> Option<u64> {
    let lengths = bytes.get(LENGTHS).filter(|_| starts_context_binary(bytes))?;
    let (before, contents) = lengths.split_at(8);
    let (before, contents) =
        (u64::from_le_bytes(before.try_into().ok()?), u64::from_le_bytes(contents.try_into().ok()?));
    let is_known = (LENGTHS.end as u64..=MOST_BEFORE).contains(&before) && (1..=MOST_CONTENTS).contains(&contents);
    is_known.then(|| before + contents)
}

fn in_bytes(bytes: &[u8]) -> ContextText {
    let text = |pattern: &str| {
        let found = Regex::new(pattern).ok()?.captures(bytes)?.get(1)?;
        Some(String::from_utf8_lossy(found.as_bytes()).into_owned())
    };
    ContextText {
        soc: text(r"soc_type=([A-Z0-9]{3,16})"),
        arch: text(r"soc_type=[A-Z0-9]*;arch=(\d{2})\b").and_then(|arch| arch.parse().ok()),
        vtcm_mb: text(r"vtcm_size=(\d{1,10})\b").and_then(|size| vtcm_mb(size.parse().ok()?)),
        writer: build_id_in(bytes),
        bytes: bytes.len() as u64,
        needs_bytes: needs_bytes(bytes),
    }
}

/// No SoC has gigabytes of VTCM: a number that large is in bytes.
fn vtcm_mb(size: u64) -> Option<u32> {
    let mb = if size < 1024 { size } else { size.div_ceil(1 << 20) };
    mb.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_between_other_bytes() {
        let text = in_bytes(b"\0\xff;soc_type=SM8650;arch=75;x\0vtcm_size=8;\0v2.47.0.260601114230\0");
        assert_eq!((text.soc.as_deref(), text.arch, text.vtcm_mb), (Some("SM8650"), Some(75), Some(8)));
        assert_eq!(text.writer.unwrap().release, [2, 47, 0]);
        assert_eq!(in_bytes(b"l2tcm_kb=0;vtcm_size=8388608;02reserved_size=0").vtcm_mb, Some(8));
        assert_eq!(in_bytes(b"nothing"), ContextText { bytes: 7, ..ContextText::default() });
    }

    #[test]
    fn the_header_tells_how_long_the_file_is() {
        let header = |before: u64, contents: u64| {
            let start = [0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0x98, 3, 0, 0, 0, 0, 0, 0];
            [&start[..], &before.to_le_bytes(), &contents.to_le_bytes()].concat()
        };
        assert_eq!(needs_bytes(&header(4096, 188_416)), Some(192_512));
        assert_eq!(needs_bytes(&header(696, 143_128)), Some(143_824));
        for other in [header(0, 188_416), header(4096, 0), header(u64::MAX, 1), header(4096, u64::MAX)] {
            assert_eq!(needs_bytes(&other), None);
        }
        assert_eq!((needs_bytes(&header(4096, 1)[..39]), needs_bytes(&[b'P'; 64])), (None, None));
    }
}
