//! `qnnscope check` on the real libraries: what is refused and why, what compiles, which encodings are wrong.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::device::Bench;
use crate::support::virtual_device::Snapshot;
use crate::support::{
    Done, Qnnscope, context_binary, demo_float, demo_int8, model_library, repo, runtime_247, runtime_251,
};
use jsonschema::Validator;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const SOURCE: &str = "odd_graph.c";

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let text = std::fs::read_to_string(repo("docs/check.schema.json")).unwrap();
    jsonschema::draft202012::new(&serde_json::from_str(&text).unwrap()).unwrap()
});

/// The document of a check, validated against its schema.
#[track_caller]
fn document(done: &Done) -> Value {
    let document = done.json();
    let errors: Vec<String> =
        SCHEMA.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(document["schema"], "qnnscope.check/1");
    document
}

fn checked(runtime: &Path, model: &Path, flags: &str) -> Done {
    Qnnscope::on(runtime).arg("check").arg(model).arg("--json").flags(flags).finish().leaves_nothing_behind()
}

fn rows(document: &Value, key: &str) -> Vec<Value> {
    document[key].as_array().unwrap().clone()
}

/// A backend's answer about an op.
#[track_caller]
fn result(document: &Value, op: &str, backend: &str) -> Value {
    let row = rows(document, "ops").into_iter().find(|row| row["name"] == op);
    row.unwrap_or_else(|| panic!("no op {op}"))["results"][backend].clone()
}

fn refused(document: &Value, backend: &str) -> BTreeSet<String> {
    let no = |row: &Value| row["results"][backend]["ok"] == false;
    rows(document, "ops").iter().filter(|row| no(row)).map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} in {value}"))
}

#[test]
fn the_bundled_models_are_fine() {
    for model in [demo_int8(), demo_float()] {
        let done = checked(&runtime_247(), &model, "--backend htp,cpu --htp-arch v68,v73,v75 --soc 57").expect(0);
        let document = document(&done);
        assert_eq!((&document["ok"], &document["quantization"]), (&json!(true), &json!([])), "{}", model.display());
        let ops = rows(&document, "ops");
        assert_eq!(ops.len(), 59);
        for op in &ops {
            for backend in ["htp", "cpu"] {
                assert_eq!((&op["results"][backend]["ok"], &op["results"][backend]["code"]), (&json!(true), &json!(0)));
            }
            assert_eq!(op["results"]["gpu"], Value::Null, "nobody asked for it");
        }
        let compile = rows(&document, "compile");
        let arches: Vec<&str> = compile.iter().map(|row| text(row, "arch")).collect();
        assert_eq!(arches, ["v75", "v68", "v73"], "SoC 57 and v75 are the same SM8650");
        for row in &compile {
            assert_eq!(
                (&row["ok"], &row["code"], &row["stopped_at"]),
                (&json!(true), &json!(0), &Value::Null),
                "{row}"
            );
            assert!(row["vtcm_bytes"].as_u64().unwrap() > 0 && row["finalize_us"].as_f64().unwrap() > 0.0, "{row}");
            assert_eq!((&row["spill_bytes"], &row["fill_bytes"]), (&json!(0), &json!(0)), "it fits into VTCM");
            assert!(row["ddr_read_bytes"].as_u64().unwrap() > row["ddr_write_bytes"].as_u64().unwrap(), "{row}");
            assert!(row["binary_bytes"].as_u64().unwrap() > 0, "{row}");
        }
        assert_ne!(compile[0]["ddr_read_bytes"], compile[1]["ddr_read_bytes"], "v68 is compiled in another way");
    }
}

#[test]
fn the_newer_libraries_tell_the_same_in_their_log() {
    let here = document(&checked(&runtime_247(), &demo_int8(), "--backend htp --soc SM8650"));
    let there = document(&checked(&runtime_251(), &demo_int8(), "--backend htp --soc SM8650").expect(0));
    for figure in ["vtcm_bytes", "spill_bytes", "fill_bytes", "ddr_read_bytes", "ddr_write_bytes"] {
        assert!(there["compile"][0][figure].is_u64(), "{figure}: {}", there["compile"][0]);
        assert_eq!(there["compile"][0][figure], here["compile"][0][figure], "{figure}");
    }
    assert_ne!(there["backends"][0]["build_id"], here["backends"][0]["build_id"]);
}

#[test]
fn each_refused_op_has_its_reason_tensor_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &["RANK6", "INT_CONV", "FLOAT_IN", "INT64", "UNKNOWN"]);
    for runtime in [runtime_247(), runtime_251()] {
        let document = document(&checked(&runtime, &library, "--backend htp").expect(1));
        assert_eq!(document["ok"], false);
        let all = ["rank6", "int_conv", "float_in", "int64", "unknown"].map(str::to_owned);
        assert_eq!(refused(&document, "htp"), BTreeSet::from(all));
        for (op, code, reason, tensor, remedy) in [
            ("rank6", 3110, "rank 6 is not taken", "six", "reshape `six` from rank 6"),
            ("int_conv", 3110, "in[0] int32", "ints", "quantise `ints`"),
            ("float_in", 3110, "`x` (ufixed8) and `left` (float32)", "left", "quantise `left`: it is float32"),
            ("int64", 3110, "in[0] int64", "longs", "cast `longs` from int64 to int32"),
        ] {
            let answer = result(&document, op, "htp");
            assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!(code)), "{op}: {answer}");
            assert_eq!(answer["symbol"], "QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE");
            assert!(text(&answer, "reason").contains(reason), "{op}: {answer}");
            assert_eq!(answer["tensor"]["name"], tensor, "{op}: {answer}");
            assert!(text(&answer, "remedy").contains(remedy), "{op}: {answer}");
            assert_eq!(answer["refused_on"], json!(["SM8650"]));
        }
        let tensor = &result(&document, "rank6", "htp")["tensor"];
        assert_eq!((&tensor["shape"], &tensor["dtype"]), (&json!([1, 2, 2, 2, 2, 2]), &json!("ufixed8")));
        assert_eq!((&tensor["role"], &tensor["slot"]), (&json!("input"), &json!(0)));
        assert_eq!(tensor["quantization"]["offset"], -128);
        let nearest = result(&document, "int_conv", "htp")["reason"].clone();
        assert!(
            nearest.as_str().unwrap().ends_with("(INT8): in[0] ufixed8, in[1] ufixed8, out[0] ufixed8"),
            "{nearest}"
        );
        let unknown = result(&document, "unknown", "htp");
        assert_eq!((&unknown["code"], &unknown["tensor"]), (&json!(4005), &Value::Null));
        assert!(text(&unknown, "reason").contains("no op Frobnicate"), "{unknown}");
        assert_eq!(result(&document, "fine", "htp")["ok"], true);
    }
    let document = document(&checked(&runtime_247(), &library, "--backend cpu --no-compile").expect(1));
    assert_eq!(
        refused(&document, "cpu"),
        BTreeSet::from(["int_conv", "float_in", "int64", "unknown"].map(str::to_owned))
    );
    let silent = result(&document, "int_conv", "cpu");
    assert!(
        text(&silent, "reason").contains("does not say why") && text(&silent, "remedy").contains("probably `ints`")
    );
    assert_eq!(document["compile"], json!([]));
}

#[test]
fn hardware_is_asked_for_by_name_and_answers_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &["WIDE"]);
    for runtime in [runtime_247(), runtime_251()] {
        let done = checked(&runtime, &library, "--backend htp --soc SM8550 --htp-arch v68,v69").expect(1);
        let document = document(&done);
        let answer = result(&document, "wide_conv", "htp");
        assert!(text(&answer, "reason").contains("needs Hexagon v73 or newer, asked for v68"), "{answer}");
        assert_eq!(answer["refused_on"], json!(["SM8350", "SM8450"]));
        let backends = rows(&document, "backends");
        let refused: Vec<&Value> = backends.iter().map(|row| &row["refused"]).collect();
        assert_eq!(refused, [&json!(0), &json!(1), &json!(1)]);
        assert_eq!((&backends[0]["chosen_by"], &backends[1]["chosen_by"]), (&json!("soc"), &json!("arch")));
        let compile = rows(&document, "compile");
        assert_eq!((&compile[0]["ok"], &compile[0]["arch"]), (&json!(true), &json!("v73")));
        assert_eq!(
            (&compile[1]["ok"], &compile[1]["stopped_at"]),
            (&json!(false), &json!("wide_conv")),
            "{}",
            compile[1]
        );
        assert!(text(&compile[1], "reason").contains("A16W16"), "{}", compile[1]);
    }
}

#[test]
fn floats_are_refused_where_the_soc_runs_none() {
    let done = checked(&runtime_247(), &demo_float(), "--backend htp --soc SM8550,SM8635").expect(1);
    let document = document(&done);
    let answer = result(&document, "stem_conv_token_1", "htp");
    assert_eq!(answer["refused_on"], json!(["SM8635"]), "both are v73");
    assert!(text(&answer, "reason").contains("no floats") && text(&answer, "remedy").contains("quantise the model"));
    let compile = rows(&document, "compile");
    assert_eq!((&compile[0]["ok"], &compile[0]["notes"]), (&json!(true), &json!([])));
    assert_eq!((&compile[1]["ok"], &compile[1]["code"]), (&json!(false), &json!(3110)));

    // The compiler accepts element-wise float ops for any SoC; the validator and the SoC table know better.
    let dir = tempfile::tempdir().unwrap();
    let floats = model_library(dir.path(), SOURCE, &["FLOATS"]);
    let document = self::document(&checked(&runtime_247(), &floats, "--backend htp --soc SM8635,SM8650").expect(1));
    assert_eq!(result(&document, "ratio", "htp")["refused_on"], json!(["SM8635"]));
    let notes = document["compile"][0]["notes"].to_string();
    assert_eq!(document["compile"][0]["ok"], true);
    assert!(notes.contains("SM8635 runs no float ops") && notes.contains("`ratio`"), "{notes}");
    assert_eq!(document["compile"][1]["notes"], json!([]));
}

#[test]
fn an_op_that_only_the_compiler_refuses_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let empty = model_library(dir.path(), SOURCE, &["EMPTY"]);
    let document = document(&checked(&runtime_247(), &empty, "--backend htp").expect(1));
    assert!(refused(&document, "htp").is_empty(), "the validator has nothing against it");
    let row = &document["compile"][0];
    assert_eq!((&row["ok"], &row["stopped_at"], &row["code"]), (&json!(false), &json!("empty"), &json!(6005)), "{row}");
    assert!(text(row, "reason").contains("0 sized"), "{row}");
    assert_eq!(document["quantization"][0]["id"], "zero-size-tensor");

    let rank = model_library(dir.path(), SOURCE, &["RANK6"]);
    let document = self::document(&checked(&runtime_247(), &rank, "--backend htp").expect(1));
    assert_eq!((&document["compile"][0]["code"], &document["compile"][0]["ok"]), (&json!(1002), &json!(false)));
    assert!(!rows(&document["compile"][0], "log").is_empty());
}

#[test]
fn wrong_encodings_are_found_and_right_ones_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &["ENCODINGS"]);
    let document = document(&checked(&runtime_247(), &library, "--backend cpu"));
    let found: BTreeSet<(String, String, String)> = rows(&document, "quantization")
        .iter()
        .map(|note| {
            let of = |key: &str| text(note, key).to_owned();
            (of("id"), note["tensor"]["name"].as_str().unwrap().to_owned(), of("severity"))
        })
        .collect();
    let expected = [
        ("zero-range", "zero_scale", "error"),
        ("huge-range", "huge_range", "warning"),
        ("offset-outside", "offset_outside", "error"),
        ("missing-encoding", "no_encoding", "error"),
        ("float-in-quantised-graph", "left_float", "error"),
        ("encoding-changed-by-move", "moved", "warning"),
        ("asymmetric-weights", "uneven_weights", "warning"),
        ("bias-scale", "wrong_bias", "warning"),
        ("axis-mismatch", "few_scales", "error"),
        ("sensitive-8-bit", "powered", "info"),
    ];
    let expected = expected.map(|(id, tensor, severity)| (id.to_owned(), tensor.to_owned(), severity.to_owned()));
    assert_eq!(found, BTreeSet::from(expected));
    let worst_first = |note: &Value| ["error", "warning", "info"].iter().position(|known| note["severity"] == *known);
    assert!(rows(&document, "quantization").iter().map(worst_first).is_sorted());
}

#[test]
fn who_cannot_be_asked_refuses_nothing() {
    // If not requested, the GPU is just a line in the report; if requested, something is missing.
    let done = checked(&runtime_247(), &demo_int8(), "").expect(0);
    let document_ = document(&done);
    let gpu = &document_["backends"][2];
    assert_eq!((&gpu["name"], &gpu["state"], &gpu["refused"]), (&json!("gpu"), &json!("not_asked"), &Value::Null));
    assert!(text(gpu, "reason").contains("4000"), "{gpu}");
    assert_eq!(document_["backends"][0]["chosen_by"], "default");
    let document_ = document(&checked(&runtime_247(), &demo_int8(), "--backend gpu,cpu").expect(3));
    assert_eq!((&document_["ok"], &document_["ops"][0]["results"]["cpu"]["ok"]), (&json!(true), &json!(true)));
    assert_eq!(document_["ops"][0]["results"]["gpu"], Value::Null);
    let document_ = document(&checked(&runtime_251(), &demo_int8(), "--backend cpu,htp").expect(3));
    assert!(text(&document_["backends"][0], "reason").contains("no cpu backend"), "{}", document_["backends"][0]);
    // A refusal outweighs a gap.
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &["RANK6"]);
    document(&checked(&runtime_247(), &library, "--backend gpu,htp").expect(1));
    // If no backend can answer, the model is read all the same.
    let library = model_library(dir.path(), SOURCE, &["ENCODINGS"]);
    let document_ = document(&checked(&runtime_247(), &library, "--backend gpu").expect(3));
    assert_eq!((rows(&document_, "ops").len(), &document_["ops"][0]["results"]), (11, &json!({})));
    assert!(!rows(&document_, "quantization").is_empty());
    // A SoC that these libraries do not support.
    let document_ = document(&checked(&runtime_247(), &demo_int8(), "--backend htp --soc 98,57").expect(3));
    assert_eq!((&document_["compile"][0]["ok"], &document_["compile"][0]["code"]), (&Value::Null, &json!(14001)));
    assert_eq!(
        (&document_["backends"][0]["state"], &document_["backends"][1]["state"]),
        (&json!("not_asked"), &json!("asked"))
    );
}

#[test]
fn a_library_that_fails_or_crashes_is_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let fails = model_library(dir.path(), SOURCE, &["RANK6", "FAILS"]);
    let document_ = document(&checked(&runtime_247(), &fails, "--backend htp").expect(1));
    assert_eq!(document_["backends"][0]["state"], "failed");
    assert!(text(&document_["backends"][0], "reason").contains("model error 4"));
    assert_eq!(refused(&document_, "htp"), BTreeSet::from(["rank6".to_owned()]), "what came before counts");

    let crashes = model_library(dir.path(), SOURCE, &["RANK6", "CRASHES"]);
    let document_ = document(&checked(&runtime_247(), &crashes, "--backend htp,cpu").expect(1));
    for row in rows(&document_, "backends") {
        assert_eq!((&row["state"], &row["refused"]), (&json!("failed"), &Value::Null));
        assert!(text(&row, "reason").contains("SIGABRT"), "{row}");
        assert!(text(&row, "reason").ends_with("the last op that it was asked about is `rank6` (Relu)"), "{row}");
    }
    assert_eq!(document_["compile"][0]["ok"], false);
    assert_eq!(rows(&document_, "ops").len(), 2, "read without a backend");

    let dies = model_library(dir.path(), "small_graph.c", &["BEHAVIOUR=segfault"]);
    let done = checked(&runtime_247(), &dies, "--backend htp").expect(1);
    assert!(done.stdout.is_empty(), "not even its graphs can be read: {}", done.text());
    assert!(done.stderr.contains("SIGSEGV") && done.stderr.contains("stage compose"), "{}", done.stderr);
}

#[test]
fn bad_requests_say_what_is_wrong() {
    for (flags, words) in [
        ("--soc SM9999", "`SM9999` is no SoC"),
        ("--soc SM8250", "SM8250 has no HTP"),
        ("--htp-arch v74", "`v74` is no Hexagon architecture"),
        ("--backend dsp", "unknown backend"),
        ("--runner x", "--runner does not apply here"),
        ("--backend cpu --soc 57", "--soc is an HTP option"),
        ("--backend cpu,gpu --vtcm-mb 4", "--vtcm-mb is an HTP option"),
    ] {
        let done = checked(&runtime_247(), &demo_int8(), flags).expect(2);
        assert!(done.stderr.contains(words), "{flags}: {}", done.stderr);
        assert!(done.stdout.is_empty());
    }
    let dir = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(demo_int8()).unwrap();
    let cut = dir.path().join("cut.dlc");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    assert!(!checked(&runtime_247(), &cut, "").expect(2).stderr.is_empty());
    let text = dir.path().join("text.dlc");
    std::fs::write(&text, "no model").unwrap();
    assert!(checked(&runtime_247(), &text, "").expect(2).stderr.contains("is not a model"));
    assert!(checked(&runtime_247(), &dir.path().join("none"), "").expect(2).stderr.contains("none"));
    Qnnscope::without_runtime().arg("check").arg(demo_int8()).finish().expect(3);
}

fn saved(dir: &Path, version: &str, backend: &str, soc: Option<u32>) -> PathBuf {
    let path = dir.join(format!("{version}-{backend}-{soc:?}.bin"));
    std::fs::write(&path, context_binary(version, backend, &demo_int8(), soc)).unwrap();
    path
}

#[test]
fn context_binaries_are_held_against_hardware() {
    let dir = tempfile::tempdir().unwrap();
    let v73 = saved(dir.path(), "2.3.0", "htp", Some(43));
    let document_ = document(&checked(&runtime_247(), &v73, "--htp-arch v68,v73,v75").expect(1));
    let facts = &document_["context_binary"];
    assert_eq!((&facts["arch"], &facts["soc_model"], &facts["problem"]), (&json!("v73"), &json!(43), &Value::Null));
    let compile = rows(&document_, "compile");
    let ok: Vec<&Value> = compile.iter().map(|row| &row["ok"]).collect();
    assert_eq!(ok, [&json!(false), &json!(true), &json!(true)]);
    assert!(text(&compile[0], "reason").contains("Request feature arch with value 73"), "{}", compile[0]);
    assert_eq!(compile[0]["cause"]["id"], "context-binary-arch-newer");
    assert!(compile[2]["notes"].to_string().contains("slower"), "{}", compile[2]);
    document(&checked(&runtime_247(), &v73, "--soc SM8550").expect(0));

    let v68 = saved(dir.path(), "2.3.0", "htp", Some(30));
    document(&checked(&runtime_247(), &v68, "--htp-arch v68,v73").expect(0));

    // Written by newer libraries than those that load it; the other way round, it loads.
    let newer = saved(dir.path(), "2.7.0", "htp", Some(57));
    let document_ = document(&checked(&runtime_247(), &newer, "").expect(1));
    assert_eq!(document_["context_binary"]["problem"]["id"], "context-binary-sdk-newer");
    let row = &document_["compile"][0];
    assert_eq!((&row["code"], &row["cause"]["id"]), (&json!(5000), &json!("context-binary-sdk-newer")), "{row}");
    document(&checked(&runtime_251(), &v73, "--soc SM8550").expect(0));

    let cpu = saved(dir.path(), "2.3.0", "cpu", None);
    let document_ = document(&checked(&runtime_247(), &cpu, "").expect(1));
    assert_eq!(document_["context_binary"]["backend"], "CPU");
    let cause = &document_["compile"][0]["cause"];
    assert_eq!(cause["id"], "context-binary-other-backend");
    assert!(text(cause, "fix").contains("with the HTP backend"), "{cause}");
    let document_ = document(&checked(&runtime_247(), &v73, "--backend cpu").expect(1));
    assert!(text(&document_["backends"][0], "reason").contains("made for HTP"));

    let damaged = dir.path().join("damaged.bin");
    let bytes = std::fs::read(&v73).unwrap();
    std::fs::write(&damaged, &bytes[..4000]).unwrap();
    assert!(!checked(&runtime_247(), &damaged, "").expect(2).stderr.is_empty());
}

#[test]
fn a_device_is_a_target() {
    let bench = Bench::new(Snapshot::Qcs6490Linux);
    let address = format!("127.0.0.1:{}", bench.server.port());
    let on_device = |model: &Path, flags: &str| {
        Qnnscope::on(&runtime_247())
            .args(["--adb-server", &address, "--device", &bench.device.serial(), "check", "--json"])
            .arg(model)
            .flags(flags)
            .finish()
    };
    let document_ = document(&on_device(&demo_int8(), "--backend htp").expect(0));
    let row = &document_["backends"][0];
    assert_eq!((&row["soc"], &row["arch"], &row["chosen_by"]), (&json!("QCS6490"), &json!("v68"), &json!("device")));
    // It has 2 MB of VTCM, but the compiler uses 4 MB unless told otherwise; and it does not run floats.
    let compile = &document_["compile"][0];
    assert_eq!((&compile["soc_vtcm_bytes"], &compile["vtcm_bytes"]), (&json!(2 << 20), &json!(4 << 20)));
    assert!(compile["notes"].to_string().contains("--vtcm-mb 2"), "{compile}");
    let fits = document(&on_device(&demo_int8(), "--backend htp --vtcm-mb 2").expect(0));
    assert_eq!((&fits["compile"][0]["vtcm_bytes"], &fits["compile"][0]["notes"]), (&json!(2 << 20), &json!([])));
    document(&on_device(&demo_float(), "--backend htp").expect(1));
    let dir = tempfile::tempdir().unwrap();
    let v75 = saved(dir.path(), "2.3.0", "htp", Some(57));
    let document_ = document(&on_device(&v75, "").expect(1));
    assert_eq!(document_["compile"][0]["cause"]["id"], "context-binary-arch-newer");
    let bare = Qnnscope::on(&runtime_247())
        .args(["--adb-server", &address, "--device", "nobody", "check"])
        .arg(demo_int8())
        .finish();
    assert_eq!(bare.code(), 3, "{}", bare.stderr);
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), "small_graph.c", &["BEHAVIOUR=loop_deaf"]);
    for signal in [Signal::INT, Signal::TERM] {
        let mut running = Qnnscope::on(&runtime_247()).arg("check").arg(&library).start();
        let runner = running.runner();
        let maps = format!("/proc/{runner}/maps");
        let name = library.file_name().unwrap().to_str().unwrap();
        running
            .until("the library", || std::fs::read_to_string(&maps).unwrap_or_default().contains(name).then_some(()));
        running.signal(signal);
        let done = running.wait().expect(130).leaves_nothing_behind();
        assert!(done.stdout.is_empty(), "{}", done.text());
    }
    let done = checked(&runtime_247(), &library, "--backend cpu --stage-timeout 200ms").expect(1);
    assert!(done.stderr.contains("--stage-timeout"), "{}", done.stderr);
}

#[test]
fn the_text_is_short_where_all_is_well_and_groups_what_is_not() {
    let plain = |model: &Path, flags: &str| Qnnscope::on(&runtime_247()).arg("check").arg(model).flags(flags).finish();
    let fine = plain(&demo_int8(), "--backend htp,cpu").expect(0).text();
    assert!(fine.lines().count() < 15 && fine.ends_with("ok: nothing is refused\n"), "{fine}");
    assert!(fine.contains("SM8650") && fine.contains("on this machine"), "{fine}");
    let all = plain(&demo_int8(), "--backend htp,cpu --all").expect(0).text();
    assert!(all.lines().count() > 70 && all.contains("(Conv2d): cpu ok, htp ok"), "{all}");
    let floats = plain(&demo_float(), "--backend htp --soc SM8635").expect(1).text();
    assert!(floats.contains("57 ops: Conv2d `stem_conv_token_1`") && floats.contains("and 51 more (3110)"), "{floats}");
    assert!(floats.lines().count() < 35, "one reason is told once: {floats}");

    let dir = tempfile::tempdir().unwrap();
    let library = model_library(dir.path(), SOURCE, &["RANK6", "ENCODINGS"]);
    let text = plain(&library, "--backend htp").expect(1).text();
    for part in
        ["why: rank 6", "tensor: `six`, input 0: ufixed8 1x2x2x2x2x2", "fix: reshape", "error: zero-range", "not ok"]
    {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(!text.contains("sensitive-8-bit") && text.contains("--all shows them"), "{text}");
}
