//! `qnnscope check` of ONNX models, on the real ONNX Runtime and its QNN plug-in. What is refused, and why,
//! follows from the models: see `tests/data/onnx/README.md`.

#![cfg(target_os = "linux")]

use crate::support::schema::{self, fits};
use crate::support::source_models::{external_tensor, graph, node, onnx, value};
use crate::support::{Done, Qnnscope, onnx_model, onnx_packages};
use serde_json::{Value, json};
use std::time::Duration;

fn call() -> Qnnscope {
    Qnnscope::on(&onnx_packages("2.3.0").join("onnxruntime_qnn")).within(Duration::from_secs(180))
}

fn check(name: &str, flags: &str) -> Done {
    call().arg("check").arg(onnx_model(name)).flags(flags).finish()
}

/// The document, which matches its schema.
#[track_caller]
fn document(name: &str, flags: &str, code: i32) -> Value {
    let document = check(name, &format!("--json {flags}")).expect(code).json();
    fits(&schema::read("check-onnx.schema.json"), &document);
    document
}

/// A node's results: backend, SoC and provider.
fn results<'a>(document: &'a Value, name: &str) -> Vec<&'a Value> {
    let nodes = document["nodes"].as_array().unwrap();
    let node = nodes.iter().find(|node| node["node"] == name).unwrap_or_else(|| panic!("no node {name}"));
    node["results"].as_array().unwrap().iter().collect()
}

#[test]
fn an_op_without_translation_is_refused_everywhere_and_splits_the_model() {
    let document = document("split.onnx", "-b cpu,htp --soc SM8650,SM8550", 1);
    assert_eq!(document["ok"], false);
    let backends = document["backends"].as_array().unwrap();
    let socs: Vec<&Value> = backends.iter().map(|row| &row["soc"]).collect();
    assert_eq!(socs, [&Value::Null, &json!("SM8650"), &json!("SM8550")]);
    for row in backends {
        assert_eq!((&row["state"], &row["taken"], &row["refused"]), (&json!("asked"), &json!(11), &json!(1)), "{row}");
        assert_eq!(row["partitions"], 2, "{row}");
    }
    let refused = results(&document, "hardmax_mid");
    assert_eq!(refused.len(), 3);
    for result in refused {
        assert_eq!(result["provider"], "cpu");
        assert!(result["reason"].as_str().unwrap().contains("no translation of Hardmax"), "{result}");
        assert!(!result["remedy"].as_str().unwrap().is_empty(), "{result}");
    }
    for result in results(&document, "conv2") {
        assert_eq!((&result["provider"], &result["partition"]), (&json!("qnn"), &json!(0)), "{result}");
    }
    // The model's own order.
    let names: Vec<&str> =
        document["nodes"].as_array().unwrap().iter().map(|node| node["node"].as_str().unwrap()).collect();
    assert_eq!(names[..5], ["conv1", "relu1", "conv2", "relu2", "hardmax_mid"]);
    let text = check("split.onnx", "-b cpu").expect(1).text();
    for words in
        ["takes 11 of 12 nodes, in 2 partitions", "hardmax_mid (Hardmax) on cpu", "reason: ", "fix: ", "not ok"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_refusal_has_the_backends_code() {
    let document = document("refuse.onnx", "-b htp --soc SM8650", 1);
    let refused = results(&document, "add_rank6");
    assert_eq!((&refused[0]["provider"], &refused[0]["code"]), (&json!("cpu"), &json!(3110)), "{refused:?}");
    assert!(refused[0]["reason"].as_str().unwrap().contains("rank 6"), "{refused:?}");
    assert!(refused[0]["remedy"].as_str().unwrap().contains("reshape"), "{refused:?}");
    assert_eq!(results(&document, "mul_i64")[0]["provider"], "qnn");
}

#[test]
fn a_model_that_is_taken_whole_is_fine() {
    let document = document("whole.onnx", "-b htp --soc SM8650", 0);
    let row = &document["backends"][0];
    assert_eq!((&row["taken"], &row["refused"], &row["partitions"]), (&json!(10), &json!(0), &json!(1)), "{row}");
    assert_eq!((&document["ok"], &row["simulated"]), (&json!(true), &json!(cfg!(target_arch = "x86_64"))));
    // Quantising the model's inputs and outputs is left to the CPU unless the plug-in is told otherwise.
    let left = self::document("whole_a8w8.onnx", "-b htp --soc SM8650", 1);
    let reason = results(&left, "image_QuantizeLinear")[0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("inputs and outputs"), "{reason}");
    let whole = self::document("whole_a8w8.onnx", "-b htp --soc SM8650 --ep-option offload_graph_io_quantization=0", 0);
    assert_eq!(results(&whole, "image_QuantizeLinear")[0]["provider"], "qnn");
}

#[test]
fn what_cannot_be_asked_is_no_refusal() {
    let document = document("whole.onnx", "-b gpu", 3);
    let row = &document["backends"][0];
    assert_eq!((&row["state"], &row["refused"]), (&json!("not_asked"), &Value::Null), "{row}");
    let said = check("whole.onnx", "-b cpu --no-compile").expect(2).stderr;
    assert!(said.contains("--no-compile"), "{said}");
    let said = check("whole.onnx", "-b cpu --dim nothing=1").expect(2).stderr;
    assert!(said.contains("no free dimension nothing"), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let weights = external_tensor("w", 1, &[2, 3], &[("location", "w.bin")]);
    let model =
        onnx(&graph(&[node("MatMul", "mm", &["x", "w"], &["y"])], &[weights], &[value("x", 1, &[Ok(1), Ok(2)])], &[]));
    let path = dir.path().join("m.onnx");
    std::fs::write(&path, model).unwrap();
    let said = call().arg("check").arg(&path).finish().expect(2).stderr;
    assert!(said.contains("tensor w") && said.contains("w.bin"), "{said}");
}
