//! Imported files come out unchanged.

use super::{Imported, kinds, open};
use crate::event::{Event, Phase};
use crate::store::Store;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

fn imported(content: &[u8]) -> Imported {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, content).unwrap();
    open(&path, &path).unwrap().expect("it is of a known kind")
}

fn store(imported: &Imported) -> Store {
    let mut store = Store::new();
    imported.records.iter().for_each(|record| store.apply(record));
    store
}

#[test]
fn kinds_have_names_of_their_own() {
    let names: BTreeSet<&str> = kinds().map(|(kind, _)| kind).collect();
    assert_eq!(names.len(), kinds().count());
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/imports.md")).unwrap();
    for kind in names {
        assert!(docs.contains(&format!("| `{kind}` |")), "{kind} is not in docs/imports.md");
    }
}

#[test]
fn a_file_that_would_not_fit_into_memory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("profile.json");
    // A sparse file: only its beginning takes disk space.
    std::fs::write(
        &path,
        r#"[{"cat":"Session","pid":1,"tid":1,"dur":100,"ts":1,"ph":"X","name":"model_loading_uri","args":{}}"#,
    )
    .unwrap();
    std::fs::File::options().append(true).open(&path).unwrap().set_len((256 << 20) + 1).unwrap();
    let error = open(&path, &path).unwrap_err().to_string();
    assert!(error.contains("more than 268435456 bytes"), "{error}");
}

#[test]
fn files_of_no_known_kind_are_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    for content in ["", "hello", "{}", "[]", "{\"schema\": \"qnnscope.result/1\"}", "a,b,c\n1,2,3\n", "count=1\n"] {
        std::fs::write(&path, content).unwrap();
        assert!(open(&path, &path).unwrap().is_none(), "{content:?}");
    }
    assert!(open(dir.path(), dir.path()).unwrap().is_none(), "a folder");
    assert!(open(&dir.path().join("none"), dir.path()).is_err());
}

#[test]
fn zeros_that_mean_unknown_are_left_out() {
    let profile = json!({"execution_summary": {"estimated_inference_time": 1000, "first_load_time": 0,
        "warm_load_time": null, "compile_time": 0, "estimated_inference_peak_memory": 0, "all_inference_times": []},
        "execution_detail": [{"name": "a", "type": "Conv2d", "compute_unit": "GPU"}]});
    let store = store(&imported(profile.to_string().as_bytes()));
    let run = &store.runs()[0];
    assert!(run.stages.is_empty() && run.sub_stages.is_empty() && run.memory.rss_peak.is_none());
    assert_eq!((run.ops.inferences(), run.throughput_ips(), run.plan.backend.name()), (0, None, "gpu"));
    assert_eq!(run.metrics.iter().map(|metric| metric.name.as_str()).collect::<Vec<_>>(), ["estimated_inference_time"]);
}

#[test]
fn hostile_names_are_clean() {
    let profile = json!({"execution_summary": {"estimated_inference_time": 1},
        "execution_detail": [{"name": "\u{1b}[31m\u{202e}", "type": "x\u{9b}", "compute_unit": "NPU", "execution_time": 5}]});
    for record in imported(profile.to_string().as_bytes()).records {
        let text = serde_json::to_string(&record).unwrap();
        assert!(!text.contains("\\u001b") && !text.contains('\u{9b}') && !text.contains('\u{202e}'), "{text}");
    }
}

proptest! {
    #[test]
    fn times_of_a_cloud_job_come_back(times in prop::collection::vec(1u64..1_000_000_000, 2..200)) {
        let profile = json!({"execution_summary": {"estimated_inference_time": 7, "all_inference_times": times}});
        let imported = imported(profile.to_string().as_bytes());
        let mut found = Vec::new();
        for record in &imported.records {
            if let Event::Inferences(batch) = &record.event {
                found.extend(batch.latency_ns.iter().map(|ns| ns / 1000));
            }
        }
        prop_assert_eq!(&found, &times);
        let store = store(&imported);
        let run = &store.runs()[0];
        prop_assert_eq!(run.latency(Phase::First).count(), 1);
        prop_assert_eq!(run.clean.max_us(), times[1..].iter().max().map(|us| *us as f64));
    }

    #[test]
    fn rows_of_a_csv_come_back(values in prop::collection::vec(1u64..1_000_000, 1..40)) {
        let mut csv = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n".to_owned();
        for us in &values {
            csv.extend([format!("0,EXECUTE,{},US,BACKEND,ROOT,GRAPH_EXECUTE\n0,NODE,{us},US,BACKEND,SUB-EVENT,_a,b\n", us + 3)]);
        }
        let store = store(&imported(csv.as_bytes()));
        let run = &store.runs()[0];
        prop_assert_eq!(run.inferences(), values.len() as u64);
        prop_assert_eq!(run.ops.rows()[0].name.as_str(), "a,b");
        let measured = if values.len() > 1 { &values[1..] } else { &values[..] };
        let mean = measured.iter().sum::<u64>() as f64 / measured.len() as f64;
        prop_assert!((run.ops.stats()[0].mean().unwrap() - mean).abs() < 1e-6);
    }
}
