//! A shell command that runs on a device, as its output comes.

use super::error::DeviceError;
use tokio::sync::mpsc;

/// Pieces of output that may wait before the device is slowed down.
const CAPACITY: usize = 64;

/// What a stream gives.
#[derive(Debug)]
pub enum Piece {
    /// Bytes, as they came; line ends fall anywhere.
    Output(Vec<u8>),
    /// The stream broke. Nothing follows.
    Failed(DeviceError),
}

/// A running command. Its end is the end of the pieces; whether it ended well only a marker in its output can tell.
/// Dropping it ends the command.
#[derive(Debug)]
pub struct ShellStream {
    pieces: mpsc::Receiver<Piece>,
    stdin: Option<mpsc::UnboundedSender<Vec<u8>>>,
    pending: Vec<u8>,
    /// Where the first line in `pending` that was not given yet begins.
    start: usize,
}

/// The side that feeds a [`ShellStream`].
#[derive(Debug)]
pub struct StreamFeed {
    /// Takes output and failures.
    pub pieces: mpsc::Sender<Piece>,
    /// Gives what is to be written to the command. Closed, or an empty piece: there will be no more.
    pub stdin: mpsc::UnboundedReceiver<Vec<u8>>,
    /// Wakes whoever waits on `stdin`, by an empty piece.
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

    /// The next whole line without its line end, lines being cut at `MAX_LINE_BYTES`; the rest of the output without a
    /// line end is given too. `None` at the end.
    pub async fn next_line(&mut self) -> Option<Result<Vec<u8>, DeviceError>> {
        let mut searched = self.start;
        loop {
            if let Some(length) = self.pending[searched..].iter().position(|byte| *byte == b'\n') {
                let end = searched + length;
                let line = self.pending[self.start..end].to_vec();
                self.start = end + 1;
                return Some(Ok(line));
            }
            // What was given is dropped once per piece, not once per line.
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

    /// Exactly so many bytes. `None` where the stream ends before.
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

    /// Writes to the command's standard input; without effect when it has ended.
    pub fn write(&self, bytes: &[u8]) {
        if let Some(stdin) = &self.stdin
            && !bytes.is_empty()
        {
            let _ = stdin.send(bytes.to_vec());
        }
    }

    /// Closes the command's standard input where the transport can do that without ending the command (this machine);
    /// over adb it ends the command.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }
}

/// Longest line that is kept whole.
pub const MAX_LINE_BYTES: usize = 1 << 20;
