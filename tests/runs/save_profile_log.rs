//! `--save-profile-log`: QNN profile logs of real runs, read by the tests' own reader.

#![cfg(target_os = "linux")]

use crate::profile_log::{
    COMPOSE, CONTEXT_CREATE, CREATE_FROM_BINARY, DEINIT, EXECUTE, Event, FINALIZE, IPS, Log, Message,
};
use crate::support::{
    Done, Qnnscope, context_binary, demo_float, demo_int8, model_library, number, repo, runtime_247, runtime_251,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const GRAPH: &str = "qnnscope_demo";
const SMALL_GRAPH: &str = "first";
const OPS: usize = 59;
const US: u32 = 1;
const CYCLES: u32 = 3;
const COUNT: u32 = 4;
const NODE: u32 = 404;

/// Runs a model and reads its log; the outcome of the setting must be `applied`.
#[track_caller]
fn logged(runtime: &Path, model: &Path, flags: &str) -> (Log, Done) {
    let done = Qnnscope::on(runtime).run_json(model, &format!("--save-profile-log run.log {flags}")).expect(0);
    let setting = setting(&done.first_run());
    assert_eq!((&setting["value"], &setting["outcome"]), (&json!("run.log"), &json!("applied")), "{setting}");
    (Log::read(&done.home().join("run.log")), done)
}

#[track_caller]
fn setting(run: &Value) -> Value {
    let mut found = run["settings"].as_array().unwrap().iter().filter(|row| row["key"] == "--save-profile-log");
    let setting = found.next().expect("the log is told as a setting").clone();
    assert!(found.next().is_none(), "told once");
    setting
}

/// A library whose inferences take microseconds, on one thread: many of them finish quickly even on a busy
/// machine.
fn small_library(dir: &Path) -> PathBuf {
    model_library(dir, "small_graph.c", &["SLOTS=72"])
}

fn nodes(event: &Event) -> Vec<&Event> {
    event.children.iter().filter(|child| child.kind == NODE).collect()
}

/// Checks what holds for every log of a run with `inferences` inferences.
#[track_caller]
fn check_shape(log: &Log, setup: &[u8], inferences: usize) {
    check_shape_of(log, GRAPH, setup, inferences);
}

#[track_caller]
fn check_shape_of(log: &Log, graph: &str, setup: &[u8], inferences: usize) {
    let executes = std::iter::repeat_n(EXECUTE, inferences);
    let expected: Vec<u8> = setup.iter().copied().chain(executes).chain([IPS, DEINIT]).collect();
    assert_eq!(log.methods(), expected);
    let messages = log.messages();
    let sequence: Vec<u64> = messages.iter().map(|message| message.sequence).collect();
    assert_eq!(sequence, (0..messages.len() as u64).collect::<Vec<_>>());
    for message in &messages {
        let with_graph = [FINALIZE, EXECUTE].contains(&message.method);
        assert_eq!(message.graph.as_deref(), with_graph.then_some(graph), "{message:?}");
        let has_span = message.start_us > 0 && message.stop_us >= message.start_us;
        assert_eq!(has_span, message.method != IPS, "{message:?}");
        all_events(&message.events, &mut |event| assert_eq!(event.value_kind, 2, "{event:?}"));
    }
    let spans: Vec<&&Message> = messages.iter().filter(|message| message.method != IPS).collect();
    assert!(spans.windows(2).all(|pair| pair[1].start_us >= pair[0].stop_us), "one after the other");
    let ips = log.of(IPS)[0];
    let figures: Vec<_> = ips.events.iter().map(|e| (e.identifier.as_deref().unwrap(), e.kind, e.unit)).collect();
    assert_eq!(figures, [("numInferences", 400, COUNT), ("duration", 400, US)]);
    assert_eq!(ips.events[0].value, inferences as u64);
    let executes = log.of(EXECUTE);
    let busy: u64 = executes.iter().map(|message| message.stop_us - message.start_us).sum();
    assert!(ips.events[1].value >= busy, "{} < {busy}", ips.events[1].value);
}

fn all_events(events: &[Event], look: &mut impl FnMut(&Event)) {
    for event in events {
        look(event);
        all_events(&event.children, look);
    }
}

#[test]
fn a_cpu_run_has_the_messages_of_qnn_net_run() {
    let (log, done) = logged(&runtime_247(), &demo_float(), "-b cpu -n 20 --warmup 3 --profiling-iterations 7");
    assert_eq!(log.header[0].as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(log.header[2].as_deref(), Some("qnnscope"));
    let run = done.first_run();
    assert_eq!(log.header[1].as_deref(), run["runtime"]["build_id"].as_str());
    check_shape(&log, &[CONTEXT_CREATE, COMPOSE, FINALIZE], 1 + 3 + 20 + 7);
    let finalize = log.of(FINALIZE)[0].event(300);
    assert_eq!((finalize.identifier.as_deref(), finalize.unit), (Some("GRAPH_FINALIZE"), US));
    assert!(nodes(finalize).len() > 10);
    let detailed: Vec<&Message> = log.of(EXECUTE).into_iter().filter(|message| !message.events.is_empty()).collect();
    assert_eq!(detailed.len(), 7, "the clean phase, the first inference and the warm-up run without a profile");
    for message in detailed {
        let execute = message.event(400);
        assert_eq!((execute.identifier.as_deref(), execute.unit), (Some("GRAPH_EXECUTE"), US));
        assert!(message.stop_us - message.start_us >= execute.value, "{message:?}");
        let nodes = nodes(execute);
        assert!(nodes.iter().all(|node| node.unit == US && node.identifier.as_deref().unwrap().starts_with('_')));
        let names: Vec<&str> = nodes.iter().map(|node| &node.identifier.as_deref().unwrap()[1..]).collect();
        let ops = run["ops"].as_array().unwrap();
        let timed: Vec<&str> =
            ops.iter().filter(|op| op["time_us"].is_object()).map(|op| op["name"].as_str().unwrap()).collect();
        assert!(timed.iter().all(|name| names.contains(name)), "{names:?} has not all of {timed:?}");
    }
    let deinit = log.of(DEINIT)[0].event(500);
    assert_eq!((&deinit.identifier, deinit.unit), (&None, US));
}

#[test]
fn htp_runs_have_their_own_events_on_both_runtimes() {
    for runtime in [runtime_247(), runtime_251()] {
        let (log, _) = logged(&runtime, &demo_int8(), "-b htp -n 4 --warmup 1 --profiling-iterations 3");
        check_shape(&log, &[CONTEXT_CREATE, COMPOSE, FINALIZE], 1 + 1 + 4 + 3);
        let finalize = log.of(FINALIZE)[0].event(300);
        assert_eq!(finalize.identifier.as_deref(), Some("QNN (finalize) time"));
        assert!(finalize.children.iter().any(|stage| stage.identifier.as_deref() == Some("VTCM Allocation")));
        let detailed: Vec<&Message> = log.of(EXECUTE).into_iter().filter(|m| !m.events.is_empty()).collect();
        assert_eq!(detailed.len(), 3);
        for message in detailed {
            let units: Vec<(u32, u32)> = message.events.iter().map(|event| (event.kind, event.unit)).collect();
            assert_eq!(
                units,
                [(8001, COUNT), (3009, COUNT), (3010, US), (3011, US), (3003, CYCLES), (3004, US), (400, US)]
            );
            let cycles = message.event(3003);
            assert!(nodes(cycles).len() >= OPS, "{}", nodes(cycles).len());
            assert_eq!(nodes(cycles).iter().map(|node| node.value).sum::<u64>(), cycles.value, "cycles add up");
            let names: Vec<&str> = nodes(cycles).iter().map(|node| node.identifier.as_deref().unwrap()).collect();
            assert!(names.iter().any(|name| name.starts_with("stem_conv") && name.contains(":OpId_")), "{names:?}");
            assert!(message.stop_us - message.start_us >= message.event(400).value);
        }
        let deinit: Vec<u32> = log.of(DEINIT)[0].events.iter().map(|event| event.kind).collect();
        assert_eq!(deinit, [4003, 500]);
    }
}

#[test]
fn basic_has_totals_and_off_has_none() {
    let (log, _) = logged(&runtime_247(), &demo_float(), "-n 12 --warmup 0 --profiling basic");
    check_shape(&log, &[CONTEXT_CREATE, COMPOSE, FINALIZE], 1 + 12);
    let executes = log.of(EXECUTE);
    assert!(executes[0].events.is_empty(), "the first inference runs without a profile");
    assert!(executes[1..].iter().all(|message| message.event(400).children.is_empty()));
    let (log, _) = logged(&runtime_247(), &demo_float(), "-n 12 --warmup 0 --profiling off");
    check_shape(&log, &[CONTEXT_CREATE, COMPOSE, FINALIZE], 1 + 12);
    assert!(log.messages().iter().all(|message| message.method == IPS || message.events.is_empty()));
}

#[test]
fn a_context_binary_is_created_and_not_composed() {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("context");
    std::fs::write(&binary, context_binary("2.3.0", "htp", &demo_int8(), None)).unwrap();
    let (log, _) = logged(&runtime_247(), &binary, "-b htp -n 2 --warmup 0 --profiling-iterations 1");
    check_shape(&log, &[CREATE_FROM_BINARY], 1 + 2 + 1);
    let kinds: Vec<u32> = log.of(CREATE_FROM_BINARY)[0].events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [1004, 100]);
}

#[test]
fn a_new_run_replaces_the_log_and_several_backends_get_one_each() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.b.log");
    let run = |flags: &str| {
        Qnnscope::on(&runtime_247())
            .args(["run", "--json", "--warmup", "0", "--profiling", "off", "--save-profile-log"])
            .arg(&path)
            .arg(demo_int8())
            .flags(flags)
            .finish()
            .expect(0);
    };
    run("-n 9");
    run("-n 3");
    check_shape(&Log::read(&path), &[CONTEXT_CREATE, COMPOSE, FINALIZE], 4);
    std::fs::remove_file(&path).unwrap();
    run("-b cpu,htp,cpu -n 1");
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["a.b-cpu-2.log", "a.b-cpu.log", "a.b-htp.log"]);
    names.iter().for_each(|name| check_shape(&Log::read(&dir.path().join(name)), &[6, 7, 2], 2));
}

#[test]
fn a_long_log_has_chunks_and_every_message() {
    let dir = tempfile::tempdir().unwrap();
    let (log, done) = logged(&runtime_247(), &small_library(dir.path()), "-n 1500 --warmup 0 --profiling basic");
    check_shape_of(&log, SMALL_GRAPH, &[CONTEXT_CREATE, COMPOSE, FINALIZE], 1501);
    assert!(log.chunks.len() >= 2 && log.chunks[0].len() >= 1000, "{:?}", log.chunks.iter().map(Vec::len));
    let mean = log.of(EXECUTE)[1..].iter().map(|m| (m.stop_us - m.start_us) as f64).sum::<f64>() / 1500.0;
    let reported = number(&done.first_run()["latency_us"]["mean"]);
    assert!((mean - reported).abs() <= 1.0 + reported * 0.001, "log {mean} us, report {reported} us");
}

#[test]
fn a_run_that_is_stopped_keeps_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = Qnnscope::on(&runtime_247())
        .arg("run")
        .arg(small_library(dir.path()))
        .flags("--json --duration 60 --profiling basic --save-profile-log run.log")
        .start();
    let path = running.home().join("run.log");
    running.until("messages", || std::fs::metadata(&path).is_ok_and(|data| data.len() > 0).then_some(()));
    running.signal(rustix::process::Signal::INT);
    let done = running.wait().expect(130);
    let log = Log::read(&done.home().join("run.log"));
    check_shape_of(&log, SMALL_GRAPH, &[CONTEXT_CREATE, COMPOSE, FINALIZE], log.of(EXECUTE).len());
    assert_eq!(setting(&done.first_run())["outcome"], "applied");
}

#[test]
fn a_path_that_cannot_be_written_is_bad_input() {
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-n 1 --save-profile-log /dev/null/x").expect(2);
    assert!(done.stderr.contains("cannot write --save-profile-log /dev/null/x: Not a directory"), "{}", done.stderr);
}

#[test]
fn a_full_disk_is_told() {
    let done = Qnnscope::on(&runtime_247())
        .run_json(&demo_float(), "-n 5 --profiling off --save-profile-log /dev/full")
        .expect(1);
    let setting = setting(&done.first_run());
    assert_eq!(setting["outcome"], "refused", "{setting}");
    assert!(setting["reason"].as_str().unwrap().contains("empty or cut short"), "{setting}");
}

#[test]
fn a_system_library_without_the_serializer_is_told_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let model = small_library(dir.path());
    for minor in [4, 10] {
        let runtime = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(runtime_247().join("libQnnCpu.so"), runtime.path().join("libQnnCpu.so")).unwrap();
        for entry in std::fs::read_dir(runtime_247()).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if !name.starts_with("libQnn") {
                std::os::unix::fs::symlink(entry.path(), runtime.path().join(name)).unwrap();
            }
        }
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(runtime.path().join("libQnnSystem.so"))
            .arg(format!("-DMINOR={minor}"))
            .arg(repo("tests/models/old_system.c"))
            .status()
            .expect("the tests need a C compiler called cc");
        assert!(built.success());
        let done = Qnnscope::on(runtime.path()).run_json(&model, "-n 3 --save-profile-log run.log").expect(0);
        let setting = setting(&done.first_run());
        assert_eq!(setting["outcome"], "no_effect", "{setting}");
        let reason = setting["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("system API 1.{minor}.0")) && reason.contains("1.11"), "{reason}");
        assert!(!done.home().join("run.log").exists(), "no empty file is left");
    }
}
