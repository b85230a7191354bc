//! `qnnscope tap` on the stand-in for qnn-net-run (`examples/qnn_net_run`), which does its own profiling when
//! asked to.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::schema::{self, fits};
use crate::support::{Qnnscope, demo_float, repo, runtime_247};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const INPUT: &str = "demo/reference/input-1x64x64x3-f32.raw";
const INFERENCES: usize = 12;

fn tool() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples/qnn_net_run");
    assert!(path.exists(), "{} is missing; build it with: cargo build --examples", path.display());
    path
}

/// The tool's result files, by name.
fn results(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for index in 0..INFERENCES {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join(format!("Result_{index}")))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(!files.is_empty());
        found.extend(files.into_iter().map(|file| {
            let bytes = std::fs::read(&file).unwrap();
            (file.strip_prefix(folder).unwrap().to_owned(), bytes)
        }));
    }
    found
}

/// The graph of a run of the tool under the tap, whose results must be those of a run without it.
fn tapped(own: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    std::fs::write(&list, format!("{}\n", repo(INPUT).display()).repeat(INFERENCES)).unwrap();
    let call = |program: Qnnscope, out: &str| {
        let program = program.args(["--model", "libQnnModelDlc.so", "--dlc_path"]).arg(demo_float());
        let program = program.args(["--backend", "libQnnCpu.so", "--input_list"]).arg(&list).flags(own);
        program
            .arg("--output_dir")
            .arg(folder.path().join(out))
            .env("LD_LIBRARY_PATH", runtime_247())
            .finish()
            .expect(0)
    };
    call(Qnnscope::program(&tool()), "alone");
    let document = folder.path().join("tap.json");
    let with = Qnnscope::without_runtime()
        .args(["tap", "--detail-every", "4"])
        .arg(format!("--json={}", document.display()))
        .arg("--")
        .arg(tool());
    let done = call(with, "tapped");
    assert!(done.text().starts_with("qnn-net-run pid:"), "{}", done.text());
    assert_eq!(results(&folder.path().join("tapped")), results(&folder.path().join("alone")), "bit by bit");
    let document: Value = serde_json::from_slice(&std::fs::read(document).unwrap()).unwrap();
    fits(&schema::read("tap.schema.json"), &document);
    // The tool, and the process in which it runs the model.
    assert_eq!((&document["loaded"], &document["lost"]), (&json!(2), &json!(0)));
    let graphs = document["processes"][0]["graphs"].as_array().unwrap();
    assert_eq!((graphs.len(), &graphs[0]["executions"]), (1, &json!(INFERENCES)), "{graphs:#?}");
    assert!(graphs[0]["ops"].as_array().unwrap().len() > 10);
    graphs[0].clone()
}

fn is_profiled_by_its_host(graph: &Value) -> bool {
    graph["findings"].as_array().unwrap().iter().any(|finding| finding["id"] == "tap.host-profiled")
}

#[test]
fn its_results_are_its_own_and_every_fourth_execution_has_layers() {
    let graph = tapped("");
    let detailed = graph["profiling"]["iterations"].as_u64().unwrap();
    assert!((2..=3).contains(&detailed), "every fourth: {detailed}");
    assert!(!is_profiled_by_its_host(&graph));
}

#[test]
fn its_own_profile_is_read_and_left_to_it() {
    let graph = tapped("--profiling_level detailed");
    assert!(is_profiled_by_its_host(&graph), "{}", graph["findings"]);
    let ops = graph["ops"].as_array().unwrap();
    assert!(ops.iter().any(|op| op["time_us"]["mean"].as_f64().is_some_and(|us| us > 0.0)), "{ops:#?}");
}
