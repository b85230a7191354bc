//! Other tools' files, through the program: what they contain is compared, what they lack is absent, and
//! damage is reported.

#![cfg(target_os = "linux")]

use crate::support::{Done, Qnnscope, demo_int8, number, repo, runtime_247};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    let log = repo("tests/data/profile-logs").join(name);
    if log.exists() { log } else { repo("tests/data/imports").join(name) }
}

fn compare(files: &[&Path], flags: &str) -> Done {
    Qnnscope::without_runtime().arg("compare").args(files).flags(flags).finish()
}

#[track_caller]
fn compared(files: &[&Path]) -> Value {
    let document = compare(files, "--json").expect(0).json();
    crate::support::schema::fits(&crate::support::schema::read("compare.schema.json"), &document);
    document
}

#[track_caller]
fn cell(document: &Value, row: &str, column: usize) -> Value {
    let rows = document["rows"].as_array().unwrap();
    rows.iter().find(|known| known["id"] == row).map_or(Value::Null, |row| row["cells"][column]["value"].clone())
}

#[test]
fn a_cloud_job_an_apps_trace_and_a_run_of_this_machine_stand_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own.json");
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_int8(), "-b cpu -n 20 --warmup 1 --device local");
    assert_eq!(done.code(), 0, "{}", done.stderr);
    std::fs::write(&own, &done.stdout).unwrap();
    let files =
        [data("ai-hub-v1.7.json"), data("ort-profile-cpu.json"), data("etdump.etdp"), data("benchmark-model.txt"), own];
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let document = compared(&files);
    let drivers: Vec<&str> =
        document["columns"].as_array().unwrap().iter().map(|column| column["driver"].as_str().unwrap()).collect();
    assert_eq!(drivers, ["imported", "imported", "imported", "imported", "runner"]);
    // The first of the listed inferences is the first inference; the others are the rest.
    assert_eq!(cell(&document, "first_inference_us", 0), 2100.0);
    assert_eq!(number(&cell(&document, "p50_us", 0)).round(), 1240.0, "of 1300, 1240, 1234, 1260");
    assert_eq!(cell(&document, "memory_peak_bytes", 0), 52_428_800.0);
    assert_eq!(cell(&document, "load_us", 0), 900_000.0);
    // Nothing records when its inferences began, so there is no throughput; and nothing mentions energy.
    assert_eq!((cell(&document, "throughput_ips", 0), cell(&document, "energy_mj", 1)), (Value::Null, Value::Null));
    assert!(number(&cell(&document, "throughput_ips", 1)) > 0.0);
    assert_eq!(document["recommendation"], Value::Null, "other tools' figures choose no backend");
    let text = compare(&files, "").expect(0).text();
    for part in ["another tool", "AI Hub profile", "not their"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn a_profiling_log_and_the_viewers_csv_of_it_say_the_same() {
    for name in
        ["cpu-2op-20inf-detailed", "htp-2op-q8-20inf-detailed", "htp-2op-q8-20inf-basic", "cpu-2graphs-5inf-detailed"]
    {
        let (log, csv) = (data(&format!("{name}.log")), data(&format!("{name}.csv")));
        let document = compared(&[&log, &csv]);
        let columns = document["columns"].as_array().unwrap();
        let half = columns.len() / 2;
        // The viewer lists graphs in another order, so columns are matched by name.
        for (at, column) in columns[..half].iter().enumerate() {
            let same = |other: &&Value| other["model"] == column["model"];
            let to = half + columns[half..].iter().position(|other| same(&other)).expect(name);
            for row in ["p50_us", "max_us", "first_inference_us", "finalize_us", "jitter_us"] {
                assert_eq!(cell(&document, row, at), cell(&document, row, to), "{name} {row}");
            }
            assert_eq!(columns[at]["clean_level"], columns[to]["clean_level"], "{name}");
            assert_eq!(columns[at]["build_id"], columns[to]["build_id"], "{name}");
            let is_htp = name.starts_with("htp");
            assert_eq!(
                (&columns[at]["backend"], &columns[at]["simulated"]),
                (&json!(if is_htp { "htp" } else { "cpu" }), &json!(is_htp))
            );
        }
    }
}

#[test]
fn partitions_of_onnx_runtime_are_runs_of_their_own() {
    let document = compared(&[&data("ort-htp_qnn.log"), &data("ort-htp.csv")]);
    let columns = document["columns"].as_array().unwrap();
    assert_eq!(columns.len(), 4, "two partitions in each file");
    // The CSV has only the backend's times, and they are within those of the host.
    for (log, csv) in [(0, 2), (1, 3)] {
        let (host, backend) =
            (number(&cell(&document, "first_inference_us", log)), number(&cell(&document, "first_inference_us", csv)));
        assert!(backend <= host && backend > 0.9 * host, "{backend} {host}");
    }
}

#[test]
fn cycles_of_an_etdump_stay_cycles() {
    let document = compared(&[&data("etdump.etdp"), &data("inspector.tsv")]);
    assert_eq!(document["columns"][0]["op_time_derived"], true);
    let layers = document["layers"].as_array().unwrap();
    let names: Vec<&str> = layers.iter().map(|layer| layer["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("aten_relu_default")), "{names:?}");
    // Every layer is a share of the inference; taken as nanoseconds or milliseconds, the cycles would add up
    // to something else.
    let sum: f64 = layers.iter().filter_map(|layer| layer["cells"][0]["time_us"].as_f64()).sum();
    let mean = number(&cell(&document, "p50_us", 0));
    assert!((sum / mean - 1.0).abs() < 0.2, "{sum} {mean}");
}

#[test]
fn every_kind_is_known_and_says_what_it_lacks() {
    for (name, backend, runs) in [
        ("ai-hub-v0.json", "htp", 1),
        ("benchmark-model.txt", "unknown", 1),
        ("etdump.etdp", "htp", 1),
        ("genie.json", "unknown", 1),
        ("inspector.tsv", "htp", 1),
        ("inspector.txt", "unknown", 1),
        ("op-trace.json", "htp", 1),
        ("optrace.json", "htp", 1),
        ("ort-cpu.csv", "cpu", 1),
        ("ort-profile-cpu.json", "unknown", 1),
        ("perf-models.yaml", "htp", 1),
        ("perf-precisions.yaml", "unknown", 2),
        ("qhas.json", "htp", 1),
    ] {
        // Beside a file that is known to be good, so that there are two columns.
        let document = compared(&[&data(name), &data("ai-hub-v1.7.json")]);
        let columns = document["columns"].as_array().unwrap();
        assert_eq!(columns.len(), runs + 1, "{name}");
        assert_eq!(columns[0]["backend"], backend, "{name}");
    }
}

#[test]
fn what_is_damaged_is_told_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let other = data("ai-hub-v1.7.json");
    for (name, keep, part) in [
        ("ai-hub-v0.json", 600, "truncated"),
        ("etdump.etdp", 40, "damaged or truncated"),
        ("genie.json", 300, "truncated"),
        ("qhas.json", 300, "truncated"),
    ] {
        let bytes = std::fs::read(data(name)).unwrap();
        let cut = dir.path().join(name);
        std::fs::write(&cut, &bytes[..keep]).unwrap();
        let done = compare(&[&cut, &other], "");
        assert_eq!(done.code(), 2, "{name}: {}", done.stderr);
        assert!(done.stderr.contains(part) && done.stderr.contains("looks like"), "{name}: {}", done.stderr);
    }
    // A log that is still growing, and a profile whose program crashed, are used as far as they go.
    for (name, cut, part) in
        [("htp-2op-q8-20inf-detailed.log", 0, "incomplete chunk"), ("ort-profile-cpu.json", 700, "truncated")]
    {
        let bytes = std::fs::read(data(name)).unwrap();
        let path = dir.path().join(name);
        let part_of = if cut == 0 { [&bytes[..], &bytes[..100]].concat() } else { bytes[..bytes.len() - cut].to_vec() };
        std::fs::write(&path, part_of).unwrap();
        let text = compare(&[&path, &other], "").expect(0).text();
        assert!(text.contains(part), "{name}: {text}");
    }
}
