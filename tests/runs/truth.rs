//! Outputs compared with labels and expected outputs, on the real libraries.

#![cfg(target_os = "linux")]

use super::accuracy::python;
use crate::support::{Done, Qnnscope, f32_bytes, npy, number, repo, runtime_247, schema};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Input sets.
const INPUTS: usize = 4;

fn call(flags: &str) -> Qnnscope {
    Qnnscope::on(&runtime_247())
        .within(Duration::from_secs(180))
        .within_folder(&repo("tests/data/accuracy"))
        .flags(flags)
}

/// A short run as JSON.
fn run(flags: &str) -> Done {
    call(&format!("--device=local run {flags} --json -n 6 --warmup 1 --launches 1 --profiling off --no-history"))
        .finish()
}

/// Input sets and the list that names them.
fn inputs(dir: &Path) -> PathBuf {
    let mut list = String::new();
    for set in 0..INPUTS {
        let values: Vec<f32> = (0..768).map(|at| ((at * (7 + 6 * set) + set * 31) % 101) as f32 / 100.0).collect();
        let file = dir.join(format!("image-{set}.npy"));
        std::fs::write(&file, npy("<f4", "(1, 3, 16, 16)", &f32_bytes(&values))).unwrap();
        list.push_str(&format!("image:={}\n", file.display()));
    }
    let path = dir.join("inputs.txt");
    std::fs::write(&path, list).unwrap();
    path
}

fn figure(run: &Value, metric: &str) -> Value {
    let figures = run["judged"]["outputs"][0]["figures"].as_array().unwrap_or_else(|| panic!("{:#}", run["judged"]));
    figures.iter().find(|row| row["metric"] == metric).unwrap_or_else(|| panic!("no {metric}: {figures:?}")).clone()
}

/// What NumPy computes from two folders of outputs and a list of labels.
const NUMPY: &str = r#"
import json, os, sys
import numpy as np
expected, outputs, labels = sys.argv[1:4]
n = len([name for name in os.listdir(expected) if name.startswith("Result_")])
load = lambda folder: [np.load(os.path.join(folder, f"Result_{i}", [f for f in os.listdir(os.path.join(folder, f"Result_{i}")) if f.endswith(".npy")][0])).astype(np.float64).ravel() for i in range(n)]
x, y = load(expected), load(outputs)
X, Y = np.concatenate(x), np.concatenate(y)
mse = np.mean((X - Y) ** 2)
right = [int(line) for line in open(labels)]
order = [np.argsort(-v, kind="stable") for v in y]
print(json.dumps({
    "sqnr_db": 10 * np.log10(np.sum(X * X) / np.sum((X - Y) ** 2)), "mse": mse,
    "psnr_db": 20 * np.log10(X.max() - X.min()) - 10 * np.log10(mse),
    "cosine": np.mean([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(x, y)]),
    "top1": np.mean([np.argmax(a) == np.argmax(b) for a, b in zip(x, y)]),
    "label_top1": np.mean([o[0] == r for o, r in zip(order, right)]),
    "label_top5": np.mean([r in o[:5] for o, r in zip(order, right)]),
    "worst": int(np.argmax([np.mean((a - b) ** 2) for a, b in zip(x, y)])),
}))
"#;

/// Reports show what the outputs were judged by; where names are removed, this is removed too.
fn judged_in_reports(dir: &Path, list: &str, labels: &Path) {
    let session = dir.join("judged.jsonl");
    run(&format!("float.dlc -b cpu --input-list {list} --labels {} --record {}", labels.display(), session.display()))
        .expect(0);
    for name in ["page.html", "page.md"] {
        let report = |name: &str, flags: &str| {
            let path = dir.join(name);
            let call = Qnnscope::without_runtime().arg("report").arg(&session).arg("-o").arg(&path).flags(flags);
            call.finish().expect(0);
            std::fs::read_to_string(path).unwrap()
        };
        let text = report(name, "");
        for words in ["Outputs against truth", "labels.txt", "top-1", "probs"] {
            assert!(text.contains(words), "{name} has no {words}");
        }
        let masked = report(&format!("masked-{name}"), "--redact");
        assert!(masked.contains("Outputs against truth") && !masked.contains("labels.txt"), "{masked}");
    }
}

#[test]
fn figures_are_those_of_numpy_and_stand_beside_times() {
    let dir = tempfile::tempdir().unwrap();
    let (temporary, kept) = (dir.path().join("tmp"), dir.path().join("expected"));
    std::fs::create_dir(&temporary).unwrap();
    let list = inputs(dir.path());
    let labels = dir.path().join("labels.txt");
    // Right for a model that answers with classes 0, 1, 2, 3.
    std::fs::write(&labels, "0\n1\n2\n3\n").unwrap();
    let list = list.display();
    run(&format!("float.dlc -b cpu --input-list {list} --save-outputs {}", kept.display())).expect(0);

    let out = dir.path().join("quantised");
    let asked = format!("--input-list {list} --expected {}", kept.display());
    let done = run(&format!("good.dlc -b htp --soc-model 57 {asked} --save-outputs {}", out.display())).expect(0);
    let document = done.json();
    schema::fits(&schema::read("result.schema.json"), &document);
    let theirs = python(NUMPY, &[&kept, &out, &labels]);
    let of = &document["runs"][0];
    assert_eq!((&of["judged"]["inferences"], &of["judged"]["outputs"][0]["name"]), (&json!(INPUTS), &json!("probs")));
    for metric in ["sqnr_db", "mse", "psnr_db", "cosine", "top1"] {
        let (ours, theirs) = (number(&figure(of, metric)["value"]), number(&theirs[metric]));
        assert!((ours - theirs).abs() <= 1e-6 * theirs.abs().max(1e-3), "{metric}: {ours}, NumPy {theirs}");
    }
    assert_eq!(figure(of, "mse")["worst_inference"], theirs["worst"]);
    // The judged inferences are not among those that were timed.
    assert_eq!(of["latency_us"]["samples"], json!(6));

    // Labels, with outputs that are not to be kept.
    let asked = format!("good.dlc -b htp,cpu --soc-model 57 --input-list {list} --labels {}", labels.display());
    let flags = format!("--device=local run {asked} --json -n 6 --warmup 1 --launches 1 --profiling off --no-history");
    let done = call(&flags).env("TMPDIR", &temporary).finish().expect(0);
    let judged = done.json();
    schema::fits(&schema::read("result.schema.json"), &judged);
    let of = &judged["runs"][0];
    assert_eq!((&of["outputs"], &of["simulated"]), (&json!([]), &json!(cfg!(target_arch = "x86_64"))));
    for metric in ["top1", "top5"] {
        assert_eq!(figure(of, metric)["value"], theirs[format!("label_{metric}")], "{metric}");
    }
    judged_in_reports(dir.path(), &list.to_string(), &labels);
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn accuracy_decides_which_backend_to_use() {
    let dir = tempfile::tempdir().unwrap();
    let (list, kept) = (inputs(dir.path()), dir.path().join("expected"));
    let list = list.display();
    run(&format!("float.dlc -b cpu --input-list {list} --save-outputs {}", kept.display())).expect(0);
    let asked = format!("-b cpu --input-list {list} --expected {}", kept.display());
    let mut files = Vec::new();
    for model in ["float", "range-too-small"] {
        let done = run(&format!("{model}.dlc {asked} --min-sqnr-db 60")).expect(0);
        let path = dir.path().join(format!("{model}.json"));
        std::fs::write(&path, &done.stdout).unwrap();
        let finding = done.json()["runs"][0]["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|finding| finding["id"] == "constraint.sqnr")
            .unwrap_or_else(|| panic!("no finding for {model}"))
            .clone();
        let word = if model == "float" { ": met" } else { ": missed" };
        assert!(finding["title"].as_str().unwrap().ends_with(word), "{finding}");
        files.push(path);
    }
    let compare = |flags: &str| {
        let done = Qnnscope::without_runtime().arg("compare").args(&files).flags(flags).finish().expect(0);
        let document = done.json();
        schema::fits(&schema::read("compare.schema.json"), &document);
        document
    };
    let document = compare("--json --min-sqnr-db 60 --max-top1-loss 1");
    let rows = document["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == "truth.mse").unwrap_or_else(|| panic!("{rows:#?}"));
    assert_eq!(row["cells"][0]["value"], json!(0.0));
    assert!(number(&row["cells"][1]["value"]) > 0.0);
    let candidates = document["recommendation"]["candidates"].as_array().unwrap();
    let of = |column: u64| candidates.iter().find(|row| row["column"] == json!(column)).unwrap();
    assert_eq!((&of(0)["eligible"], &of(1)["eligible"]), (&json!(true), &json!(false)), "{candidates:#?}");
    let check = of(1)["constraints"].as_array().unwrap().iter().find(|row| row["constraint"] == "min_sqnr_db").unwrap();
    assert_eq!(check["met"], json!(false));
    assert_eq!(document["recommendation"]["column"], json!(0));
}

#[test]
fn what_cannot_be_judged_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let list = inputs(dir.path());
    let labels = dir.path().join("labels.txt");
    let said = |flags: &str, code: i32, word: &str| {
        let done = run(&format!("float.dlc {flags}")).expect(code);
        let text = format!("{}{}", done.stderr, done.text());
        assert!(text.contains(word), "{flags}: {text}");
    };
    std::fs::write(&labels, "0\n1\n").unwrap();
    let (asked, list) = (format!("--labels {}", labels.display()), format!("--input-list {}", list.display()));
    said(&asked, 2, "real inputs");
    said(&format!("{list} --labels /no/labels"), 2, "/no/labels");
    said(&format!("{list} {asked} --metric mse"), 2, "--expected DIR");
    said(&format!("{list} {asked} --metric psnrr"), 2, "top1, top5, sqnr");
    said(&format!("{list} --metric top1"), 2, "--labels");
    said(&format!("{list} --min-sqnr-db 20"), 2, "--expected");
    // The run's figures stand, although its outputs could not be judged.
    said(&format!("{list} {asked}"), 0, "2 labels for 4 classifications");
    std::fs::write(&labels, "0\n1\nx\n").unwrap();
    said(&format!("{list} {asked}"), 2, "line 3: `x` is not a class");
    said(&format!("{list} --expected {}", dir.path().join("none").display()), 2, "expected outputs");
}
