use super::*;
use crate::event::{GraphOrigin, OpUnit, Phase, RunStatus, Stage};
use crate::models::{DataType, Graph, Op, Tensor, TensorKind};
use crate::store::{Run, Store};
use qnnscope_core::tap::{FlatEvent, Process, Provider};

const MS: u64 = 1_000_000;

fn process(pid: u32) -> Process {
    Process {
        protocol: 1,
        tap_version: "0".into(),
        pid,
        parent_pid: 1,
        forked: false,
        executable: "/app".into(),
        command: vec!["./app".into()],
        arch: "x86_64".into(),
        t_ns: 0,
        epoch_us: 0,
        ring: None,
    }
}

fn provider(number: u32, backend_id: u32) -> Provider {
    Provider {
        provider: number,
        library: "libQnn.so".into(),
        name: format!("BACKEND_{backend_id}"),
        backend_id,
        core_api: "2.36.0".into(),
        backend_api: "5.47.0".into(),
        build_id: Some("v2.47".into()),
        untouched: None,
        t_ns: 1,
    }
}

fn call(name: &str, at_ms: u64, context: Option<u32>, graph: Option<u32>) -> TapMessage {
    let mut options = serde_json::Map::new();
    if name == "graphCreate" {
        options.insert("vtcm_mb".into(), 8.into());
    }
    TapMessage::Ended(Box::new(Call {
        call: name.into(),
        start_ns: at_ms * MS,
        duration_ns: MS / 2,
        thread: 7,
        context,
        graph,
        name: graph.map(|_| "net".to_owned()),
        options,
        rss_before: Some(at_ms * 1000),
        rss_after: Some(at_ms * 1000 + 500),
        ..Call::default()
    }))
}

fn tensor(name: &str, kind: TensorKind) -> Tensor {
    Tensor { name: name.into(), dtype: DataType(0x0232), shape: vec![1, 4], quantization: None, kind }
}

fn op(index: u32, name: &str) -> Op {
    Op {
        index,
        name: name.into(),
        op_type: "Relu".into(),
        package: "qti.aisw".into(),
        inputs: vec![],
        outputs: vec![],
        params: serde_json::Map::new(),
        macs: None,
        parameter_bytes: 0,
        bytes_moved: None,
    }
}

fn composed(graph: u32, names: &[&str]) -> Vec<TapMessage> {
    let ops = (0..).zip(names).map(|(index, name)| op(index, name)).collect();
    let head = Graph {
        name: "net".into(),
        inputs: vec![tensor("x", TensorKind::Input)],
        outputs: vec![tensor("y", TensorKind::Output)],
        ops: vec![],
        parameter_bytes: 0,
    };
    let op_count = u32::try_from(names.len()).unwrap();
    vec![TapMessage::Composed { graph, op_count, head: Box::new(head) }, TapMessage::GraphOps { graph, ops }]
}

/// The messages from the greeting to a graph that is ready.
fn making(backend_id: u32) -> Vec<TapMessage> {
    let mut all = vec![
        TapMessage::Hello(process(50)),
        TapMessage::Provider(provider(0, backend_id)),
        call("backendCreate", 1, None, None),
        call("deviceCreate", 2, None, None),
        call("contextCreate", 3, Some(1), None),
        call("graphCreate", 4, Some(1), Some(9)),
    ];
    all.extend(composed(9, &["a", "b"]));
    all.push(call("graphFinalize", 10, Some(1), Some(9)));
    all
}

fn execution(graph: u32, start_ms: u64, flags: u32) -> Execution {
    Execution { graph, thread: 7, start_ns: start_ms * MS, duration_ns: MS, code: 0, flags }
}

fn node(name: &str, value: u64) -> FlatEvent {
    FlatEvent { depth: 1, kind: 404, unit: 3, value, identifier: format!("{name}:OpId_1 (cycles)") }
}

fn detail(graph: u32, start_ms: u64, host: bool) -> TapMessage {
    let root = FlatEvent { depth: 0, kind: 400, unit: 1, value: 900, identifier: "Accelerator (execute) time".into() };
    TapMessage::Detail(Box::new(Detail {
        call: "graphExecute".into(),
        graph,
        thread: 7,
        start_ns: start_ms * MS,
        duration_ns: MS,
        read_ns: 10,
        host,
        cut: 0,
        events: vec![root, node("a", 30), node("b", 60)],
    }))
}

fn store(folds: &mut [(&mut Fold, Vec<TapMessage>)]) -> Store {
    let mut out = Vec::new();
    for (fold, messages) in folds {
        messages.drain(..).for_each(|message| fold.take(message, &mut out));
        fold.end(&mut out);
    }
    let mut store = Store::new();
    for (seq, Out { t_us, run, event }) in (0..).zip(out) {
        store.apply(&crate::event::Record { seq, t_us, run, event });
    }
    store
}

fn one(messages: Vec<TapMessage>) -> Store {
    store(&mut [(&mut Fold::new(0, "local", FewRuns::default(), None), messages)])
}

fn only(store: &Store) -> &Run {
    assert_eq!(store.runs().len(), 1);
    &store.runs()[0]
}

#[test]
fn a_graph_that_executes_is_a_run_like_any_other() {
    let mut messages = making(6);
    let mut executions = vec![execution(9, 20, execution_flags::FIRST)];
    executions.extend((0..10).map(|n| execution(9, 30 + 2 * n, 0)));
    executions.push(execution(9, 60, execution_flags::DETAILED));
    messages.push(TapMessage::Executions(executions));
    messages.push(detail(9, 60, false));
    messages.push(TapMessage::Bye { t_ns: 70 * MS });
    let store = one(messages);
    let run = only(&store);
    assert_eq!(run.status(), Some(RunStatus::Ok));
    assert!(run.plan.simulated, "HTP on x86_64");
    assert_eq!((run.first.count(), run.clean.count(), run.detailed.count()), (1, 10, 1));
    let stages: Vec<Stage> = run.stages.iter().map(|time| time.stage).collect();
    let made = [Stage::BackendCreate, Stage::DeviceCreate, Stage::ContextCreate, Stage::Compose, Stage::Finalize];
    assert_eq!(stages[..5], made);
    assert_eq!(run.stage_us(Stage::Compose), Some(6000.0));
    assert_eq!(run.memory.rss_before, Some(1000));
    assert_eq!(run.memory.rss_loaded, Some(10_500));
    assert_eq!(run.settings[0].key, "graph.vtcm_mb");
    assert_eq!(run.ops.inferences(), 1);
    assert_eq!(run.ops.unit(), Some(OpUnit::Cycles));
    assert_eq!(run.op(1).map(|op| op.name.as_str()), Some("b"));
    assert!((run.ops.share(1) - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(run.us_per_op_unit(), Some(10.0));
    let (process, graph) = store.tapped().unwrap().of_run(run.id).unwrap();
    assert_eq!((process.process.pid, graph.executions, graph.origin), (50, 12, GraphOrigin::Composed));
    assert!(process.orderly);
}

#[test]
fn what_the_program_profiles_itself_is_told_apart() {
    let mut messages = making(3);
    let always = execution_flags::HOST_PROFILED;
    let mut executions = vec![execution(9, 20, always | execution_flags::FIRST)];
    executions.extend((0..10).map(|n| execution(9, 30 + 2 * n, always)));
    executions.push(execution(9, 60, 0));
    messages.push(TapMessage::Executions(executions));
    messages.push(detail(9, 30, true));
    messages.push(TapMessage::Bye { t_ns: 70 * MS });
    let store = one(messages);
    let run = only(&store);
    assert_eq!((run.clean.count(), run.detailed.count(), run.ops.inferences()), (10, 0, 1));
    assert_eq!(run.plan.clean_profiling(), crate::backends::ProfilingLevel::Basic);
    assert!(store.logs().iter().any(|line| line.line.text.contains("leave out those without")));

    // The other way round, the profiled ones count as detailed.
    let mut messages = making(3);
    let executions = vec![execution(9, 30, 0), execution(9, 32, always), execution(9, 34, 0)];
    messages.push(TapMessage::Executions(executions));
    let store = one(messages);
    assert_eq!((only(&store).clean.count(), only(&store).detailed.count()), (2, 1));
}

#[test]
fn a_graph_that_is_made_again_goes_on_with_its_run_and_one_beside_it_does_not() {
    let mut messages = making(3);
    messages.push(TapMessage::Executions(vec![execution(9, 20, execution_flags::FIRST)]));
    messages.push(call("contextFree", 21, Some(1), None));
    for round in 0..5_u32 {
        let (context, graph, at) = (10 + round, 100 + round, 30 + 10 * u64::from(round));
        messages.push(call("contextCreate", at, Some(context), None));
        messages.push(call("graphCreate", at + 1, Some(context), Some(graph)));
        messages.extend(composed(graph, &["a", "b"]));
        messages.push(call("graphFinalize", at + 2, Some(context), Some(graph)));
        messages.push(TapMessage::Executions(vec![execution(graph, at + 3, execution_flags::FIRST)]));
        messages.push(call("contextFree", at + 5, Some(context), None));
    }
    let store = one(messages);
    let (process, graph) = store.tapped().unwrap().of_run(only(&store).id).unwrap();
    assert_eq!((graph.made, graph.executions), (6, 6));
    assert_eq!(process.call("graphFinalize").late, 5);

    let mut messages = making(3);
    messages.push(call("contextCreate", 14, Some(2), None));
    messages.push(call("graphCreate", 15, Some(2), Some(10)));
    messages.push(call("graphFinalize", 16, Some(2), Some(10)));
    messages.push(TapMessage::Executions(vec![execution(9, 20, 0), execution(10, 22, 0)]));
    assert_eq!(one(messages).runs().len(), 2, "both are alive");
}

#[test]
fn a_fork_executes_the_graphs_of_its_parent() {
    let ids = FewRuns::default();
    let parent = Arc::new(Mutex::new(Fold::new(0, "local", ids.clone(), None)));
    let mut out = Vec::new();
    for message in making(3) {
        parent.lock().unwrap().take(message, &mut out);
    }
    let mut child = Fold::new(1, "local", ids, Some(parent));
    let hello = TapMessage::Hello(Process { forked: true, parent_pid: 50, ..process(51) });
    let executions = TapMessage::Executions(vec![execution(9, 30, 0), execution(77, 32, 0)]);
    let store = store(&mut [(&mut child, vec![hello, executions])]);
    assert_eq!(only(&store).clean.count(), 1);
    assert_eq!(only(&store).graph().map(|graph| graph.ops.len()), Some(2));
    assert_eq!(store.tapped().unwrap().processes[0].not_followed, 1, "nobody knows graph 77");
}

#[test]
fn ends_that_are_none_in_the_ordinary_way_are_told() {
    let mut messages = making(3);
    messages.pop();
    messages.push(TapMessage::Began { call: "graphFinalize".into(), t_ns: 10 * MS, thread: 7, graph: Some(9) });
    let store = one(messages);
    let failure = only(&store).failure.as_ref().unwrap();
    assert_eq!((failure.stage, failure.message.as_str()), (Stage::Finalize, "the process ended within graphFinalize"));
    assert_eq!(store.tapped().unwrap().processes[0].died_in, ["graphFinalize"]);

    let mut messages = making(3);
    let Some(TapMessage::Ended(finalize)) = messages.last_mut() else { panic!() };
    finalize.code = 0x1_0000 + 1002;
    let store = one(messages);
    let failure = only(&store).failure.as_ref().unwrap();
    assert_eq!((failure.code, failure.symbol.as_deref()), (Some(1002), Some("QNN_GRAPH_ERROR_MEM_ALLOC")));

    let mut messages = making(3);
    messages.push(TapMessage::Began { call: "graphExecute".into(), t_ns: 19 * MS, thread: 7, graph: Some(9) });
    messages.push(TapMessage::Executions(vec![Execution { code: 6003, ..execution(9, 20, execution_flags::FIRST) }]));
    let store = one(messages);
    let run = only(&store);
    assert_eq!((run.status(), run.failure.as_ref().unwrap().code), (Some(RunStatus::Failed), Some(6003)));
    assert!(run.clean.is_empty());
    // Killed while it executed: the measurements stand.
    let mut messages = making(3);
    messages.push(TapMessage::Executions(vec![execution(9, 20, execution_flags::FIRST), execution(9, 22, 0)]));
    assert_eq!(only(&one(messages)).status(), Some(RunStatus::Stopped));
}

#[test]
fn what_is_not_known_is_counted_and_no_run() {
    // A backend of another kind, ids that nothing introduced, ops that never arrived, an end before a
    // beginning.
    let mut messages = making(9);
    messages.push(TapMessage::Executions(vec![execution(9, 20, 0), execution(u32::MAX, 22, 0), execution(4, 23, 0)]));
    messages.push(detail(4, 23, false));
    let store = one(messages);
    assert!(store.runs().is_empty());
    assert_eq!(store.tapped().unwrap().processes[0].not_followed, 3);

    let mut messages = making(3);
    messages.retain(|message| !matches!(message, TapMessage::GraphOps { .. }));
    messages.push(TapMessage::Executions(vec![execution(9, 20, 0)]));
    messages.push(detail(9, 20, false));
    let store = one(messages);
    assert_eq!(only(&store).graph().map(|graph| graph.ops.len()), Some(0));
    assert_eq!(only(&store).ops.rows()[0].op, None);
    let mut messages = making(3);
    messages.reverse();
    messages.push(TapMessage::Executions(vec![Execution {
        start_ns: u64::MAX,
        duration_ns: u64::MAX,
        ..execution(9, 1, 0)
    }]));
    assert!(one(messages).runs().len() <= 1);
}

#[test]
fn ops_that_come_before_their_graph_is_composed_are_its_first() {
    let mut messages = making(3);
    let at = messages.iter().position(|message| matches!(message, TapMessage::Composed { .. })).unwrap();
    messages.swap(at, at + 1);
    assert!(matches!(messages[at], TapMessage::GraphOps { .. }));
    messages.push(TapMessage::Executions(vec![execution(9, 20, 0)]));
    let store = one(messages);
    let names = |graph: &Graph| graph.ops.iter().map(|op| op.name.clone()).collect::<Vec<_>>();
    assert_eq!(only(&store).graph().map(names), Some(vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn a_flat_list_becomes_a_tree_again() {
    let event = |depth, kind| FlatEvent { depth, kind, unit: 1, value: 1, identifier: String::new() };
    let tree = graphs::tree(&[event(0, 1), event(1, 2), event(2, 3), event(1, 4), event(0, 5), event(7, 6)]);
    let kinds: Vec<u32> = tree.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [1, 5]);
    assert_eq!(tree[0].children.iter().map(|event| event.kind).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(tree[0].children[0].children[0].kind, 3);
    let deep: Vec<FlatEvent> = (0..10_000).map(|depth| event(depth, 1)).collect();
    assert_eq!(graphs::tree(&deep).len(), 1);
}

#[test]
fn finding_a_run_of_every_name_has_a_bound() {
    let mut messages = making(3);
    for graph in 1000..1400 {
        let TapMessage::Ended(mut made) = call("graphCreate", 12, Some(1), Some(graph)) else { panic!() };
        made.name = Some(format!("net {graph}"));
        messages.push(TapMessage::Ended(made));
        messages.push(TapMessage::Executions(vec![execution(graph, 20, 0)]));
    }
    let store = one(messages);
    assert_eq!(store.runs().len(), MOST_RUNS as usize);
    assert_eq!(store.tapped().unwrap().processes[0].not_followed, 400 - u64::from(MOST_RUNS));
    assert!(store.runs().iter().all(|run| run.latency(Phase::Clean).count() == 1));
}

#[test]
fn a_program_on_a_device_is_not_here() {
    for (device, is_here) in [("local", true), ("R5CT20", false)] {
        let mut messages = making(3);
        messages.push(TapMessage::Executions(vec![execution(9, 20, execution_flags::FIRST)]));
        let store = store(&mut [(&mut Fold::new(0, device, FewRuns::default(), None), messages)]);
        let run = only(&store);
        assert_eq!(run.plan.is_here(), is_here, "{device}");
    }
}

#[test]
fn what_a_list_makes_at_once_counts_once_in_the_time_of_loading() {
    let mut messages = making(3);
    let of_list = |context: Option<u32>, graph: Option<u32>, ms: u64| {
        let name = match (context, graph) {
            (None, _) => "contextCreateFromBinaryListAsync",
            (_, None) => "contextCreateFromBinary",
            _ => "graphRetrieve",
        };
        let TapMessage::Ended(mut made) = call(name, 100, context, graph) else { panic!() };
        (made.duration_ns, made.of_list) = (ms * MS, context.is_some());
        TapMessage::Ended(made)
    };
    let loading = |messages: Vec<TapMessage>| {
        let store = one(messages);
        let process = &store.tapped().unwrap().processes[0];
        (process.loading_ns() / 1000, process.call("contextCreateFromBinary").count, process.made.retrieved)
    };
    let before = loading(making(3)).0;
    // The call takes 1 ms; one context is ready after 20 ms, another, with one of its graphs, after 30.
    messages.push(of_list(None, None, 1));
    messages.push(of_list(Some(50), None, 20));
    messages.push(of_list(Some(51), Some(70), 25));
    messages.push(of_list(Some(51), None, 30));
    // The program requests a graph that a list notification announced.
    messages.push(call("graphRetrieve", 140, Some(51), Some(70)));
    assert_eq!(loading(messages), (before + 30_500, 2, 1));
}
