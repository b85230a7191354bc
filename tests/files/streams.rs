//! Pipes and streams in place of files: read once and as often as needed, never waited for indefinitely, and
//! a standard output that is closed.

#![cfg(target_os = "linux")]

use crate::support::{Done, Qnnscope, demo_float, repo, runtime_247};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

fn session() -> PathBuf {
    repo("tests/data/sessions/quiet-cpu-float.jsonl")
}

/// A shell command line, in which `$q` is the program, `$s` a session and `$b` another tool's file.
fn shell(line: &str) -> Done {
    Qnnscope::program(Path::new("/bin/bash"))
        .args(["--norc", "-c", line])
        .env("q", env!("CARGO_BIN_EXE_qnnscope"))
        .env("s", session())
        .env("b", repo("tests/data/imports/benchmark-model.txt"))
        .finish()
}

fn pipe(folder: &Path, name: &str) -> PathBuf {
    let pipe = folder.join(name);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    pipe
}

#[test]
fn a_session_may_come_through_a_pipe() {
    let expected = shell("$q show --json $s").expect(0).json();
    for line in [
        "$q show --json <(cat $s)",
        "cat $s | $q show --json /dev/stdin",
        "zstd -qc $s 2>/dev/null | $q show --json /dev/stdin || $q show --json <(cat $s)",
        "mkfifo p; cat $s > p & $q show --json p",
        "$q show --json $s > result.json; $q show --json <(cat result.json)",
    ] {
        assert_eq!(shell(line).expect(0).json(), expected, "{line}");
    }
    let compared = |files: &str| shell(&format!("$q compare --json {files}")).expect(0).json();
    let mut through = compared("<(cat $s) <(cat $s)");
    let mut direct = compared("$s $s");
    for document in [&mut through, &mut direct] {
        for column in document["columns"].as_array_mut().unwrap() {
            assert!(!column["origin"].take().as_str().unwrap_or_default().starts_with("/proc"), "the user's own name");
        }
    }
    assert_eq!(through["columns"], direct["columns"]);
    let reported =
        shell("$q report <(cat $s) -o a.csv 2>/dev/null; $q report $s -o b.csv 2>/dev/null; cmp a.csv b.csv");
    assert_eq!(reported.expect(0).text(), "");
    let imported: Value = shell("$q show --json <(cat $b)").expect(0).json();
    assert_eq!(imported["imported_from"]["kind"], "benchmark-model");
    for place in [&imported["imported_from"]["path"], &imported["runs"][0]["device"]["id"]] {
        assert!(!place.as_str().unwrap_or_default().contains("/proc/"), "{place}");
    }
    let wrong = shell("$q show <(echo nonsense)").expect(2).stderr;
    assert!(wrong.contains("/dev/fd/") && !wrong.contains("/proc/"), "{wrong}");
}

#[test]
fn a_pipe_that_nobody_uses_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("data");
    std::fs::create_dir_all(history.join("sessions")).unwrap();
    for name in ["20260101-000000.jsonl.zst", "20260101-000000.json", "20260102-000000.jsonl.zst"] {
        pipe(&history.join("sessions"), name);
    }
    let asked = [
        ("show PIPE".to_owned(), 2),
        ("compare PIPE".to_owned(), 2),
        ("diagnose PIPE".to_owned(), 2),
        ("profile-log PIPE".to_owned(), 2),
        ("inspect PIPE".to_owned(), 2),
        ("encodings lint PIPE".to_owned(), 2),
        ("export --parquet out PIPE".to_owned(), 1),
        (format!("report {} --format csv -o PIPE", session().display()), 1),
        (format!("run {} --runtime {} --config PIPE", demo_float().display(), runtime_247().display()), 2),
        ("tap --json=PIPE -- /bin/true".to_owned(), 1),
        (format!("diagnose --bundle PIPE --yes {}", session().display()), 1),
    ];
    // In parallel, since each waits for some seconds.
    let calls: Vec<_> = asked
        .into_iter()
        .enumerate()
        .map(|(number, (flags, code))| {
            // A pipe for each, or they would be each other's other end.
            let flags = flags.replace("PIPE", pipe(folder.path(), &number.to_string()).to_str().unwrap());
            let begun = Instant::now();
            let call = Qnnscope::without_runtime().flags(&flags).within(Duration::from_secs(40)).start();
            (flags, code, begun, call)
        })
        .collect();
    for (flags, code, begun, call) in calls {
        let done = call.wait();
        assert_eq!(done.code(), code, "{flags}: {}", done.stderr);
        assert!(begun.elapsed() < Duration::from_secs(40), "{flags}");
        assert!(done.stderr.contains("pipe"), "{flags}: {}", done.stderr);
    }
    let listed = Qnnscope::without_runtime().env("QNNSCOPE_DATA_DIR", &history).flags("sessions --json").finish();
    assert_eq!(listed.expect(0).json()["sessions"].as_array().unwrap().len(), 0, "pipes are no sessions");
}

#[test]
fn output_that_goes_nowhere_is_a_failure() {
    for line in ["$q show --json $s >&-", "$q --help >&-", "$q man run >&-", "$q explain 1002 >&-"] {
        let done = shell(line).expect(1);
        assert!(done.stderr.contains("stdout") && done.stderr.contains("closed"), "{line}: {}", done.stderr);
    }
    // If nobody reads the output, that is not an error.
    for line in ["$q show --json $s > /dev/null", "$q show --json $s 1<> /dev/null", "$q show $s | head -1"] {
        shell(line).expect(0);
    }
    let folder = shell("$q report $s -o d.html/").expect(2);
    assert!(folder.stderr.contains("directory"), "{}", folder.stderr);
    assert!(!folder.home().join("d.html").exists());
}
