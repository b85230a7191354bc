//! Contexts created from several binaries by one call, in the background: the program is notified of each context and
//! graph, and the notifications pass through here.

#![expect(unsafe_code, reason = "FFI")]

use super::calls::{Going, backend_id, begin, end, graph_id, note_context};
use super::process::{Tap, current};
use super::{binaries, guard, options, providers, system};
use crate::api::text;
use crate::sys::slots::core as slots;
use crate::sys::{self, Handle};
use qnnscope_core::tap::{Call, TapMessage};
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of list contexts observed per process; further ones are passed through. Nothing marks the last
/// notification of one, so each place is used once.
const MOST: usize = 256;
/// Longest plausible list.
const LONGEST: usize = 64;

/// A context the program will be notified of.
struct Listed {
    /// The program's record with our notification in it; the backend may read it until it is done.
    record: sys::ContextParams,
    /// Target of a version 2 record.
    body: sys::ContextParamsV2,
    provider: usize,
    backend: Handle,
    start_ns: u64,
    notify: sys::ContextNotifyFn,
    parameter: *mut c_void,
    /// Its context's id, once it has one: graphs may be notified before the context.
    context: Mutex<Option<u32>>,
}

struct ListSlot(UnsafeCell<Option<Listed>>);

// SAFETY: written once, by the thread that took its number, before the backend gets its address; read-only from then
// on.
unsafe impl Sync for ListSlot {}

static PLACES: [ListSlot; MOST] = [const { ListSlot(UnsafeCell::new(None)) }; MOST];
static TAKEN: AtomicUsize = AtomicUsize::new(0);

pub(super) unsafe extern "C" fn contexts_from_list<const P: usize>(
    backend: Handle,
    device: Handle,
    contexts: *const *const c_void,
    configs: *const *const c_void,
    signal: Handle,
) -> u64 {
    let slot = slots::CONTEXT_CREATE_FROM_BINARY_LIST_ASYNC;
    let Some(real) = providers::real::<sys::ContextCreateFromBinaryListAsyncFn>(P, slot) else {
        return sys::NOT_SUPPORTED;
    };
    let going = begin(P, "contextCreateFromBinaryListAsync", None);
    let start_ns = going.as_ref().map_or(0, Going::start_ns);
    // SAFETY: the caller's list.
    let ours = guard(|| unsafe { watched(P, backend, start_ns, contexts) }).flatten();
    let passed = ours.unwrap_or(contexts);
    // SAFETY: forwards the caller's arguments, with a list of ours that is as long as the caller's, and stays.
    let code = unsafe { real(backend, device, passed, configs, signal) };
    end(going, code, |_, call| {
        // SAFETY: the caller's options, of this backend.
        call.options = unsafe { options::of_context(backend_id(P), configs) };
    });
    code
}

/// A copy of the program's list with our notification in each record; `None` to leave the list as it is.
///
/// # Safety
/// `contexts` is null or a null-ended list of records that begin with their version.
unsafe fn watched(
    provider: usize,
    backend: Handle,
    start_ns: u64,
    contexts: *const *const c_void,
) -> Option<*const *const c_void> {
    if contexts.is_null() {
        return None;
    }
    let tap = current()?;
    let mut list: Vec<*const c_void> = Vec::new();
    let mut unseen = 0;
    loop {
        // SAFETY: the list ends with a null, which ends this loop.
        let theirs = unsafe { *contexts.add(list.len()) };
        if theirs.is_null() {
            break;
        }
        if list.len() >= LONGEST {
            return None;
        }
        // SAFETY: a record of the list.
        let body = unsafe { body_of(theirs.cast()) };
        // A record without a notification is for the backend to judge.
        let ours = body.and_then(|(version, body)| {
            let notify = body.v1.notify?;
            let number = TAKEN.fetch_add(1, Ordering::Relaxed);
            let Some(place) = PLACES.get(number) else {
                TAKEN.store(MOST, Ordering::Relaxed);
                unseen += 1;
                return None;
            };
            let parameter = body.v1.parameter;
            let own = std::ptr::from_ref(place).cast_mut().cast();
            let v1 = sys::ContextParamsV1 { notify: Some(notified), parameter: own, ..body.v1 };
            let body = sys::ContextParamsV2 { v1, ..body };
            let record = sys::ContextParams { version, body: sys::ContextParamsUnion { v1 } };
            let context = Mutex::new(None);
            let listed = Listed { record, body, provider, backend, start_ns, notify, parameter, context };
            // SAFETY: see `Sync`: the number was taken by this thread alone.
            let kept = unsafe { &mut *place.0.get() }.insert(listed);
            if version == 2 {
                kept.record.body = sys::ContextParamsUnion { v2: &raw const kept.body };
            }
            Some(std::ptr::from_ref(&kept.record).cast())
        });
        list.push(ours.unwrap_or(theirs));
    }
    if unseen > 0 {
        let reason = Some(format!("lists made more than {MOST} contexts"));
        tap.writer.say(&TapMessage::Lost { what: "contexts of lists".to_owned(), count: unseen, reason });
    }
    list.push(std::ptr::null());
    // The backend may read it after the call returns. Its length is bounded by the number of places.
    Some(Box::leak(list.into_boxed_slice()).as_ptr())
}

/// A record's version and fields; `None` for unknown versions.
///
/// # Safety
/// `record` is an element of a program's list.
unsafe fn body_of(record: *const sys::ContextParams) -> Option<(u32, sys::ContextParamsV2)> {
    // SAFETY: records begin with their version, which says what follows; fields may be read one by one.
    unsafe {
        match (&raw const (*record).version).read() {
            1 => {
                let v1 = (&raw const (*record).body.v1).read();
                Some((1, sys::ContextParamsV2 { v1, callback: std::ptr::null() }))
            }
            2 => {
                let body = (&raw const (*record).body.v2).read();
                (!body.is_null()).then(|| (2, *body))
            }
            _ => None,
        }
    }
}

unsafe extern "C" fn notified(
    context: Handle,
    graph: Handle,
    name: *const c_char,
    kind: u32,
    parameter: *mut c_void,
    status: u64,
) {
    // SAFETY: the parameter that was passed with this function: a place that was filled before, and stays.
    let Some(listed) = (unsafe { &*(*parameter.cast::<ListSlot>()).0.get() }) else { return };
    guard(|| {
        // Before the program is notified: it may use it at once.
        let Some(tap) = current() else { return };
        match kind {
            sys::CONTEXT_NOTIFY_CONTEXT => tell_context(tap, listed, context, status),
            sys::CONTEXT_NOTIFY_GRAPH if status == 0 && !graph.is_null() => {
                tell_graph(tap, listed, context, graph, text(name));
            }
            _ => {}
        }
    });
    // SAFETY: what the program passed, with the backend's arguments.
    unsafe { (listed.notify)(context, graph, name, kind, listed.parameter, status) };
}

fn call(listed: &Listed, name: &str) -> Call {
    Call {
        call: name.to_owned(),
        provider: u32::try_from(listed.provider).unwrap_or(u32::MAX),
        thread: system::thread_id(),
        start_ns: listed.start_ns,
        duration_ns: system::now_ns().saturating_sub(listed.start_ns),
        of_list: true,
        ..Call::default()
    }
}

fn tell_context(tap: &Tap, listed: &Listed, context: Handle, status: u64) {
    let mut call = call(listed, "contextCreateFromBinary");
    call.code = status;
    call.binary_bytes = Some(listed.body.v1.bytes);
    if status == 0 && !context.is_null() {
        call.context = Some(id_of(listed, context));
        // SAFETY: the backend just read it, and notifies the program only afterwards that it no longer needs it.
        call.binary = unsafe { binaries::keep(tap, listed.provider, listed.body.v1.binary, listed.body.v1.bytes) };
        // SAFETY: the program's options of this context, of this backend.
        call.options = unsafe { options::of_context(backend_id(listed.provider), listed.body.v1.configs) };
    } else if status != 0 {
        call.message = providers::table(listed.provider).and_then(|table| table.message(status));
    }
    call.rss_after = system::rss_bytes();
    tap.writer.say(&TapMessage::Ended(Box::new(call)));
}

fn tell_graph(tap: &Tap, listed: &Listed, context: Handle, graph: Handle, name: String) {
    let mut call = call(listed, "graphRetrieve");
    if !context.is_null() {
        call.context = Some(id_of(listed, context));
    }
    call.graph = graph_id(tap, listed.provider, context, graph, &name);
    call.name = Some(name);
    tap.writer.say(&TapMessage::Ended(Box::new(call)));
}

fn id_of(listed: &Listed, context: Handle) -> u32 {
    let mut known = listed.context.lock().unwrap_or_else(PoisonError::into_inner);
    *known.get_or_insert_with(|| note_context(listed.provider, listed.backend, context))
}
