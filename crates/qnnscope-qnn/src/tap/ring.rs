//! Executions on their way to the writer: a bounded lock-free queue in a memory-mapped file, so that what a killed
//! process could not report can still be read from it ([`qnnscope_core::tap::unread`]).
//!
//! The queue is Dmitry Vyukov's bounded one: each slot has a sequence number that shows whose turn it is.

#![expect(unsafe_code, reason = "memory that is shared with a file")]

use qnnscope_core::tap::{Execution, RING_HEAD, RING_MAGIC, RING_SLOT};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Capacity in executions; the writer empties it every few milliseconds.
const SLOTS: usize = 8192;
const BYTES: usize = RING_HEAD + SLOTS * RING_SLOT;

#[repr(C)]
struct Front {
    magic: AtomicU64,
    slots: AtomicU64,
    /// Position of the next insertion.
    tail: AtomicU64,
    /// Position of the next removal.
    head: AtomicU64,
}

#[repr(C)]
struct Slot {
    sequence: AtomicU64,
    /// Graph in the lower half, thread in the upper one.
    who: AtomicU64,
    start_ns: AtomicU64,
    duration_ns: AtomicU64,
    code: AtomicU64,
    flags: AtomicU64,
}

const _: () = assert!(size_of::<Front>() <= RING_HEAD && size_of::<Slot>() == RING_SLOT);

/// The queue of one process. Any thread inserts; one removes.
pub(super) struct Ring {
    /// Points to 8-byte words; pages are aligned to that.
    memory: *mut u64,
    path: Option<PathBuf>,
}

// SAFETY: everything behind the pointer is atomic, and mapped for as long as the value lives.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// In a file of this folder; without one (a full disk, a sandbox) in memory alone.
    pub fn new(folder: Option<&Path>, name: &str) -> Option<Self> {
        let in_file =
            folder.and_then(|folder| mapped_file(&folder.join(name)).map(|memory| (memory, folder.join(name))));
        let (memory, path) = match in_file {
            Some((memory, path)) => (memory, Some(path)),
            None => (map(-1)?, None),
        };
        let ring = Self { memory, path };
        for number in 0..SLOTS as u64 {
            ring.slot(number).sequence.store(number, Ordering::Relaxed);
        }
        ring.front().slots.store(SLOTS as u64, Ordering::Relaxed);
        // The magic number is written last: a file without it is ignored.
        ring.front().magic.store(RING_MAGIC, Ordering::Release);
        Some(ring)
    }

    /// The file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn front(&self) -> &Front {
        // SAFETY: the mapping is page-aligned and longer than that; all of it is atomic.
        unsafe { &*self.memory.cast::<Front>() }
    }

    fn slot(&self, position: u64) -> &Slot {
        let number = usize::try_from(position % SLOTS as u64).unwrap_or(0);
        let words = (RING_HEAD + number * RING_SLOT) / size_of::<u64>();
        // SAFETY: within the mapping, at a multiple of 8; all of it is atomic.
        unsafe { &*self.memory.add(words).cast::<Slot>() }
    }

    /// Inserts an execution; false if there is no room.
    pub fn push(&self, execution: &Execution) -> bool {
        let tail = &self.front().tail;
        let mut position = tail.load(Ordering::Relaxed);
        let slot = loop {
            let slot = self.slot(position);
            let turn = slot.sequence.load(Ordering::Acquire);
            position = match turn.cmp(&position) {
                std::cmp::Ordering::Less => return false,
                std::cmp::Ordering::Greater => tail.load(Ordering::Relaxed),
                std::cmp::Ordering::Equal => {
                    match tail.compare_exchange_weak(position, position + 1, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => break slot,
                        Err(now) => now,
                    }
                }
            };
        };
        slot.who.store(u64::from(execution.graph) | u64::from(execution.thread) << 32, Ordering::Relaxed);
        slot.start_ns.store(execution.start_ns, Ordering::Relaxed);
        slot.duration_ns.store(execution.duration_ns, Ordering::Relaxed);
        slot.code.store(execution.code, Ordering::Relaxed);
        slot.flags.store(u64::from(execution.flags), Ordering::Relaxed);
        slot.sequence.store(position + 1, Ordering::Release);
        true
    }

    /// The oldest ones, which stay in until [`Self::done`] confirms that they were passed on. Only one thread may
    /// remove.
    #[expect(clippy::cast_possible_truncation, reason = "two halves, and flags that were 32 bits")]
    pub fn oldest(&self, most: usize) -> Vec<Execution> {
        let first = self.front().head.load(Ordering::Relaxed);
        let at = |position: u64| {
            let slot = self.slot(position);
            (slot.sequence.load(Ordering::Acquire) == position + 1).then(|| {
                let who = slot.who.load(Ordering::Relaxed);
                Execution {
                    graph: who as u32,
                    thread: (who >> 32) as u32,
                    start_ns: slot.start_ns.load(Ordering::Relaxed),
                    duration_ns: slot.duration_ns.load(Ordering::Relaxed),
                    code: slot.code.load(Ordering::Relaxed),
                    flags: slot.flags.load(Ordering::Relaxed) as u32,
                }
            })
        };
        (first..).take(most).map_while(at).collect()
    }

    /// This many of the oldest were passed on: their room is free.
    pub fn done(&self, count: usize) {
        let first = self.front().head.load(Ordering::Relaxed);
        for position in first..first + count as u64 {
            self.slot(position).sequence.store(position + SLOTS as u64, Ordering::Release);
        }
        self.front().head.store(first + count as u64, Ordering::Relaxed);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size; nobody can reach it any more.
        unsafe { libc::munmap(self.memory.cast(), BYTES) };
    }
}

/// A new file of the right size, mapped. Its disk space is allocated at once: a disk that fills up later would kill the
/// program at its next execution.
fn mapped_file(path: &Path) -> Option<*mut u64> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path).ok()?;
    let size = libc::off_t::try_from(BYTES).ok()?;
    // SAFETY: the descriptor is open.
    let is_there = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size) } == 0;
    let memory = is_there.then(|| map(file.as_raw_fd())).flatten();
    if memory.is_none() {
        let _ = std::fs::remove_file(path);
    }
    memory
}

fn map(descriptor: libc::c_int) -> Option<*mut u64> {
    let flags = if descriptor < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, where the system likes; the file, if any, is that long.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, flags, descriptor, 0) };
    (memory != libc::MAP_FAILED).then_some(memory.cast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use qnnscope_core::tap::unread;

    fn execution(number: u64) -> Execution {
        let graph = u32::try_from(number % 7).unwrap();
        Execution { graph, thread: u32::MAX - 1, start_ns: number, duration_ns: number * 3, code: u64::MAX, flags: 31 }
    }

    #[test]
    fn what_many_threads_put_in_comes_out_once_and_the_rest_is_in_the_file() {
        let folder = std::env::temp_dir().join(format!("qnnscope-ring-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let ring = Ring::new(Some(&folder), "ring").unwrap();
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let ring = &ring;
                scope.spawn(move || {
                    for number in 0..20_000 {
                        while !ring.push(&execution(thread * 20_000 + number)) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            while seen.len() < 75_000 {
                let some = ring.oldest(100);
                ring.done(some.len());
                seen.extend(some);
            }
        });
        // The process is gone: the file yields what it had not passed on.
        let bytes = std::fs::read(ring.path().unwrap()).unwrap();
        seen.extend(unread(&bytes));
        let mut starts: Vec<u64> = seen.iter().map(|execution| execution.start_ns).collect();
        starts.sort_unstable();
        assert_eq!(starts, (0..80_000).collect::<Vec<u64>>());
        assert!(seen.iter().all(|found| *found == execution(found.start_ns)));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_full_ring_refuses_and_needs_no_folder() {
        let ring = Ring::new(Some(Path::new("/nowhere")), "ring").unwrap();
        assert!(ring.path().is_none());
        assert!((0..SLOTS as u64).all(|number| ring.push(&execution(number))));
        assert!(!ring.push(&execution(0)));
        ring.done(ring.oldest(1).len());
        assert!(ring.push(&execution(5)) && !ring.push(&execution(6)));
    }
}
