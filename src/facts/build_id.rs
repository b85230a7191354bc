//! The build id that QNN libraries and context binaries carry as text: `v2.47.0.260601114230`.

use crate::files::open_regular;
use regex::bytes::Regex;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::sync::LazyLock;

/// Bytes per read.
const CHUNK: usize = 1 << 20;
/// Maximum length of a build id's text, so that one that crosses two chunks is found.
const OVERLAP: usize = 64;
/// Maximum part of a file that is searched, bytes: the largest known library has about 120 MB.
const MOST_BYTES: u64 = 512 << 20;

/// A build: release and stamp. Whatever follows an underscore names a package of the same build.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    /// Release, such as `[2, 47, 0]`.
    pub release: [u32; 3],
    /// Build stamp: twelve digits of date and time.
    pub stamp: u64,
}

impl fmt::Display for BuildId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.release;
        write!(out, "v{major}.{minor}.{patch}.{:012}", self.stamp)
    }
}

// At least ten digits: version numbers of other software are shorter.
static PATTERN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"v([1-9])\.(\d{1,3})\.(\d{1,3})\.(\d{10,14})").ok());

/// The first build id in these bytes.
pub fn build_id_in(bytes: &[u8]) -> Option<BuildId> {
    let found = PATTERN.as_ref()?.captures(bytes)?;
    let number = |group: usize| std::str::from_utf8(found.get(group)?.as_bytes()).ok();
    Some(BuildId {
        release: [number(1)?.parse().ok()?, number(2)?.parse().ok()?, number(3)?.parse().ok()?],
        stamp: number(4)?.parse().ok()?,
    })
}

/// The first build id in a file; `None` if it has none, like `libQnnSystem.so` of QAIRT 2.47.
///
/// # Errors
/// The file cannot be read.
pub fn build_id_of(path: &Path) -> io::Result<Option<BuildId>> {
    let mut file = open_regular(path)?.take(MOST_BYTES);
    let mut window = Vec::with_capacity(CHUNK + OVERLAP);
    loop {
        let kept = window.len();
        let read = file.by_ref().take(CHUNK as u64).read_to_end(&mut window)?;
        if read == 0 {
            return Ok(build_id_in(&window));
        }
        // One at the very end may continue in the next chunk.
        let whole = window.len().saturating_sub(OVERLAP);
        if let Some(id) = build_id_in(&window[..whole]) {
            return Ok(Some(id));
        }
        let keep = window.len().min(2 * OVERLAP);
        debug_assert!(kept <= 2 * OVERLAP);
        window.drain(..window.len() - keep);
    }
}

/// Release of a version as written by SDKs: `2.47.0.260601114230`, with or without a leading `v`.
pub fn release(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.trim().trim_start_matches('v').split('.').map(str::parse);
    Some([parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn packages_of_one_build_are_one_build() {
        let one = build_id_in(b"\0AISW_VERSION v2.28.0.241029232508_102474\0").unwrap();
        let other = build_id_in(b"v2.28.0.241029232508").unwrap();
        assert_eq!(one, other);
        assert_eq!(one.to_string(), "v2.28.0.241029232508");
        assert!(one > build_id_in(b"v2.9.1.231029232508").unwrap());
        for text in ["v2.47.0", "2.47.0.260601114230", "qairt-v1.2.3/x", "v2.1.0.12345"] {
            assert_eq!(build_id_in(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn it_is_found_wherever_it_lies(at in 0usize..CHUNK * 2 + 200, near in -40isize..40) {
            let id = b"v2.51.0.260929181845_x";
            for at in [at, CHUNK.saturating_add_signed(near)] {
                let mut bytes = vec![0xff; at];
                bytes.extend(id);
                bytes.extend([0; 10]);
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(file.path(), &bytes).unwrap();
                let found = build_id_of(file.path()).unwrap().map(|id| id.to_string());
                prop_assert_eq!(found.as_deref(), Some("v2.51.0.260929181845"));
            }
        }
    }
}
