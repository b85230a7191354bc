//! Children that misbehave, and signals: the parent always ends properly, reports what happened, and leaves
//! nothing behind.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::{
    Done, Qnnscope, Running, demo_int8, model_library, none_left, number, processes_in, runtime_247, send,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn misbehaving(dir: &Path, behaviour: &str) -> PathBuf {
    model_library(dir, "small_graph.c", &[&format!("BEHAVIOUR={behaviour}")])
}

/// Runs a model library that does not survive composing; returns the document's error.
fn failed_run(behaviour: &str, flags: &str) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let done = Qnnscope::on(&runtime_247())
        .within(Duration::from_secs(30))
        .run_json(&misbehaving(dir.path(), behaviour), &format!("-n 5 {flags}"))
        .expect(1)
        .leaves_nothing_behind();
    let run = done.first_run();
    assert_eq!((&run["status"], &run["error"]["stage"]), (&json!("failed"), &json!("compose")), "{run}");
    assert!(number(&run["stages_us"]["backend_create"]) > 0.0, "what came before is still told");
    assert!(done.stderr.contains("failed in stage compose"), "{}", done.stderr);
    run["error"].clone()
}

#[track_caller]
fn assert_tail(error: &Value, wanted: &str) {
    let tail = error["log_tail"].as_array().unwrap();
    assert!(tail.iter().any(|line| line == wanted), "no `{wanted}` in {tail:?}");
}

#[track_caller]
fn assert_says(error: &Value, parts: &[&str]) {
    let message = error["message"].as_str().unwrap();
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn crashes_are_named_by_signal() {
    let error = failed_run("segfault", "");
    assert_eq!(error["call"], "SIGSEGV");
    assert_says(&error, &["signal 11", "compose"]);
    assert_tail(&error, "about to follow a bad pointer");
    assert!(error["hint"].as_str().unwrap().contains("model library"));

    let error = failed_run("give_up", "");
    assert_eq!(error["call"], "SIGABRT");
    assert_tail(&error, "giving up");

    let error = failed_run("leave", "");
    assert_eq!(error["call"], "exit");
    assert_says(&error, &["status 7"]);
    assert_tail(&error, "leaving");
}

#[test]
fn inspecting_a_crashing_library_fails_in_order_too() {
    let dir = tempfile::tempdir().unwrap();
    let library = misbehaving(dir.path(), "segfault");
    let done = Qnnscope::on(&runtime_247())
        .args(["inspect", "--json"])
        .arg(library)
        .finish()
        .expect(1)
        .leaves_nothing_behind();
    assert!(done.stdout.is_empty(), "{}", done.text());
    for part in ["SIGSEGV", "stage compose", "about to follow a bad pointer"] {
        assert!(done.stderr.contains(part), "no `{part}` in {}", done.stderr);
    }
}

#[test]
fn a_library_that_was_cut_off_is_named_before_it_kills_the_runner() {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(runtime_247()).unwrap().flatten() {
        std::os::unix::fs::symlink(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    for name in ["libQnnCpu.so", "libQnnSystem.so"] {
        let path = dir.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() * 2 / 3]).unwrap();
        let done = Qnnscope::on(dir.path()).run_json(&demo_int8(), "-b cpu -n 1").expect(3);
        for part in [name, "is truncated", "copy or install it again"] {
            assert!(done.text().contains(part), "no `{part}` in {}", done.text());
        }
        assert!(!done.text().contains("SIGBUS"), "{}", done.text());
        std::fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_signal_ends_an_inspection_that_loops() {
    let dir = tempfile::tempdir().unwrap();
    let library = misbehaving(dir.path(), "loop_deaf");
    for signal in [Signal::INT, Signal::TERM] {
        let mut running = Qnnscope::on(&runtime_247()).arg("inspect").arg(&library).start();
        let runner = running.runner();
        // The library is mapped once it has been opened; from then on it loops.
        let maps = format!("/proc/{runner}/maps");
        let name = library.file_name().unwrap().to_str().unwrap();
        running
            .until("the library", || std::fs::read_to_string(&maps).unwrap_or_default().contains(name).then_some(()));
        running.signal(signal);
        running.wait().expect(130).leaves_nothing_behind();
    }
}

#[test]
fn endless_loops_end_at_the_stage_timeout() {
    for behaviour in ["loop_for_ever", "loop_deaf"] {
        let begun = Instant::now();
        let error = failed_run(behaviour, "--stage-timeout 2");
        assert!(begun.elapsed() > Duration::from_secs(2));
        assert_eq!(error["call"], "supervision");
        assert_says(&error, &["compose", "--stage-timeout", "2 s"]);
        assert_tail(&error, "looping");
    }
}

#[test]
fn endless_output_does_not_keep_the_deadline_away() {
    let error = failed_run("shout_for_ever", "--stage-timeout 2");
    assert_eq!(error["call"], "supervision");
    assert_says(&error, &["--stage-timeout"]);
    assert!(error["log_tail"].as_array().unwrap().len() <= 20);
}

#[test]
fn endless_allocation_ends_at_the_memory_limit() {
    let error = failed_run("eat_memory", "--memory-limit-mb 600");
    assert_eq!(error["call"], "supervision");
    assert_says(&error, &["--memory-limit-mb", "600 MiB"]);
    assert_tail(&error, "eating memory");
    assert!(error["hint"].as_str().unwrap().contains("--memory-limit-mb"));
}

#[test]
fn a_process_that_a_library_leaves_behind_is_ended_too() {
    let error = failed_run("orphan", "--stage-timeout 5");
    assert_eq!(error["call"], "SIGABRT", "{error}");
}

#[test]
fn whatever_a_library_prints_becomes_log_lines() {
    let dir = tempfile::tempdir().unwrap();
    let library = misbehaving(dir.path(), "chatter");
    let session = dir.path().join("session");
    let done = Qnnscope::on(&runtime_247())
        .arg("run")
        .arg(&library)
        .args(["--json", "-n", "5", "--record"])
        .arg(&session)
        .finish()
        .expect(0)
        .leaves_nothing_behind();
    assert_eq!(done.first_run()["status"], "ok");
    assert!(!done.stdout.contains(&0x1b) && !done.stderr.contains('\u{1b}'));
    let text = std::fs::read_to_string(&session).unwrap();
    let lines: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["event"]["log"]["source"] == "console")
        .map(|record| record["event"]["log"]["text"].as_str().unwrap().to_owned())
        .collect();
    for wanted in ["plain words on stdout", "plain words on stderr", "\"done\""] {
        assert!(lines.iter().any(|line| line.contains(wanted)), "no `{wanted}` in {lines:?}");
    }
    assert!(lines.iter().any(|line| line.contains("run_finished")), "a frame on stdout is only text");
    assert!(lines.iter().all(|line| !line.chars().any(char::is_control)), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("red\u{fffd}[31m")));
}

/// Runs with a shell script in place of the runner.
fn fake_runner(script: &str) -> Done {
    let call = Qnnscope::on(&runtime_247()).within(Duration::from_secs(30));
    let path = call.home().join("runner");
    // A child writes the file: while another test forks, a file that this process has open for writing cannot
    // be executed.
    let status = std::process::Command::new("sh")
        .args(["-c", r#"printf '%s\n' "$1" > "$2" && chmod +x "$2""#, "sh"])
        .arg(format!("#!/bin/sh\n{script}"))
        .arg(&path)
        .status()
        .unwrap();
    assert!(status.success());
    call.env("QNNSCOPE_RUNNER", &path).run_json(&demo_int8(), "-n 5").expect(1).leaves_nothing_behind()
}

const HELLO: &str = r#"printf '{"hello":{"protocol":3,"version":"0","pid":1}}\n'"#;

#[test]
fn a_runner_that_speaks_another_language_is_ended() {
    let begun = Instant::now();
    let error = fake_runner("echo garbage\nexec cat").first_run()["error"].clone();
    assert!(begun.elapsed() < Duration::from_secs(18), "not only at a timeout");
    assert_eq!(error["call"], "supervision");
    assert_says(&error, &["protocol"]);
    assert!(error["log_tail"][0].as_str().unwrap().contains("garbage"), "{error}");
}

#[test]
fn a_runner_whose_own_child_holds_the_pipes_cannot_hang_the_parent() {
    let error = fake_runner("sleep 300 &\necho garbage\nwait").first_run()["error"].clone();
    assert_says(&error, &["protocol"]);
}

#[test]
fn a_runner_of_another_version_is_ended() {
    let script = format!("{}\nexec cat", HELLO.replace(":3,", ":99,"));
    let error = fake_runner(&script).first_run()["error"].clone();
    assert_says(&error, &["protocol 99", "not 3", "version 0", "rebuild"]);
}

#[test]
fn a_runner_that_stops_inside_a_line_is_told() {
    let error = fake_runner("printf '{\"hello\"'").first_run()["error"].clone();
    assert_eq!(error["call"], "exit");
    assert_says(&error, &["status 0", "before it finished"]);
    assert!(
        error["log_tail"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains("inside a line")),
        "{error}"
    );
}

#[test]
fn a_runner_that_ends_at_once_is_told() {
    for (script, part) in [("exit 3", "status 3"), ("kill -9 $$", "SIGKILL"), (HELLO, "status 0")] {
        let done = fake_runner(script);
        assert_says(&done.first_run()["error"], &[part]);
    }
}

#[test]
fn a_runner_that_says_done_without_doing_anything_has_not_run_the_model() {
    let done = fake_runner(&format!("{HELLO}\nprintf '\"done\"\\n'"));
    assert_eq!(done.first_run()["status"], "failed");
}

#[test]
fn endless_garbage_after_hello_is_counted_not_kept() {
    let script =
        format!("{HELLO}\nfor i in $(seq 20000); do echo \"garbage $i\"; done\nhead -c 300000000 /dev/zero\nexit 1");
    let done = fake_runner(&script);
    assert!(done.stdout.len() < 100_000 && done.stderr.len() < 100_000, "{}", done.stdout.len());
    assert_says(&done.first_run()["error"], &["status 1"]);
}

#[test]
fn a_runner_that_cannot_be_started_is_missing() {
    let call = Qnnscope::on(&runtime_247()).env("QNNSCOPE_RUNNER", "/nonexistent/runner");
    let done = call.run_json(&demo_int8(), "-n 5").expect(3);
    assert_says(&done.first_run()["error"], &["/nonexistent/runner"]);
}

/// A run that takes minutes, up to the point where the latency phase has reported its first figures.
fn long_run(flags: &str) -> Running {
    let call = Qnnscope::on(&runtime_247());
    let session = call.home().join("session");
    let mut running = call
        .arg("run")
        .arg(demo_int8())
        .args(["--json", "-n", "1000000", "--warmup", "1", "--profiling-iterations", "20", "--record"])
        .arg(&session)
        .flags(flags)
        .start();
    running.until("measured inferences", || {
        let text = std::fs::read_to_string(&session).unwrap_or_default();
        text.contains(r#""inferences":{"phase":"clean""#).then_some(())
    });
    running
}

#[test]
fn signals_end_a_run_with_its_figures() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let running = long_run("");
        running.signal(signal);
        let done = running.wait().expect(130).leaves_nothing_behind();
        let run = done.first_run();
        assert_eq!((&run["status"], &run["stopped_early"]), (&json!("ok"), &json!(true)), "{signal:?}");
        assert_eq!(run["error"], Value::Null);
        let samples = run["latency_us"]["samples"].as_u64().unwrap();
        assert!(samples > 0 && samples < 1_000_000);
        assert!(number(&run["stages_us"]["teardown"]) > 0.0, "everything was freed in order");
        assert!(run["profiling"]["iterations"].as_u64().unwrap() < 20, "the rest of the detailed phase is left out");
    }
}

#[test]
fn after_a_signal_no_further_backend_runs() {
    let running = long_run("--backend cpu,htp");
    running.signal(Signal::INT);
    let done = running.wait().expect(130).leaves_nothing_behind();
    assert_eq!(done.json()["runs"].as_array().unwrap().len(), 1);
    assert!(done.stderr.contains("htp run was left out"), "{}", done.stderr);
}

#[test]
fn the_second_signal_ends_at_once() {
    let mut running = long_run("");
    // A suspended runner cannot end its phase properly.
    send(running.runner(), Signal::STOP);
    running.signal(Signal::INT);
    // Two signals in quick succession would count as one.
    running.until_said("press Ctrl-C again to stop at once");
    let begun = Instant::now();
    running.signal(Signal::INT);
    let done = running.wait().expect(130).leaves_nothing_behind();
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    let run = done.first_run();
    assert_eq!((&run["status"], &run["stopped_early"]), (&json!("ok"), &json!(true)), "the user ended it");
    assert!(run["latency_us"]["samples"].as_u64().unwrap() > 0, "figures up to then are kept");
}

#[test]
fn one_signal_ends_a_stage_that_does_not_listen() {
    let dir = tempfile::tempdir().unwrap();
    let library = misbehaving(dir.path(), "loop_deaf");
    let mut running =
        Qnnscope::on(&runtime_247()).arg("run").arg(&library).args(["--json", "--record", "session"]).start();
    let session = running.home().join("session");
    running
        .until("the loop", || std::fs::read_to_string(&session).unwrap_or_default().contains("looping").then_some(()));
    let begun = Instant::now();
    running.signal(Signal::TERM);
    let done = running.wait().expect(130).leaves_nothing_behind();
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    let run = done.first_run();
    assert_eq!((&run["stopped_early"], &run["error"], &run["latency_us"]), (&json!(true), &json!(null), &json!(null)));
    assert!(done.stderr.contains("was killed in stage compose"), "{}", done.stderr);
}

#[test]
fn a_killed_runner_is_told_with_what_it_measured() {
    let mut running = long_run("");
    send(running.runner(), Signal::KILL);
    let done = running.wait().expect(1).leaves_nothing_behind();
    let run = done.first_run();
    assert_eq!((&run["error"]["call"], &run["error"]["stage"]), (&json!("SIGKILL"), &json!("execute")));
    assert!(run["latency_us"]["samples"].as_u64().unwrap() > 0, "figures up to then are kept");
    assert!(done.stderr.contains("SIGKILL"), "{}", done.stderr);
}

#[test]
fn a_stopped_runner_ends_at_the_stage_timeout() {
    let mut running = long_run("--stage-timeout 2");
    send(running.runner(), Signal::STOP);
    let done = running.wait().expect(1).leaves_nothing_behind();
    assert_says(&done.first_run()["error"], &["--stage-timeout", "execute"]);
}

#[test]
fn a_runner_does_not_outlive_a_killed_parent() {
    let mut running = long_run("");
    let runner = running.runner();
    assert!(processes_in(running.home()).contains(&runner), "the check below sees runners");
    running.signal(Signal::KILL);
    // Waits until the pipes are closed, which the runner also holds, and then for the process.
    let done = running.wait();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&done.status), Some(9));
    none_left(done.home());
}

#[test]
fn a_reader_of_stdout_that_went_away_is_no_failure() {
    let call = Qnnscope::on(&runtime_247());
    let script = format!(
        "{} --runtime '{}' run '{}' --json -n 2 --profiling off | head -c 10; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_qnnscope"),
        runtime_247().display(),
        demo_int8().display()
    );
    let output = std::process::Command::new("bash").args(["-c", &script]).current_dir(call.home()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !stderr.contains("panicked"), "{:?} {stderr}", output.status);
}
