//! The path of every inference. After a graph's first execution, nothing here allocates, locks or makes a system call
//! except for the clock.

#![expect(unsafe_code, reason = "FFI")]

use super::arena::Arena;
use super::detail::{self, Borrowed};
use super::graphs::{GRAPHS, Slot};
use super::process::{IS_FULL, REGISTRY, Tap, current};
use super::settings::DetailEvery;
use super::{guard, providers, system};
use crate::api::{describe, records};
use crate::sys::{self, Handle};
use qnnscope_core::tap::execution_flags::{ASYNC, DETAILED, FIRST, HOST_PROFILED, RAW_INPUT};
use qnnscope_core::tap::{BoundTensor, Execution, TapMessage};
use std::sync::atomic::Ordering;

/// An execution in progress.
pub(super) struct Going {
    tap: &'static Tap,
    slot: Option<&'static Slot>,
    provider: usize,
    pub flags: u32,
    pub start_ns: u64,
    /// Our own profile handle, if we profile it.
    ours: Option<Borrowed>,
    /// Room for the events, if they will be read.
    arena: Option<Box<Arena>>,
}

/// The tensors passed to an execution.
#[derive(Clone, Copy)]
pub(super) struct Tensors {
    pub inputs: *const sys::Tensor,
    pub input_count: u32,
    pub outputs: *mut sys::Tensor,
    pub output_count: u32,
}

pub(super) unsafe extern "C" fn graph_execute<const P: usize>(
    graph: Handle,
    inputs: *const sys::Tensor,
    input_count: u32,
    outputs: *mut sys::Tensor,
    output_count: u32,
    profile: Handle,
    signal: Handle,
) -> u64 {
    let Some(real) = providers::real::<sys::GraphExecuteFn>(P, sys::slots::core::GRAPH_EXECUTE) else {
        return sys::NOT_SUPPORTED;
    };
    let tensors = Tensors { inputs, input_count, outputs, output_count };
    let going = guard(|| before(P, graph, tensors, profile, false)).flatten();
    let passed = going.as_ref().and_then(|going| going.ours.as_ref()).map_or(profile, Borrowed::handle);
    let start_ns = system::now_ns();
    // SAFETY: forwards the caller's arguments, with a profile handle of the same backend if there was none.
    let code = unsafe { real(graph, inputs, input_count, outputs, output_count, passed, signal) };
    let end_ns = system::now_ns();
    if let Some(mut going) = going {
        guard(|| {
            going.start_ns = start_ns;
            after(going, passed, end_ns, code);
        });
    }
    code
}

/// Decides how to observe the execution.
pub(super) fn before(
    provider: usize,
    graph: Handle,
    tensors: Tensors,
    profile: Handle,
    is_async: bool,
) -> Option<Going> {
    let tap = current()?;
    let slot = GRAPHS.find(provider, graph.addr()).or_else(|| unknown(provider, graph));
    let number = slot.map_or(0, |slot| slot.begun.fetch_add(1, Ordering::Relaxed));
    let mut flags = if is_async { ASYNC } else { 0 };
    if has_raw_input(tensors) {
        flags |= RAW_INPUT;
    }
    if number == 0 {
        flags |= FIRST;
        announce(tap, slot, tensors, is_async);
    }
    if !profile.is_null() {
        flags |= HOST_PROFILED;
    }
    let mut going = Going { tap, slot, provider, flags, start_ns: 0, ours: None, arena: None };
    let Some(slot) = slot else { return Some(going) };
    slot.since_detail.fetch_add(1, Ordering::Relaxed);
    // Only the program can wait for the events of an asynchronous execution.
    if is_async || !detail::is_due(tap.settings.detail, slot, number) {
        return Some(going);
    }
    going.arena = tap.free_arenas.pop();
    if going.arena.is_none() {
        // In automatic mode the next execution will do as well.
        if tap.settings.detail != DetailEvery::Auto {
            tap.lost_details.fetch_add(1, Ordering::Relaxed);
        }
    } else if profile.is_null() && slot.backend() != 0 {
        going.ours = detail::borrow(provider, slot.backend());
        if going.ours.is_some() {
            going.flags |= DETAILED;
        } else if let Some(arena) = going.arena.take() {
            let _ = tap.free_arenas.push(arena);
            slot.is_spoilt.store(true, Ordering::Relaxed);
        }
    } else if profile.is_null()
        && let Some(arena) = going.arena.take()
    {
        // A graph of unknown origin: there is no backend to create a profile with.
        let _ = tap.free_arenas.push(arena);
    }
    Some(going)
}

/// Reports the result. `profile` is the handle used in the call.
pub(super) fn after(going: Going, profile: Handle, end_ns: u64, code: u64) {
    let Going { tap, slot, provider, flags, start_ns, ours, arena } = going;
    let duration_ns = end_ns.saturating_sub(start_ns);
    let graph = slot.map_or(u32::MAX, Slot::id);
    let thread = system::thread_id();
    if !tap.executions.push(&Execution { graph, thread, start_ns, duration_ns, code, flags }) {
        tap.lost_executions.fetch_add(1, Ordering::Relaxed);
    }
    let Some(slot) = slot else { return };
    if flags & DETAILED == 0 && code == 0 {
        slot.clean.fetch_add(1, Ordering::Relaxed);
        slot.clean_ns.fetch_add(duration_ns, Ordering::Relaxed);
    }
    let Some(mut arena) = arena else { return };
    if code != 0 {
        // Our handle may have caused the failure: never again for this graph.
        slot.is_spoilt.fetch_or(ours.is_some(), Ordering::Relaxed);
        arena.clear();
        let _ = tap.free_arenas.push(arena);
        return;
    }
    // SAFETY: the handle was valid for the call that just returned; nobody else holds ours, and the program must not
    // share its own.
    let read_ns = unsafe { detail::read(provider, profile, &mut arena) };
    drop(ours);
    let is_host = flags & HOST_PROFILED != 0;
    detail::book(slot, duration_ns, read_ns, is_host);
    (arena.graph, arena.thread, arena.start_ns, arena.duration_ns) = (graph, thread, start_ns, duration_ns);
    (arena.read_ns, arena.is_host, arena.is_async) = (read_ns, is_host, flags & ASYNC != 0);
    if let Err(arena) = tap.full_arenas.push(arena) {
        let _ = tap.free_arenas.push(arena);
        tap.lost_details.fetch_add(1, Ordering::Relaxed);
    }
}

fn has_raw_input(tensors: Tensors) -> bool {
    if tensors.inputs.is_null() {
        return false;
    }
    // SAFETY: the caller promises this many tensors; versions 1 and 2 have the memory type at the same offset.
    let inputs = unsafe { std::slice::from_raw_parts(tensors.inputs, tensors.input_count as usize) };
    inputs.iter().any(|tensor| tensor.body.mem_type == sys::MEM_RAW)
}

/// A graph created in a way that is not observed: it still gets its own number.
#[cold]
fn unknown(provider: usize, graph: Handle) -> Option<&'static Slot> {
    // It may be one there was no room for: avoid a lock for each of its executions.
    if IS_FULL.load(Ordering::Relaxed) {
        return None;
    }
    REGISTRY.with(|registry| {
        let id = registry.add_graph(provider, graph.addr(), None, format!("graph {:#x}", graph.addr()))?;
        GRAPHS.find(provider, graph.addr()).filter(|slot| slot.id() == id)
    })
}

/// The first execution of a graph: reports its inputs, and that it starts, in case the process dies in it.
#[cold]
fn announce(tap: &Tap, slot: Option<&Slot>, tensors: Tensors, is_async: bool) {
    let graph = slot.map(Slot::id);
    let bound = |pointer: *const sys::Tensor, count: u32| -> Vec<BoundTensor> {
        let tensors = records(pointer, count);
        tensors
            .iter()
            .map(|raw| BoundTensor { tensor: describe(raw), shared: raw.body.mem_type != sys::MEM_RAW })
            .collect()
    };
    if let Some(graph) = graph {
        tap.writer.say(&TapMessage::Bound {
            graph,
            inputs: bound(tensors.inputs, tensors.input_count),
            outputs: bound(tensors.outputs, tensors.output_count),
        });
    }
    let call = if is_async { "graphExecuteAsync" } else { "graphExecute" };
    let (t_ns, thread) = (system::now_ns(), system::thread_id());
    tap.writer.say_now(&TapMessage::Began { call: call.to_owned(), t_ns, thread, graph });
}
