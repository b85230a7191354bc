//! The published schemas match what the program prints, and reject what it never prints.

#![cfg(target_os = "linux")]

use crate::support::schema::{self, fits};
use crate::support::{Qnnscope, context_binary, demo_float, demo_int8, model_library, repo, runtime_247, runtime_251};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::sync::LazyLock;

static RESULT: LazyLock<Validator> = LazyLock::new(|| schema::read("result.schema.json"));
static INSPECT: LazyLock<Validator> = LazyLock::new(|| schema::read("inspect.schema.json"));

fn ok_document() -> Value {
    Qnnscope::on(&runtime_247())
        .run_json(&demo_int8(), "--backend cpu,htp -n 20 --profiling-iterations 5 --vtcm-mb 4 --perf-profile burst")
        .expect(0)
        .json()
}

#[test]
fn results_fit_their_schema() {
    fits(&RESULT, &ok_document());
    let failed = Qnnscope::on(&runtime_251()).run_json(&demo_int8(), "-n 5").expect(3).json();
    fits(&RESULT, &failed);
    let failed =
        Qnnscope::on(&runtime_247()).run_json(&demo_int8(), "--backend gpu,cpu -n 1 --profiling off").expect(1).json();
    fits(&RESULT, &failed);

    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("binary");
    std::fs::write(&binary, context_binary("2.3.0", "htp", &demo_int8(), Some(57))).unwrap();
    fits(&RESULT, &Qnnscope::on(&runtime_247()).run_json(&binary, "--backend htp -n 5").expect(0).json());
    fits(&RESULT, &Qnnscope::on(&runtime_247()).run_json(&binary, "-n 5").expect(1).json());

    let crash = model_library(dir.path(), "small_graph.c", &["BEHAVIOUR=segfault"]);
    fits(&RESULT, &Qnnscope::on(&runtime_247()).run_json(&crash, "-n 5").expect(1).json());
    fits(
        &RESULT,
        &Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-n 1 --warmup 0 --save-outputs out").expect(0).json(),
    );
}

/// Documents of the measurement modes, whose parts a plain run's document lacks.
fn documents_of_modes() -> [Value; 2] {
    let run = |flags: &str| Qnnscope::on(&runtime_247()).run_json(&demo_int8(), flags).expect(0).json();
    [
        run("-b cpu --profiling off --warmup 0 --rate 50 --sustained 1s --latency-budget-ms 5 --max-memory-mb 500"),
        run("-b htp --profiling off --warmup 0 --interleave 2 --like aihub --published-ms 1 --cool-down=100ms"),
    ]
}

#[test]
fn ways_of_measuring_fit_the_schema_and_their_objects_are_closed() {
    for document in documents_of_modes() {
        fits(&RESULT, &document);
        keys_are_fixed(&RESULT, &document);
    }
    let sweep =
        Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-b cpu --profiling off -n 4 --rate-sweep 100,max");
    let sweep = sweep.expect(0).json();
    fits(&RESULT, &sweep);
    keys_are_fixed(&RESULT, &sweep);
}

/// The document with the value at a JSON pointer replaced, or removed if `None`.
fn changed(document: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut copy = document.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = copy.pointer_mut(parent).unwrap_or_else(|| panic!("no {pointer}"));
    match (parent, value) {
        (Value::Object(map), Some(value)) => drop(map.insert(key.to_owned(), value)),
        (Value::Object(map), None) => drop(map.remove(key).unwrap_or_else(|| panic!("no {pointer}"))),
        (Value::Array(rows), Some(value)) => rows[key.parse::<usize>().unwrap()] = value,
        _ => panic!("{pointer} cannot be changed"),
    }
    copy
}

/// Every object in a document, as JSON pointers.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.push(at.to_owned());
            map.iter().for_each(|(key, value)| objects(value, &format!("{at}/{key}"), found));
        }
        Value::Array(rows) => {
            // The first and the last row represent all.
            let ends = [rows.first().map(|row| (0, row)), rows.last().map(|row| (rows.len() - 1, row))];
            ends.into_iter().flatten().for_each(|(i, row)| objects(row, &format!("{at}/{i}"), found));
        }
        _ => {}
    }
}

/// Places whose keys are arbitrary: op parameters, and the maps by stage and by backend.
fn is_free(pointer: &str) -> bool {
    pointer.contains("/params")
        || pointer.ends_with("/clocks_mhz")
        || pointer.ends_with("/results")
        || pointer.ends_with("/stages_us")
        || pointer.ends_with("/stage_rss_delta_bytes")
}

/// Checks that no object may lack a key or have an extra one.
fn keys_are_fixed(validator: &Validator, document: &Value) {
    let mut places = Vec::new();
    objects(document, "", &mut places);
    for place in places.iter().filter(|place| !is_free(place)) {
        let more = changed(document, &format!("{place}/surprise"), Some(json!(1)));
        assert!(!validator.is_valid(&more), "one more key in {place}");
        for key in document.pointer(place).unwrap().as_object().unwrap().keys() {
            let less = changed(document, &format!("{place}/{key}"), None);
            assert!(!validator.is_valid(&less), "{place} without {key}");
            let odd = changed(document, &format!("{place}/{key}"), Some(json!({"surprise": [[true]]})));
            assert!(!validator.is_valid(&odd) || key == "params", "an odd value for {place}/{key}");
        }
    }
}

#[test]
fn the_result_schema_refuses_other_documents() {
    let document = ok_document();
    keys_are_fixed(&RESULT, &document);
    for (pointer, value) in [
        ("/schema", json!("qnnscope.result/2")),
        ("/runs/0/status", json!("maybe")),
        ("/runs/0/status", json!("failed")),
        ("/runs/0/backend", json!("dsp")),
        ("/runs/0/simulated", json!("yes")),
        ("/runs/0/latency_us/p50", json!("fast")),
        ("/runs/0/latency_us/mean", json!(-1)),
        ("/runs/0/latency_us/samples", json!(1.5)),
        ("/runs/0/latency_us/ci95/p50", json!([1])),
        ("/runs/0/latency_us/ci95/p50", json!([1, 2, 3])),
        ("/runs/0/stages_us/brew_coffee", json!(1)),
        ("/runs/0/stages_us/compose", json!(null)),
        ("/runs/0/ops/0/share", json!(1.5)),
        ("/runs/0/ops/0/type", json!(7)),
        ("/runs/1/settings/0/outcome", json!("ignored")),
        ("/runs/1/sub_stages/0/stage", json!("lunch")),
        ("/runs/0/profiling/level", json!("full")),
        ("/model/format", json!("caffe")),
        ("/model/sha256", json!("abc")),
        ("/model/inputs/0/quantization/encoding", json!("magic")),
        ("/model/inputs/0/dtype", json!("a float")),
        ("/started_at", json!("yesterday")),
        ("/runs", json!({})),
    ] {
        assert!(!RESULT.is_valid(&changed(&document, pointer, Some(value.clone()))), "{pointer} = {value}");
    }
    let settings = document["runs"][1]["settings"].as_array().unwrap();
    for (index, setting) in settings.iter().enumerate() {
        let reason = if setting["reason"].is_null() { json!("why") } else { json!(null) };
        let pointer = format!("/runs/1/settings/{index}/reason");
        assert!(!RESULT.is_valid(&changed(&document, &pointer, Some(reason))), "{setting} with another reason");
    }
}

#[test]
fn a_failed_run_must_say_why() {
    let failed = Qnnscope::on(&runtime_247()).run_json(&demo_int8(), "--backend gpu -n 1").expect(1).json();
    keys_are_fixed(&RESULT, &failed);
    let dir = tempfile::tempdir().unwrap();
    let odd = model_library(dir.path(), "odd_graph.c", &["RANK6", "ASKS"]);
    let refused = Qnnscope::on(&runtime_247()).run_json(&odd, "--backend htp -n 1").expect(1).json();
    assert!(refused["runs"][0]["error"]["op"]["tensor"].is_object(), "{refused:#}");
    keys_are_fixed(&RESULT, &refused);
    for (pointer, value) in [
        ("/runs/0/error", json!(null)),
        ("/runs/0/status", json!("ok")),
        ("/runs/0/error/stage", json!("lunch")),
        ("/runs/0/error/message", json!("")),
        ("/runs/0/error/code", json!("4000")),
        ("/runs/0/error/log_tail", json!("text")),
    ] {
        assert!(!RESULT.is_valid(&changed(&failed, pointer, Some(value.clone()))), "{pointer} = {value}");
    }
}

#[test]
fn inspections_fit_their_schema() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), "small_graph.c", &["GRAPHS=2"]);
    let binary = dir.path().join("binary");
    std::fs::write(&binary, context_binary("2.3.0", "htp", &demo_int8(), Some(57))).unwrap();
    let cpu_binary = dir.path().join("cpu binary");
    std::fs::write(&cpu_binary, context_binary("2.3.0", "cpu", &demo_float(), None)).unwrap();
    for model in [demo_float(), demo_int8(), library, binary, cpu_binary] {
        let document = Qnnscope::on(&runtime_247()).args(["inspect", "--json"]).arg(&model).finish().expect(0).json();
        fits(&INSPECT, &document);
        keys_are_fixed(&INSPECT, &document);
        assert!(!INSPECT.is_valid(&changed(&document, "/schema", Some(json!("qnnscope.result/1")))));
        assert!(!INSPECT.is_valid(&changed(&document, "/graphs/0/op_count", Some(json!(-1)))));
    }
}

#[test]
fn the_check_schema_refuses_other_documents() {
    let dir = tempfile::tempdir().unwrap();
    let odd = model_library(dir.path(), "odd_graph.c", &["RANK6", "ENCODINGS"]);
    let binary = dir.path().join("binary");
    std::fs::write(&binary, context_binary("2.7.0", "htp", &demo_int8(), Some(57))).unwrap();
    let validator = schema::read("check.schema.json");
    for (model, flags) in [(&odd, "--backend htp,gpu"), (&demo_int8(), "--backend cpu,htp"), (&binary, "")] {
        let status = if flags.contains("cpu") { 0 } else { 1 };
        let done = Qnnscope::on(&runtime_247()).args(["check", "--json"]).arg(model).flags(flags).finish();
        let document = done.expect(status).json();
        fits(&validator, &document);
        keys_are_fixed(&validator, &document);
        for (pointer, value) in [
            ("/schema", json!("qnnscope.check/2")),
            ("/ok", json!("yes")),
            ("/backends/0/state", json!("maybe")),
            ("/compile/0/ok", json!("yes")),
            ("/compile/0/vtcm_bytes", json!(-1)),
        ] {
            assert!(!validator.is_valid(&changed(&document, pointer, Some(value.clone()))), "{pointer} = {value}");
        }
        if let Some(op) = document["ops"].get(0) {
            let ok = op["results"]["htp"]["ok"].as_bool().unwrap();
            let other = changed(&document, "/ops/0/results/htp/ok", Some(json!(!ok)));
            assert!(!validator.is_valid(&other), "a refusal has a reason, and nothing else has");
            assert!(!validator.is_valid(&changed(&document, "/ops/0/results/dsp", Some(json!({})))));
        }
    }
}

#[test]
fn every_property_is_described_and_every_object_closed() {
    for name in [
        "result.schema.json",
        "inspect.schema.json",
        "check.schema.json",
        "compare.schema.json",
        "bench-check.schema.json",
        "recommend.schema.json",
    ] {
        let schema: Value = serde_json::from_slice(&std::fs::read(repo("docs").join(name)).unwrap()).unwrap();
        let mut places = Vec::new();
        every_schema(&schema, "", &mut places);
        assert!(places.len() > 20);
        for (at, schema) in places {
            let text = schema["description"].as_str().unwrap_or_default();
            assert!(text.ends_with('.') && text.len() > 4, "{name} {at} has no description");
            if schema["properties"].is_object() {
                assert_eq!(schema["additionalProperties"], false, "{name} {at} is open");
            }
        }
    }
}

/// The schema itself and that of every property, at whatever depth.
fn every_schema<'a>(schema: &'a Value, at: &str, found: &mut Vec<(String, &'a Value)>) {
    if let Value::Object(map) = schema {
        for (key, value) in map {
            if matches!(key.as_str(), "if" | "then" | "else") {
                continue;
            }
            if matches!(key.as_str(), "properties" | "$defs") {
                for (name, property) in value.as_object().unwrap() {
                    found.push((format!("{at}/{key}/{name}"), property));
                }
            }
            every_schema(value, &format!("{at}/{key}"), found);
        }
    } else if let Value::Array(rows) = schema {
        rows.iter().enumerate().for_each(|(i, row)| every_schema(row, &format!("{at}/{i}"), found));
    }
}
