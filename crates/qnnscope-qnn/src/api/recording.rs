//! Records what passes through a function table: contexts, their graphs, tensors and ops.
//!
//! A [`Recorder`] does not care who made a call and who answered it. It receives successful calls, for any number of
//! contexts and from any thread, and returns what it knows about a context. `interpose`, above it, decides the answers
//! to a composing model.

#![expect(unsafe_code, reason = "FFI")]

use super::expose::ExposedGraph;
use super::raw::text;
use super::room::{Room, op_bytes, tensor_bytes};
use super::tensor::{describe, param_value, records};
use super::verdict::OpAnswer;
use crate::sys::{self, Handle};
use qnnscope_core::models::{Graph, Op, Tensor, TensorKind, macs};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An op the backend refused while composing.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Its graph.
    pub graph: String,
    /// The op.
    pub op: Op,
    /// The call that refused.
    pub call: &'static str,
    /// Returned code.
    pub code: u64,
    /// What the backend logged during the call.
    pub log: Vec<String>,
    /// The log's numbers for the op's tensors: inputs, then outputs.
    pub tensor_ids: Vec<u32>,
}

/// The record of one composition.
#[derive(Debug, Default)]
pub struct Recording {
    /// Graphs in order of creation. Their inputs and outputs are all that were created, in creation order, which
    /// differs from execution order.
    pub graphs: Vec<Graph>,
    /// Ops that were refused.
    pub refusals: Vec<Refusal>,
    /// The backend's answer about each op, if asked.
    pub verdicts: Vec<OpAnswer>,
    /// Code of a graphCreate that failed with our options in it.
    pub options_refused: Option<u64>,
    /// Opened tensors, if requested; one entry per graph, in order of creation.
    pub exposed: Vec<ExposedGraph>,
}

/// The context a call refers to, by its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContextKey(usize);

impl ContextKey {
    /// The key of a context. The handle is compared, never followed.
    pub fn of(context: Handle) -> Self {
        Self(context.addr())
    }
}

/// The graph a call refers to, by its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GraphKey(usize);

impl GraphKey {
    /// The key of a graph. The handle is compared, never followed.
    pub fn of(graph: Handle) -> Self {
        Self(graph.addr())
    }
}

/// What a tensor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// All graphs of a context.
    Context(ContextKey),
    /// One graph.
    Graph(GraphKey),
}

/// Where an op was added: position of its graph within the context, position of the op within the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpPlace {
    /// From 0, in the order of creation.
    pub graph: usize,
    /// From 0, in the order ops were added.
    pub op: usize,
}

/// Contexts being composed, many at once and from many threads.
#[derive(Default)]
pub struct Recorder {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    contexts: HashMap<ContextKey, OpenContext>,
    /// Handles are reused after their context is freed; the newest graph of a handle counts.
    owners: HashMap<GraphKey, (ContextKey, usize)>,
    room: Room,
}

#[derive(Default)]
struct OpenContext {
    graphs: Vec<OpenGraph>,
    tensors: HashMap<u32, KnownTensor>,
}

/// A tensor as it was created.
struct KnownTensor {
    info: Tensor,
    bytes: u64,
}

/// A graph being composed.
struct OpenGraph {
    key: GraphKey,
    graph: Graph,
    tensors: HashMap<u32, KnownTensor>,
    /// Tensors that may be dropped when room runs out, oldest first: all but inputs and outputs.
    oldest: VecDeque<u32>,
    /// Ops returned before the graph was finished.
    handed_out: usize,
}

impl OpenGraph {
    fn new(key: GraphKey, name: String) -> Self {
        let graph = Graph { name, inputs: Vec::new(), outputs: Vec::new(), ops: Vec::new(), parameter_bytes: 0 };
        Self { key, graph, tensors: HashMap::new(), oldest: VecDeque::new(), handed_out: 0 }
    }

    /// Approximate size in bytes.
    fn bytes(&self) -> usize {
        let tensors: usize = self.tensors.values().map(|tensor| tensor_bytes(&tensor.info)).sum();
        tensors + self.graph.ops.iter().map(op_bytes).sum::<usize>()
    }
}

impl Recorder {
    /// A recorder that keeps about `bytes` of what is being composed, for callers that fetch ops as they come
    /// ([`Recorder::take_ops`]): the oldest tensors are dropped first, and ops that refer to them later are recorded
    /// only with their own information.
    pub fn bounded(bytes: usize) -> Self {
        Self { known: Mutex::new(Known { room: Room::of(bytes), ..Known::default() }) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A graph was created in a context.
    pub fn graph_created(&self, context: ContextKey, graph: GraphKey, name: String) {
        let mut known = self.known();
        let graphs = &mut known.contexts.entry(context).or_default().graphs;
        let position = graphs.len();
        graphs.push(OpenGraph::new(graph, name));
        known.owners.insert(graph, (context, position));
    }

    /// A tensor was created and has its id. Tensors of unknown owners are not kept.
    pub(crate) fn tensor_created(&self, owner: Owner, raw: &sys::Tensor) {
        let info = describe(raw);
        let bytes = if info.kind == TensorKind::Static { u64::from(raw.body.buffer.size) } else { 0 };
        let (id, tensor) = (raw.body.id, KnownTensor { info, bytes });
        let size = tensor_bytes(&tensor.info);
        let stays = matches!(tensor.info.kind, TensorKind::Input | TensorKind::Output | TensorKind::InputOutput);
        let mut known = self.known();
        let known = &mut *known;
        match owner {
            // Few tensors are shared by the graphs of a context: past the bound, none is kept.
            Owner::Context(context) => {
                if !known.room.is_full() {
                    known.room.add(size);
                    known.contexts.entry(context).or_default().tensors.insert(id, tensor);
                }
            }
            Owner::Graph(graph) => {
                let Some(open) = find(&known.owners, &mut known.contexts, graph).map(|(_, open, _)| open) else {
                    return;
                };
                open.graph.parameter_bytes = open.graph.parameter_bytes.saturating_add(bytes);
                known.room.add(size);
                let before = open.tensors.insert(id, tensor);
                known.room.give_back(before.map_or(0, |before| tensor_bytes(&before.info)));
                if !stays {
                    open.oldest.push_back(id);
                }
                while known.room.is_full()
                    && let Some(oldest) = open.oldest.pop_front()
                {
                    let gone = open.tensors.remove(&oldest);
                    known.room.give_back(gone.map_or(0, |gone| tensor_bytes(&gone.info)));
                }
            }
        }
    }

    /// The ops of a graph not fetched yet, if there are at least `enough`, or if room has run out.
    pub(crate) fn take_ops(&self, graph: GraphKey, enough: usize) -> Vec<Op> {
        let mut known = self.known();
        let known = &mut *known;
        let Some(open) = find(&known.owners, &mut known.contexts, graph).map(|(_, open, _)| open) else {
            return vec![];
        };
        if open.graph.ops.len() < enough && !known.room.is_full() {
            return Vec::new();
        }
        let ops = std::mem::take(&mut open.graph.ops);
        open.handed_out += ops.len();
        known.room.give_back(ops.iter().map(op_bytes).sum());
        ops
    }

    /// An op was added to a graph; returns its place, if the graph is known.
    pub(crate) fn op_added(&self, graph: GraphKey, op: &sys::OpConfig) -> Option<OpPlace> {
        // Copied before the lock is taken: this follows the caller's pointers.
        let inputs = records(op.v1.inputs, op.v1.input_count);
        let outputs = records(op.v1.outputs, op.v1.output_count);
        let params = params(op);
        let mut known = self.known();
        let known = &mut *known;
        let (position, open, shared) = find(&known.owners, &mut known.contexts, graph)?;
        let place = OpPlace { graph: position, op: open.handed_out + open.graph.ops.len() };
        let row = open.describe(op, &inputs, &outputs, params, shared);
        known.room.add(op_bytes(&row));
        open.graph.ops.push(row);
        Some(place)
    }

    /// An op that is not added: its graph's name and the op as it would be recorded. Without a graph, that of the most
    /// recently created context.
    pub(crate) fn described(
        &self,
        context: ContextKey,
        graph: Option<GraphKey>,
        op: &sys::OpConfig,
    ) -> Option<(String, Op)> {
        let inputs = records(op.v1.inputs, op.v1.input_count);
        let outputs = records(op.v1.outputs, op.v1.output_count);
        let params = params(op);
        let mut known = self.known();
        let last = || known.contexts.get(&context)?.graphs.last().map(|open| open.key);
        let graph = graph.or_else(last)?;
        let (_, open, shared) = known.graph(graph)?;
        Some((open.graph.name.clone(), open.describe(op, &inputs, &outputs, params, shared)))
    }

    /// Number of graphs of a context.
    pub fn graph_count(&self, context: ContextKey) -> usize {
        self.known().contexts.get(&context).map_or(0, |open| open.graphs.len())
    }

    /// What is known about a graph so far, with inputs and outputs in order of creation. Its ops and tensors are
    /// dropped; its name and place stay.
    pub fn take_graph(&self, graph: GraphKey) -> Option<Graph> {
        let mut known = self.known();
        let known = &mut *known;
        let (_, open, _) = find(&known.owners, &mut known.contexts, graph)?;
        known.room.give_back(open.bytes());
        open.sort_out();
        let empty =
            Graph { name: open.graph.name.clone(), inputs: vec![], outputs: vec![], ops: vec![], parameter_bytes: 0 };
        open.handed_out = 0;
        Some(std::mem::replace(&mut open.graph, empty))
    }

    /// What is known about a graph whose composition has ended, with inputs and outputs in order of creation, and how
    /// many of its ops were fetched before. It is dropped, and with it the order of its context's graphs.
    pub fn finish_graph(&self, graph: GraphKey) -> Option<(Graph, usize)> {
        let mut known = self.known();
        let known = &mut *known;
        let (context, position) = known.owners.remove(&graph)?;
        let graphs = &mut known.contexts.get_mut(&context)?.graphs;
        if position >= graphs.len() {
            return None;
        }
        let mut open = graphs.swap_remove(position);
        if let Some(moved) = graphs.get(position)
            && let Some(owner) = known.owners.get_mut(&moved.key).filter(|owner| owner.0 == context)
        {
            owner.1 = position;
        }
        known.room.give_back(open.bytes());
        open.sort_out();
        Some((open.graph, open.handed_out))
    }

    /// The graphs of a context, in order of creation; the context is dropped, so that its handle may be reused.
    pub fn take(&self, context: ContextKey) -> Vec<Graph> {
        let mut known = self.known();
        let Some(open) = known.contexts.remove(&context) else { return Vec::new() };
        let shared: usize = open.tensors.values().map(|tensor| tensor_bytes(&tensor.info)).sum();
        known.room.give_back(shared + open.graphs.iter().map(OpenGraph::bytes).sum::<usize>());
        for graph in &open.graphs {
            // A graph handle since given to another context belongs to that context.
            if known.owners.get(&graph.key).is_some_and(|(owner, _)| *owner == context) {
                known.owners.remove(&graph.key);
            }
        }
        let sorted = open.graphs.into_iter().map(|mut open| {
            open.sort_out();
            open.graph
        });
        sorted.collect()
    }
}

/// An op of an unknown graph, as it would be recorded.
pub(crate) fn lone_op(op: &sys::OpConfig) -> Op {
    let open = OpenGraph::new(GraphKey(0), String::new());
    let (inputs, outputs) = (records(op.v1.inputs, op.v1.input_count), records(op.v1.outputs, op.v1.output_count));
    open.describe(op, &inputs, &outputs, params(op), &HashMap::new())
}

impl Known {
    fn graph(&mut self, graph: GraphKey) -> Option<(usize, &mut OpenGraph, &HashMap<u32, KnownTensor>)> {
        find(&self.owners, &mut self.contexts, graph)
    }
}

/// A graph, with its position in its context and the tensors it shares with others there.
fn find<'k>(
    owners: &HashMap<GraphKey, (ContextKey, usize)>,
    contexts: &'k mut HashMap<ContextKey, OpenContext>,
    graph: GraphKey,
) -> Option<(usize, &'k mut OpenGraph, &'k HashMap<u32, KnownTensor>)> {
    let (context, position) = *owners.get(&graph)?;
    let OpenContext { graphs, tensors } = contexts.get_mut(&context)?;
    Some((position, graphs.get_mut(position)?, tensors))
}

/// Parameters of an op by name.
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
    /// Sets the graph's inputs and outputs, in order of creation, and drops its tensors.
    fn sort_out(&mut self) {
        let tensors = std::mem::take(&mut self.tensors);
        let mut made: Vec<(u32, Tensor)> = tensors.into_iter().map(|(id, tensor)| (id, tensor.info)).collect();
        made.sort_by_key(|(id, _)| *id);
        for (_, tensor) in made {
            if matches!(tensor.kind, TensorKind::Input | TensorKind::InputOutput) {
                self.graph.inputs.push(tensor.clone());
            }
            if matches!(tensor.kind, TensorKind::Output | TensorKind::InputOutput) {
                self.graph.outputs.push(tensor);
            }
        }
    }

    /// An op as the model describes it, as the next one of this graph.
    fn describe(
        &self,
        op: &sys::OpConfig,
        inputs: &[sys::Tensor],
        outputs: &[sys::Tensor],
        params: serde_json::Map<String, serde_json::Value>,
        context_tensors: &HashMap<u32, KnownTensor>,
    ) -> Op {
        // Ops may refer to a tensor by bare id; its record from creation is complete.
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
            index: u32::try_from(self.handed_out + self.graph.ops.len()).unwrap_or(u32::MAX),
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
        row
    }
}

#[cfg(test)]
mod tests;
