//! User-named files for reading: the wait for a pipe is limited, and a pipe can be read as often as a file.

use super::special::{PATIENCE, is_named_pipe, is_pipe, is_special, kind_text, within};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Maximum number of bytes copied from a pipe; the copy goes to the folder for temporary files.
const MOST_COPIED_BYTES: u64 = 4 << 30;

/// Opens a file, a pipe or a device for reading. The wait for a named pipe's writer is
/// limited, because none may ever come.
///
/// # Errors
/// The system's error, or nothing writes to the pipe.
pub fn open_input(path: &Path) -> io::Result<File> {
    let file = if is_named_pipe(path) {
        let path = path.to_owned();
        within(PATIENCE, "write into", move || File::open(path))?
    } else {
        File::open(path)?
    };
    // Opening a folder succeeds, but the error from reading it does not give the reason.
    if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
}

/// Opens a regular file, not a pipe or a device: for files in our folders, or files that are read at several
/// positions.
///
/// # Errors
/// The system's error, or `path` is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other(format!("it is {}, not a file", kind_text(kind))))
    }
}

/// A file that is read more than once. For a pipe, such as `<(zcat s.gz)` or `/dev/stdin`, it is a copy,
/// which is removed on drop.
#[derive(Debug)]
pub struct Seekable {
    named: PathBuf,
    at: PathBuf,
    _copy: Option<Copied>,
}

/// Held only so that the file is removed when this is dropped.
#[derive(Debug)]
enum Copied {
    /// Has no name: it disappears with the process, however that ends.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Nameless(#[expect(dead_code, reason = "held open")] File),
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    Named(#[expect(dead_code, reason = "removed when dropped")] tempfile::TempPath),
}

impl Seekable {
    /// Opens nothing if `path` is a file; reads a pipe to its end.
    ///
    /// # Errors
    /// The pipe cannot be read or copied, or holds too much.
    pub fn new(path: &Path) -> io::Result<Self> {
        let named = path.to_owned();
        if !is_special(path) {
            return Ok(Self { at: named.clone(), named, _copy: None });
        }
        let kind = std::fs::metadata(path)?.file_type();
        if !is_pipe(kind) {
            // A device may never end.
            return Err(io::Error::other(format!("it is {}, not a file", kind_text(kind))));
        }
        let source = open_input(path)?;
        let (at, copy) = copied(source)?;
        Ok(Self { named, at, _copy: Some(copy) })
    }

    /// The path as the user gave it.
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// The path to read from.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

fn fill(mut source: File, copy: &mut File) -> io::Result<()> {
    let length = io::copy(&mut Read::take(&mut source, MOST_COPIED_BYTES + 1), copy)?;
    if length > MOST_COPIED_BYTES {
        let most = MOST_COPIED_BYTES >> 30;
        return Err(io::Error::other(format!(
            "the pipe delivered more than {most} GiB; write the data to a file first"
        )));
    }
    copy.flush()?;
    copy.seek(SeekFrom::Start(0)).map(drop)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn copied(source: File) -> io::Result<(PathBuf, Copied)> {
    use std::os::fd::AsRawFd;
    let mut copy = tempfile::tempfile()?;
    fill(source, &mut copy)?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", copy.as_raw_fd())), Copied::Nameless(copy)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn copied(source: File) -> io::Result<(PathBuf, Copied)> {
    let mut copy = tempfile::NamedTempFile::new()?;
    fill(source, copy.as_file_mut())?;
    let path = copy.into_temp_path();
    Ok((path.to_path_buf(), Copied::Named(path)))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::time::Duration;

    fn pipe(dir: &tempfile::TempDir) -> PathBuf {
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        pipe
    }

    #[test]
    fn a_pipe_that_nobody_uses_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = pipe(&dir);
        let patience = Duration::from_millis(50);
        let source = pipe.clone();
        let error = within(patience, "write into", move || File::open(source)).unwrap_err().to_string();
        assert!(error.contains("no other process came to write into it"), "{error}");
        assert!(open_regular(&pipe).unwrap_err().to_string().contains("a pipe, not a file"));
        assert!(open_regular(dir.path()).unwrap_err().to_string().contains("a folder, not a file"));
        assert!(open_input(dir.path()).is_err());
    }

    #[test]
    fn a_pipe_is_read_as_often_as_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = pipe(&dir);
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "through").unwrap()
        });
        let seekable = Seekable::new(&pipe).unwrap();
        writer.join().unwrap();
        assert_eq!(seekable.named(), pipe);
        for _ in 0..2 {
            assert_eq!(std::fs::read(seekable.path()).unwrap(), b"through");
        }
        assert!(seekable.path().is_file());
        let plain = dir.path().join("plain");
        assert_eq!(Seekable::new(&plain).unwrap().path(), plain, "what is missing is reported by who reads it");
    }
}
