//! A context binary's plain-text metadata, for use without a system library. Seen in files of QAIRT 2.47:
//! `soc_type=SM8550;arch=73`, `vtcm_size=8`; other writers may omit it.

use super::build_id::{BuildId, build_id_in};
use crate::files::open_regular;
use regex::bytes::Regex;
use std::io::{self, Read};
use std::path::Path;

/// Part of the file that is read.
const MOST_BYTES: u64 = 64 << 20;

/// The text's figures; `None` if absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextText {
    /// Part that it was made for, such as `SM8550`.
    pub soc: Option<String>,
    /// Hexagon architecture, such as 73.
    pub arch: Option<u32>,
    /// VTCM, MiB.
    pub vtcm_mb: Option<u32>,
    /// Build that wrote it.
    pub writer: Option<BuildId>,
}

/// Reads the text.
///
/// # Errors
/// The system's, when the file cannot be read.
pub fn context_text(path: &Path) -> io::Result<ContextText> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(in_bytes(&bytes))
}

fn in_bytes(bytes: &[u8]) -> ContextText {
    let text = |pattern: &str| {
        let found = Regex::new(pattern).ok()?.captures(bytes)?.get(1)?;
        Some(String::from_utf8_lossy(found.as_bytes()).into_owned())
    };
    ContextText {
        soc: text(r"soc_type=([A-Z0-9]{3,16})"),
        arch: text(r"soc_type=[A-Z0-9]*;arch=(\d{2})\b").and_then(|arch| arch.parse().ok()),
        vtcm_mb: text(r"vtcm_size=(\d{1,4})\b").and_then(|size| size.parse().ok()),
        writer: build_id_in(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_between_other_bytes() {
        let text = in_bytes(b"\0\xff;soc_type=SM8650;arch=75;x\0vtcm_size=8;\0v2.47.0.260601114230\0");
        assert_eq!((text.soc.as_deref(), text.arch, text.vtcm_mb), (Some("SM8650"), Some(75), Some(8)));
        assert_eq!(text.writer.unwrap().release, [2, 47, 0]);
        assert_eq!(in_bytes(b"nothing"), ContextText::default());
    }
}
