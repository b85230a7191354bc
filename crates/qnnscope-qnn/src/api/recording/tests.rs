use super::*;

const KINDS: [u32; 2] = [3, 4];

/// A tensor of four bytes, as after its creation.
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
    // Freeing the context that lost the handle does not take it from its new owner.
    assert_eq!(ops(recorder.take(first)), [0]);
    recorder.op_added(graph, &op(c"b", &mut []));
    assert_eq!(ops(recorder.take(second)), [2]);
    assert_eq!(recorder.op_added(graph, &op(c"c", &mut [])), None, "a graph that nobody owns");
    recorder.tensor_created(Owner::Graph(graph), &tensor(c"t", 1, KINDS[0], leaked(&[1])));
    assert_eq!(recorder.take(second).len(), 0);
}

#[test]
fn graphs_that_are_finished_leave_nothing_and_move_no_others() {
    let recorder = Recorder::default();
    let context = ContextKey(1);
    let name = |number: usize| format!("graph {number}");
    (0..5).for_each(|number| recorder.graph_created(context, GraphKey(number), name(number)));
    for number in [1, 4, 0] {
        recorder.op_added(GraphKey(number), &op(c"a", &mut []));
        let (graph, _) = recorder.finish_graph(GraphKey(number)).unwrap();
        assert_eq!((graph.name, graph.ops.len()), (name(number), 1));
        assert!(recorder.finish_graph(GraphKey(number)).is_none(), "once");
    }
    for number in [2, 3] {
        assert!(recorder.op_added(GraphKey(number), &op(c"b", &mut [])).is_some(), "it is found where it is now");
    }
    let mut left: Vec<_> = recorder.take(context).into_iter().map(|graph| (graph.name, graph.ops.len())).collect();
    left.sort();
    assert_eq!(left, [(name(2), 1), (name(3), 1)]);
    assert!(recorder.known().owners.is_empty());
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

#[test]
fn a_bound_holds_for_a_huge_graph_and_what_is_fetched_early_is_in_order() {
    let recorder = Recorder::bounded(64 << 10);
    let graph = GraphKey(1);
    recorder.graph_created(ContextKey(1), graph, "huge".to_owned());
    recorder.tensor_created(Owner::Graph(graph), &tensor(c"x", 0, 0, leaked(&[1, 8])));
    let mut fetched = Vec::new();
    for id in 1..20_000u32 {
        let made = tensor(c"activation", id, 3, leaked(&[1, 8]));
        recorder.tensor_created(Owner::Graph(graph), &made);
        let place = recorder.op_added(graph, &op(c"relu", &mut [made])).unwrap();
        assert_eq!(place.op, id as usize - 1);
        fetched.extend(recorder.take_ops(graph, 64));
        let known = recorder.known();
        let open = &known.contexts[&ContextKey(1)].graphs[0];
        assert!(open.bytes() <= 66 << 10 && open.graph.ops.len() < 64, "{}", open.bytes());
    }
    let (rest, before) = recorder.finish_graph(graph).unwrap();
    assert_eq!((before, rest.inputs.len()), (fetched.len(), 1), "the input stays, as old as it is");
    fetched.extend(rest.ops);
    assert!(fetched.iter().enumerate().all(|(at, op)| op.index as usize == at), "none is missing");
    assert_eq!(fetched.len(), 19_999);
    assert!(fetched.iter().all(|op| op.inputs[0].shape == [1, 8]));
    // Released room can be used again.
    assert!(!recorder.known().room.is_full());
}
