//! Graphs by handle, looked up without a lock while they execute.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Room for the graphs alive at once ([`super::process::MOST_GRAPHS`]), with enough free slots that each is found near
/// its home slot.
const CAPACITY: usize = 16_384;
/// Maximum distance of a handle from its home slot.
const REACH: usize = 64;

const EMPTY: u64 = 0;
const FREED: u64 = 1;

/// What is known about a graph while it executes. Pages of the table are only committed once used.
pub(super) struct Slot {
    key: AtomicU64,
    id: AtomicU32,
    backend: AtomicUsize,
    /// Executions begun.
    pub begun: AtomicU64,
    /// Clean executions and their total time.
    pub clean: AtomicU64,
    pub clean_ns: AtomicU64,
    /// Cost of profiling the last execution, and of all, nanoseconds; 0 if unknown.
    pub detail_cost_ns: AtomicU64,
    pub detail_total_ns: AtomicU64,
    /// Executions since the last detailed one.
    pub since_detail: AtomicU64,
    /// Profiling failed: not profiled any more.
    pub is_spoilt: AtomicBool,
}

impl Slot {
    const fn new() -> Self {
        Self {
            key: AtomicU64::new(EMPTY),
            id: AtomicU32::new(0),
            backend: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
            clean: AtomicU64::new(0),
            clean_ns: AtomicU64::new(0),
            detail_cost_ns: AtomicU64::new(0),
            detail_total_ns: AtomicU64::new(0),
            since_detail: AtomicU64::new(0),
            is_spoilt: AtomicBool::new(false),
        }
    }

    /// The tap's id of the graph.
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Its backend's handle; 0 if unknown.
    pub fn backend(&self) -> usize {
        self.backend.load(Ordering::Relaxed)
    }
}

/// All graphs of the process.
pub(super) struct Graphs {
    slots: [Slot; CAPACITY],
}

/// The one table.
pub(super) static GRAPHS: Graphs = Graphs { slots: [const { Slot::new() }; CAPACITY] };

/// Handles of different providers may be equal.
fn key(provider: usize, handle: usize) -> u64 {
    let mixed =
        (handle as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (provider as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed.max(FREED + 1)
}

fn places(key: u64) -> impl Iterator<Item = usize> {
    let home = usize::try_from(key >> 40).unwrap_or(0);
    (0..REACH).map(move |step| (home + step) % CAPACITY)
}

impl Graphs {
    /// The graph behind a handle.
    pub fn find(&self, provider: usize, handle: usize) -> Option<&Slot> {
        let key = key(provider, handle);
        for place in places(key) {
            let slot = &self.slots[place];
            match slot.key.load(Ordering::Acquire) {
                EMPTY => return None,
                found if found == key => return Some(slot),
                _ => {}
            }
        }
        None
    }

    /// Inserts a graph; `None` if there is no room. Only called under the registry's lock.
    pub fn insert(&self, provider: usize, handle: usize, id: u32, backend: usize) -> Option<&Slot> {
        let key = key(provider, handle);
        // A handle reused before its release was seen belongs to the new graph.
        let known = self.find(provider, handle);
        let free =
            || places(key).map(|place| &self.slots[place]).find(|slot| slot.key.load(Ordering::Acquire) <= FREED);
        let slot = known.or_else(free)?;
        let costs = [&slot.detail_cost_ns, &slot.detail_total_ns, &slot.since_detail];
        for counter in [&slot.begun, &slot.clean, &slot.clean_ns].into_iter().chain(costs) {
            counter.store(0, Ordering::Relaxed);
        }
        slot.is_spoilt.store(false, Ordering::Relaxed);
        slot.id.store(id, Ordering::Relaxed);
        slot.backend.store(backend, Ordering::Relaxed);
        slot.key.store(key, Ordering::Release);
        Some(slot)
    }

    /// Removes a graph. Only called under the registry's lock.
    pub fn remove(&self, provider: usize, handle: usize) {
        if let Some(slot) = self.find(provider, handle) {
            slot.key.store(FREED, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Box<Graphs> {
        // Built on the heap: too large for a test's stack.
        let slots: Vec<Slot> = (0..CAPACITY).map(|_| Slot::new()).collect();
        let slots: Box<[Slot; CAPACITY]> = slots.into_boxed_slice().try_into().ok().unwrap();
        Box::new(Graphs { slots: *slots })
    }

    #[test]
    fn graphs_are_found_by_provider_and_handle_and_freed_ones_are_not() {
        let worker = std::thread::Builder::new().stack_size(64 << 20).spawn(|| {
            let graphs = table();
            // Handles as backends create them: small numbers, and addresses close to each other.
            let handles = (1..5000).chain((0..5000).map(|n| 0x7f12_3456_0000 + n * 16));
            for (id, handle) in (0u32..).zip(handles.clone()) {
                assert_eq!(graphs.insert(0, handle, id, 77).unwrap().id(), id);
            }
            assert_eq!(graphs.insert(1, 3, 123_456, 78).unwrap().backend(), 78);
            for (id, handle) in (0u32..).zip(handles.clone()) {
                assert_eq!(graphs.find(0, handle).unwrap().id(), id, "{handle:#x}");
            }
            assert_eq!(graphs.find(1, 3).unwrap().id(), 123_456);
            assert!(graphs.find(2, 3).is_none());
            for handle in handles.clone().step_by(2) {
                graphs.remove(0, handle);
            }
            for (step, handle) in handles.enumerate() {
                assert_eq!(graphs.find(0, handle).is_some(), step % 2 == 1, "{handle:#x}");
            }
            // Ten thousand more, one after another, in the same handle.
            for id in 0..10_000 {
                graphs.insert(0, 0x5555_0000, id, 1).unwrap().begun.store(9, Ordering::Relaxed);
                assert_eq!(graphs.find(0, 0x5555_0000).unwrap().id(), id);
                graphs.remove(0, 0x5555_0000);
            }
            assert_eq!(graphs.insert(0, 0x5555_0000, 1, 1).unwrap().begun.load(Ordering::Relaxed), 0, "a new graph");
        });
        worker.unwrap().join().unwrap();
    }
}
