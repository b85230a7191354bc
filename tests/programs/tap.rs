//! `qnnscope tap` on real programs: their behaviour is unchanged, and what they did is reported. The programs
//! are a small C host of QNN's CPU backend (`support/tap_host.c`), qnnscope's own runner, and processes that
//! send what no tap would.

#![cfg(target_os = "linux")]

use crate::support::schema::{self, fits};
use crate::support::{Done, Qnnscope, demo_int8, repo, runtime_247};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

fn compiled(source: &Path, name: &str, options: &[&str]) -> PathBuf {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let status = Command::new("cc").args(["-O2", "-w", "-o"]).arg(&to).arg(source).args(options).status();
    assert!(status.expect("a C compiler: apt-get install gcc libc6-dev").success());
    to
}

static HOST: LazyLock<PathBuf> =
    LazyLock::new(|| compiled(&repo("tests/support/tap_host.c"), "tap_host", &["-ldl", "-lpthread"]));

fn backend() -> PathBuf {
    runtime_247().join("libQnnCpu.so")
}

/// Runs the host on the CPU backend under the tap; `flags` are the tap's.
fn tapped(flags: &str, mode: &str, count: u32) -> Done {
    Qnnscope::without_runtime()
        .arg("tap")
        .flags(flags)
        .arg("--")
        .arg(&*HOST)
        .arg(backend())
        .arg(mode)
        .arg(count.to_string())
        .finish()
}

fn alone(mode: &str, count: u32) -> Output {
    Command::new(&*HOST).arg(backend()).arg(mode).arg(count.to_string()).output().unwrap()
}

/// What the program printed, and the document on the line after it.
fn split(stdout: &[u8]) -> (String, Value) {
    let stdout = std::str::from_utf8(stdout).unwrap();
    let at = stdout.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
    (stdout[..at].to_owned(), serde_json::from_str(&stdout[at..]).unwrap())
}

fn ids(findings: &Value) -> Vec<&str> {
    findings.as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap()).collect()
}

#[test]
fn a_program_runs_as_it_does_alone_and_its_graph_is_told_like_a_run() {
    let done = tapped("--json --detail-every 50", "plain", 200).expect(0);
    let (own, document) = split(&done.stdout);
    let without = alone("plain", 200);
    assert_eq!(own.as_bytes(), without.stdout, "its output is unchanged");
    assert_eq!(done.stderr, String::from_utf8(without.stderr).unwrap(), "and so are its errors");
    fits(&schema::read("tap.schema.json"), &document);
    assert_eq!(document["exit"], json!({"status": 0, "signal": null}));
    assert_eq!((&document["loaded"], &document["lost"]), (&json!(1), &json!(0)));
    let process = &document["processes"][0];
    assert_eq!(process["end"], "orderly");
    let graph = &process["graphs"][0];
    assert_eq!((&graph["origin"], &graph["executions"], &graph["made"]), (&json!("composed"), &json!(200), &json!(1)));
    assert_eq!((&graph["backend"], &graph["driver"], &graph["status"]), (&json!("cpu"), &json!("tap"), &json!("ok")));
    let detailed = graph["profiling"]["iterations"].as_u64().unwrap();
    assert!((3..=4).contains(&detailed), "every fiftieth: {detailed}");
    assert_eq!(graph["latency_us"]["samples"], 200 - 1 - detailed);
    let ops: Vec<&str> = graph["ops"].as_array().unwrap().iter().map(|op| op["name"].as_str().unwrap()).collect();
    assert_eq!(ops, ["add_0", "add_1", "add_2", "relu"]);
    assert!(graph["ops"].as_array().unwrap().iter().any(|op| op["time_us"]["mean"].as_f64().is_some()));
    assert!(graph["stages_us"]["compose"].as_f64().unwrap() > 0.0 && graph["stages_us"]["finalize"].is_number());
    assert_eq!(graph["between_us"]["count"], 199);
    let share = &process["time_share"];
    let sum: f64 = ["qnn", "between_graphs", "program"].iter().map(|part| share[part].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{share}");
    as_a_run(&document);
}

/// Without the fields that only the tap has, a graph is a run of `qnnscope.result/1`.
fn as_a_run(document: &Value) {
    const OWN: [&str; 14] = [
        "name",
        "origin",
        "context",
        "made",
        "executions",
        "failed_executions",
        "asynchronous_executions",
        "copied_executions",
        "copied_input_bytes",
        "between_us",
        "within_inference_us",
        "alone_mean_us",
        "overlapped",
        "overlapped_mean_us",
    ];
    let mut run = document["processes"][0]["graphs"][0].clone();
    let object = run.as_object_mut().unwrap();
    for own in OWN {
        object.remove(own).unwrap_or_else(|| panic!("{own}"));
    }
    let whole = json!({
        "schema": "qnnscope.result/1", "tool": document["tool"], "started_at": document["started_at"], "model": null,
        "seed": null, "host_counters": document["host_counters"], "device_counters": document["device_counters"],
        "runs": [run], "interleaved": [], "cadence": [], "recommendation": null,
    });
    fits(&schema::read("result.schema.json"), &whole);
}

#[test]
fn a_context_binary_is_told_as_inspect_tells_it() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own.bin");
    let done = Qnnscope::without_runtime()
        .env("HOST_BINARY", &own)
        .env("LD_LIBRARY_PATH", runtime_247())
        .flags("tap --json --")
        .arg(&*HOST)
        .arg(runtime_247().join("libQnnHtp.so"))
        .flags("binary 3")
        .finish()
        .expect(0);
    let (_, document) = split(&done.stdout);
    fits(&schema::read("tap.schema.json"), &document);
    let inspected =
        Qnnscope::without_runtime().arg("--runtime").arg(runtime_247()).arg("inspect").arg(&own).arg("--json");
    let inspected = inspected.finish().expect(0).json();
    let contexts = document["processes"][0]["contexts"].as_array().unwrap();
    let [composed, loaded] = &contexts[..] else { panic!("{contexts:#?}") };
    assert_eq!((&composed["origin"], &composed["binary"]), (&json!("composed"), &json!(null)));
    assert_eq!((&loaded["origin"], &loaded["binary_bytes"]), (&json!("binary"), &inspected["bytes"]));
    let binary = &loaded["binary"];
    assert_eq!((&binary["sha256"], &binary["info"]), (&inspected["sha256"], &inspected["context_binary"]));
    let graph = &binary["info"]["graphs"][0];
    assert_eq!((&graph["name"], &graph["inputs"][0]["shape"]), (&json!("kept"), &json!([1, 8, 8, 16])));
    assert!(graph["vtcm_bytes"].as_u64().unwrap() > 0, "{graph}");
    assert_eq!(binary["read_by"].as_str().map(Path::new), Some(runtime_247().as_path()));

    // A binary that no system library reads is reported as such, in words; the copies of both are gone.
    let fake = compiled(&repo("tests/support/tap_backend.c"), "libtap_backend.so", &["-shared", "-fPIC", "-lpthread"]);
    let done = Qnnscope::without_runtime()
        .arg("--runtime")
        .arg(runtime_247())
        .env("TMPDIR", dir.path())
        .flags("tap --headless --")
        .arg(&*HOST)
        .arg(fake)
        .flags("list 2")
        .finish()
        .expect(0);
    let text = done.text();
    assert!(text.contains("binary     100 B loaded in") && text.contains("with others"), "{text}");
    assert_eq!(text.matches("not read: ").count(), 2, "{text}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["own.bin"]);
}

#[test]
fn it_ends_as_the_program_ends() {
    for (mode, status, signal, name) in [
        ("exit7", Some(7), None, None),
        ("crash", None, Some(11), Some("SIGSEGV")),
        ("kill", None, Some(9), Some("SIGKILL")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tap.json");
        let mut command = Command::new(env!("CARGO_BIN_EXE_qnnscope"));
        command.args(["tap", "--headless"]).arg(format!("--json={}", file.display())).arg("--");
        let output = command.arg(&*HOST).arg(backend()).args([mode, "50"]).output().unwrap();
        let without = alone(mode, 50);
        assert_eq!((output.status.code(), output.status.signal()), (status, signal), "{mode}");
        assert_eq!(output.status, without.status, "{mode}");
        assert_eq!(output.stdout, without.stdout, "{mode}: the document went to its file");
        let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        fits(&schema::read("tap.schema.json"), &document);
        assert_eq!(document["exit"], json!({"status": status, "signal": name}));
        assert_eq!(document["processes"][0]["graphs"][0]["executions"], 50, "{mode}: what was executed is there");
    }
}

#[test]
fn forks_and_children_are_processes_of_their_own() {
    let done = tapped("--json", "children", 3).expect(0);
    let (_, document) = split(&done.stdout);
    let processes = document["processes"].as_array().unwrap();
    let with_graphs = processes.iter().filter(|process| !process["graphs"].as_array().unwrap().is_empty()).count();
    assert!(with_graphs >= 3, "{processes:#?}");
    let pids: std::collections::BTreeSet<u64> =
        processes.iter().map(|process| process["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids.len(), processes.len());
}

#[test]
fn a_program_that_closes_the_taps_descriptor_is_told_of_to_the_end_or_that_it_is_not() {
    // Once, with files of the program's own under all numbers: a new connection continues where the previous
    // one ended.
    let (own, document) = split(&tapped("--json --detail-every 0", "closefds", 200).expect(0).stdout);
    assert!(own.contains("file 0 bytes"), "{own}");
    let processes = document["processes"].as_array().unwrap();
    let [process] = &processes[..] else { panic!("{processes:#?}") };
    assert_eq!((&process["end"], &process["graphs"][0]["executions"]), (&json!("orderly"), &json!(200)));
    assert_eq!((&process["lost"], &document["lost"]), (&json!(0), &json!(0)), "{process:#}");
    assert!(process["notes"][0].as_str().unwrap().contains("opened again"), "{}", process["notes"]);

    // Again and again: it gives up after the fourth time, and reports what is missing.
    let (own, document) = split(&tapped("--json --detail-every 0", "closeagain", 12).expect(0).stdout);
    assert_eq!(own.as_bytes(), alone("closeagain", 12).stdout);
    let process = &document["processes"][0];
    let executions = process["graphs"][0]["executions"].as_u64().unwrap();
    assert!((30..120).contains(&executions), "{executions}");
    assert_eq!(process["end"], "cut_off");
    assert!(process["lost"].as_u64().unwrap() >= 1);
    let lost = process["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == "tap.lost").unwrap();
    assert!(lost.to_string().contains("closing the tap's connection"), "{lost:#}");
}

#[test]
fn what_a_program_does_again_and_again_or_at_once_is_found() {
    let (_, document) = split(&tapped("--json", "contexts", 30).expect(0).stdout);
    let process = &document["processes"][0];
    assert_eq!((&process["graphs"][0]["made"], &process["graphs"][0]["executions"]), (&json!(30), &json!(30)));
    assert!(ids(&process["findings"]).contains(&"tap.remade"), "{}", process["findings"]);

    let (_, document) = split(&tapped("--json --detail-every 0", "threads", 40).expect(0).stdout);
    let process = &document["processes"][0];
    let graphs = process["graphs"].as_array().unwrap();
    assert_eq!(graphs.len(), 4);
    let executions: u64 = graphs.iter().map(|graph| graph["executions"].as_u64().unwrap()).sum();
    assert_eq!(executions, 16 * 40);
    assert!(graphs.iter().all(|graph| graph["profiling"]["iterations"] == 0));

    let (_, document) = split(&tapped("--json", "refuse", 1).expect(0).stdout);
    let process = &document["processes"][0];
    assert_eq!(process["refused"], 1, "{process:#}");
    assert!(ids(&process["findings"]).contains(&"tap.refused-ops"));
    assert!(ids(&process["findings"]).contains(&"tap.not-executed"));

    let (_, document) = split(&tapped("--json", "profile", 30).expect(0).stdout);
    let graph = &document["processes"][0]["graphs"][0];
    assert_eq!(graph["profiling"]["clean_level"], "basic", "the program's own profiling is in its latencies");
    assert!(ids(&graph["findings"]).contains(&"tap.host-profiled"));
    assert!(graph["latency_us"]["samples"].as_u64().unwrap() >= 20);
}

#[test]
fn two_backends_at_once_are_two_preloaded_or_in_their_places() {
    let real = tempfile::tempdir().unwrap();
    let fake = compiled(&repo("tests/support/tap_backend.c"), "fake_gpu", &["-shared", "-fPIC", "-lpthread"]);
    std::fs::copy(fake, real.path().join("libQnnGpu.so")).unwrap();
    for entry in std::fs::read_dir(runtime_247()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name == "libQnnCpu.so" || name.starts_with("libc++") || name.starts_with("libunwind") {
            std::fs::copy(entry.path(), real.path().join(name)).unwrap();
        }
    }
    let second = |path: &Path| {
        Command::new(&*HOST)
            .arg(path.join("libQnnCpu.so"))
            .args(["two", "30"])
            .env("HOST_SECOND", path.join("libQnnGpu.so"))
            .output()
            .unwrap()
    };
    let alone = second(real.path());
    assert!(alone.status.success(), "{alone:?}");
    for (swap, folder) in [(None, real.path()), (Some(real.path()), Path::new(""))] {
        let call = Qnnscope::without_runtime()
            .env("HOST_SECOND", folder.join("libQnnGpu.so"))
            .flags("tap --json --detail-every 0");
        let call = if let Some(real) = swap { call.arg("--swap").arg(real) } else { call };
        let done = call.arg("--").arg(&*HOST).arg(folder.join("libQnnCpu.so")).flags("two 30").finish().expect(0);
        let (own, document) = split(&done.stdout);
        assert_eq!(own.as_bytes(), alone.stdout, "swapped: {}", swap.is_some());
        let processes = document["processes"].as_array().unwrap();
        let mut executed = 0;
        let mut libraries = Vec::new();
        for process in processes {
            executed += process["not_followed_executions"].as_u64().unwrap();
            executed += process["graphs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|graph| graph["executions"].as_u64().unwrap())
                .sum::<u64>();
            libraries.extend(
                process["backends"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|backend| backend["library"].as_str().unwrap().to_owned()),
            );
        }
        libraries.sort();
        let expected = ["libQnnCpu.so", "libQnnGpu.so"].map(|name| real.path().join(name).to_str().unwrap().to_owned());
        assert_eq!((executed, libraries), (60, expected.to_vec()), "swapped: {}", swap.is_some());
    }
}

#[test]
fn a_program_that_is_not_reached_runs_on_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("hello.c");
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 5; }\n").unwrap();
    let program = compiled(&source, "static", &["-static"]);
    let done = Qnnscope::without_runtime().flags("tap --json --").arg(&program).finish().expect(5);
    let (own, document) = split(&done.stdout);
    assert_eq!(own, "hello\n");
    assert!(done.stderr.contains("is statically linked"), "{}", done.stderr);
    assert_eq!(ids(&document["findings"]), ["tap.not-reached"]);
    fits(&schema::read("tap.schema.json"), &document);

    // A program without QNN is reached, and reported to have none.
    let done = Qnnscope::without_runtime().flags("tap --json -- sh -c").arg("echo out; echo err >&2; exit 3").finish();
    let done = done.expect(3);
    let (own, document) = split(&done.stdout);
    assert_eq!((own.as_str(), done.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!(ids(&document["findings"]), ["tap.no-qnn"]);
    let text = Qnnscope::without_runtime().flags("tap --headless -- sh -c").arg("exit 0").finish().expect(0).text();
    assert!(text.contains("exit status 0") && text.contains("no process of the program used QNN"), "{text}");
}

#[test]
fn a_program_that_removes_the_taps_folder_is_not_told_to_have_no_qnn() {
    let clears = format!(
        "rm -rf \"$(dirname \"${{QNNSCOPE_TAP#unix:}}\")\"; exec {} {} plain 50",
        HOST.display(),
        backend().display()
    );
    let done = Qnnscope::without_runtime().flags("tap --json -- sh -c").arg(&clears).finish().expect(0);
    let (own, document) = split(&done.stdout);
    assert_eq!(own.as_bytes(), alone("plain", 50).stdout, "it runs as it does alone");
    assert_eq!(ids(&document["findings"]), ["tap.not-reached"], "{document:#}");
    let evidence = document["findings"][0]["evidence"].to_string();
    assert!(evidence.contains("was removed, by the program"), "{evidence}");
    // Nor is one that goes into the background reported to have none. The tap has to be in it by the time the
    // program ends.
    let stays = "setsid sleep 6 >/dev/null 2>&1 & until grep -q qnnscope_tap /proc/$!/maps; do sleep 0.05; done; sleep 0.3; exit 0";
    let done = Qnnscope::without_runtime().flags("tap --json -- sh -c").arg(stays).finish().expect(0);
    let (_, document) = split(&done.stdout);
    assert_eq!(ids(&document["findings"]), ["tap.not-reached"], "{document:#}");
    assert!(document["findings"][0]["evidence"].to_string().contains("outlives the program"), "{document:#}");
    // What was connected before is followed to its end.
    let later = format!(
        "{} {} plain 50; rm -rf \"$(dirname \"${{QNNSCOPE_TAP#unix:}}\")\"",
        HOST.display(),
        backend().display()
    );
    let done = Qnnscope::without_runtime().flags("tap --json -- sh -c").arg(&later).finish().expect(0);
    let (_, document) = split(&done.stdout);
    assert_eq!(document["processes"][0]["graphs"][0]["executions"], 50, "{document:#}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_started() {
    for (arguments, status, words) in [
        ("tap", 2, "which program?"),
        ("tap --detail-every often -- true", 2, "expected auto, 0 or a number"),
        ("tap --tap-library /nowhere.so -- true", 3, "no tap library at /nowhere.so"),
        ("tap --swap /proc -- true", 3, "has none of libQnnHtp.so"),
        ("tap --headless -- /nowhere/program", 3, "cannot start /nowhere/program"),
        ("tap --device abc", 2, "/data/local/tmp/my_app ARGS"),
        ("tap --device abc --pid-file /tmp/x -- true", 2, "programs on this machine"),
        ("tap --env A=1 -- true", 2, "--env is for programs on a device"),
        ("tap --package com.example.app", 2, "--package is for programs on a device"),
        ("tap --device abc --package app;reboot", 2, "not the name of an app"),
    ] {
        let done = Qnnscope::without_runtime().flags(arguments).finish().expect(status);
        assert!(done.stderr.contains(words), "{arguments}: {}", done.stderr);
    }
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes");
    std::fs::write(&notes, "mine").unwrap();
    for option in ["--record", "--pid-file"] {
        let call = Qnnscope::without_runtime().flags("tap --headless").arg(option).arg(&notes).flags("-- true");
        assert!(call.finish().expect(2).stderr.contains("exists already"), "{option}");
    }
    let json = format!("--json={}", notes.display());
    assert!(
        Qnnscope::without_runtime().arg("tap").arg(json).flags("-- true").finish().expect(2).stderr.contains("--force")
    );
    assert_eq!(std::fs::read(&notes).unwrap(), b"mine");
}

#[test]
fn a_signal_goes_to_the_program_which_decides() {
    let script = "trap 'echo asked; exit 9' TERM; echo ready >&2; while :; do sleep 0.05; done";
    let mut running = Qnnscope::without_runtime().flags("tap --json -- sh -c").arg(script).start();
    running.until_said("ready");
    running.signal(Signal::TERM);
    let done = running.wait().expect(9);
    assert!(done.text().starts_with("asked\n{"), "{}", done.text());
}

/// Sends these lines to the socket, as one process.
fn say(socket: &Path, lines: &[u8]) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(lines).unwrap();
}

#[test]
fn programs_that_are_started_elsewhere_are_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let (socket, pid_file) = (dir.path().join("tap.sock"), dir.path().join("pid"));
    let mut running = Qnnscope::without_runtime()
        .arg("tap")
        .arg("--listen")
        .arg(&socket)
        .arg("--pid-file")
        .arg(&pid_file)
        .arg("--json")
        .start();
    running.until_said("LD_PRELOAD");
    assert_eq!(std::fs::read_to_string(&pid_file).unwrap().trim(), running.pid().to_string());
    let library = Path::new(env!("CARGO_BIN_EXE_qnnscope")).with_file_name("deps").join("libqnnscope_tap.so");
    let status = Command::new(&*HOST)
        .arg(backend())
        .args(["plain", "30"])
        .env("LD_PRELOAD", library)
        .env("QNNSCOPE_TAP", format!("unix:{}", socket.display()))
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    // Others send whatever they like: a newer tap, garbage, a process that is cut off in the middle of a
    // word.
    say(&socket, &std::fs::read(repo("tests/data/fuzz/tap_stream/newer.jsonl")).unwrap());
    say(&socket, b"\xff\xfe\n{}\n[1,2]\n");
    say(&socket, &std::fs::read(repo("tests/data/fuzz/tap_stream/cut-off.jsonl")).unwrap());
    say(&socket, &std::fs::read(repo("tests/data/fuzz/tap_stream/out-of-order.jsonl")).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.signal(Signal::INT);
    let done = running.wait().expect(0);
    let document: Value = done.json();
    fits(&schema::read("tap.schema.json"), &document);
    assert!(document["not_reached"][0].as_str().unwrap().contains("protocol 2"), "{}", document["not_reached"]);
    let processes = document["processes"].as_array().unwrap();
    let executed = |process: &Value| process["graphs"][0]["executions"].as_u64();
    assert!(processes.iter().any(|process| executed(process) == Some(30)));
    let cut = processes.iter().find(|process| process["pid"] == 50 && process["end"] == "cut_off").unwrap();
    assert!(ids(&cut["findings"]).contains(&"tap.cut-off"));
    assert!(document["lost"].as_u64().unwrap() >= 4, "garbage is counted: {}", document["lost"]);
    assert!(!socket.exists() && !pid_file.exists(), "nothing is left behind");
}

/// Op times in a session file, in order.
fn op_times(session: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(session).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter_map(|record| record["event"].get("op_times").map(|times| times["values"].clone())).collect()
}

fn rows(session: &Path) -> Value {
    let text = std::fs::read_to_string(session).unwrap();
    let mut records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.find_map(|record| record["event"].get("ops_declared").cloned()).unwrap()
}

#[test]
fn op_times_are_those_that_a_run_has_of_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    Qnnscope::without_runtime()
        .arg("tap")
        .arg(format!("--json={}", at("tap.json").display()))
        .arg("--record")
        .arg(at("tap.jsonl"))
        .flags("--detail-every 1 --")
        .arg(env!("CARGO_BIN_EXE_qnnscope"))
        .arg("--runtime")
        .arg(runtime_247())
        .flags("--no-sandbox run")
        .arg(demo_int8())
        .flags("-b cpu -n 10 --warmup 0 --profiling-iterations 8 --launches 1 --headless --record")
        .arg(at("run.jsonl"))
        .finish()
        .expect(0);
    let (own, seen) = (op_times(&at("run.jsonl")), op_times(&at("tap.jsonl")));
    assert_eq!(own.len(), 8);
    let mut rest = seen.iter();
    for values in &own {
        assert!(rest.any(|other| other == values), "the tap has the run's values, in the run's order");
    }
    assert_eq!(rows(&at("run.jsonl")), rows(&at("tap.jsonl")));
    // Documents and sessions of a tap can be compared like those of runs.
    let compared =
        |other: &str| Qnnscope::without_runtime().arg("compare").arg(at("run.jsonl")).arg(at(other)).finish();
    let mut told = Vec::new();
    for other in ["tap.json", "tap.jsonl"] {
        let text = compared(other).expect(0).text();
        assert!(text.contains("is your program"), "{text}");
        // What happens around the executions, as the tap saw it; the same from both files.
        let around =
            text.split_once("\naround 2, in its program\n").map(|(_, rest)| rest.split("\n\n").next().unwrap());
        let around = around.unwrap_or_else(|| panic!("{text}")).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(around.contains("inside QNN") && around.contains("pass between executions"), "{around}");
        assert!(around.contains("12.0 KiB of inputs are copied at each execution"), "{around}");
        told.push(around);
    }
    assert_eq!(told[0], told[1]);
}

/// The program with the live view, on its own terminal.
struct Terminal {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    screen: std::sync::Arc<std::sync::Mutex<vt100::Parser>>,
    _master: Box<dyn portable_pty::MasterPty + Send>,
    _home: tempfile::TempDir,
}

fn size(cells: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(cells).unwrap()
}

impl Terminal {
    fn start(arguments: &[&std::ffi::OsStr]) -> Self {
        use portable_pty::{CommandBuilder, PtySize, native_pty_system};
        use std::io::Read;
        let pair =
            native_pty_system().openpty(PtySize { rows: 40, cols: 120, pixel_width: 0, pixel_height: 0 }).unwrap();
        let home = tempfile::tempdir().unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_qnnscope"));
        command.args(arguments);
        command.cwd(home.path());
        command.env("TERM", "xterm-256color");
        command.env("QNNSCOPE_DATA_DIR", home.path());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let screen = std::sync::Arc::new(std::sync::Mutex::new(vt100::Parser::new(size(40), size(120), 0)));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let sink = screen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0u8; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                sink.lock().unwrap().process(&buffer[..count]);
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Self { child, writer, screen, _master: pair.master, _home: home }
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    #[track_caller]
    fn until(&mut self, text: &str) {
        let begun = std::time::Instant::now();
        while !self.text().contains(text) {
            assert!(begun.elapsed().as_secs() < 60, "no {text:?} in:\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn press(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    fn status(&mut self) -> u32 {
        let begun = std::time::Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            assert!(begun.elapsed().as_secs() < 60, "it does not end:\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn the_live_view_has_the_layers_and_what_the_program_prints() {
    use std::ffi::OsStr;
    let script =
        "echo hello from the app; echo and its errors >&2; \"$@\"; trap 'exit 4' INT; while :; do sleep 0.05; done";
    let backend = backend();
    let words = ["tap", "--detail-every", "50", "--", "sh", "-c", script, "sh"].map(OsStr::new);
    let more = [HOST.as_os_str(), backend.as_os_str(), OsStr::new("plain"), OsStr::new("2000")];
    let arguments: Vec<&OsStr> = words.into_iter().chain(more).collect();
    let mut terminal = Terminal::start(&arguments);
    terminal.until("add_0");
    terminal.until("hello from the app");
    terminal.press("u");
    terminal.until("printed");
    terminal.until("and its errors");
    terminal.until("inside QNN");
    // Leaving interrupts the program first, which ends in its own way; qnnscope then exits with the same
    // status.
    terminal.press("q");
    terminal.press("q");
    assert_eq!(terminal.status(), 4);
}

#[test]
fn a_pid_file_is_removed_only_while_it_is_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let tap =
        || Qnnscope::without_runtime().args(["tap", "--headless", "--no-history", "--pid-file"]).arg(&file).arg("--");
    // A bare number does not show whose it is: the file stays, and the tap does not start.
    std::fs::write(&file, "4242").unwrap();
    let done = tap().arg("true").finish().expect(2);
    assert!(done.stderr.contains("--pid-file"), "{}", done.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "4242");
    // What the program puts in its place stays.
    std::fs::remove_file(&file).unwrap();
    tap().args(["sh", "-c", "echo mine > \"$0\""]).arg(&file).finish();
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), "mine\n");
}

#[test]
fn what_the_command_reads_and_prints_to_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("app.sh");
    std::fs::write(&script, "echo precious\n").unwrap();
    for option in ["--json=", "--record="] {
        let flag = format!("{option}{}", script.display());
        let done =
            Qnnscope::without_runtime().args(["tap", "--headless", "--force", &flag, "--", "sh"]).arg(&script).finish();
        assert!(done.expect(2).stderr.contains("would overwrite the command's file"));
        assert_eq!(std::fs::read_to_string(&script).unwrap(), "echo precious\n");
    }
    let out = dir.path().join("out");
    let shell = "exec \"$0\" tap --headless --json=\"$1\" -- echo precious > \"$1\"";
    let done = Qnnscope::program(Path::new("/bin/sh"))
        .args(["-c", shell, env!("CARGO_BIN_EXE_qnnscope")])
        .arg(&out)
        .finish()
        .expect(2);
    assert!(done.stderr.contains("standard output"), "{}", done.stderr);
}
