//! ONNX models through the real ONNX Runtime and its QNN plug-in, seen through the result document.

#![cfg(target_os = "linux")]

use crate::support::schema::{self, fits};
use crate::support::{
    Done, Qnnscope, f32_bytes, max_difference, onnx_model, onnx_packages, read_f32, repo, result_file,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn call(version: &str) -> Qnnscope {
    Qnnscope::on(&onnx_packages(version).join("onnxruntime_qnn")).within(Duration::from_secs(180))
}

/// A quick run of a model.
fn run(version: &str, path: &Path, flags: &str) -> Done {
    call(version).run_json(path, &format!("-n 5 --warmup 1 --profiling-iterations 2 {flags}"))
}

/// The name without the suffix that a layout change adds.
fn base(name: &str) -> &str {
    match name.rsplit_once("_token_") {
        Some((base_name, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => base_name,
        _ => name,
    }
}

/// ONNX Runtime's own record, through Python: the provider of each node.
fn assignment(version: &str, path: &Path, backend: &str, options: &[&str]) -> BTreeMap<String, String> {
    let output = Command::new("python3")
        .arg(repo("tests/support/ort_assignment.py"))
        .arg(path)
        .arg(backend)
        .args(options)
        .env("PYTHONPATH", onnx_packages(version))
        .current_dir(std::env::temp_dir())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("ASSIGNMENT "));
    let line = line.unwrap_or_else(|| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
    let pieces: Value = serde_json::from_str(line).unwrap();
    let mut found = BTreeMap::new();
    for piece in pieces.as_array().unwrap() {
        let provider = if piece[0] == "QNNExecutionProvider" { "qnn" } else { "cpu" };
        for node in piece[1].as_array().unwrap() {
            found.insert(base(node[0].as_str().unwrap()).to_owned(), provider.to_owned());
        }
    }
    found
}

/// Compares a document's placement with Python's, node by node; returns the nodes on the CPU.
fn same_as_python(document: &Value, python: &BTreeMap<String, String>) -> Vec<String> {
    let rows = document["runs"][0]["placement"].as_array().unwrap();
    let mut compared = 0;
    for row in rows.iter().filter(|row| row["inserted"] == false && row["provider"] != "none") {
        let name = row["node"].as_str().unwrap();
        let theirs = python.get(name).unwrap_or_else(|| panic!("{name} is not in {python:?}"));
        assert_eq!(row["provider"], theirs.as_str(), "{name}");
        compared += 1;
    }
    assert!(compared > 0);
    let ours: Vec<&str> = rows.iter().map(|row| base(row["node"].as_str().unwrap())).collect();
    for name in python.keys() {
        assert!(ours.contains(&name.as_str()), "{name} of ONNX Runtime's record is in no row");
    }
    rows.iter().filter(|row| row["provider"] == "cpu").map(|row| row["node"].as_str().unwrap().to_owned()).collect()
}

fn node<'a>(document: &'a Value, name: &str) -> &'a Value {
    let rows = document["runs"][0]["placement"].as_array().unwrap();
    rows.iter().find(|row| row["node"] == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

fn finding<'a>(document: &'a Value, id: &str) -> Option<&'a Value> {
    document["runs"][0]["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id)
}

#[test]
fn a_whole_model_runs_on_the_cpu_backend_and_fits_the_schema() {
    let done = run("2.3.0", &onnx_model("whole.onnx"), "-b cpu").expect(0).leaves_nothing_behind();
    let document = done.json();
    fits(&schema::read("result.schema.json"), &document);
    let on_cpu = same_as_python(&document, &assignment("2.3.0", &onnx_model("whole.onnx"), "libQnnCpu.so", &[]));
    assert_eq!(on_cpu, [""; 0]);
    let run = &document["runs"][0];
    assert_eq!(
        (&run["driver"], &run["status"], &document["model"]["format"]),
        (&"onnx_runtime".into(), &"ok".into(), &"onnx".into())
    );
    assert!(run["runtime"]["provider"].as_str().unwrap().ends_with("through ONNX Runtime 1.24.4"), "{run}");
    assert_eq!(run["latency_us"]["samples"], 5);
    assert_eq!(run["partitions"].as_array().unwrap().len(), 1);
    assert_eq!(run["profiling"]["clean_level"], "off");
    // Every node has its op and a time, except for those that the plug-in merges.
    for name in ["conv1", "conv2", "conv3", "fc", "softmax"] {
        let node = node(&document, name);
        assert_eq!(node["qnn_ops"].as_array().unwrap().len(), 1, "{node}");
        assert!(node["time_us"].as_f64().unwrap() >= 0.0 && node["time_derived"] == false, "{node}");
        assert!(node["reason"].is_null());
    }
    // The rows of QNN's ops name the model's nodes.
    for row in run["ops"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        // Except for the borders, and for nodes that ONNX Runtime inserted.
        assert!(row["source_node"].is_string() || name.starts_with(['[', 'T']), "{row}");
    }
    // 32 x 32 x 3 x 8 x 3 x 3 multiply-accumulates or so: from the model's file, not from QNN.
    assert!(document["model"]["macs"].as_u64().unwrap() > 1000);
    assert_eq!(document["model"]["op_count"], 10);
    assert!(finding(&document, "placement.fallback").is_none() && finding(&document, "placement.all-cpu").is_none());
}

#[test]
fn a_split_model_tells_both_partitions_the_fallback_and_its_cost() {
    for (version, backend, library, options) in [
        ("2.3.0", "cpu", "libQnnCpu.so", &[][..]),
        ("2.3.0", "htp", "libQnnHtp.so", &["soc_model=57"]),
        ("2.7.0", "htp", "libQnnHtp.so", &["soc_model=57"]),
    ] {
        let soc = if backend == "htp" { "--soc-model 57" } else { "" };
        let document = run(version, &onnx_model("split.onnx"), &format!("-b {backend} {soc}")).expect(0).json();
        fits(&schema::read("result.schema.json"), &document);
        let on_cpu = same_as_python(&document, &assignment(version, &onnx_model("split.onnx"), library, options));
        assert_eq!(on_cpu, ["hardmax_mid"], "{version} {backend}");
        let row = node(&document, "hardmax_mid");
        assert!(row["reason"].as_str().unwrap().contains("no translation of Hardmax"), "{row}");
        assert!(row["remedy"].is_string() && row["time_us"].as_f64().unwrap() > 0.0, "{row}");
        let run = &document["runs"][0];
        let partitions = run["partitions"].as_array().unwrap();
        assert_eq!(partitions.len(), 2);
        for partition in partitions {
            let time = |key: &str| partition[key].as_f64().unwrap();
            assert!(time("time_us") >= time("qnn_us") && time("boundary_us") >= 0.0, "{partition}");
            assert!(partition["name"].as_str().unwrap().starts_with("QNNExecutionProvider_"));
        }
        assert_eq!(node(&document, "conv3")["partition"], partitions[1]["name"]);
        assert_eq!(node(&document, "conv1")["partition"], partitions[0]["name"]);
        let told = finding(&document, "placement.fallback").unwrap();
        assert_eq!((&told["severity"], &told["ops"][0]), (&"warning".into(), &"hardmax_mid".into()));
        assert_eq!(run["simulated"], backend == "htp");
        // The session for layer times compiles the same graphs again, but its figures are not counted a
        // second time.
        let spills = run["sub_stages"].as_array().unwrap().iter().filter(|sub| sub["name"] == "DDR spill").count();
        // The compiler of QAIRT 2.51 prints none.
        let expected = if (version, backend) == ("2.3.0", "htp") { partitions.len() } else { 0 };
        assert_eq!(spills, expected, "{version} {backend}: {}", run["sub_stages"]);
        // Times of a simulated run do not predict a gain on a device.
        assert_eq!(told["expected_gain_us"].is_null(), backend == "htp");
        let unit = if backend == "htp" { "cycles" } else { "time_us" };
        let conv = run["ops"].as_array().unwrap().iter().find(|op| op["name"] == "conv3").unwrap();
        assert!(conv[unit]["mean"].is_number(), "{conv}");
    }
}

#[test]
fn quantised_models_leave_their_borders_to_the_processor_until_told_otherwise() {
    for name in ["whole_a8w8.onnx", "whole_a16w8.onnx"] {
        let path = onnx_model(name);
        let document = run("2.3.0", &path, "-b htp --soc-model 57").expect(0).json();
        let python = assignment("2.3.0", &path, "libQnnHtp.so", &["soc_model=57"]);
        let mut on_cpu = same_as_python(&document, &python);
        on_cpu.sort();
        assert_eq!(on_cpu, ["image_QuantizeLinear", "probs_DequantizeLinear"], "{name}");
        let row = node(&document, "image_QuantizeLinear");
        assert!(row["reason"].as_str().unwrap().contains("quantising the model's inputs"), "{row}");
        assert!(row["remedy"].as_str().unwrap().contains("offload_graph_io_quantization=0"), "{row}");
        let flags = "-b htp --soc-model 57 --no-cpu-fallback --ep-option offload_graph_io_quantization=0";
        let document = run("2.3.0", &path, flags).expect(0).json();
        let options = ["soc_model=57", "offload_graph_io_quantization=0"];
        assert_eq!(same_as_python(&document, &assignment("2.3.0", &path, "libQnnHtp.so", &options)), [""; 0]);
    }
}

#[test]
fn a_refused_op_has_its_code_its_rank_and_what_to_do() {
    let path = onnx_model("refuse.onnx");
    let document = run("2.3.0", &path, "-b htp --soc-model 57").expect(0).json();
    let on_cpu = same_as_python(&document, &assignment("2.3.0", &path, "libQnnHtp.so", &["soc_model=57"]));
    assert_eq!(on_cpu, ["add_rank6"]);
    let row = node(&document, "add_rank6");
    assert_eq!(row["code"], 3110);
    assert!(
        row["reason"].as_str().unwrap().contains("rank 6") && row["remedy"].as_str().unwrap().contains("at most 5")
    );
    assert_eq!(node(&document, "mul_i64")["provider"], "qnn", "int64 is accepted");
    // The same as an error, with the node and its reason.
    let done = run("2.3.0", &path, "-b htp --soc-model 57 --no-cpu-fallback").expect(1);
    let error = done.json()["runs"][0]["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("`add_rank6` (Add)") && message.contains("rank 6"), "{message}");
    assert_eq!(error["code"], 3110);
}

#[test]
fn other_shapes_and_types_go_where_onnx_runtime_says() {
    for (name, flags, options) in [
        ("rank6.onnx", "", &[][..]),
        ("int64.onnx", "", &[]),
        ("two_inputs.onnx", "", &[]),
        ("hardmax.onnx", "", &[]),
        ("dynamic.onnx", "", &[]),
        ("dynamic.onnx", "--dim N=4", &["dim:N=4"]),
    ] {
        let document = run("2.3.0", &onnx_model(name), &format!("-b cpu {flags}")).expect(0).json();
        same_as_python(&document, &assignment("2.3.0", &onnx_model(name), "libQnnCpu.so", options));
    }
}

#[test]
fn a_free_dimension_costs_every_node_and_a_size_brings_them_back() {
    let path = onnx_model("dynamic.onnx");
    let done = run("2.3.0", &path, "-b cpu").expect(0);
    assert!(done.stderr.contains("--dim N=1"), "{}", done.stderr);
    let document = done.json();
    assert!(node(&document, "mm")["remedy"].as_str().unwrap().contains("--dim N=1"));
    let told = finding(&document, "placement.all-cpu").unwrap();
    assert_eq!(told["severity"], "problem");
    assert_eq!(document["runs"][0]["findings"][0]["id"], "placement.all-cpu", "it comes first");
    let document = run("2.3.0", &path, "-b cpu --dim N=4 --no-cpu-fallback").expect(0).json();
    assert_eq!(document["model"]["inputs"][0]["shape"], serde_json::json!([4, 8]));
    // A dimension that does not exist.
    let done = run("2.3.0", &path, "-b cpu --dim M=4").expect(2);
    let message = done.json()["runs"][0]["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("no free dimension M") && message.contains("it has: N"), "{message}");
}

#[test]
fn a_backend_that_does_not_come_up_is_said_first_and_loudly() {
    // The GPU backend's library exists, but finds no GPU: ONNX Runtime silently runs everything itself.
    let done =
        call("2.3.0").arg("run").arg(onnx_model("whole.onnx")).flags("-b gpu -n 5 --headless").finish().expect(0);
    let text = done.text();
    assert!(text.contains("nothing ran on gpu"), "{text}");
    assert!(text.contains("0 of 10 nodes on QNN gpu, 10 on the CPU"), "{text}");
    let findings = &text[text.find("\nfindings").unwrap()..];
    assert!(findings.lines().nth(2).unwrap().contains("!! nothing ran on gpu"), "{findings}");
    run("2.3.0", &onnx_model("whole.onnx"), "-b gpu --no-cpu-fallback").expect(1);
}

#[test]
fn outputs_are_those_of_the_model_on_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.raw"), dir.path().join("b.raw"));
    std::fs::write(&a, f32_bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])).unwrap();
    std::fs::write(&b, f32_bytes(&[0.5; 8])).unwrap();
    let out = dir.path().join("out");
    let flags = format!("-b cpu --input a={} --input b={} --save-outputs {}", a.display(), b.display(), out.display());
    run("2.3.0", &onnx_model("two_inputs.onnx"), &flags).expect(0);
    let values = read_f32(&result_file(&out, 0, "y.raw"));
    assert!(max_difference(&values, &[1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5]) < 1e-6, "{values:?}");
}

#[test]
fn errors_say_what_and_where() {
    let dir = tempfile::tempdir().unwrap();
    let message = |path: &Path, flags: &str, code: i32| {
        let done = run("2.3.0", path, flags).expect(code);
        done.json()["runs"][0]["error"]["message"].as_str().unwrap().to_owned()
    };
    let missing = message(&onnx_model("missing_op.onnx"), "-b cpu", 2);
    assert!(missing.contains("No Op registered for Frobnicate") && missing.contains("frob"), "{missing}");
    // Weights in a file beside the model: missing, and truncated.
    let external = |length: Option<usize>| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("external.onnx");
        std::fs::copy(onnx_model("external.onnx"), &path).unwrap();
        if let Some(length) = length {
            std::fs::write(folder.path().join("external.data"), vec![0u8; length]).unwrap();
        }
        (folder, path)
    };
    let (_folder, path) = external(None);
    let gone = message(&path, "-b cpu", 2);
    assert!(gone.contains("tensor w") && gone.contains("external.data"), "{gone}");
    let (_folder, path) = external(Some(1000));
    let cut = message(&path, "-b cpu", 2);
    assert!(cut.contains("external.data"), "{cut}");
    let (_folder, path) = external(Some(256 * 256 * 4));
    let whole = run("2.3.0", &path, "-b cpu --no-cpu-fallback").expect(0).json();
    assert_eq!(node(&whole, "mm")["provider"], "qnn", "whole, it runs in the sandbox");
    let opset = message(&onnx_model("new_opset.onnx"), "-b cpu", 2);
    assert!(opset.contains("ONNX Runtime 1.24.4: it has opset 40; the newest it reads is 25"), "{opset}");
    let newer = dir.path().join("newer.onnx");
    let mut bytes = std::fs::read(onnx_model("whole.onnx")).unwrap();
    assert_eq!(bytes[0], 8, "a model begins with its IR version");
    bytes[1] = 90;
    std::fs::write(&newer, bytes).unwrap();
    let newer = message(&newer, "-b cpu", 2);
    assert!(newer.contains("it has IR version 90; the newest it reads is 13; export it again"), "{newer}");
    let input = dir.path().join("in.raw");
    std::fs::write(&input, [0u8; 12]).unwrap();
    let size = message(&onnx_model("two_inputs.onnx"), &format!("-b cpu --input a={}", input.display()), 2);
    assert!(size.contains("12 bytes") && size.contains("1x8"), "{size}");
    // ONNX options on another kind of model, and unknown options of the provider.
    let done = run("2.3.0", &repo("demo/qnnscope-demo-int8.dlc"), "-b cpu --dim N=1").expect(2);
    assert!(done.stderr.contains("--dim is for ONNX models"), "{}", done.stderr);
    let document = run("2.3.0", &onnx_model("whole.onnx"), "-b cpu --ep-option no_such=1").expect(0).json();
    let settings = document["runs"][0]["settings"].as_array().unwrap();
    let setting = settings.iter().find(|setting| setting["key"] == "--ep-option no_such").unwrap();
    assert_eq!(setting["outcome"], "no_effect");
}

#[test]
fn without_onnx_runtime_the_command_that_gets_it_is_named() {
    let done = Qnnscope::on(&crate::support::runtime_247()).run_json(&onnx_model("whole.onnx"), "-n 1").expect(3);
    assert!(
        done.stderr.contains("no ONNX Runtime found") && done.stderr.contains("qnnscope runtime install --onnx"),
        "{}",
        done.stderr
    );
}

#[test]
fn nodes_without_names_are_told_apart_by_operator_and_place() {
    let document = run("2.3.0", &onnx_model("nameless.onnx"), "-b cpu").expect(0).json();
    let placed = document["runs"][0]["placement"].as_array().unwrap();
    let own: Vec<&Value> = placed.iter().filter(|row| row["inserted"] == false).collect();
    let count = document["model"]["op_count"].as_u64().unwrap();
    assert_eq!(own.len() as u64, count, "{placed:?}");
    for (at, row) in own.iter().enumerate() {
        let label = format!("{} #{at}", row["op_type"].as_str().unwrap());
        assert_eq!(row["node"], label.as_str());
    }
    // The additions were merged into the product, and QNN's ops belong to these nodes.
    let providers: Vec<&str> = own.iter().map(|row| row["provider"].as_str().unwrap()).collect();
    assert_eq!(providers, ["qnn", "none", "none", "qnn"], "{own:?}");
    assert_eq!(own[0]["qnn_ops"].as_array().unwrap().len(), 1, "{own:?}");
    let rows = document["runs"][0]["ops"].as_array().unwrap();
    for name in ["MatMul #0", "Relu #3"] {
        assert!(rows.iter().any(|row| row["source_node"] == name && row["time_us"].is_object()), "{rows:?}");
    }
}
