//! The interposer: our own entries in the function table, through which models compose their graphs.
//!
//! Model libraries and the DLC composer take the function table from the caller. Ours forwards to the real backend and
//! writes down every graph, tensor and op on the way; or, for inspection, answers by itself, so that any model can be read
//! without a backend that runs it.

#![expect(unsafe_code, reason = "FFI")]

use super::htp::GraphOptions;
use super::interface::{as_function, text};
use super::tensor::{describe, param_value, records};
use super::{Context, Library};
use crate::backends::qnn::sys::{self, Handle};
use crate::models::{Graph, Op, Tensor, TensorKind, macs};
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Who answers the calls of the composing model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The backend; calls are written down on the way.
    Forward,
    /// We do: everything is accepted, nothing is built.
    RecordOnly,
}

/// Where a model composes its graphs.
pub struct Composition<'a> {
    pub(super) library: &'a Library,
    pub(super) backend: Handle,
    pub(super) context: Handle,
    pub(super) mode: Mode,
    pub(super) options: GraphOptions,
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
        }
    }

    /// Into nothing, to read the graphs without a backend. `library` only lends its version and table size; no call
    /// reaches it but propertyHasCapability.
    pub fn reading(library: &'a Library) -> Self {
        // Composers want handles that are not null; in this mode nobody follows them.
        let stand_in: Handle = std::ptr::without_provenance_mut(8);
        Self { library, backend: stand_in, context: stand_in, mode: Mode::RecordOnly, options: GraphOptions::default() }
    }
}

/// An op that the backend refused while composing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Op name.
    pub op: String,
    /// Op type.
    pub op_type: String,
    /// The call that refused.
    pub call: &'static str,
    /// Returned code.
    pub code: u64,
}

/// What was written down.
#[derive(Debug, Default)]
pub struct Recording {
    /// Graphs in the order of creation, without inputs and outputs in execution order.
    pub graphs: Vec<Graph>,
    /// Ops that were refused.
    pub refusals: Vec<Refusal>,
    /// Code of a graphCreate that failed while options of ours were in it.
    pub options_refused: Option<u64>,
}

struct KnownTensor {
    info: Tensor,
    bytes: u64,
}

struct OpenGraph {
    handle: usize,
    graph: Graph,
    tensors: HashMap<u32, KnownTensor>,
}

#[derive(Clone, Copy, Default)]
struct Real {
    validate: Option<sys::ValidateOpConfigFn>,
    graph_create: Option<sys::GraphCreateFn>,
    add_node: Option<sys::GraphAddNodeFn>,
    graph_tensor: Option<sys::CreateTensorFn>,
    context_tensor: Option<sys::CreateTensorFn>,
}

struct State {
    mode: Mode,
    real: Real,
    options: GraphOptions,
    graphs: Vec<OpenGraph>,
    context_tensors: HashMap<u32, KnownTensor>,
    refusals: Vec<Refusal>,
    options_refused: Option<u64>,
    next_id: u32,
}

/// The one composition going on: the callbacks carry no user data, and a runner composes one model.
static STATE: Mutex<Option<State>> = Mutex::new(None);

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Code for a call that makes no sense now.
const INVALID_STATE: u64 = 1005;
const NOT_SUPPORTED: u64 = 1000;

/// The function table with our entries in place; begins a recording.
pub(super) fn begin(composition: &Composition<'_>) -> Vec<*const c_void> {
    let Composition { library, mode, options, .. } = *composition;
    let real = Real {
        validate: as_function(library.raw(sys::slots::core::BACKEND_VALIDATE_OP_CONFIG)),
        graph_create: as_function(library.raw(sys::slots::core::GRAPH_CREATE)),
        add_node: as_function(library.raw(sys::slots::core::GRAPH_ADD_NODE)),
        graph_tensor: as_function(library.raw(sys::slots::core::TENSOR_CREATE_GRAPH_TENSOR)),
        context_tensor: as_function(library.raw(sys::slots::core::TENSOR_CREATE_CONTEXT_TENSOR)),
    };
    *state() = Some(State {
        mode,
        real,
        options,
        graphs: Vec::new(),
        context_tensors: HashMap::new(),
        refusals: Vec::new(),
        options_refused: None,
        next_id: 1,
    });
    let mut table: Vec<*const c_void> = (0..library.slots()).map(|slot| library.raw(slot)).collect();
    if mode == Mode::RecordOnly {
        // Nothing of the backend may be called with the stand-in handles; capabilities need none.
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
            graphs: state.graphs.into_iter().map(|open| open.graph).collect(),
            refusals: state.refusals,
            options_refused: state.options_refused,
        },
    }
}

extern "C" fn not_supported() -> u64 {
    NOT_SUPPORTED
}

extern "C" fn accept() -> u64 {
    0
}

unsafe extern "C" fn on_validate(backend: Handle, op: sys::OpConfig) -> u64 {
    let (mode, real) = match &*state() {
        Some(state) => (state.mode, state.real.validate),
        None => return INVALID_STATE,
    };
    if mode == Mode::RecordOnly {
        return 0;
    }
    let Some(real) = real else { return NOT_SUPPORTED };
    // SAFETY: forwards what the composing model passed.
    let code = unsafe { real(backend, op) };
    note_refusal(&op, "backendValidateOpConfig", code);
    code
}

fn note_refusal(op: &sys::OpConfig, call: &'static str, code: u64) {
    if code == 0 {
        return;
    }
    if let Some(state) = &mut *state() {
        state.refusals.push(Refusal { op: text(op.v1.name), op_type: text(op.v1.op_type), call, code: code & 0xffff });
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
        Mode::RecordOnly => {
            let number = state().as_ref().map_or(1, |state| state.graphs.len() + 1);
            // SAFETY: the caller's out pointer, checked above. The handle is only ever compared, never followed.
            unsafe { *out = std::ptr::without_provenance_mut(number) };
            0
        }
        Mode::Forward => {
            let Some(real) = real else { return NOT_SUPPORTED };
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
                if code & 0xffff == NOT_SUPPORTED {
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
        let handle = unsafe { *out } as usize;
        state.graphs.push(OpenGraph {
            handle,
            graph: Graph {
                name: text(name),
                inputs: Vec::new(),
                outputs: Vec::new(),
                ops: Vec::new(),
                parameter_bytes: 0,
            },
            tensors: HashMap::new(),
        });
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
    let (mode, real) = match &mut *state() {
        Some(state) => {
            let real = if graph.is_some() { state.real.graph_tensor } else { state.real.context_tensor };
            (state.mode, real)
        }
        None => return INVALID_STATE,
    };
    let code = match mode {
        Mode::RecordOnly => {
            if let Some(state) = &mut *state() {
                // SAFETY: the id stands at the same place in both versions.
                unsafe { (*tensor).body.id = state.next_id };
                state.next_id += 1;
            }
            0
        }
        Mode::Forward => {
            let Some(real) = real else { return NOT_SUPPORTED };
            // SAFETY: forwards the caller's arguments.
            unsafe { real(owner, tensor) }
        }
    };
    if code != 0 {
        return code;
    }
    // SAFETY: the record is valid for both versions up to the buffer; later fields are not read.
    let raw = unsafe { &*tensor };
    let info = describe(raw);
    let bytes = if info.kind == TensorKind::Static { u64::from(raw.body.buffer.size) } else { 0 };
    let id = raw.body.id;
    if let Some(state) = &mut *state() {
        let known = KnownTensor { info, bytes };
        match graph {
            None => {
                state.context_tensors.insert(id, known);
            }
            Some(graph) => {
                if let Some(open) = state.graphs.iter_mut().rev().find(|open| open.handle == graph as usize) {
                    open.graph.parameter_bytes = open.graph.parameter_bytes.saturating_add(bytes);
                    open.tensors.insert(id, known);
                }
            }
        }
    }
    0
}

unsafe extern "C" fn on_add_node(graph: Handle, op: sys::OpConfig) -> u64 {
    let (mode, real) = match &*state() {
        Some(state) => (state.mode, state.real.add_node),
        None => return INVALID_STATE,
    };
    if mode == Mode::Forward {
        let Some(real) = real else { return NOT_SUPPORTED };
        // SAFETY: forwards what the composing model passed.
        let code = unsafe { real(graph, op) };
        if code != 0 {
            note_refusal(&op, "graphAddNode", code);
            return code;
        }
    }
    let inputs = records(op.v1.inputs, op.v1.input_count);
    let outputs = records(op.v1.outputs, op.v1.output_count);
    let params = params(&op);
    if let Some(state) = &mut *state() {
        let State { graphs, context_tensors, .. } = state;
        if let Some(open) = graphs.iter_mut().rev().find(|open| open.handle == graph as usize) {
            open.add_op(&op, &inputs, &outputs, params, context_tensors);
        }
    }
    0
}

fn params(op: &sys::OpConfig) -> serde_json::Map<String, serde_json::Value> {
    if op.v1.params.is_null() {
        return serde_json::Map::new();
    }
    // SAFETY: the op carries `param_count` parameters of 160 bytes (core 2.14 and later; older libraries are refused
    // before they are opened).
    let params = unsafe { std::slice::from_raw_parts(op.v1.params, op.v1.param_count as usize) };
    params.iter().map(|param| (text(param.name), param_value(param))).collect()
}

impl OpenGraph {
    fn add_op(
        &mut self,
        op: &sys::OpConfig,
        inputs: &[sys::Tensor],
        outputs: &[sys::Tensor],
        params: serde_json::Map<String, serde_json::Value>,
        context_tensors: &HashMap<u32, KnownTensor>,
    ) {
        // Ops may repeat a tensor as a bare id; what was said at its creation is complete.
        let find = |raw: &sys::Tensor| {
            let known = self.tensors.get(&raw.body.id).or_else(|| context_tensors.get(&raw.body.id));
            match known {
                Some(known) => (known.info.clone(), known.bytes),
                None => (describe(raw), 0),
            }
        };
        let (inputs, sizes): (Vec<Tensor>, Vec<u64>) = inputs.iter().map(find).unzip();
        let outputs: Vec<Tensor> = outputs.iter().map(|raw| find(raw).0).collect();
        let mut row = Op {
            index: u32::try_from(self.graph.ops.len()).unwrap_or(u32::MAX),
            name: text(op.v1.name),
            op_type: text(op.v1.op_type),
            package: text(op.v1.package),
            inputs,
            outputs,
            params,
            macs: None,
            parameter_bytes: sizes.iter().sum(),
            bytes_moved: None,
        };
        row.macs = macs(&row);
        row.bytes_moved = row
            .inputs
            .iter()
            .chain(&row.outputs)
            .filter(|tensor| tensor.kind != TensorKind::Null)
            .try_fold(0u64, |sum, tensor| sum.checked_add(tensor.bytes()?));
        self.graph.ops.push(row);
    }
}
