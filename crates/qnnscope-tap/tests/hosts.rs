//! Real programs with the tap in them: their behaviour is unchanged, and what they did is reported.
//!
//! The program is `tests/support/tap_host.c` of the workspace, built here with the machine's C compiler; the backends are the
//! real ones of the tests' runtimes, and `tap_backend.c` for what those do not do (asynchronous executions that notify,
//! executions in a fork).

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use qnnscope_core::tap::{Call, TapMessage, execution_flags};
use std::collections::{BTreeMap, BTreeSet};
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

/// Runs the host on the real CPU backend with and without the tap; standard output and the way it ends must
/// be the same.
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
    // What is no longer connected is reported, or else everything is reported to the end.
    let told: Vec<usize> = run.told.connections.iter().map(Vec::len).collect();
    let notes = run.told.count(|message| matches!(message, TapMessage::Note { .. }));
    assert!(
        notes >= 1,
        "messages of each connection {told:?}, {} executions, {:?}",
        run.told.executions().len(),
        run.told.lost()
    );
}

#[test]
fn forks_in_the_middle_of_other_threads_calls_hang_nothing_and_lose_nothing() {
    let run = compared(&FAKE, "churn", 40, &[]);
    let forks = run.told.count(|message| matches!(message, TapMessage::Hello(process) if process.forked));
    assert_eq!(forks, 20);
    assert_eq!(run.told.executions().len(), 8 * 40 * 3 + 20 * 5, "{:?}", run.told.lost());
    assert_eq!(run.told.calls()["contextFree"], 8 * 40 + 1);
}

#[test]
fn small_stacks_and_few_files_are_enough() {
    let run = compared(&FAKE, "stack", 100, &[("QNNSCOPE_TAP_DETAIL", "40")]);
    assert_eq!(run.told.executions().len(), 100);
    assert_eq!(run.told.count(|message| matches!(message, TapMessage::Detail(_))), 2);
    let run = compared(&cpu(), "nofile", 30, &[]);
    assert_eq!(run.told.executions().len(), 30);
}

#[test]
fn a_backend_that_is_closed_and_opened_again_is_still_seen() {
    let run = compared(&cpu(), "reopen", 5, &[]);
    assert_eq!(run.told.executions().len(), 5);
}

/// A host's peak memory, as it reports itself.
fn largest_kib(output: &std::process::Output) -> u64 {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_else(|| panic!("{text}"));
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn what_it_takes_of_the_programs_memory_has_a_bound() {
    for (mode, count) in [("plain", 200_000), ("contexts", 2_000), ("many", 10_000), ("many", 30_000)] {
        let plain = host(&FAKE, mode, count).env("HOST_MEMORY", "1").output().unwrap();
        let mut command = host(&FAKE, mode, count);
        command.env("LD_PRELOAD", tap_library()).env("HOST_MEMORY", "1");
        let run = tapped(command, &[]);
        let taken = largest_kib(&run.output).saturating_sub(largest_kib(&plain));
        // The library's own pages count too: a debug build has more of them than a release build.
        assert!(taken < 8 << 10, "{mode} {count}: {taken} KiB");
        // Graphs alive at once: up to 10,000 all are reported; beyond that, those that are not are counted.
        let graphs = |is_known: bool| {
            run.told.count(|message| matches!(message, TapMessage::Ended(call) if call.call == "graphCreate" && call.graph.is_some() == is_known))
        };
        let lost = run.told.lost().into_iter().map(|lost| match lost {
            TapMessage::Lost { what, count, reason: Some(reason) } if what == "graphs" => {
                assert!(reason.contains("alive at once"), "{reason}");
                *count
            }
            // On a busy machine, the writer may fall behind a program that does nothing but execute.
            TapMessage::Lost { what, .. } if what == "executions" => 0,
            other => panic!("{other:?}"),
        });
        let lost: u64 = lost.sum();
        assert_eq!(lost, graphs(false) as u64, "{mode} {count}");
        assert_eq!(lost > 0, count == 30_000, "{mode} {count}");
        if count == 30_000 {
            assert!(graphs(true) >= 10_000);
            let [execution] = run.told.executions()[..] else { panic!() };
            assert_eq!(execution.graph, u32::MAX, "the last one has no room");
        }
    }
}

#[test]
fn a_graph_of_a_hundred_thousand_ops_takes_no_more_memory_than_a_small_one() {
    let memory = |command: &mut Command| command.env("HOST_MEMORY", "1").output().unwrap();
    let plain = memory(&mut host(&FAKE, "huge", 100_000));
    let mut command = host(&FAKE, "huge", 100_000);
    command.env("LD_PRELOAD", tap_library()).env("HOST_MEMORY", "1");
    let run = tapped(command, &[]);
    assert_eq!(run.output.stdout, plain.stdout, "the same sum");
    let taken = largest_kib(&run.output).saturating_sub(largest_kib(&plain));
    assert!(taken < 8 << 10, "{taken} KiB");
    let composed = run.told.all().find_map(|message| match message {
        TapMessage::Composed { op_count, head, .. } => Some((*op_count, head.clone())),
        _ => None,
    });
    // What did not fit into the queue is counted.
    let lost: u64 = run
        .told
        .lost()
        .into_iter()
        .filter_map(|lost| match lost {
            TapMessage::Lost { what, count, .. } if what == "messages" => Some(*count),
            _ => None,
        })
        .sum();
    let told = run.told.all().filter_map(|m| if let TapMessage::GraphOps { ops, .. } = m { Some(ops) } else { None });
    let told: Vec<u32> = told.flatten().map(|op| op.index).collect();
    assert!(told.is_sorted(), "in order");
    println!("{} of 100000 ops told, {lost} messages lost, {taken} KiB", told.len());
    match composed {
        Some((op_count, head)) => {
            assert_eq!((op_count, head.inputs.len(), head.outputs.len()), (100_000, 1, 1));
            assert_eq!(told.len() == 100_000, lost == 0, "{} of 100000, {lost} lost", told.len());
        }
        None => assert!(lost > 0),
    }
}

#[test]
fn contexts_of_a_list_are_told_like_those_made_singly() {
    let ended = |run: &Run| -> Vec<Call> {
        run.told
            .all()
            .filter_map(|m| if let TapMessage::Ended(call) = m { Some((**call).clone()) } else { None })
            .collect()
    };
    let run = compared(&FAKE, "list", 0, &[]);
    assert!(run.text().contains("list 5001"), "{}", run.text());
    let calls = ended(&run);
    let call = calls.iter().find(|call| call.call == "contextCreateFromBinaryListAsync").expect("it is told");
    assert_eq!((call.code, call.context), (5001, None));

    // Records of both versions; each graph is reported before its context.
    let run = compared(&FAKE, "list", 3, &[]);
    assert_eq!(run.text().matches("contexts 1, status 0").count(), 3, "{}", run.text());
    let calls = ended(&run);
    let list = calls.iter().find(|call| call.call == "contextCreateFromBinaryListAsync").unwrap();
    let of = |name: &'static str, of_list: bool| {
        calls.iter().filter(move |call| call.call == name && call.of_list == of_list).collect::<Vec<_>>()
    };
    let contexts = of("contextCreateFromBinary", true);
    assert_eq!(contexts.len(), 3);
    let mut keys = BTreeSet::new();
    for (at, context) in contexts.iter().enumerate() {
        assert_eq!((context.start_ns, context.code, context.binary_bytes), (list.start_ns, 0, Some(100)));
        // The backend takes 2 ms for each, one after the other.
        assert!(context.duration_ns >= 2_000_000 * (at as u64 + 1), "{context:?}");
        keys.insert(context.binary.expect("it is kept"));
    }
    assert_eq!(keys.len(), 3, "each has another graph's name in it");
    let (told, asked) = (of("graphRetrieve", true), of("graphRetrieve", false));
    let who = |calls: &[&Call]| -> Vec<_> {
        calls.iter().map(|call| (call.name.clone(), call.graph, call.context)).collect()
    };
    assert_eq!(who(&told), who(&asked), "the same graphs in the same contexts");
    assert_eq!(told[2].name.as_deref(), Some("listed_2"));
    let ids = |calls: &[&Call]| calls.iter().map(|call| call.context).collect::<Vec<_>>();
    assert_eq!(ids(&told), ids(&contexts));
    assert_eq!(ids(&of("contextFree", false))[3..], ids(&contexts)[..], "after the three that were saved");
    let executed: Vec<_> = run.told.executions().iter().map(|execution| Some(execution.graph)).collect();
    assert_eq!(executed, asked.iter().map(|call| call.graph).collect::<Vec<_>>());
}

#[test]
fn a_context_binary_is_kept_once_for_whoever_reads_it() {
    let run = compared(&cpu(), "binary", 3, &[]);
    let kept: Vec<_> =
        run.told.all().filter_map(|m| if let TapMessage::Binary(binary) = m { Some(binary) } else { None }).collect();
    let [kept] = kept[..] else { panic!("{kept:?}") };
    let loaded = run.told.all().find_map(|m| match m {
        TapMessage::Ended(call) if call.call == "contextCreateFromBinary" => Some(call),
        _ => None,
    });
    let loaded = loaded.unwrap();
    assert_eq!((loaded.binary, loaded.binary_bytes), (Some(kept.key), Some(kept.bytes)));
    assert_eq!((kept.head, kept.tail, &kept.reason), (kept.bytes, 0, &None), "it is small: all of it");
    // On a device it is stored beside the process's file until it is fetched; its content is the program's.
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    let mut command = host(&cpu(), "binary", 1);
    command.env("LD_PRELOAD", tap_library()).env("QNNSCOPE_TAP", format!("dir:{}", folder.path().display()));
    assert!(command.env("HOST_BINARY", &own).output().unwrap().status.success());
    let copies: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "binary"))
        .collect();
    let [copy] = &copies[..] else { panic!("{copies:?}") };
    assert_eq!(std::fs::read(copy).unwrap(), std::fs::read(own).unwrap());
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
    // Connections succeed but are never read: the queue fills, and what does not fit is counted.
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
        // libgcc_s belongs to the C compiler, and every C++ program, hence every QNN library, has it: panics
        // are caught with it.
        let allowed = ["linux-vdso.so.1", "libgcc_s.so.1", "libc.so.6"];
        assert!(allowed.contains(&name) || name.starts_with("ld-linux"), "{line}");
    }
}
