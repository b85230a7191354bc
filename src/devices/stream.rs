//! A shell command running on a device, with its output as a stream.

use super::error::DeviceError;
use tokio::sync::mpsc;

/// Pieces of output buffered before the device is slowed down.
const CAPACITY: usize = 64;

/// What a stream yields.
#[derive(Debug)]
pub enum Piece {
    /// Bytes as received; line ends fall anywhere.
    Output(Vec<u8>),
    /// The stream broke. Nothing follows.
    Failed(DeviceError),
}

/// A running command. The pieces end with it; only a marker in its output shows whether it succeeded. Dropping it ends
/// the command.
#[derive(Debug)]
pub struct ShellStream {
    pieces: mpsc::Receiver<Piece>,
    stdin: Option<mpsc::UnboundedSender<Vec<u8>>>,
    pending: Vec<u8>,
    /// Start of the first line in `pending` not returned yet.
    start: usize,
}

/// The side that feeds a [`ShellStream`].
#[derive(Debug)]
pub struct StreamFeed {
    /// Receives output and failures.
    pub pieces: mpsc::Sender<Piece>,
    /// Provides data for the command's input. If it is closed, or yields an empty piece, there is no more.
    pub stdin: mpsc::UnboundedReceiver<Vec<u8>>,
    /// Wakes a waiter on `stdin` with an empty piece.
    pub wake: mpsc::WeakUnboundedSender<Vec<u8>>,
}

impl ShellStream {
    /// A stream and the side that feeds it.
    pub fn new() -> (Self, StreamFeed) {
        let (sender, pieces) = mpsc::channel(CAPACITY);
        let (stdin, written) = mpsc::unbounded_channel();
        let wake = stdin.downgrade();
        (
            Self { pieces, stdin: Some(stdin), pending: Vec::new(), start: 0 },
            StreamFeed { pieces: sender, stdin: written, wake },
        )
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Piece> {
        self.pieces.recv().await
    }

    /// The next whole line without its line end, cut at `MAX_LINE_BYTES`; also the rest of the output without a line
    /// end. `None` at the end.
    pub async fn next_line(&mut self) -> Option<Result<Vec<u8>, DeviceError>> {
        let mut searched = self.start;
        loop {
            if let Some(length) = self.pending[searched..].iter().position(|byte| *byte == b'\n') {
                let end = searched + length;
                let line = self.pending[self.start..end].to_vec();
                self.start = end + 1;
                return Some(Ok(line));
            }
            // Returned data is dropped once per piece, not per line.
            self.pending.drain(..std::mem::take(&mut self.start));
            searched = self.pending.len();
            if searched >= MAX_LINE_BYTES {
                return Some(Ok(std::mem::take(&mut self.pending)));
            }
            match self.pieces.recv().await {
                Some(Piece::Output(bytes)) => self.pending.extend_from_slice(&bytes),
                Some(Piece::Failed(error)) => return Some(Err(error)),
                None if self.pending.is_empty() => return None,
                None => return Some(Ok(std::mem::take(&mut self.pending))),
            }
        }
    }

    /// Exactly this many bytes. `None` if the stream ends before.
    pub async fn next_bytes(&mut self, count: usize) -> Option<Result<Vec<u8>, DeviceError>> {
        self.pending.drain(..std::mem::take(&mut self.start));
        while self.pending.len() < count {
            match self.pieces.recv().await? {
                Piece::Output(bytes) => self.pending.extend_from_slice(&bytes),
                Piece::Failed(error) => return Some(Err(error)),
            }
        }
        self.start = count;
        Some(Ok(self.pending[..count].to_vec()))
    }

    /// Writes to the command's standard input; no effect if it has ended.
    pub fn write(&self, bytes: &[u8]) {
        if let Some(stdin) = &self.stdin
            && !bytes.is_empty()
        {
            let _ = stdin.send(bytes.to_vec());
        }
    }

    /// Closes the command's standard input if the transport can do that without ending the command (this machine); over
    /// adb it ends the command.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }
}

/// Longest line kept whole.
pub const MAX_LINE_BYTES: usize = 1 << 20;
