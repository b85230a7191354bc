//! Makes tensors between ops readable, and ops computable on values from elsewhere, while a model composes its graph.
//!
//! A backend keeps tensors between ops wherever it likes. A tensor created as a graph output must be handed out; one
//! created a second time as an input, and read there by the following ops, comes from us. Neither the model nor its
//! composer notices: after each call their records hold what they asked for.

#![expect(unsafe_code, reason = "FFI")]

use super::raw::text;
use super::recording::GraphKey;
use super::tensor::{OwnedTensor, records};
use crate::sys::{self, Handle};
use std::collections::{HashMap, HashSet};
use std::ffi::CString;

/// Qnn_TensorType_t of a graph input, a graph output, a tensor between ops, and a constant.
const WRITE: u32 = 0;
const READ: u32 = 1;
const NATIVE: u32 = 3;
const STATIC: u32 = 4;

/// Suffix of a tensor that is created a second time.
const GIVEN: &str = "__qnnscope_given";

/// Which tensors of a graph to open, by name.
#[derive(Debug, Clone, Default)]
pub struct Exposure {
    /// Tensors between ops that become readable.
    pub readable: HashSet<String>,
    /// Tensors we supply to the ops that read them, with their own encoding if given (scale, offset).
    pub given: HashMap<String, Option<(f32, i32)>>,
    /// Constants whose data is kept.
    pub constants: HashSet<String>,
}

/// The opened tensors of one graph.
#[derive(Debug, Default)]
pub struct ExposedGraph {
    /// Name of the graph.
    pub name: String,
    /// Readable tensors, in order of creation.
    pub readable: Vec<OwnedTensor>,
    /// Tensors that must be written: the name of the original tensor, and the graph input that replaces it.
    pub given: Vec<(String, OwnedTensor)>,
    /// Constants with their data.
    pub constants: Vec<(OwnedTensor, Vec<u8>)>,
    /// Tensors the backend refused to open; they are computed as usual.
    pub refused: Vec<String>,
}

/// The tensors of the graphs of one composition.
#[derive(Default)]
pub(super) struct Exposing {
    wanted: Exposure,
    graphs: Vec<(GraphKey, Opened)>,
}

#[derive(Default)]
struct Opened {
    graph: ExposedGraph,
    readable: HashSet<u32>,
    /// Maps the original's id to the position in `given`.
    given: HashMap<u32, usize>,
}

/// What to do with a tensor that is being created.
#[derive(Clone, Copy)]
struct Plan {
    read: bool,
    give: bool,
    /// A different scale and offset for the supplied tensor.
    encoding: Option<(f32, i32)>,
    keep: bool,
}

impl Exposing {
    pub(super) fn new(wanted: Exposure) -> Self {
        Self { wanted, graphs: Vec::new() }
    }

    /// A graph was created.
    pub(super) fn graph_created(&mut self, key: GraphKey, name: String) {
        self.graphs
            .push((key, Opened { graph: ExposedGraph { name, ..ExposedGraph::default() }, ..Opened::default() }));
    }

    /// What was opened.
    pub(super) fn take(self) -> Vec<ExposedGraph> {
        self.graphs.into_iter().map(|(_, opened)| opened.graph).collect()
    }

    fn plan(&self, raw: &sys::Tensor) -> Plan {
        let name = text(raw.body.name);
        // The size of types below 8 bits is not established, so they cannot have a buffer; other encodings do not map
        // to numbers.
        let info = super::tensor::describe(raw);
        let sized = info.bytes().is_some_and(|bytes| u32::try_from(bytes).is_ok());
        Plan {
            read: raw.body.kind == NATIVE && sized && self.wanted.readable.contains(&name),
            give: sized && matches!(raw.body.kind, READ | NATIVE) && self.wanted.given.contains_key(&name),
            encoding: self.wanted.given.get(&name).copied().flatten(),
            keep: raw.body.kind == STATIC && self.wanted.constants.contains(&name),
        }
    }

    fn opened(&mut self, graph: GraphKey) -> Option<&mut Opened> {
        // Handles may be reused; the newest counts.
        self.graphs.iter_mut().rev().find(|(key, _)| *key == graph).map(|(_, opened)| opened)
    }
}

/// Creates a graph tensor with `real`, opened if requested. `state` lends the known tensors; it is not held while the
/// backend is called, which may log.
///
/// # Safety
/// `real` is the backend's tensorCreateGraphTensor, and `graph` and `tensor` are what the composing model passed to it.
pub(super) unsafe fn create(
    real: sys::CreateTensorFn,
    graph: Handle,
    tensor: *mut sys::Tensor,
    mut with: impl FnMut(&mut dyn FnMut(&mut Exposing)),
) -> u64 {
    let mut plan = Plan { read: false, give: false, encoding: None, keep: false };
    // SAFETY: a valid record of version 1 or 2; nothing behind the buffer is read.
    with(&mut |exposing| plan = exposing.plan(unsafe { &*tensor }));
    let key = GraphKey::of(graph);
    if plan.read {
        // SAFETY: the record is the caller's and writable: the call is to fill in the id.
        unsafe { (*tensor).body.kind = READ };
    }
    // SAFETY: forwards the caller's arguments.
    let mut code = unsafe { real(graph, tensor) };
    if plan.read && code != 0 {
        // SAFETY: as above; now the tensor as the model wanted it.
        unsafe {
            (*tensor).body.kind = NATIVE;
            with(&mut |exposing| {
                if let Some(opened) = exposing.opened(key) {
                    opened.graph.refused.push(text((*tensor).body.name));
                }
            });
            code = real(graph, tensor);
        }
        plan.read = false;
    }
    if code != 0 {
        return code;
    }
    // SAFETY: the record is valid, and its id is filled in.
    let made = unsafe { *tensor };
    if plan.read {
        with(&mut |exposing| {
            if let Some(opened) = exposing.opened(key) {
                opened.readable.insert(made.body.id);
                opened.graph.readable.push(OwnedTensor::copy_of(&made));
            }
        });
        // SAFETY: as above: the caller finds what it requested.
        unsafe { (*tensor).body.kind = NATIVE };
    }
    if plan.keep && !made.body.buffer.data.is_null() {
        // SAFETY: a constant of version 1 or 2 carries `size` bytes at `data` while it is created.
        let bytes =
            unsafe { std::slice::from_raw_parts(made.body.buffer.data.cast::<u8>(), made.body.buffer.size as usize) };
        with(&mut |exposing| {
            if let Some(opened) = exposing.opened(key) {
                opened.graph.constants.push((OwnedTensor::copy_of(&made), bytes.to_vec()));
            }
        });
    }
    if plan.give {
        // SAFETY: the record was accepted as it is except for its use; its pointers are the caller's, and alive.
        unsafe { give(real, graph, &made, plan.encoding, &mut with) };
    }
    0
}

/// Creates a tensor a second time, as a graph input.
///
/// # Safety
/// As [`create`], with a record that was created.
unsafe fn give(
    real: sys::CreateTensorFn,
    graph: Handle,
    made: &sys::Tensor,
    encoding: Option<(f32, i32)>,
    with: &mut impl FnMut(&mut dyn FnMut(&mut Exposing)),
) {
    let key = GraphKey::of(graph);
    let of = text(made.body.name);
    let Ok(name) = CString::new(format!("{of}{GIVEN}")) else { return };
    let mut second = *made;
    second.body.name = name.as_ptr();
    second.body.kind = WRITE;
    second.body.id = 0;
    let quantize = &mut second.body.quantize;
    if let Some((scale, offset)) = encoding.filter(|_| quantize.definition == sys::DEFINITION_DEFINED) {
        match quantize.encoding {
            0 => quantize.data.scale_offset = sys::ScaleOffset { scale, offset },
            2 => {
                // SAFETY: the member is the one that `encoding` names.
                let bitwidth = unsafe { quantize.data.bw_scale_offset.bitwidth };
                quantize.data.bw_scale_offset = sys::BwScaleOffset { bitwidth, scale, offset };
            }
            _ => {}
        }
    }
    // SAFETY: a whole record whose pointers live through the call.
    let code = unsafe { real(graph, &raw mut second) };
    with(&mut |exposing| {
        let Some(opened) = exposing.opened(key) else { return };
        if code == 0 {
            opened.given.insert(made.body.id, opened.graph.given.len());
            opened.graph.given.push((of.clone(), OwnedTensor::copy_of(&second)));
        } else {
            opened.graph.refused.push(of.clone());
        }
    });
}

/// Inputs and outputs of an op as known to the backend.
pub(super) struct Patched {
    inputs: Vec<sys::Tensor>,
    outputs: Vec<sys::Tensor>,
    /// What the names in `inputs` point to.
    _names: Vec<CString>,
}

impl Patched {
    /// The op with these inputs and outputs; it points into `self`.
    pub(super) fn op(&self, op: &sys::OpConfig) -> sys::OpConfig {
        let mut op = *op;
        op.v1.inputs = self.inputs.as_ptr();
        op.v1.outputs = self.outputs.as_ptr();
        op
    }
}

impl Exposing {
    /// The replaced tensors of an op of this graph; `None` if none was opened.
    pub(super) fn patch(&mut self, graph: GraphKey, op: &sys::OpConfig) -> Option<Patched> {
        let opened = self.opened(graph)?;
        let (mut inputs, mut outputs) =
            (records(op.v1.inputs, op.v1.input_count), records(op.v1.outputs, op.v1.output_count));
        let mut names = Vec::new();
        let mut touched = false;
        for input in &mut inputs {
            if let Some((_, tensor)) = opened.given.get(&input.body.id).and_then(|&at| opened.graph.given.get(at)) {
                let given = tensor.raw();
                let name = tensor.c_name().to_owned();
                input.body.id = given.body.id;
                input.body.kind = WRITE;
                // Per-axis encodings point into memory of the model, which is alive: only numbers were changed.
                input.body.quantize.data = match given.body.quantize.encoding {
                    0 | 2 => given.body.quantize.data,
                    _ => input.body.quantize.data,
                };
                input.body.name = name.as_ptr();
                names.push(name);
                touched = true;
            } else if opened.readable.contains(&input.body.id) {
                input.body.kind = READ;
                touched = true;
            }
        }
        for output in &mut outputs {
            if opened.readable.contains(&output.body.id) {
                output.body.kind = READ;
                touched = true;
            }
        }
        // A truncated list must not replace the model's.
        let whole = inputs.len() == op.v1.input_count as usize && outputs.len() == op.v1.output_count as usize;
        (touched && whole).then_some(Patched { inputs, outputs, _names: names })
    }
}
