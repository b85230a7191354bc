//! The connection to qnnscope: a socket, or this process's file in a folder. Writing never raises a signal and never
//! waits beyond its time limit.

#![expect(unsafe_code, reason = "FFI")]

use super::settings::SinkPath;
use super::system;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The program's file descriptors start low, and some programs close all of those; ours is moved out of the way.
const LOWEST_DESCRIPTOR: libc::c_int = 400;

/// An open connection.
pub(super) struct Connection {
    descriptor: OwnedFd,
    /// Device and inode: if the descriptor now refers to something else, the program closed ours and owns it.
    identity: (u64, u64),
    is_socket: bool,
    /// The rest of a partially written line.
    rest: Vec<u8>,
}

/// How far a write got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrote {
    /// All of it.
    All,
    /// The reader is slow; nothing is lost, but new data has to wait.
    Busy,
    /// The reader is gone, or the program closed the descriptor.
    Gone,
}

impl Connection {
    /// Opens the connection; for a folder, a new file for this process.
    pub fn open(sink: &SinkPath) -> io::Result<Self> {
        let (descriptor, is_socket) = match sink {
            SinkPath::Socket(path) => (OwnedFd::from(UnixStream::connect(path)?), true),
            SinkPath::Folder(folder) => (OwnedFd::from(new_file(folder)?), false),
        };
        let descriptor = lifted(descriptor);
        let identity = identity(descriptor.as_raw_fd()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { descriptor, identity, is_socket, rest: Vec::new() })
    }

    /// Writes whole lines, waiting at most `patience` for a reader.
    pub fn write(&mut self, lines: &[u8], patience: Duration) -> Wrote {
        let until = Instant::now() + patience;
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let (wrote, sent) = self.push(&rest, until);
            if wrote != Wrote::All {
                self.rest = rest[sent..].to_vec();
                return wrote;
            }
        }
        let (wrote, sent) = self.push(lines, until);
        match wrote {
            // Half a line must be followed by its other half.
            Wrote::Busy if sent > 0 => {
                self.rest = lines[sent..].to_vec();
                Wrote::All
            }
            other => other,
        }
    }

    /// Bytes written before it finished, gave up waiting, or failed.
    fn push(&self, bytes: &[u8], until: Instant) -> (Wrote, usize) {
        let raw = self.descriptor.as_raw_fd();
        if identity(raw) != Some(self.identity) {
            return (Wrote::Gone, 0);
        }
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = &bytes[sent..];
            // SAFETY: pointer and length are those of a slice; the descriptor is ours, as just checked.
            let count = unsafe {
                if self.is_socket {
                    libc::send(raw, rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
                } else {
                    libc::write(raw, rest.as_ptr().cast(), rest.len())
                }
            };
            if let Ok(count @ 1..) = usize::try_from(count) {
                sent += count;
                continue;
            }
            match io::Error::last_os_error().kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return (Wrote::Busy, sent);
                    }
                    let mut poll = libc::pollfd { fd: raw, events: libc::POLLOUT, revents: 0 };
                    let wait = libc::c_int::try_from(left.as_millis()).unwrap_or(100).clamp(1, 100);
                    // SAFETY: one valid record.
                    unsafe { libc::poll(&raw mut poll, 1, wait) };
                }
                _ => return (Wrote::Gone, sent),
            }
        }
        (Wrote::All, sent)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if identity(self.descriptor.as_raw_fd()) != Some(self.identity) {
            // The program owns the number now: it must not be closed here. A dummy descriptor takes its place.
            // SAFETY: the descriptor is given up, not closed; -1 would not be a valid OwnedFd, so a new one is opened.
            let spare = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
            if spare >= 0 {
                // SAFETY: just opened, owned by nobody else.
                let spare = unsafe { OwnedFd::from_raw_fd(spare) };
                std::mem::forget(std::mem::replace(&mut self.descriptor, spare));
            }
        }
    }
}

fn new_file(folder: &Path) -> io::Result<std::fs::File> {
    let name = format!("{}.{}.tap", std::process::id(), system::now_ns());
    OpenOptions::new().append(true).create_new(true).mode(0o600).open(folder.join(name))
}

/// The same file under a number that programs do not reach, if possible.
fn lifted(descriptor: OwnedFd) -> OwnedFd {
    // SAFETY: duplicates a descriptor of ours.
    let higher = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LOWEST_DESCRIPTOR) };
    if higher < 0 {
        return descriptor;
    }
    // SAFETY: just made, owned by nobody else.
    unsafe { OwnedFd::from_raw_fd(higher) }
}

fn identity(descriptor: libc::c_int) -> Option<(u64, u64)> {
    // SAFETY: a record of numbers; all zero bytes are a valid value.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the out pointer is valid; a descriptor that is not open is an error.
    (unsafe { libc::fstat(descriptor, &raw mut found) } == 0).then_some((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_slow_reader_gets_every_byte_in_order_and_a_gone_one_is_noticed() {
        let folder = std::env::temp_dir().join(format!("qnnscope-tap-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut connection = Connection::open(&SinkPath::Socket(path)).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        // More than a socket holds: writing stops without blocking, and half a line is kept.
        let line = vec![b'x'; 300_000];
        let mut accepted = 0;
        while connection.write(&line, Duration::ZERO) == Wrote::All {
            accepted += 1;
            assert!(accepted < 1000, "sockets are bounded");
        }
        assert!(accepted >= 1 && !connection.rest.is_empty());
        let read = std::thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all
        });
        while connection.write(b"end", Duration::from_secs(5)) != Wrote::All {}
        drop(connection);
        let all = read.join().unwrap();
        assert_eq!(all.len(), accepted * line.len() + 3);
        assert!(all.ends_with(b"xend"));
        let again = folder.join("again");
        let listener = UnixListener::bind(&again).unwrap();
        let mut connection = Connection::open(&SinkPath::Socket(again)).unwrap();
        drop((listener.accept().unwrap(), listener));
        let gone = (0..10).any(|_| connection.write(b"x\n", Duration::ZERO) == Wrote::Gone);
        assert!(gone, "no signal, no wait");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_descriptor_that_the_program_took_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("qnnscope-tap-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut connection = Connection::open(&SinkPath::Folder(folder.clone())).unwrap();
        assert_eq!(connection.write(b"one\n", Duration::ZERO), Wrote::All);
        let raw = connection.descriptor.as_raw_fd();
        let theirs = std::fs::File::create(folder.join("theirs")).unwrap();
        // SAFETY: puts another file behind our number, as a program may that closes everything and opens its own.
        unsafe { libc::dup2(theirs.as_raw_fd(), raw) };
        assert_eq!(connection.write(b"two\n", Duration::ZERO), Wrote::Gone);
        drop(connection);
        assert_eq!(std::fs::read(folder.join("theirs")).unwrap(), b"");
        // SAFETY: only asks about the number, which is still the program's.
        assert!(unsafe { libc::fcntl(raw, libc::F_GETFD) } >= 0, "it was not closed");
        // SAFETY: the test made it.
        unsafe { libc::close(raw) };
        std::fs::remove_dir_all(folder).unwrap();
    }
}
