//! What `qnnscope diagnose` does besides naming causes: the answer when none fits, how it was reached,
//! following a log, a report to send, the user's own causes.

#![cfg(target_os = "linux")]

use crate::support::{Qnnscope, model_library, repo, runtime_247, schema};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A failure worded in a way that no rule knows.
const STRANGE: &str = "qnn-net-run pid:1\n\
    \x20   0.2ms [  INFO ]  <I> QnnBackend_create done successfully. backend = 0xe04711f8\n\
    \x20   0.5ms [ ERROR ] The frobnicator of tensor x is misaligned, giving up with error 1004\n";

fn log_of(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("a.log");
    std::fs::write(&path, text).unwrap();
    path
}

fn fits(document: &Value) {
    schema::fits(&schema::read("diagnosis.schema.json"), document);
}

#[test]
fn a_failure_without_a_known_cause_still_gets_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_of(dir.path(), STRANGE);
    let text = Qnnscope::without_runtime().arg("diagnose").arg(&log).finish().expect(0).text();
    for part in [
        "first failure, line 3: ",
        "failed: tensor",
        "1004 = QNN_COMMON_ERROR_INVALID_ARGUMENT (QNN)",
        "the backend was created (line 2)",
        "--log_level verbose",
        "qnnscope doctor",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let document = Qnnscope::without_runtime().arg("diagnose").arg(&log).flags("--json").finish().expect(0).json();
    fits(&document);
    assert_eq!(document["unexplained"]["first"]["line"], 3);
    assert_eq!(document["unexplained"]["who"], "qnn-net-run");
    // A log whose cause is known has nothing unexplained.
    let known = Qnnscope::without_runtime()
        .arg("diagnose")
        .arg(repo("tests/data/run-logs/op-3110-rank6-htp-error.log"))
        .flags("--json")
        .finish();
    assert_eq!(known.expect(0).json()["unexplained"], Value::Null);
}

#[test]
fn a_failure_that_no_rule_knows_says_what_it_reads_like() {
    let dir = tempfile::tempdir().unwrap();
    // Said in no kept log, about what many of them are about.
    let log = log_of(
        dir.path(),
        "E acme_npu: qnn wrapper gave up after error 9\nE acme_npu: adsp_library_path and ld_library_path were of no use, libQnnHtpV73Skel stayed shut\n",
    );
    let ask = |flags: &str| {
        let asked = Qnnscope::without_runtime().arg("diagnose").arg(&log);
        if flags.is_empty() { asked.finish().expect(0) } else { asked.flags(flags).finish().expect(0) }
    };
    let document = ask("--json").json();
    fits(&document);
    assert_eq!(document["causes"], json!([]), "{document:#}");
    let similar = document["similar"].as_array().unwrap();
    assert!((1..=3).contains(&similar.len()), "{document:#}");
    assert!(similar.iter().any(|kind| kind["cause"] == "skel-not-found"), "{document:#}");
    let words = similar[0]["words"].as_array().unwrap();
    assert!(words.len() >= 2 && words.iter().any(|word| word == "adsp_library_path"), "{document:#}");
    let text = ask("").text();
    assert!(text.contains("reads like: ") && text.contains("words in common: "), "{text}");
    // A log with a cause needs no such pointer, and a healthy one gets none.
    for file in ["tests/data/run-logs/op-3110-rank6-htp-error.log", "tests/data/run-logs/good-htp-2op-info.log"] {
        let known = Qnnscope::without_runtime().arg("diagnose").arg(repo(file)).flags("--json").finish();
        assert_eq!(known.expect(0).json()["similar"], json!([]), "{file}");
    }
}

#[test]
fn the_nearest_case_is_named_where_no_rule_fits() {
    let dir = tempfile::tempdir().unwrap();
    // States what a public thread stated, but in other words and without any message that a rule knows.
    let log = "E acme_npu: qnn wrapper could not create the op\nE acme_npu: qnn wrapper gave up, error 1002\n\
               E acme_npu: qnn graph failed\n";
    let log = log_of(dir.path(), log);
    let document = Qnnscope::without_runtime().arg("diagnose").arg(&log).flags("--json").finish().expect(0).json();
    fits(&document);
    let unexplained = &document["unexplained"];
    assert!(unexplained.is_object(), "{document:#}");
    for near in unexplained["nearest"].as_array().unwrap() {
        assert!(near["agree"].as_array().unwrap().len() >= 2, "{near:#}");
        assert!(near["source"].as_str().unwrap().starts_with("https://"), "{near:#}");
    }
}

#[test]
fn a_misspelt_option_is_answered_with_the_right_one() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_of(dir.path(), "qnn-net-run: unrecognized option '--profilng_level'\n");
    let document = Qnnscope::without_runtime().arg("diagnose").arg(&log).flags("--json").finish().expect(0).json();
    assert_eq!(document["causes"][0]["id"], "option-unknown");
    assert!(document["causes"][0]["remedy"].as_str().unwrap().contains("--profiling_level"), "{document:#}");
    let tutorial = repo("tests/data/converter-logs/bad-option-seed.log");
    let text = Qnnscope::without_runtime().arg("diagnose").arg(tutorial).finish().expect(0).text();
    assert!(text.contains("here: No tool of the SDK has --target_device"), "{text}");
}

#[test]
fn explain_shows_signs_and_statements() {
    let log = repo("tests/data/dsp-logs/open-0x80000406-618-247-error.log");
    let document =
        Qnnscope::without_runtime().arg("diagnose").arg(&log).flags("--json --explain").finish().expect(0).json();
    fits(&document);
    let trace = &document["trace"];
    assert_eq!(trace["causes"][0]["id"], document["causes"][0]["id"]);
    assert!(trace["causes"][0]["signs"][0]["weight"].as_f64().unwrap() > 0.0);
    let codes: Vec<&str> = trace["lines"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|l| l["codes"].as_array().unwrap())
        .filter_map(Value::as_str)
        .collect();
    assert!(codes.contains(&"0x80000406 = AEE_EUNABLETOLOAD (FastRPC)"), "{codes:?}");
    let text = Qnnscope::without_runtime().arg("diagnose").arg(&log).flags("--explain").finish().expect(0).text();
    assert!(text.contains("how each cause came to its confidence") && text.contains("what each line states"), "{text}");
}

#[test]
fn explain_names_the_lines_of_a_document() {
    let dir = tempfile::tempdir().unwrap();
    let page = "# Known issues of QNN\n\n- **Old driver**: update it.\n- The library `libQnnHtp.so` cannot be opened because it is missing.\n\
                - The device has too little memory for this model.\n## Next\n";
    let log = log_of(dir.path(), page);
    let document =
        Qnnscope::without_runtime().arg("diagnose").arg(&log).flags("--json --explain").finish().expect(0).json();
    fits(&document);
    assert_eq!(document["causes"], json!([]));
    let lines = document["trace"]["lines"].as_array().unwrap();
    let reason = |number: u64| lines.iter().find(|line| line["line"] == number).map(|line| &line["left_out"]);
    assert_eq!(reason(4), Some(&json!("a line of a document")), "{lines:?}");
}

#[test]
fn the_users_causes_are_added_and_take_precedence() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_of(dir.path(), STRANGE);
    let start = || Qnnscope::without_runtime().env("XDG_CONFIG_HOME", dir.path());
    let folder = dir.path().join("qnnscope");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("causes.toml");
    std::fs::write(
        &file,
        "[[cause]]\nid = \"frobnicator\"\ntitle = \"Ours: align it\"\nstage = \"unknown\"\nwhy = \"w\"\nfix = \"align it\"\n\
         signal = [ { any = [\"frobnicator\"], weight = 0.9 } ]\n\n\
         [[cause]]\nid = \"op-rank-unsupported\"\ntitle = \"Our own words\"\nstage = \"compose\"\nwhy = \"w\"\nfix = \"f\"\n\
         signal = [ { says = { said = [\"refused\", \"malformed\", \"wrong\"], of = [\"rank\"] }, weight = 0.9 } ]\n",
    )
    .unwrap();
    let document = start().arg("diagnose").arg(&log).flags("--json").finish().expect(0).json();
    fits(&document);
    assert_eq!(document["causes"][0]["id"], "frobnicator");
    let rank = repo("tests/data/run-logs/op-3110-rank6-htp-error.log");
    let text = start().arg("diagnose").arg(rank).finish().expect(0).text();
    assert!(text.contains("Our own words"), "{text}");

    std::fs::write(&file, "[[cause]]\nid = \"x\"\n\ntitle = 3\n").unwrap();
    let failed = start().arg("diagnose").arg(&log).finish().expect(2);
    assert!(failed.stderr.contains("causes.toml, line 4"), "{}", failed.stderr);
    let refused = start().arg("explain").arg("1002").finish().expect(2);
    assert!(refused.stderr.contains("causes.toml, line 4"), "{}", refused.stderr);
    // Commands that have nothing to do with causes still work, and say so.
    let listed = start().arg("sessions").finish().expect(0);
    assert!(listed.stderr.contains("line 4") && listed.stderr.contains("not used"), "{}", listed.stderr);
}

#[test]
fn the_users_causes_count_for_runs_that_fail() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("qnnscope");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(
        folder.join("causes.toml"),
        "[[cause]]\nid = \"op-rank-unsupported\"\ntitle = \"Ours: fold it\"\nstage = \"compose\"\nwhy = \"w\"\nfix = \"f\"\n\
         signal = [ { says = { said = [\"refused\"], of = [\"rank\"] }, weight = 0.9 } ]\n",
    )
    .unwrap();
    let model = model_library(dir.path(), "odd_graph.c", &["RANK6"]);
    let call = Qnnscope::on(&runtime_247()).env("XDG_CONFIG_HOME", dir.path()).arg("run").arg(&model);
    let done = call.flags("-b htp -n 1 --warmup 0 --headless").finish().expect(1);
    let said = format!("{}{}", done.text(), done.stderr);
    assert!(said.contains("Ours: fold it (op-rank-unsupported)"), "{said}");
}

#[test]
fn the_system_that_is_named_decides_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_of(dir.path(), "QnnDsp <E> DspTransport.openSession qnn_open failed, 0x80000406\n");
    let on = |flags: &str| Qnnscope::without_runtime().arg("diagnose").arg(&log).flags(flags).finish();
    for (system, part, other) in [
        ("android", "adb push", "sudo cp"),
        ("linux", "sudo cp", "adb push"),
        ("windows", "dir QnnHtp.dll", "adb push"),
    ] {
        let text = on(&format!("--platform {system}")).expect(0).text();
        assert!(text.contains(part) && !text.contains(other), "{text}");
        let document = on(&format!("--platform {system} --json")).expect(0).json();
        fits(&document);
        assert_eq!(document["platform"], system);
        assert!(document["causes"][0]["steps"][0].as_str().is_some(), "{document}");
    }
    let unknown = on("--json").expect(0).json();
    fits(&unknown);
    assert_eq!((&unknown["platform"], &unknown["causes"][0]["steps"]), (&Value::Null, &Value::Array(Vec::new())));
    assert!(on("--platform beos").expect(2).stderr.contains("android, linux, windows, pc"));
}

#[test]
fn a_log_is_followed_as_it_grows_and_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = log_of(dir.path(), "a first line\n");
    let mut running = Qnnscope::without_runtime().arg("diagnose").arg(&path).flags("--watch --json").start();
    running.until_said("watching");
    let add = |text: &str| {
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
    };
    running.until_printed("\"causes\": []");
    add("QnnDsp <E> Request feature arch with value 81 unsupported\n");
    running.until_printed("context-binary-arch-newer");
    std::fs::write(&path, "q\n").unwrap();
    running.until_said("was truncated; reading from its start");
    add("QnnDsp <E> Stub lib id mismatch: expected (v2.41.0.251201), detected (v2.20.1.240223)\n");
    running.until_printed("stub-skel-build-id-mismatch");
    running.signal(rustix::process::Signal::INT);
    let done = running.wait().expect(0);
    let documents: Vec<Value> =
        serde_json::Deserializer::from_str(&done.text()).into_iter::<Value>().map(Result::unwrap).collect();
    documents.iter().for_each(fits);
    let firsts: Vec<&str> = documents.iter().map(|d| d["causes"][0]["id"].as_str().unwrap_or("none")).collect();
    let newer = firsts.iter().position(|id| *id == "context-binary-arch-newer").expect("the first failure is told");
    assert_eq!(firsts.last(), Some(&"stub-skel-build-id-mismatch"), "{firsts:?}");
    assert!(newer < firsts.len() - 1 && documents.last().unwrap()["lines"] == 2, "{firsts:?}");
}

#[test]
fn a_report_is_shown_first_and_holds_nothing_of_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let log = "/home/annabell/m.dlc: qnn: serial: R58N12ABCDE token=hf_abcdefghijklmnop\n\
               QnnDsp <E> Request feature arch with value 81 unsupported\n";
    let log = log_of(dir.path(), log);
    let zip = dir.path().join("report.zip");
    let start =
        || Qnnscope::without_runtime().env("USER", "annabell").arg("diagnose").arg(&log).arg("--bundle").arg(&zip);
    // Nobody was asked, so a script must not assume that the report was written.
    let asked = start().finish().expect(2);
    assert!(
        asked.stderr.contains("qnnscope-report/log.txt: ") && asked.stderr.contains("was not written"),
        "{}",
        asked.stderr
    );
    assert!(!zip.exists());
    let written = start().flags("--yes").finish().expect(0);
    assert!(written.stderr.contains("removed: ") && written.stderr.contains("zip written"), "{}", written.stderr);

    let mut archive = zip::ZipArchive::new(std::fs::File::open(&zip).unwrap()).unwrap();
    for name in ["diagnosis.txt", "diagnosis.json", "doctor.txt", "versions.txt", "log.txt"] {
        let mut text = String::new();
        archive.by_name(&format!("qnnscope-report/{name}")).unwrap().read_to_string(&mut text).unwrap();
        for secret in ["annabell", "R58N12ABCDE", "hf_abcdefghijklmnop"] {
            assert!(!text.contains(secret), "{secret} in {name}: {text}");
        }
        if name == "log.txt" {
            assert!(text.contains("Request feature arch with value 81 unsupported"), "{text}");
        }
    }
    // Our own report may be replaced, but no other file.
    start().flags("--yes").finish().expect(0);
    std::fs::write(&zip, "my photos").unwrap();
    let refused = start().flags("--yes").finish().expect(2);
    assert!(refused.stderr.contains("not a bundle that qnnscope diagnose wrote"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&zip).unwrap(), b"my photos");
}
