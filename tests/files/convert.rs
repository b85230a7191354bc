//! Conversions by the real libraries: the result is run again, and compared with its source.

#![cfg(target_os = "linux")]

use crate::support::schema::{self, fits};
use crate::support::{Done, Qnnscope, demo_int8, onnx_model, onnx_packages, repo};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn call() -> Qnnscope {
    Qnnscope::on(&onnx_packages("2.3.0").join("onnxruntime_qnn")).within(Duration::from_secs(240))
}

fn convert(from: &Path, to: &Path, flags: &str) -> Done {
    call().arg("convert").arg(from).arg("-o").arg(to).flags(flags).finish()
}

fn names(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_whole_model_becomes_one_dlc_with_a_map_of_its_names_and_the_same_outputs() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("whole.dlc");
    let document = convert(&onnx_model("whole.onnx"), &out, "--soc-model 57 --verify --json").expect(0).json();
    fits(&schema::read("convert.schema.json"), &document);
    assert_eq!((&document["schema"], &document["whole"]), (&"qnnscope.convert/1".into(), &true.into()));
    assert_eq!(document["partitions"], 1);
    assert!(document["files"][0]["bytes"].as_u64().unwrap() > 1000 && out.exists());
    // The same float arithmetic, in another order.
    let output = &document["accuracy"]["outputs"][0];
    assert!(output["max_abs_error"].as_f64().unwrap() < 1e-4, "{document}");
    let map = names(&dir.path().join("whole.names.json"));
    assert_eq!((&map["schema"], &map["results"][0]), (&"qnnscope.names/1".into(), &"whole.dlc".into()));
    let nodes = map["nodes"].as_array().unwrap();
    let conv = nodes.iter().find(|node| node["node"] == "conv1").unwrap();
    assert_eq!(conv["qnn_ops"][0]["type"], "Conv2d", "{conv}");
    // QNN reads the result, and its ops match the map.
    let inspected = call().arg("inspect").arg(&out).arg("--json").finish().expect(0).json();
    let ops: Vec<&str> =
        inspected["graphs"][0]["ops"].as_array().unwrap().iter().map(|op| op["name"].as_str().unwrap()).collect();
    for node in nodes {
        for op in node["qnn_ops"].as_array().unwrap() {
            assert!(ops.contains(&op["name"].as_str().unwrap()), "{op} is not in {ops:?}");
        }
    }
    // From here on every row has its node: when reading, checking and running.
    let nodes_of = |rows: &Value| -> BTreeMap<String, Value> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row["source_node"].clone())).collect()
    };
    let op = conv["qnn_ops"][0]["name"].as_str().unwrap();
    assert_ne!(op, "conv1", "the plug-in renames what it lays out anew");
    fits(&schema::read("inspect.schema.json"), &inspected);
    assert_eq!(nodes_of(&inspected["graphs"][0]["ops"])[op], "conv1");
    let check = call().arg("check").arg(&out).flags("-b cpu --no-compile --json").finish().expect(0).json();
    fits(&schema::read("check.schema.json"), &check);
    assert_eq!(nodes_of(&check["ops"])[op], "conv1");
    let run = call().run_json(&out, "-b cpu,htp --soc-model 57 -n 2 --warmup 0 --profiling-iterations 2");
    let run = run.expect(0).json();
    fits(&schema::read("result.schema.json"), &run);
    for (at, is_htp) in [(0, false), (1, true)] {
        let rows = &run["runs"][at]["ops"];
        assert_eq!(nodes_of(rows)[op], "conv1", "{rows}");
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == op).unwrap();
        assert_eq!(row["htp_op"].is_u64(), is_htp, "{row}");
    }
    let text = call().arg("inspect").arg(&out).finish().expect(0).text();
    assert!(text.contains("; node of the source") && text.contains("; conv1"), "{text}");
    // The same holds for anything made from the result.
    let binary = dir.path().join("other.bin");
    convert(&out, &binary, "--soc-model 57").expect(0);
    let run =
        call().run_json(&binary, "-b htp --soc-model 57 -n 2 --warmup 0 --profiling-iterations 2").expect(0).json();
    assert_eq!(nodes_of(&run["runs"][0]["ops"])[op], "conv1", "{}", run["runs"][0]["ops"]);
    // Nothing is overwritten without being asked for.
    let again = convert(&onnx_model("whole.onnx"), &out, "--soc-model 57").expect(2);
    assert!(again.stderr.contains("exists; --force overwrites it"), "{}", again.stderr);
}

#[test]
fn a_split_model_becomes_a_dlc_for_each_partition_and_the_rest_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("split.dlc");
    let document = convert(&onnx_model("split.onnx"), &out, "--soc-model 57 --verify --verify-inputs 4 --json");
    let document = document.expect(0).json();
    fits(&schema::read("convert.schema.json"), &document);
    // No single file is the whole model; each is compared with what the source computes at its boundaries.
    assert!(document["accuracy"].is_null() && document["not_verified"].is_null(), "{document}");
    let verified = document["verified"].as_array().unwrap();
    let outputs: Vec<&str> =
        verified.iter().map(|row| row["accuracy"]["outputs"][0]["name"].as_str().unwrap()).collect();
    assert_eq!((outputs.len(), outputs[1]), (2, "probs"), "{document}");
    for row in verified {
        assert_eq!((&row["backend"], &row["simulated"], &row["inputs"]), (&"cpu".into(), &false.into(), &4.into()));
        assert!(row["accuracy"]["sqnr_db"].as_f64().unwrap() > 100.0, "{row}");
        assert!(row["accuracy"]["max_abs_error"].as_f64().unwrap() < 1e-4, "{row}");
    }
    let steps: Vec<&str> =
        document["steps"].as_array().unwrap().iter().map(|row| row["step"].as_str().unwrap()).collect();
    assert!(steps.contains(&"loading the libraries") && steps.contains(&"running source and result"), "{steps:?}");
    // A row of a partition's file has its node too: all files share one map.
    let second = call().arg("inspect").arg(dir.path().join("split-1.dlc")).arg("--json").finish().expect(0).json();
    let ops = second["graphs"][0]["ops"].as_array().unwrap();
    assert!(ops.iter().any(|op| op["source_node"] == "conv3" && op["name"] != "conv3"), "{ops:?}");
    let done = convert(&onnx_model("split.onnx"), &out, "--soc-model 57 --force").expect(0);
    assert!(done.stderr.contains(" s  placing the nodes and compiling"), "{}", done.stderr);
    let text = done.text();
    assert!(text.contains("not the whole model") && text.contains("`hardmax_mid` (Hardmax)"), "{text}");
    for file in ["split-0.dlc", "split-1.dlc", "split.names.json"] {
        assert!(dir.path().join(file).exists(), "{file}");
    }
    // The first partition begins with the image, the second ends with the softmax.
    let inspect = |name: &str| call().arg("inspect").arg(dir.path().join(name)).arg("--json").finish().expect(0).json();
    assert_eq!(inspect("split-0.dlc")["graphs"][0]["inputs"][0]["name"], "image");
    let second = inspect("split-1.dlc");
    let ops = second["graphs"][0]["ops"].as_array().unwrap();
    assert!(ops.iter().any(|op| op["name"] == "softmax"), "{ops:?}");
    let refused =
        convert(&onnx_model("split.onnx"), &dir.path().join("x.dlc"), "--soc-model 57 --no-cpu-fallback").expect(1);
    assert!(refused.stderr.contains("`hardmax_mid` (Hardmax)"), "{}", refused.stderr);
    let refused = convert(&onnx_model("split.onnx"), &dir.path().join("x.bin"), "--soc-model 57").expect(1);
    assert!(refused.stderr.contains("2 QNN graphs") && refused.stderr.contains("-o NAME.onnx"), "{}", refused.stderr);
}

#[test]
fn an_epcontext_model_runs_and_keeps_what_qnn_does_not_take() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("split_ctx.onnx");
    let document = convert(&onnx_model("split.onnx"), &out, "--soc-model 57 --verify --json").expect(0).json();
    assert_eq!(document["whole"], true);
    assert!(document["files"].as_array().unwrap().len() >= 2, "{document}");
    assert!(document["accuracy"]["outputs"][0]["sqnr_db"].as_f64().is_none_or(|db| db > 30.0), "{document}");
    let run = call().run_json(&out, "-b htp --soc-model 57 -n 3 --warmup 0 --profiling-iterations 2").expect(0).json();
    let placed = run["runs"][0]["placement"].as_array().unwrap();
    let of = |provider: &str| placed.iter().filter(|row| row["provider"] == provider).count();
    assert_eq!((of("qnn"), of("cpu")), (2, 1), "{placed:?}");
    // The ops inside the compiled nodes are those of the source.
    let rows = run["runs"][0]["ops"].as_array().unwrap();
    let nodes: Vec<&str> = rows.iter().filter_map(|row| row["source_node"].as_str()).collect();
    assert!(nodes.contains(&"conv1") && nodes.contains(&"hardmax_mid"), "{rows:?}");
    // HTP runs in the simulator here, and the document says so; the map has the numbers that HTP gave its
    // ops.
    let verified = &document["verified"][0];
    assert_eq!((&verified["backend"], &verified["simulated"]), (&"htp".into(), &true.into()), "{document}");
    let map = names(&dir.path().join("split_ctx.names.json"));
    let numbered = map["nodes"].as_array().unwrap().iter().flat_map(|node| node["qnn_ops"].as_array().unwrap());
    assert!(numbered.clone().count() > 5 && numbered.clone().any(|op| op["htp_op"].is_u64()), "{map}");
    // When embedded, the result is a single file.
    let alone = dir.path().join("alone");
    std::fs::create_dir(&alone).unwrap();
    let out = alone.join("e.onnx");
    convert(&onnx_model("whole.onnx"), &out, "--soc-model 57 --embed").expect(0);
    let mut files: Vec<_> = std::fs::read_dir(&alone).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["e.names.json", "e.onnx"]);
    call().run_json(&out, "-b htp --soc-model 57 -n 2 --warmup 0 --profiling off --no-cpu-fallback").expect(0);
}

#[test]
fn context_binaries_come_of_onnx_models_and_of_dlcs() {
    let dir = tempfile::tempdir().unwrap();
    for (from, flags) in [(onnx_model("whole.onnx"), "--soc-model 57"), (demo_int8(), "--soc-model 57 --verify")] {
        let out = dir.path().join(format!("{}.bin", from.extension().unwrap().to_string_lossy()));
        convert(&from, &out, flags).expect(0);
        let run = call().run_json(&out, "-b htp --soc-model 57 -n 2 --warmup 0 --profiling off").expect(0).json();
        assert_eq!(run["model"]["format"], "context_binary");
        assert_eq!(run["model"]["context_binary"]["soc_model"], 57);
    }
}

#[test]
fn what_cannot_be_converted_says_what_can() {
    let dir = tempfile::tempdir().unwrap();
    let refused = convert(&demo_int8(), &dir.path().join("x.dlc"), "").expect(2);
    assert!(refused.stderr.contains("convert to context binaries only"), "{}", refused.stderr);
    let refused = convert(&demo_int8(), &dir.path().join("x.so"), "").expect(2);
    assert!(refused.stderr.contains("use .dlc, .bin or .onnx"), "{}", refused.stderr);
    let refused = convert(&onnx_model("dynamic.onnx"), &dir.path().join("x.dlc"), "-b cpu").expect(1);
    assert!(refused.stderr.contains("QNN took none of its nodes"), "{}", refused.stderr);
    convert(&onnx_model("dynamic.onnx"), &dir.path().join("x.dlc"), "-b cpu --dim N=2").expect(0);
    assert!(dir.path().join("x.dlc").exists());
}

/// An SDK of scripts that print what the real converters printed, with their exit statuses.
fn fake_sdk(dir: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let root = dir.join("sdk");
    let bin = root.join("bin/x86_64-linux-clang");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(root.join("lib/x86_64-linux-clang")).unwrap();
    let logs = repo("tests/data/converter-logs");
    let script = |name: &str, text: String| {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let logs = logs.display();
    script(
        "qairt-converter",
        format!(
            "case \"$*\" in *--target_device*) cat {logs}/bad-option-seed.log >&2; exit 2;; esac\n\
             case \"$2\" in *split.onnx) cat {logs}/unsupported-op.log >&2; exit 255;; esac\n\
             cat {logs}/qairt-success.log\ncp {demo} \"$4\"\n",
            demo = demo_int8().display()
        ),
    );
    script("qnn-onnx-converter", format!("cat {logs}/success.log\necho source > \"$4\"\n"));
    script(
        "qnn-model-lib-generator",
        format!("cat {logs}/model-lib-generator.log\nmkdir -p \"$4/$6\" && echo library > \"$4/$6/libmodel.so\"\n"),
    );
    root
}

#[test]
fn the_sdks_converters_keep_their_log_and_failures_are_looked_up() {
    let dir = tempfile::tempdir().unwrap();
    let sdk = fake_sdk(dir.path());
    let with = |from: &str, to: &str, flags: &[&str]| {
        let out = dir.path().join(to);
        let call = Qnnscope::without_runtime().env("QNN_SDK_ROOT", &sdk).arg("convert").arg(onnx_model(from));
        (out.clone(), call.arg("-o").arg(out).args(["--with", "sdk"]).args(flags).finish())
    };
    let (out, done) = with("whole.onnx", "a.dlc", &[]);
    let text = done.expect(0).text();
    assert!(out.exists() && dir.path().join("a.log").exists(), "{text}");
    assert_eq!(std::fs::read(&out).unwrap(), std::fs::read(demo_int8()).unwrap());
    let (_, done) = with("split.onnx", "b.dlc", &[]);
    let said = done.expect(1).stderr;
    assert!(said.contains("Node hardmax_mid") && said.contains("op-unsupported"), "{said}");
    assert!(dir.path().join("b.log").exists(), "the log stays");
    // What tutorials write, and what the option is actually called.
    let flags = ["--sdk-arg", "--target_device", "--sdk-arg", "hexagon"];
    let (_, done) = with("whole.onnx", "c.dlc", &flags);
    let said = done.expect(1).stderr;
    assert!(said.contains("unrecognized arguments: --target_device hexagon") && said.contains("next:"), "{said}");
    let (out, done) = with("whole.onnx", "libd.so", &[]);
    done.expect(0);
    assert_eq!(std::fs::read_to_string(out).unwrap(), "library\n");
    let none =
        Qnnscope::without_runtime().arg("convert").arg(onnx_model("whole.onnx")).flags("-o x.dlc --with sdk").finish();
    assert!(none.expect(3).stderr.contains("QNN_SDK_ROOT is not set"));
}

#[test]
fn what_the_sdk_makes_is_compared_with_its_source() {
    let dir = tempfile::tempdir().unwrap();
    let sdk = fake_sdk(dir.path());
    // What the SDK's programs would produce, produced by the libraries that they drive.
    let (dlc, binary) = (dir.path().join("made.dlc"), dir.path().join("made.bin"));
    convert(&onnx_model("whole.onnx"), &dlc, "--soc-model 57").expect(0);
    convert(&dlc, &binary, "--soc-model 57").expect(0);
    let script = |name: &str, text: String| {
        std::fs::write(sdk.join("bin/x86_64-linux-clang").join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
    };
    script("qairt-converter", format!("cp {} \"$4\"", dlc.display()));
    let (told, generator) = (dir.path().join("told"), sdk.join("bin/x86_64-linux-clang/qnn-context-binary-generator"));
    let rest = "while [ $# -gt 0 ]; do case $1 in --output_dir) d=$2;; --binary_file) n=$2;; esac; shift; done";
    script(
        "qnn-context-binary-generator",
        format!("echo \"$*\" > {}; {rest}; cp {} \"$d/$n.bin\"", told.display(), binary.display()),
    );
    std::fs::set_permissions(&generator, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let with = |from: &Path, to: &str, flags: &str| {
        let call = call().env("QNN_SDK_ROOT", &sdk).arg("convert").arg(from).arg("-o").arg(dir.path().join(to));
        call.flags("--with sdk --verify --json --soc-model 57").flags(flags).finish()
    };
    let document = with(&onnx_model("whole.onnx"), "a.dlc", "--verify-inputs 2").expect(0).json();
    fits(&schema::read("convert.schema.json"), &document);
    let verified = &document["verified"][0];
    assert_eq!((&verified["inputs"], &verified["backend"]), (&2.into(), &"cpu".into()), "{document}");
    assert!(verified["accuracy"]["sqnr_db"].as_f64().unwrap() > 100.0, "{verified}");
    assert!(document["steps"].as_array().unwrap().iter().any(|step| step["step"] == "qairt-converter"), "{document}");
    let document = with(&dlc, "b.bin", "--sdk-arg --config_file --sdk-arg htp.json").expect(0).json();
    fits(&schema::read("convert.schema.json"), &document);
    assert_eq!(document["verified"][0]["backend"], "htp", "{document}");
    let told = std::fs::read_to_string(told).unwrap();
    for said in ["libQnnHtp.so --model", "libQnnModelDlc.so --dlc_path", "made.dlc", "--config_file htp.json"] {
        assert!(told.contains(said), "{said}: {told}");
    }
    // A result that computes something else is detected.
    script("qairt-converter", format!("cp {} \"$4\"", demo_int8().display()));
    let other = with(&onnx_model("whole.onnx"), "c.dlc", "").json();
    let sqnr_db = other["verified"][0]["accuracy"]["sqnr_db"].as_f64();
    assert!(sqnr_db.is_none_or(|sqnr_db| sqnr_db < 20.0), "{other}");
}

#[test]
fn a_tflite_model_without_its_compiler_names_the_python_and_the_package() {
    let dir = tempfile::tempdir().unwrap();
    // The start of a TFLite file: its identifier.
    let path = dir.path().join("m.tflite");
    std::fs::write(&path, b"\x1c\0\0\0TFL3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").unwrap();
    let python = dir.path().join("python-of-mine");
    std::fs::write(&python, "#!/bin/sh\necho\n").unwrap();
    std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let done = call().env("QNNSCOPE_PYTHON", &python).arg("convert").arg(&path).arg("-o").arg(dir.path().join("m.dlc"));
    let said = done.finish().expect(3).stderr;
    assert!(said.contains("python-of-mine has no package ai_edge_litert"), "{said}");
    assert!(said.contains("python-of-mine -m pip install ai-edge-litert==2.3.0"), "{said}");
}

#[test]
fn a_conversion_that_fails_leaves_its_log_and_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let done = convert(&onnx_model("new_opset.onnx"), &dir.path().join("m.dlc"), "").expect(2);
    assert!(
        done.stderr.contains("opset 40; the newest it reads is 25") && done.stderr.contains("m.log"),
        "{}",
        done.stderr
    );
    let log = std::fs::read_to_string(dir.path().join("m.log")).unwrap();
    assert!(!log.is_empty() && !dir.path().join("m.dlc").exists());
    // One that succeeds keeps the log if that was requested.
    let log = dir.path().join("kept.log");
    let flags = format!("--soc-model 57 --log {}", log.display());
    convert(&onnx_model("whole.onnx"), &dir.path().join("whole.dlc"), &flags).expect(0);
    assert!(log.exists() && !dir.path().join("whole.log").exists());
}
