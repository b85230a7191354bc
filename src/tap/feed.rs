//! The messages of one process as they arrive, by whatever transport.

use super::binaries;
use super::fold::{FewRuns, Fold, Out};
use super::line::{self, Line, Lines};
use super::shared::{Rejoined, Shared, is_alive};
use crate::backends::on_device::clock::WallClock;
use crate::event::{Event, LogLevel, LogLine, LogSource, TapSeen, now_us};
use crate::files::read_at_most;
use qnnscope_core::tap::{Binary, Execution, RING_MAGIC, TAP_PROTOCOL, TapMessage, unread};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

/// Bytes read at once.
const PIECE: usize = 64 << 10;
/// What is lost of a process that continues unobserved.
const REST: &str = "all that followed";
/// Largest ring file that is read.
pub(super) const LARGEST_RING: u64 = 64 << 20;

/// Reads one local process's messages to their end.
pub(super) async fn read(mut stream: UnixStream, shared: Arc<Shared>) {
    let Some((mut first, again)) = opening(&mut stream).await else { return };
    if let Some(pid) = again {
        // The reader of the process's previous connection continues with this one.
        let Err(left) = shared.hand_over(pid, (stream, first)).await else { return };
        (stream, first) = left;
    }
    let mut feed = Feed::new(shared, None);
    let mut next = Some((stream, first));
    let mut is_closed = false;
    while let Some((mut stream, first)) = next.take() {
        let is_understood = feed.pour(&mut stream, first).await;
        drop(stream);
        if !is_understood || feed.is_orderly() {
            break;
        }
        // If the process still exists, its program closed the connection, and the tap will open another one.
        if let Some((pid, _)) = &feed.fold
            && is_alive(*pid)
        {
            match feed.shared.wait_for(*pid).await {
                Rejoined::With(connected) => {
                    feed.cut();
                    next = Some(connected);
                }
                Rejoined::Another => {}
                Rejoined::Not { lived_on } => is_closed = lived_on,
            }
        }
    }
    let left =
        if feed.is_orderly() { Vec::new() } else { feed.ring().map(|ring| left(Path::new(ring))).unwrap_or_default() };
    feed.is_closed = is_closed;
    feed.end(left).await;
}

/// The start of a connection, at least its first line, and the process that announces its return in it, if
/// any.
async fn opening(stream: &mut UnixStream) -> Option<(Vec<u8>, Option<u32>)> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let count = stream.read(&mut piece).await.unwrap_or(0);
        bytes.extend_from_slice(&piece[..count]);
        let line = memchr::memchr(b'\n', &bytes).map(|end| &bytes[..end]);
        if line.is_some() || count == 0 || bytes.len() > line::MOST_BYTES {
            let again = line.and_then(|line| match line::read(line) {
                Line::Message(message) => match *message {
                    TapMessage::Again { pid, .. } => Some(pid),
                    _ => None,
                },
                _ => None,
            });
            return (!bytes.is_empty()).then_some((bytes, again));
        }
    }
}

/// The messages of one process.
#[derive(Debug)]
pub struct Feed {
    shared: Arc<Shared>,
    /// The clock of a device, whose timestamps are not this machine's.
    clock: Option<WallClock>,
    /// This machine's clock minus the process's, nanoseconds.
    offset_ns: i64,
    lines: Lines,
    fold: Option<(u32, Arc<Mutex<Fold>>)>,
    /// Where the executions are that a killed process did not send.
    ring: Option<String>,
    /// The executions received last.
    last: Vec<Execution>,
    /// Context binaries whose copies have not been fetched yet.
    wanted: VecDeque<Binary>,
    /// The program closed the connection for good and continues.
    is_closed: bool,
    /// Lines that arrived only in part, before the last one.
    cut: u64,
    damaged: u64,
    unknown: u64,
    early: u64,
}

/// Maximum number of context-binary copies waiting to be fetched.
const MOST_WANTED: usize = 256;

impl Feed {
    pub(super) fn new(shared: Arc<Shared>, clock: Option<WallClock>) -> Self {
        Self {
            shared,
            clock,
            offset_ns: 0,
            lines: Lines::default(),
            fold: None,
            ring: None,
            last: Vec::new(),
            wanted: VecDeque::new(),
            is_closed: false,
            cut: 0,
            damaged: 0,
            unknown: 0,
            early: 0,
        }
    }

    /// The process's ring file with unsent executions, as the process named it.
    pub fn ring(&self) -> Option<&str> {
        self.ring.as_deref()
    }

    /// The next context binary whose copy is needed; must be followed by [`Self::kept`].
    pub fn wanted(&self) -> Option<&Binary> {
        self.wanted.front()
    }

    /// Takes the copy of the next binary, or why there is none.
    pub async fn kept(&mut self, copy: Result<Vec<u8>, String>) {
        let (Some(binary), Some((_, fold))) = (self.wanted.pop_front(), &self.fold) else { return };
        let (process, library) = {
            let fold = fold.lock().unwrap_or_else(PoisonError::into_inner);
            (fold.process(), fold.library(binary.provider))
        };
        // A device's libraries are of no use on this machine.
        let library = library.filter(|_| self.clock.is_none()).map(PathBuf::from);
        if let Some(read) = self.shared.binaries.submit(process, &binary, copy, library.as_deref()) {
            binaries::say(&self.shared.source, process, read).await;
        }
    }

    /// True if the process announced its end.
    pub fn is_orderly(&self) -> bool {
        let is_orderly = |fold: &Mutex<Fold>| fold.lock().unwrap_or_else(PoisonError::into_inner).is_orderly();
        self.fold.as_ref().is_some_and(|(_, fold)| is_orderly(fold))
    }

    /// Reads a connection to its end; false if the rest cannot be understood.
    async fn pour(&mut self, stream: &mut UnixStream, first: Vec<u8>) -> bool {
        let mut bytes = first;
        let mut count = bytes.len();
        loop {
            if !self.take(&bytes[..count]).await {
                return false;
            }
            while let Some(binary) = self.wanted().cloned() {
                let folder = self.shared.folder.get().map(PathBuf::as_path);
                let kept = binaries::take(&binary, folder);
                self.kept(kept).await;
            }
            bytes.resize(PIECE, 0);
            count = match stream.read(&mut bytes).await {
                Ok(count @ 1..) => count,
                _ => return true,
            };
        }
    }

    /// Called when a connection has ended; later data arrives on another one.
    fn cut(&mut self) {
        self.cut += u64::from(self.lines.take_cut());
    }

    /// Processes bytes; false if anything after them cannot be understood.
    pub async fn take(&mut self, bytes: &[u8]) -> bool {
        let mut lines = Vec::new();
        self.lines.push(bytes, |line| {
            if !line.trim_ascii().is_empty() {
                lines.push(line::read(line));
            }
        });
        for line in lines {
            match line {
                Line::Message(message) => self.message(*message).await,
                Line::Newer { protocol, version } => {
                    let reason = format!(
                        "the tap library speaks protocol {protocol} (version {version}), this qnnscope {TAP_PROTOCOL}: use the \
                         library that came with it"
                    );
                    let line = LogLine::new(LogLevel::Warning, LogSource::Qnnscope, &reason);
                    self.shared.source.send(None, Event::Log(line)).await;
                    self.shared.say(TapSeen::NotReached { reason }).await;
                    return false;
                }
                Line::Unknown => self.unknown += 1,
                Line::Damaged => self.damaged += 1,
            }
        }
        true
    }

    async fn message(&mut self, mut message: TapMessage) {
        let mut out = Vec::new();
        if let (Some(clock), TapMessage::Loaded(process) | TapMessage::Hello(process)) = (&self.clock, &message) {
            let host_ns = i128::from(clock.host_us(process.epoch_us)) * 1000;
            self.offset_ns = i64::try_from(host_ns - i128::from(process.t_ns)).unwrap_or(0);
        }
        message.shift(self.offset_ns);
        match (&message, &self.fold) {
            (TapMessage::Loaded(process), _) => {
                self.shared.note_loaded(process.pid);
                let seen = TapSeen::Loaded { pid: process.pid, executable: process.executable.clone() };
                return self.shared.say(seen).await;
            }
            (TapMessage::Hello(process), None) => {
                self.ring.clone_from(&process.ring);
                let fold = self.shared.greet(process);
                fold.lock().unwrap_or_else(PoisonError::into_inner).take(message.clone(), &mut out);
                self.fold = Some((process.pid, fold));
            }
            (TapMessage::Binary(binary), Some(_)) => {
                if self.wanted.len() < MOST_WANTED {
                    self.wanted.push_back(binary.clone());
                }
            }
            (_, Some((_, fold))) => {
                if let TapMessage::Executions(some) = &message {
                    self.last.clone_from(some);
                }
                fold.lock().unwrap_or_else(PoisonError::into_inner).take(message, &mut out);
            }
            (_, None) => self.early += 1,
        }
        self.shared.send(out).await;
    }

    /// Called when the process has ended; `left` are the executions in its ring file.
    pub async fn end(mut self, mut left: Vec<Execution>) {
        while self.wanted().is_some() {
            self.kept(Err("the process ended before its copy was fetched".to_owned())).await;
        }
        let mut out = Vec::new();
        let too_long = self.lines.take_too_long();
        let cut = self.cut + u64::from(self.lines.is_cut());
        match self.fold.take() {
            Some((pid, fold)) => {
                let mut locked = fold.lock().unwrap_or_else(PoisonError::into_inner);
                if !locked.is_orderly() {
                    for execution in &mut left {
                        execution.shift(self.offset_ns);
                    }
                    // A process may be killed after sending some executions and before removing them.
                    left.retain(|execution| !self.last.contains(execution));
                    if !left.is_empty() {
                        locked.take(TapMessage::Executions(left), &mut out);
                    }
                }
                for (count, reason) in [
                    (self.damaged, "they could not be read"),
                    (self.early, "they came before the process identified itself"),
                    (self.unknown, "they came from a newer tap"),
                    (too_long, "they were too long"),
                    (cut, "the connection ended within one"),
                ] {
                    if count > 0 {
                        locked.lost("messages", reason, count, &mut out);
                    }
                }
                if self.is_closed {
                    let reason = "the program kept closing the tap's connection; how much more it sent is unknown";
                    locked.lost(REST, reason, 1, &mut out);
                }
                locked.end(&mut out);
                drop(locked);
                let mut going = self.shared.lock();
                // A pid may have been reused, or kept across an exec.
                if going.get(&pid).is_some_and(|known| Arc::ptr_eq(known, &fold)) {
                    going.remove(&pid);
                }
            }
            None => {
                let count = self.damaged + self.unknown + too_long + self.early;
                if count > 0 {
                    let (source, reason) = ("tap: messages".to_owned(), "their process is unknown".to_owned());
                    out.push(Out { t_us: now_us(), run: None, event: Event::Lost { source, reason, count } });
                }
            }
        }
        self.shared.send(out).await;
    }
}

/// The executions in the ring file of a process that ended without announcing it; the file is removed. A
/// process may name any file: one that is not our ring stays as it is.
fn left(path: &Path) -> Vec<Execution> {
    let is_plain = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    if !is_plain || path.extension().is_none_or(|ending| ending != "ring") {
        return Vec::new();
    }
    let Ok(bytes) = read_at_most(path, LARGEST_RING) else { return Vec::new() };
    if !bytes.starts_with(&RING_MAGIC.to_ne_bytes()) {
        return Vec::new();
    }
    let _ = std::fs::remove_file(path);
    unread(&bytes)
}

/// Does everything that is done with the messages of one process, without a socket: for fuzzing.
pub fn replay(bytes: &[u8]) -> crate::store::Store {
    let mut fold = Fold::new(0, "local", FewRuns::default(), None);
    let (mut lines, mut out, mut damaged) = (Lines::default(), Vec::new(), 0);
    for piece in bytes.chunks(1 + bytes.len() / 3) {
        lines.push(piece, |line| match line::read(line) {
            Line::Message(message) => fold.take(*message, &mut out),
            Line::Newer { .. } | Line::Unknown | Line::Damaged => damaged += 1,
        });
    }
    if damaged > 0 {
        fold.lost("messages", "they could not be read", damaged, &mut out);
    }
    fold.end(&mut out);
    let mut store = crate::store::Store::new();
    for (seq, Out { t_us, run, event }) in (0..).zip(out) {
        store.apply(&crate::event::Record { seq, t_us, run, event });
    }
    store
}
