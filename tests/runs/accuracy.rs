//! Accuracy layer by layer, ranges and encodings on the real libraries. What must be found is listed in
//! `tests/data/accuracy/README.md`.

#![cfg(target_os = "linux")]

use crate::support::{
    Done, Qnnscope, context_binary, npy, number, onnx_packages, repo, runtime_247, runtime_251, schema,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub fn planted(name: &str) -> PathBuf {
    repo("tests/data/accuracy").join(name)
}

pub fn call(flags: &str) -> Qnnscope {
    Qnnscope::on(&runtime_247())
        .within(Duration::from_secs(180))
        .within_folder(&repo("tests/data/accuracy"))
        .flags(flags)
}

/// A comparison for SoC 57 as JSON.
fn accuracy(flags: &str) -> Done {
    call(&format!("accuracy --soc-model 57 --json {flags}")).finish()
}

fn layer<'a>(document: &'a Value, test: &str) -> &'a Value {
    let rows = document["layers"].as_array().unwrap();
    rows.iter().find(|row| row["test"] == test).unwrap_or_else(|| panic!("no layer {test}"))
}

/// Runs a Python script with NumPy; returns its output as JSON.
pub fn python(script: &str, arguments: &[&Path]) -> Value {
    let packages = onnx_packages("2.3.0");
    let output = Command::new("python3")
        .env("PYTHONPATH", &packages)
        .arg("-c")
        .arg(script)
        .args(arguments)
        .output()
        .expect("the tests need python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "python3 with NumPy from {} (made by ./test.sh): {said}", packages.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn planted_faults_are_named_first_on_both_backends() {
    for backend in ["htp", "cpu"] {
        for (reference, test, tensor, cause, word) in [
            ("float", "range-too-small", "r1_QuantizeLinear", "range-too-small", "clipped"),
            ("float", "range-too-large", "r1_QuantizeLinear", "range-too-large", "of the range is used"),
            ("float", "offset-sign", "c2_QuantizeLinear", "offset-sign", "opposite sign"),
            ("float", "ends-turned", "c2_QuantizeLinear", "offset-sign", "opposite sign"),
            ("float", "channel-scale", "r3_QuantizeLinear", "channel-range", "slice 6"),
            ("loud-float", "channel-loud", "r1_QuantizeLinear", "channel-range", "differ in magnitude"),
            ("shift-float", "bits-too-few", "down_QuantizeLinear", "bits-too-few", "amplifies"),
        ] {
            let done = accuracy(&format!("{reference}.dlc {test}.dlc@{backend}")).expect(1);
            let document = done.json();
            let first = &document["first_diverging"];
            assert_eq!(
                (&first["test"], &first["cause"]),
                (&json!(tensor), &json!(cause)),
                "{test} {backend}: {document:#}"
            );
            let because = document["verdict"]["because"].as_str().unwrap();
            assert!(because.contains(word), "{test}: {because}");
            assert!(!first["remedy"].as_str().unwrap().is_empty());
        }
    }
}

#[test]
fn what_is_the_same_diverges_nowhere() {
    let same = accuracy("float.dlc float.dlc@cpu").expect(0).json();
    assert_eq!(same["first_diverging"], Value::Null);
    let layers = same["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 12, "{same:#}");
    for row in layers {
        assert_eq!((&row["mse"], &row["sqnr_db"], &row["max_abs"]), (&json!(0.0), &Value::Null, &json!(0.0)), "{row}");
        assert_eq!(row["reference"], row["test"]);
    }
    let good = accuracy("float.dlc good.dlc").expect(0).json();
    assert_eq!(
        (&good["first_diverging"], &good["test"]["simulated"]),
        (&Value::Null, &json!(cfg!(target_arch = "x86_64")))
    );
    schema::fits(&schema::read("accuracy.schema.json"), &good);
    // An op that gets the reference's values cannot be worse than one that gets those of the layers before
    // it.
    let gap = layer(&good, "g_QuantizeLinear");
    assert!(number(&gap["own_sqnr_db"]) > number(&gap["sqnr_db"]) + 3.0, "{gap}");
}

#[test]
fn figures_are_those_of_numpy() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("tensors");
    let text = format!("float.dlc range-too-small.dlc -n 3 --save-tensors {}", folder.display());
    let document = accuracy(&text).expect(1).json();
    schema::fits(&schema::read("accuracy.schema.json"), &document);
    let script = r#"
import glob, json, os, re, sys
import numpy as np
pairs = {}
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*", "*.reference.npy"))):
    key = int(os.path.basename(path)[:4])
    x, y = np.load(path), np.load(path.replace(".reference.", ".test."))
    assert x.shape == y.shape and x.dtype == np.float64
    pairs.setdefault(key, []).append((x.ravel(), y.ravel()))
rows = []
for key in sorted(pairs):
    x = np.concatenate([x for x, _ in pairs[key]]); y = np.concatenate([y for _, y in pairs[key]])
    d = x - y
    noise = float(np.sum(d * d))
    rows.append({"sqnr_db": float(10 * np.log10(np.sum(x * x) / noise)) if noise else None, "mse": float(np.mean(d * d)),
        "max_abs": float(np.max(np.abs(d))), "mean_abs": float(np.mean(np.abs(d))),
        "cosine": float(x @ y / np.linalg.norm(x) / np.linalg.norm(y)), "min": float(x.min()), "max": float(x.max()), "count": x.size})
print(json.dumps(rows))
"#;
    let rows = python(script, &[&folder]);
    let rows = rows.as_array().unwrap();
    let layers = document["layers"].as_array().unwrap();
    assert_eq!(rows.len(), layers.len());
    for (row, layer) in rows.iter().zip(layers) {
        for key in ["sqnr_db", "mse", "max_abs", "mean_abs", "cosine"] {
            let (theirs, ours) = (number(&row[key]), number(&layer[key]));
            assert!((theirs - ours).abs() <= 1e-6 * theirs.abs().max(1e-3), "{key} of {layer}: {theirs}");
        }
    }
    let clipped = &document["pairs"][2];
    assert_eq!((&clipped["test"], &clipped["how"]), (&json!("r1_QuantizeLinear"), &json!("op")));
    assert_eq!(number(&clipped["seen_max"]), number(&rows[2]["max"]));
    assert_eq!(clipped["elements"], rows[2]["count"]);
}

#[test]
fn searching_by_halves_and_in_little_memory_finds_the_same() {
    let whole = accuracy("float.dlc offset-sign.dlc").expect(1).json();
    let halves = accuracy("float.dlc offset-sign.dlc --bisect").expect(1).json();
    let first = |document: &Value| {
        (document["first_diverging"]["test"].clone(), document["first_diverging"]["sqnr_db"].clone())
    };
    assert_eq!(first(&whole), first(&halves));
    assert!(halves["layers"].as_array().unwrap().len() < whole["layers"].as_array().unwrap().len());
    assert_eq!(halves["bisected"], json!(true));
}

#[test]
fn numbers_that_are_none_and_numbers_that_count_are_told_apart() {
    let document = accuracy("kinds.dlc kinds.dlc@cpu -n 2").expect(0).json();
    let pair = |name: &str| {
        let rows = document["pairs"].as_array().unwrap();
        rows.iter().find(|row| row["test"] == name).unwrap_or_else(|| panic!("no pair {name}")).clone()
    };
    let (truth, place, odd) = (pair("above"), pair("place"), pair("odd"));
    assert_eq!((&truth["dtype"], &truth["differing_share"]), (&json!("bool8"), &json!(0.0)));
    assert_eq!((&place["dtype"], &place["differing_share"]), (&json!("int32"), &json!(0.0)));
    assert_eq!(layer(&document, "above")["mse"], Value::Null, "of truth values only the share that differs is told");
    // About half of the values are 0 / 0.
    let (lost, all) = (odd["not_finite"].as_u64().unwrap(), odd["elements"].as_u64().unwrap());
    assert!(all == 256 && (64..192).contains(&lost), "{odd}");

    let dir = tempfile::tempdir().unwrap();
    let mut values = vec![0.25f32; 128];
    (values[3], values[4]) = (f32::NAN, f32::INFINITY);
    std::fs::write(dir.path().join("image.raw"), crate::support::f32_bytes(&values)).unwrap();
    let text = format!("kinds.dlc kinds.dlc@cpu --inputs {}", dir.path().display());
    let document = accuracy(&text).expect(0).json();
    let row = document["pairs"].as_array().unwrap().iter().find(|row| row["test"] == "odd").unwrap().clone();
    assert_eq!(row["not_finite"], json!(128), "{row}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("binary");
    std::fs::write(&binary, context_binary("2.3.0", "htp", &planted("good.dlc"), Some(57))).unwrap();
    let said = |flags: &str, code: i32, words: &[&str]| {
        let done = call(&format!("accuracy {flags}")).finish().expect(code);
        words.iter().for_each(|word| assert!(done.stderr.contains(word), "{flags}: {}", done.stderr));
    };
    said(&format!("float.dlc {}", binary.display()), 2, &["context binary", "DLC or model library"]);
    said("float.dlc kinds.dlc@cpu", 2, &["take different inputs", "1x3x16x16"]);
    said("float.dlc no-such.dlc", 2, &["no-such.dlc"]);
    said("float.dlc good.dlc --inputs /no/such", 2, &["/no/such"]);
    said("float.dlc good.dlc --graph nope", 2, &["no graph `nope`"]);
    said("float.onnx@htp good.dlc", 2, &["ONNX Runtime's CPU provider", "qnnscope convert"]);
    // There is no Adreno here, so the backend's own error is passed on.
    said("float.dlc good.dlc@gpu", 1, &["the test"]);
    let text = call("accuracy float.dlc range-too-small.dlc --soc-model 57").finish().expect(1);
    for words in ["diverges: `r1_QuantizeLinear`", "range-too-small", "next:", "(simulated)", "give no times"] {
        let said = text.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Ids of findings with the tensors they concern.
fn findings(done: &Done) -> Vec<(String, String, String)> {
    let document = done.json();
    schema::fits(&schema::read("encodings.schema.json"), &document);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows = document["findings"].as_array().unwrap().iter();
    rows.map(|row| (text(&row["id"]), text(&row["tensor"]), text(&row["severity"]))).collect()
}

#[test]
fn mistakes_in_encodings_are_found_each_by_its_id() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("overrides.json");
    let lint = |content: &Value, code: i32| {
        std::fs::write(&file, content.to_string()).unwrap();
        let text = format!("encodings lint {} --model float.onnx --json", file.display());
        findings(&call(&text).finish().expect(code))
    };
    let healthy =
        json!([{"bitwidth": 8, "min": 0.0, "max": 2.55, "scale": 0.01, "offset": 0, "is_symmetric": "False"}]);
    let with = |name: &str, record: Value| json!({"activation_encodings": {name: record}, "param_encodings": {}});
    assert_eq!(lint(&with("r1", healthy.clone()), 0), []);
    for (name, record, id) in [
        ("relu1", healthy.clone(), "unknown-tensor"),
        ("r1", healthy[0].clone(), "wrong-shape"),
        ("r1", json!([{"bitwidth": 8, "min": -0.75, "max": 1.8, "scale": 0.01, "offset": 75}]), "offset-sign"),
        ("r1", json!([{"bitwidth": 8, "min": 0.0, "max": 2.55, "scale": 0.02, "offset": 0}]), "scale-range"),
        ("r1", json!([{"bitwidth": 8, "scale": -0.01, "offset": 0}]), "bad-scale"),
        ("r1", json!([{"bitwidth": 8, "min": 1.0, "max": 2.0}]), "bad-range"),
        ("r1", json!([{"bitwidth": 8, "scale": 0.01, "offset": -300}]), "offset-range"),
        ("r1", json!([{"bitwidth": 8, "scale": 0.01, "offset": -3.5}]), "offset-not-whole"),
        ("r1", json!([{"bitwidth": 4, "min": 0.0, "max": 1.5}]), "bit-width"),
    ] {
        let found = lint(&with(name, record), 1);
        assert_eq!(found.iter().map(|(id, ..)| id.as_str()).collect::<Vec<_>>(), [id], "{found:?}");
        assert_eq!(found[0].1, name);
    }
    let per_channel = |count: usize| -> Value {
        (0..count).map(|_| json!({"bitwidth": 8, "scale": 0.01, "offset": -128, "is_symmetric": "True"})).collect()
    };
    let weights = |record: Value| json!({"activation_encodings": {}, "param_encodings": {"w1": record}});
    assert_eq!(lint(&weights(per_channel(8)), 0), []);
    assert_eq!(lint(&weights(per_channel(5)), 1)[0].0, "channel-count");
    // c1 is not an island: it is one op with its Relu. c2 is one, between r1 and t2; t2, between c2 and r3,
    // is not required here.
    let gap = json!({"activation_encodings": {"r1": healthy, "t2": healthy}, "param_encodings": {}});
    let found = lint(&gap, 0);
    assert_eq!(found, [("missing-encoding".to_owned(), "c2".to_owned(), "warning".to_owned())]);
    let seed = json!({"activation_encodings": {"r1:0": healthy}});
    std::fs::write(&file, seed.to_string()).unwrap();
    let done = call(&format!("encodings lint {} --model float.onnx", file.display())).finish().expect(1);
    assert!(done.text().contains("did you mean `r1`?"), "{}", done.text());
    call(&format!("encodings lint {}", repo("Cargo.toml").display())).finish().expect(2);
}

#[test]
fn encodings_survive_every_format_and_come_out_of_models() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut before = planted("good.onnx");
    for format in ["aimet-2.0.0", "aimet-1.0.0", "aimet-0.6.1", "overrides", "aimet-2.0.0"] {
        let after = at(&format!("{format}.json"));
        let text = format!("encodings convert {} --to {format} -o {} --force", before.display(), after.display());
        call(&text).finish().expect(0);
        let diff = call(&format!("encodings diff {} {} --json", before.display(), after.display())).finish().expect(0);
        // Biases are only listed by AIMET 2.0.0 and in models.
        assert!(findings(&diff).iter().all(|(id, tensor, severity)| {
            (id.as_str(), severity.as_str()) == ("only-in-a", "info") && tensor.starts_with(['b', 'f'])
        }));
        call(&format!("encodings lint {} --model float.onnx", after.display())).finish().expect(0);
        before = after;
    }
    let foreign = at("mine.json");
    std::fs::write(&foreign, "{\"notes\": 1}").unwrap();
    let text = format!("encodings convert good.onnx --to overrides -o {}", foreign.display());
    call(&text).finish().expect(2);
    assert_eq!(std::fs::read_to_string(&foreign).unwrap(), "{\"notes\": 1}");
    let done = call("encodings diff good.dlc range-too-small.dlc --json").finish().expect(1);
    let names: Vec<String> = findings(&done).into_iter().map(|(_, tensor, _)| tensor).collect();
    assert!(names.contains(&"r1_QuantizeLinear".to_owned()), "{names:?}");
    call("encodings lint good.dlc").finish().expect(0);
}

#[test]
fn ranges_are_those_of_the_data_and_can_be_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let inputs = dir.path().join("inputs");
    std::fs::create_dir(&inputs).unwrap();
    for number in 0..3u8 {
        let values: Vec<f32> = (0..768).map(|at| (at % 97) as f32 / 96.0 * f32::from(number + 1) / 3.0).collect();
        let data = npy("<f4", "(1, 3, 16, 16)", &crate::support::f32_bytes(&values));
        std::fs::write(inputs.join(format!("{number}.npy")), data).unwrap();
    }
    let state = dir.path().join("state.json");
    let encodings = dir.path().join("out.json");
    let text = format!("ranges float.dlc --inputs {} --json", inputs.display());
    let plain = call(&text).finish().expect(0).json();
    schema::fits(&schema::read("ranges.schema.json"), &plain);
    let tensor = |document: &Value, name: &str| {
        document["tensors"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
    };
    let image = tensor(&plain, "image");
    assert_eq!((&image["min"], &image["max"], &image["values"]), (&json!(0.0), &json!(1.0), &json!(3 * 768)));
    let counted: u64 = image["histogram"].as_array().unwrap().iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    assert_eq!(counted, 3 * 768);
    // Softmax: 5 classes, all between 0 and 1, together 1.
    let probs = tensor(&plain, "probs");
    assert!(number(&probs["min"]) > 0.0 && number(&probs["max"]) < 1.0, "{probs}");
    assert_eq!(tensor(&plain, "relu1")["channels"].as_array().unwrap().len(), 8);

    // The same with a state file: created by one call, continued by the next.
    let stated =
        call(&format!("{text} --state {} -o {}", state.display(), encodings.display())).finish().expect(0).json();
    let again = call(&format!("{text} --state {}", state.display())).finish().expect(0).json();
    assert_eq!((&stated["resumed"], &again["resumed"]), (&json!(0), &json!(3)));
    assert_eq!(stated["tensors"], plain["tensors"]);
    assert_eq!(again["tensors"], plain["tensors"]);
    let other = call(&format!("ranges float.dlc -n 2 --state {}", state.display())).finish().expect(2);
    assert!(other.stderr.contains("other inputs"), "{}", other.stderr);

    // Lint finds nothing wrong with the encodings it wrote, and they lose what 8 bits lose.
    call(&format!("encodings lint {} --model float.dlc", encodings.display())).finish().expect(0);
    // The weights' encodings match the model: NumPy's largest absolute values per channel, divided by 127.
    let script = r#"
import json, sys
import numpy as np
def fields(data):
    at = 0
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]; at += 1
            value |= (byte & 127) << shift; shift += 7
            if byte < 128: return value
    while at < len(data):
        key = varint()
        if key & 7 == 0: yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint(); yield key >> 3, data[at:at + size]; at += size
        else: at += 8 if key & 7 == 1 else 4
arrays = {}
graph = next(value for field, value in fields(open(sys.argv[1], "rb").read()) if field == 7)
for tensor in (value for field, value in fields(graph) if field == 5):
    dims, name, raw = [], "", None
    for field, value in fields(tensor):
        if field == 1: dims += [value] if isinstance(value, int) else list(value)
        if field == 8: name = value.decode()
        if field == 9: raw = value
    if raw is not None and len(raw) == 4 * int(np.prod(dims)):
        arrays[name] = np.frombuffer(raw, "<f4").reshape(dims).astype(np.float64)
assert any(a.ndim == 4 for a in arrays.values())
print(json.dumps({n: [float(v) for v in np.abs(a).reshape(a.shape[0], -1).max(axis=1) / 127] for n, a in arrays.items() if a.ndim == 4}))
"#;
    let theirs = python(script, &[&planted("float.onnx")]);
    let written: Value = serde_json::from_slice(&std::fs::read(&encodings).unwrap()).unwrap();
    for (name, scales) in theirs.as_object().unwrap() {
        let ours: Vec<f64> = written["param_encodings"][name]
            .as_array()
            .unwrap_or_else(|| panic!("no {name}: {}", written["param_encodings"]))
            .iter()
            .map(|slice| number(&slice["scale"]))
            .collect();
        let scales: Vec<f64> = scales.as_array().unwrap().iter().map(number).collect();
        assert_eq!(ours.len(), scales.len(), "{name}");
        for (ours, theirs) in ours.iter().zip(&scales) {
            assert!((ours - theirs).abs() <= 1e-6 * theirs, "{name}: {ours} {theirs}");
        }
    }
    let text = format!("{text} --validate {}", encodings.display());
    let checked = call(&text).finish().expect(0).json();
    schema::fits(&schema::read("ranges.schema.json"), &checked);
    let relu = tensor(&checked, "relu1")["given"].clone();
    assert_eq!((&relu["bits"], &relu["clipped_share"]), (&json!(8), &json!(0.0)));
    assert!(
        number(&relu["sqnr_db"]) > 35.0 && number(&relu["sqnr_db_16_bits"]) > number(&relu["sqnr_db"]) + 40.0,
        "{relu}"
    );
}

/// A comparison with ONNX Runtime's libraries available.
pub fn with_onnx(flags: &str) -> Qnnscope {
    Qnnscope::on(&onnx_packages("2.3.0").join("onnxruntime_qnn"))
        .within(Duration::from_secs(180))
        .within_folder(&repo("tests/data/accuracy"))
        .flags("accuracy --soc-model 57 --json")
        .flags(flags)
}

#[test]
fn onnx_models_are_sides_too() {
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let done = with_onnx("float.onnx float.dlc@cpu -n 2").env("TMPDIR", &temporary).finish().expect(0);
    let document = done.json();
    schema::fits(&schema::read("accuracy.schema.json"), &document);
    assert!(document["reference"]["runtime"]["build_id"].as_str().unwrap().starts_with("ONNX Runtime 1."));
    let pair = |document: &Value, test: &str| {
        let rows = document["pairs"].as_array().unwrap();
        rows.iter().find(|row| row["test"] == test).unwrap_or_else(|| panic!("no pair {test}: {rows:#?}")).clone()
    };
    // The composer names a tensor after its node and puts channels last.
    let relu = pair(&document, "relu1");
    assert_eq!((&relu["reference"], &relu["permutation"]), (&json!("r1"), &json!("0,2,3,1")), "{document:#}");
    assert_eq!(pair(&document, "probs")["how"], json!("name"));
    // Both compute with float32, so they differ only by rounding.
    for row in document["layers"].as_array().unwrap() {
        assert!(row["sqnr_db"].is_null() || number(&row["sqnr_db"]) > 90.0, "{row}");
    }
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");

    let planted = with_onnx("float.onnx range-too-small.dlc").finish().expect(1).json();
    let first = &planted["first_diverging"];
    assert_eq!(
        (&first["test"], &first["cause"]),
        (&json!("r1_QuantizeLinear"), &json!("range-too-small")),
        "{planted:#}"
    );
    let same = with_onnx("float.onnx float.onnx -n 1").finish().expect(0).json();
    assert!(same["layers"].as_array().unwrap().iter().all(|row| row["mse"] == json!(0.0)), "{same:#}");
    let notes =
        same["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect::<Vec<_>>().join(" ");
    assert!(notes.contains("own errors are unknown"), "{notes}");
}

#[test]
fn the_reference_may_come_from_another_runtime() {
    let done = Qnnscope::on(&runtime_251())
        .within(Duration::from_secs(180))
        .within_folder(&repo("tests/data/accuracy"))
        .flags("accuracy --json -n 1 float.dlc good.dlc --soc-model 57 --reference-runtime")
        .arg(runtime_247())
        .finish();
    let document = done.expect(0).json();
    let build = |side: &str| document[side]["runtime"]["build_id"].as_str().unwrap().to_owned();
    assert!(build("reference").starts_with("v2.47.") && build("test").starts_with("v2.51."), "{document:#}");
}

#[test]
fn what_was_stopped_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["accuracy float.dlc good.dlc --soc-model 57 -n 5000", "ranges float.dlc -n 5000"] {
        let mut running = call(command).env("TMPDIR", dir.path()).start();
        running.runner();
        let is_open = || std::fs::read_dir(dir.path()).unwrap().next().is_some().then_some(());
        running.until("tensors in the folder for temporary files", is_open);
        running.signal(rustix::process::Signal::INT);
        running.wait().expect(130).leaves_nothing_behind();
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{command} left behind: {left:?}");
    }
}

#[test]
fn comparisons_go_into_reports() {
    let dir = tempfile::tempdir().unwrap();
    let document = dir.path().join("accuracy.json");
    let done = call("accuracy --json -n 1 float.dlc range-too-small.dlc@cpu").finish().expect(1);
    std::fs::write(&document, &done.stdout).unwrap();
    let report = |name: &str, flags: &str, code: i32| {
        let path = dir.path().join(name);
        let call = Qnnscope::without_runtime().arg("report").arg(&document).arg("-o").arg(&path).flags(flags);
        let done = call.finish().expect(code);
        std::fs::read_to_string(&path).unwrap_or(done.stderr)
    };
    for name in ["page.html", "page.md"] {
        let text = report(name, "", 0);
        for words in ["range-too-small", "first layer that diverges", "SQNR by layer"] {
            assert!(text.contains(words), "{name}: {words}");
        }
        assert!(text.contains("QuantizeLinear"), "{name}");
        let masked = report(&format!("masked-{name}"), "--redact", 0);
        assert!(!masked.contains("QuantizeLinear") && !masked.contains("range-too-small.dlc"), "{masked}");
    }
    assert!(report("page.csv", "", 2).contains("export to .html and .md only"));
    std::fs::write(&document, &done.stdout[..done.stdout.len() / 2]).unwrap();
    report("cut.html", "", 2);
}

#[test]
fn tensors_from_elsewhere_stand_for_a_side() {
    let dir = tempfile::tempdir().unwrap();
    let (kept, there) = (dir.path().join("kept"), dir.path().join("there"));
    let text = format!("accuracy --json -n 2 float.dlc range-too-small.dlc@cpu --save-tensors {}", kept.display());
    let computed = call(&text).finish().expect(1).json();
    // As left by a tool that computed the test model on a device: a folder per inference, a file per tensor.
    for inference in 0..2 {
        let folder = there.join(format!("Result_{inference}"));
        std::fs::create_dir_all(&folder).unwrap();
        for (number, pair) in computed["pairs"].as_array().unwrap().iter().enumerate() {
            let name = pair["test"].as_str().unwrap();
            let from = kept.join(format!("input_{inference}/{number:04}_{name}.test.npy"));
            std::fs::copy(&from, folder.join(format!("{name}.npy")))
                .unwrap_or_else(|error| panic!("{from:?}: {error}"));
        }
    }
    let text = format!("accuracy --json -n 2 float.dlc range-too-small.dlc@htp --test-tensors {}", there.display());
    let document = call(&text).finish().expect(1).json();
    schema::fits(&schema::read("accuracy.schema.json"), &document);
    assert_eq!(document["test"]["simulated"], json!(false));
    for key in ["test", "cause"] {
        assert_eq!(document["first_diverging"][key], computed["first_diverging"][key], "{document:#}");
    }
    for (ours, theirs) in document["layers"].as_array().unwrap().iter().zip(computed["layers"].as_array().unwrap()) {
        assert_eq!((&ours["test"], &ours["mse"]), (&theirs["test"], &theirs["mse"]));
    }
    let few = call(&text.replace("-n 2", "-n 3")).finish().expect(1);
    assert!(few.stderr.contains("inference 2"), "{}", few.stderr);
}
