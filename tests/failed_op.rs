//! A run that fails at an op names it first, with the reason that `check` has for it.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod support;

use qnnscope::report::ResultDocument;
use qnnscope::session::SessionReader;
use qnnscope::store::Store;
use serde_json::Value;
use std::path::Path;
use support::{Qnnscope, model_library, runtime_247, runtime_251, schema};

const SOURCE: &str = "odd_graph.c";

/// Result of a run that fails, and its text.
fn failed(runtime: &Path, model: &Path, flags: &str) -> (Value, String) {
    let done = Qnnscope::on(runtime).run_json(model, &format!("-n 1 --warmup 0 {flags}")).expect(1);
    schema::fits(&schema::read("result.schema.json"), &done.json());
    let headless = Qnnscope::on(runtime).arg("run").arg(model).flags(&format!("-n 1 --warmup 0 --headless {flags}"));
    (done.first_run(), headless.finish().expect(1).text())
}

/// What `check` says of an op on a backend.
fn checked(runtime: &Path, model: &Path, op: &str, backend: &str) -> Value {
    let call = Qnnscope::on(runtime).arg("check").arg(model).args(["--json", "--no-compile", "--backend", backend]);
    let document = call.finish().json();
    let rows = document["ops"].as_array().unwrap().clone();
    rows.into_iter().find(|row| row["name"] == op).unwrap()["results"][backend].clone()
}

#[track_caller]
fn first_cause(run: &Value, id: &str) {
    let causes = run["diagnosis"]["causes"].as_array().unwrap();
    let all: Vec<String> = causes.iter().map(|cause| format!("{} {}", cause["id"], cause["confidence"])).collect();
    assert_eq!(causes[0]["id"], id, "{all:?}");
    assert!(causes[0]["confidence"].as_f64().unwrap() > 0.9, "{all:?}");
    assert!(causes.iter().all(|cause| cause["id"] != "op-package-invalid"), "{all:?}");
}

#[test]
fn an_op_with_a_parameter_too_many_is_no_fault_of_an_op_package() {
    let dir = tempfile::tempdir().unwrap();
    let model = model_library(dir.path(), SOURCE, &["RESIZE", "ASKS", "FLOATS"]);
    let (run, text) = failed(&runtime_247(), &model, "-b cpu");
    let error = &run["error"];
    assert_eq!((&error["code"], &error["call"]), (&3110.into(), &"backendValidateOpConfig".into()), "{error:#}");
    let op = &error["op"];
    let named = (&op["name"], &op["type"], &op["graph"]);
    assert_eq!(named, (&"enlarge".into(), &"ResizeNearestNeighbor".into(), &"odd".into()), "{op:#}");
    assert!(op["reason"].as_str().unwrap().contains("4 parameters"), "{op:#}");
    first_cause(&run, "op-config-inconsistent");
    assert_eq!(run["diagnosis"]["causes"][0]["remedy"], op["remedy"]);
    assert_eq!(error["hint"], op["remedy"]);
    let headline = "failed in stage compose at op `enlarge` (ResizeNearestNeighbor): it has 4 parameters";
    assert!(text.contains(headline), "{text}");
    let check = checked(&runtime_247(), &model, "enlarge", "cpu");
    assert_eq!((&check["reason"], &check["remedy"]), (&op["reason"], &op["remedy"]), "as check says");
}

#[test]
fn a_refused_tensor_is_named_with_the_remedy_of_check() {
    let dir = tempfile::tempdir().unwrap();
    let model = model_library(dir.path(), SOURCE, &["RANK6", "ASKS"]);
    for runtime in [runtime_247(), runtime_251()] {
        let (run, _) = failed(&runtime, &model, "-b htp --soc-model 57");
        let op = &run["error"]["op"];
        assert_eq!((&op["name"], &op["tensor"]["name"]), (&"rank6".into(), &"six".into()), "{op:#}");
        first_cause(&run, "op-rank-unsupported");
        let check = checked(&runtime, &model, "rank6", "htp");
        assert_eq!((&check["reason"], &check["remedy"]), (&op["reason"], &op["remedy"]), "as check says");
    }
}

#[test]
fn a_graph_that_does_not_finalize_names_the_op_that_stopped_it() {
    let dir = tempfile::tempdir().unwrap();
    let model = model_library(dir.path(), SOURCE, &["HARD", "FLOATS"]);
    let (run, text) = failed(&runtime_247(), &model, "-b htp");
    let error = &run["error"];
    assert_eq!((&error["stage"], &error["code"]), (&"finalize".into(), &1002.into()), "{error:#}");
    assert_eq!(error["op"]["name"], "gate", "{error:#}");
    assert_eq!(error["op"]["reason"], "HardSigmoid has no float variant on v68");
    first_cause(&run, "float-unsupported-on-arch");
    assert!(!error["hint"].as_str().unwrap().contains("look for the op"), "{error:#}");
    let tail: Vec<&str> = error["log_tail"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(tail[0].contains("no properties registered for q::QNN_HardSigmoid"), "{tail:#?}");
    assert!(tail.iter().all(|line| !line.contains("Tried to assign")), "{tail:#?}");
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words} in {text}"));
    assert!(at("at op `gate` (ElementWiseNeuron): HardSigmoid has no float variant on v68") < at("1002"), "{text}");

    // The session holds what the report needs.
    let session = dir.path().join("session.jsonl");
    let call = Qnnscope::on(&runtime_247()).arg("run").arg(&model).flags("-b htp -n 1 --json --record");
    let live = call.arg(&session).finish().expect(1).first_run();
    let mut store = Store::new();
    for record in SessionReader::open(&session).unwrap() {
        store.apply(&record.unwrap());
    }
    let replayed = serde_json::to_value(ResultDocument::new(&store)).unwrap();
    assert_eq!(replayed["runs"][0]["error"]["op"], live["error"]["op"]);
    assert_eq!(replayed["runs"][0]["diagnosis"], live["diagnosis"]);
}
