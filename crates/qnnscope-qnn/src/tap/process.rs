//! Per-process state: the queues, the connection, the writer thread. A fork creates its own.

#![expect(unsafe_code, reason = "FFI")]

use super::arena::Arena;
use super::binaries::Binaries;
use super::fork::{self, Shared};
use super::ring::Ring;
use super::settings::{Settings, SinkPath};
use super::writer::Writer;
use super::{connection::Connection, graphs::GRAPHS, system};
use crate::api::Recorder;
use crossbeam_queue::ArrayQueue;
use qnnscope_core::event::clean_text;
use qnnscope_core::tap::{Call, Process, TAP_PROTOCOL, TapMessage};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

/// Executions with events waiting for the writer.
const ARENAS: usize = 4;

/// Maximum number of graphs alive at once; further ones are counted, and their executions belong to an unknown graph.
/// Each takes about 200 bytes, and the whole tap must stay below 8 MiB.
pub(super) const MOST_GRAPHS: usize = 12_288;
/// Approximate limit on what is kept of graphs being composed, bytes.
const COMPOSING_BYTES: usize = 1 << 20;
/// The limit was exceeded: an unknown handle is not necessarily a new graph.
pub(super) static IS_FULL: AtomicBool = AtomicBool::new(false);

/// One process.
pub(super) struct Tap {
    pub settings: Settings,
    pub writer: Writer,
    pub executions: Ring,
    pub lost_executions: AtomicU64,
    pub lost_details: AtomicU64,
    pub lost_graphs: AtomicU64,
    pub free_arenas: ArrayQueue<Box<Arena>>,
    pub full_arenas: ArrayQueue<Box<Arena>>,
    pub recorder: Recorder,
    pub binaries: Binaries,
}

/// A live context.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub id: u32,
    pub backend: usize,
    /// Handles of its graphs.
    pub graphs: Vec<usize>,
}

/// A live graph.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    pub id: u32,
    pub context: Option<u32>,
    pub name: Box<str>,
}

/// The live handles; survives a fork. Keys are provider and handle.
#[derive(Default)]
pub(super) struct Registry {
    pub next_id: u32,
    pub contexts: Option<HashMap<(usize, usize), Context>>,
    pub graphs: Option<HashMap<(usize, usize), Graph>>,
}

impl Registry {
    pub fn contexts(&mut self) -> &mut HashMap<(usize, usize), Context> {
        self.contexts.get_or_insert_default()
    }

    pub fn graphs(&mut self) -> &mut HashMap<(usize, usize), Graph> {
        self.graphs.get_or_insert_default()
    }

    /// A number this process has not used before.
    pub fn fresh_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    /// Registers a graph and returns its id; `None` if too many are alive.
    pub fn add_graph(&mut self, provider: usize, handle: usize, context: Option<usize>, name: String) -> Option<u32> {
        let context_id = context.and_then(|context| self.contexts().get(&(provider, context)).map(|known| known.id));
        // Requested again: the same graph.
        if let Some(known) = self.graphs().get(&(provider, handle))
            && known.context == context_id
            && *known.name == *name
        {
            return Some(known.id);
        }
        if self.graphs().len() >= MOST_GRAPHS && !self.graphs().contains_key(&(provider, handle)) {
            IS_FULL.store(true, Ordering::Relaxed);
            // A previous graph with this handle is gone.
            GRAPHS.remove(provider, handle);
            return None;
        }
        let id = self.fresh_id();
        let owner = context.and_then(|context| self.contexts().get_mut(&(provider, context)));
        let (context, backend) = match owner {
            Some(owner) => {
                owner.graphs.push(handle);
                (Some(owner.id), owner.backend)
            }
            None => (None, 0),
        };
        GRAPHS.insert(provider, handle, id, backend);
        self.graphs().insert((provider, handle), Graph { id, context, name: name.into() });
        Some(id)
    }

    /// Drops everything of an unloaded library.
    pub fn remove_provider(&mut self, provider: usize) {
        self.contexts().retain(|(owner, _), _| *owner != provider);
        let gone: Vec<usize> =
            self.graphs().keys().filter(|(owner, _)| *owner == provider).map(|(_, handle)| *handle).collect();
        for handle in gone {
            self.graphs().remove(&(provider, handle));
            GRAPHS.remove(provider, handle);
        }
    }

    /// Drops a context and its graphs.
    pub fn remove_context(&mut self, provider: usize, handle: usize) -> Option<u32> {
        let context = self.contexts().remove(&(provider, handle))?;
        for graph in context.graphs {
            // A handle since given to another context belongs to that context.
            if self.graphs().get(&(provider, graph)).is_some_and(|known| known.context == Some(context.id)) {
                self.graphs().remove(&(provider, graph));
                GRAPHS.remove(provider, graph);
            }
        }
        Some(context.id)
    }
}

pub(super) static REGISTRY: Shared<Registry> = Shared::new(Registry { next_id: 0, contexts: None, graphs: None });

/// This process's tap; null before the program asks for QNN, and in a fork until it uses QNN.
static CURRENT: AtomicPtr<Tap> = AtomicPtr::new(std::ptr::null_mut());
/// Whether this process is a fork of a tapped one.
static IS_FORK: AtomicBool = AtomicBool::new(false);

/// In a fork: the parent's tap stays in place, unused; its connection is the parent's.
pub(super) fn leave_behind() {
    if !CURRENT.swap(std::ptr::null_mut(), Ordering::AcqRel).is_null() {
        IS_FORK.store(true, Ordering::Relaxed);
    }
}

/// The tap of this process, started if necessary; `None` without a reader.
pub(super) fn current() -> Option<&'static Tap> {
    let tap = CURRENT.load(Ordering::Acquire);
    // SAFETY: taps are leaked on creation, so the pointer stays valid.
    unsafe { tap.as_ref() }.or_else(begin)
}

/// Two threads may be the first at the same time.
pub(super) static BEGINNING: Shared<()> = Shared::new(());

fn begin() -> Option<&'static Tap> {
    BEGINNING.with(|()| {
        let tap = CURRENT.load(Ordering::Acquire);
        // SAFETY: as in `current`.
        if let Some(tap) = unsafe { tap.as_ref() } {
            return Some(tap);
        }
        let made = make();
        if made.is_none() {
            super::turn_off();
        }
        let tap: &'static Tap = Box::leak(Box::new(made?));
        Writer::begin(tap);
        CURRENT.store(std::ptr::from_ref(tap).cast_mut(), Ordering::Release);
        if IS_FORK.load(Ordering::Relaxed) {
            announce_inherited(tap);
        }
        Some(tap)
    })
}

fn make() -> Option<Tap> {
    fork::watch();
    let settings = Settings::read(|name| std::env::var(name).ok())?;
    let connection = Connection::open(&settings.sink).ok()?;
    let executions = Ring::new(settings.sink.folder(), &format!("{}.{}.ring", std::process::id(), system::now_ns()))?;
    let free_arenas = ArrayQueue::new(ARENAS);
    for _ in 0..ARENAS {
        let _ = free_arenas.push(Box::new(Arena::new()));
    }
    let tap = Tap {
        writer: Writer::new(connection),
        settings,
        executions,
        lost_executions: AtomicU64::new(0),
        lost_details: AtomicU64::new(0),
        lost_graphs: AtomicU64::new(0),
        free_arenas,
        full_arenas: ArrayQueue::new(ARENAS),
        recorder: Recorder::bounded(COMPOSING_BYTES),
        binaries: Binaries::default(),
    };
    let ring = tap.executions.path().map(|path| path.to_string_lossy().into_owned());
    tap.writer.say_now(&TapMessage::Hello(Process { ring, ..describe(IS_FORK.load(Ordering::Relaxed)) }));
    Some(tap)
}

/// A fork continues with its parent's graphs: it announces them under their existing ids.
fn announce_inherited(tap: &Tap) {
    super::providers::announce_all(tap);
    let graphs: Vec<((usize, usize), Graph)> =
        REGISTRY.with(|registry| registry.graphs().iter().map(|(key, graph)| (*key, graph.clone())).collect());
    for ((provider, _), graph) in graphs {
        tap.writer.say(&TapMessage::Ended(Box::new(Call {
            call: "graphRetrieve".to_owned(),
            provider: u32::try_from(provider).unwrap_or(u32::MAX),
            start_ns: system::now_ns(),
            thread: system::thread_id(),
            context: graph.context,
            graph: Some(graph.id),
            name: Some(graph.name.into()),
            ..Call::default()
        })));
    }
}

fn describe(forked: bool) -> Process {
    let executable = std::fs::read_link("/proc/self/exe").map(|path| clean_text(&path.to_string_lossy()));
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let arguments = command.split(|byte| *byte == 0).map(|word| clean_text(&String::from_utf8_lossy(word)));
    let mut command: Vec<String> = arguments.collect();
    command.pop();
    command.truncate(256);
    Process {
        protocol: TAP_PROTOCOL,
        tap_version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        parent_pid: std::os::unix::process::parent_id(),
        forked,
        executable: executable.unwrap_or_default(),
        command,
        arch: std::env::consts::ARCH.to_owned(),
        t_ns: system::now_ns(),
        epoch_us: system::epoch_us(),
        ring: None,
    }
}

/// Reports that the library was loaded into a program: on its own connection, or in a folder in the common file
/// `loaded`.
pub fn loaded() {
    super::guard(|| {
        let Some(settings) = Settings::read(|name| std::env::var(name).ok()) else {
            super::turn_off();
            return;
        };
        let line = serde_json::to_vec(&TapMessage::Loaded(describe(false)));
        let mut line = line.unwrap_or_default();
        line.push(b'\n');
        if let SinkPath::Folder(folder) = &settings.sink {
            use std::io::Write;
            let file = std::fs::OpenOptions::new().append(true).create(true).open(folder.join("loaded"));
            let _ = file.and_then(|mut file| file.write_all(&line));
            return;
        }
        if let Ok(mut connection) = Connection::open(&settings.sink) {
            connection.write(&line, Duration::from_millis(50));
        }
    });
}

/// The process ends: writes what is queued, waiting only briefly.
pub fn unloading() {
    super::guard(|| {
        let tap = CURRENT.load(Ordering::Acquire);
        // SAFETY: as in `current`. A fork that did not use QNN has none.
        if let Some(tap) = unsafe { tap.as_ref() } {
            tap.writer.end(tap);
        }
    });
}
