//! Verdicts on real runs: what the document says, what the text shows, and a device that throttles while it
//! runs.

#![cfg(target_os = "linux")]

use crate::support::device::Bench;
use crate::support::virtual_device::{Scene, Snapshot};
use crate::support::{Qnnscope, demo_float, demo_int8, number, runtime_247};
use qnnscope::event::now_us;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The CPU backend spins on all cores and is very slow on a machine that is doing other things.
const PATIENCE: Duration = Duration::from_secs(180);

fn ids(run: &Value) -> Vec<&str> {
    run["findings"].as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap()).collect()
}

#[test]
fn a_run_on_the_processor_is_judged_with_figures() {
    let call = Qnnscope::on(&runtime_247()).within(PATIENCE);
    let done = call.run_json(&demo_float(), "-n 30 --profiling-iterations 5").expect(0);
    let run = done.first_run();
    assert!(
        ["trusted", "within_launch", "with_care", "not"].contains(&run["trust"]["verdict"].as_str().unwrap()),
        "{}",
        run["trust"]
    );
    let parts: f64 = run["bounds"]["shares"].as_array().unwrap().iter().map(|part| number(&part["share"])).sum();
    assert!((parts - 1.0).abs() < 0.01, "{}", run["bounds"]);
    let best = number(&run["bounds"]["best_gmac_per_s"]);
    let rows = run["ops"].as_array().unwrap();
    let convolutions: Vec<&Value> = rows.iter().filter(|op| !op["gmac_per_s"].is_null()).collect();
    assert!(convolutions.len() > 10 && convolutions.iter().all(|op| number(&op["macs"]) > 0.0));
    for op in convolutions {
        let (rate, us) = (number(&op["gmac_per_s"]), number(&op["time_us"]["mean"]));
        assert!((rate - number(&op["macs"]) / us / 1000.0).abs() < 1e-9 * rate.max(1.0), "{op}");
        assert!(us < 5.0 || rate <= best + 1e-9, "{op}");
    }
    let (ids, reasons) = (ids(&run), run["trust"]["reasons"].as_array().unwrap());
    assert!(reasons.iter().all(|reason| ids.contains(&reason["id"].as_str().unwrap())), "{ids:?}");
    assert!(ids.contains(&"trust.tail"), "30 inferences bound no p95: {ids:?}");
    let summary = run["summary"].as_str().unwrap();
    assert!(summary.contains("qnnscope-demo-float.dlc takes") && summary.contains("CPU"), "{summary}");
}

#[test]
fn a_simulated_run_is_not_judged_as_a_device() {
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_int8(), "-b htp -n 60 --profiling-iterations 5").expect(0);
    let run = done.first_run();
    assert_eq!(run["trust"]["verdict"], "not");
    assert!(run["findings"].as_array().unwrap().iter().all(|finding| finding["severity"] == "info"), "{:?}", ids(&run));
    assert!(run["ops"].as_array().unwrap().iter().all(|op| op["gmac_per_s"].is_null() && op["gb_per_s"].is_null()));
    assert_eq!((run["bounds"]["main"].is_null(), run["bounds"]["shares"].as_array().unwrap().len()), (true, 0));
    assert!(run["bounds"]["would_tell"].to_string().contains("on a device"));
    assert!(run["summary"].as_str().unwrap().contains("simulated HTP"));
}

#[test]
fn the_text_shows_findings_and_summary_within_a_terminal() {
    let run = Qnnscope::on(&runtime_247()).within(PATIENCE).arg("run").arg(demo_float());
    let text = run.flags("--headless -n 30 --profiling-iterations 5").finish().expect(0).text();
    // A short run ends before this machine's counters are first read.
    let end = text.find("\nhost ").unwrap_or(text.len());
    let shown = &text[text.find("\nfindings\n").unwrap()..end];
    assert!(shown.contains("p95 has no upper bound") && shown.contains("takes"), "{shown}");
    // Commands are not wrapped, so that they can be copied.
    let told = |line: &&str| !line.starts_with("         qnnscope ");
    assert!(shown.lines().filter(told).all(|line| line.chars().count() <= 80), "{shown}");
}

/// Every reading of a device's counters: (time, counter id, value).
fn readings(events: &[Value]) -> Vec<(u64, String, f64)> {
    let mut sets: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for event in events {
        if let Some(set) = event.get("counter_set_declared") {
            let ids = set["counters"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap().to_owned());
            sets.insert(set["set"].as_u64().unwrap(), ids.collect());
        }
        let Some(sample) = event.get("counters").filter(|sample| sample.get("set").is_some()) else { continue };
        let ids = &sets[&sample["set"].as_u64().unwrap()];
        for (id, value) in ids.iter().zip(sample["values"].as_array().unwrap()) {
            found.extend(value.as_f64().map(|value| (sample["t_us"].as_u64().unwrap(), id.clone(), value)));
        }
    }
    found
}

#[test]
fn throttling_is_found_with_the_first_reading_that_shows_it() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let recording = bench.start(&demo_int8(), "-b htp --duration 8s --warmup 0 --profiling basic");
    recording.until("inferences", |batch| batch["phase"] == "clean");
    let throttled_us = now_us();
    bench.device.set_scene(Scene::Throttle);
    let run = recording.wait();
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    let result = run.result();
    let finding = result["findings"].as_array().unwrap().iter().find(|f| f["id"] == "bound.thermal-throttling");
    let finding = finding.unwrap_or_else(|| panic!("{:?}", ids(&result)));
    let moment = finding["evidence"][0]["at"]["moment"].as_u64().unwrap();
    assert!(moment >= throttled_us, "not before it happened: {finding:#}");
    // The NPU's cooling and the system's own status: whichever was read first after the event.
    let tells = |id: &str| id.starts_with("cooling.cdsp") || id == "service.thermal.status";
    let first = readings(&run.events).into_iter().find(|(_, id, value)| tells(id) && *value > 0.0).unwrap();
    assert!(moment <= first.0, "the first reading above 0 is of {} at {}: {finding:#}", first.1, first.0);
    assert!(result["trust"]["reasons"].to_string().contains("trust.throttled"), "{}", result["trust"]);
}

#[test]
fn a_device_that_stays_cool_is_not_throttled() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let run = bench.run(&demo_int8(), "-b htp --duration 3s --warmup 0 --profiling basic");
    assert_eq!(run.done.code(), 0, "{}", run.done.stderr);
    let result = run.result();
    let found = ids(&result);
    assert!(!found.contains(&"bound.thermal-throttling") && !found.contains(&"trust.throttled"), "{found:?}");
}
