//! One device through the adb server, by crate adb_client.
//!
//! adb_client blocks, so each command has a thread, plus adb_client's own reader thread. All commands use adb's `exec:`
//! service: unlike `shell:` it changes no bytes (old devices insert a terminal), every adbd since Android 5 has it, and
//! it takes standard input. It reports no exit status; the marker of [`crate::devices::EndMarker`] does, on every
//! device alike.

use super::AdbServer;
use crate::devices::device::{Pending, Progress, Transport};
use crate::devices::stream::{Piece, ShellStream, StreamFeed};
use crate::devices::{DeviceError, DeviceState};
use crate::event::{DeviceKind, clean_text};
use adb_client::{ADBDeviceExt, RustADBError, server_device::ADBServerDevice};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Connections not closed yet.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Counts a connection for as long as its thread exists.
struct Open;

impl Open {
    fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until dropped streams are closed and their last data is sent; called at the end of the process,
/// which kills the threads that do this.
pub fn settle(limit: Duration) {
    let deadline = Instant::now() + limit;
    while OPEN.load(Ordering::Relaxed) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A device behind an adb server.
#[derive(Debug, Clone)]
pub struct AdbTransport {
    server: AdbServer,
    serial: String,
}

impl AdbTransport {
    /// The device with this serial; makes no request yet.
    pub fn new(server: AdbServer, serial: &str) -> Self {
        Self { server, serial: serial.to_owned() }
    }

    fn open(&self) -> ADBServerDevice {
        ADBServerDevice::new(self.serial.clone(), Some(self.server.address()))
    }

    /// Maps adb_client's error to ours.
    fn error(&self, error: RustADBError, action: &str) -> DeviceError {
        let id = self.serial.clone();
        let action = action.to_owned();
        match error {
            RustADBError::ADBRequestFailed(message) => refusal(id, action, &clean_text(message.trim())),
            RustADBError::IOError(source) => match source.kind() {
                io::ErrorKind::ConnectionRefused => {
                    DeviceError::NoServer { server: self.server.to_string(), reason: source.to_string() }
                }
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::NotConnected => DeviceError::LinkLost { id, action },
                // adb_client wraps the device's message about a file it cannot provide.
                io::ErrorKind::Other => DeviceError::Refused { action, message: clean_text(&source.to_string()) },
                _ => DeviceError::Io { action, source },
            },
            other => DeviceError::Refused { action, message: clean_text(&other.to_string()) },
        }
    }
}

/// Interprets a refusal of the server.
fn refusal(id: String, action: String, message: &str) -> DeviceError {
    if message.contains("not found") {
        return DeviceError::NotFound { id, others: String::new() };
    }
    if message.contains("unauthorized") {
        return DeviceError::NotReady { id, state: DeviceState::Unauthorized };
    }
    if message.contains("offline") {
        return DeviceError::NotReady { id, state: DeviceState::Offline };
    }
    if message.contains("still authorizing") {
        return DeviceError::NotReady { id, state: DeviceState::Authorizing };
    }
    if message.contains("no permissions") || message.contains("insufficient permissions") {
        return DeviceError::NotReady { id, state: DeviceState::NoPermissions };
    }
    if message == "closed" || message.contains("connect error") {
        return DeviceError::LinkLost { id, action };
    }
    DeviceError::Refused { action, message: message.to_owned() }
}

impl Transport for AdbTransport {
    fn id(&self) -> &str {
        &self.serial
    }

    fn kind(&self) -> DeviceKind {
        DeviceKind::Adb
    }

    fn shell(&self, script: &str) -> ShellStream {
        let (stream, feed) = ShellStream::new();
        let StreamFeed { pieces, stdin, wake } = feed;
        let transport = self.clone();
        let script = script.to_owned();
        let failed = pieces.clone();
        let open = Open::new();
        let spawned = std::thread::Builder::new().name("adb-shell".to_owned()).spawn(move || {
            let _open = open;
            let mut device = transport.open();
            let mut input = Input { stdin, current: Vec::new(), at: 0 };
            let output = Box::new(Output { pieces: pieces.clone(), wake });
            // Ends when the command has ended (the output wakes the input), or when the stream was dropped; the
            // connection is then shut down, which hangs up the command.
            if let Err(error) = device.exec(&script, &mut input, output) {
                let _ = pieces.blocking_send(Piece::Failed(transport.error(error, "starting a command")));
            }
        });
        if let Err(source) = spawned {
            let error = DeviceError::Io { action: "start a thread for adb".to_owned(), source };
            let _ = failed.try_send(Piece::Failed(error));
        }
        stream
    }

    fn revive(&self) -> Pending<'_, Result<(), DeviceError>> {
        Box::pin(async move {
            self.server.ensure().await?;
            // A server that was restarted knows its USB devices, but not those on the network.
            let known = self.server.devices().await?;
            if self.serial.contains(':') && !known.iter().any(|device| device.serial == self.serial) {
                self.server.connect_to(&self.serial).await?;
            }
            Ok(())
        })
    }

    fn push<'a>(&'a self, from: &'a Path, to: &'a str, progress: Progress) -> Pending<'a, Result<(), DeviceError>> {
        let transport = self.clone();
        let action = format!("sending {}", clean_text(&from.to_string_lossy()));
        let from = from.to_owned();
        let to = to.to_owned();
        Box::pin(in_thread(action.clone(), move |cancelled| {
            let file = File::open(&from).map_err(|source| DeviceError::Io {
                action: format!("read {}", clean_text(&from.to_string_lossy())),
                source,
            })?;
            let counted = Counted { inner: file, bytes: 0, progress, cancelled };
            transport.open().push(counted, &to).map_err(|error| transport.error(error, &action))
        }))
    }

    fn pull<'a>(&'a self, from: &'a str, to: PathBuf, progress: Progress) -> Pending<'a, Result<(), DeviceError>> {
        let transport = self.clone();
        let action = format!("fetching {}", clean_text(from));
        let from = from.to_owned();
        Box::pin(in_thread(action.clone(), move |cancelled| {
            let write =
                |source| DeviceError::Io { action: format!("write {}", clean_text(&to.to_string_lossy())), source };
            let file = File::create(&to).map_err(write)?;
            let mut counted = Counted { inner: file, bytes: 0, progress, cancelled };
            transport.open().pull(&from, &mut counted).map_err(|error| transport.error(error, &action))?;
            counted.inner.sync_data().map_err(write)
        }))
    }
}

/// Runs blocking work on its own thread; dropping the future ends the work at its next block of data. (Not tokio's
/// pool: a hanging device must not use up its threads or delay the end of the process.)
async fn in_thread(
    action: String,
    work: impl FnOnce(Arc<AtomicBool>) -> Result<(), DeviceError> + Send + 'static,
) -> Result<(), DeviceError> {
    struct CancelOnDrop(Arc<AtomicBool>);
    impl Drop for CancelOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let cancel = CancelOnDrop(Arc::new(AtomicBool::new(false)));
    let (sender, receiver) = oneshot::channel();
    let cancelled = cancel.0.clone();
    std::thread::Builder::new()
        .name("adb-copy".to_owned())
        .spawn(move || {
            let _ = sender.send(work(cancelled));
        })
        .map_err(|source| DeviceError::Io { action: "start a thread for adb".to_owned(), source })?;
    let ended = || DeviceError::Io { action, source: io::Error::other("the copying thread ended") };
    receiver.await.unwrap_or_else(|_| Err(ended()))
}

/// A file whose bytes are counted as they pass.
struct Counted {
    inner: File,
    bytes: u64,
    progress: Progress,
    cancelled: Arc<AtomicBool>,
}

impl Counted {
    fn count(&mut self, bytes: usize) -> io::Result<usize> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::other("cancelled"));
        }
        self.bytes += bytes as u64;
        (self.progress)(self.bytes);
        Ok(bytes)
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.count(bytes)
    }
}

impl Write for Counted {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let bytes = self.inner.write(buffer)?;
        self.count(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Standard input of a command, from a channel.
struct Input {
    stdin: mpsc::UnboundedReceiver<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.current.len() {
            match self.stdin.blocking_recv() {
                Some(bytes) if !bytes.is_empty() => {
                    self.current = bytes;
                    self.at = 0;
                }
                _ => return Ok(0),
            }
        }
        let rest = &self.current[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Output of a command, into a channel; a full channel slows the device down.
struct Output {
    pieces: mpsc::Sender<Piece>,
    wake: mpsc::WeakUnboundedSender<Vec<u8>>,
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(input) = self.wake.upgrade() {
            let _ = input.send(Vec::new());
        }
    }
}

impl Write for Output {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let piece = Piece::Output(buffer.to_vec());
        self.pieces.blocking_send(piece).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
