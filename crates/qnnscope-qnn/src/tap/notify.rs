//! Asynchronous executions: they end when the program is notified, so the notification passes through here.

#![expect(unsafe_code, reason = "FFI")]

use super::execute::{self, Going, Tensors};
use super::{guard, providers, system};
use crate::sys::{self, Handle};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const USED: u32 = 1;

/// An execution the program will be notified of.
struct Pending {
    state: AtomicU32,
    inner: UnsafeCell<Option<Inner>>,
}

struct Inner {
    notify: sys::NotifyFn,
    parameter: *mut c_void,
    profile: Handle,
    going: Option<Going>,
}

// SAFETY: only the caller that changed the state from free to used accesses the inner value, and afterwards only its
// notification (or the failed call).
unsafe impl Sync for Pending {}

/// Deeper than any backend's queue; further executions are not timed.
static PENDING: [Pending; 256] = [const { Pending { state: AtomicU32::new(FREE), inner: UnsafeCell::new(None) } }; 256];

pub(super) unsafe extern "C" fn graph_execute_async<const P: usize>(
    graph: Handle,
    inputs: *const sys::Tensor,
    input_count: u32,
    outputs: *mut sys::Tensor,
    output_count: u32,
    profile: Handle,
    signal: Handle,
    notify: Option<sys::NotifyFn>,
    parameter: *mut c_void,
) -> u64 {
    let Some(real) = providers::real::<sys::GraphExecuteAsyncFn>(P, sys::slots::core::GRAPH_EXECUTE_ASYNC) else {
        return sys::NOT_SUPPORTED;
    };
    let forward = |notify, parameter| {
        // SAFETY: forwards the caller's arguments.
        unsafe { real(graph, inputs, input_count, outputs, output_count, profile, signal, notify, parameter) }
    };
    let tensors = Tensors { inputs, input_count, outputs, output_count };
    let Some(theirs) = notify else {
        // There is no point at which it is known to have ended.
        return forward(None, parameter);
    };
    let pending = PENDING
        .iter()
        .find(|pending| pending.state.compare_exchange(FREE, USED, Ordering::AcqRel, Ordering::Relaxed).is_ok());
    let Some(pending) = pending else { return forward(notify, parameter) };
    let mut going = guard(|| execute::before(P, graph, tensors, profile, true)).flatten();
    if let Some(going) = &mut going {
        going.start_ns = system::now_ns();
    }
    // SAFETY: this call changed the state, see `Sync`.
    unsafe { *pending.inner.get() = Some(Inner { notify: theirs, parameter, profile, going }) };
    let code = forward(Some(notified), std::ptr::from_ref(pending).cast_mut().cast());
    if code != 0 && pending.state.load(Ordering::Acquire) == USED {
        // It was not accepted, so there will be no notification. SAFETY: as above.
        if let Some(inner) = unsafe { (*pending.inner.get()).take() } {
            pending.state.store(FREE, Ordering::Release);
            end(inner, code);
        }
    }
    code
}

unsafe extern "C" fn notified(pending: *mut c_void, status: u64) {
    // SAFETY: the parameter that was passed with this function, which lives for ever.
    let pending = unsafe { &*pending.cast::<Pending>() };
    // SAFETY: see `Sync`.
    let Some(inner) = (unsafe { (*pending.inner.get()).take() }) else { return };
    pending.state.store(FREE, Ordering::Release);
    let (theirs, parameter) = (inner.notify, inner.parameter);
    end(inner, status);
    // SAFETY: what the program passed, called once.
    unsafe { theirs(parameter, status) };
}

fn end(inner: Inner, code: u64) {
    let now_ns = system::now_ns();
    if let Some(going) = inner.going {
        guard(|| execute::after(going, inner.profile, now_ns, code));
    }
}
