//! Reading files that somebody named, without trusting their length: devices and pipes have none.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// The system's, or one that names the limit.
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// The same, as text.
pub fn read_text_at_most(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read_at_most(path, limit)?).map_err(|_| io::Error::other("it is not UTF-8 text"))
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
