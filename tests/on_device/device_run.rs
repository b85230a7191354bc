//! Runs on a device: the real adb server, the real libraries, the stand-in for qnn-net-run.

use crate::support::device::Bench;
use crate::support::virtual_device::{LinkState, Options, Snapshot};
use crate::support::{Qnnscope, demo_float, demo_int8, max_difference, number, read_f32, runtime_247};
use serde_json::Value;
use std::time::Duration;

#[test]
fn a_run_on_the_device_gives_what_a_run_here_gives() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let outputs = tempfile::tempdir().unwrap();
    let flags = format!("-b cpu -n 20 --warmup 2 --save-outputs {}", outputs.path().display());
    let run = bench.run(&demo_float(), &flags);
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    let result = run.result();
    assert_eq!(result["status"], "ok");
    assert_eq!(result["device"]["id"], bench.device.serial());
    assert_eq!((&result["device"]["soc"], &result["device"]["hexagon_arch"]), (&"SM8650".into(), &"v75".into()));
    assert_eq!(result["latency_us"]["samples"], 20);
    assert!(number(&result["latency_us"]["p50"]) > 0.0);
    assert!(number(&result["stages_us"]["finalize"]) > 0.0 && number(&result["stages_us"]["first_inference"]) > 0.0);
    let layers = result["ops"].as_array().unwrap();
    assert!(layers.iter().any(|layer| layer["type"] == "Conv2d"), "layers are joined with the graph's ops");
    assert!(number(&result["memory_bytes"]["rss_peak"]) > 0.0, "{:#}", result["memory_bytes"]);
    // The same seed yields the same data, so the outputs are those of a run on this machine.
    let here = tempfile::tempdir().unwrap();
    let flags = format!("-b cpu -n 1 --warmup 0 --profiling off --save-outputs {}", here.path().display());
    Qnnscope::on(&runtime_247()).run_json(&demo_float(), &flags).expect(0);
    let file = "Result_0/probabilities.raw";
    let difference = max_difference(&read_f32(&outputs.path().join(file)), &read_f32(&here.path().join(file)));
    assert!(difference < 1e-5, "{difference}");
    assert_eq!(bench.tools_left(), "");
}

#[test]
fn launches_are_rounds_of_their_own_and_send_their_files_once() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let run = bench.run(&demo_int8(), "-b cpu --launches 3 -n 18 --warmup 1");
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    let result = run.result();
    assert_eq!((&result["status"], &result["latency_us"]["samples"]), (&"ok".into(), &18.into()));
    let started: Vec<u64> = run.all("launch_started").iter().map(|launch| launch["index"].as_u64().unwrap()).collect();
    assert_eq!(started, [0, 1, 2]);
    let samples: Vec<u64> = result["latency_us"]["launches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|launch| launch["samples"].as_u64().unwrap())
        .collect();
    assert_eq!(samples, [6, 6, 6], "one round with clean inferences each");
    assert!(number(&result["profiling"]["iterations"]) > 0.0, "the first launch has layer times");
    assert_eq!((run.all("run_finished").len(), run.all("graph_composed").len()), (1, 1));
    let sent: Vec<String> = run.log().into_iter().filter(|line| line.starts_with("sent ")).collect();
    assert!(!sent[0].starts_with("sent 0 files") && sent[1..].iter().all(|line| line.starts_with("sent 0 files")));
    assert_eq!(bench.tools_left(), "");
    assert!(!bench.shell("ls /data/local/tmp/qnnscope").contains("run-"), "folders of launches are removed");
}

#[test]
fn what_is_on_the_device_is_nobody_elses_business() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let run = bench.start(&demo_float(), "-b cpu --duration 60");
    run.until("inferences", |_| true);
    let modes = bench.shell("cd /data/local/tmp && stat -c '%a %n' qnnscope qnnscope/run-*");
    let lines: Vec<&str> = modes.lines().map(str::trim).collect();
    assert_eq!(lines.len(), 2, "{modes}");
    assert!(lines.iter().all(|line| line.starts_with("700 ")), "{modes}");
    run.running.signal(rustix::process::Signal::INT);
    assert_eq!(run.wait().done.code(), 130);
}

#[test]
fn a_second_run_sends_nothing_and_clean_removes_all_of_ours() {
    let bench = Bench::new(Snapshot::Sm8650User);
    bench.shell("echo keep >/data/local/tmp/mine");
    let sent = |flags: &str| {
        let run = bench.run(&demo_int8(), flags);
        assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
        let log = run.log();
        let line = log.iter().find(|line| line.starts_with("sent ")).unwrap_or_else(|| panic!("{log:#?}")).clone();
        (line, run.all("files_sent").len())
    };
    let (first, progress) = sent("-b cpu -n 3 --warmup 0 --profiling basic");
    assert!(!first.starts_with("sent 0 files") && progress > 0, "{first}");
    let (second, progress) = sent("-b cpu -n 3 --warmup 0 --profiling basic");
    assert!(second.starts_with("sent 0 files (0 bytes)") && progress == 0, "{second}");
    assert!(!bench.shell("ls /data/local/tmp/qnnscope").contains("run-"), "folders of runs are removed");
    let clean = bench.on_device().arg("clean").finish();
    assert_eq!(clean.code(), 0, "{}", clean.stderr);
    assert!(clean.stderr.contains("removed"), "{}", clean.stderr);
    assert_eq!(bench.shell("ls /data/local/tmp").trim(), "mine");
    let again = bench.on_device().arg("clean").finish();
    assert!(again.code() == 0 && again.stderr.contains("nothing of qnnscope"), "{}", again.stderr);
}

#[test]
fn the_htp_gets_its_libraries_and_its_configuration() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    let run = bench.run(&demo_int8(), "-b htp -n 6 --warmup 1 --perf-profile burst --vtcm-mb 4");
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    let result = run.result();
    assert_eq!((&result["status"], &result["simulated"]), (&"ok".into(), &true.into()));
    let layers = result["ops"].as_array().unwrap();
    assert!(layers.iter().any(|layer| layer["cycles"]["mean"].is_number()), "{:#}", layers[0]);
    let settings: Vec<(String, bool)> = run
        .all("setting_applied")
        .iter()
        .map(|setting| (setting["key"].as_str().unwrap().to_owned(), setting["outcome"] == "applied"))
        .collect();
    for key in ["--perf-profile", "--vtcm-mb", "nice"] {
        assert!(settings.contains(&(key.to_owned(), true)), "{key}: {settings:?}");
    }
    let objects = bench.shell("grep -l -a '^skel 73' /data/local/tmp/qnnscope/objects/* | wc -l");
    assert_eq!(objects.trim(), "1", "the skel of this DSP is there");
}

#[test]
fn a_context_binary_runs() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.bin");
    std::fs::write(&path, crate::support::context_binary("2.3.0", "htp", &demo_int8(), None)).unwrap();
    let run = bench.run(&path, "-b htp -n 3 --warmup 0 --profiling basic");
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    assert_eq!(run.done.json()["model"]["format"], "context_binary");
}

#[test]
fn hostile_file_names_are_only_names() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mo del's $(touch owned) `id`\n;x.dlc");
    std::fs::copy(demo_int8(), &path).unwrap();
    let run = bench.run(&path, "-b cpu -n 2 --warmup 0 --profiling basic");
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    assert!(!bench.shell("ls -R /data/local/tmp / 2>/dev/null").contains("owned"));
}

/// Enough inferences for something to happen in between.
const LONG: &str = "-b cpu --duration 30s --warmup 0 --profiling basic";

fn measured(recording: &crate::support::device::Recording) {
    recording.until("inferences", |batch| batch["phase"] == "clean");
}

#[test]
fn a_lost_link_is_told_and_the_run_goes_on_when_the_device_is_back() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), "-b cpu --duration 8s --warmup 0 --profiling basic");
    measured(&recording);
    bench.device.drop_link();
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    assert!(run.logged("waiting up to") && run.logged("is back"), "{:#?}", run.log());
    let result = run.result();
    assert_eq!(result["status"], "ok");
    let before =
        run.events.iter().position(|event| event["log"]["text"].as_str().unwrap_or("").contains("waiting up to"));
    let kept = run.events[..before.unwrap()].iter().filter_map(|event| event.get("inferences"));
    assert!(kept.count() > 0, "earlier measurements are kept");
    assert_eq!(bench.tools_left(), "");
}

#[test]
fn a_killed_adb_server_is_started_again_and_the_run_goes_on() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), "-b cpu --duration 8s --warmup 0 --profiling basic");
    measured(&recording);
    bench.server.adb(["kill-server"]);
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    assert!(run.logged("is back"), "{:#?}", run.log());
    // The server that qnnscope started is ours to kill.
    std::process::Command::new("adb").args(["-P", &bench.server.port().to_string(), "kill-server"]).output().unwrap();
}

#[test]
fn ctrl_c_ends_the_tool_on_the_device_and_keeps_the_figures() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), LONG);
    measured(&recording);
    crate::support::send(recording.running.pid(), rustix::process::Signal::INT);
    let run = recording.wait();
    assert_eq!(run.done.code(), 130, "{}", run.done.stderr);
    let result = run.result();
    assert_eq!((&result["status"], &result["stopped_early"]), (&"ok".into(), &true.into()));
    assert!(number(&result["latency_us"]["samples"]) > 0.0);
    assert_eq!(bench.tools_left(), "");
}

/// What runs have left in our folder on the device.
fn runs_left(bench: &Bench) -> String {
    bench.shell("ls /data/local/tmp/qnnscope 2>/dev/null | grep run-")
}

/// Our processes that are left on the device.
fn processes_left(bench: &Bench) -> String {
    // The command line of the shell that looks contains these words as well.
    bench.shell(
        "for p in /proc/[0-9]*; do c=$(cat $p/cmdline 2>/dev/null | tr '\\0' ' '); case $c in *looks*) ;; \
         *tmp/qnnscope*|*logcat*threadtime*|*schedstat*) echo \"$p $c\";; esac; done; : looks",
    )
}

#[track_caller]
fn until_empty(what: impl Fn() -> String) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !what().is_empty() {
        assert!(std::time::Instant::now() < deadline, "{}", what());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn nothing_is_left_on_the_device_after_a_run() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let run = bench.run(&demo_int8(), "-b cpu -n 5 --warmup 0 --profiling basic");
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    assert_eq!(runs_left(&bench), "");
    until_empty(|| processes_left(&bench));
}

#[test]
fn a_run_removes_what_a_killed_one_left_and_keeps_the_files() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), LONG);
    measured(&recording);
    assert!(!processes_left(&bench).is_empty());
    crate::support::send(recording.running.pid(), rustix::process::Signal::KILL);
    // A process that has not been waited for still exists.
    drop(recording.wait());
    until_empty(|| processes_left(&bench));
    assert_eq!(runs_left(&bench).lines().count(), 1, "nobody was there to remove it");
    let run = bench.run(&demo_int8(), "-b cpu -n 3 --warmup 0 --profiling basic");
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    assert!(run.logged("sent 0 files"), "the files stay: {:#?}", run.log());
    assert_eq!(runs_left(&bench), "");
}

#[test]
fn two_runs_at_once_on_a_device_are_told_of_each_other() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let first = bench.start(&demo_int8(), "-b cpu --duration 20s --warmup 0 --profiling basic");
    measured(&first);
    let second = bench.run(&demo_int8(), "-b cpu -n 3 --warmup 0 --profiling basic");
    assert_eq!(second.done.code(), 0, "{}", second.done.stderr);
    let warned = |run: &crate::support::device::Recorded| run.result()["confounds"].to_string();
    assert!(warned(&second).contains("another_run"), "{}", warned(&second));
    let first = first.wait();
    assert_eq!(first.done.code(), 0, "the second run leaves the first one's files alone: {}", first.done.stderr);
    assert!(warned(&first).contains("another_run"), "{}", warned(&first));
    let alone = bench.run(&demo_int8(), "-b cpu -n 3 --warmup 0 --profiling basic");
    assert!(!warned(&alone).contains("another_run"), "{}", warned(&alone));
}

#[test]
fn a_link_that_is_lost_while_files_are_sent_is_waited_for() {
    let options = Options { delay: Duration::from_millis(8), ..Options::default() };
    let bench = Bench::with(Snapshot::Sm8650User, options);
    let recording = bench.start(&demo_int8(), "-b cpu -n 3 --warmup 0 --profiling basic");
    recording.until("files_sent", |sent| sent["done_bytes"].as_u64().unwrap() > 0);
    bench.device.drop_link();
    recording.until("log", |line| line["text"].as_str().unwrap().contains("waiting up to"));
    bench.device.set_delay(Duration::ZERO);
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    assert!(run.logged("is back"), "{:#?}", run.log());
    assert_eq!(run.result()["latency_us"]["samples"], 3);
    assert_eq!(runs_left(&bench), "");
}

#[test]
fn the_logs_of_all_rounds_are_kept() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("net-run.log");
    let flags = format!("-b cpu -n 30 --warmup 0 --profiling basic --save-profile-log {}", log.display());
    let run = bench.run(&demo_int8(), &flags);
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    assert!(run.all("round_started").len() >= 2);
    // Every inference of the run is in the kept logs exactly once, including the first one of every round,
    // which only warms up.
    let read = Qnnscope::on(&runtime_247()).arg("profile-log").arg(&log).args(["--format", "csv"]).finish();
    assert_eq!(read.code(), 0, "{}", read.stderr);
    let csv = String::from_utf8(read.stdout).unwrap();
    let executions = csv.lines().filter(|line| line.contains("EXECUTE") && line.contains("ROOT")).count();
    assert!(executions >= 30, "{executions} of 30 and more inferences:\n{}", &csv[..csv.len().min(2000)]);
    let nowhere = bench.run(&demo_int8(), "-b cpu -n 1 --save-profile-log /no/such/folder/log");
    assert_eq!(nowhere.done.code(), 2, "{}", nowhere.done.stderr);
}

#[test]
fn kill_9_of_qnnscope_leaves_nothing_running_on_the_device() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), LONG);
    measured(&recording);
    crate::support::send(recording.running.pid(), rustix::process::Signal::KILL);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !bench.tools_left().is_empty() {
        assert!(std::time::Instant::now() < deadline, "{}", bench.tools_left());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_killed_tool_is_a_failure_with_its_signal_and_the_lines_of_the_device() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), LONG);
    measured(&recording);
    bench.log_in_the_run("1512  1512 I lowmemorykiller: Kill 'qnn-net-run' (4711), uid 2000");
    let kill = "for p in /proc/[0-9]*; do case $(cat $p/cmdline 2>/dev/null | tr '\\0' ' ') in ./qnn-net-run*) kill -9 \
                ${p#/proc/} && echo killed;; esac; done";
    // Between two rounds there is nothing to kill.
    while !bench.shell(kill).contains("killed") {}
    let run = recording.wait();
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let result = run.result();
    assert_eq!(
        (&result["status"], &result["error"]["call"]),
        (&"failed".into(), &"SIGKILL".into()),
        "{:#}",
        result["error"]
    );
    assert!(number(&result["latency_us"]["samples"]) > 0.0, "the rounds before are kept");
    assert!(run.logged("lowmemorykiller"), "{:#?}", run.log());
}

#[test]
fn a_device_without_space_says_how_much_is_missing() {
    let options = Options { disk_bytes: Some(4 << 20), ..Options::default() };
    let bench = Bench::with(Snapshot::Sm8650User, options);
    let run = bench.run(&demo_int8(), "-b cpu -n 1");
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let error = &run.result()["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("too little space") && message.contains("for logs and outputs"), "{message}");
    assert!(error["hint"].as_str().unwrap().contains("qnnscope clean"), "{error:#}");
}

#[test]
fn a_device_that_gets_too_hot_is_left_alone() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), LONG);
    measured(&recording);
    bench.device.dumpsys("thermalservice", "IsStatusOverride: false\nThermal Status: 4\n");
    let run = recording.wait();
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let result = run.result();
    assert!(result["error"]["message"].as_str().unwrap().contains("too hot"), "{:#}", result["error"]);
    assert!(number(&result["latency_us"]["samples"]) > 0.0);
}

#[test]
fn a_slow_link_changes_no_figure_but_the_time_it_takes() {
    let options = Options { delay: Duration::from_millis(30), ..Options::default() };
    let bench = Bench::with(Snapshot::Sm8650User, options);
    let run = bench.run(&demo_int8(), "-b htp -n 10 --warmup 0 --profiling basic");
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    assert_eq!(run.result()["latency_us"]["samples"], 10);
}

#[test]
fn what_is_missing_for_a_device_run_is_named() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let address = format!("127.0.0.1:{}", bench.server.port());
    let call = || Qnnscope::on(&runtime_247()).args(["--adb-server", &address, "--device", &bench.device.serial()]);
    let no_sdk = call().run_json(&demo_int8(), "-n 1");
    assert_eq!(no_sdk.code(), 3, "{}", no_sdk.stderr);
    assert!(
        no_sdk.stderr.contains("$QNN_SDK_ROOT is not set") && no_sdk.stderr.contains("next: "),
        "{}",
        no_sdk.stderr
    );
    std::fs::remove_file(bench.sdk.root().join("lib/hexagon-v75/unsigned/libQnnHtpV75Skel.so")).unwrap();
    let no_skel = bench.run(&demo_int8(), "-b htp -n 1");
    assert_eq!(no_skel.done.code(), 3, "{}", no_skel.done.stderr);
    let message = no_skel.result()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("libQnnHtpV75Skel.so") && message.contains("v75"), "{message}");
}

#[test]
fn files_of_an_sdk_that_only_a_variable_names_are_not_written_over_even_by_force() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let address = format!("127.0.0.1:{}", bench.server.port());
    for (option, file) in [
        ("--record", "lib/hexagon-v75/unsigned/libQnnHtpV75Skel.so"),
        ("--save-profile-log", "lib/aarch64-android/libQnnHtp.so"),
        ("--record", "bin/aarch64-android/qnn-net-run"),
    ] {
        let path = bench.sdk.root().join(file);
        let before = std::fs::read(&path).unwrap();
        let done = Qnnscope::without_runtime()
            .env("QNN_SDK_ROOT", bench.sdk.root())
            .args(["--adb-server", &address, "--device", &bench.device.serial()])
            .args(["run", "--json", "-n", "1", "-b", "htp", "--force", option])
            .arg(&path)
            .arg(demo_int8())
            .finish()
            .expect(2);
        assert!(done.stderr.contains("would overwrite the SDK's file"), "{}", done.stderr);
        assert!(std::fs::read(&path).unwrap() == before, "{file}");
    }
}

#[test]
fn rounds_grow_so_that_little_time_goes_to_loading() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let run = bench.run(&demo_int8(), "-b htp --duration 12s --warmup 0 --profiling basic");
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    let rounds: Vec<&Value> = run
        .all("metrics")
        .into_iter()
        .flat_map(|sample| sample["metrics"].as_array().unwrap())
        .filter(|metric| metric["name"] == "rounds")
        .collect();
    assert!(number(&rounds[0]["value"]) >= 2.0, "{rounds:?}");
    assert!(run.logged("of their time went to starting it"), "{:#?}", run.log());
    // The device's timestamps are on the host's time axis: no inference ends after the run did.
    let starts = run.starts_us();
    assert!(starts.windows(2).all(|pair| pair[0] <= pair[1]), "inferences are in order over all rounds");
}

#[test]
fn a_device_that_starts_anew_is_taken_up_again() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), "-b htp --duration 8s --warmup 0 --profiling basic");
    measured(&recording);
    bench.device.reboot(Duration::from_secs(2));
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    assert!(run.logged("is back"), "{:#?}", run.log());
    // The device's clock starts over; its counters and inferences stay on the host's axis nevertheless.
    assert!(run.all("clock_aligned").len() >= 2);
    let starts = run.starts_us();
    assert!(starts.windows(2).all(|pair| pair[0] <= pair[1]));
}

#[test]
fn revoked_authorisation_is_told_and_waited_for() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), LONG);
    measured(&recording);
    bench.device.set_state(LinkState::Unauthorized);
    bench.device.drop_link();
    recording.until("log", |line| line["text"].as_str().unwrap().contains("waiting up to"));
    // Nobody authorises it again: Ctrl-C ends the wait, and the measurements stay.
    crate::support::send(recording.running.pid(), rustix::process::Signal::INT);
    let run = recording.wait();
    assert_eq!(run.done.code(), 130, "{}", run.done.stderr);
    let result = run.result();
    assert_eq!(result["status"], "failed");
    assert!(number(&result["latency_us"]["samples"]) > 0.0);
}

#[test]
fn storage_that_fills_up_in_a_run_is_the_cause_that_is_told() {
    let options = Options { disk_bytes: Some(256 << 20), ..Options::default() };
    let bench = Bench::with(Snapshot::Sm8650User, options);
    let recording = bench.start(&demo_int8(), "-b cpu --duration 60s --warmup 0 --profiling basic");
    measured(&recording);
    bench.shell("cat /dev/zero >/data/local/tmp/fill");
    let run = recording.wait();
    assert_eq!(run.done.code(), 1, "{}\n{:#?}", run.done.stderr, run.log());
    let error = run.result()["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("storage is full"), "{error:#}");
    assert!(number(&run.result()["latency_us"]["samples"]) > 0.0);
}

#[test]
fn a_crash_of_the_tool_shows_its_signal_and_tombstone() {
    let bench = Bench::new(Snapshot::Sm8650User);
    // The phone claims to have this machine's processor, so that a model library for it can be built here.
    bench.device.set_property("ro.product.cpu.abi", std::env::consts::ARCH.as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let model = crate::support::model_library(folder.path(), "small_graph.c", &["BEHAVIOUR=segfault"]);
    let input = folder.path().join("x.raw");
    std::fs::write(&input, [0; 64]).unwrap();
    bench.log_in_the_run("4711  4711 F libc    : Fatal signal 11 (SIGSEGV) in tid 4711 (qnn-net-run)");
    let run = bench.run(&model, &format!("-b cpu -n 5 --native-input --input x={}", input.display()));
    assert_eq!(run.done.code(), 1, "{}\n{:#?}", run.done.stderr, run.log());
    let error = run.result()["error"].clone();
    assert_eq!(error["call"], "SIGSEGV", "{error:#}");
    assert!(run.logged("Fatal signal 11"), "{:#?}", run.log());
}

#[test]
fn a_model_for_another_processor_is_bad_input() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let folder = tempfile::tempdir().unwrap();
    let model = crate::support::model_library(folder.path(), "small_graph.c", &[]);
    let run = bench.run(&model, "-b cpu -n 5");
    assert_eq!(run.done.code(), 2, "{}", run.done.stderr);
    let message = run.result()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("aarch64"), "{message}");
    let missing = bench.run(&folder.path().join("nosuch.dlc"), "-b cpu -n 5");
    assert_eq!(missing.done.code(), 2, "{}", missing.done.stderr);
}
