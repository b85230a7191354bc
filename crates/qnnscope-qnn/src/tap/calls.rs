//! Our entries in the function table, except for composing and executing: create, load, finalize, free.

#![expect(unsafe_code, reason = "FFI")]

use super::process::{Context, REGISTRY, Tap, current};
use super::{binaries, compose, detail, execute, guard, list, logs, notify, options, power, providers, system};
use crate::api::{ContextKey, FunctionTable, GraphKey, text};
use crate::sys::slots::core as slots;
use crate::sys::{self, Handle};
use qnnscope_core::tap::{Call, TapMessage};
use serde_json::{Map, Value};
use std::ffi::{c_char, c_void};
use std::sync::atomic::Ordering;

/// Functions by slot.
type Entries = Vec<(usize, *const c_void)>;

/// Our entries for a provider, by slot.
pub(super) fn entries(provider: usize) -> Entries {
    const MAKE: [fn() -> Entries; providers::MOST] = numbered!(entries_of);
    MAKE.get(provider).map_or_else(Vec::new, |make| make())
}

fn entries_of<const P: usize>() -> Entries {
    vec![
        (slots::BACKEND_CREATE, backend_create::<P> as *const c_void),
        (slots::BACKEND_VALIDATE_OP_CONFIG, compose::validate_op::<P> as *const c_void),
        (slots::BACKEND_FREE, backend_free::<P> as *const c_void),
        (slots::CONTEXT_CREATE, context_create::<P> as *const c_void),
        (slots::CONTEXT_GET_BINARY, context_get_binary::<P> as *const c_void),
        (slots::CONTEXT_CREATE_FROM_BINARY, context_from_binary::<P> as *const c_void),
        (slots::CONTEXT_FREE, context_free::<P> as *const c_void),
        (slots::GRAPH_CREATE, graph_create::<P> as *const c_void),
        (slots::GRAPH_ADD_NODE, compose::add_node::<P> as *const c_void),
        (slots::GRAPH_FINALIZE, graph_finalize::<P> as *const c_void),
        (slots::GRAPH_RETRIEVE, graph_retrieve::<P> as *const c_void),
        (slots::GRAPH_EXECUTE, execute::graph_execute::<P> as *const c_void),
        (slots::GRAPH_EXECUTE_ASYNC, notify::graph_execute_async::<P> as *const c_void),
        (slots::TENSOR_CREATE_CONTEXT_TENSOR, compose::context_tensor::<P> as *const c_void),
        (slots::TENSOR_CREATE_GRAPH_TENSOR, compose::graph_tensor::<P> as *const c_void),
        (slots::LOG_CREATE, logs::log_create::<P> as *const c_void),
        (slots::LOG_SET_LEVEL, logs::log_set_level::<P> as *const c_void),
        (slots::LOG_FREE, logs::log_free::<P> as *const c_void),
        (slots::MEM_REGISTER, mem_register::<P> as *const c_void),
        (slots::MEM_DEREGISTER, mem_deregister::<P> as *const c_void),
        (slots::DEVICE_GET_INFRASTRUCTURE, power::get_infrastructure::<P> as *const c_void),
        (slots::DEVICE_CREATE, device_create::<P> as *const c_void),
        (slots::CONTEXT_CREATE_FROM_BINARY_WITH_SIGNAL, context_from_binary_with_signal::<P> as *const c_void),
        (slots::CONTEXT_CREATE_FROM_BINARY_LIST_ASYNC, list::contexts_from_list::<P> as *const c_void),
        (slots::CONTEXT_CREATE_FROM_BINARY_WITH_CALLBACK, context_from_binary_with_callback::<P> as *const c_void),
    ]
}

/// A call in progress.
pub(super) struct Going {
    tap: &'static Tap,
    call: Call,
}

impl Going {
    /// When it began.
    pub fn start_ns(&self) -> u64 {
        self.call.start_ns
    }
}

/// Reports the start of a call; nothing if there is no reader.
pub(super) fn begin(provider: usize, name: &str, graph: Option<u32>) -> Option<Going> {
    guard(|| {
        let tap = current()?;
        let (start_ns, thread) = (system::now_ns(), system::thread_id());
        tap.writer.say_now(&TapMessage::Began { call: name.to_owned(), t_ns: start_ns, thread, graph });
        let call = Call {
            call: name.to_owned(),
            provider: u32::try_from(provider).unwrap_or(u32::MAX),
            thread,
            graph,
            rss_before: system::rss_bytes(),
            // Taken last before the call, so its time includes nothing of ours.
            start_ns: system::now_ns(),
            ..Call::default()
        };
        Some(Going { tap, call })
    })
    .flatten()
}

/// Reports the end of a call; `fill` adds what it created.
pub(super) fn end(going: Option<Going>, code: u64, fill: impl FnOnce(&Tap, &mut Call)) {
    let now_ns = system::now_ns();
    let Some(Going { tap, mut call }) = going else { return };
    guard(|| {
        call.duration_ns = now_ns.saturating_sub(call.start_ns);
        call.code = code;
        call.rss_after = system::rss_bytes();
        if code != 0 {
            call.message = providers::table(call.provider as usize).and_then(|table| table.message(code));
        }
        fill(tap, &mut call);
        tap.writer.say(&TapMessage::Ended(Box::new(call)));
    });
}

/// The handle that a successful call wrote.
///
/// # Safety
/// `out` is the out pointer of a call that returned `code`.
unsafe fn made(code: u64, out: *mut Handle) -> Option<Handle> {
    // SAFETY: promised by the caller.
    (code == 0 && !out.is_null()).then(|| unsafe { *out }).filter(|handle| !handle.is_null())
}

pub(super) fn backend_id(provider: usize) -> u32 {
    providers::table(provider).map_or(0, FunctionTable::backend_id)
}

unsafe extern "C" fn backend_create<const P: usize>(
    log: Handle,
    configs: *const *const c_void,
    out: *mut Handle,
) -> u64 {
    let Some(real) = providers::real::<sys::BackendCreateFn>(P, slots::BACKEND_CREATE) else {
        return sys::NOT_SUPPORTED;
    };
    let going = begin(P, "backendCreate", None);
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(log, configs, out) };
    end(going, code, |_, _| ());
    code
}

unsafe extern "C" fn backend_free<const P: usize>(backend: Handle) -> u64 {
    let Some(real) = providers::real::<sys::FreeFn>(P, slots::BACKEND_FREE) else { return sys::NOT_SUPPORTED };
    guard(|| {
        detail::backend_ends(P, backend.addr());
        // Its contexts go with it.
        REGISTRY.with(|registry| {
            let of_it = |((owner, handle), context): (&(usize, usize), &Context)| {
                (*owner == P && context.backend == backend.addr()).then_some(*handle)
            };
            let contexts: Vec<usize> = registry.contexts().iter().filter_map(of_it).collect();
            for context in contexts {
                registry.remove_context(P, context);
            }
        });
    });
    let going = begin(P, "backendFree", None);
    // SAFETY: forwards the caller's argument.
    let code = unsafe { real(backend) };
    end(going, code, |_, _| ());
    code
}

unsafe extern "C" fn device_create<const P: usize>(
    log: Handle,
    configs: *const *const c_void,
    out: *mut Handle,
) -> u64 {
    let Some(real) = providers::real::<sys::DeviceCreateFn>(P, slots::DEVICE_CREATE) else { return sys::NOT_SUPPORTED };
    let going = begin(P, "deviceCreate", None);
    // SAFETY: what the caller passed to deviceCreate of this backend.
    let (options, customs) = guard(|| unsafe { options::of_device(backend_id(P), configs) }).unwrap_or_default();
    let wants_repair = going.as_ref().is_some_and(|going| going.tap.settings.repair_device_config);
    let fixed: Vec<Option<sys::HtpDeviceCustomConfig>> =
        if wants_repair { customs.iter().map(|words| words.and_then(options::repaired)).collect() } else { Vec::new() };
    let code = if fixed.iter().any(Option::is_some) {
        let records: Vec<sys::CustomConfig> = fixed
            .iter()
            .map(|record| sys::CustomConfig {
                option: 0,
                custom: record
                    .as_ref()
                    .map_or(std::ptr::null_mut(), |record| std::ptr::from_ref(record).cast_mut().cast()),
            })
            .collect();
        let mut list: Vec<*const c_void> = Vec::with_capacity(records.len() + 1);
        for (at, record) in records.iter().enumerate() {
            let ours = std::ptr::from_ref(record).cast();
            // SAFETY: the caller's list has at least as many entries as were read from it.
            list.push(if fixed[at].is_some() { ours } else { unsafe { *configs.add(at) } });
        }
        list.push(std::ptr::null());
        if let Some(going) = &going {
            let text = "a device option was passed on in the layout of HTP API 5.47 and later (--repair device-config)";
            going.tap.writer.say(&TapMessage::Note { t_ns: system::now_ns(), text: text.to_owned() });
        }
        // SAFETY: forwards the caller's arguments with a list of ours, null-ended like the caller's, that outlives the call.
        unsafe { real(log, list.as_ptr(), out) }
    } else {
        // SAFETY: forwards the caller's arguments.
        unsafe { real(log, configs, out) }
    };
    end(going, code, |_, call| call.options = options);
    code
}

/// Registers a created context and returns its id.
pub(super) fn note_context(provider: usize, backend: Handle, handle: Handle) -> u32 {
    REGISTRY.with(|registry| {
        // A reused handle: its former context was freed unseen.
        registry.remove_context(provider, handle.addr());
        let id = registry.fresh_id();
        let context = Context { id, backend: backend.expose_provenance(), graphs: Vec::new() };
        registry.contexts().insert((provider, handle.addr()), context);
        id
    })
}

unsafe extern "C" fn context_create<const P: usize>(
    backend: Handle,
    device: Handle,
    configs: *const *const c_void,
    out: *mut Handle,
) -> u64 {
    let Some(real) = providers::real::<sys::ContextCreateFn>(P, slots::CONTEXT_CREATE) else {
        return sys::NOT_SUPPORTED;
    };
    let going = begin(P, "contextCreate", None);
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(backend, device, configs, out) };
    end(going, code, |_, call| {
        // SAFETY: of the call that just returned; the caller's options of this backend.
        let (made, options) = unsafe { (made(code, out), options::of_context(backend_id(P), configs)) };
        call.context = made.map(|made| note_context(P, backend, made));
        call.options = options;
    });
    code
}

/// The common part of the three ways to load a binary.
///
/// # Safety
/// The call returned `code`, and this many bytes can be read at `binary`.
unsafe fn loaded(
    going: Option<Going>,
    (provider, backend, code): (usize, Handle, u64),
    (binary, bytes): (*const c_void, u64),
    made: Option<Handle>,
    options: impl FnOnce() -> Map<String, Value>,
) {
    end(going, code, |tap, call| {
        call.context = made.map(|made| note_context(provider, backend, made));
        call.binary_bytes = Some(bytes);
        call.options = options();
        if call.context.is_some() {
            // SAFETY: promised by the caller; the backend took the whole of it.
            call.binary = unsafe { binaries::keep(tap, provider, binary, bytes) };
        }
    });
}

unsafe extern "C" fn context_from_binary<const P: usize>(
    backend: Handle,
    device: Handle,
    configs: *const *const c_void,
    binary: *const c_void,
    bytes: u64,
    out: *mut Handle,
    profile: Handle,
) -> u64 {
    let real = providers::real::<sys::ContextCreateFromBinaryFn>(P, slots::CONTEXT_CREATE_FROM_BINARY);
    let Some(real) = real else { return sys::NOT_SUPPORTED };
    let going = begin(P, "contextCreateFromBinary", None);
    // SAFETY: forwards the caller's arguments; afterwards, its out pointer and options.
    unsafe {
        let code = real(backend, device, configs, binary, bytes, out, profile);
        loaded(going, (P, backend, code), (binary, bytes), made(code, out), || {
            options::of_context(backend_id(P), configs)
        });
        code
    }
}

unsafe extern "C" fn context_from_binary_with_signal<const P: usize>(
    backend: Handle,
    device: Handle,
    configs: *const *const c_void,
    binary: *const c_void,
    bytes: u64,
    out: *mut Handle,
    profile: Handle,
    signal: Handle,
) -> u64 {
    let slot = slots::CONTEXT_CREATE_FROM_BINARY_WITH_SIGNAL;
    let Some(real) = providers::real::<sys::ContextCreateFromBinaryWithSignalFn>(P, slot) else {
        return sys::NOT_SUPPORTED;
    };
    let going = begin(P, "contextCreateFromBinary", None);
    // SAFETY: as in `context_from_binary`.
    unsafe {
        let code = real(backend, device, configs, binary, bytes, out, profile, signal);
        loaded(going, (P, backend, code), (binary, bytes), made(code, out), || {
            options::of_context(backend_id(P), configs)
        });
        code
    }
}

unsafe extern "C" fn context_from_binary_with_callback<const P: usize>(
    backend: Handle,
    device: Handle,
    configs: *const *const c_void,
    callback: *const c_void,
    binary: *const c_void,
    bytes: u64,
    out: *mut Handle,
    profile: Handle,
    signal: Handle,
) -> u64 {
    let slot = slots::CONTEXT_CREATE_FROM_BINARY_WITH_CALLBACK;
    let Some(real) = providers::real::<sys::ContextCreateFromBinaryWithCallbackFn>(P, slot) else {
        return sys::NOT_SUPPORTED;
    };
    let going = begin(P, "contextCreateFromBinary", None);
    // SAFETY: as in `context_from_binary`.
    unsafe {
        let code = real(backend, device, configs, callback, binary, bytes, out, profile, signal);
        loaded(going, (P, backend, code), (binary, bytes), made(code, out), || {
            options::of_context(backend_id(P), configs)
        });
        code
    }
}

unsafe extern "C" fn context_get_binary<const P: usize>(
    context: Handle,
    data: *mut c_void,
    room: u64,
    written: *mut u64,
) -> u64 {
    let Some(real) = providers::real::<sys::ContextGetBinaryFn>(P, slots::CONTEXT_GET_BINARY) else {
        return sys::NOT_SUPPORTED;
    };
    let going = begin(P, "contextGetBinary", None);
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(context, data, room, written) };
    end(going, code, |_, call| {
        call.context = context_id(P, context);
        // SAFETY: the caller's out pointer, written if the call succeeded.
        call.binary_bytes = (code == 0 && !written.is_null()).then(|| unsafe { *written });
    });
    code
}

fn context_id(provider: usize, context: Handle) -> Option<u32> {
    REGISTRY.with(|registry| registry.contexts().get(&(provider, context.addr())).map(|context| context.id))
}

/// The id of a registered graph.
pub(super) fn id_of_graph(provider: usize, graph: Handle) -> Option<u32> {
    REGISTRY.with(|registry| registry.graphs().get(&(provider, graph.addr())).map(|graph| graph.id))
}

/// Registers a graph of a context and returns its id.
pub(super) fn graph_id(tap: &Tap, provider: usize, context: Handle, graph: Handle, name: &str) -> Option<u32> {
    let id =
        REGISTRY.with(|registry| registry.add_graph(provider, graph.addr(), Some(context.addr()), name.to_owned()));
    if id.is_none() {
        tap.lost_graphs.fetch_add(1, Ordering::Relaxed);
    }
    id
}

unsafe extern "C" fn context_free<const P: usize>(context: Handle, profile: Handle) -> u64 {
    let Some(real) = providers::real::<sys::ContextFreeFn>(P, slots::CONTEXT_FREE) else { return sys::NOT_SUPPORTED };
    let going = begin(P, "contextFree", None);
    // Before the call: once it returns, another thread may already own the same handle.
    let id = guard(|| {
        if let Some(tap) = current() {
            tap.recorder.take(ContextKey::of(context));
        }
        REGISTRY.with(|registry| registry.remove_context(P, context.addr()))
    });
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(context, profile) };
    end(going, code, |_, call| call.context = id.flatten());
    code
}

unsafe extern "C" fn graph_create<const P: usize>(
    context: Handle,
    name: *const c_char,
    configs: *const *const c_void,
    out: *mut Handle,
) -> u64 {
    let Some(real) = providers::real::<sys::GraphCreateFn>(P, slots::GRAPH_CREATE) else { return sys::NOT_SUPPORTED };
    let going = begin(P, "graphCreate", None);
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(context, name, configs, out) };
    end(going, code, |tap, call| {
        let name = text(name);
        // SAFETY: of the call that just returned; the caller's options of this backend.
        let (made, options) = unsafe { (made(code, out), options::of_graph(backend_id(P), configs)) };
        call.options = options;
        call.context = context_id(P, context);
        if let Some(graph) = made {
            call.graph = graph_id(tap, P, context, graph, &name);
            if call.graph.is_some() {
                tap.recorder.graph_created(ContextKey::of(context), GraphKey::of(graph), name.clone());
            }
        }
        call.name = Some(name);
    });
    code
}

unsafe extern "C" fn graph_retrieve<const P: usize>(context: Handle, name: *const c_char, out: *mut Handle) -> u64 {
    let Some(real) = providers::real::<sys::GraphRetrieveFn>(P, slots::GRAPH_RETRIEVE) else {
        return sys::NOT_SUPPORTED;
    };
    let going = begin(P, "graphRetrieve", None);
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(context, name, out) };
    end(going, code, |tap, call| {
        let name = text(name);
        call.context = context_id(P, context);
        // SAFETY: of the call that just returned.
        if let Some(graph) = unsafe { made(code, out) } {
            call.graph = graph_id(tap, P, context, graph, &name);
        }
        call.name = Some(name);
    });
    code
}

unsafe extern "C" fn graph_finalize<const P: usize>(graph: Handle, profile: Handle, signal: Handle) -> u64 {
    let Some(real) = providers::real::<sys::GraphFinalizeFn>(P, slots::GRAPH_FINALIZE) else {
        return sys::NOT_SUPPORTED;
    };
    let known = guard(|| {
        let known = REGISTRY.with(|registry| registry.graphs().get(&(P, graph.addr())).cloned())?;
        let tap = current()?;
        if let Some((mut composed, before)) = tap.recorder.finish_graph(GraphKey::of(graph)) {
            let ops = std::mem::take(&mut composed.ops);
            let op_count = u32::try_from(before + ops.len()).unwrap_or(u32::MAX);
            tap.writer.say(&TapMessage::Composed { graph: known.id, op_count, head: Box::new(composed) });
            if !ops.is_empty() {
                tap.writer.say(&TapMessage::GraphOps { graph: known.id, ops });
            }
        }
        Some(known)
    })
    .flatten();
    let going = begin(P, "graphFinalize", known.as_ref().map(|known| known.id));
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(graph, profile, signal) };
    end(going, code, |_, call| {
        if let Some(known) = known {
            (call.context, call.name) = (known.context, Some(known.name.into()));
        }
    });
    code
}

unsafe extern "C" fn mem_register<const P: usize>(
    context: Handle,
    descriptors: *const c_void,
    count: u32,
    out: *mut Handle,
) -> u64 {
    let Some(real) = providers::real::<sys::MemRegisterFn>(P, slots::MEM_REGISTER) else { return sys::NOT_SUPPORTED };
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(context, descriptors, count, out) };
    memory_shared(i64::from(count), code);
    code
}

unsafe extern "C" fn mem_deregister<const P: usize>(handles: *const Handle, count: u32) -> u64 {
    let Some(real) = providers::real::<sys::MemDeregisterFn>(P, slots::MEM_DEREGISTER) else {
        return sys::NOT_SUPPORTED;
    };
    // SAFETY: forwards the caller's arguments.
    let code = unsafe { real(handles, count) };
    memory_shared(-i64::from(count), code);
    code
}

fn memory_shared(count: i64, code: u64) {
    guard(|| {
        let Some(tap) = current() else { return };
        tap.writer.say(&TapMessage::MemoryShared { t_ns: system::now_ns(), count, code: code & 0xffff });
    });
}
