//! `qnnscope inspect` of ONNX, TFLite and ExecuTorch models: no runtime needed. The figures for the models in
//! `tests/data/onnx` were computed with the `onnx` package (shape inference, numpy) before this code read
//! them.

#![cfg(target_os = "linux")]

use crate::support::inspected::{inspected, refused, written};
use crate::support::source_models::{
    bytes, compiled_tflite, external_tensor, graph, graph_attribute, int, node, onnx, tensor, value, varint,
};
use crate::support::{Qnnscope, demo_int8, onnx_model, runtime_247};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

fn node_of<'a>(document: &'a Value, name: &str) -> &'a Value {
    let nodes = document["graphs"][0]["nodes"].as_array().unwrap();
    nodes.iter().find(|node| node["name"] == name).unwrap_or_else(|| panic!("no node {name}"))
}

fn shape_of(document: &Value, name: &str) -> Value {
    let graph = &document["graphs"][0];
    let all = ["values", "inputs", "outputs"].into_iter().flat_map(|list| graph[list].as_array().unwrap());
    all.into_iter().find(|value| value["name"] == name).map_or(Value::Null, |value| value["shape"].clone())
}

#[test]
fn figures_are_those_of_the_onnx_package() {
    let document = inspected(&onnx_model("split.onnx"), "");
    assert_eq!(document["schema"], "qnnscope.inspect-source/1");
    assert_eq!((&document["format"], &document["format_version"]), (&json!("onnx"), &json!(9)));
    assert_eq!(document["opsets"], json!([{"domain": "", "version": 17}]));
    let graph = &document["graphs"][0];
    assert_eq!(
        (&graph["node_count"], &graph["macs"], &graph["nodes_without_macs"]),
        (&json!(12), &json!(15_925_568), &json!(0))
    );
    assert_eq!((&graph["parameters"], &graph["parameter_bytes"]), (&json!(7738), &json!(30952)));
    for (name, macs) in
        [("conv1", 1_769_472), ("conv2", 9_437_184), ("conv3", 4_718_592), ("fc", 320), ("hardmax_mid", 0)]
    {
        assert_eq!(node_of(&document, name)["macs"], macs, "{name}");
    }
    let last = |name: &str| shape_of(&document, node_of(&document, name)["outputs"][0].as_str().unwrap());
    assert_eq!(last("conv3"), json!([1, 32, 32, 32]));
    assert_eq!(last("gap"), json!([1, 32, 1, 1]));
    assert_eq!(last("flatten"), json!([1, 32]));
    assert_eq!(last("softmax"), json!([1, 10]));
    assert_eq!(document["quantization"], Value::Null);
    let refuse = inspected(&onnx_model("refuse.onnx"), "");
    let output = node_of(&refuse, "add_rank6")["outputs"][0].as_str().unwrap().to_owned();
    assert_eq!(shape_of(&refuse, &output), json!([1, 2, 1, 4, 8, 8]));
}

#[test]
fn inferred_shapes_are_those_that_onnx_runtime_gave() {
    let document = inspected(&onnx_model("shapes.onnx"), "");
    let ran: Value = serde_json::from_slice(&std::fs::read(onnx_model("shapes.json")).unwrap()).unwrap();
    assert!(ran.as_object().unwrap().len() > 40);
    for (name, shape) in ran.as_object().unwrap() {
        assert_eq!(shape_of(&document, name), *shape, "{name}");
    }
    let values = document["graphs"][0]["values"].as_array().unwrap();
    assert!(values.iter().all(|value| value["inferred"] == true && value["dtype"].is_string()), "{values:?}");
}

#[test]
fn pairs_of_quantisation_are_counted() {
    let document = inspected(&onnx_model("whole_a8w8.onnx"), "");
    assert_eq!(document["graphs"][0]["macs"], 15_925_568);
    // conv1, conv2, conv3, gap, flatten, fc and softmax; four of them have weights, and four biases.
    let expected = json!({
        "compute_nodes": 7, "quantized_nodes": 7, "undecided_nodes": 0,
        "activations": {"uint8": 8}, "weights": {"int32": 4, "uint8": 4}, "float_islands": []
    });
    assert_eq!(document["quantization"], expected);
}

#[test]
fn a_node_between_pairs_that_is_not_quantised_is_an_island() {
    let dir = tempfile::tempdir().unwrap();
    let scale = || [tensor("s", 1, &[], &0.5f32.to_le_bytes()), tensor("z", 2, &[], &[128])];
    let pair = |name: &str, from: &str, to: &str| {
        let q = format!("{to}_q");
        [
            node("QuantizeLinear", &format!("{name}_q"), &[from, "s", "z"], &[&q]),
            node("DequantizeLinear", &format!("{name}_dq"), &[&q, "s", "z"], &[to]),
        ]
    };
    let mut nodes = pair("in", "x", "a").to_vec();
    nodes.push(node("Relu", "quantised", &["a"], &["b"]));
    nodes.extend(pair("mid", "b", "c"));
    // Two float nodes in a row, and one apart from them.
    nodes.push(node("Exp", "first", &["c"], &["d"]));
    nodes.push(node("Log", "second", &["d"], &["e"]));
    nodes.extend(pair("end", "e", "f"));
    nodes.push(node("Sqrt", "apart", &["f"], &["y"]));
    let ends = (value("x", 1, &[Ok(1), Ok(4)]), value("y", 1, &[Ok(1), Ok(4)]));
    let path = written(dir.path(), "m", &onnx(&graph(&nodes, &scale(), &[ends.0], &[ends.1])));
    let quantization = &inspected(&path, "")["quantization"];
    assert_eq!((&quantization["compute_nodes"], &quantization["quantized_nodes"]), (&json!(4), &json!(1)));
    let islands =
        json!([{"nodes": ["first", "second"], "op_types": ["Exp", "Log"]}, {"nodes": ["apart"], "op_types": ["Sqrt"]}]);
    assert_eq!(quantization["float_islands"], islands);
}

#[test]
fn free_dimensions_are_named_and_can_be_fixed() {
    let dir = tempfile::tempdir().unwrap();
    let nodes = [node("MatMul", "mm", &["x", "w"], &["h"]), node("Relu", "act", &["h"], &["y"])];
    let ends = (value("x", 1, &[Err("batch"), Ok(8)]), value("y", 1, &[Err("batch"), Ok(3)]));
    let weights = tensor("w", 1, &[8, 3], &[0; 96]);
    let path = written(dir.path(), "m.onnx", &onnx(&graph(&nodes, &[weights], &[ends.0], &[ends.1])));
    let open = inspected(&path, "");
    assert_eq!(open["free_dimensions"], json!([{"name": "batch", "inputs": ["x"]}]));
    assert_eq!(shape_of(&open, "h"), json!(["batch", 3]));
    assert_eq!((&node_of(&open, "mm")["macs"], &open["graphs"][0]["nodes_without_macs"]), (&Value::Null, &json!(1)));
    let fixed = inspected(&path, "--dim batch=5");
    assert_eq!(fixed["free_dimensions"], json!([]));
    assert_eq!(shape_of(&fixed, "h"), json!([5, 3]));
    assert_eq!(node_of(&fixed, "mm")["macs"], 5 * 8 * 3);
    let said = refused(&path, "--dim length=5");
    assert!(said.contains("no free dimension length") && said.contains("batch"), "{said}");
}

#[test]
fn graphs_inside_of_nodes_and_functions_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let inner = graph(&[node("Relu", "r", &["x"], &["t"])], &[tensor("k", 1, &[2], &[0; 8])], &[], &[]);
    let two = graph(&[node("Abs", "a", &["x"], &["u"]), node("Abs", "b", &["u"], &["t"])], &[], &[], &[]);
    let mut branch = node("If", "choose", &["c"], &["y"]);
    branch.extend(graph_attribute("then_branch", &inner));
    branch.extend(graph_attribute("else_branch", &two));
    let mut content =
        onnx(&graph(&[branch], &[], &[value("c", 9, &[]), value("x", 1, &[Ok(2)])], &[value("y", 1, &[Ok(2)])]));
    let function = [bytes(1, "F"), bytes(7, node("Relu", "r", &["x"], &["t"])), bytes(10, "own")].concat();
    content.extend(bytes(25, function));
    let document = inspected(&written(dir.path(), "m", &content), "");
    let graph = &document["graphs"][0];
    assert_eq!(
        graph["subgraphs"],
        json!([{"node": "choose", "attribute": "then_branch", "nodes": 1}, {"node": "choose", "attribute": "else_branch", "nodes": 2}])
    );
    assert_eq!((&graph["parameters"], &node_of(&document, "choose")["macs"]), (&json!(2), &Value::Null));
    assert_eq!(document["functions"], json!([{"domain": "own", "name": "F", "nodes": 1}]));
    // Nesting of graphs in graphs has a limit.
    let mut deep = graph_of_nothing();
    for _ in 0..200 {
        let mut holder = node("If", "n", &["c"], &["y"]);
        holder.extend(graph_attribute("then_branch", &deep));
        deep = super_graph(holder);
    }
    let said = refused(&written(dir.path(), "deep", &onnx(&deep)), "");
    assert!(said.contains("nested more than"), "{said}");
}

fn graph_of_nothing() -> Vec<u8> {
    graph(&[], &[], &[], &[])
}

fn super_graph(holder: Vec<u8>) -> Vec<u8> {
    graph(&[holder], &[], &[], &[])
}

/// A model with one tensor `w` of 2x3 floats kept in `entries`.
fn with_external(dir: &Path, entries: &[(&str, &str)]) -> PathBuf {
    let weights = external_tensor("w", 1, &[2, 3], entries);
    let nodes = [node("MatMul", "mm", &["x", "w"], &["y"])];
    written(dir, "m.onnx", &onnx(&graph(&nodes, &[weights], &[value("x", 1, &[Ok(1), Ok(2)])], &[])))
}

#[test]
fn data_beside_the_model_has_to_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let good: &[(&str, &str)] = &[("location", "w.bin"), ("offset", "8"), ("length", "24")];
    let path = with_external(dir.path(), good);
    let said = refused(&path, "");
    assert!(said.contains("tensor w") && said.contains("w.bin") && said.contains("is not in"), "{said}");
    written(dir.path(), "w.bin", &[0; 31]);
    let said = refused(&path, "");
    assert!(said.contains("too short") && said.contains("24 bytes at byte 8") && said.contains("byte 31"), "{said}");
    written(dir.path(), "w.bin", &[0; 32]);
    let document = inspected(&path, "");
    assert_eq!(document["external_files"], json!([{"file": "w.bin", "bytes": 32, "tensors": 1, "tensor_bytes": 24}]));
    assert_eq!(document["graphs"][0]["parameters"], 6);
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("location", "../w.bin")], "outside the model's folder"),
        (&[("location", "/etc/passwd")], "outside the model's folder"),
        (&[("location", "w.bin"), ("length", "20")], "need 24"),
        (&[("location", "w.bin"), ("offset", "many")], "not a number"),
        (&[("offset", "0")], "without a location"),
    ];
    for (entries, words) in cases {
        let said = refused(&with_external(dir.path(), entries), "");
        assert!(said.contains(words) && said.contains('w'), "{entries:?}: {said}");
    }
    let short = tensor("w", 1, &[2, 3], &[0; 23]);
    let said = refused(&written(dir.path(), "short", &onnx(&graph(&[], &[short], &[], &[]))), "");
    assert!(said.contains("stores 23 bytes") && said.contains("need 24"), "{said}");
}

#[test]
fn two_gigabytes_take_flat_memory() {
    let dir = tempfile::tempdir().unwrap();
    // 2 GB that take no room on disk, beside the model and inside it.
    let count: u64 = 500_000_000;
    let entries = [("location", "w.bin"), ("offset", "0")];
    let content =
        onnx(&graph(&[node("Relu", "r", &["x"], &["y"])], &[external_tensor("w", 1, &[count], &entries)], &[], &[]));
    let beside = written(dir.path(), "m.onnx", &content);
    std::fs::File::create(dir.path().join("w.bin")).unwrap().set_len(4 * count).unwrap();
    let done = limited(&beside);
    assert_eq!(done["graphs"][0]["parameter_bytes"], 4 * count);

    // Protobuf's limit is 2 GiB. The data comes last in the tensor, the tensor last in the graph, and the
    // graph last in the model.
    let inside_bytes: u64 = 2_000_000_000;
    let opened = |field: u32, head: Vec<u8>, rest: u64| {
        [varint(u64::from(field) << 3 | 2), varint(head.len() as u64 + rest), head].concat()
    };
    let raw = opened(9, Vec::new(), inside_bytes);
    let head = [int(1, inside_bytes / 4), int(2, 1), bytes(8, "w"), raw].concat();
    let head = [bytes(1, node("Relu", "r", &["x"], &["y"])), opened(5, head, inside_bytes)].concat();
    let model = [int(1, 9), opened(7, head, inside_bytes)].concat();
    let inside = written(dir.path(), "inside.onnx", &model);
    std::fs::File::options().write(true).open(&inside).unwrap().set_len(model.len() as u64 + inside_bytes).unwrap();
    let done = limited(&inside);
    assert_eq!(done["graphs"][0]["parameters"], inside_bytes / 4);
    assert_eq!(done["graphs"][0]["constants"][0]["offset"], model.len());
}

/// Inspects with at most 400 MB of address space, most of which the program itself uses.
fn limited(path: &Path) -> Value {
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 400000; exec \"$0\" inspect \"$1\" --json"])
        .arg(env!("CARGO_BIN_EXE_qnnscope"))
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn damaged_files_are_refused_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read(onnx_model("whole.onnx")).unwrap();
    for part in [whole.len() / 2, whole.len() - 1] {
        let said = refused(&written(dir.path(), "cut.onnx", &whole[..part]), "");
        assert!(said.contains("damaged or truncated ONNX model") && said.contains("at byte"), "{said}");
    }
    let said = refused(&written(dir.path(), "cut.tflite", b"\x20\0\0\0TFL3"), "");
    assert!(said.contains("damaged or truncated TFLite model"), "{said}");
    let said = refused(&written(dir.path(), "cut.pte", b"\x20\0\0\0ET12eh00"), "");
    assert!(said.contains("damaged or truncated ExecuTorch program"), "{said}");
    let said = refused(&written(dir.path(), "text", b"a text\n"), "");
    assert!(said.contains("is not a model"), "{said}");
    let compiled = written(dir.path(), "c.tflite", &compiled_tflite(b"\0\0\0\x02\0\0\0\x03 none"));
    let said = Qnnscope::on(&runtime_247()).arg("run").arg(&compiled).finish().expect(2).stderr;
    assert!(said.contains("a TFLite model") && said.contains("--extract"), "{said}");
    let said = refused(&demo_int8(), "--extract out");
    assert!(said.contains("--extract is for models before conversion"), "{said}");
    let said = refused(&onnx_model("whole.onnx"), "--extract out");
    assert!(said.contains("carries no QNN context binary"), "{said}");
}

#[test]
fn the_text_says_what_the_document_says() {
    let done = Qnnscope::without_runtime().arg("inspect").arg(onnx_model("whole_a8w8.onnx")).finish().expect(0);
    for words in [
        "ONNX model",
        "opset 17",
        "7 of 7 compute nodes are quantised (100 %)",
        "15.9 M MACs",
        "Conv",
        "conv2",
        "input",
    ] {
        assert!(done.text().contains(words), "{words}: {}", done.text());
    }
    // Foreign names cannot send commands to the terminal.
    let dir = tempfile::tempdir().unwrap();
    let odd =
        onnx(&graph(&[node("Relu", "evil\u{1b}[2J", &["x"], &["y"])], &[], &[value("x\u{9b}", 1, &[Ok(1)])], &[]));
    let done = Qnnscope::without_runtime().arg("inspect").arg(written(dir.path(), "m", &odd)).finish().expect(0);
    assert!(done.text().contains("evil") && !done.text().contains(['\u{1b}', '\u{9b}']), "{:?}", done.text());
}
