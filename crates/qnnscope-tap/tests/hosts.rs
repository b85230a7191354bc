//! Real programs with the tap in them: what they do is unchanged, and what they did is told.
//!
//! The program is `tests/support/tap_host.c` of the workspace, built here with the machine's C compiler; the backends are the
//! real ones of the tests' runtimes, and `tap_backend.c` for what those do not do (asynchronous executions that notify,
//! executions in a fork).

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use qnnscope_core::tap::{TapMessage, execution_flags};
use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use support::{Run, Told, runtime, serve, tap_library, tapped, workspace};

fn built(source: &str, output: &str, options: &[&str]) -> PathBuf {
    let source = workspace().join("tests/support").join(source);
    let to = std::env::current_exe().unwrap().with_file_name(format!("{output}-{}", std::process::id()));
    let status = Command::new("cc").args(["-O2", "-w", "-o"]).arg(&to).arg(source).args(options).status();
    assert!(status.expect("a C compiler: apt-get install gcc libc6-dev").success());
    to
}

static HOST: LazyLock<PathBuf> = LazyLock::new(|| built("tap_host.c", "tap_host", &["-ldl", "-lpthread"]));
static FAKE: LazyLock<PathBuf> =
    LazyLock::new(|| built("tap_backend.c", "libtap_backend.so", &["-shared", "-fPIC", "-lpthread"]));

fn host(backend: &Path, mode: &str, count: u32) -> Command {
    let mut command = Command::new(&*HOST);
    command.arg(backend).arg(mode).arg(count.to_string());
    command.env("LD_LIBRARY_PATH", backend.parent().unwrap());
    command
}

/// The host on the real CPU backend, with and without the tap; its standard output and its end are the same.
fn compared(backend: &Path, mode: &str, count: u32, variables: &[(&str, &str)]) -> Run {
    let plain = host(backend, mode, count).output().unwrap();
    let mut command = host(backend, mode, count);
    command.env("LD_PRELOAD", tap_library());
    let run = tapped(command, variables);
    assert_eq!(run.text(), String::from_utf8_lossy(&plain.stdout), "{mode}: what it prints");
    assert_eq!(
        String::from_utf8_lossy(&run.output.stderr),
        String::from_utf8_lossy(&plain.stderr),
        "{mode}: standard error"
    );
    let end = |output: &Output| (output.status.code(), output.status.signal());
    assert_eq!(end(&run.output), end(&plain), "{mode}: how it ends");
    assert!(run.told.lost().is_empty(), "{mode}: {:?}", run.told.lost());
    run
}

fn cpu() -> PathBuf {
    runtime("2.3.0").join("libQnnCpu.so")
}

#[test]
fn every_call_of_an_ordinary_program_is_told() {
    let run = compared(&cpu(), "plain", 30, &[("QNNSCOPE_TAP_DETAIL", "10")]);
    let told = &run.told;
    assert_eq!(told.count(|message| matches!(message, TapMessage::Bye { .. })), 1);
    let expected = ["backendCreate", "backendFree", "contextCreate", "contextFree", "graphCreate", "graphFinalize"];
    assert_eq!(told.calls(), expected.map(|call| (call.to_owned(), 1)).into());
    let composed: Vec<_> = told
        .all()
        .filter_map(|m| if let TapMessage::Composed { head, op_count, .. } = m { Some((head, op_count)) } else { None })
        .collect();
    let [(head, 4)] = composed[..] else { panic!("{composed:?}") };
    assert_eq!(
        (&*head.name, head.inputs[0].shape_text(), head.outputs[0].name.as_str()),
        ("main_graph", "1x8x8x16".to_owned(), "y")
    );
    let ops: Vec<_> = told
        .all()
        .filter_map(|m| if let TapMessage::GraphOps { ops, .. } = m { Some(ops) } else { None })
        .flatten()
        .collect();
    assert_eq!(
        ops.iter().map(|op| (&*op.name, &*op.op_type)).collect::<Vec<_>>(),
        [("add_0", "ElementWiseAdd"), ("add_1", "ElementWiseAdd"), ("add_2", "ElementWiseAdd"), ("relu", "Relu")]
    );
    let executions = told.executions();
    assert_eq!(executions.len(), 30);
    assert!(
        executions.windows(2).all(|pair| pair[0].start_ns + pair[0].duration_ns <= pair[1].start_ns),
        "one after another"
    );
    let detailed: Vec<usize> = (0..30).filter(|at| executions[*at].flags & execution_flags::DETAILED != 0).collect();
    assert_eq!(detailed, [9, 19, 29]);
    assert_eq!(executions.iter().filter(|execution| execution.flags & execution_flags::FIRST != 0).count(), 1);
    let details: Vec<_> =
        told.all().filter_map(|m| if let TapMessage::Detail(detail) = m { Some(detail) } else { None }).collect();
    assert_eq!(details.len(), 3);
    for detail in details {
        let ops = detail.events.iter().filter(|event| event.kind == 404).count();
        assert_eq!((ops, detail.cut, detail.host), (4, 0, false));
        assert!(
            executions.iter().any(|execution| execution.start_ns == detail.start_ns && execution.graph == detail.graph)
        );
    }
}

#[test]
fn sixteen_threads_on_four_graphs_lose_nothing() {
    let run = compared(&cpu(), "threads", 50, &[]);
    let executions = run.told.executions();
    assert_eq!(executions.len(), 800);
    let mut by_graph: BTreeMap<u32, usize> = BTreeMap::new();
    let mut threads = std::collections::BTreeSet::new();
    for execution in &executions {
        *by_graph.entry(execution.graph).or_default() += 1;
        threads.insert(execution.thread);
    }
    assert_eq!(by_graph.values().copied().collect::<Vec<_>>(), [200; 4]);
    assert_eq!(threads.len(), 16);
}

#[test]
fn a_profile_handle_of_the_program_is_read_and_stays_the_programs() {
    let run = compared(&cpu(), "profile", 6, &[("QNNSCOPE_TAP_DETAIL", "3")]);
    let executions = run.told.executions();
    assert!(executions.iter().all(|execution| execution.flags & execution_flags::HOST_PROFILED != 0));
    let details: Vec<_> =
        run.told.all().filter_map(|m| if let TapMessage::Detail(detail) = m { Some(detail) } else { None }).collect();
    assert_eq!(details.len(), 2);
    assert!(details.iter().all(|detail| detail.host && detail.events.len() == 5), "{details:?}");
}

#[test]
fn contexts_and_graphs_by_the_thousand_are_told_apart() {
    let run = compared(&cpu(), "contexts", 40, &[]);
    assert_eq!(run.told.calls()["contextFree"], 41);
    let mut graphs: Vec<u32> = run.told.executions().iter().map(|execution| execution.graph).collect();
    graphs.sort_unstable();
    graphs.dedup();
    assert_eq!(graphs.len(), 40, "handles come again, ids do not");
    let run = compared(&FAKE, "many", 10_000, &[]);
    assert_eq!(run.told.calls()["graphCreate"], 10_000);
    assert_eq!(run.told.count(|message| matches!(message, TapMessage::Composed { .. })), 10_000);
    let names = run
        .told
        .all()
        .filter_map(|m| if let TapMessage::Ended(call) = m { call.name.as_deref().zip(call.graph) } else { None });
    let last = names.filter(|(name, _)| *name == "graph_9999").map(|(_, graph)| graph).next();
    assert_eq!(Some(run.told.executions()[0].graph), last);
}

#[test]
fn a_process_that_dies_leaves_all_that_it_did() {
    for (mode, signal) in [("crash", Some(11)), ("kill", Some(9)), ("exit7", None), ("exec", None)] {
        let run = compared(&cpu(), mode, 500, &[]);
        assert_eq!(run.output.status.signal(), signal, "{mode}");
        let expected = if mode == "exec" { 505 } else { 500 };
        assert_eq!(run.told.executions().len(), expected, "{mode}");
        assert!(
            run.told.count(|message| matches!(message, TapMessage::Began { call, .. } if call == "graphExecute")) >= 1
        );
    }
}

#[test]
fn forks_children_and_closed_descriptors_are_followed() {
    let run = compared(&cpu(), "children", 3, &[]);
    let hellos: Vec<_> =
        run.told.all().filter_map(|m| if let TapMessage::Hello(process) = m { Some(process) } else { None }).collect();
    assert_eq!((hellos.len(), run.told.executions().len()), (3, 15));
    let run = compared(&FAKE, "fork", 20, &[]);
    let forked = run
        .told
        .connections
        .iter()
        .find(|messages| matches!(&messages[0], TapMessage::Hello(process) if process.forked));
    let forked = Told { connections: vec![forked.expect("the fork's own connection").clone()] };
    assert_eq!((forked.executions().len(), run.told.executions().len()), (20, 42));
    let graph = forked.executions()[0].graph;
    assert!(forked.all().any(|message| matches!(message, TapMessage::Ended(call) if call.graph == Some(graph) && call.name.as_deref() == Some("shared"))), "it says which graph that is");
    let run = compared(&cpu(), "closefds", 200, &[]);
    assert!(run.text().contains("file 0 bytes"), "nothing was written into the program's own file: {}", run.text());
    assert!(run.told.count(|message| matches!(message, TapMessage::Note { .. })) >= 1);
}

#[test]
fn a_backend_that_is_closed_and_opened_again_is_still_seen() {
    let run = compared(&cpu(), "reopen", 5, &[]);
    assert_eq!(run.told.executions().len(), 5);
}

#[test]
fn asynchronous_executions_end_when_the_program_is_notified() {
    let run = compared(&FAKE, "async", 40, &[("FAKE_US", "300")]);
    assert!(run.text().contains("notified 40"), "{}", run.text());
    let executions = run.told.executions();
    assert_eq!(executions.len(), 40);
    for execution in executions {
        assert_ne!(execution.flags & execution_flags::ASYNC, 0);
        assert!(execution.duration_ns >= 300_000, "the submission alone takes a fraction of that: {execution:?}");
    }
}

#[test]
fn refusals_carry_op_and_code() {
    let run = compared(&cpu(), "refuse", 0, &[]);
    let refused: Vec<_> =
        run.told.all().filter_map(|m| if let TapMessage::Refused(op) = m { Some(op) } else { None }).collect();
    let [refused] = refused[..] else { panic!("{refused:?}") };
    assert_eq!((&*refused.op.name, &*refused.op.op_type), ("strange", "NoSuchOp"));
    assert!(run.text().contains(&format!("validate {}", refused.code)), "the code that the program got");
}

#[test]
fn the_programs_log_stays_at_its_level_whatever_we_want() {
    for library in ["libQnnCpu.so", "libQnnHtp.so"] {
        let backend = runtime("2.3.0").join(library);
        let plain = host(&backend, "log", 2).output().unwrap();
        let mut command = host(&backend, "log", 2);
        command.env("LD_PRELOAD", tap_library());
        let run = tapped(command, &[("QNNSCOPE_TAP_LOG", "debug")]);
        let lines = |text: &[u8]| {
            String::from_utf8_lossy(text)
                .lines()
                .filter(|line| line.starts_with("lines ") || line.starts_with("sum "))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(&run.output.stdout), lines(&plain.stdout), "{library}");
        let most = run
            .told
            .all()
            .filter_map(|m| if let TapMessage::Log { level, .. } = m { Some(*level) } else { None })
            .max();
        if library == "libQnnHtp.so" {
            assert!(most > Some(2), "we see what the program does not: {most:?}");
        }
    }
}

#[test]
fn in_a_backends_place_it_opens_the_real_one_and_two_taps_count_once() {
    let folder = tempfile::tempdir().unwrap();
    let stand_in = folder.path().join("libQnnCpu.so");
    std::fs::copy(tap_library(), &stand_in).unwrap();
    let real = runtime("2.3.0");
    for preload in [false, true] {
        let mut command = Command::new(&*HOST);
        command.arg("libQnnCpu.so").args(["plain", "25"]);
        command.env("LD_LIBRARY_PATH", std::env::join_paths([folder.path(), &real]).unwrap());
        if preload {
            command.env("LD_PRELOAD", tap_library());
        }
        let run = tapped(command, &[("QNNSCOPE_TAP_REAL", real.to_str().unwrap())]);
        assert!(run.output.status.success(), "{}", run.text());
        assert_eq!(run.told.executions().len(), 25, "preloaded as well: {preload}");
        let files: Vec<_> = run
            .told
            .all()
            .filter_map(|m| if let TapMessage::Provider(provider) = m { Some(provider.library.clone()) } else { None })
            .collect();
        assert_eq!(files, [real.join("libQnnCpu.so").to_str().unwrap()]);
    }
}

#[test]
fn without_anybody_to_tell_the_program_runs_as_ever() {
    let plain = host(&cpu(), "plain", 3).output().unwrap();
    for sink in [None, Some("unix:/nowhere/tap"), Some("nonsense"), Some("dir:/nowhere")] {
        let mut command = host(&cpu(), "plain", 3);
        command.env("LD_PRELOAD", tap_library());
        if let Some(sink) = sink {
            command.env("QNNSCOPE_TAP", sink);
        }
        let output = command.output().unwrap();
        assert_eq!(
            (output.status.code(), &output.stdout, &output.stderr),
            (plain.status.code(), &plain.stdout, &plain.stderr)
        );
    }
}

#[test]
fn a_folder_takes_a_file_of_each_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = host(&cpu(), "children", 2);
    command.env("LD_PRELOAD", tap_library()).env("QNNSCOPE_TAP", format!("dir:{}", folder.path().display()));
    assert!(command.output().unwrap().status.success());
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let taps = names.iter().filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "tap")).count();
    assert_eq!((taps, names.len()), (2, 3), "{names:?}");
    assert!(names.contains(&"loaded".to_owned()));
    let loaded = std::fs::read_to_string(folder.path().join("loaded")).unwrap();
    assert!(
        loaded.lines().all(|line| matches!(serde_json::from_str(line), Ok(TapMessage::Loaded(_))))
            && loaded.lines().count() == 3
    );
}

#[test]
fn a_reader_that_does_not_read_never_holds_the_program_up() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("tap");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut command = host(&FAKE, "plain", 300_000);
    command.env("LD_PRELOAD", tap_library()).env("QNNSCOPE_TAP", format!("unix:{}", socket.display()));
    // Connections are made and never read: the queue fills, and what does not fit is counted.
    let output = command.output().unwrap();
    assert!(output.status.success());
    let (stream, _) = listener.accept().unwrap();
    drop(stream);
    let (stream, _) = listener.accept().unwrap();
    let told = serve(stream);
    let hello =
        told.iter().find_map(|message| if let TapMessage::Hello(process) = message { Some(process) } else { None });
    assert!(hello.unwrap().ring.is_some());
}

#[test]
fn it_needs_the_c_library_and_nothing_else() {
    let output = Command::new("ldd").arg(tap_library()).output().unwrap();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let name = line.trim().split([' ', '\t']).next().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        // libgcc_s is the C compiler's own, which every C++ program, hence every QNN library, has: panics are caught with it.
        let allowed = ["linux-vdso.so.1", "libgcc_s.so.1", "libc.so.6"];
        assert!(allowed.contains(&name) || name.starts_with("ld-linux"), "{line}");
    }
}
