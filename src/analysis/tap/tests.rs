use super::*;
use crate::tap::replay;
use serde_json::{Value, json};

/// What a process reports on a backend, up to a graph that is ready.
fn made(backend_id: u32) -> Vec<Value> {
    let tensor = json!({"name": "x", "dtype": "float32", "shape": [1, 65536], "quantization": null, "kind": "input"});
    vec![
        json!({"hello": {"protocol": 1, "tap_version": "0", "pid": 50, "parent_pid": 1, "forked": false, "executable": "/app",
            "command": ["./app"], "arch": "aarch64", "t_ns": 0, "epoch_us": 0}}),
        json!({"provider": {"provider": 0, "library": "l", "name": "N", "backend_id": backend_id, "core_api": "2.36.0",
            "backend_api": "5.47.0", "build_id": null, "t_ns": 1}}),
        ended("contextCreate", 2, json!({"context": 1})),
        ended("graphCreate", 3, json!({"context": 1, "graph": 9, "name": "a"})),
        ended("graphFinalize", 4, json!({"context": 1, "graph": 9, "name": "a"})),
        ended("graphCreate", 5, json!({"context": 1, "graph": 10, "name": "b"})),
        ended("graphFinalize", 6, json!({"context": 1, "graph": 10, "name": "b"})),
        json!({"bound": {"graph": 9, "inputs": [{"tensor": tensor, "shared": false}], "outputs": []}}),
    ]
}

#[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
fn ended(call: &str, at_us: u64, more: Value) -> Value {
    let mut value =
        json!({"call": call, "provider": 0, "start_ns": at_us * 1000, "duration_ns": 500, "thread": 1, "code": 0});
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"ended": value})
}

/// Executions: graph, thread, start and duration in microseconds, flags.
fn executions(all: impl IntoIterator<Item = (u32, u32, u64, u64, u32)>) -> Value {
    let rows: Vec<Value> = all
        .into_iter()
        .map(|(graph, thread, start, took, flags)| json!([graph, thread, start * 1000, took * 1000, 0, flags]))
        .collect();
    json!({ "executions": rows })
}

fn store(messages: &[Value]) -> Store {
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    let text = lines.join("\n") + "\n{\"bye\":{\"t_ns\":900000000}}\n";
    let store = replay(text.as_bytes());
    assert_eq!(store.lost(), 0, "every message is one");
    store
}

fn found(messages: &[Value]) -> Vec<(&'static str, Finding)> {
    let store = store(messages);
    let process = &store.tapped().unwrap().processes[0];
    let mut all = process_findings(&store, process);
    all.extend(store.runs().iter().flat_map(|run| graph_findings(&store, run)));
    assert!(all.iter().all(|finding| !finding.evidence.is_empty() && finding.id.starts_with("tap.")));
    all.into_iter().map(|finding| (finding.id, finding)).collect()
}

fn has(found: &[(&'static str, Finding)], id: &str) -> bool {
    found.iter().any(|(known, _)| *known == id)
}

fn finding<'a>(found: &'a [(&'static str, Finding)], id: &str) -> &'a Finding {
    &found.iter().find(|(known, _)| *known == id).unwrap_or_else(|| panic!("no {id} in {found:#?}")).1
}

#[test]
fn the_programs_own_time_is_told_with_its_part() {
    let mut messages = made(3);
    messages.push(executions((0..20).map(|n| (9, 1, 1000 + n * 1000, 200, 0))));
    let slow = found(&messages);
    let share = finding(&slow, "tap.time-share");
    assert!(
        share.title.contains("21 % is inside QNN") && share.title.contains("79 % in the program"),
        "{}",
        share.title
    );
    assert!(share.severity == crate::analysis::Severity::Warning && share.suggestion.is_some());
    assert!(!has(&slow, "tap.partitions") && !has(&slow, "tap.waiting"));
    let mut messages = made(3);
    messages.push(executions((0..20).map(|n| (9, 1, 1000 + n * 1000, 990, 0))));
    assert_eq!(finding(&found(&messages), "tap.time-share").severity, crate::analysis::Severity::Info);
}

#[test]
fn graphs_of_one_inference_are_told_with_the_gaps_between_them() {
    let mut messages = made(3);
    messages
        .push(executions((0..20).flat_map(|n| [(9, 1, 1000 + n * 1000, 200, 0), (10, 1, 1500 + n * 1000, 300, 0)])));
    let all = found(&messages);
    let partitions = finding(&all, "tap.partitions");
    assert!(partitions.title.contains("2.0 graphs, and 300 µs"), "{}", partitions.title);
    assert!(partitions.evidence[0].text.contains("before graph b: 300 µs"), "{:?}", partitions.evidence);
}

#[test]
fn threads_that_wait_for_each_other_are_found_by_what_they_take_alone() {
    let alone = (0..20).map(|n| (9, 1, 1000 + n * 1000, 100, 0));
    let beside =
        |took: u64| (0..20).flat_map(move |n| [(9, 1, 50_000 + n * 1000, took, 0), (9, 2, 50_010 + n * 1000, took, 0)]);
    let mut messages = made(3);
    messages.push(executions(alone.clone().chain(beside(200))));
    assert!(finding(&found(&messages), "tap.waiting").title.contains("2.0 times as long"));
    let mut messages = made(3);
    messages.push(executions(alone.chain(beside(100))));
    assert!(!has(&found(&messages), "tap.waiting"), "they take what they take alone");
}

#[test]
fn votes_are_judged_where_there_is_something_to_vote_for() {
    let vote = |settings: Value| json!({"voted": {"t_ns": 7000, "provider": 0, "action": "set", "id": 1, "code": 0, "settings": settings}});
    let runs = executions((0..20).map(|n| (9, 1, 1000 + n * 1000, 200, 0)));
    let of = |backend: u32, votes: Vec<Value>| {
        let mut messages = made(backend);
        messages.extend(votes);
        messages.push(runs.clone());
        found(&messages)
    };
    assert!(has(&of(6, vec![]), "tap.no-vote") && !has(&of(3, vec![]), "tap.no-vote"));
    let burst = json!({"dcvs_enable": 0, "core_target": 160, "bus_target": 160, "rpc_polling_us": 9999});
    let good = of(6, vec![vote(burst)]);
    assert!(!good.iter().any(|(id, _)| id.contains("vote") || id.contains("polling")), "{good:#?}");
    let balanced = of(6, vec![vote(json!({"dcvs_enable": 1, "core_target": 112}))]);
    assert_eq!(finding(&balanced, "tap.vote-below-burst").evidence.len(), 2);
    assert!(has(&balanced, "tap.polling-off") && !has(&balanced, "tap.no-vote"));

    let mut messages = made(6);
    for n in 0..20 {
        messages.push(executions([(9, 1, 1000 + n * 1000, 200, 0)]));
        messages.push(vote(json!({"core_target": 160})));
    }
    assert!(has(&found(&messages), "tap.votes-dropped"));
}

#[test]
fn what_fails_on_the_way_is_told_with_its_remedy() {
    let mut messages = made(6);
    messages.push(ended("deviceCreate", 7, json!({"code": 14001, "message": "no"})));
    let all = found(&messages);
    let failed = finding(&all, "tap.failed-calls");
    assert!(failed.suggestion.as_ref().unwrap().snippets[0].contains("--repair device-config -- ./app"));
    let silent = finding(&all, "tap.not-executed");
    assert!(silent.severity == crate::analysis::Severity::Problem && silent.evidence[0].text.contains("14001"));
    // A backend without devices answers 1000, and a compiler executes nothing: neither is a failure.
    let mut messages = made(3);
    messages.push(ended("deviceCreate", 7, json!({"code": 1000})));
    let all = found(&messages);
    assert!(!has(&all, "tap.failed-calls"));
    assert_eq!(finding(&all, "tap.not-executed").severity, crate::analysis::Severity::Info);
}

#[test]
fn copies_and_floats_count_on_the_npu_only() {
    let of = |backend: u32| {
        let mut messages = made(backend);
        messages.push(executions((0..20).map(|n| (9, 1, 1000 + n * 1000, 200, 16))));
        found(&messages)
    };
    let npu = of(6);
    assert!(finding(&npu, "tap.copied-inputs").title.contains("256 KiB each time"));
    assert!(has(&npu, "tap.float-graph"));
    assert!(!has(&of(3), "tap.copied-inputs") && !has(&of(3), "tap.float-graph"));
}

#[test]
fn makings_after_the_first_execution_are_found_again_and_again() {
    let mut messages = made(3);
    for n in 0..20_u32 {
        let at = 1000 + u64::from(n) * 1000;
        messages.push(executions([(9, 1, at, 200, 0)]));
        messages.push(ended("contextCreate", at + 300, json!({"context": 100 + n})));
    }
    assert!(finding(&found(&messages), "tap.remade").evidence[0].text.starts_with("contextCreate"));
    let mut messages = made(3);
    messages.push(executions((0..200).map(|n| (9, 1, 1000 + n * 1000, 200, 0))));
    messages.extend((0..3).map(|n| ended("contextCreate", 300_000 + n, json!({"context": 100 + n}))));
    assert!(!has(&found(&messages), "tap.remade"), "three for 200 inferences");
}

#[test]
fn a_program_without_qnn_is_told_apart_from_one_that_was_not_reached() {
    use crate::event::{Event, Record, TapRecord, TapSeen};
    let ids = |seen: Vec<TapSeen>| -> Vec<&'static str> {
        let mut store = Store::new();
        for (seq, seen) in (0..).zip(seen) {
            let event = Event::Tap(Box::new(TapRecord { process: None, seen }));
            store.apply(&Record { seq, t_us: seq, run: None, event });
        }
        program_findings(store.tapped().unwrap()).iter().map(|finding| finding.id).collect()
    };
    let end = TapSeen::ProgramEnded { status: Some(0), signal: None };
    let loaded = TapSeen::Loaded { pid: 1, executable: "/app".into() };
    assert_eq!(ids(vec![loaded.clone(), end.clone()]), ["tap.no-qnn"]);
    assert_eq!(ids(vec![loaded]), [""; 0], "it may still ask");
    assert_eq!(ids(vec![TapSeen::NotReached { reason: "static".into() }, end]), ["tap.not-reached"]);
}
