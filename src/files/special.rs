//! Pipes and devices: tells them apart from files, and opens them without waiting forever.

use std::fs::{File, FileType};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long to wait for the other end of a named pipe. Whoever makes one starts both ends at about the same
/// time.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// True for a pipe or a device, such as `/dev/null`: it is written to, never replaced by a file.
pub fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Opens a pipe or a device for writing. Opening a named pipe succeeds once another process reads it.
pub(super) fn open_special(path: &Path) -> io::Result<File> {
    let open = |path: &Path| File::options().write(true).open(path);
    if !is_named_pipe(path) {
        return open(path);
    }
    let path = path.to_owned();
    within(PATIENCE, "read", move || open(&path))
}

/// The result of `open`, unless it takes longer than `patience`. A thread that waits in vain ends with the
/// process.
pub(super) fn within(
    patience: Duration,
    what: &str,
    open: impl FnOnce() -> io::Result<File> + Send + 'static,
) -> io::Result<File> {
    let (done, opened) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || done.send(open()));
    opened.recv_timeout(patience).unwrap_or_else(|_| {
        let seconds = patience.as_secs();
        Err(io::Error::other(format!("it is a named pipe, and no other process came to {what} it within {seconds} s")))
    })
}

pub(super) fn is_named_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| is_pipe(metadata.file_type()))
}

pub(super) fn is_pipe(kind: FileType) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        kind.is_fifo()
    }
    #[cfg(not(unix))]
    {
        let _ = kind;
        false
    }
}

/// What it is instead of a file, for display.
pub(super) fn kind_text(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    if kind.is_dir() { "a folder" } else { "a device" }
}
