//! Recorded sides of `accuracy`: earlier comparisons, runs, folders of tensors.

#![cfg(target_os = "linux")]

use super::accuracy::{call, planted, with_onnx};
use crate::support::{Done, npy, schema};
use serde_json::{Value, json};
use std::path::Path;

fn accuracy(flags: &str) -> Done {
    call(&format!("accuracy --json {flags}")).finish()
}

/// Each layer's difference between test and reference.
fn figures(document: &Value) -> Vec<(Value, Value, Value)> {
    let rows = document["layers"].as_array().unwrap().iter();
    rows.map(|row| (row["test"].clone(), row["mse"].clone(), row["max_abs"].clone())).collect()
}

fn image(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("image.npy");
    let values: Vec<f32> = (0..768u16).map(|at| f32::from(at % 89) / 88.0).collect();
    std::fs::write(&path, npy("<f4", "(1, 3, 16, 16)", &crate::support::f32_bytes(&values))).unwrap();
    path
}

#[test]
fn a_comparison_that_kept_its_tensors_gives_either_side_again() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let kept = kept.display();
    let done = accuracy(&format!("-n 2 float.dlc range-too-small.dlc@cpu --save-tensors {kept}")).expect(1);
    let whole = done.json();
    schema::fits(&schema::read("accuracy.schema.json"), &whole);
    for sides in [format!("{kept} range-too-small.dlc@cpu"), format!("float.dlc {kept}"), format!("{kept} {kept}")] {
        let again = accuracy(&sides).expect(1).json();
        schema::fits(&schema::read("accuracy.schema.json"), &again);
        assert_eq!(figures(&again), figures(&whole), "{sides}");
        assert_eq!((&again["inferences"], &again["data"]["kind"]), (&json!(2), &json!("kept")));
        assert_eq!(again["first_diverging"]["cause"], whole["first_diverging"]["cause"]);
    }
    // In the other role, and with another model on the inputs that were kept.
    let same = accuracy(&format!("{kept}#test range-too-small.dlc@cpu")).expect(0).json();
    assert!(same["layers"].as_array().unwrap().iter().all(|row| row["mse"] == json!(0.0)), "{same:#}");
    accuracy(&format!("{kept} good.dlc --soc-model 57")).expect(0);
    // A backend other than the recorded one is computed.
    let htp = accuracy(&format!("float.dlc {kept}@htp --soc-model 57")).expect(1).json();
    assert_eq!(htp["test"]["backend"], "htp");
    assert_ne!(figures(&htp), figures(&whole));
    let refused = accuracy(&format!("{kept} good.dlc@cpu -n 3")).expect(2);
    assert!(refused.stderr.contains("belong to the inputs"), "{}", refused.stderr);
    accuracy(&format!("{kept}#middle good.dlc")).expect(2);
    // Files that are read are not overwritten.
    accuracy(&format!("{kept} good.dlc@cpu --save-tensors {kept}")).expect(2);
    // Another comparison saved in the same folder is not taken for the recorded one.
    let document = dir.path().join("a.json");
    std::fs::write(&document, &done.stdout).unwrap();
    accuracy(&format!("-n 1 float.dlc range-too-large.dlc@cpu --save-tensors {kept}")).expect(1);
    let again = accuracy(&format!("{} range-too-small.dlc@cpu", document.display())).expect(1).json();
    assert_eq!((&again["data"]["kind"], &again["inferences"]), (&json!("random"), &json!(2)));
    assert_eq!(figures(&again), figures(&whole));
}

#[test]
fn kept_tensors_stand_as_their_own_model_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    // The reference has channels first; its kept tensors have them last.
    let text = format!("float.onnx good.dlc@cpu -n 1 --save-tensors {}", kept.display());
    let whole = with_onnx(&text).finish().expect(0).json();
    let again = with_onnx(&format!("{} good.dlc@cpu", kept.display())).finish().expect(0).json();
    assert_eq!(figures(&again), figures(&whole));
    assert!(again["reference"]["runtime"]["build_id"].as_str().unwrap().starts_with("ONNX Runtime"));
}

#[test]
fn a_recorded_run_is_computed_again_on_its_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let (model, session) = (dir.path().join("q.dlc"), dir.path().join("run.jsonl"));
    std::fs::copy(planted("range-too-small.dlc"), &model).unwrap();
    let image = image(dir.path());
    let text = format!(
        "run {} -b cpu -n 2 --warmup 0 --profiling off --json --no-history --input image={} --record {}",
        model.display(),
        image.display(),
        session.display()
    );
    let result = dir.path().join("result.json");
    std::fs::write(&result, &call(&text).finish().expect(0).stdout).unwrap();
    let folder = dir.path().join("inputs");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(&image, folder.join("image.npy")).unwrap();
    let named = accuracy(&format!("float.dlc {}@cpu --inputs {}", model.display(), folder.display())).expect(1).json();
    for record in [&session, &result] {
        let document = accuracy(&format!("float.dlc {}", record.display())).expect(1).json();
        schema::fits(&schema::read("accuracy.schema.json"), &document);
        assert_eq!((&document["test"]["backend"], &document["data"]["kind"]), (&json!("cpu"), &json!("files")));
        assert_eq!(figures(&document), figures(&named));
        assert_eq!(document["first_diverging"]["cause"], "range-too-small");
    }
    // Another model under the same name is not the one that was recorded.
    std::fs::copy(planted("good.dlc"), &model).unwrap();
    let changed = accuracy(&format!("float.dlc {}", session.display())).expect(2);
    assert!(changed.stderr.contains("is not the model that was recorded"), "{}", changed.stderr);
    std::fs::copy(planted("range-too-small.dlc"), &model).unwrap();
    std::fs::write(&image, b"changed").unwrap();
    let changed = accuracy(&format!("float.dlc {}", session.display())).expect(2);
    assert!(changed.stderr.contains("has changed since"), "{}", changed.stderr);
    let several = dir.path().join("two.json");
    let text = format!("run {} -b cpu,htp -n 1 --warmup 0 --profiling off --json --no-history", model.display());
    std::fs::write(&several, &call(&text).finish().expect(0).stdout).unwrap();
    let refused = accuracy(&format!("float.dlc {}", several.display())).expect(2);
    assert!(refused.stderr.contains("#1 (cpu), #2 (htp)"), "{}", refused.stderr);
    let picked = accuracy(&format!("float.dlc {}#cpu -n 1", several.display())).expect(1).json();
    assert_eq!(picked["test"]["backend"], "cpu");
}

#[test]
fn a_folder_of_tensors_is_of_the_other_sides_model() {
    let dir = tempfile::tempdir().unwrap();
    let (kept, there) = (dir.path().join("kept"), dir.path().join("there"));
    let text = format!("-n 1 float.dlc good.dlc@cpu --save-tensors {}", kept.display());
    let whole = accuracy(&text).expect(0).json();
    let folder = there.join("Result_0");
    std::fs::create_dir_all(&folder).unwrap();
    for (number, pair) in whole["pairs"].as_array().unwrap().iter().enumerate() {
        let name = pair["test"].as_str().unwrap();
        let from = kept.join(format!("input_0/{number:04}_{name}.test.npy"));
        std::fs::copy(&from, folder.join(format!("{name}.npy"))).unwrap();
    }
    let inputs = dir.path().join("inputs");
    std::fs::create_dir(&inputs).unwrap();
    std::fs::copy(kept.join("input_0/0000_image.input.npy"), inputs.join("image.npy")).unwrap();
    let text = format!("good.dlc@cpu {} --inputs {}", there.display(), inputs.display());
    let same = accuracy(&text).expect(0).json();
    let layers = same["layers"].as_array().unwrap();
    assert!(layers.len() > 5 && layers.iter().all(|row| row["mse"] == json!(0.0)), "{same:#}");
    assert_eq!(same["test"]["simulated"], json!(false));
    let refused = accuracy(&format!("{} {}", there.display(), there.display())).expect(2);
    assert!(refused.stderr.contains("tensors of an unnamed model"), "{}", refused.stderr);
    let refused = accuracy(&format!("good.dlc {}", inputs.display())).expect(2);
    assert!(refused.stderr.contains("has no tensors"), "{}", refused.stderr);
}
