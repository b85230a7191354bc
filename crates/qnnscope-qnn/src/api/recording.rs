//! Writing down what passes through a function table: contexts, their graphs, tensors and ops.
//!
//! A [`Recorder`] has no opinion on who made a call and who answered it. It is told of calls that succeeded, of any number of
//! contexts and from any thread, and hands out what it knows of a context. What the callers of a composing model
//! get answered is decided above it, in `interpose`.

#![expect(unsafe_code, reason = "FFI")]

use super::expose::ExposedGraph;
use super::interface::text;
use super::tensor::{describe, param_value, records};
use super::verdict::Verdict;
use crate::sys::{self, Handle};
use qnnscope_core::models::{Graph, Op, Tensor, TensorKind, macs};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An op that the backend refused while composing.
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
    /// What the backend logged meanwhile.
    pub log: Vec<String>,
    /// Numbers by which the log calls the op's tensors: its inputs, then its outputs.
    pub tensor_ids: Vec<u32>,
}

/// What was written down of one composition.
#[derive(Debug, Default)]
pub struct Recording {
    /// Graphs in the order of creation, without inputs and outputs in execution order.
    pub graphs: Vec<Graph>,
    /// Ops that were refused.
    pub refusals: Vec<Refusal>,
    /// What the backend answered about each op, where it was asked.
    pub verdicts: Vec<Verdict>,
    /// Code of a graphCreate that failed while options of ours were in it.
    pub options_refused: Option<u64>,
    /// Tensors that were opened, where that was asked for; one row a graph, in the order of creation.
    pub exposed: Vec<ExposedGraph>,
}

/// The context that a call named, by its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContextKey(usize);

impl ContextKey {
    /// The key of a context. The handle is compared, never followed.
    pub fn of(context: Handle) -> Self {
        Self(context.addr())
    }
}

/// The graph that a call named, by its handle.
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

/// Where an op was put: position of its graph within the context, position of the op within the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpPlace {
    /// From 0, in the order of creation.
    pub graph: usize,
    /// From 0, in the order in which ops were added.
    pub op: usize,
}

/// Contexts as they are composed, many at once, from many threads.
#[derive(Default)]
pub struct Recorder {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    contexts: HashMap<ContextKey, OpenContext>,
    /// Handles are given again after their context is freed; the newest graph of a handle counts.
    owners: HashMap<GraphKey, (ContextKey, usize)>,
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

/// A graph that is being composed.
struct OpenGraph {
    key: GraphKey,
    graph: Graph,
    tensors: HashMap<u32, KnownTensor>,
}

impl Recorder {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A graph was created in a context.
    pub fn graph_created(&self, context: ContextKey, graph: GraphKey, name: String) {
        let mut known = self.known();
        let graphs = &mut known.contexts.entry(context).or_default().graphs;
        let position = graphs.len();
        graphs.push(OpenGraph {
            key: graph,
            graph: Graph { name, inputs: Vec::new(), outputs: Vec::new(), ops: Vec::new(), parameter_bytes: 0 },
            tensors: HashMap::new(),
        });
        known.owners.insert(graph, (context, position));
    }

    /// A tensor was created, and has its id. Of one whose owner is not known nothing is kept.
    pub(crate) fn tensor_created(&self, owner: Owner, raw: &sys::Tensor) {
        let info = describe(raw);
        let bytes = if info.kind == TensorKind::Static { u64::from(raw.body.buffer.size) } else { 0 };
        let (id, tensor) = (raw.body.id, KnownTensor { info, bytes });
        let mut known = self.known();
        match owner {
            Owner::Context(context) => {
                known.contexts.entry(context).or_default().tensors.insert(id, tensor);
            }
            Owner::Graph(graph) => {
                if let Some((_, open, _)) = known.graph(graph) {
                    open.graph.parameter_bytes = open.graph.parameter_bytes.saturating_add(bytes);
                    open.tensors.insert(id, tensor);
                }
            }
        }
    }

    /// An op was added to a graph; where it was put, if the graph is known.
    pub(crate) fn op_added(&self, graph: GraphKey, op: &sys::OpConfig) -> Option<OpPlace> {
        // Copied before the lock is taken: this follows the caller's pointers.
        let inputs = records(op.v1.inputs, op.v1.input_count);
        let outputs = records(op.v1.outputs, op.v1.output_count);
        let params = params(op);
        let mut known = self.known();
        let (position, open, shared) = known.graph(graph)?;
        let place = OpPlace { graph: position, op: open.graph.ops.len() };
        let row = open.describe(op, &inputs, &outputs, params, shared);
        open.graph.ops.push(row);
        Some(place)
    }

    /// An op that is not added: its graph's name and the op as it would be written down. Without a graph, that of the context
    /// which was created last.
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

    /// What is known of a graph so far, with its inputs and outputs in the order in which they were made. Its ops and tensors
    /// are forgotten, its name and place stay.
    pub fn take_graph(&self, graph: GraphKey) -> Option<Graph> {
        let mut known = self.known();
        let (_, open, _) = known.graph(graph)?;
        let mut made: Vec<(u32, Tensor)> =
            std::mem::take(&mut open.tensors).into_iter().map(|(id, tensor)| (id, tensor.info)).collect();
        made.sort_by_key(|(id, _)| *id);
        let empty =
            Graph { name: open.graph.name.clone(), inputs: vec![], outputs: vec![], ops: vec![], parameter_bytes: 0 };
        let mut graph = std::mem::replace(&mut open.graph, empty);
        for (_, tensor) in made {
            if matches!(tensor.kind, TensorKind::Input | TensorKind::InputOutput) {
                graph.inputs.push(tensor.clone());
            }
            if matches!(tensor.kind, TensorKind::Output | TensorKind::InputOutput) {
                graph.outputs.push(tensor);
            }
        }
        Some(graph)
    }

    /// The graphs of a context, in the order of creation; it is forgotten, so that its handle may be used again.
    pub fn take(&self, context: ContextKey) -> Vec<Graph> {
        let mut known = self.known();
        let Some(open) = known.contexts.remove(&context) else { return Vec::new() };
        for graph in &open.graphs {
            // A graph handle that another context was given meanwhile is that one's.
            if known.owners.get(&graph.key).is_some_and(|(owner, _)| *owner == context) {
                known.owners.remove(&graph.key);
            }
        }
        open.graphs.into_iter().map(|open| open.graph).collect()
    }
}

/// An op as it would be written down, of a graph that is not known.
pub(crate) fn lone_op(op: &sys::OpConfig) -> Op {
    let graph = Graph { name: String::new(), inputs: vec![], outputs: vec![], ops: vec![], parameter_bytes: 0 };
    let open = OpenGraph { key: GraphKey(0), graph, tensors: HashMap::new() };
    let (inputs, outputs) = (records(op.v1.inputs, op.v1.input_count), records(op.v1.outputs, op.v1.output_count));
    open.describe(op, &inputs, &outputs, params(op), &HashMap::new())
}

impl Known {
    /// A graph, with its position in its context and the tensors that it shares with others there.
    fn graph(&mut self, graph: GraphKey) -> Option<(usize, &mut OpenGraph, &HashMap<u32, KnownTensor>)> {
        let (context, position) = *self.owners.get(&graph)?;
        let OpenContext { graphs, tensors } = self.contexts.get_mut(&context)?;
        Some((position, graphs.get_mut(position)?, tensors))
    }
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
    /// An op as the model describes it, which would be the next one of this graph.
    fn describe(
        &self,
        op: &sys::OpConfig,
        inputs: &[sys::Tensor],
        outputs: &[sys::Tensor],
        params: serde_json::Map<String, serde_json::Value>,
        context_tensors: &HashMap<u32, KnownTensor>,
    ) -> Op {
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
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [u32; 2] = [3, 4];

    /// A tensor of four bytes, as its creation leaves it.
    fn tensor(name: &'static std::ffi::CStr, id: u32, kind: u32, dimensions: &'static mut [u32]) -> sys::Tensor {
        // SAFETY: a record of numbers and pointers; all zero bytes are a valid value.
        let mut raw: sys::Tensor = unsafe { std::mem::zeroed() };
        raw.version = 1;
        raw.body.name = name.as_ptr();
        raw.body.id = id;
        raw.body.kind = kind;
        raw.body.data_type = 0x0408;
        raw.body.rank = u32::try_from(dimensions.len()).unwrap();
        raw.body.dimensions = dimensions.as_mut_ptr();
        raw.body.buffer.size = 4;
        raw
    }

    fn op(name: &'static std::ffi::CStr, inputs: &mut [sys::Tensor]) -> sys::OpConfig {
        // SAFETY: as in `tensor`.
        let mut raw: sys::OpConfig = unsafe { std::mem::zeroed() };
        raw.v1.name = name.as_ptr();
        raw.v1.op_type = c"Relu".as_ptr();
        raw.v1.input_count = u32::try_from(inputs.len()).unwrap();
        raw.v1.inputs = inputs.as_mut_ptr();
        raw
    }

    fn leaked(values: &[u32]) -> &'static mut [u32] {
        Box::leak(values.to_vec().into_boxed_slice())
    }

    #[test]
    fn contexts_with_the_same_ids_stay_apart_on_many_threads() {
        let recorder = Recorder::default();
        let recorder = &recorder;
        std::thread::scope(|scope| {
            for context in 1..=8usize {
                scope.spawn(move || {
                    let key = ContextKey(context);
                    let size = u32::try_from(context).unwrap();
                    for number in 0..50 {
                        let graph = GraphKey(context * 1000 + number);
                        recorder.graph_created(key, graph, format!("{context}.{number}"));
                        // The same tensor id in every context and graph.
                        let mut made = tensor(c"t", 1, KINDS[1], leaked(&[size, 2]));
                        recorder.tensor_created(Owner::Graph(graph), &made);
                        // The op only names the id.
                        made.body.dimensions = std::ptr::null_mut();
                        made.body.rank = 0;
                        let place = recorder.op_added(graph, &op(c"relu", &mut [made]));
                        assert_eq!(place, Some(OpPlace { graph: number, op: 0 }));
                    }
                });
            }
        });
        for context in 1..=8usize {
            assert_eq!(recorder.graph_count(ContextKey(context)), 50);
            let graphs = recorder.take(ContextKey(context));
            let names: Vec<String> = (0..50).map(|number| format!("{context}.{number}")).collect();
            assert_eq!(graphs.iter().map(|graph| graph.name.clone()).collect::<Vec<_>>(), names);
            let shapes = graphs.iter().map(|graph| graph.ops[0].inputs[0].shape.clone());
            assert!(shapes.into_iter().all(|shape| shape.len() == 2 && shape[0] == u32::try_from(context).unwrap()));
        }
        assert!(recorder.known().contexts.is_empty() && recorder.known().owners.is_empty(), "nothing is left behind");
    }

    #[test]
    fn handles_are_used_again_after_a_context_is_freed() {
        let recorder = Recorder::default();
        let (first, second, graph) = (ContextKey(1), ContextKey(2), GraphKey(9));
        recorder.graph_created(first, graph, "old".to_owned());
        recorder.graph_created(second, graph, "new".to_owned());
        recorder.op_added(graph, &op(c"a", &mut []));
        let ops = |graphs: Vec<Graph>| graphs.iter().map(|graph| graph.ops.len()).collect::<Vec<_>>();
        // Freeing the context that lost the handle does not take it from the one that has it.
        assert_eq!(ops(recorder.take(first)), [0]);
        recorder.op_added(graph, &op(c"b", &mut []));
        assert_eq!(ops(recorder.take(second)), [2]);
        assert_eq!(recorder.op_added(graph, &op(c"c", &mut [])), None, "a graph that nobody owns");
        recorder.tensor_created(Owner::Graph(graph), &tensor(c"t", 1, KINDS[0], leaked(&[1])));
        assert_eq!(recorder.take(second).len(), 0);
    }

    #[test]
    fn tensors_of_a_context_serve_all_its_graphs() {
        let recorder = Recorder::default();
        let context = ContextKey(1);
        recorder.tensor_created(Owner::Context(context), &tensor(c"weights", 7, KINDS[1], leaked(&[4])));
        for graph in [1, 2] {
            recorder.graph_created(context, GraphKey(graph), graph.to_string());
            let bare = tensor(c"", 7, KINDS[1], leaked(&[]));
            recorder.op_added(GraphKey(graph), &op(c"relu", &mut [bare]));
        }
        let graphs = recorder.take(context);
        let seen: Vec<(&str, u64)> =
            graphs.iter().map(|graph| (&*graph.ops[0].inputs[0].name, graph.ops[0].parameter_bytes)).collect();
        assert_eq!(seen, [("weights", 4), ("weights", 4)]);
    }
}
