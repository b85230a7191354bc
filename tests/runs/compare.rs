//! `qnnscope compare` and `recommend` on real runs: recorded sessions, printed documents, and files that are
//! neither.

#![cfg(target_os = "linux")]

use crate::support::{Done, Qnnscope, demo_float, demo_int8, model_library, number, repo, runtime_247};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn schema(name: &str) -> Validator {
    let schema: Value = serde_json::from_slice(&std::fs::read(repo("docs").join(name)).unwrap()).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

#[track_caller]
fn fits(validator: &Validator, document: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Runs a model, and stores its result as `NAME.json` and its session as `NAME.jsonl` in `dir`.
fn run(dir: &Path, name: &str, model: &Path, flags: &str) -> (PathBuf, PathBuf) {
    let session = dir.join(format!("{name}.jsonl"));
    // Tests that are not about launches use a single one.
    let launches = if flags.contains("--launches") || flags.contains("--interleave") { "" } else { "--launches 1" };
    let done = Qnnscope::on(&runtime_247())
        .arg("--device=local")
        .arg("run")
        .arg(model)
        .arg("--record")
        .arg(&session)
        .flags("--json --warmup 1 --profiling-iterations 5")
        .flags(flags)
        .flags(launches)
        // The CPU backend spins on every core: on a loaded machine an inference may take a second.
        .within(Duration::from_secs(240))
        .finish();
    assert!(done.code() <= 1, "{}", done.stderr);
    let result = dir.join(format!("{name}.json"));
    std::fs::write(&result, &done.stdout).unwrap();
    (result, session)
}

fn compare(files: &[&Path], flags: &str) -> Done {
    Qnnscope::without_runtime().arg("compare").args(files).flags(flags).finish()
}

#[track_caller]
fn compared(files: &[&Path], flags: &str) -> Value {
    let document = compare(files, &format!("--json {flags}")).expect(0).json();
    fits(&schema("compare.schema.json"), &document);
    document
}

#[track_caller]
fn row<'a>(document: &'a Value, id: &str) -> &'a Value {
    let rows = document["rows"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("no row {id}"))
}

#[track_caller]
fn is_text(done: &Done) -> String {
    let text = done.text();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    text
}

#[test]
fn float_against_quantised_by_sessions_and_by_results() {
    let dir = tempfile::tempdir().unwrap();
    let input = format!("--input image={}", repo("demo/reference/input-1x64x64x3-f32.raw").display());
    let out = |name: &str| format!("{input} -n 30 --launches 3 --save-outputs {}", dir.path().join(name).display());
    let (float, float_session) = run(dir.path(), "float", &demo_float(), &out("out-float"));
    let (quantised, quantised_session) = run(dir.path(), "int8", &demo_int8(), &out("out-int8"));
    let document = compared(&[&float, &quantised], "");
    assert_eq!((&document["baseline"], &document["columns"][0]["status"]), (&json!(0), &json!("ok")));
    let ids: Vec<&str> =
        document["mismatches"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["model"]);

    // Which one is faster depends on the machine and its load, but verdict, interval and mark agree on any
    // machine.
    for (id, lower_is_better) in [("p50_us", true), ("throughput_ips", false), ("jitter_us", true)] {
        let cells = &row(&document, id)["cells"];
        let difference = &cells[1]["difference"];
        if difference["ci95"].is_null() {
            // Other processes used so much of the machine that no difference can be established.
            assert!(difference["verdict"] == "unknown" && difference["no_interval"].is_string(), "{id} {difference}");
            continue;
        }
        let (low, high) = (number(&difference["ci95"][0]), number(&difference["ci95"][1]));
        let relative = number(&cells[1]["value"]) / number(&cells[0]["value"]) - 1.0;
        assert!(low <= high && (number(&difference["relative"]) - relative).abs() < 1e-9, "{id} {difference}");
        // With few launches, they must also not overlap, whatever their interval says.
        let overlap = difference["verdict"] == "within_noise";
        let expected = match (low > 0.0, high < 0.0) {
            (false, false) => "within_noise",
            _ if overlap => "within_noise",
            (more, _) if more == lower_is_better => "worse",
            _ => "better",
        };
        assert_eq!(difference["verdict"], expected, "{id} {difference}");
        let best = [&cells[0]["best"], &cells[1]["best"]].map(|best| best.as_bool().unwrap());
        assert_eq!(best, [expected == "worse", expected == "better"], "{id} {cells}");
    }
    assert_eq!(row(&document, "load_us")["cells"][1]["difference"]["verdict"], "unknown");

    let accuracy = &document["columns"][1]["accuracy"];
    assert!(number(&accuracy["cosine"]) > 0.99, "{accuracy}");
    assert!(number(&accuracy["sqnr_db"]) > 10.0 && number(&accuracy["max_abs_error"]) > 0.0, "{accuracy}");
    assert_eq!(accuracy["top1"], 1.0);
    assert_eq!(accuracy["outputs"][0]["elements"], 10);

    // Each convolution of one model is matched in the other, though converters number them differently; no
    // time is lost.
    let layers = document["layers"].as_array().unwrap();
    assert!(layers.iter().all(|layer| layer["cells"].as_array().unwrap().iter().all(|cell| cell["ops"] != json!([]))));
    for (column, file) in [(0, &float), (1, &quantised)] {
        let result: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let ops = result["runs"][0]["ops"].as_array().unwrap();
        let own: f64 = ops.iter().filter_map(|op| op["scaled_us"].as_f64()).sum();
        let shown: f64 = layers.iter().filter_map(|layer| layer["cells"][column]["time_us"].as_f64()).sum();
        assert!((own / shown - 1.0).abs() < 1e-9, "{own} {shown}");
    }
    let fused = layers.iter().find(|layer| layer["name"].as_str().unwrap().starts_with("stem_conv")).unwrap();
    assert_eq!(fused["fused"], json!(["stem_relu"]), "the quantised run has no time of its own for it");

    // Sessions show the same as results, and the two can be compared with each other.
    let from_sessions = compared(&[&float_session, &quantised_session], "");
    for id in ["p50_us", "throughput_ips", "memory_peak_bytes", "finalize_us"] {
        for column in 0..2 {
            let value = |document: &Value| number(&row(document, id)["cells"][column]["value"]);
            assert!((value(&document) / value(&from_sessions) - 1.0).abs() < 1e-9, "{id}");
        }
    }
    assert_eq!(document["layers"].as_array().unwrap().len(), from_sessions["layers"].as_array().unwrap().len());
    assert_eq!(from_sessions["columns"][1]["accuracy"], *accuracy);
    let mixed = compared(&[&quantised_session, &quantised], "");
    assert_eq!(mixed["mismatches"][0]["id"], "same_run");
    assert_eq!(mixed["recommendation"], json!(null), "one run leaves nothing to choose");
    let three = compared(&[&float, &quantised, &quantised_session], "");
    let twice = three["recommendation"]["candidates"].as_array().unwrap();
    assert_eq!(twice.len(), 3);
    if three["recommendation"]["column"] == 1 {
        let summary = three["recommendation"]["summary"].as_str().unwrap();
        assert!(summary.contains("column 3 is not told apart"), "{summary}");
    }
    assert_eq!(row(&mixed, "p50_us")["cells"][1]["difference"]["verdict"], "within_noise");
    assert_eq!(row(&mixed, "p50_us")["cells"][1]["best"], false);

    // The text fits the terminal's width, and says the same as the document.
    let text = is_text(&compare(&[&float, &quantised, &float_session], "").expect(0));
    for part in [
        "3 runs",
        "p50",
        "30 inferences in 3 launches",
        "within noise",
        "cosine similarity",
        "_token_",
        "which backend?",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(text.contains("95 % intervals of launches"), "{text}");
    is_text(&compare(&[&float, &quantised, &float_session, &quantised_session, &float], "--layers 3").expect(0));
    let turned = compared(&[&float, &quantised], "--baseline 2 --layers 4 --sort winners");
    let absolute =
        |document: &Value, column: usize| number(&row(document, "p50_us")["cells"][column]["difference"]["absolute"]);
    assert!((absolute(&turned, 0) + absolute(&document, 1)).abs() < 1e-6);
    assert_eq!(turned["layers"].as_array().unwrap().len(), 4);
    let gain = |layer: usize| number(&turned["layers"][layer]["cells"][0]["difference_us"]);
    assert!(gain(0) <= gain(1) && gain(1) <= gain(2) && gain(2) <= gain(3));

    // Without its files there is no accuracy, and the document says why.
    std::fs::remove_dir_all(dir.path().join("out-int8")).unwrap();
    let document = compared(&[&float, &quantised], "");
    assert_eq!(document["columns"][1]["accuracy"], json!(null));
    assert!(document["columns"][1]["no_accuracy"].as_str().unwrap().contains("cannot read"));

    // A result of an older version has no latencies: its figures have no intervals, and the document says so.
    let mut old: Value = serde_json::from_slice(&std::fs::read(&float).unwrap()).unwrap();
    old.as_object_mut().unwrap().remove("recommendation");
    let run = old["runs"][0].as_object_mut().unwrap();
    run.remove("counters");
    for newer in ["series", "launches", "between_launches"] {
        run["latency_us"].as_object_mut().unwrap().remove(newer);
    }
    run["inputs"][0].as_object_mut().unwrap().remove("sha256");
    run["ops"].as_array_mut().unwrap().iter_mut().for_each(|op| drop(op.as_object_mut().unwrap().remove("producer")));
    let old_file = dir.path().join("old.json");
    std::fs::write(&old_file, old.to_string()).unwrap();
    let document = compared(&[&old_file, &quantised], "");
    let p50 = &row(&document, "p50_us")["cells"][1]["difference"];
    assert_eq!((&p50["ci95"], &p50["verdict"]), (&json!(null), &json!("unknown")));
    assert!(p50["no_interval"].as_str().unwrap().contains("one launch"));
    assert_eq!(document["columns"][0]["notes"].as_array().unwrap().len(), 2);
    assert!(is_text(&compare(&[&old_file, &quantised], "").expect(0)).contains("no single latencies"));
}

#[test]
fn one_launch_is_not_known_and_runs_of_the_same_thing_are_launches_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> =
        ["one", "two", "three"].map(|name| run(dir.path(), name, &demo_float(), "-b cpu -n 30").0).to_vec();
    let (other, _) = run(dir.path(), "other", &demo_int8(), "-b cpu -n 30");
    let [one, two, three] = files.as_slice() else { panic!() };
    // The quantised model takes many times as long here; still, nothing is known about the next launch of
    // either.
    let alone = compared(&[one, &other], "");
    let p50 = &row(&alone, "p50_us")["cells"][1]["difference"];
    assert_eq!((&p50["verdict"], &p50["ci95"]), (&json!("unknown"), &json!(null)));
    assert!(p50["no_interval"].as_str().unwrap().contains("one launch"), "{p50}");
    assert!(p50["within_ci95"].is_array(), "{p50}");
    assert_eq!(alone["columns"][0]["launches"], 1);
    let text = is_text(&compare(&[one, &other], "").expect(0));
    assert!(text.contains("unknown: one launch") && text.contains("--pool"), "{text}");

    let pooled = compared(&[one, two, three, &other], "--pool");
    let launches: Vec<&Value> =
        pooled["columns"].as_array().unwrap().iter().map(|column| &column["launches"]).collect();
    assert_eq!(launches, [&json!(3), &json!(1)]);
    assert_eq!(pooled["columns"][0]["inferences"], 90);
    assert!(pooled["columns"][0]["notes"].to_string().contains("three.json"), "{}", pooled["columns"][0]);
    // A file that appears twice is not a second launch, and one with a different warm-up is something else.
    assert_eq!(compared(&[one, two, one], "--pool")["columns"].as_array().unwrap().len(), 2);
    let error = compare(&[one, two], "--pool").expect(2).stderr;
    assert!(error.contains("a comparison needs two runs"), "{error}");
}

#[test]
fn two_backends_in_one_file_and_a_simulated_one_never_wins() {
    let dir = tempfile::tempdir().unwrap();
    let flags = format!("-b htp,cpu,gpu -n 20 --save-outputs {}", dir.path().join("out").display());
    let (result, session) = run(dir.path(), "both", &demo_float(), &flags);
    for file in [&result, &session] {
        let document = compared(&[file], "");
        let columns = document["columns"].as_array().unwrap();
        assert_eq!(columns.len(), 3);
        assert_eq!(columns[0]["origin"], format!("{}#1", file.display()));
        assert_eq!((&columns[0]["simulated"], &columns[2]["status"]), (&json!(true), &json!("failed")));
        assert!(document["mismatches"].as_array().unwrap().iter().any(|row| row["id"] == "simulated"));
        for row in document["rows"].as_array().unwrap() {
            let is_accuracy = ["cosine", "sqnr_db", "max_abs_error", "top1_agreement", "top5_agreement"];
            if !is_accuracy.contains(&row["id"].as_str().unwrap()) {
                assert_eq!(row["cells"][0]["best"], false, "{row}");
            }
        }
        assert_eq!(row(&document, "p50_us")["cells"][1]["difference"]["verdict"], "not_comparable");
        // One run's cycles and the other's microseconds are in one table, and the derived ones are marked.
        assert_eq!((&columns[0]["op_time_derived"], &columns[1]["op_time_derived"]), (&json!(true), &json!(false)));
        assert!(
            document["layers"].as_array().unwrap().iter().any(|layer| !layer["cells"][1]["difference_us"].is_null())
        );
        assert!(number(&columns[1]["accuracy"]["cosine"]) > 0.99);
        let recommendation = &document["recommendation"];
        assert_eq!((&recommendation["backend"], &recommendation["column"]), (&json!("cpu"), &json!(1)));
        let wanted = recommendation["to_measure"].to_string();
        assert!(wanted.contains("simulated"), "{wanted}");
    }
    // The result document says the same about the backends as the comparison does.
    let own: Value = serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap();
    assert_eq!(own["recommendation"]["backend"], "cpu");
    assert_eq!(own["recommendation"]["candidates"].as_array().unwrap().len(), 3);

    let pick = |run: &str| PathBuf::from(format!("{}#{run}", result.display()));
    let document = compared(&[&pick("cpu"), &pick("1")], "");
    assert_eq!(document["columns"][0]["backend"], "cpu");
    assert_eq!(document["columns"][1]["backend"], "htp");
    let text = is_text(&compare(&[&result], "").expect(0));
    // Without a real run, the graph decides, whether its facts come from a session or from a document.
    let failed = [&result, &session].map(|file| {
        let pick = |run: &str| PathBuf::from(format!("{}#{run}", file.display()));
        compared(&[&pick("htp"), &pick("gpu")], "")["recommendation"].clone()
    });
    assert_eq!((&failed[0]["basis"], &failed[0]), (&json!("graph"), &failed[1]));
    assert!(text.contains("[simulated]") && text.contains("FAILED") && text.contains("derived from cycles"), "{text}");
    let tight = compared(&[&result], "--latency-budget-ms 0.001 --max-memory-mb 1");
    assert_eq!(tight["recommendation"]["backend"], json!(null));
    let cpu = tight["recommendation"]["candidates"].as_array().unwrap().iter().find(|row| row["backend"] == "cpu");
    let met: Vec<&Value> = cpu.unwrap()["constraints"].as_array().unwrap().iter().map(|check| &check["met"]).collect();
    assert_eq!(met, [&json!(false), &json!(false)]);
    assert!(tight["recommendation"]["to_measure"].to_string().contains("simulated"), "{tight:#}");
    let odd = compared(&[&result], "--latency-budget-ms 90000 --latency-percentile 75 --max-memory-mb 0.5");
    let odd =
        odd["recommendation"]["candidates"].as_array().unwrap().iter().find(|row| row["backend"] == "cpu").cloned();
    let texts = odd.unwrap()["constraints"].to_string();
    assert!(texts.contains("p75 ") && texts.contains("limit of 512 KiB"), "{texts}");
    assert!(compare(&[&result], "--latency-percentile 75").code() == 2);
    for (run, part) in [("7", "no run `7`"), ("dsp", "1 (htp), 2 (cpu), 3 (gpu)"), ("0", "no run `0`")] {
        let done = compare(&[&pick(run)], "").expect(2);
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
    let done = compare(&[&pick("1")], "").expect(2);
    assert!(done.stderr.contains("a comparison needs two runs"), "{}", done.stderr);
    assert!(compare(&[&result], "--baseline 9").expect(2).stderr.contains("there are 3 runs"));

    // A truncated or damaged session is used as far as it goes.
    let lines: Vec<String> =
        std::fs::read_to_string(&session).unwrap().lines().map(|line| format!("{line}\n")).collect();
    let cut = dir.path().join("cut.jsonl");
    let whole = lines[..lines.len() - 3].concat();
    std::fs::write(&cut, &whole[..whole.len() - 5]).unwrap();
    let document = compared(&[&cut, &result], "");
    assert!(document["columns"][2]["notes"].to_string().contains("cut off"), "{}", document["columns"]);
    assert_eq!(document["columns"][2]["status"], "failed", "a run without an end");
    let mut damaged = lines.clone();
    let at = lines.len() * 9 / 10;
    damaged[at] = "{\"seq\": oops\n".to_owned();
    std::fs::write(&cut, damaged.concat()).unwrap();
    let document = compared(&[&cut, &result], "");
    assert!(
        document["columns"].to_string().contains(&format!("damaged at line {}", at + 1)),
        "{}",
        document["columns"]
    );
}

#[test]
fn a_paced_run_is_compared_by_its_inferences_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (paced, paced_session) = run(dir.path(), "paced", &demo_float(), "-b cpu -n 25 --rate 40");
    let (tight, tight_session) = run(dir.path(), "tight", &demo_float(), "-b cpu -n 25");
    let by_file = compared(&[&paced, &tight], "");
    assert_eq!(by_file["method"]["latencies"], "inferences_alone");
    assert_eq!((&by_file["columns"][0]["rate_hz"], &by_file["columns"][1]["rate_hz"]), (&json!(40.0), &json!(null)));
    assert_eq!(by_file["mismatches"][0]["id"], "rate");
    let document: Value = serde_json::from_slice(&std::fs::read(&paced).unwrap()).unwrap();
    let pace = &document["runs"][0]["pace"];
    assert_eq!(row(&by_file, "p50_us")["cells"][0]["value"], pace["service_us"]["p50"]);
    assert_eq!(pace["service_series"]["values"].as_array().unwrap().len(), 25);
    let throughput = &row(&by_file, "throughput_ips")["cells"];
    assert_eq!((&throughput[1]["best"], &throughput[1]["difference"]["verdict"]), (&json!(false), &json!("unknown")));
    assert_eq!(by_file["recommendation"], json!(null));
    let by_session = compared(&[&paced_session, &tight_session], "");
    for id in ["p50_us", "jitter_us", "throughput_ips"] {
        let figures = [&by_file, &by_session].map(|document| number(&row(document, id)["cells"][0]["value"]));
        assert!((figures[0] / figures[1] - 1.0).abs() < 1e-9, "{id} {figures:?}");
        assert_eq!(
            row(&by_file, id)["cells"][1]["difference"]["verdict"],
            row(&by_session, id)["cells"][1]["difference"]["verdict"]
        );
    }
    let text = is_text(&compare(&[&paced, &tight], "").expect(0));
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("! 2 ran back to back, 1 was paced at 40/s"), "{text}");
}

#[test]
fn rounds_and_rates_of_one_backend_are_no_choice_and_rounds_of_two_are_two_candidates() {
    let dir = tempfile::tempdir().unwrap();
    for (name, flags) in [("turns", "-b cpu,cpu --interleave 2 -n 10"), ("sweep", "-b cpu --rate-sweep 40,max -n 6")] {
        let (result, session) = run(dir.path(), name, &demo_float(), flags);
        let own: Value = serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap();
        assert_eq!(own["recommendation"], json!(null), "{name}");
        for file in [&result, &session] {
            assert_eq!(compared(&[file], "")["recommendation"], json!(null), "{name}");
        }
    }
    let flags = "-b htp,cpu --interleave 2 -n 10 --latency-budget-ms 90000";
    let (result, session) = run(dir.path(), "both", &demo_float(), flags);
    let own: Value = serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap();
    let candidates = own["recommendation"]["candidates"].as_array().unwrap();
    assert_eq!((candidates.len(), &candidates[0]["column"]), (2, &json!(1)));
    // The recommendation compares the same percentile with the budget as the findings of the runs do.
    assert!(candidates[0]["constraints"][0]["text"].as_str().unwrap().starts_with("p90 "), "{candidates:#?}");
    let finding = own["runs"][1]["findings"].as_array().unwrap().iter().find(|row| row["id"] == "constraint.latency");
    assert!(finding.unwrap()["title"].as_str().unwrap().contains("at p90: met"), "{own:#}");
    let said = [&result, &session].map(|file| compared(&[file], "--latency-budget-ms 90000")["recommendation"].clone());
    assert_eq!((&said[0], &said[1]), (&own["recommendation"], &own["recommendation"]));
}

#[test]
fn models_that_have_nothing_in_common_and_ops_that_a_backend_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let small = model_library(dir.path(), "small_graph.c", &[]);
    let odd = model_library(dir.path(), "small_graph.c", &["OP_TYPE=\"Frobnicate\""]);
    let (small, _) = run(dir.path(), "small", &small, "-n 25");
    let (demo, _) = run(dir.path(), "demo", &demo_float(), "-n 25");
    let (_, odd) = run(dir.path(), "odd", &odd, "-n 25");
    let document = compared(&[&small, &demo, &odd], "");
    assert!(document["mismatches"].as_array().unwrap().iter().any(|row| row["id"] == "model" && row["column"] == 1));
    let alone = document["layers"].as_array().unwrap().iter().filter(|layer| layer["matched"] == "alone").count();
    assert!(alone > 30, "{alone}");
    let refused = &document["refused_ops"][0];
    assert_eq!(refused["column"], 2, "{}", document["columns"][2]);
    assert!(!refused["op"].as_str().unwrap().is_empty());
    let text = is_text(&compare(&[&small, &demo, &odd], "").expect(0));
    assert!(text.contains("cannot run op"), "{text}");
}

#[test]
fn what_is_no_result_and_no_session_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let header = r#"{"seq":0,"t_us":0,"event":{"session_started":{"schema":"qnnscope.session/1","tool_version":"0","epoch_us":0,"monotonic_us":0,"host":"h"}}}"#;
    let nul = String::from_utf8(vec![0; 5000]).unwrap();
    for (path, part) in [
        (dir.path().join("none.json"), "No such file"),
        (dir.path().to_owned(), "a folder, not a file"),
        (file("empty", ""), "is empty; give"),
        (file("text", "hello\n"), "neither a result document nor a session"),
        (file("nul", &nul), "neither a result document nor a session"),
        (file("other", r#"{"schema": "qnnscope.result/2", "runs": []}"#), "`qnnscope.result/2`"),
        (file("escape", "{\"schema\": \"\\u001b[31mred\", \"runs\": []}"), "[31mred"),
        (file("bare", "{}"), "no `schema`"),
        (file("array", "[1, 2]"), "neither a result document nor a session"),
        (file("list", "[]"), "--record NAME.jsonl"),
        (file("typo", "{\"schema\" 1}"), "not a JSON document: expected"),
        (demo_float(), "run the model first"),
        (file("odd", r#"{"schema": "qnnscope.result/1", "runs": 7}"#), "not a complete"),
        (file("half", r#"{"schema": "qnnscope.result/1", "runs": ["#), "is truncated"),
        (file("norun", r#"{"schema": "qnnscope.result/1", "runs": []}"#), "no run"),
        (file("idle.jsonl", &format!("{header}\n")), "no run"),
        (file("new.jsonl", &header.replace("session/1", "session/9")), "session/9"),
    ] {
        let done = compare(&[&path], "").expect(2);
        assert!(done.stderr.contains(part), "{}: {}", path.display(), done.stderr);
        assert!(!done.stderr.contains('\x1b') && done.stdout.is_empty(), "{}", done.stderr);
    }
    assert!(compare(&[], "").code() == 2);
    assert!(compare(&[&dir.path().join("x")], "--sort colour").expect(2).stderr.contains("winners"));
}

#[test]
fn a_graph_alone_speaks_for_a_backend() {
    let validator = schema("recommend.schema.json");
    let recommend = |model: &Path, flags: &str| {
        Qnnscope::on(&runtime_247()).args(["--device=local", "recommend"]).arg(model).flags(flags).finish()
    };
    let answer = |model: &Path, flags: &str| {
        let document = recommend(model, &format!("--json {flags}")).expect(0).json();
        fits(&validator, &document);
        assert_eq!(document["recommendation"]["basis"], "graph");
        document
    };
    let quantised = answer(&demo_int8(), "--soc SM8650");
    assert_eq!((&quantised["recommendation"]["backend"], &quantised["soc"]), (&json!("htp"), &json!("SM8650")));
    assert_eq!((&quantised["graph"]["arithmetic"], &quantised["graph"]["ops"]), (&json!("int8"), &json!(59)));
    // 8s Gen 3 has a v73 HTP without float support.
    let float = answer(&demo_float(), "--soc SM8635");
    assert_eq!(float["recommendation"]["backend"], "gpu");
    assert_eq!(answer(&demo_float(), "--soc 57")["soc"], "SM8650");
    let lean = answer(&demo_float(), "--max-memory-mb 1 --latency-budget-ms 5");
    assert_eq!(lean["recommendation"]["candidates"][0]["constraints"].as_array().unwrap().len(), 2);
    let text = is_text(&recommend(&demo_int8(), "").expect(0));
    assert!(text.contains("nothing was measured") && text.contains("--soc"), "{text}");
    assert!(recommend(&demo_int8(), "--soc SM9999").expect(2).stderr.contains("unknown SoC"));
    assert!(recommend(&demo_int8(), "--graph nope").expect(2).stderr.contains("no such graph"));
    // Backends available here are asked about each op.
    let said = |document: &Value, backend: &str| {
        let candidates = document["recommendation"]["candidates"].as_array().unwrap();
        candidates.iter().find(|candidate| candidate["backend"] == backend).unwrap().clone()
    };
    // There are no GPU libraries for x86_64: not having been asked counts against the GPU, not for it.
    let open = answer(&demo_float(), "");
    assert_eq!(open["recommendation"]["backend"], "htp", "{open:#}");
    assert!(said(&open, "gpu")["reasons"].to_string().contains("op support is unknown"), "{open:#}");
    assert!(open["recommendation"]["would_change"].to_string().contains("that gpu refuses"), "{open:#}");
    assert!(said(&quantised, "htp")["reasons"].to_string().contains("accepts all 59 ops on SM8650"), "{quantised:#}");
    let dir = tempfile::tempdir().unwrap();
    let odd = answer(&model_library(dir.path(), "odd_graph.c", &["RANK6"]), "");
    let (htp, refusal) = (said(&odd, "htp"), "refuses 1 of ");
    assert!(htp["eligible"] == false && htp["reasons"].to_string().contains(refusal), "{odd:#}");
    recommend(&repo("README.md"), "").expect(2);
    recommend(&demo_int8(), "--power-critical --latency-critical").expect(2);
}
