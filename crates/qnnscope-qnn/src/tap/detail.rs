//! Per-op times: which executions are profiled, with which handle, and at what cost.

#![expect(unsafe_code, reason = "FFI")]

use super::arena::Arena;
use super::graphs::Slot;
use super::settings::DetailEvery;
use super::{providers, system};
use crate::api::EventReader;
use crate::sys::{self, Handle};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Under [`DetailEvery::Auto`], profiling may add 1/`SHARE` to the time of a graph's clean executions.
const SHARE: u64 = 150;
/// Minimum number of executions between two profiled ones: some backends behave differently right after one.
const BETWEEN: u64 = 10;

/// Whether to profile the execution about to start; `number` counts the graph's executions from 0.
pub(super) fn is_due(every: DetailEvery, slot: &Slot, number: u64) -> bool {
    if slot.is_spoilt.load(Ordering::Relaxed) {
        return false;
    }
    match every {
        DetailEvery::Never => false,
        DetailEvery::Nth(n) => number % n == n - 1,
        DetailEvery::Auto => {
            let spent = slot.detail_total_ns.load(Ordering::Relaxed);
            if spent == 0 {
                // One early, so that short programs have figures as well; the first execution is unlike the others.
                return number == 2;
            }
            let next = slot.detail_cost_ns.load(Ordering::Relaxed);
            let earned = slot.clean_ns.load(Ordering::Relaxed);
            slot.since_detail.load(Ordering::Relaxed) >= BETWEEN && (spent + next).saturating_mul(SHARE) <= earned
        }
    }
}

/// Records the cost of a profiled execution: the extra time over clean ones, and reading the events.
pub(super) fn book(slot: &Slot, duration_ns: u64, read_ns: u64, is_host: bool) {
    let clean = slot.clean.load(Ordering::Relaxed);
    let mean = slot.clean_ns.load(Ordering::Relaxed).checked_div(clean).unwrap_or(duration_ns);
    let longer = if is_host { 0 } else { duration_ns.saturating_sub(mean) };
    let cost = (longer + read_ns).max(1);
    slot.detail_cost_ns.store(cost, Ordering::Relaxed);
    slot.detail_total_ns.fetch_add(cost, Ordering::Relaxed);
    slot.since_detail.store(0, Ordering::Relaxed);
}

/// A reusable profile handle: one per execution in progress.
struct Pooled {
    /// 0: no handle, 1: free, 2: in use.
    state: AtomicUsize,
    provider: AtomicUsize,
    backend: AtomicUsize,
    handle: AtomicUsize,
}

const NONE: usize = 0;
const FREE: usize = 1;
const USED: usize = 2;

static POOL: [Pooled; 64] = [const {
    Pooled {
        state: AtomicUsize::new(NONE),
        provider: AtomicUsize::new(0),
        backend: AtomicUsize::new(0),
        handle: AtomicUsize::new(0),
    }
}; 64];

/// A detailed profile handle of a backend, for one execution.
pub(super) struct Borrowed(usize);

impl Borrowed {
    pub fn handle(&self) -> Handle {
        std::ptr::with_exposed_provenance_mut(POOL[self.0].handle.load(Ordering::Relaxed))
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        POOL[self.0].state.store(FREE, Ordering::Release);
    }
}

fn claim(pooled: &Pooled, from: usize) -> bool {
    pooled.state.compare_exchange(from, USED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

fn belongs(pooled: &Pooled, provider: usize, backend: usize) -> bool {
    pooled.provider.load(Ordering::Relaxed) == provider && pooled.backend.load(Ordering::Relaxed) == backend
}

/// A handle from the pool, or a new one.
pub(super) fn borrow(provider: usize, backend: usize) -> Option<Borrowed> {
    for (number, pooled) in POOL.iter().enumerate() {
        if pooled.state.load(Ordering::Acquire) == FREE && belongs(pooled, provider, backend) && claim(pooled, FREE) {
            if belongs(pooled, provider, backend) {
                return Some(Borrowed(number));
            }
            pooled.state.store(FREE, Ordering::Release);
        }
    }
    let create: sys::ProfileCreateFn = providers::real(provider, sys::slots::core::PROFILE_CREATE)?;
    let (number, pooled) = POOL.iter().enumerate().find(|(_, pooled)| claim(pooled, NONE))?;
    let mut handle: Handle = std::ptr::null_mut();
    // SAFETY: the backend made the graph that is about to execute, so it is alive; 2 is the detailed level.
    let code = unsafe { create(std::ptr::with_exposed_provenance_mut(backend), 2, &raw mut handle) };
    if code != 0 || handle.is_null() {
        pooled.state.store(NONE, Ordering::Release);
        return None;
    }
    pooled.provider.store(provider, Ordering::Relaxed);
    pooled.backend.store(backend, Ordering::Relaxed);
    pooled.handle.store(handle.expose_provenance(), Ordering::Relaxed);
    Some(Borrowed(number))
}

/// A backend is about to be freed, and our handles for it with it.
pub(super) fn backend_ends(provider: usize, backend: usize) {
    let free: Option<sys::FreeFn> = providers::real(provider, sys::slots::core::PROFILE_FREE);
    for pooled in POOL.iter().filter(|pooled| belongs(pooled, provider, backend)) {
        if claim(pooled, FREE) {
            if let Some(free) = free {
                // SAFETY: made by this backend, which is still alive, and in nobody's hands.
                unsafe { free(std::ptr::with_exposed_provenance_mut(pooled.handle.load(Ordering::Relaxed))) };
            }
            pooled.backend.store(0, Ordering::Relaxed);
            pooled.state.store(NONE, Ordering::Release);
        }
    }
}

/// Reads the events of the call that just returned; returns how long that took.
///
/// # Safety
/// `profile` is a live profile handle of this provider, and no profiled call is using it concurrently.
pub(super) unsafe fn read(provider: usize, profile: Handle, arena: &mut Arena) -> u64 {
    let begun = system::now_ns();
    arena.clear();
    if let Some(table) = providers::table(provider) {
        // SAFETY: promised by the caller.
        let _ = unsafe { EventReader::new(table).walk(profile, &mut |depth, event| arena.push(depth, event)) };
    }
    system::now_ns().saturating_sub(begun)
}
