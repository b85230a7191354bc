//! State shared by the readers of all tapped processes: which processes there are, and whose connection was
//! closed and will come back.

use super::binaries::Binaries;
use super::fold::{FewRuns, Fold, Out};
use crate::event::{Event, TapRecord, TapSeen, now_us};
use crate::probes::process::{ProcessMemory, memory};
use crate::session::Source;
use qnnscope_core::tap::Process;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

/// How often to check on a process whose connection was closed. It opens another one when it has something to
/// report.
const LOOK: Duration = Duration::from_millis(100);
/// A process that still exists this long after its connection ended did not end with it.
const LIVES_ON: Duration = Duration::from_millis(400);
/// How long it may take to accept a connection that a process opened shortly before its end.
const ARRIVES_WITHIN: Duration = Duration::from_millis(300);
/// How long the reader of a closed connection may take to notice that it was closed.
const NOTICES_WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of processes without QNN that are remembered.
const MOST_LOADED: usize = 256;

/// What the server reports besides events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// The tap was loaded into a process.
    Loaded(u32),
    /// A process uses QNN.
    Process(u32),
}

/// A connection, and what has already been read from it.
pub(super) type Connected = (UnixStream, Vec<u8>);

/// What became of a process whose connection ended.
#[derive(Debug)]
pub(super) enum Rejoined {
    /// It has reconnected.
    With(Connected),
    /// Its pid belongs to another program by now.
    Another,
    /// It ended; `lived_on` says whether it first continued without a connection.
    Not { lived_on: bool },
}

/// True for a running process: one that has ended but was not waited for yet does not count.
pub(super) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// State shared by the readers of all processes.
#[derive(Debug)]
pub(super) struct Shared {
    pub source: Source,
    /// The device the processes run on.
    device: String,
    told: mpsc::UnboundedSender<ServerEvent>,
    next: AtomicU32,
    ids: FewRuns,
    /// Connected processes, by pid.
    going: Mutex<HashMap<u32, Arc<Mutex<Fold>>>>,
    pub binaries: Binaries,
    /// Processes of this machine in which the tap was loaded, but which have not used QNN.
    loaded: Mutex<Vec<u32>>,
    /// Readers of processes whose connection was closed, by pid.
    absent: Mutex<HashMap<u32, oneshot::Sender<Connected>>>,
    /// Where processes of this machine leave files.
    pub folder: OnceLock<PathBuf>,
}

impl Shared {
    /// The state shared by readers of `device`'s processes, and a receiver for what they report besides
    /// events.
    pub fn new(device: &str, source: Source, runtime: Option<PathBuf>) -> (Self, mpsc::UnboundedReceiver<ServerEvent>) {
        let (told, receiver) = mpsc::unbounded_channel();
        let ids = FewRuns::new(source.run_ids());
        let shared = Self {
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
        (shared, receiver)
    }

    pub fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<Mutex<Fold>>>> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn send(&self, out: Vec<Out>) {
        for out in out {
            self.source.send_at(out.t_us, out.run, out.event).await;
        }
    }

    /// Reads the memory of every process.
    pub async fn look(&self) {
        let going: Vec<(u32, Arc<Mutex<Fold>>)> = self.lock().iter().map(|(pid, fold)| (*pid, fold.clone())).collect();
        for (pid, fold) in going {
            if let Some(memory) = memory(Some(pid)) {
                self.remember(&fold, memory).await;
            }
        }
    }

    pub async fn remember(&self, fold: &Mutex<Fold>, memory: ProcessMemory) {
        let mut out = Vec::new();
        fold.lock().unwrap_or_else(PoisonError::into_inner).memory(now_us(), memory, &mut out);
        self.send(out).await;
    }

    /// True once a process has used QNN.
    pub fn is_used(&self) -> bool {
        self.next.load(Ordering::Relaxed) != 0
    }

    /// Processes in which the tap was loaded, but which have not used QNN.
    pub fn loaded(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the tap was loaded into a process.
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

    /// Waits for the connection that a process opens after its program closed the previous one, or for the
    /// end of the process.
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

    /// Passes a connection to the reader of the process's previous one, which may not have noticed yet that
    /// its own has ended.
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
        // Another program has this pid: the previous one does not come back.
        self.absent().remove(&process.pid);
        let parent = self.lock().get(&process.parent_pid).filter(|_| process.forked).cloned();
        let fold = Arc::new(Mutex::new(Fold::new(number, &self.device, self.ids.clone(), parent)));
        self.lock().insert(process.pid, fold.clone());
        let _ = self.told.send(ServerEvent::Process(process.pid));
        fold
    }

    /// Reports something about the program as a whole.
    pub async fn say(&self, seen: TapSeen) {
        self.source.send(None, Event::Tap(Box::new(TapRecord { process: None, seen }))).await;
    }
}
