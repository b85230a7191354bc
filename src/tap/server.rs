//! Accepts the connections of tapped processes, one reader each, and holds their shared state.

use super::binaries::Binaries;
use super::feed::{Feed, read};
use super::fold::{FewRuns, Fold, Out};
use crate::backends::on_device::clock::WallClock;
use crate::event::{Event, TapRecord, TapSeen, clean_text, now_us};
use crate::files::private_folder;
use crate::probes::process::{ProcessMemory, memory};
use crate::session::Source;
use qnnscope_core::tap::Process;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

/// How often the memory of the processes is read.
const MEMORY: Duration = Duration::from_millis(250);
/// How often a process with a closed connection is checked. It opens another one when it has data.
const LOOK: Duration = Duration::from_millis(100);
/// A process that still exists this long after its connection ended did not end with it.
const LIVES_ON: Duration = Duration::from_millis(400);
/// How long accepting a connection opened shortly before a process's end may take.
const ARRIVES_WITHIN: Duration = Duration::from_millis(300);
/// How long the reader of a closed connection may take to notice.
const NOTICES_WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of processes without QNN remembered.
const MOST_LOADED: usize = 256;
/// How long data sent before the program's end may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The tap cannot be listened to.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ServeError {
    #[error("cannot create the folder of the tap's socket: {0}; $TMPDIR must name a writable folder")]
    Folder(std::io::Error),
    #[error("cannot listen on {path}: {source}")]
    Listen { path: PathBuf, source: std::io::Error },
    #[error("{0} already exists and is not an unused socket")]
    Taken(PathBuf),
}

/// A socket that processes connect to. Removed on drop.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    folder: Option<TempDir>,
    /// Device and inode of the path while it is ours.
    file: Option<(u64, u64)>,
}

fn file(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|made| (made.dev(), made.ino()))
}

impl Listener {
    /// A socket in its own private folder.
    ///
    /// # Errors
    /// There is no room for temporary files, or their folder has too long a name.
    pub fn private() -> Result<Self, ServeError> {
        let folder = private_folder().map_err(ServeError::Folder)?;
        let path = folder.path().join("tap");
        let socket = UnixListener::bind(&path).map_err(|source| ServeError::Listen { path: path.clone(), source })?;
        Ok(Self { socket, file: file(&path), path, folder: Some(folder) })
    }

    /// A socket of the user's choice. One left by a dead process is replaced; nothing else is.
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
        // Program data is not for other users.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(listen)?;
        Ok(Self { socket, file: file(&path), path, folder: None })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True while processes find it under its path.
    fn is_there(&self) -> bool {
        self.file.is_some() && self.file == file(&self.path)
    }

    /// A place for small files beside it, if it has its own folder.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempDir::path)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What the server reports besides the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// The tap was loaded into a process.
    Loaded(u32),
    /// A process uses QNN.
    Process(u32),
}

/// A connection, and what was already read from it.
pub(super) type Connected = (UnixStream, Vec<u8>);

/// The fate of a process whose connection ended.
#[derive(Debug)]
pub(super) enum Rejoined {
    /// It is back.
    With(Connected),
    /// Its pid belongs to another program by now.
    Another,
    /// It ended; whether it lived on without a connection.
    Not { lived_on: bool },
}

/// True for a running process: a zombie has ended.
pub(super) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The shared state of all readers.
#[derive(Debug)]
pub(super) struct Shared {
    pub source: Source,
    /// Where the processes are.
    device: String,
    pub told: mpsc::UnboundedSender<ServerEvent>,
    next: AtomicU32,
    ids: FewRuns,
    /// Connected processes, by their ids.
    going: Mutex<HashMap<u32, Arc<Mutex<Fold>>>>,
    pub binaries: Binaries,
    /// Local processes with the tap loaded that have not asked for QNN.
    loaded: Mutex<Vec<u32>>,
    /// Readers of processes whose connection was closed, by their ids.
    absent: Mutex<HashMap<u32, oneshot::Sender<Connected>>>,
    /// Where local processes leave files.
    pub folder: OnceLock<PathBuf>,
}

/// Serves the processes of a program.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// A server for processes of `device`, whose events go to `source`, and what it tells beside them to the receiver.
    ///
    /// `runtime` has the QNN libraries that read context binaries of programs whose own are not at hand.
    pub fn new(device: &str, source: Source, runtime: Option<PathBuf>) -> (Self, mpsc::UnboundedReceiver<ServerEvent>) {
        let (told, receiver) = mpsc::unbounded_channel();
        let ids = FewRuns::new(source.run_ids());
        let shared = Shared {
            source,
            device: device.to_owned(),
            told,
            next: AtomicU32::new(0),
            ids,
            going: Mutex::new(HashMap::new()),
            binaries: Binaries::new(runtime),
            loaded: Mutex::default(),
            absent: Mutex::default(),
            folder: OnceLock::new(),
        };
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// Processes the messages of a device's process, with timestamps on the device's clock.
    pub fn feed(&self, clock: WallClock) -> Feed {
        Feed::new(self.shared.clone(), Some(clock))
    }

    /// The memory of a device's process.
    pub async fn remember(&self, pid: u32, memory: ProcessMemory) {
        let fold = self.shared.lock().get(&pid).cloned();
        if let Some(fold) = fold {
            self.shared.remember(&fold, memory).await;
        }
    }

    /// Serves until `over` is set, then briefly handles what still arrives.
    pub async fn serve(&self, listener: &Listener, mut over: watch::Receiver<bool>) {
        if let Some(folder) = listener.path().parent() {
            let _ = self.shared.folder.set(folder.to_owned());
        }
        let mut is_reachable = true;
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
                    // Too many open files: existing connections continue, and it is retried.
                    Err(_) => tokio::time::sleep(MEMORY).await,
                },
                Some(_) = readers.join_next() => {}
                _ = tick.tick() => {
                    self.shared.look().await;
                    self.notice_removal(listener, &mut is_reachable).await;
                }
                () = patience => break,
                _ = over.wait_for(|over| *over), if end.is_none() => {
                    end = Some(tokio::time::Instant::now() + LAST_WORDS);
                }
            }
            // Waiting connections are accepted first, so no data is lost.
            if end.is_some() && readers.is_empty() {
                let waiting = tokio::time::timeout(Duration::ZERO, listener.socket.accept()).await;
                match waiting {
                    Ok(Ok((stream, _))) => drop(readers.spawn(read(stream, self.shared.clone()))),
                    _ => break,
                }
            }
        }
        readers.shutdown().await;
        self.notice_removal(listener, &mut is_reachable).await;
        self.notice_those_who_stay().await;
        self.end().await;
    }

    /// If nobody has asked for QNN, a surviving process of the program may still do so.
    async fn notice_those_who_stay(&self) {
        let loaded = self.shared.loaded().clone();
        let Some(pid) = loaded.into_iter().find(|pid| is_alive(*pid)) else { return };
        if self.shared.next.load(Ordering::Relaxed) == 0 {
            let reason = format!(
                "process {pid} outlives the program and had not used QNN when the program ended; use --listen for programs that go \
                 into the background"
            );
            self.shared.say(TapSeen::NotReached { reason }).await;
        }
    }

    /// Reports once that the socket is unreachable because its file was removed.
    async fn notice_removal(&self, listener: &Listener, is_reachable: &mut bool) {
        if !*is_reachable || listener.is_there() {
            return;
        }
        *is_reachable = false;
        let reason = format!(
            "the tap's socket {} was removed, by the program or by a cleaner of temporary files: later users of QNN are \
             not seen; keep that folder, or use --listen with a permanent path",
            clean_text(&listener.path.to_string_lossy())
        );
        self.shared.say(TapSeen::NotReached { reason }).await;
    }

    /// Reads the context binaries that processes load as they come, beside the program; never ends. Without it they are read once
    /// the program is over.
    pub async fn read_binaries(&self) {
        self.shared.binaries.read_as_they_come(&self.shared).await;
    }

    /// Processes that outlive the program: their figures end here. Context binaries that are left are read.
    pub async fn end(&self) {
        let going: Vec<_> = self.shared.lock().drain().map(|(_, fold)| fold).collect();
        for fold in going {
            let mut out = Vec::new();
            fold.lock().unwrap_or_else(PoisonError::into_inner).end(&mut out);
            self.shared.send(out).await;
        }
        self.shared.binaries.finish(&self.shared).await;
    }
}

impl Shared {
    pub fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<Mutex<Fold>>>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn send(&self, out: Vec<Out>) {
        for out in out {
            self.source.send_at(out.t_us, out.run, out.event).await;
        }
    }

    /// Reads the memory of every process.
    async fn look(&self) {
        let going: Vec<(u32, Arc<Mutex<Fold>>)> = self.lock().iter().map(|(pid, fold)| (*pid, fold.clone())).collect();
        for (pid, fold) in going {
            if let Some(memory) = memory(Some(pid)) {
                self.remember(&fold, memory).await;
            }
        }
    }

    async fn remember(&self, fold: &Mutex<Fold>, memory: ProcessMemory) {
        let mut out = Vec::new();
        fold.lock().unwrap_or_else(PoisonError::into_inner).memory(now_us(), memory, &mut out);
        self.send(out).await;
    }

    fn loaded(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tap was loaded into a process.
    pub fn note_loaded(&self, pid: u32) {
        let mut loaded = self.loaded();
        if loaded.len() >= MOST_LOADED {
            loaded.remove(0);
        }
        loaded.push(pid);
        let _ = self.told.send(ServerEvent::Loaded(pid));
    }

    fn absent(&self) -> std::sync::MutexGuard<'_, HashMap<u32, oneshot::Sender<Connected>>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the connection that a process opens after its program closed the one before, until it ends.
    pub async fn wait_for(&self, pid: u32) -> Rejoined {
        let (here, mut next) = oneshot::channel();
        self.absent().insert(pid, here);
        let begun = tokio::time::Instant::now();
        let mut ended = None;
        loop {
            match tokio::time::timeout(LOOK, &mut next).await {
                Ok(Ok(connected)) => return Rejoined::With(connected),
                Ok(Err(_)) => return Rejoined::Another,
                Err(_) if is_alive(pid) => {}
                Err(_) => {
                    let ended = *ended.get_or_insert_with(tokio::time::Instant::now);
                    if ended.elapsed() > ARRIVES_WITHIN {
                        self.absent().remove(&pid);
                        return Rejoined::Not { lived_on: ended - begun > LIVES_ON };
                    }
                }
            }
        }
    }

    /// Gives a connection to the reader of the process's one before, who may not have noticed yet that that one ended.
    pub async fn hand_over(&self, pid: u32, connected: Connected) -> Result<(), Connected> {
        let begun = tokio::time::Instant::now();
        loop {
            let reader = self.absent().remove(&pid);
            if let Some(reader) = reader {
                return reader.send(connected);
            }
            if begun.elapsed() > NOTICES_WITHIN {
                return Err(connected);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub fn greet(&self, process: &Process) -> Arc<Mutex<Fold>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Another program with the same pid: the previous one does not come back.
        self.absent().remove(&process.pid);
        let parent = self.lock().get(&process.parent_pid).filter(|_| process.forked).cloned();
        let fold = Arc::new(Mutex::new(Fold::new(number, &self.device, self.ids.clone(), parent)));
        self.lock().insert(process.pid, fold.clone());
        let _ = self.told.send(ServerEvent::Process(process.pid));
        fold
    }

    /// Something about the program as a whole.
    pub async fn say(&self, seen: TapSeen) {
        self.source.send(None, Event::Tap(Box::new(TapRecord { process: None, seen }))).await;
    }
}
