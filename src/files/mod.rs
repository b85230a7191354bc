//! User-named files: read without trusting their length (devices and pipes have none), and written by one set of
//! rules.
//!
//! [`Guard`] decides whether a file may be written at all; [`write_whole`], [`Replacement`] and [`OutputFile`] write it.

mod config;
mod error;
mod guard;
mod input;
mod maker;
mod output;
mod signature;
mod special;
mod whole;

pub use config::config_file;
pub use error::OutputError;
pub use guard::{Guard, make_output_folder};
pub use input::{Seekable, open_input, open_regular};
pub use maker::Kind;
pub use output::OutputFile;
pub use signature::starts_context_binary;
pub use special::is_special;
pub use whole::{Replacement, private_folder, private_folder_in, write_whole};

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file or a pipe of at most `limit` bytes.
///
/// # Errors
/// The system's error, or one that names the limit.
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_input(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// The same, as text.
pub fn read_text_at_most(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read_at_most(path, limit)?).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// SHA-256 of everything in `source`, lower-case hex, and its length in bytes.
pub fn sha256_hex(mut source: impl Read) -> io::Result<(String, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut length = 0;
    loop {
        match source.read(&mut buffer)? {
            0 => break,
            read => {
                hasher.update(&buffer[..read]);
                length += read as u64;
            }
        }
    }
    Ok((hex(&hasher.finalize()), length))
}

/// Bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_bounded() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"12345").unwrap();
        assert_eq!(read_at_most(file.path(), 5).unwrap(), b"12345");
        assert!(read_at_most(file.path(), 4).unwrap_err().to_string().contains("more than 4 bytes"));
        #[cfg(unix)]
        assert!(read_text_at_most(Path::new("/dev/zero"), 1000).is_err());
    }
}
