//! A run that fails at an op names that op first, with the reason that `check` gives for it.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::{Qnnscope, model_library, runtime_247, runtime_251, schema};
use qnnscope::report::ResultDocument;
use qnnscope::session::SessionReader;
use qnnscope::store::Store;
use serde_json::Value;
use std::path::Path;

const SOURCE: &str = "odd_graph.c";

/// The result of a run that fails, and its text.
fn failed(runtime: &Path, model: &Path, flags: &str) -> (Value, String) {
    let done = Qnnscope::on(runtime).run_json(model, &format!("-n 1 --warmup 0 {flags}")).expect(1);
    schema::fits(&schema::read("result.schema.json"), &done.json());
    let headless = Qnnscope::on(runtime).arg("run").arg(model).flags(&format!("-n 1 --warmup 0 --headless {flags}"));
    (done.first_run(), headless.finish().expect(1).text())
}

/// What `check` reports about an op on a backend.
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

/// Checks that the run stopped at `op`, with the wording that `check` uses for it.
#[track_caller]
fn as_check_says(run: &Value, runtime: &Path, model: &Path, op: &str, backend: &str) {
    let fault = &run["error"]["op"];
    let check = checked(runtime, model, op, backend);
    assert_eq!(check["ok"], false, "{check:#}");
    assert_eq!(
        (&fault["name"], &fault["reason"], &fault["remedy"]),
        (&op.into(), &check["reason"], &check["remedy"]),
        "as check says"
    );
    assert_eq!(run["diagnosis"]["causes"][0]["remedy"], check["remedy"]);
}

#[test]
fn a_crash_while_composing_is_explained_by_the_op_that_the_validator_refuses() {
    let dir = tempfile::tempdir().unwrap();
    // Without ASKS: the backend crashes while the op is added.
    let model = model_library(dir.path(), SOURCE, &["RESIZE", "LISTED"]);
    let (run, text) = failed(&runtime_247(), &model, "-b cpu");
    assert_eq!((&run["error"]["call"], &run["error"]["stage"]), (&"SIGSEGV".into(), &"compose".into()));
    first_cause(&run, "op-config-inconsistent");
    as_check_says(&run, &runtime_247(), &model, "enlarge", "cpu");
    assert!(text.contains("at op `enlarge` (ResizeNearestNeighbor): it has 4 parameters"), "{text}");
    assert!(text.contains("killed by signal 11 (SIGSEGV)"), "{text}");
}

#[test]
fn an_op_that_no_backend_has_is_called_so() {
    let dir = tempfile::tempdir().unwrap();
    let quantised = model_library(dir.path(), SOURCE, &["UNKNOWN", "LISTED"]);
    // A float op that HTP does not have at all is not reported as lacking a float variant.
    let float = model_library(dir.path(), "small_graph.c", &["OP_TYPE=\"Frobnicate\""]);
    for (model, op, backend) in
        [(&quantised, "unknown", "cpu"), (&quantised, "unknown", "htp"), (&float, "clamp", "htp")]
    {
        let (run, _) = failed(&runtime_247(), model, &format!("-b {backend}"));
        first_cause(&run, "op-unsupported");
        assert_eq!(run["error"]["op"]["reason"], "the backend has no op Frobnicate");
        as_check_says(&run, &runtime_247(), model, op, backend);
        let causes = run["diagnosis"]["causes"].as_array().unwrap();
        let floats = causes.iter().any(|cause| cause["id"] == "float-unsupported-on-arch");
        assert!(!floats || *model == float, "{causes:#?}");
    }
}

#[test]
fn what_stops_the_compiler_is_what_the_validator_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let rank = model_library(dir.path(), SOURCE, &["RANK6", "LISTED"]);
    let (run, _) = failed(&runtime_247(), &rank, "-b htp");
    assert_eq!(run["error"]["stage"], "finalize");
    first_cause(&run, "op-rank-unsupported");
    as_check_says(&run, &runtime_247(), &rank, "rank6", "htp");
    // If the validator accepts an op, the call that refused it has the last word.
    let empty = model_library(dir.path(), SOURCE, &["EMPTY", "LISTED"]);
    let (run, _) = failed(&runtime_247(), &empty, "-b htp");
    first_cause(&run, "zero-size-tensor");
    assert_eq!(run["error"]["op"]["name"], "empty");
}

#[test]
fn a_model_that_hides_an_input_of_its_graph_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    // None of these is refused because of its ops: with LISTED, each of them runs.
    for (define, backend, missing) in [("RANK6", "cpu", "`six`"), ("FLOAT_IN", "htp", "`mixed`")] {
        let model = model_library(dir.path(), SOURCE, &[define]);
        let (run, text) = failed(&runtime_247(), &model, &format!("-b {backend}"));
        assert_eq!(run["error"]["code"], 6004);
        first_cause(&run, "graph-lists-wrong");
        let causes = run["diagnosis"]["causes"].as_array().unwrap();
        assert!(causes.iter().all(|cause| cause["id"] != "input-count"), "no list of files was given: {causes:#?}");
        assert!(text.contains(missing), "{text}");
        let check = Qnnscope::on(&runtime_247()).arg("check").arg(&model);
        let check = check.args(["--json", "--no-compile", "--backend", backend]).finish().json();
        assert_eq!(check["ok"], false);
        assert!(check["backends"][0]["reason"].as_str().unwrap().contains(missing), "{check:#}");
        // What the validator thinks of the ops ranks behind what is known.
        let refused = causes.iter().position(|cause| cause["id"] == "op-dtype-unsupported");
        assert_eq!(refused.is_some(), define == "FLOAT_IN", "{causes:#?}");
        assert_ne!(refused, Some(0));
    }
    let unread = model_library(dir.path(), SOURCE, &["UNUSED", "LISTED"]);
    let (run, _) = failed(&runtime_247(), &unread, "-b cpu");
    first_cause(&run, "graph-lists-wrong");
    Qnnscope::on(&runtime_247()).run_json(&unread, "-n 1 --warmup 0 -b htp").expect(0);
}

#[test]
fn a_crash_that_no_op_explains_is_not_blamed_on_one() {
    let dir = tempfile::tempdir().unwrap();
    let model = model_library(dir.path(), "patterns.c", &["PATTERN=five"]);
    let (run, text) = failed(&runtime_247(), &model, "-b htp");
    assert_eq!((&run["error"]["call"], &run["error"]["stage"]), (&"SIGSEGV".into(), &"first_inference".into()));
    assert_eq!(run["error"]["op"], Value::Null);
    // The progress that finalize reported is not among the lines that count.
    let tail = run["error"]["log_tail"].as_array().unwrap();
    assert!(tail.iter().all(|line| !line.as_str().unwrap().contains("stage:")), "{tail:#?}");
    assert!(!text.contains("Completed stage"), "{text}");
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

    // The session contains everything the report needs.
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
