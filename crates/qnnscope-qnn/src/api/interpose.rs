//! The interposer: our own entries in the function table through which models compose their graphs.
//!
//! Model libraries and the DLC composer take the function table from the caller. Ours forwards to the real backend and
//! records every graph, tensor and op on the way; or, for inspections and checks, answers itself, so that any model can
//! be read without a backend that runs it.

#![expect(unsafe_code, reason = "FFI")]

use super::expose::{self, Exposing, Exposure};
use super::htp::GraphOptions;
use super::log;
use super::raw::text;
use super::recording::{ContextKey, GraphKey, Owner, Recorder, Recording, Refusal};
use super::table::as_function;
use super::tensor::records;
use super::verdict::{Answer, Judge};
use super::{Backend, Context, Library};
use crate::ASKING;
use crate::sys::{self, Handle};
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who answers the calls of the composing model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The backend; calls are recorded on the way.
    Forward,
    /// We do: everything is accepted and nothing built.
    RecordOnly,
    /// We do, but the backend is asked about each op.
    Ask,
}

/// Where a model composes its graphs.
pub struct Composition<'a> {
    pub(super) library: &'a Library,
    pub(super) backend: Handle,
    pub(super) context: Handle,
    pub(super) mode: Mode,
    pub(super) options: GraphOptions,
    pub(super) exposure: Option<Exposure>,
}

impl<'a> Composition<'a> {
    /// Into a context, with these options for every graph.
    pub fn into_context(context: &'a Context, options: GraphOptions) -> Self {
        Self {
            library: context.library(),
            backend: context.backend().handle(),
            context: context.handle(),
            mode: Mode::Forward,
            options,
            exposure: None,
        }
    }

    /// The same, with these tensors opened on the way. Such a graph serves for reading values: it is slower than the
    /// model's own, since backends cannot fuse ops across a tensor they must hand out.
    #[must_use]
    pub fn exposing(self, exposure: Exposure) -> Self {
        Self { exposure: Some(exposure), ..self }
    }

    /// Into nothing, asking `backend` about each op: whatever it answers, composition continues.
    pub fn asking(backend: &'a Backend) -> Self {
        let context: Handle = std::ptr::without_provenance_mut(8);
        Self {
            library: backend.library(),
            backend: backend.handle(),
            context,
            mode: Mode::Ask,
            options: GraphOptions::default(),
            exposure: None,
        }
    }

    /// Into nothing, to read the graphs without a backend. `library` only provides its version and table size; it
    /// receives no call except propertyHasCapability.
    pub fn reading(library: &'a Library) -> Self {
        // Composers need non-null handles; in this mode nobody dereferences them.
        let stand_in: Handle = std::ptr::without_provenance_mut(8);
        Self {
            library,
            backend: stand_in,
            context: stand_in,
            mode: Mode::RecordOnly,
            options: GraphOptions::default(),
            exposure: None,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Real {
    validate: Option<sys::ValidateOpConfigFn>,
    graph_create: Option<sys::GraphCreateFn>,
    add_node: Option<sys::GraphAddNodeFn>,
    graph_tensor: Option<sys::CreateTensorFn>,
    context_tensor: Option<sys::CreateTensorFn>,
}

/// The backend's handle for the callbacks, which may run on any thread.
#[derive(Clone, Copy)]
struct BackendHandle(Handle);

// SAFETY: the value is opaque here; QNN allows calls with one backend from several threads.
unsafe impl Send for BackendHandle {}

struct State {
    mode: Mode,
    backend: BackendHandle,
    real: Real,
    options: GraphOptions,
    recorder: Arc<Recorder>,
    context: ContextKey,
    refusals: Vec<Refusal>,
    judge: Judge,
    options_refused: Option<u64>,
    next_id: u32,
    exposing: Option<Exposing>,
}

/// The current composition: the callbacks carry no user data, and a runner composes one model.
static STATE: Mutex<Option<State>> = Mutex::new(None);

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Code for a call that is invalid now.
const INVALID_STATE: u64 = 1005;

/// The function table with our entries in place; begins a recording.
pub(super) fn begin(composition: &Composition<'_>) -> Vec<*const c_void> {
    let Composition { library, mode, options, .. } = *composition;
    let exposing = composition.exposure.clone().map(Exposing::new);
    let from = library.table();
    let real = Real {
        validate: as_function(from.raw(sys::slots::core::BACKEND_VALIDATE_OP_CONFIG)),
        graph_create: as_function(from.raw(sys::slots::core::GRAPH_CREATE)),
        add_node: as_function(from.raw(sys::slots::core::GRAPH_ADD_NODE)),
        graph_tensor: as_function(from.raw(sys::slots::core::TENSOR_CREATE_GRAPH_TENSOR)),
        context_tensor: as_function(from.raw(sys::slots::core::TENSOR_CREATE_CONTEXT_TENSOR)),
    };
    *state() = Some(State {
        mode,
        backend: BackendHandle(composition.backend),
        real,
        options,
        recorder: Arc::default(),
        context: ContextKey::of(composition.context),
        refusals: Vec::new(),
        judge: Judge::default(),
        options_refused: None,
        next_id: 1,
        exposing,
    });
    let mut table: Vec<*const c_void> = (0..from.slots()).map(|slot| from.raw(slot)).collect();
    if mode != Mode::Forward {
        // No backend function may be called with the stand-in handles; capabilities need none.
        for (slot, entry) in table.iter_mut().enumerate() {
            if slot != sys::slots::core::PROPERTY_HAS_CAPABILITY && !entry.is_null() {
                *entry = not_supported as *const c_void;
            }
        }
        table[sys::slots::core::GRAPH_SET_CONFIG] = accept as *const c_void;
    }
    table[sys::slots::core::BACKEND_VALIDATE_OP_CONFIG] = on_validate as *const c_void;
    table[sys::slots::core::GRAPH_CREATE] = on_graph_create as *const c_void;
    table[sys::slots::core::GRAPH_ADD_NODE] = on_add_node as *const c_void;
    table[sys::slots::core::TENSOR_CREATE_GRAPH_TENSOR] = on_graph_tensor as *const c_void;
    table[sys::slots::core::TENSOR_CREATE_CONTEXT_TENSOR] = on_context_tensor as *const c_void;
    table
}

/// Ends the recording.
pub(super) fn finish() -> Recording {
    match state().take() {
        None => Recording::default(),
        Some(state) => Recording {
            graphs: state.recorder.take(state.context),
            refusals: state.refusals,
            verdicts: state.judge.verdicts,
            options_refused: state.options_refused,
            exposed: state.exposing.map(Exposing::take).unwrap_or_default(),
        },
    }
}

/// The recorder of the current composition. It has its own lock, so the state is not held while it reads.
fn recorder() -> Option<Arc<Recorder>> {
    state().as_ref().map(|state| state.recorder.clone())
}

/// Gives access to the opened tensors.
fn with_exposing(work: &mut dyn FnMut(&mut Exposing)) {
    if let Some(State { exposing: Some(exposing), .. }) = &mut *state() {
        work(exposing);
    }
}

extern "C" fn not_supported() -> u64 {
    sys::NOT_SUPPORTED
}

extern "C" fn accept() -> u64 {
    0
}

unsafe extern "C" fn on_validate(backend: Handle, op: sys::OpConfig) -> u64 {
    let (mode, real, ours) = match &*state() {
        Some(state) => (state.mode, state.real.validate, state.backend),
        None => return INVALID_STATE,
    };
    match mode {
        Mode::RecordOnly => return 0,
        Mode::Ask => {
            ask(real, ours.0, &op);
            return 0;
        }
        Mode::Forward => {}
    }
    let Some(real) = real else { return sys::NOT_SUPPORTED };
    // SAFETY: forwards what the composing model passed.
    let (code, log) = log::noted_during(|| unsafe { real(backend, op) });
    // Only the next call names the graph; models compose one graph after another.
    note_refusal(None, &op, "backendValidateOpConfig", code, log);
    code
}

/// Asks the backend about an op and keeps the answer until the op is added; without a validator there is none. The
/// state is not held meanwhile, because the backend logs.
fn ask(real: Option<sys::ValidateOpConfigFn>, backend: Handle, op: &sys::OpConfig) {
    let Some(real) = real else { return };
    log::say(&format!("{ASKING}`{}` ({})", text(op.v1.name), text(op.v1.op_type)));
    // SAFETY: the backend is alive, the op is what the composing model passed.
    let (code, log) = log::kept_during(|| unsafe { real(backend, *op) });
    if let Some(state) = &mut *state() {
        let tensors = records(op.v1.inputs, op.v1.input_count).into_iter();
        let ids = tensors.chain(records(op.v1.outputs, op.v1.output_count)).map(|tensor| tensor.body.id).collect();
        state.judge.keep(text(op.v1.name), Answer { code: code & 0xffff, log, tensor_ids: ids });
    }
}

/// Records that an op was refused: of this graph, or of the one begun last.
fn note_refusal(graph: Option<Handle>, op: &sys::OpConfig, call: &'static str, code: u64, log: Vec<String>) {
    if code == 0 {
        return;
    }
    if let Some(state) = &mut *state() {
        let Some((graph, row)) = state.recorder.described(state.context, graph.map(GraphKey::of), op) else { return };
        let tensors = records(op.v1.inputs, op.v1.input_count).into_iter();
        let ids = tensors.chain(records(op.v1.outputs, op.v1.output_count)).map(|tensor| tensor.body.id).collect();
        state.refusals.push(Refusal { graph, op: row, call, code: code & 0xffff, log, tensor_ids: ids });
    }
}

unsafe extern "C" fn on_graph_create(
    context: Handle,
    name: *const c_char,
    configs: *const *const c_void,
    out: *mut Handle,
) -> u64 {
    let (mode, real, options) = match &*state() {
        Some(state) => (state.mode, state.real.graph_create, state.options),
        None => return INVALID_STATE,
    };
    if out.is_null() {
        return INVALID_STATE;
    }
    let code = match mode {
        Mode::RecordOnly | Mode::Ask => {
            let count = |state: &State| state.recorder.graph_count(ContextKey::of(context));
            let number = state().as_ref().map_or(1, |state| count(state) + 1);
            // SAFETY: the caller's out pointer, checked above. The handle is only ever compared, never followed.
            unsafe { *out = std::ptr::without_provenance_mut(number) };
            0
        }
        Mode::Forward => {
            let Some(real) = real else { return sys::NOT_SUPPORTED };
            let mut htp = options.htp_records();
            let ours = options.configs(&mut htp);
            // SAFETY: a list of configs is null-terminated.
            let theirs = unsafe { null_terminated(configs) };
            let with_ours = theirs.iter().copied().chain(ours.iter().map(|c| std::ptr::from_ref(c).cast()));
            let mut code = create_graph(real, context, name, with_ours, out);
            if code != 0 && !ours.is_empty() {
                if let Some(state) = &mut *state() {
                    state.options_refused = Some(code & 0xffff);
                }
                // A backend that has no such options can still run the graph without them.
                if code & 0xffff == sys::NOT_SUPPORTED {
                    code = create_graph(real, context, name, theirs.iter().copied(), out);
                }
            }
            code
        }
    };
    if code == 0
        && let Some(state) = &mut *state()
    {
        // SAFETY: the call succeeded, so the handle was written.
        let graph = GraphKey::of(unsafe { *out });
        state.recorder.graph_created(ContextKey::of(context), graph, text(name));
        if let Some(exposing) = &mut state.exposing {
            exposing.graph_created(graph, text(name));
        }
    }
    code
}

/// Calls the real graphCreate with a list of configs.
fn create_graph(
    real: sys::GraphCreateFn,
    context: Handle,
    name: *const c_char,
    configs: impl Iterator<Item = *const c_void>,
    out: *mut Handle,
) -> u64 {
    let list: Vec<*const c_void> = configs.chain(std::iter::once(std::ptr::null())).collect();
    let pointer = if list.len() == 1 { std::ptr::null() } else { list.as_ptr() };
    // SAFETY: forwards the composing model's arguments with a null-terminated list that outlives the call.
    unsafe { real(context, name, pointer, out) }
}

/// # Safety
/// `list` is null or a null-terminated array.
unsafe fn null_terminated(list: *const *const c_void) -> Vec<*const c_void> {
    let mut entries = Vec::new();
    if list.is_null() {
        return entries;
    }
    loop {
        // SAFETY: the array ends with a null entry, which stops the loop.
        let entry = unsafe { *list.add(entries.len()) };
        if entry.is_null() {
            return entries;
        }
        entries.push(entry);
    }
}

unsafe extern "C" fn on_graph_tensor(graph: Handle, tensor: *mut sys::Tensor) -> u64 {
    // SAFETY: passes the caller's arguments on.
    unsafe { create_tensor(Some(graph), graph, tensor) }
}

unsafe extern "C" fn on_context_tensor(context: Handle, tensor: *mut sys::Tensor) -> u64 {
    // SAFETY: passes the caller's arguments on.
    unsafe { create_tensor(None, context, tensor) }
}

/// # Safety
/// `tensor` is null or a tensor record of version 1 or 2; `owner` is the graph or context the real call expects.
unsafe fn create_tensor(graph: Option<Handle>, owner: Handle, tensor: *mut sys::Tensor) -> u64 {
    if tensor.is_null() {
        return 1004;
    }
    let (mode, real, exposes) = match &mut *state() {
        Some(state) => {
            let real = if graph.is_some() { state.real.graph_tensor } else { state.real.context_tensor };
            (state.mode, real, graph.is_some() && state.exposing.is_some())
        }
        None => return INVALID_STATE,
    };
    let code = match mode {
        Mode::RecordOnly | Mode::Ask => {
            if let Some(state) = &mut *state() {
                // SAFETY: the id stands at the same place in both versions.
                unsafe { (*tensor).body.id = state.next_id };
                state.next_id += 1;
            }
            0
        }
        Mode::Forward => {
            let Some(real) = real else { return sys::NOT_SUPPORTED };
            if exposes {
                // SAFETY: the real function of graph tensors, and the caller's arguments.
                unsafe { expose::create(real, owner, tensor, with_exposing) }
            } else {
                // SAFETY: forwards the caller's arguments.
                unsafe { real(owner, tensor) }
            }
        }
    };
    if code != 0 {
        return code;
    }
    // SAFETY: the record is valid for both versions up to the buffer; later fields are not read.
    let raw = unsafe { &*tensor };
    if let Some(recorder) = recorder() {
        let owner = match graph {
            None => Owner::Context(ContextKey::of(owner)),
            Some(graph) => Owner::Graph(GraphKey::of(graph)),
        };
        recorder.tensor_created(owner, raw);
    }
    0
}

unsafe extern "C" fn on_add_node(graph: Handle, op: sys::OpConfig) -> u64 {
    let (mode, real, validate, backend) = match &*state() {
        Some(state) => (state.mode, state.real.add_node, state.real.validate, state.backend),
        None => return INVALID_STATE,
    };
    if mode == Mode::Ask {
        let asked = state().as_ref().is_some_and(|state| state.judge.has_asked(&text(op.v1.name)));
        if !asked {
            ask(validate, backend.0, &op);
        }
    }
    if mode == Mode::Forward {
        let Some(real) = real else { return sys::NOT_SUPPORTED };
        let patched = match &mut *state() {
            Some(State { exposing: Some(exposing), .. }) => exposing.patch(GraphKey::of(graph), &op),
            _ => None,
        };
        let passed = patched.as_ref().map_or(op, |patched| patched.op(&op));
        // SAFETY: forwards what the composing model passed, with tensors that were opened; `patched` outlives the call.
        let (code, log) = log::noted_during(|| unsafe { real(graph, passed) });
        if code != 0 {
            note_refusal(Some(graph), &op, "graphAddNode", code, log);
            return code;
        }
    }
    if let Some(place) = recorder().and_then(|recorder| recorder.op_added(GraphKey::of(graph), &op))
        && let Some(state) = &mut *state()
    {
        state.judge.place(place.graph, place.op);
    }
    0
}
