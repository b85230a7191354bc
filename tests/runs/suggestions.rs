//! Suggestions through the binary: models with a planted pattern, on the real libraries.

#![cfg(target_os = "linux")]

use crate::support::{Qnnscope, demo_float, demo_int8, model_library, number, runtime_247};
use serde_json::Value;

/// The only run in the document that `qnnscope run` prints for a planted pattern.
fn planted(pattern: &str, flags: &str) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), "patterns.c", &[&format!("PATTERN={pattern}")]);
    Qnnscope::on(&runtime_247()).run_json(&library, flags).expect(0).json()["runs"][0].clone()
}

fn suggestions(run: &Value) -> Vec<&Value> {
    run["findings"].as_array().unwrap().iter().filter(|finding| finding["kind"] == "suggestion").collect()
}

#[track_caller]
fn suggestion<'a>(run: &'a Value, id: &str) -> &'a Value {
    let all = suggestions(run);
    let ids: Vec<_> = all.iter().map(|finding| finding["id"].as_str().unwrap()).collect();
    all.into_iter()
        .find(|finding| finding["id"] == id)
        .unwrap_or_else(|| panic!("no {id} in {ids:?}; ops: {}", run["ops"]))
}

/// Checks what must hold for every suggestion of a real run.
#[track_caller]
fn is_sound(run: &Value, finding: &Value) {
    let id = &finding["id"];
    let latency = number(&run["latency_us"]["p50"]);
    let ops = run["ops"].as_array().unwrap();
    let named =
        |name: &Value| ops.iter().find(|op| op["name"] == *name).unwrap_or_else(|| panic!("{id}: no op {name}"));
    let share: f64 = finding["ops"].as_array().unwrap().iter().map(|name| number(&named(name)["share"])).sum();
    let evidence = finding["evidence"].as_array().unwrap();
    assert!(!evidence.is_empty(), "{id}");
    for seen in evidence.iter().filter(|seen| seen["at"]["op"].is_number()) {
        let text = seen["text"].as_str().unwrap();
        assert!(
            ops.iter().any(|op| text.starts_with(&format!("`{}` (", op["name"].as_str().unwrap()))),
            "{id}: {seen}"
        );
    }
    if let [low, high] = finding["expected_gain_us"].as_array().map_or(&[][..], |gain| gain) {
        let (low, high) = (number(low), number(high));
        assert!(
            0.0 <= low && low <= high && high <= latency * share * 1.001,
            "{id}: {low} to {high} of {share} x {latency}"
        );
    }
    if run["simulated"] == true {
        assert_eq!(finding["severity"], "info", "{id}");
        assert!(finding.to_string().contains("simulated"), "{id}");
    }
}

#[test]
fn a_storm_of_transposes_is_found_in_the_times_of_the_cpu() {
    let run = planted("storm", "--backend cpu -n 10 --profiling-iterations 5");
    let storm = suggestion(&run, "g9-data-movers");
    let names = storm["ops"].as_array().unwrap();
    assert_eq!(names.len(), 6, "{storm}");
    assert!(names.iter().all(|name| name.as_str().unwrap().starts_with("turn")), "{storm}");
    assert_eq!(storm["severity"], "warning");
    assert!(number(&storm["expected_gain_us"][1]) > 0.5 * number(&run["latency_us"]["p50"]), "{storm}");
    assert!(storm["suggestion"]["snippets"].as_array().unwrap().len() >= 2);
    suggestions(&run).into_iter().for_each(|finding| is_sound(&run, finding));
}

#[test]
fn a_hot_layer_is_named_by_the_times_of_the_cpu() {
    let run = planted("hot", "--backend cpu -n 20 --profiling-iterations 20");
    let findings = run["findings"].as_array().unwrap();
    let hot = findings.iter().find(|finding| finding["id"] == "bound.hot-layer");
    let hot = hot.unwrap_or_else(|| panic!("{findings:#?}; ops: {}", run["ops"]));
    assert_eq!(hot["ops"], serde_json::json!(["hot"]), "{hot}");
    assert!(hot["title"].as_str().unwrap().contains("of the op time: hot"), "{hot}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn what_was_planted_is_named_on_the_simulated_htp() {
    for (pattern, id, op) in [
        ("divide", "g6-div-to-mul", "scale"),
        ("prelu", "g7-relu-not-prelu", "bend"),
        ("five", "g14-rank", "windows"),
        ("shallow", "g2-space-to-depth", "stem"),
    ] {
        let run = planted(pattern, "--backend htp --soc-model 57 -n 2 --warmup 0 --profiling-iterations 1");
        let finding = suggestion(&run, id);
        assert_eq!(finding["ops"], serde_json::json!([op]), "{finding}");
        for finding in suggestions(&run) {
            is_sound(&run, finding);
        }
        let planted = ["g6-div-to-mul", "g7-relu-not-prelu", "g14-rank", "g2-space-to-depth"];
        let others = planted.iter().filter(|other| **other != id);
        for other in others {
            assert!(!suggestions(&run).iter().any(|finding| finding["id"] == *other), "{other} on {pattern}");
        }
    }
}

#[test]
fn healthy_models_get_no_more_than_hints() {
    for (model, flags) in [
        (demo_float(), "--backend cpu -n 5 --profiling-iterations 2"),
        (demo_int8(), "--backend htp -n 3 --profiling-iterations 2"),
    ] {
        let run = Qnnscope::on(&runtime_247()).run_json(&model, flags).expect(0).json()["runs"][0].clone();
        for finding in suggestions(&run) {
            assert_eq!(finding["severity"], "info", "{finding}");
            is_sound(&run, finding);
        }
    }
}
