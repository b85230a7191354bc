//! A file written in place during a command: locked, so that no second writer interferes.

use super::error::OutputError;
use super::special::{is_special, open_special};
use super::whole::sync_folder_of;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Names of this process's own streams.
const STREAMS: [(&str, Stream); 6] = [
    ("/dev/stdout", Stream::Output),
    ("/dev/fd/1", Stream::Output),
    ("/proc/self/fd/1", Stream::Output),
    ("/dev/stderr", Stream::Error),
    ("/dev/fd/2", Stream::Error),
    ("/proc/self/fd/2", Stream::Error),
];

#[derive(Debug, Clone, Copy)]
enum Stream {
    Output,
    Error,
}

/// True for a name of this process's own standard output or error, which is shared with printed text.
pub fn is_stream(path: &Path) -> bool {
    STREAMS.iter().any(|(name, _)| path == Path::new(name))
}

/// An open file named by an option. The lock ends with it.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    real: PathBuf,
    is_new: bool,
    /// A pipe, a device or a stream, where there is nothing to truncate or keep.
    is_special: bool,
}

impl OutputFile {
    /// The stream with this name. It is not opened by name, because that would start at the beginning of its
    /// file.
    pub(super) fn stream(path: &Path) -> io::Result<Self> {
        #[cfg(unix)]
        for (name, stream) in STREAMS {
            if path == Path::new(name) {
                let file = match stream {
                    Stream::Output => rustix::io::dup(rustix::stdio::stdout())?,
                    Stream::Error => rustix::io::dup(rustix::stdio::stderr())?,
                };
                return Ok(Self { file: file.into(), real: path.to_owned(), is_new: false, is_special: true });
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Opens `real`, the file behind `path`, and locks it. Creates a missing file; an existing one keeps its
    /// content.
    pub(super) fn open(option: &'static str, path: &Path, real: PathBuf) -> Result<Self, OutputError> {
        let io = |source| OutputError::Io { option, path: path.to_owned(), source };
        let (file, is_new) = match OpenOptions::new().write(true).create_new(true).open(&real) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let open =
                    || if is_special(&real) { open_special(&real) } else { OpenOptions::new().write(true).open(&real) };
                (open().map_err(io)?, false)
            }
            Err(error) => return Err(io(error)),
        };
        let is_special = is_special(&real);
        #[cfg(unix)]
        if !is_special {
            use rustix::fs::{FlockOperation, flock};
            // Some network file systems have no locks; a lock that fails for another reason does not mean a
            // second writer.
            if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK) {
                return Err(OutputError::Busy { option, path: path.to_owned() });
            }
        }
        Ok(Self { file, real, is_new, is_special })
    }

    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Discards the file's content.
    pub fn empty(&mut self) -> io::Result<()> {
        self.cut(0)
    }

    /// Truncates to `length` bytes.
    pub fn cut(&mut self, length: u64) -> io::Result<()> {
        if self.is_special {
            return Ok(());
        }
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length)).map(drop)
    }

    /// Syncs everything to disk, including the name of a new file.
    pub fn sync(&self) -> io::Result<()> {
        if self.is_special {
            return Ok(());
        }
        self.file.sync_all()?;
        if self.is_new { sync_folder_of(&self.real) } else { Ok(()) }
    }

    /// Removes the file if this process created it.
    pub fn take_back(self) {
        if self.is_new {
            let _ = std::fs::remove_file(&self.real);
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
