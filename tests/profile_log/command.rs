//! `qnnscope profile-log` as a program.

use super::{csv, fixture, json, read, text};
use crate::support::{Done, Qnnscope};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn profile_log(file: &Path, flags: &str) -> Done {
    Qnnscope::without_runtime().arg("profile-log").arg(file).flags(flags).finish()
}

/// Runs the program with bytes on stdin: exit status, stdout, stderr.
fn piped(bytes: &[u8], flags: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_qnnscope"))
        .args(["profile-log", "-"])
        .args(flags.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let feeder = std::thread::spawn(move || bytes.chunks(777).all(|piece| stdin.write_all(piece).is_ok()));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn three_formats_from_file_and_stdin() {
    let file = fixture("htp-2graphs-5inf-detailed.log");
    let (log, path) = (read("htp-2graphs-5inf-detailed.log"), file.display().to_string());
    let done = profile_log(&file, "").expect(0);
    assert_eq!((done.text(), done.stderr.as_str()), (text(&log, &path), ""));
    assert_eq!(profile_log(&file, "--format text").expect(0).text(), text(&log, &path));
    let done = profile_log(&file, "--format csv").expect(0);
    assert_eq!((done.text(), done.stderr.as_str()), (csv(&log, &path), ""));
    let document = profile_log(&file, "--format json").expect(0).json();
    assert_eq!(document["file"], path.as_str());
    assert_eq!(document["sessions"], json(&log)["sessions"]);

    assert_eq!(piped(&log, ""), (0, text(&log, "-"), String::new()));
    assert_eq!(piped(&log, "--format csv"), (0, csv(&log, "-"), String::new()));
    let (code, stdout, _) = piped(&log, "--format json");
    assert_eq!(
        (code, &serde_json::from_str::<serde_json::Value>(&stdout).unwrap()["graphs"]),
        (0, &json(&log)["graphs"])
    );
}

#[test]
fn a_pipe_with_a_name_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("the tests need mkfifo of coreutils").success());
    let log = read("api-appended.log");
    for (format, expected) in
        [("csv", csv(&log, &pipe.display().to_string())), ("text", text(&log, &pipe.display().to_string()))]
    {
        let running =
            Qnnscope::without_runtime().arg("profile-log").arg(&pipe).flags(&format!("--format {format}")).start();
        std::fs::write(&pipe, &log).unwrap();
        assert_eq!(running.wait().expect(0).text(), expected);
    }
}

#[test]
fn a_cut_log_warns_and_prints_its_whole_chunks() {
    let file = fixture("truncated-ort-cpu-cls-20inf.log");
    for format in ["text", "csv", "json"] {
        let done = profile_log(&file, &format!("--format {format}")).expect(0);
        assert!(done.stderr.contains("the last 2976 bytes are an incomplete chunk"), "{}", done.stderr);
        assert!(!done.stdout.is_empty());
    }
    let document = profile_log(&file, "--format json").expect(0).json();
    assert_eq!((document["incomplete_bytes"].as_u64(), document["messages"].as_u64()), (Some(2976), Some(10)));
    assert_eq!(document["whole_bytes"].as_u64(), Some(100_000 - 2976));
    let done = profile_log(&fixture("truncated-in-first-chunk.log"), "").expect(0);
    assert!(done.text().contains("no complete chunk"), "{}", done.text());
    assert!(done.stderr.contains("5000 bytes are an incomplete chunk"), "{}", done.stderr);
}

#[test]
fn an_empty_log_says_so_and_why() {
    let file = fixture("net-run-failed-0bytes.log");
    let why = ["empty (0 bytes)", "failed or was killed before its first flush"];
    let done = profile_log(&file, "").expect(0);
    assert!(why.iter().all(|part| done.text().contains(part)), "{}", done.text());
    for format in ["csv", "json"] {
        let done = profile_log(&file, &format!("--format {format}")).expect(0);
        assert!(why.iter().all(|part| done.stderr.contains(part)), "{}", done.stderr);
    }
    assert_eq!(profile_log(&file, "--format json").json()["sessions"], serde_json::json!([]));
    assert_eq!(piped(b"", "").0, 0);
}

#[test]
fn what_is_no_log_is_refused_and_nothing_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let ort_csv = dir.path().join("profile\u{1b}.csv");
    std::fs::write(&ort_csv, "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level\n0,NODE,1,US\n")
        .unwrap();
    for format in ["text", "csv", "json"] {
        let flags = format!("--format {format}");
        for file in [&fixture("not-a-log.log"), &ort_csv, Path::new("/dev/zero")] {
            let done = profile_log(file, &flags).expect(2);
            assert!(done.stderr.contains("not a QNN profiling log"), "{}", done.stderr);
            assert!(done.stdout.is_empty() && !done.stderr.contains('\u{1b}'), "{}", done.stderr);
        }
        let (code, stdout, stderr) = piped(&read("not-a-log.log"), &flags);
        assert!(code == 2 && stdout.is_empty() && stderr.contains("not a QNN profiling log"), "{stderr}");
    }
    let done = profile_log(&dir.path().join("none.log"), "").expect(2);
    assert!(done.stderr.contains("cannot read") && done.stderr.contains("No such file"), "{}", done.stderr);
    let done = profile_log(dir.path(), "").expect(2);
    assert!(done.stderr.contains("is a directory"), "{}", done.stderr);
    profile_log(Path::new("x"), "--format xml").expect(2);
}

#[test]
fn damage_is_told_after_what_came_before() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log");
    let good = read("api-appended.log");
    std::fs::write(&file, [&good[..], &[16, 0, 0, 0], &[0xff; 16]].concat()).unwrap();
    let done = profile_log(&file, "--format csv").expect(2);
    assert_eq!(done.text(), csv(&good, &file.display().to_string()));
    assert!(done.stderr.contains("chunk 3 (at byte 996) is damaged"), "{}", done.stderr);
}

#[test]
fn several_sessions_are_pointed_out_where_rows_mix_them() {
    let file = fixture("ort-cpu-cls-2sessions-2inf-detailed.log");
    assert!(profile_log(&file, "--format csv").expect(0).stderr.contains("2 sessions wrote to this log"));
    let done = profile_log(&file, "").expect(0);
    assert!(done.stderr.is_empty() && done.text().contains("Session 2:\n"), "{}", done.stderr);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let file = fixture("cpu-2op-3000inf-detailed.log");
    for format in ["csv", "json"] {
        let script = format!("\"$0\" profile-log \"$1\" --format {format} | head -c 10; exit ${{PIPESTATUS[0]}}");
        let output =
            Command::new("bash").args(["-c", &script]).arg(env!("CARGO_BIN_EXE_qnnscope")).arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout.len(), 10);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let full = Command::new("bash")
        .args(["-c", "\"$0\" profile-log \"$1\" --format csv > /dev/full"])
        .arg(env!("CARGO_BIN_EXE_qnnscope"))
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(full.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&full.stderr).contains("No space left"), "{full:?}");
}

/// The program may use 128 MiB of address space, which is less than the log and less than a claimed length.
#[test]
fn memory_does_not_grow_with_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (large, claims) = (dir.path().join("large"), dir.path().join("claims"));
    let once = read("htp-2graphs-5inf-detailed.log");
    let mut file = std::fs::File::create(&large).unwrap();
    let block = once.repeat(1000);
    for _ in 0..(160 << 20) / block.len() {
        file.write_all(&block).unwrap();
    }
    drop(file);
    let sessions = (160 << 20) / block.len() * 1000;
    // The start of a 1 GiB chunk that never arrives.
    let mut begun = once.clone();
    begun[..4].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    std::fs::write(&claims, begun).unwrap();
    for (file, format) in [(&large, "csv"), (&large, "text"), (&large, "json"), (&claims, "json")] {
        let script = format!("ulimit -v 131072; exec \"$0\" profile-log \"$1\" --format {format} | tail -c 300");
        let output = Command::new("bash")
            .args(["-o", "pipefail", "-c", &script])
            .arg(env!("CARGO_BIN_EXE_qnnscope"))
            .arg(file)
            .output()
            .unwrap();
        let (tail, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{format}: {stderr}");
        if file == &large && format == "json" {
            assert!(tail.contains(&format!("\"messages\":{},", sessions * 12)), "{tail}");
        }
    }
}
