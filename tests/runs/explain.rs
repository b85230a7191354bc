//! `qnnscope explain`.

#![cfg(target_os = "linux")]

use crate::support::{Done, Qnnscope, repo};
use serde_json::Value;

fn explain(words: &[&str]) -> Done {
    Qnnscope::without_runtime().arg("explain").args(words).finish()
}

fn document(words: &[&str], code: i32) -> Value {
    let document = explain(&[&["--json"], words].concat()).expect(code).json();
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(repo("docs/explain.schema.json")).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    document
}

#[test]
fn every_spelling_gets_the_same_answer() {
    for word in ["3110", "0xc26", "0x10c26", "QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE", "validation_failure"] {
        let document = document(&[word], 0);
        let row = &document["codes"][0];
        assert_eq!((row["code"].as_u64(), row["known"].as_bool()), (Some(3110), Some(true)), "{word}");
        assert_eq!(row["causes"][0]["id"], "op-dtype-unsupported");
        assert!(row["causes"][0]["confirm"][0]["command"].is_string());
        assert_eq!(row["meanings"][0]["stages"][0], "compose");
    }
    for word in ["0x80000406", "-2147482618", "AEE_EUnableToLoad"] {
        assert_eq!(document(&[word], 0)["codes"][0]["causes"][0]["id"], "skel-not-found", "{word}");
    }
}

#[test]
fn shared_numbers_show_all_their_meanings_by_call() {
    let text = explain(&["1002"]).expect(0).text();
    for part in [
        "QNN_COMMON_ERROR_MEM_ALLOC",
        "QNN_BACKEND_ERROR_MEM_ALLOC",
        "QNN_GRAPH_ERROR_MEM_ALLOC",
        "graphFinalize",
        "finalize-op-prepare-failed",
        "fix: ",
        "check: ",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let text = explain(&["30000"]).expect(0).text();
    assert!(
        text.contains("QNN_SYSTEM_CONTEXT_ERROR_INVALID_HANDLE")
            && text.contains("QNN_SYSTEM_DLC_ERROR_INVALID_HANDLE")
    );
}

#[test]
fn what_is_unknown_is_said_to_be() {
    let text = explain(&["6500"]).expect(2).text();
    assert!(text.contains("unknown") && text.contains("graph"), "{text}");
    assert_eq!(document(&["6500"], 2)["codes"][0]["range"], "graph");
    assert!(explain(&["no_such_thing"]).expect(2).text().contains("unknown"));
    let candidates = document(&["mem_alloc"], 2);
    assert!(candidates["codes"][0]["candidates"].as_array().unwrap().len() > 3);
    // One known code among several is enough for an answer.
    let text = explain(&["6500", "1008"]).expect(0).text();
    assert!(text.contains("6500: unknown") && text.contains("skel-not-found"), "{text}");
    explain(&[]).expect(2);
}

#[test]
fn words_from_outside_cannot_disturb_the_terminal() {
    let text = explain(&["\x1b[2Jx\u{202e}"]).expect(2).text();
    assert!(!text.chars().any(|c| c.is_control() && c != '\n') && !text.contains('\u{202e}'), "{text:?}");
}
