//! Measurement modes on the real libraries: paced, at several rates, over time, as published, in turns, with
//! cool-down.

#![cfg(target_os = "linux")]

use crate::support::device::{Bench, Recording};
use crate::support::virtual_device::{Scene, Snapshot};
use crate::support::{Done, Qnnscope, demo_float, demo_int8, number, runtime_247};
use qnnscope::report::ResultDocument;
use qnnscope::session::SessionReader;
use qnnscope::store::Store;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The program, with enough time for machines that are busy with other tests.
fn qnnscope() -> Qnnscope {
    Qnnscope::on(&runtime_247()).within(Duration::from_secs(180))
}

fn run(flags: &str) -> Done {
    qnnscope().run_json(&demo_float(), &format!("-b cpu --profiling off --record s.jsonl {flags}"))
}

/// Payloads of all events of a kind in the session recorded by a run.
fn events(done: &Done, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(done.home().join("s.jsonl")).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter_map(|mut record| record["event"].get_mut(kind).map(Value::take)).collect()
}

/// Start, latency and lateness of the clean inferences, nanoseconds.
fn clean(done: &Done) -> Vec<(u64, u64, u64)> {
    let numbers = |batch: &Value, key: &str| -> Vec<u64> {
        batch[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
    };
    let mut rows = Vec::new();
    for batch in events(done, "inferences").iter().filter(|batch| batch["phase"] == "clean") {
        let (start, latency, late) =
            (numbers(batch, "start_us"), numbers(batch, "latency_ns"), numbers(batch, "late_ns"));
        assert_eq!((start.len(), start.len()), (latency.len(), late.len()));
        rows.extend(
            start.into_iter().zip(latency).zip(late).map(|((start, latency), late)| (start * 1000, latency, late)),
        );
    }
    rows
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// The document that a replay of the session prints.
fn replayed(session: &Path) -> Value {
    let mut store = Store::new();
    for record in SessionReader::open(session).unwrap() {
        store.apply(&record.unwrap());
    }
    serde_json::to_value(ResultDocument::new(&store)).unwrap()
}

/// Checks that the parts of the document that this file is about are the same live and replayed.
#[track_caller]
fn same_in_replay(done: &Done) {
    let (live, replay) = (done.json(), replayed(&done.home().join("s.jsonl")));
    // Both go through text: printing and reading rounds the last digit.
    let part = |document: &Value, pointer: &str| -> Value {
        let value = document.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
        serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
    };
    for pointer in ["/interleaved", "/cadence"] {
        assert_eq!(part(&live, pointer), part(&replay, pointer), "{pointer}");
    }
    for run in 0..live["runs"].as_array().unwrap().len() {
        for key in ["mode", "pace", "sustained", "like", "cool_down", "constraints", "latency_us", "throughput_ips"] {
            let pointer = format!("/runs/{run}/{key}");
            assert_eq!(part(&live, &pointer), part(&replay, &pointer), "{pointer}");
        }
    }
}

#[test]
fn a_model_slower_than_its_rate_waits_longer_and_longer() {
    // A period of 100 µs is shorter than any inference.
    let done = run("--rate 10000 -n 12 --warmup 1").expect(0);
    let rows = clean(&done);
    assert_eq!(rows.len(), 12);
    for pair in rows.windows(2) {
        let [(_, service, late), (_, _, next_late)] = pair else { unreachable!() };
        assert!(next_late > late, "each waits longer than the one before it");
        assert!(next_late + 100_000 >= late + service, "at least by what that one took");
    }
    let result = done.first_run();
    let pace = &result["pace"];
    assert_eq!((count(&pace["planned"]), count(&pace["done"]), count(&pace["unstarted"])), (12, 12, 0));
    assert_eq!(count(&pace["on_time"]) + count(&pace["missed"]), 12);
    assert_eq!((&pace["overloaded"], count(&pace["missed"])), (&json!(true), 12));
    let (first, last) = (rows[0], rows[11]);
    assert!(
        number(&result["latency_us"]["max"]) * 1000.0 >= (last.1 + last.2) as f64 - 1000.0,
        "from the planned start"
    );
    let longest = rows.iter().map(|row| row.1).max().unwrap() as f64;
    assert!(
        (number(&pace["service_us"]["max"]) * 1000.0 - longest).abs() < 1000.0,
        "the inference alone, without the wait"
    );
    assert!(first.2 < last.2);
    same_in_replay(&done);
    let text = qnnscope()
        .arg("run")
        .arg(demo_float())
        .flags("-b cpu --headless --profiling off --rate 10000 -n 5 --warmup 0")
        .finish()
        .expect(0);
    for part in ["paced at 10000/s", "5 planned, 0 on time, 5 late", "too slow for this rate"] {
        assert!(text.text().contains(part), "no `{part}` in {}", text.text());
    }
}

#[test]
fn a_model_faster_than_its_rate_keeps_it() {
    let done = run("--rate 10 -n 8 --warmup 1").expect(0);
    let rows = clean(&done);
    let planned: Vec<u64> = rows.iter().map(|(start, _, late)| start - late).collect();
    for (index, planned_ns) in planned.iter().enumerate() {
        let expected = planned[0] + index as u64 * 100_000_000;
        assert!(planned_ns.abs_diff(expected) <= 2000, "planned starts lie 100 ms apart: {planned:?}");
    }
    let result = done.first_run();
    let pace = &result["pace"];
    assert_eq!((count(&pace["planned"]), count(&pace["on_time"]) + count(&pace["missed"])), (8, 8));
    let throughput = number(&result["throughput_ips"]);
    assert!(throughput <= 10.000_01, "never more than planned: {throughput}");
    if count(&pace["missed"]) == 0 {
        assert!(throughput > 9.99, "the rate, where it is kept: {throughput}");
    }
    assert!(number(&pace["wait_cpu_percent"]) <= 100.0 && number(&pace["worst_start_us"]) >= 0.0);
}

#[test]
fn what_a_time_leaves_waiting_is_counted() {
    let done = run("--rate 10000 --duration 300ms --warmup 0").expect(0);
    let pace = done.first_run()["pace"].clone();
    assert_eq!(count(&pace["planned"]), 3000);
    assert_eq!(count(&pace["done"]) + count(&pace["unstarted"]), 3000, "{pace}");
    assert_eq!(count(&pace["on_time"]) + count(&pace["missed"]), count(&pace["done"]));
    assert!(count(&pace["unstarted"]) > 0);
}

#[test]
fn a_stop_ends_a_wait_for_a_planned_start() {
    let call = qnnscope();
    let session = call.home().join("s.jsonl");
    let mut running = call
        .arg("run")
        .arg(demo_float())
        .flags("--json -b cpu --profiling off --rate 0.05 -n 100 --warmup 0 --record s.jsonl")
        .start();
    let clean = r#""inferences":{"phase":"clean""#;
    running.until("a clean inference", || std::fs::read_to_string(&session).ok()?.contains(clean).then_some(()));
    running.signal(Signal::INT);
    let done = running.wait().expect(130).leaves_nothing_behind();
    let result = done.first_run();
    assert_eq!((&result["status"], &result["stopped_early"]), (&json!("ok"), &json!(true)), "{:#}", result["error"]);
    let pace = &result["pace"];
    assert_eq!(count(&pace["done"]), count(&result["latency_us"]["samples"]));
    assert!(count(&pace["planned"]) < 100, "only what was planned up to then: {pace}");
}

#[test]
fn rates_are_run_one_after_the_other_and_told_together() {
    let done = run("--rate-sweep 50,5,max -n 6 --warmup 1").expect(0);
    let document = done.json();
    let rates: Vec<Value> =
        document["runs"].as_array().unwrap().iter().map(|run| run["mode"]["rate_hz"].clone()).collect();
    assert_eq!(rates, [json!(50.0), json!(5.0), Value::Null]);
    let points = document["cadence"][0]["points"].as_array().unwrap();
    assert_eq!(points.iter().map(|point| count(&point["run"])).collect::<Vec<_>>(), [0, 1, 2]);
    let medians: Vec<f64> = points.iter().map(|point| number(&point["service_us"]["p50"])).collect();
    let quickest = medians.iter().copied().fold(f64::INFINITY, f64::min);
    for (point, median) in points.iter().zip(&medians) {
        if point["rate_hz"].is_null() || point["overloaded"] == true {
            assert!(point["wake_us"].is_null() && point["wake_is_sure"] == false, "no pauses: {point}");
        } else {
            assert!((number(&point["wake_us"]) - (median - quickest)).abs() < 0.01, "{point}");
        }
    }
    let told = &document["cadence"][0];
    let quickest_run = points.iter().position(|point| number(&point["service_us"]["p50"]) == quickest).unwrap();
    assert_eq!(count(&told["quickest"]) as usize, quickest_run, "{told}");
    if told["densest_is_slower"] == true {
        assert!(points.iter().all(|point| point["wake_is_sure"] == false), "{told}");
    }
    same_in_replay(&done);
}

#[test]
fn a_sustained_run_is_told_window_by_window() {
    let done = run("--sustained 1s --warmup 1").expect(0);
    let result = done.first_run();
    let told = &result["sustained"];
    assert_eq!(told["window_s"], 0.1);
    let windows = told["windows"].as_array().unwrap();
    assert!((5..=20).contains(&windows.len()), "{}", windows.len());
    let samples: u64 = windows.iter().map(|window| count(&window["latency_us"]["samples"])).sum();
    assert_eq!(samples, count(&result["latency_us"]["samples"]), "every inference is in a window");
    let slowest = windows.iter().filter_map(|window| window["latency_us"]["max"].as_f64()).fold(0.0, f64::max);
    assert!((slowest - number(&result["latency_us"]["max"])).abs() <= slowest * 1e-3);
    let steady = !told["steady"].is_null();
    assert_eq!(steady, told["unsteady"].is_null(), "either a steady state or why there is none: {told}");
    if let Some(slow) = told["slowdown"].as_object() {
        let text = result["findings"].to_string();
        assert_eq!(text.matches("over time: slower").count(), 1, "{slow:?} {text}");
    }
    same_in_replay(&done);
}

#[test]
fn a_paced_run_without_inferences_enough_says_that_windows_are_too_few() {
    let call = qnnscope();
    let done = call.arg("run").arg(demo_float());
    let done = done.flags("-b cpu --headless --profiling off --sustained 1s --rate 4 --warmup 0").finish().expect(0);
    let text = done.text();
    assert!(text.contains("too few windows"), "{text}");
    assert!(!text.contains("no lasting slowdown") && !text.contains("differ by more"), "{text}");
}

#[test]
fn single_stream_says_what_a_stopped_run_lacks() {
    let call = qnnscope();
    let session = call.home().join("s.jsonl");
    let mut running =
        call.arg("run").arg(demo_float()).flags("--json -b cpu --profiling off --like mlperf --record s.jsonl").start();
    let clean = r#""inferences":{"phase":"clean""#;
    running.until("a clean inference", || std::fs::read_to_string(&session).ok()?.contains(clean).then_some(()));
    running.signal(Signal::INT);
    let done = running.wait().expect(130);
    let phases = events(&done, "phase_started");
    let wanted = json!({"at_least": {"iterations": 1024, "seconds": 60.0}});
    assert!(phases.iter().any(|phase| phase["phase"] == "clean" && phase["budget"] == wanted), "{phases:#?}");
    let like = done.first_run()["like"].clone();
    assert_eq!(like["percent"], 90.0);
    let state = |id: &str| {
        let conditions = like["conditions"].as_array().unwrap();
        conditions.iter().find(|condition| condition["id"] == id).unwrap()["state"].clone()
    };
    for id in ["samples", "duration", "complete", "device", "data"] {
        assert_eq!(state(id), "not_met", "{id}: {like:#}");
    }
    assert_eq!(state("single_stream"), "met");
    same_in_replay(&done);
}

#[test]
fn a_profile_job_brings_its_settings_and_explains_a_gap() {
    let done = qnnscope()
        .run_json(&demo_int8(), "-b htp --profiling off --warmup 1 --like aihub --published-ms 0.001")
        .expect(0);
    let result = done.first_run();
    assert_eq!(result["latency_us"]["samples"], 100);
    let settings = result["settings"].to_string();
    assert!(settings.contains("burst") && settings.contains("float16"), "{settings}");
    let gap = &result["like"]["gap"];
    assert!(number(&gap["percent"]) > 0.0 && gap["within_noise"] == false, "{gap}");
    let explained = gap["explained_by"].as_array().unwrap();
    assert_eq!(explained[0], "device", "a simulator is the weightiest reason: {explained:?}");
    assert!(explained.contains(&json!("priority")), "{explained:?}");
}

#[test]
fn what_a_run_does_not_have_explains_no_gap() {
    let flags = "-b cpu --profiling off --warmup 1 --like aihub --published-ms 0.001";
    let done = qnnscope().run_json(&demo_int8(), flags).expect(0);
    let like = done.first_run()["like"].clone();
    let state = |id: &str| {
        let conditions = like["conditions"].as_array().unwrap();
        conditions.iter().find(|condition| condition["id"] == id).unwrap()["state"].clone()
    };
    assert_eq!((state("fp16"), state("burst")), (json!("does_not_apply"), json!("does_not_apply")), "{like:#}");
    let explained = like["gap"]["explained_by"].to_string();
    assert!(!explained.contains("fp16") && !explained.contains("burst"), "{explained}");
}

#[test]
fn percentile_limits_of_outliers_warn_of_nothing_and_say_what_they_need() {
    let finding = |flags: &str, id: &str| {
        let done = run(flags).expect(0);
        let result = done.first_run();
        let found = result["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id).cloned();
        let found = found.unwrap_or_else(|| panic!("no {id} in {:#}", result["findings"]));
        assert_eq!((&found["kind"], &found["severity"]), (&json!("outlier"), &json!("info")), "{found:#}");
        (result["outliers"].clone(), result["latency_us"]["p50"].clone(), found["title"].clone())
    };
    let (outliers, p50, _) = finding("-n 60 --warmup 1 --outlier-limit p90", "outlier.slow-inferences");
    assert!((1..=6).contains(&count(&outliers["count"])), "a tenth of them at most: {outliers}");
    assert_eq!(outliers["median_us"], p50);
    let (outliers, _, title) = finding("-n 30 --warmup 1 --outlier-limit p99.9", "outlier.not-judged");
    assert!(outliers.is_null() && title.as_str().unwrap().contains("1000"), "{title}");
}

#[test]
fn flags_that_contradict_each_other_are_refused_with_their_reason() {
    for (flags, words) in [
        ("--like aihub -n 20", "100 inferences"),
        ("--like aihub --perf-profile balanced", "burst"),
        ("--like aihub --precision float32", "fp16"),
        ("--like mlperf -n 100", "1024"),
        ("--like mlperf --duration 5s", "60 s"),
        ("--like mlperf --rate 30", "--rate"),
        ("--rate 30 --rate-sweep 1,2", "--rate"),
        ("--sustained 10s -n 5", "--sustained"),
        ("--rate 0", "inferences per second"),
        ("--rate 0.05 --stage-timeout 10", "--stage-timeout"),
        ("--published-ms 3", "--like"),
        ("--interleave 1", "2..=100"),
        ("--latency-percentile 99", "--latency-budget-ms"),
    ] {
        let done = qnnscope().run_json(&demo_float(), flags).expect(2);
        assert!(done.stderr.contains(words), "{flags}: no `{words}` in {}", done.stderr);
    }
}

#[test]
fn backends_take_turns_and_their_rounds_go_together() {
    let done = qnnscope()
        .run_json(&demo_int8(), "-b cpu,htp --profiling off -n 4 --warmup 0 --interleave 2 --record s.jsonl")
        .expect(0);
    let order: Vec<(Value, Value)> = events(&done, "run_started")
        .iter()
        .map(|plan| (plan["backend"].clone(), plan["mode"]["repeat"]["index"].clone()))
        .collect();
    let expected =
        [("cpu", 0), ("htp", 0), ("cpu", 1), ("htp", 1)].map(|(backend, index)| (json!(backend), json!(index)));
    assert_eq!(order, expected);
    let document = done.json();
    let sets = document["interleaved"].as_array().unwrap();
    assert_eq!(sets.len(), 2);
    for (set, (backend, runs)) in sets.iter().zip([("cpu", [0, 2]), ("htp", [1, 3])]) {
        assert_eq!((&set["backend"], &set["asked"]), (&json!(backend), &json!(2)));
        assert_eq!(set["latency_us"]["samples"], 8, "both rounds in one distribution");
        let made: Vec<u64> = set["rounds"].as_array().unwrap().iter().map(|round| count(&round["run"])).collect();
        assert_eq!(made, runs);
        assert!(set["drift_percent"].is_number() && set["spread_percent"].is_number());
    }
    same_in_replay(&done);
}

#[test]
fn constraints_have_a_verdict_each_and_do_not_change_the_exit_status() {
    let done = run("-n 20 --warmup 1 --latency-budget-ms 0.001 --max-memory-mb 100000 --power-critical").expect(0);
    let result = done.first_run();
    assert_eq!(result["constraints"]["power_critical"], true);
    let finding = |id: &str| {
        let found = result["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id);
        found.unwrap_or_else(|| panic!("no {id} in {:#}", result["findings"])).clone()
    };
    let latency = finding("constraint.latency");
    assert_eq!((&latency["kind"], &latency["severity"]), (&json!("constraint"), &json!("problem")), "{latency:#}");
    assert!(latency["title"].as_str().unwrap().contains("p95: missed"), "{latency:#}");
    assert_eq!(finding("constraint.memory")["severity"], "info");
}

#[test]
fn a_pause_without_a_thermometer_is_fixed_and_told() {
    let done = run("-n 2 --warmup 0 --interleave 2 --cool-down=1s").expect(0);
    let document = done.json();
    assert!(document["runs"][0]["cool_down"].is_null(), "nothing before the first run");
    let pause = &document["runs"][1]["cool_down"];
    // A machine with sensors may be back at once, or not within one second.
    let end = pause["end"].as_str().unwrap();
    assert!(["fixed", "back", "limit"].contains(&end), "{pause}");
    assert_eq!(end == "fixed", document["host_counters"].to_string().contains("no readable temperature"), "{pause}");
    if end == "fixed" {
        assert!(count(&pause["waited_us"]) >= 1_000_000, "{pause}");
    }
    same_in_replay(&done);
}

/// A second run on a device that got hot in the first one: the recording, while the run is waiting.
fn hot_between_runs(bench: &Bench) -> Recording {
    let flags = "-b cpu,cpu --duration 2s --warmup 0 --profiling basic --cool-down=2m";
    let recording = bench.start(&demo_int8(), flags);
    recording.until("inferences", |batch| batch["phase"] == "clean");
    bench.device.set_scene(Scene::Throttle);
    // Temperatures, and throttled clocks.
    recording.until("cooling_down", |pause| {
        let waiting = pause["waiting_for"].to_string();
        pause["end"].is_null() && waiting.contains("thermal.") && waiting.contains("limit")
    });
    recording
}

#[test]
fn a_hot_device_is_waited_for_until_it_is_back() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    let recording = hot_between_runs(&bench);
    bench.device.set_scene(Scene::Idle);
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    let document = run.done.json();
    let pause = &document["runs"][1]["cool_down"];
    assert_eq!((&pause["end"], &pause["waiting_for"]), (&json!("back"), &json!([])), "{pause:#}");
    assert!(count(&pause["watched"]) > 1 && count(&pause["waited_us"]) > 0, "{pause:#}");
    assert_eq!(document["runs"][1]["status"], "ok");
}

#[test]
fn ctrl_c_ends_a_cool_down() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    let recording = hot_between_runs(&bench);
    crate::support::send(recording.running.pid(), Signal::INT);
    let run = recording.wait();
    assert_eq!(run.done.code(), 130, "{}", run.done.stderr);
    let document = run.done.json();
    assert_eq!((&document["runs"][0]["status"], &document["runs"][0]["stopped_early"]), (&json!("ok"), &json!(false)));
    let second = &document["runs"][1];
    assert_eq!(
        (&second["stopped_early"], &second["cool_down"]["end"]),
        (&json!(true), &json!("stopped")),
        "{second:#}"
    );
    assert!(second["latency_us"].is_null());
    assert_eq!(bench.tools_left(), "");
}

#[test]
fn qnn_net_run_takes_turns_and_is_held_against_constraints_but_cannot_be_paced() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let flags = "-b cpu --sustained 1s --warmup 0 --profiling basic --interleave 2 --latency-budget-ms 100000";
    let run = bench.run(&demo_int8(), flags);
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    let document = run.done.json();
    assert_eq!(document["interleaved"][0]["rounds"].as_array().unwrap().len(), 2);
    for run in document["runs"].as_array().unwrap() {
        assert!(!run["sustained"]["windows"].as_array().unwrap().is_empty());
        let findings = run["findings"].to_string();
        assert!(findings.contains("constraint.latency") && !findings.contains("missed"), "{findings}");
    }
    let refused = bench.on_device().run_json(&demo_int8(), "-b cpu --rate 30 -n 3");
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    for part in ["qnn-net-run", "cannot wait", "--runner"] {
        assert!(refused.stderr.contains(part), "no `{part}` in {}", refused.stderr);
    }
}
