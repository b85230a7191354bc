//! Diagnosing logs: known causes come first, healthy logs get none, and no log of any kind is too much.

#![cfg(target_os = "linux")]

use crate::logs::{Known, Numbers, WRAPPINGS, audit, cases, field, noise, runs, wrapped};
use crate::support::{Qnnscope, repo, schema};
use proptest::prelude::*;
use qnnscope::diagnosis::{Diagnoser, Diagnosis, causes, diagnose_failure};
use qnnscope::event::{Failure, Stage};

/// A log that is healthy in every line; only the result files show what went wrong.
const ONLY_OUTPUTS_SHOW: &str = "disk-full-exit-0.log";

/// The same, plus one that ends in the middle of a good verbose log: only its exit status (136) shows the
/// failure.
const SILENT: [&str; 3] = [ONLY_OUTPUTS_SHOW, "input-missing-cpu-verbose.log", "input-too-small-cpu-verbose.log"];

fn diagnose(log: &[u8]) -> Diagnosis {
    let mut diagnoser = Diagnoser::new();
    diagnoser.feed(log);
    diagnoser.finish()
}

/// Whether the first cause is one of the right ones, or there is none if none is right.
fn is_right(diagnosis: &Diagnosis, right: &[String]) -> bool {
    match diagnosis.causes.first() {
        None => right.is_empty(),
        Some(first) => right.iter().any(|id| id == first.id || first.cause().aliases.contains(id)),
    }
}

fn summary(diagnosis: &Diagnosis) -> String {
    let rows = diagnosis.causes.iter().map(|cause| {
        let lines: Vec<String> = cause
            .evidence
            .iter()
            .take(3)
            .map(|e| format!("{}: {}", e.line, e.text.chars().take(110).collect::<String>()))
            .collect();
        format!("{} {:.2} [{}]", cause.id, cause.confidence, lines.join(" / "))
    });
    rows.collect::<Vec<_>>().join("\n      ")
}

#[track_caller]
fn all_right(logs: &[Known]) {
    let mut wrong = Vec::new();
    for known in logs {
        let diagnosis = diagnose(known.log.as_bytes());
        if !is_right(&diagnosis, &known.right) {
            wrong.push(format!("{} should be {:?}:\n      {}", known.name, known.right, summary(&diagnosis)));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), logs.len(), wrong.join("\n"));
}

#[test]
fn field_logs_get_their_cause_first() {
    let logs = field();
    assert_eq!(logs.len(), 41);
    all_right(&logs);
}

#[test]
fn logs_of_an_audit_get_their_cause_first_and_healthy_ones_none() {
    let logs = audit();
    let healthy = logs.iter().filter(|log| log.right.is_empty()).count();
    assert_eq!((logs.len(), healthy), (184, 79));
    all_right(&logs);
}

#[test]
fn logs_of_real_runs_get_their_cause_first() {
    let tells = |log: &Known| !SILENT.contains(&log.name.as_str());
    let logs: Vec<Known> = runs().into_iter().filter(tells).collect();
    assert_eq!(logs.len(), 50 - SILENT.len());
    all_right(&logs);
}

#[test]
fn every_cause_has_logs_that_show_it_and_logs_that_only_look_like_it() {
    let cases = cases();
    for cause in causes() {
        let case = cases.iter().find(|case| case.id == cause.id).unwrap_or_else(|| panic!("no case for {}", cause.id));
        assert!(!case.right.is_empty() && !case.wrong.is_empty(), "{}", cause.id);
    }
    let mut wrong = Vec::new();
    for case in &cases {
        for (log, expected) in case.right.iter().map(|log| (log, true)).chain(case.wrong.iter().map(|log| (log, false)))
        {
            let diagnosis = diagnose(log.as_bytes());
            let first = diagnosis.causes.first().is_some_and(|first| first.id == case.id);
            if first != expected {
                wrong.push(format!("{} {expected}:\n{log}      {}", case.id, summary(&diagnosis)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn other_tools_prefixes_paths_and_encodings_change_nothing() {
    let written = cases().into_iter().flat_map(|case| {
        let id = case.id;
        case.right.into_iter().enumerate().map(move |(n, log)| Known {
            name: format!("{id} {n}"),
            log,
            right: vec![id.clone()],
            thread: id.clone(),
            project: "made up".to_owned(),
            exit_status: None,
            none_is_right: false,
        })
    });
    let logs: Vec<Known> = field().into_iter().chain(audit()).chain(runs()).chain(written).collect();
    let (mut right, mut wrong) = (0, Vec::new());
    for known in &logs {
        // A prefix turns a one-line log into something else, and a log that just stops is recognised only in
        // qnn-net-run's own form.
        if SILENT.contains(&known.name.as_str()) || known.log.len() < 64 && known.log.contains("pid:") {
            continue;
        }
        for which in 0..WRAPPINGS {
            for seed in 1..3 {
                let diagnosis = diagnose(&wrapped(&known.log, which, seed));
                if is_right(&diagnosis, &known.right) {
                    right += 1;
                } else {
                    wrong.push(format!("{} as {which}, {:?}:\n      {}", known.name, known.right, summary(&diagnosis)));
                }
            }
        }
    }
    let share = right as f64 / (right + wrong.len()) as f64;
    println!("{right} of {} ({:.1} %)", right + wrong.len(), share * 100.0);
    assert!(share >= 0.985, "{share:.4}\n{}", wrong.join("\n"));
}

#[test]
fn healthy_text_gets_nothing() {
    let mut wrong = Vec::new();
    let mut check = |name: &str, text: &[u8]| {
        let diagnosis = diagnose(text);
        if !diagnosis.causes.is_empty() {
            wrong.push(format!("{name}:\n      {}", summary(&diagnosis)));
        }
    };
    let mut numbers = Numbers(7);
    let system: String = (0..20_000).map(|_| noise(&mut numbers)).collect();
    check("a busy system", system.as_bytes());
    check("a busy system with QNN", format!("I QnnDsp: QnnDevice_create done. status 0x0\n{system}").as_bytes());
    let docs = [
        "README.md",
        "CHANGELOG.md",
        "Cargo.toml",
        "Cargo.lock",
        // The user guide shows failures, so it is not among these.
        "docs/compare.md",
        "docs/measuring.md",
        "docs/performance.md",
        "docs/session-format.md",
        "docs/result.schema.json",
        "test.sh",
        "LICENSE-APACHE",
    ];
    for name in docs {
        check(name, &std::fs::read(repo(name)).unwrap());
    }
    for folder in ["src/app", "src/store", "src/report", "src/models", "src/session", "demo"] {
        for entry in std::fs::read_dir(repo(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                check(&path.display().to_string(), &std::fs::read(&path).unwrap());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_log_that_repeats_itself_says_what_its_lines_say_one_by_one() {
    // Fed line by line, nothing is skipped; in blocks, known lines are.
    let one_by_one = |text: &str| {
        let mut diagnoser = Diagnoser::new();
        (1..).zip(text.lines()).for_each(|(number, line)| diagnoser.feed_line(number, line.as_bytes()));
        diagnoser.finish()
    };
    let answer = |diagnosis: &Diagnosis| {
        let cause = |cause: &qnnscope::diagnosis::Finding| {
            (cause.id, cause.confidence.to_bits(), cause.evidence.iter().map(|e| e.line).collect::<Vec<_>>())
        };
        diagnosis.causes.iter().map(cause).collect::<Vec<_>>()
    };
    let idle = "     0.0ms [  INFO ]  <I> QnnGraph_execute started. graph = 0x1\n".repeat(6000);
    let chat = "[BEGIN]: the QNN error 1002 means\n[KPIS]: 5 toks/sec\n".repeat(40);
    let mut wrong = Vec::new();
    for known in field().into_iter().chain(runs()).filter(|known| !known.log.contains('\u{1b}')) {
        let log = known.log.replace('\r', "");
        let log = if log.ends_with('\n') { log } else { log + "\n" };
        let text = format!("{idle}{chat}{log}{idle}{log}{chat}{idle}{log}");
        let (whole, lines) = (diagnose(text.as_bytes()), one_by_one(&text));
        if answer(&whole) != answer(&lines) || whole.lines != lines.lines {
            wrong.push(format!("{}: {:?}, not {:?}", known.name, answer(&whole), answer(&lines)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_code_alone_gets_a_cautious_answer() {
    for line in
        ["qnn error 1002", "QNN: err 14001", "qnn returned error code 4000", "qnn failed with 1000", "QNN error 1003"]
    {
        let diagnosis = diagnose(line.as_bytes());
        let first = diagnosis.causes.first().map_or(0.0, |first| first.confidence);
        assert!(first <= 0.5, "{line}: {}", summary(&diagnosis));
    }
}

#[test]
fn the_exit_status_and_the_outputs_speak_too() {
    let silent = |status: i32| {
        let mut diagnoser = Diagnoser::new();
        diagnoser.exit_status(status);
        diagnoser.feed(b"qnn-net-run pid:15639\n");
        diagnoser.finish()
    };
    assert!(silent(0).causes.is_empty());
    let crashed = silent(136);
    assert_eq!(crashed.causes[0].id, "input-size-mismatch");
    assert!(crashed.causes[0].confidence > 0.8 && diagnose(b"qnn-net-run pid:15639\n").causes[0].confidence < 0.4);

    let log = runs().into_iter().find(|log| log.name == ONLY_OUTPUTS_SHOW).unwrap().log;
    assert!(diagnose(log.as_bytes()).causes.is_empty());
    let mut diagnoser = Diagnoser::new();
    diagnoser.empty_outputs(3);
    diagnoser.feed(log.as_bytes());
    assert_eq!(diagnoser.finish().causes[0].id, "disk-full");
}

#[test]
fn a_failed_run_is_diagnosed_from_its_own_log() {
    let mut failure = Failure::new(Stage::Finalize, "graphFinalize", "graphFinalize failed");
    failure.code = Some(1002);
    failure.symbol = Some("QNN_GRAPH_ERROR_MEM_ALLOC".to_owned());
    let log = [
        (
            7,
            "<E> A single op, \"q::TopK\", requires 0x1200000 bytes of TCM, which is greater than the TCM size of 0x400000!",
        ),
        (9, "<E> Failed to finalize graph (id: 1) with err 1002"),
    ];
    let diagnosis = diagnose_failure(&failure, log.into_iter());
    let first = &diagnosis.causes[0];
    assert_eq!((first.id, first.evidence[0].line, first.confirmed), ("finalize-vtcm-overflow", 7, None));
    assert!(!first.checks().is_empty());

    let bare = diagnose_failure(&failure, std::iter::empty());
    assert!(bare.causes.len() >= 2 && bare.causes[0].confidence <= 0.5, "{}", summary(&bare));
    assert_eq!(bare.causes[0].evidence[0].line, 0);

    // Neither something that makes a run slow nor the text of our own table of codes is a cause of a failure.
    let hot = [(3, "thermal-engine: thermal mitigation severe: clock lowered")];
    for call in ["SIGKILL", "adb", "identify"] {
        let failure = Failure::new(Stage::Execute, call, "qnn-net-run was stopped");
        let diagnosis = diagnose_failure(&failure, hot.into_iter());
        assert!(diagnosis.causes.iter().all(|cause| cause.id != "thermal-throttling"), "{}", summary(&diagnosis));
    }
    let mut refused = Failure::new(Stage::Compose, "backendValidateOpConfig", "op package validation failed");
    (refused.code, refused.symbol) = (Some(3110), Some("QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE".to_owned()));
    let diagnosis = diagnose_failure(&refused, std::iter::empty());
    assert!(diagnosis.causes.iter().all(|cause| cause.id != "op-package-invalid"), "{}", summary(&diagnosis));

    let missing = Failure::new(
        Stage::LibraryLoad,
        "dlopen",
        "libatomic.so.1: cannot open shared object file: No such file or directory",
    );
    assert_eq!(diagnose_failure(&missing, std::iter::empty()).causes[0].id, "dependency-missing");
}

#[test]
fn evidence_has_its_line_and_is_clean() {
    let log = b"one\ntwo\r\n\x1b[31mQnnDsp <E> Request feature arch with value 81 unsupported\x1b[0m \xff\x07\r\nfour";
    let diagnosis = diagnose(log);
    let evidence = &diagnosis.causes[0].evidence[0];
    assert_eq!((evidence.line, diagnosis.lines, diagnosis.bytes), (3, 4, log.len() as u64));
    assert!(!evidence.text.chars().any(char::is_control) && !evidence.text.contains("[31m"), "{:?}", evidence.text);
}

#[test]
fn huge_lines_are_read_in_pieces() {
    let mut log = vec![b'x'; 10 << 20];
    log.extend(b" QnnDsp <E> Request feature arch with value 81 unsupported ");
    log.extend(vec![b'y'; 10 << 20]);
    log.extend(b"\nQnnDsp <E> Failed to create context from binary with err 0x138d\n");
    let diagnosis = diagnose(&log);
    assert_eq!(diagnosis.causes[0].id, "context-binary-arch-newer", "{}", summary(&diagnosis));
    assert_eq!((diagnosis.causes[0].evidence[0].line, diagnosis.lines), (1, 2));
}

#[test]
fn a_long_lines_evidence_is_cut_around_what_it_shows() {
    let mut log = vec![b'x'; 20_000];
    log.extend(b" QnnDsp <E> Request feature arch with value 81 unsupported ");
    log.extend([b'y'; 20_000]);
    let evidence = &diagnose(&log).causes[0].evidence[0];
    assert!(evidence.text.contains("Request feature arch") && evidence.text.len() < 700, "{}", evidence.text);
    // Across the boundary of two pieces.
    for before in 32_700..32_768 {
        let mut log = vec![b'x'; before];
        log.extend(b" QnnDsp <E> Request feature arch with value 81 unsupported ");
        log.extend([b'y'; 40_000]);
        assert_eq!(diagnose(&log).causes[0].id, "context-binary-arch-newer", "{before}");
    }
}

#[test]
fn line_ends_and_encodings_of_all_kinds_are_read() {
    let text = "QnnDsp <I> starts\rQnnDsp <E> Request feature arch with value 81 unsupported\rend\r";
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let escaped = text.replace("Request", "\u{1}").into_bytes();
    let escaped: Vec<u8> = escaped.split(|c| *c == 1).collect::<Vec<_>>().join(&b"\x9b1;31mRequest\x9bm"[..]);
    for log in [text.as_bytes().to_vec(), wide, big, escaped] {
        let diagnosis = diagnose(&log);
        let first = &diagnosis.causes[0];
        let evidence = &first.evidence[0];
        assert_eq!((first.id, evidence.line, diagnosis.lines), ("context-binary-arch-newer", 2, 3), "{log:?}");
        assert_eq!(evidence.text, "QnnDsp <E> Request feature arch with value 81 unsupported");
    }
    // The byte of an escape occurs in many characters.
    let chinese = "QnnDsp <E> \u{9519}\u{8bdb}\u{5b9b} Request feature arch with value 81 unsupported";
    assert_eq!(diagnose(chinese.as_bytes()).causes[0].evidence[0].text, chinese);
}

fn in_pieces(log: &[u8], cuts: &[usize]) -> Diagnosis {
    let mut diagnoser = Diagnoser::new();
    let mut from = 0;
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (log.len() + 1)).collect();
    cuts.sort_unstable();
    for cut in cuts.into_iter().chain([log.len()]) {
        diagnoser.feed(&log[from..cut]);
        from = cut;
    }
    diagnoser.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn where_a_stream_is_cut_does_not_matter(
        which in 0..41usize,
        wrapping in 0..WRAPPINGS,
        cuts in prop::collection::vec(any::<usize>(), 0..12),
        tail in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut log = wrapped(&field()[which].log, wrapping, 3);
        log.extend(tail);
        prop_assert_eq!(in_pieces(&log, &cuts), diagnose(&log));
    }

    #[test]
    fn byte_by_byte_is_the_same(which in 0..41usize, wrapping in 0..WRAPPINGS) {
        let log = wrapped(&field()[which].log, wrapping, 5);
        let mut diagnoser = Diagnoser::new();
        log.iter().for_each(|byte| diagnoser.feed(&[*byte]));
        prop_assert_eq!(diagnoser.finish(), diagnose(&log));
    }

    #[test]
    fn lines_longer_than_a_piece_may_be_cut_anywhere(
        before in 0..70_000usize,
        after in 0..70_000usize,
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let mut log = vec![b'a'; before];
        log.extend(b" QnnDsp <E> Stub lib id mismatch: expected (v2.1), detected (v2.2) ");
        log.extend(vec![b'b'; after]);
        log.extend(b"\nqnn error 1008");
        prop_assert_eq!(in_pieces(&log, &cuts), diagnose(&log));
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..4096), exit in any::<i32>()) {
        let mut diagnoser = Diagnoser::new();
        diagnoser.exit_status(exit);
        diagnoser.feed(&bytes);
        let diagnosis = diagnoser.finish();
        prop_assert!(diagnosis.causes.iter().all(|cause| (0.0..=1.0).contains(&cause.confidence)));
        let text: usize = diagnosis.causes.iter().flat_map(|cause| &cause.evidence).map(|e| e.text.len()).sum();
        prop_assert!(text < 100_000);
    }
}

mod program {
    use super::*;
    use serde_json::Value;

    fn fits(document: &Value) {
        schema::fits(&schema::read("diagnosis.schema.json"), document);
    }

    fn of(name: &str, flags: &str) -> crate::support::Done {
        Qnnscope::without_runtime().arg("diagnose").arg(repo("tests/data/run-logs").join(name)).flags(flags).finish()
    }

    #[test]
    fn documents_fit_their_schema() {
        for known in runs() {
            let document = of(&known.name, "--json").expect(0).json();
            fits(&document);
            assert_eq!(
                document["causes"].as_array().unwrap().is_empty(),
                known.right.is_empty() || SILENT.contains(&known.name.as_str())
            );
        }
        let document = of("extension-version-mix-14001.log", "--json").expect(0).json();
        let first = &document["causes"][0];
        assert_eq!(first["id"], "extension-version-mix");
        assert_eq!(first["confirmed"], Value::Null);
        assert_eq!(first["codes"][0], "14001");
        assert!(first["evidence"][0]["line"].as_u64().unwrap() > 20);
        assert!(first["confirm"][0]["command"].as_str().unwrap().contains("strings"));
    }

    #[test]
    fn people_get_cause_evidence_fix_and_checks() {
        let text = of("op-3110-rank6-htp-error.log", "").expect(0).text();
        for part in ["op-rank-unsupported", "%", "line 3: ", "fix: ", "check: ", "qnnscope inspect MODEL"] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        let text = of("good-htp-2op-info.log", "").expect(0).text();
        assert_eq!(text, "no known failure found (376 lines, 14655 bytes looked at)\n");
    }

    #[test]
    fn result_files_and_exit_statuses_are_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("Result_0")).unwrap();
        std::fs::write(dir.path().join("Result_0/a.raw"), b"").unwrap();
        let log = repo("tests/data/run-logs").join(ONLY_OUTPUTS_SHOW);
        let done =
            Qnnscope::without_runtime().arg("diagnose").arg(log).flags("--json --outputs").arg(dir.path()).finish();
        assert_eq!(done.expect(0).json()["causes"][0]["id"], "disk-full");
        let document = of("input-too-small-cpu-silent.log", "--json --exit-code 136").expect(0).json();
        assert_eq!(document["causes"][0]["id"], "input-size-mismatch");
    }

    #[test]
    fn any_file_is_taken_and_a_missing_one_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let program = std::fs::read(env!("CARGO_BIN_EXE_qnnscope")).unwrap();
        let zeros = vec![0; 3 << 20];
        for (name, bytes) in [("empty", &b""[..]), ("zeros", &zeros), ("binary", &program[..8 << 20])] {
            let done = Qnnscope::without_runtime().arg("diagnose").arg(file(name, bytes)).arg("--json").finish();
            fits(&done.expect(0).json());
        }
        let none = Qnnscope::without_runtime().flags("diagnose /no/such/log").finish().expect(2);
        assert!(none.stderr.contains("/no/such/log") && none.stderr.contains("No such file"), "{}", none.stderr);
        Qnnscope::without_runtime().arg("diagnose").arg(dir.path()).finish().expect(2);
    }

    #[test]
    fn what_a_log_says_is_not_done_and_not_passed_on_raw() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark");
        let log = format!(
            "qnn: $(touch {0}) `touch {0}` ; touch {0}\n\x1b]0;evil\x07QnnDsp <E> Request feature arch with value \x1b[2J81 unsupported \u{202e}\n",
            mark.display()
        );
        let path = dir.path().join("log");
        std::fs::write(&path, log).unwrap();
        let done = Qnnscope::without_runtime().arg("diagnose").arg(&path).finish().expect(0);
        let text = done.text();
        assert!(text.contains("context-binary-arch-newer"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n') && !text.contains('\u{202e}'), "{text:?}");
        assert!(!mark.exists());
    }

    #[test]
    fn standard_input_is_read() {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_qnnscope"))
            .args(["diagnose", "-", "--json"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"QNN: error 6001 at graphExecute\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["causes"][0]["id"], "graph-execute-invalid-handle");
    }
}
