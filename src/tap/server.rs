//! Takes the connections of the tapped processes, one reader each.

use super::fold::{Fold, Out, RunIds};
use super::line::{self, Line, Lines};
use crate::event::{Event, LogLevel, LogLine, LogSource, TapRecord, TapSeen, now_us};
use crate::files::{private_folder, read_at_most};
use crate::probes::process::memory;
use crate::session::Source;
use qnnscope_core::tap::{Execution, Process, RING_MAGIC, TAP_PROTOCOL, TapMessage, unread};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How often the memory of the processes is looked at.
const MEMORY: Duration = Duration::from_millis(250);
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// Largest ring file that is read.
const LARGEST_RING: u64 = 64 << 20;
/// How long what was sent before the end of the program may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The tap cannot be listened to.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ServeError {
    #[error("cannot make the folder of the tap's socket: {0}; $TMPDIR must name one that can be written to")]
    Folder(std::io::Error),
    #[error("cannot listen on {path}: {source}")]
    Listen { path: PathBuf, source: std::io::Error },
    #[error("{0} is there already and is no socket that nobody listens on")]
    Taken(PathBuf),
}

/// A socket that processes connect to. It goes when this is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    folder: Option<TempDir>,
}

impl Listener {
    /// A socket in a folder of its own that nobody else can read.
    ///
    /// # Errors
    /// There is no room for temporary files, or their folder has too long a name.
    pub fn private() -> Result<Self, ServeError> {
        let folder = private_folder().map_err(ServeError::Folder)?;
        let path = folder.path().join("tap");
        let socket = UnixListener::bind(&path).map_err(|source| ServeError::Listen { path: path.clone(), source })?;
        Ok(Self { socket, path, folder: Some(folder) })
    }

    /// A socket of the user's choice. One that a dead process left there is replaced; nothing else is.
    ///
    /// # Errors
    /// The path is in use, or cannot be used.
    pub fn at(path: &Path) -> Result<Self, ServeError> {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt};
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(metadata) = std::fs::symlink_metadata(&path) {
            let is_dead = metadata.file_type().is_socket() && std::os::unix::net::UnixStream::connect(&path).is_err();
            if !is_dead || std::fs::remove_file(&path).is_err() {
                return Err(ServeError::Taken(path));
            }
        }
        let listen = |source| ServeError::Listen { path: path.clone(), source };
        let socket = UnixListener::bind(&path).map_err(listen)?;
        // What programs tell is not for other users.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(listen)?;
        Ok(Self { socket, path, folder: None })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A place for small files beside it, if it has a folder of its own.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What the server tells beside the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The tap was loaded into a process.
    Loaded(u32),
    /// A process uses QNN.
    Process(u32),
}

/// What the readers of all processes share.
#[derive(Debug)]
struct Shared {
    source: Source,
    told: mpsc::UnboundedSender<Told>,
    next: AtomicU32,
    ids: RunIds,
    /// Processes that are connected, by their ids.
    going: Mutex<HashMap<u32, Arc<Mutex<Fold>>>>,
}

/// Listens to the processes of a program.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// A server whose events go to `source`, and what it tells beside them to the receiver.
    pub fn new(source: Source) -> (Self, mpsc::UnboundedReceiver<Told>) {
        let (told, receiver) = mpsc::unbounded_channel();
        let shared =
            Shared { source, told, next: AtomicU32::new(0), ids: RunIds::default(), going: Mutex::new(HashMap::new()) };
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// Serves until `over` is set, and then what still arrives for a moment.
    pub async fn serve(&self, listener: &Listener, mut over: watch::Receiver<bool>) {
        let mut readers = JoinSet::new();
        let mut tick = tokio::time::interval(MEMORY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut end = None;
        loop {
            let patience = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                connection = listener.socket.accept() => match connection {
                    Ok((stream, _)) => drop(readers.spawn(read(stream, self.shared.clone()))),
                    // Too many open files: those that are there go on, and it is tried again.
                    Err(_) => tokio::time::sleep(MEMORY).await,
                },
                Some(_) = readers.join_next() => {}
                _ = tick.tick() => self.shared.look().await,
                () = patience => break,
                _ = over.wait_for(|over| *over), if end.is_none() => {
                    end = Some(tokio::time::Instant::now() + LAST_WORDS);
                }
            }
            // Connections that wait are accepted first, so nothing that was said is left out.
            if end.is_some() && readers.is_empty() {
                let waiting = tokio::time::timeout(Duration::ZERO, listener.socket.accept()).await;
                match waiting {
                    Ok(Ok((stream, _))) => drop(readers.spawn(read(stream, self.shared.clone()))),
                    _ => break,
                }
            }
        }
        readers.shutdown().await;
        // Processes that outlive the program: their figures end here.
        let going: Vec<_> = self.shared.lock().drain().map(|(_, fold)| fold).collect();
        for fold in going {
            let mut out = Vec::new();
            fold.lock().unwrap_or_else(PoisonError::into_inner).end(&mut out);
            self.shared.send(out).await;
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<Mutex<Fold>>>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, out: Vec<Out>) {
        for out in out {
            self.source.send_at(out.t_us, out.run, out.event).await;
        }
    }

    /// Looks at the memory of every process.
    async fn look(&self) {
        let going: Vec<(u32, Arc<Mutex<Fold>>)> = self.lock().iter().map(|(pid, fold)| (*pid, fold.clone())).collect();
        for (pid, fold) in going {
            let Some(memory) = memory(Some(pid)) else { continue };
            let mut out = Vec::new();
            fold.lock().unwrap_or_else(PoisonError::into_inner).memory(now_us(), memory, &mut out);
            self.send(out).await;
        }
    }

    fn greet(&self, process: &Process) -> Arc<Mutex<Fold>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let parent = self.lock().get(&process.parent_pid).filter(|_| process.forked).cloned();
        let fold = Arc::new(Mutex::new(Fold::new(number, "local", self.ids.clone(), parent)));
        self.lock().insert(process.pid, fold.clone());
        let _ = self.told.send(Told::Process(process.pid));
        fold
    }

    /// Something of the program as a whole.
    async fn say(&self, seen: TapSeen) {
        self.source.send(None, Event::Tap(Box::new(TapRecord { process: None, seen }))).await;
    }
}

/// Reads what one process says to its end.
async fn read(mut stream: UnixStream, shared: Arc<Shared>) {
    let mut feed = Feed::new(shared.clone());
    let mut bytes = vec![0; PIECE];
    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
        if !feed.take(&bytes[..count]).await {
            break;
        }
    }
    feed.end().await;
}

/// The words of one process, from wherever they come.
struct Feed {
    shared: Arc<Shared>,
    lines: Lines,
    fold: Option<(u32, Arc<Mutex<Fold>>)>,
    /// Where executions are that did not get out of a process that was killed.
    ring: Option<PathBuf>,
    /// The executions that came last.
    last: Vec<Execution>,
    damaged: u64,
    unknown: u64,
    early: u64,
}

impl Feed {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            lines: Lines::default(),
            fold: None,
            ring: None,
            last: Vec::new(),
            damaged: 0,
            unknown: 0,
            early: 0,
        }
    }

    /// Takes bytes in; false if nothing after them can be understood.
    async fn take(&mut self, bytes: &[u8]) -> bool {
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

    async fn message(&mut self, message: TapMessage) {
        let mut out = Vec::new();
        match (&message, &self.fold) {
            (TapMessage::Loaded(process), _) => {
                let _ = self.shared.told.send(Told::Loaded(process.pid));
                let seen = TapSeen::Loaded { pid: process.pid, executable: process.executable.clone() };
                return self.shared.say(seen).await;
            }
            (TapMessage::Hello(process), None) => {
                self.ring = process.ring.as_ref().map(PathBuf::from);
                let fold = self.shared.greet(process);
                fold.lock().unwrap_or_else(PoisonError::into_inner).take(message.clone(), &mut out);
                self.fold = Some((process.pid, fold));
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

    async fn end(mut self) {
        let mut out = Vec::new();
        let too_long = self.lines.take_too_long();
        let cut = u64::from(self.lines.is_cut());
        match self.fold.take() {
            Some((pid, fold)) => {
                let mut locked = fold.lock().unwrap_or_else(PoisonError::into_inner);
                if !locked.is_orderly() {
                    let mut left = self.ring.as_deref().map(left).unwrap_or_default();
                    // A process may be killed after it sent some and before it took them out.
                    left.retain(|execution| !self.last.contains(execution));
                    if !left.is_empty() {
                        locked.take(TapMessage::Executions(left), &mut out);
                    }
                }
                for (count, reason) in [
                    (self.damaged, "they could not be read"),
                    (self.early, "they came before the process said who it is"),
                    (self.unknown, "a newer tap sent them"),
                    (too_long, "they were too long"),
                    (cut, "the process ended within one"),
                ] {
                    if count > 0 {
                        locked.lost("messages", reason, count, &mut out);
                    }
                }
                locked.end(&mut out);
                drop(locked);
                let mut going = self.shared.lock();
                // The number of a process is used again; an exec goes on with it.
                if going.get(&pid).is_some_and(|known| Arc::ptr_eq(known, &fold)) {
                    going.remove(&pid);
                }
            }
            None => {
                let count = self.damaged + self.unknown + too_long + self.early;
                if count > 0 {
                    let (source, reason) = ("tap: messages".to_owned(), "nobody said whose they are".to_owned());
                    out.push(Out { t_us: now_us(), run: None, event: Event::Lost { source, reason, count } });
                }
            }
        }
        self.shared.send(out).await;
    }
}

/// The executions in the ring file of a process that ended without a word; the file goes. A process may name any file: what is
/// no ring of ours stays as it is.
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

/// Everything that is made of the words of one process, without a socket: for fuzzing.
pub fn replay(bytes: &[u8]) -> crate::store::Store {
    let mut fold = Fold::new(0, "local", RunIds::default(), None);
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
