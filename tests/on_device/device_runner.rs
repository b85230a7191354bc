//! Runs on a device with qnnscope's own runner: the real adb server, the real libraries, the real program as
//! the runner.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::device::{Bench, Recorded, Recording};
use crate::support::virtual_device::{Options, Snapshot, VirtualDevice};
use crate::support::{Qnnscope, demo_float, demo_int8, max_difference, model_library, number, read_f32, runtime_247};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_qnnscope"))
}

/// A device with this machine's processor, so that it can execute what is built here.
pub fn bench() -> Bench {
    bench_with(Options::default())
}

fn bench_with(options: Options) -> Bench {
    let bench = Bench::with(Snapshot::Sm8650User, options);
    bench.device.set_property("ro.product.cpu.abi", b"x86_64");
    bench
}

fn start(bench: &Bench, model: &Path, flags: &str) -> Recording {
    bench.start(model, &format!("--runner {} {flags}", program().display()))
}

fn run(bench: &Bench, model: &Path, flags: &str) -> Recorded {
    start(bench, model, flags).wait()
}

/// A call of the program on the device, with the runner.
pub fn call(bench: &Bench) -> Qnnscope {
    bench.on_device().arg("--runner").arg(program())
}

/// Runners left on the device, and the processes that follow their console.
pub fn left(bench: &Bench, device: &VirtualDevice) -> String {
    let script = "for p in /proc/[0-9]*; do c=$(cat $p/cmdline 2>/dev/null | tr '\\0' ' '); case $c in \
                  *__runner*|*console.txt*) case $c in *cmdline*) ;; *) echo \"$c\";; esac;; esac; done";
    let output = bench.server.on(device, ["shell", script]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
pub fn nothing_is_left(bench: &Bench) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !left(bench, &bench.device).is_empty() {
        assert!(Instant::now() < deadline, "{}", left(bench, &bench.device));
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[track_caller]
fn ok(run: &Recorded) -> Value {
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    let result = run.result();
    assert_eq!(result["status"], "ok");
    result
}

#[test]
fn a_run_on_the_device_gives_what_a_run_here_gives() {
    let bench = bench();
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let flags = |folder: &Path| format!("-b cpu -n 20 --warmup 2 --save-outputs {}", folder.display());
    let run = run(&bench, &demo_float(), &flags(there.path()));
    let result = ok(&run);
    assert_eq!((&result["device"]["id"], &result["device"]["soc"]), (&json!(bench.device.serial()), &json!("SM8650")));
    assert_eq!(run.all("run_started")[0]["driver"], "device_runner");
    assert_eq!((&result["latency_us"]["samples"], &result["simulated"]), (&json!(20), &json!(false)));
    let local = Qnnscope::on(&runtime_247()).run_json(&demo_float(), &flags(here.path())).expect(0).first_run();
    let names = |result: &Value| -> Vec<(Value, Value)> {
        result["ops"].as_array().unwrap().iter().map(|op| (op["name"].clone(), op["type"].clone())).collect()
    };
    assert_eq!(names(&result), names(&local));
    // The stages and figures that only a runner reports.
    for stage in ["library_load", "backend_create", "compose", "finalize", "first_inference"] {
        assert!(number(&result["stages_us"][stage]) > 0.0, "{stage}");
    }
    assert!(number(&result["memory_bytes"]["rss_peak"]) > 0.0, "{:#}", result["memory_bytes"]);
    assert_eq!(run.all("model_identified")[0]["path"], demo_float().to_str().unwrap(), "the user's name");
    for file in ["Result_0/probabilities.raw", "Result_0/probabilities.npy"] {
        let (a, b) = (std::fs::read(there.path().join(file)).unwrap(), std::fs::read(here.path().join(file)).unwrap());
        assert_eq!(a.len(), b.len(), "{file}");
    }
    let raw = "Result_0/probabilities.raw";
    assert_eq!(max_difference(&read_f32(&there.path().join(raw)), &read_f32(&here.path().join(raw))), 0.0);
    let saved = run.all("outputs_saved");
    assert_eq!(saved.len(), 1);
    let files = saved[0]["files"].as_array().unwrap();
    assert!(files.iter().all(|file| file.as_str().unwrap().starts_with(there.path().to_str().unwrap())), "{files:?}");
    nothing_is_left(&bench);
    assert!(!bench.shell("ls /data/local/tmp/qnnscope").contains("run-"), "folders of runs are removed");
}

#[test]
fn an_onnx_model_is_converted_here_and_runs_there() {
    let packages = crate::support::python_packages("onnxruntime-qnn-2.3.0", "onnxruntime");
    let bench = bench();
    let call = || call(&bench).env("QNNSCOPE_ONNXRUNTIME", &packages).arg("run");
    let done =
        call().arg(crate::support::repo("tests/data/onnx/whole.onnx")).flags("-b cpu -n 5 --json").finish().expect(0);
    assert!(done.stderr.contains("converting it to a DLC here"), "{}", done.stderr);
    let document = done.json();
    let run = &document["runs"][0];
    assert_eq!((&run["driver"], &document["model"]["format"]), (&json!("device_runner"), &json!("dlc")));
    assert_eq!(run["device"]["id"], bench.device.serial());
    // Part of a model is not the model.
    let refused =
        call().arg(crate::support::repo("tests/data/onnx/split.onnx")).flags("-b cpu -n 5 --json").finish().expect(1);
    assert!(refused.stderr.contains("hardmax_mid"), "{}", refused.stderr);
}

#[test]
fn launches_are_processes_on_the_device() {
    let bench = bench();
    let run = run(&bench, &demo_float(), "-b cpu --launches 2 -n 10 --profiling-iterations 4 --warmup 1");
    let result = ok(&run);
    let launches = result["latency_us"]["launches"].as_array().unwrap();
    assert_eq!(launches.iter().map(|launch| &launch["samples"]).collect::<Vec<_>>(), [&json!(5), &json!(5)]);
    assert!(launches.iter().all(|launch| number(&launch["load_us"]) > 0.0), "{launches:?}");
    assert_eq!((run.all("launch_started").len(), run.all("run_finished").len()), (2, 1));
    assert_eq!(result["profiling"]["iterations"], 4);
    nothing_is_left(&bench);
    assert!(!bench.shell("ls /data/local/tmp/qnnscope").contains("run-"), "folders of launches are removed");
}

#[test]
fn the_htp_of_this_processor_is_only_simulated() {
    let bench = bench();
    let run = run(&bench, &demo_int8(), "-b htp -n 6 --warmup 1 --perf-profile burst --vtcm-mb 4");
    let result = ok(&run);
    assert_eq!(result["simulated"], true);
    let layers = result["ops"].as_array().unwrap();
    assert!(layers.iter().any(|layer| layer["cycles"]["mean"].is_number()), "{:#}", layers[0]);
    // What the library prints arrives on a separate channel.
    let console: Vec<&Value> = run.all("log").into_iter().filter(|line| line["source"] == "console").collect();
    assert!(console.iter().any(|line| line["text"].as_str().unwrap().contains("bytes=")), "{console:#?}");
    assert!(!run.logged("not a frame"), "{:#?}", run.log());
    let settings: Vec<&str> =
        run.all("setting_applied").iter().map(|setting| setting["key"].as_str().unwrap()).collect();
    for key in ["--perf-profile", "--vtcm-mb", "nice"] {
        assert!(settings.contains(&key), "{key}: {settings:?}");
    }
}

#[test]
fn inferences_stream_while_they_are_made_and_lie_on_the_hosts_axis() {
    let bench = bench();
    let begun = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let recording = start(&bench, &demo_int8(), "-b cpu --duration 6s --warmup 0 --profiling basic");
    measured(&recording);
    let count = || recording.events().iter().filter(|event| event.get("inferences").is_some()).count();
    let first = count();
    std::thread::sleep(Duration::from_secs(2));
    let later = count();
    assert!(later >= first + 3, "{first} batches, and {later} two seconds later");
    let run = recording.wait();
    ok(&run);
    assert!(!run.done.json()["device_counters"].as_array().unwrap().is_empty(), "counters are sampled beside the run");
    let ended = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let us = |time: rustix::time::Timespec| time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000;
    let starts = run.starts_us();
    assert!(starts.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(us(begun) < starts[0] && *starts.last().unwrap() < us(ended), "{} .. {}", us(begun), us(ended));
}

#[test]
fn a_second_run_sends_nothing_and_clean_removes_all_of_ours() {
    let bench = bench();
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("it's $(an) input.raw");
    let inspected = Qnnscope::on(&runtime_247()).args(["inspect", "--json"]).arg(demo_int8()).finish().expect(0).json();
    let tensor = &inspected["graphs"][0]["inputs"][0];
    let elements: u64 = tensor["shape"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).product();
    std::fs::write(&input, crate::support::f32_bytes(&vec![0.5; elements as usize])).unwrap();
    let given = format!("{}={}", tensor["name"].as_str().unwrap(), input.display());
    let sent = || {
        let call = call(&bench);
        let session = call.home().join("session.jsonl");
        let call =
            call.arg("run").arg(demo_int8()).arg("--json").arg("--record").arg(&session).arg("--input").arg(&given);
        let done = call.flags("-b cpu -n 3 --warmup 0 --profiling basic").finish().expect(0);
        let text = std::fs::read_to_string(&session).unwrap();
        let events: Vec<Value> =
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone()).collect();
        let recorded = Recorded { done, events, session };
        let source = &recorded.all("inputs_prepared")[0]["inputs"][0]["source"];
        assert_eq!(source, input.to_str().unwrap(), "the user's name of the file");
        let log = recorded.log();
        let line = log.iter().find(|line| line.starts_with("sent ")).unwrap_or_else(|| panic!("{log:#?}")).clone();
        (line, recorded.all("files_sent").len())
    };
    let (first, progress) = sent();
    assert!(!first.starts_with("sent 0 files") && progress > 0, "{first}");
    let (second, progress) = sent();
    assert!(second.starts_with("sent 0 files (0 bytes)") && progress == 0, "{second}");
    assert_eq!(bench.on_device().arg("clean").finish().code(), 0);
    assert_eq!(bench.shell("ls /data/local/tmp").trim(), "");
}

#[test]
fn an_input_list_and_saved_results_reach_the_device_and_come_back() {
    let bench = bench();
    let folder = tempfile::tempdir().unwrap();
    let inspected = Qnnscope::on(&runtime_247()).args(["inspect", "--json"]).arg(demo_int8()).finish().expect(0).json();
    let shape = &inspected["graphs"][0]["inputs"][0]["shape"];
    let elements: u64 = shape.as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).product();
    let mut list = "# two inferences\n".to_owned();
    for value in [0.25, 0.75] {
        let file = folder.path().join(format!("{value}.raw"));
        std::fs::write(&file, crate::support::f32_bytes(&vec![value; elements as usize])).unwrap();
        list += &format!("{}\n", file.display());
    }
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("list.txt"), list).unwrap();
    let flags = |place: &str| {
        format!(
            "-b htp -n 4 --warmup 0 --input-list {} --save-outputs {} --save-context {} --save-profile-log {}",
            path("list.txt").display(),
            path(place).display(),
            path(&format!("{place}.bin")).display(),
            path(&format!("{place}.log")).display()
        )
    };
    let run = run(&bench, &demo_int8(), &flags("there"));
    ok(&run);
    Qnnscope::on(&runtime_247()).run_json(&demo_int8(), &flags("here")).expect(0);
    for result in ["Result_0", "Result_1"] {
        let file = |place: &str| path(place).join(result).join("probabilities.raw");
        assert_eq!(std::fs::read(file("there")).unwrap(), std::fs::read(file("here")).unwrap(), "{result}");
    }
    assert_ne!(
        std::fs::read(path("there/Result_0/probabilities.raw")).unwrap(),
        std::fs::read(path("there/Result_1/probabilities.raw")).unwrap()
    );
    // A context compiled on the device runs on this machine.
    let context = Qnnscope::on(&runtime_247()).run_json(&path("there.bin"), "-b htp -n 1 --profiling off").expect(0);
    assert_eq!(context.json()["model"]["format"], "context_binary");
    let log = Qnnscope::without_runtime().arg("profile-log").arg(path("there.log")).finish();
    assert_eq!(log.code(), 0, "{}", log.stderr);
    let applied =
        run.all("setting_applied").into_iter().find(|setting| setting["key"] == "--save-profile-log").unwrap();
    assert_eq!((&applied["value"], &applied["outcome"]), (&json!(path("there.log")), &json!("applied")));
}

#[test]
fn inspect_tells_the_same_as_here() {
    let bench = bench();
    let mut there = call(&bench).args(["inspect", "--json"]).arg(demo_float()).finish().expect(0).json();
    let mut here = Qnnscope::on(&runtime_247()).args(["inspect", "--json"]).arg(demo_float()).finish().expect(0).json();
    // How the runner was confined differs between machines.
    let confined = [&mut there, &mut here].map(|document| document.as_object_mut().unwrap().remove("sandbox").unwrap());
    assert_eq!(confined[0]["state"], "off", "{confined:#?}");
    assert_eq!(there, here);
    nothing_is_left(&bench);
    assert!(!bench.shell("ls /data/local/tmp/qnnscope").contains("run-"));
    let without = bench.on_device().args(["inspect", "--json"]).arg(demo_float()).finish();
    assert_eq!(without.code(), 3, "{}", without.stderr);
    for part in ["no runner", "--runner", "cargo ndk", "runners/x86_64-linux-android/qnnscope"] {
        assert!(without.stderr.contains(part), "no `{part}` in {}", without.stderr);
    }
}

fn measured(recording: &Recording) {
    recording.until("inferences", |batch| batch["phase"] == "clean");
}

/// Enough inferences for something to happen in between.
const LONG: &str = "-b cpu --duration 60s --warmup 0 --profiling basic";

#[test]
fn ctrl_c_ends_the_runner_and_keeps_the_figures() {
    let bench = bench();
    let folder = tempfile::tempdir().unwrap();
    let context = folder.path().join("context");
    let recording = start(&bench, &demo_int8(), &format!("{LONG} --save-context {}", context.display()));
    measured(&recording);
    crate::support::send(recording.running.pid(), Signal::INT);
    let begun = Instant::now();
    let run = recording.wait();
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    assert_eq!(run.done.code(), 130, "{}", run.done.stderr);
    let result = run.result();
    assert_eq!((&result["status"], &result["stopped_early"]), (&json!("ok"), &json!(true)));
    assert!(number(&result["latency_us"]["samples"]) > 0.0);
    assert!(number(&result["stages_us"]["teardown"]) > 0.0, "everything was freed in order");
    assert!(std::fs::metadata(&context).unwrap().len() > 0, "what was written before is fetched");
    nothing_is_left(&bench);
}

#[test]
fn kill_9_of_qnnscope_leaves_nothing_running_on_the_device() {
    let bench = bench();
    let recording = start(&bench, &demo_int8(), LONG);
    measured(&recording);
    let there = left(&bench, &bench.device);
    assert!(there.contains("__runner") && there.contains("tail "), "the check below sees them: {there}");
    crate::support::send(recording.running.pid(), Signal::KILL);
    nothing_is_left(&bench);
}

#[test]
fn after_a_lost_link_another_runner_measures_the_rest() {
    let bench = bench();
    let recording = start(&bench, &demo_int8(), "-b cpu --duration 8s --warmup 2 --profiling detailed");
    measured(&recording);
    bench.device.drop_link();
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    assert!(run.logged("waiting up to") && run.logged("is back"), "{:#?}", run.log());
    assert_eq!(run.all("round_started").len(), 1);
    assert_eq!(run.all("graph_composed").len(), 1, "what the first runner told is not told again");
    let result = run.result();
    assert_eq!(result["status"], "ok");
    // One sequence of inferences: none twice, and none missing except those lost with the link.
    let clean: Vec<(u64, usize)> = run
        .all("inferences")
        .iter()
        .filter(|batch| batch["phase"] == "clean")
        .map(|batch| (batch["first_index"].as_u64().unwrap(), batch["latency_ns"].as_array().unwrap().len()))
        .collect();
    let mut next = 0;
    for (first, count) in clean {
        assert_eq!(first, next);
        next += count as u64;
    }
    assert_eq!(result["latency_us"]["samples"], next);
    let around = run.events.iter().position(|event| event.get("round_started").is_some()).unwrap();
    let is_clean = |event: &&serde_json::Value| event["inferences"]["phase"] == "clean";
    assert!(run.events[..around].iter().any(|event| is_clean(&event)), "some were measured before");
    assert!(run.events[around..].iter().any(|event| is_clean(&event)), "and some after");
    let layers = result["ops"].as_array().unwrap();
    assert!(layers.iter().any(|layer| layer["time_us"]["mean"].is_number()), "{:#}", layers[0]);
    nothing_is_left(&bench);
}

#[test]
fn a_paced_run_with_a_profile_log_outlives_its_link() {
    let bench = bench();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("l");
    let flags = format!("-b cpu -n 200 --rate 40 --warmup 1 --profiling off --save-profile-log {}", log.display());
    let recording = start(&bench, &demo_int8(), &flags);
    measured(&recording);
    bench.device.drop_link();
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    assert!(run.logged("is back") && run.logged("the profile log restarts here"), "{:#?}", run.log());
    let result = run.result();
    let pace = &result["pace"];
    let samples = number(&result["latency_us"]["samples"]);
    // Inferences lost with the link are repeated; all those reported were planned.
    assert!(samples >= 200.0, "{pace:#}");
    assert_eq!((number(&pace["done"]), number(&pace["planned"])), (samples, samples), "{pace:#}");
    assert_eq!(run.all("pace_reported").len(), 2);
    let text = Qnnscope::without_runtime().arg("profile-log").arg(&log).finish().expect(0);
    assert!(text.text().contains("Execute"), "{}", text.text());
    nothing_is_left(&bench);
}

#[test]
fn a_link_that_is_lost_while_a_run_is_set_up_is_waited_for() {
    // While it is asked for its time, for our files on it, and (the second time) for a place for files.
    for (part, after) in [("date +%s.%N", 0), ("/objects", 0), ("echo /var/tmp", 1)] {
        let bench = bench();
        bench.device.drop_link_at(part, after);
        let run = run(&bench, &demo_int8(), "-b cpu -n 3 --profiling off");
        assert!(bench.device.dropped_link_at(), "`{part}` was asked: {}\n{:#?}", run.done.stderr, run.log());
        assert_eq!(run.done.code(), 0, "{part}: {}\n{:#?}", run.done.stderr, run.log());
        assert!(run.logged("waiting up to") && run.logged("is back"), "{part}: {:#?}", run.log());
        ok(&run);
        nothing_is_left(&bench);
    }
}

#[test]
fn a_killed_runner_is_told_with_its_signal() {
    let bench = bench();
    let recording = start(&bench, &demo_int8(), LONG);
    measured(&recording);
    let kill = "for p in /proc/[0-9]*; do case $(cat $p/cmdline 2>/dev/null | tr '\\0' ' ') in ./qnnscope-runner*) kill -9 \
                ${p#/proc/} && echo killed;; esac; done";
    assert!(bench.shell(kill).contains("killed"));
    let run = recording.wait();
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let error = &run.result()["error"];
    assert_eq!((&error["call"], &error["stage"]), (&json!("SIGKILL"), &json!("execute")), "{error:#}");
    assert!(!run.logged("not a frame"), "{:#?}", run.log());
}

#[test]
fn a_crash_on_the_device_has_its_last_words() {
    let bench = bench();
    let folder = tempfile::tempdir().unwrap();
    for (behaviour, call, words) in [("give_up", "SIGABRT", "giving up"), ("leave", "exit", "leaving")] {
        let library = model_library(folder.path(), "small_graph.c", &[&format!("BEHAVIOUR={behaviour}")]);
        let run = run(&bench, &library, "-b cpu -n 5");
        assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
        let error = run.result()["error"].clone();
        assert_eq!((&error["call"], &error["stage"]), (&json!(call), &json!("compose")), "{error:#}");
        let tail = error["log_tail"].as_array().unwrap();
        assert!(tail.iter().any(|line| line == words), "no `{words}` in {tail:?}");
    }
    nothing_is_left(&bench);
}

#[test]
fn a_model_that_loops_ends_at_the_stage_timeout() {
    let bench = bench();
    let folder = tempfile::tempdir().unwrap();
    let library = model_library(folder.path(), "small_graph.c", &["BEHAVIOUR=loop_deaf"]);
    let run = run(&bench, &library, "-b cpu -n 5 --stage-timeout 3");
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let error = run.result()["error"].clone();
    assert_eq!(error["call"], "supervision");
    assert!(error["message"].as_str().unwrap().contains("--stage-timeout"), "{error:#}");
    nothing_is_left(&bench);
}

#[test]
fn a_wrong_input_is_told_with_the_users_names() {
    let bench = bench();
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("short.raw");
    std::fs::write(&input, "abc").unwrap();
    let inspected = Qnnscope::on(&runtime_247()).args(["inspect", "--json"]).arg(demo_int8()).finish().expect(0).json();
    let name = inspected["graphs"][0]["inputs"][0]["name"].as_str().unwrap();
    let run = run(&bench, &demo_int8(), &format!("-b cpu -n 1 --input {name}={}", input.display()));
    assert_eq!(run.done.code(), 2, "{}", run.done.stderr);
    let error = run.result()["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with(input.to_str().unwrap()) && message.contains("3 bytes"), "{message}");
}

#[test]
fn a_runner_for_another_machine_is_refused_before_anything_is_sent() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let done = call(&bench).run_json(&demo_int8(), "-n 1");
    assert_eq!(done.code(), 2, "{}", done.stderr);
    for part in ["x86_64", "aarch64", "cargo ndk"] {
        assert!(done.stderr.contains(part), "no `{part}` in {}", done.stderr);
    }
    let text = bench.on_device().arg("--runner").arg(crate::support::repo("README.md")).run_json(&demo_int8(), "-n 1");
    assert_eq!(text.code(), 2, "{}", text.stderr);
    assert!(text.stderr.contains("no 64-bit ELF program"), "{}", text.stderr);
    assert_eq!(bench.shell("ls /data/local/tmp").trim(), "");
    let here = Qnnscope::on(&runtime_247()).arg("--runner").arg(program()).run_json(&demo_int8(), "-n 1");
    assert!(here.code() == 2 && here.stderr.contains("--device"), "{}", here.stderr);
}

#[test]
fn a_program_that_is_no_runner_is_ended() {
    let bench = bench();
    // Prints its arguments forever.
    let yes = std::fs::canonicalize("/usr/bin/yes").unwrap();
    let begun = Instant::now();
    let run = bench.start(&demo_int8(), &format!("--runner {} -b cpu -n 1", yes.display())).wait();
    assert!(begun.elapsed() < Duration::from_secs(60), "not only at a timeout");
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let error = run.result()["error"].clone();
    assert_eq!(error["call"], "supervision", "{error:#}");
    assert!(error["message"].as_str().unwrap().contains("protocol"), "{error:#}");
    nothing_is_left(&bench);
}

#[test]
fn a_file_that_the_device_cannot_execute_is_told() {
    let bench = bench();
    let folder = tempfile::tempdir().unwrap();
    // Built for this processor, but not linked.
    let object = folder.path().join("object");
    let source = crate::support::repo("tests/models/small_graph.c");
    let output = std::process::Command::new("cc").arg("-c").arg(source).arg("-o").arg(&object).output();
    assert!(output.expect("the tests need a C compiler called cc").status.success());
    let run = bench.start(&demo_int8(), &format!("--runner {} -b cpu -n 1", object.display())).wait();
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let error = run.result()["error"].clone();
    assert_eq!(error["call"], "exec", "{error:#}");
    assert!(error["hint"].as_str().unwrap().contains("cargo ndk"), "{error:#}");
    assert!(!error["log_tail"].as_array().unwrap().is_empty(), "the shell's words: {error:#}");
}

#[test]
fn a_variable_that_names_a_device_does_not_move_inspections_there() {
    let call = Qnnscope::on(&runtime_247()).env("ANDROID_SERIAL", "no-such-device");
    call.args(["inspect", "--json"]).arg(demo_int8()).finish().expect(0);
}

#[test]
fn a_runner_in_the_data_folder_is_found_and_an_sdk_gives_the_libraries() {
    let bench = bench();
    let address = format!("127.0.0.1:{}", bench.server.port());
    let call = Qnnscope::without_runtime().within(Duration::from_secs(120));
    let folder = call.home().join("runners/x86_64-linux-android");
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(program(), folder.join("qnnscope")).unwrap();
    let session = call.home().join("session");
    let done = call
        .env("QNN_SDK_ROOT", bench.sdk.root())
        .args(["--adb-server", &address, "--device", &bench.device.serial()])
        .run_json(&demo_int8(), &format!("-b htp -n 2 --warmup 0 --profiling off --record {}", session.display()));
    assert_eq!(done.code(), 0, "{}", done.stderr);
    assert!(std::fs::read_to_string(&session).unwrap().contains(r#""driver":"device_runner""#));
}

#[test]
fn without_libraries_for_the_device_it_is_said_where_they_were_looked_for() {
    let bench = bench();
    let address = format!("127.0.0.1:{}", bench.server.port());
    let done = Qnnscope::without_runtime()
        .arg("--runner")
        .arg(program())
        .args(["--adb-server", &address, "--device", &bench.device.serial()])
        .run_json(&demo_int8(), "-n 1");
    assert_eq!(done.code(), 3, "{}", done.stderr);
    assert!(done.stderr.contains("$QNN_SDK_ROOT is not set") && done.stderr.contains("next: "), "{}", done.stderr);
}

#[test]
fn a_slow_link_changes_no_figure_but_the_time_it_takes() {
    let bench = bench_with(Options { delay: Duration::from_millis(30), ..Options::default() });
    let run = run(&bench, &demo_int8(), "-b cpu -n 50 --warmup 0 --profiling basic");
    assert_eq!(ok(&run)["latency_us"]["samples"], 50);
}

#[test]
fn a_runner_on_a_device_keeps_a_schedule() {
    let bench = bench();
    let run = run(&bench, &demo_int8(), "-b cpu --rate 5000 -n 12 --warmup 0 --profiling off");
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    let pace = &run.result()["pace"];
    assert_eq!(
        (&pace["planned"], &pace["done"], &pace["overloaded"]),
        (&12.into(), &12.into(), &true.into()),
        "{pace:#}"
    );
    let late: Vec<u64> = run
        .all("inferences")
        .iter()
        .flat_map(|batch| batch["late_ns"].as_array().cloned().unwrap_or_default())
        .map(|late| late.as_u64().unwrap())
        .collect();
    assert!(late.len() == 12 && late.is_sorted(), "{late:?}");
    nothing_is_left(&bench);
}

#[test]
fn a_failed_run_is_checked_before_its_files_are_removed() {
    let bench = bench();
    let folder = tempfile::tempdir().unwrap();
    let library = model_library(folder.path(), "small_graph.c", &["BEHAVIOUR=no_transport"]);
    let run = run(&bench, &library, "-b htp -n 1 --warmup 0");
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let causes = run.result()["diagnosis"]["causes"].clone();
    // A library for this processor needs no stub, so none was sent.
    let stub = causes.as_array().unwrap().iter().find(|cause| cause["id"] == "stub-not-found").unwrap();
    assert_eq!(stub["confirmed"], true, "{causes:#}");
    let at = |kind: &str| run.events.iter().position(|event| event.get(kind).is_some()).unwrap();
    assert!(at("failed") < at("check_finished") && at("check_finished") < at("run_finished"));
    assert!(!bench.shell("ls /data/local/tmp/qnnscope").contains("run-"));
    nothing_is_left(&bench);
}
