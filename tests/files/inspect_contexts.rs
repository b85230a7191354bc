//! QNN context binaries inside other models: found, extracted, and run. EPContext models come from the real
//! ONNX Runtime; compiled `.tflite` and `.pte` files are written by hand around a binary that HTP has just
//! compiled.

#![cfg(target_os = "linux")]

use crate::support::inspected::{inspected, refused, written};
use crate::support::source_models::{
    bytes, bytes_attribute, compiled_tflite, graph, int_attribute, node, onnx, program,
};
use crate::support::{Qnnscope, context_binary, demo_int8, onnx_model, onnx_packages, repo, runtime_247};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn binaries_come_out_as_they_went_in_and_run() {
    let dir = tempfile::tempdir().unwrap();
    let binary = context_binary("2.3.0", "htp", &demo_int8(), Some(57));
    let node = {
        let mut node = node("EPContext", "partition", &["x"], &["y"]);
        node.extend(bytes(7, "com.microsoft"));
        node.extend(bytes_attribute("ep_cache_context", &binary));
        node.extend(int_attribute("embed_mode", 1));
        node.extend(bytes_attribute("ep_sdk_version", "v2.47.0.260601114230"));
        node
    };
    let cases = [
        ("c.onnx", onnx(&graph(&[node], &[], &[], &[])), "ep_context_node", "partition.bin", "EPContext"),
        ("c.tflite", compiled_tflite(&binary), "dispatch_op", "qnn_partition_0.bin", "DISPATCH_OP"),
        ("c.pte", program(&binary), "delegate", "forward.bin", "QnnBackend"),
    ];
    for (name, content, site, file, op_type) in cases {
        let path = written(dir.path(), name, &content);
        let out = dir.path().join(format!("{name}-out"));
        let document = inspected(&path, &format!("--extract {}", out.display()));
        let context = &document["context_binaries"][0];
        assert_eq!(
            (&context["site"], &context["bytes"], &context["recognised"]),
            (&json!(site), &json!(binary.len()), &json!(true)),
            "{name}"
        );
        assert!(context["sdk_version"].as_str().unwrap().contains("2.47.0"), "{name}: {context}");
        assert_eq!(std::fs::read(out.join(file)).unwrap(), binary, "{name}");
        let types = document["graphs"][0]["op_types"].as_array().unwrap();
        assert!(types.iter().any(|total| total["type"] == op_type), "{types:?}");
        // An older binary may be replaced, a foreign file may not.
        inspected(&path, &format!("--extract {}", out.display()));
        std::fs::write(out.join(file), "mine").unwrap();
        let said = refused(&path, &format!("--extract {}", out.display()));
        assert!(said.contains("not a context binary") && said.contains("--force"), "{said}");
        inspected(&path, &format!("--extract {} --force", out.display()));
        if name == "c.pte" {
            let taken = out.join(file);
            let on = || Qnnscope::on(&runtime_247());
            let inside = on().arg("inspect").arg(&taken).arg("--json").finish().expect(0).json();
            assert_eq!(
                (&inside["format"], &inside["context_binary"]["backend_id"]),
                (&json!("context_binary"), &json!(6))
            );
            on().run_json(&taken, "-b htp -n 2 --warmup 0 --profiling off").expect(0);
            let checked = on().arg("check").arg(&taken).flags("--soc SM8650").finish();
            assert_eq!(checked.code(), 0, "{}{}", checked.text(), checked.stderr);
        }
        // Anything that extends beyond the file is not a binary.
        let said = refused(&written(dir.path(), "cut", &content[..content.len() - 1]), "");
        assert!(said.contains("damaged") || said.contains("should end"), "{name}: {said}");
    }
    // The model itself is never overwritten.
    let folder = dir.path().join("clash");
    std::fs::create_dir(&folder).unwrap();
    let path = written(&folder, "qnn_partition_0.bin", &compiled_tflite(&binary));
    let said = refused(&path, &format!("--extract {} --force", folder.display()));
    assert!(said.contains("overwrite the model"), "{said}");
}

/// Runs a model once through ONNX Runtime with the QNN plug-in on the HTP simulator, which leaves an
/// EPContext model behind.
fn compile_with_ort(model: &Path, out: &Path, embed: u32) {
    let packages = onnx_packages("2.3.0");
    let output = Command::new("python3")
        .arg(repo("tests/support/ort_host.py"))
        .arg(model)
        .args(["libQnnHtp.so", "0", "soc_model=57", "session:ep.context_enable=1"])
        .arg(format!("session:ep.context_embed_mode={embed}"))
        .arg(format!("session:ep.context_file_path={}", out.display()))
        .env("PYTHONPATH", packages)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn context_models_of_the_real_onnx_runtime() {
    let dir = tempfile::tempdir().unwrap();
    for embed in [0, 1] {
        let folder = dir.path().join(embed.to_string());
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("split_ctx.onnx");
        compile_with_ort(&onnx_model("split.onnx"), &path, embed);
        let document = inspected(&path, "--extract out");
        let contexts = document["context_binaries"].as_array().unwrap();
        assert!(!contexts.is_empty());
        let partitions: usize = contexts.iter().map(|one| one["partitions"].as_array().unwrap().len()).sum();
        // Hardmax stays on the CPU and splits the model in two.
        assert_eq!(partitions, 2, "{contexts:?}");
        for context in contexts {
            assert_eq!((&context["recognised"], &context["problem"]), (&json!(true), &Value::Null));
            assert!(context["sdk_version"].as_str().unwrap().starts_with("v2.47.0"), "{context}");
            let inside = context["file"].as_str().unwrap().ends_with("split_ctx.onnx");
            assert_eq!(inside, embed == 1, "{context}");
        }
        if embed == 0 {
            let binary = PathBuf::from(contexts[0]["file"].as_str().unwrap());
            std::fs::remove_file(&binary).unwrap();
            let gone = inspected(&path, "");
            assert!(gone["context_binaries"][0]["problem"].as_str().unwrap().contains("is not in"), "{gone}");
            let said = refused(&path, "--extract out");
            assert!(said.contains("is not there"), "{said}");
        }
    }
}
