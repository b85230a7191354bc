//! Bad input, bad options, missing things: the exit status, the messages, and no raw control character
//! anywhere.

#![cfg(target_os = "linux")]

use crate::support::{
    Done, Qnnscope, context_binary, demo_float, demo_int8, f32_bytes, model_library, npy, runtime_247, runtime_251,
};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder for the files of one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name.as_ref());
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// `run` and `inspect` must both refuse the model with this status and these messages.
#[track_caller]
fn refused(model: &Path, code: i32, parts: &[&str]) {
    let calls = [
        Qnnscope::on(&runtime_247()).run_json(model, "--backend cpu -n 1"),
        Qnnscope::on(&runtime_247()).arg("inspect").arg(model).finish(),
    ];
    for done in calls {
        let done = done.expect(code).leaves_nothing_behind();
        for part in parts {
            assert!(done.stderr.contains(part), "no `{part}` in {}", done.stderr);
        }
        clean(&done);
    }
}

/// Neither stream may contain control characters other than line feed and tab, or a panic.
#[track_caller]
fn clean(done: &Done) {
    for text in [&done.text(), &done.stderr] {
        let bad: Vec<char> = text.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')).collect();
        assert!(bad.is_empty(), "control characters {bad:?} in {text:?}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

#[test]
fn what_is_no_model_is_refused_before_anything_starts() {
    let folder = Folder::new();
    refused(&folder.file("text", b"#!/bin/sh\necho hello\n"), 2, &["not a model", "#!/bin/sh"]);
    refused(&folder.file("bytes", b"\x89\x1b\x07\0\xff\xfe\0\0\0\0"), 2, &["not a model", "89 1b 07"]);
    refused(&folder.file("one", b"\0"), 2, &["not a model"]);
    refused(&folder.file("empty", b""), 2, &["empty (0 bytes)"]);
    refused(folder.path(), 2, &["is a directory"]);
    refused(&folder.path().join("none.dlc"), 2, &["cannot read", "none.dlc", "No such file"]);
    refused(Path::new("/etc/passwd/x"), 2, &["/etc/passwd/x", "Not a directory"]);
    refused(Path::new("/dev/null"), 2, &["/dev/null"]);
    refused(Path::new(""), 2, &["MODEL"]);
    let link = folder.path().join("loop");
    std::os::unix::fs::symlink(&link, &link).unwrap();
    refused(&link, 2, &["loop", "symbolic links"]);
    let long = folder.path().join("x".repeat(300));
    refused(&long, 2, &["File name too long"]);
}

#[test]
fn a_pipe_that_nobody_feeds_does_not_hang() {
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let limit = std::time::Duration::from_secs(10);
    let done = Qnnscope::on(&runtime_247()).within(limit).run_json(&pipe, "-n 1").expect(2);
    assert!(done.stderr.contains("pipe"), "{}", done.stderr);
}

#[test]
fn truncated_dlcs_are_refused() {
    let folder = Folder::new();
    let whole = std::fs::read(demo_int8()).unwrap();
    for length in [5, 30, 4096, whole.len() / 2, whole.len() - 22, whole.len() - 1] {
        let path = folder.file(format!("cut{length}"), &whole[..length]);
        refused(&path, 2, &["damaged or truncated DLC"]);
    }
}

#[test]
fn dlcs_with_damage_inside_fail_in_order() {
    let folder = Folder::new();
    let whole = std::fs::read(demo_int8()).unwrap();
    // Every part of the file in turn, except for the archive's directory at the end.
    for part in 0..8 {
        let mut bytes = whole.clone();
        let at = whole.len() * (2 * part + 1) / 18;
        bytes[at..at + 64].fill(0xff);
        let path = folder.file(format!("hit{part}"), &bytes);
        let done = Qnnscope::on(&runtime_247()).run_json(&path, "-n 1 --profiling off").leaves_nothing_behind();
        assert!(matches!(done.code(), 0..=2), "{} {}", done.code(), done.stderr);
        clean(&done);
        assert_eq!(done.code() == 0, done.first_run()["error"].is_null());
        let inspected = Qnnscope::on(&runtime_247()).arg("inspect").arg(&path).finish().leaves_nothing_behind();
        assert!(matches!(inspected.code(), 0..=2), "{} {}", inspected.code(), inspected.stderr);
        clean(&inspected);
    }
}

#[test]
fn a_zip_that_is_no_dlc_is_told_by_its_content() {
    use std::io::Write;
    let folder = Folder::new();
    let path = folder.path().join("archive");
    let zip = |names: &[&str]| {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for name in names {
            zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(b"nothing").unwrap();
        }
        zip.finish().unwrap();
    };
    zip(&["readme.txt", "evil\u{1b}[31m"]);
    refused(&path, 2, &["not a DLC", "readme.txt"]);
    zip(&[]);
    refused(&path, 2, &["not a DLC"]);
    // It has the record that makes a DLC, but the record is junk.
    zip(&["model", "model.params", "dlc.metadata"]);
    refused(&path, 2, &["damaged, or made by a newer SDK"]);
}

/// The demo model with one record of the archive changed.
fn changed_dlc(path: &Path, record: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) {
    use std::io::{Read, Write};
    let mut from = zip::ZipArchive::new(std::fs::File::open(demo_int8()).unwrap()).unwrap();
    let mut to = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).with_alignment(64);
    let mut seen = false;
    for index in 0..from.len() {
        // Converters leave checksums at zero, so the bytes are taken as they are.
        let mut entry = from.by_index_raw(index).unwrap();
        let name = entry.name().unwrap().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        assert_eq!(entry.compressed_size(), entry.size(), "{name} is stored");
        if name == record {
            bytes = change(bytes);
            seen = true;
        }
        to.start_file(name, options).unwrap();
        to.write_all(&bytes).unwrap();
    }
    to.finish().unwrap();
    assert!(seen, "no {record}");
}

#[test]
fn records_of_a_dlc_that_are_cut_or_junk_are_bad_input() {
    let folder = Folder::new();
    let path = folder.path().join("changed");
    changed_dlc(&path, "model", |bytes| bytes);
    Qnnscope::on(&runtime_247()).run_json(&path, "-n 1 --profiling off").expect(0);
    for (record, cut) in [("model", true), ("model", false), ("model.params", true)] {
        changed_dlc(
            &path,
            record,
            |bytes| if cut { bytes[..bytes.len() / 2].to_vec() } else { vec![0x5a; bytes.len()] },
        );
        let done = Qnnscope::on(&runtime_247()).run_json(&path, "-n 1 --profiling off").leaves_nothing_behind();
        assert!(matches!(done.code(), 1 | 2), "{record} {cut}: {} {}", done.code(), done.stderr);
        clean(&done);
    }
}

#[test]
fn context_binaries_that_are_cut_or_junk_are_bad_input() {
    let folder = Folder::new();
    let whole = context_binary("2.3.0", "htp", &demo_int8(), None);
    for length in [8, 64, 1000, whole.len() / 2, whole.len() - 1] {
        let path = folder.file(format!("cut{length}"), &whole[..length]);
        let done = Qnnscope::on(&runtime_247()).run_json(&path, "--backend htp -n 1").leaves_nothing_behind();
        // If only the end of a file is missing, its metadata is complete; the backend then refuses the rest.
        let code = done.code();
        assert!(code == 2 || (code == 1 && length >= 1000), "{length}: {code} {}", done.stderr);
        let error = done.first_run()["error"].clone();
        assert_eq!(error["stage"], "context_create", "{length}: {error}");
        assert!(error["code"].is_u64(), "{length}: {error}");
        clean(&done);
    }
    let junk: Vec<u8> = [0, 0, 0, 2, 0, 0, 0, 3].into_iter().chain((0..4000u32).map(|i| (i * 7 % 251) as u8)).collect();
    refused(&folder.file("junk", &junk), 2, &["damaged or foreign context binary"]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn shared_libraries_that_are_cut_or_foreign_are_told() {
    let folder = Folder::new();
    let library = model_library(folder.path(), "small_graph.c", &[]);
    let whole = std::fs::read(library).unwrap();
    for length in [20, 64, 1000, whole.len() / 2] {
        refused(&folder.file(format!("cut{length}"), &whole[..length]), 2, &["damaged or truncated shared library"]);
    }
    for (machine, class, name) in
        [(183u8, 2u8, "aarch64 (64 bit)"), (40, 1, "arm (32 bit)"), (164, 1, "hexagon (32 bit)")]
    {
        let mut elf = vec![0u8; 64];
        elf[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
        (elf[16], elf[18], elf[20]) = (3, machine, 1);
        let sizes = if class == 2 { (52, 64, 54, 56, 58, 64) } else { (40, 52, 42, 32, 46, 40) };
        (elf[sizes.0], elf[sizes.2], elf[sizes.4]) = (sizes.1, sizes.3, sizes.5);
        refused(&folder.file(name.split(' ').next().unwrap(), &elf), 2, &[name, "x86_64"]);
    }
}

#[test]
fn inputs_of_the_wrong_size_are_told_what_is_expected() {
    let folder = Folder::new();
    let short = folder.file("short", &[0; 100]);
    let native = folder.file("native", &[0; 64 * 64 * 3]);
    let shape = folder.file("shape.npy", &npy("<f4", "(1, 2)", &f32_bytes(&[1.0, 2.0])));
    let text = folder.file("text.npy", &npy("<U4", "(1, 2)", &[0; 32]));
    let cut = folder.file("cut.npy", &npy("<f4", "(1, 64, 64, 3)", &[0; 16]));
    let whole = folder.file("whole", &vec![0; 64 * 64 * 3 * 4]);
    let call = |inputs: &[(&str, &Path)], flags: &str| {
        let mut call = Qnnscope::on(&runtime_247()).arg("run").arg(demo_int8()).args(["--json", "-n", "1"]);
        for (name, path) in inputs {
            call = call.arg("-i").arg(format!("{name}={}", path.display()));
        }
        let done = call.flags(flags).finish().expect(2).leaves_nothing_behind();
        clean(&done);
        let error = done.first_run()["error"].clone();
        assert_eq!((&error["stage"], &error["call"]), (&json!("prepare"), &json!("inputs")), "{error}");
        error["message"].as_str().unwrap().to_owned()
    };
    let says = |message: String, parts: &[&str]| {
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    says(call(&[("image", &short)], ""), &["100 bytes", "`image`", "ufixed8", "1x64x64x3", "49152 bytes of float32"]);
    says(call(&[("image", &native)], ""), &["12288 bytes", "--native-input"]);
    says(call(&[("image", &whole)], "--native-input"), &["49152 bytes", "12288 bytes of ufixed8"]);
    says(call(&[("image", &shape)], ""), &["2 values", "[1, 2]", "12288 values", "[1, 64, 64, 3]"]);
    says(call(&[("image", &text)], ""), &["text.npy", "not a plain number"]);
    says(call(&[("image", &cut)], ""), &["cut.npy", "truncated"]);
    says(call(&[("picture", &whole)], ""), &["`picture`", "`image` (ufixed8 1x64x64x3)"]);
    says(call(&[("image", &whole), ("image", &whole)], ""), &["`image`", "twice"]);
    says(call(&[("image", Path::new("/nonexistent/file"))], ""), &["/nonexistent/file", "No such file"]);
    says(call(&[("image", folder.path())], ""), &["directory"]);
}

#[test]
fn input_lists_are_checked_line_by_line() {
    let folder = Folder::new();
    let image = folder.file("image.raw", &vec![0; 64 * 64 * 3 * 4]);
    let image = image.display();
    for (name, text, parts) in [
        ("two", format!("{image} {image}\n"), ["line 1", "2 files for 1 input"].as_slice()),
        ("name", format!("{image}\npicture:={image}\n"), &["line 2", "`picture`"]),
        ("empty", "\n# nothing\n".to_owned(), &["names no inputs"]),
        ("missing", "/nonexistent/x\n".to_owned(), &["/nonexistent/x"]),
    ] {
        let list = folder.file(name, text.as_bytes());
        let done = Qnnscope::on(&runtime_247())
            .arg("run")
            .arg(demo_int8())
            .args(["--json", "-n", "1", "--input-list"])
            .arg(&list)
            .finish()
            .expect(2);
        let message = done.first_run()["error"]["message"].as_str().unwrap().to_owned();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
}

#[test]
fn unknown_values_are_refused_with_the_known_ones() {
    for (flags, parts) in [
        ("--backend npu", ["npu", "cpu, htp, gpu"].as_slice()),
        ("--backend cpu,,htp", &["backend"]),
        ("--perf-profile turbo", &["turbo", "burst", "balanced"]),
        ("--backend htp --perf-profile turbo", &["turbo", "burst", "balanced"]),
        ("--backend htp --htp-arch v70", &["v70", "v75"]),
        ("--backend htp --precision float8", &["float8", "float16"]),
        ("--backend htp --soc-model many", &["many"]),
        ("--backend htp --vtcm-mb -1", &["-1"]),
        ("--profiling full", &["full", "off, basic, detailed"]),
        ("--log-level loud", &["loud", "warning"]),
        ("--duration 0", &["0", "above 0"]),
        ("--duration nan", &["nan"]),
        ("--duration -1", &["-1"]),
        ("--duration 1 --iterations 5", &["--duration", "--iterations"]),
        ("--iterations 0", &["0"]),
        ("--iterations 1e3", &["1e3"]),
        ("--profiling-iterations 0", &["0"]),
        ("--stage-timeout 0", &["0"]),
        ("--memory-limit-mb 0", &["0"]),
        ("--seed -1", &["-1"]),
        ("--input image", &["NAME=FILE"]),
        ("--input =file", &["NAME=FILE"]),
        ("--no-such-flag", &["--no-such-flag"]),
    ] {
        let done =
            Qnnscope::on(&runtime_247()).arg("run").arg(demo_int8()).arg("--json").flags(flags).finish().expect(2);
        assert!(done.stdout.is_empty(), "{flags}: {}", done.text());
        assert!(parts.iter().all(|part| done.stderr.contains(part)), "{flags}: {}", done.stderr);
        clean(&done);
    }
    Qnnscope::on(&runtime_247()).arg("run").finish().expect(2);
    Qnnscope::on(&runtime_247()).arg("frobnicate").finish().expect(2);
    // Without a terminal there is no start screen.
    assert!(Qnnscope::on(&runtime_247()).finish().expect(2).stderr.contains("needs a terminal"));
}

#[test]
fn numbers_at_the_edge_do_not_panic() {
    for flags in [
        "--memory-limit-mb 18446744073709551615",
        "--stage-timeout 1e9",
        "--seed 18446744073709551615",
        "--duration 0.001",
    ] {
        let done = Qnnscope::on(&runtime_247())
            .run_json(&demo_float(), &format!("--profiling-iterations 1 --warmup 0 {flags}"));
        clean(&done);
        assert!(done.code() == 0 || flags.starts_with("--stage-timeout"), "{flags}: {} {}", done.code(), done.stderr);
    }
}

#[test]
fn bad_configuration_files_are_named_with_the_reason() {
    let folder = Folder::new();
    for (text, parts) in [
        ("{", ["is not JSON", "line 1"].as_slice()),
        ("", &["is not JSON"]),
        ("[]", &["must be a JSON object"]),
        (r#"{"dsp_config": {}}"#, &["dsp_config", "htp_config"]),
        (r#"{"htp_config": 1}"#, &["htp_config", "object"]),
        (r#"{"htp_config": {"vtcm_mb": "much"}}"#, &["htp_config.vtcm_mb", "much", "whole number"]),
        (r#"{"htp_config": {"performance_mode": 3}}"#, &["htp_config.performance_mode", "burst"]),
        (r#"{"htp_config": {"O": 9}}"#, &["htp_config.O", "1, 2 or 3"]),
        (r#"{"htp_config": {"vtcm_mb": -4}}"#, &["-4"]),
        (r#"{"htp_config": {"dlbc": "\u001b[31m"}}"#, &["htp_config.dlbc", "true or false"]),
        (r#"{"htp_config": {"precision": {"a": 1}}}"#, &["precision"]),
        ("{\"\\u001b[31m\": {}}", &["unknown section"]),
    ] {
        let path = folder.file("config", text.as_bytes());
        let done = Qnnscope::on(&runtime_247())
            .arg("run")
            .arg(demo_int8())
            .args(["--json", "--backend", "htp", "--config"])
            .arg(&path)
            .finish()
            .expect(2);
        assert!(parts.iter().all(|part| done.stderr.contains(part)), "{text}: {}", done.stderr);
        clean(&done);
    }
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_int8(), "--config /nonexistent/config").expect(2);
    assert!(done.stderr.contains("/nonexistent/config") && done.stderr.contains("cannot be read"), "{}", done.stderr);
}

#[test]
fn without_a_runtime_the_install_command_is_told() {
    for call in [["run"].as_slice(), &["inspect"]] {
        let done = Qnnscope::without_runtime().args(call).arg(demo_int8()).finish().expect(3);
        assert!(done.stderr.contains("no QNN runtime found"), "{}", done.stderr);
        assert!(done.stderr.contains("next: qnnscope runtime install"), "{}", done.stderr);
    }
}

#[test]
fn runtime_folders_that_are_none_are_named() {
    let folder = Folder::new();
    let run = |dir: &Path| {
        let done = Qnnscope::on(dir).run_json(&demo_int8(), "-n 1").expect(3);
        assert!(done.stdout.is_empty());
        clean(&done);
        done.stderr
    };
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let said = run(&empty);
    assert!(said.contains("no QNN libraries in") && said.contains("--runtime") && said.contains("empty"), "{said}");
    let said = run(Path::new("/nonexistent/runtime"));
    assert!(said.contains("/nonexistent/runtime"), "{said}");
    let said = run(&folder.file("file", b"no folder"));
    assert!(said.contains("file"), "{said}");

    let foreign = folder.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    let mut elf = vec![0u8; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (elf[16], elf[18], elf[20], elf[52], elf[54], elf[58]) = (3, 183, 1, 64, 56, 64);
    for name in ["libQnnSystem.so", "libQnnCpu.so"] {
        std::fs::write(foreign.join(name), &elf).unwrap();
    }
    let said = run(&foreign);
    assert!(said.contains("aarch64") && said.contains("x86_64") && said.contains("next: "), "{said}");
}

#[test]
fn a_runtime_with_a_damaged_library_is_told() {
    let folder = Folder::new();
    for entry in std::fs::read_dir(runtime_247()).unwrap().flatten() {
        std::os::unix::fs::symlink(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    Qnnscope::on(folder.path()).run_json(&demo_float(), "-n 1 --profiling off").expect(0);
    // Truncated after the header: the folder still looks right, and only opening the library shows it.
    let whole = std::fs::read(runtime_247().join("libQnnCpu.so")).unwrap();
    std::fs::remove_file(folder.path().join("libQnnCpu.so")).unwrap();
    std::fs::write(folder.path().join("libQnnCpu.so"), &whole[..whole.len() / 2]).unwrap();
    let done = Qnnscope::on(folder.path()).run_json(&demo_float(), "-n 1").leaves_nothing_behind();
    assert!(matches!(done.code(), 1 | 3), "{}", done.code());
    assert_eq!(done.first_run()["error"]["stage"], "library_load");
    assert!(done.stderr.contains("libQnnCpu.so") || done.stderr.contains("SIGBUS"), "{}", done.stderr);
    clean(&done);
}

#[test]
fn names_of_files_are_only_names() {
    let folder = Folder::new();
    let names: [OsString; 8] = [
        "with blanks.dlc".into(),
        "quote'\"`.dlc".into(),
        "$(touch hit).dlc".into(),
        "; touch hit; #".into(),
        "-n".into(),
        "line\nfeed\u{1b}[31m\u{7}.dlc".into(),
        "grün\u{202e}cld".into(),
        OsString::from_vec(b"no\xff\xfetext".to_vec()),
    ];
    for name in &names {
        let path = folder.path().join(name);
        std::fs::copy(demo_float(), &path).unwrap();
        let done = Qnnscope::on(&runtime_247())
            .run_json(&path, "-n 1 --profiling off --record session")
            .leaves_nothing_behind();
        // A path that is not UTF-8 cannot be written into the task, and an error must say so; all others run.
        let text = name.to_str().is_some();
        assert!(done.code() == 0 || !text, "{name:?}: {} {}", done.code(), done.stderr);
        assert!(matches!(done.code(), 0 | 2), "{name:?}: {} {}", done.code(), done.stderr);
        clean(&done);
        let session = std::fs::read(done.home().join("session")).unwrap_or_default();
        assert!(!session.contains(&0x1b) && !session.contains(&7));
        let inspected = Qnnscope::on(&runtime_247()).arg("inspect").arg(&path).finish();
        assert!(inspected.code() == 0 || !text, "{name:?}: {}", inspected.stderr);
        clean(&inspected);
        let report = Qnnscope::on(&runtime_247()).arg("run").arg(&path).flags("-n 1 --profiling off").finish();
        clean(&report);
        assert!(!done.home().join("hit").exists() && !folder.path().join("hit").exists());
        // The same names for a file that is missing, or is not a model.
        std::fs::write(&path, "text").unwrap();
        let junk = Qnnscope::on(&runtime_247()).run_json(&path, "").expect(2);
        clean(&junk);
        std::fs::remove_file(&path).unwrap();
        clean(&Qnnscope::on(&runtime_247()).run_json(&path, "").expect(2));
    }
    assert_eq!(names[7].as_bytes().len(), 8);
}

#[test]
fn other_paths_with_control_characters_are_clean_too() {
    let folder = tempfile::tempdir().unwrap();
    let evil = format!("{}/missing/\u{1b}[31m\n\u{7}x", folder.path().display());
    for flag in
        ["--runtime", "--config", "--record", "--input-list", "--theme", "--graph", "--perf-profile", "--backend"]
    {
        let done =
            Qnnscope::on(&runtime_247()).arg("run").arg(demo_float()).args(["--json", "-n", "1", "--profiling", "off"]);
        let done = done.arg(format!("{flag}={evil}")).finish();
        clean(&done);
        assert!(flag == "--theme" || matches!(done.code(), 2 | 3), "{flag}: {}", done.code());
    }
    let done = Qnnscope::on(&runtime_247()).arg("run").arg(demo_float()).args(["--json", "-n", "1"]);
    clean(&done.arg("--input").arg(format!("image={evil}")).finish().expect(2));
    let done = Qnnscope::on(&runtime_247()).arg("run").arg(demo_float()).args(["--json", "-n", "1"]);
    clean(&done.arg("--save-outputs").arg("/dev/null/\u{1b}[31m").finish().expect(2));
}

#[test]
fn a_full_disk_stops_the_recording_not_the_run() {
    let done = Qnnscope::on(&runtime_247())
        .run_json(&demo_float(), "-n 5 --profiling off --record /dev/full")
        .expect(1)
        .leaves_nothing_behind();
    assert_eq!((&done.first_run()["status"], &done.first_run()["latency_us"]["samples"]), (&json!("ok"), &json!(5)));
    assert!(done.stderr.contains("/dev/full") && done.stderr.contains("No space left"), "{}", done.stderr);
}

#[test]
fn a_full_disk_under_stdout_is_a_failure() {
    let script = format!(
        "'{}' --runtime '{}' run '{}' --json -n 1 --profiling off > /dev/full",
        env!("CARGO_BIN_EXE_qnnscope"),
        runtime_247().display(),
        demo_float().display()
    );
    let home = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(home.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("stdout") && stderr.contains("No space left"), "{stderr}");
}

#[test]
fn a_full_disk_under_stderr_does_not_cost_the_figures() {
    let home = tempfile::tempdir().unwrap();
    let run = |model: &Path| {
        let script = r#""$1" --runtime "$2" run "$3" --json -n 1 --profiling off 2> /dev/full"#;
        std::process::Command::new("sh")
            .args(["-c", script, "sh", env!("CARGO_BIN_EXE_qnnscope")])
            .arg(runtime_247())
            .arg(model)
            .current_dir(home.path())
            .output()
            .unwrap()
    };
    let output = run(&demo_float());
    assert_eq!(output.status.code(), Some(0));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["runs"][0]["status"], "ok");
    assert_eq!(run(Path::new("/nonexistent/model")).status.code(), Some(2));
}

#[test]
fn places_that_cannot_be_written_are_bad_input() {
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-n 1 --record /nonexistent/dir/session").expect(2);
    assert!(done.stdout.is_empty() && done.stderr.contains("/nonexistent/dir/session"), "{}", done.stderr);
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_float(), "-n 1 --record /").expect(2);
    assert!(done.stderr.contains("directory"), "{}", done.stderr);

    let folder = Folder::new();
    let file = folder.file("file", b"kept");
    for target in [file.clone(), file.join("below"), PathBuf::from("/proc/none")] {
        let done = Qnnscope::on(&runtime_247())
            .arg("run")
            .arg(demo_float())
            .args(["--json", "-n", "1", "--profiling", "off", "--save-outputs"])
            .arg(&target)
            .finish()
            .expect(2)
            .leaves_nothing_behind();
        // Something that is visibly not a folder is refused before the run.
        let said = done.stderr.clone() + &done.text();
        assert!(said.contains(target.to_str().unwrap()), "{said}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
}

#[test]
fn float_models_on_a_chip_without_floats_fail_with_advice() {
    let done = Qnnscope::on(&runtime_251())
        .run_json(&demo_float(), "--backend htp --soc-model 30 -n 1")
        .leaves_nothing_behind();
    clean(&done);
    if done.code() != 0 {
        let error = done.expect(1).first_run()["error"].clone();
        assert!(error["hint"].is_string() && error["code"].is_u64(), "{error}");
    }
}

#[test]
fn a_dlc_of_a_newer_sdk_names_its_maker() {
    let folder = Folder::new();
    let mut bytes = std::fs::read(demo_int8()).unwrap();
    let find = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|window| window == what).unwrap();
    let at = find(&bytes, b"\"converterVersion\": \"2.47.");
    bytes[at + 21] = b'9';
    // The graph is a FlatBuffer in the record `model`; in a later format it cannot be read from its first
    // word on.
    let record = find(&bytes, b"PK\x03\x04") + find(&bytes[find(&bytes, b"PK\x03\x04")..], b"model\x01\0");
    let start = record + 60;
    bytes[start..start + 40_000].fill(0xff);
    let path = folder.path().join("newer.dlc");
    std::fs::write(&path, &bytes).unwrap();
    let done = Qnnscope::on(&runtime_247()).run_json(&path, "-n 1");
    assert_eq!(done.code(), 2, "{}", done.stderr);
    assert!(done.stderr.contains("newer SDK") && done.stderr.contains("9.47.0"), "{}", done.stderr);
}

#[test]
fn files_without_an_end_are_refused() {
    for flags in ["--input image=/dev/zero", "--input-list /dev/zero", "--config /dev/zero"] {
        let done = Qnnscope::on(&runtime_247()).run_json(&demo_float(), &format!("-n 1 {flags}")).expect(2);
        assert!(done.stderr.contains("/dev/zero") && done.stderr.contains("more than"), "{}", done.stderr);
    }
}

/// Neither stream may contain anything that a terminal obeys or shows in another order: C1 controls and
/// bidirectional controls are as bad as escape.
#[track_caller]
fn printable(done: &Done) {
    clean(done);
    for text in [&done.text(), &done.stderr] {
        let bad = |c: char| matches!(c, '\u{80}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(!text.contains(bad), "{text:?}");
    }
}

/// C1, bidirectional and ordinary control characters.
const HOSTILE: &str = "a\u{9b}31m\u{202e}b\u{2066}\u{61c}c";

#[test]
fn arguments_that_are_not_understood_are_echoed_clean() {
    let with_lines = format!("{HOSTILE}\nerror: fake");
    for arguments in [
        vec![HOSTILE],
        vec!["run", "x", "--backend", HOSTILE],
        vec!["run", "x", "-n", &with_lines],
        vec!["run", "x", &format!("--{HOSTILE}")],
        vec!["explain", "--json", HOSTILE],
        vec!["inspect", HOSTILE],
        vec!["compare", HOSTILE, HOSTILE],
        vec!["diagnose", HOSTILE],
        vec!["profile-log", HOSTILE],
        vec!["--theme", HOSTILE, "check", HOSTILE],
        vec!["recommend", "x", "--soc", HOSTILE],
        vec!["--adb-server", HOSTILE, "devices"],
        vec!["--device", HOSTILE, "counters"],
        vec!["connect", HOSTILE],
        vec!["runtime", "install", "--wheel", HOSTILE],
    ] {
        let done = Qnnscope::on(&runtime_247()).env("ADB_SERVER_SOCKET", "tcp:127.0.0.1:9").args(&arguments).finish();
        printable(&done);
        assert!(matches!(done.code(), 1..=3), "{arguments:?}: {}", done.code());
        assert!(!done.stderr.lines().any(|line| line == "error: fake"), "{}", done.stderr);
    }
    // Bytes that are not UTF-8 in an argument that is refused.
    let bytes = OsString::from_vec(b"--a\x9b31m".to_vec());
    printable(&Qnnscope::without_runtime().arg("run").arg(bytes).finish().expect(2));
}

#[test]
fn comparisons_of_hostile_files_are_clean() {
    let folder = Folder::new();
    let done = Qnnscope::on(&runtime_247())
        .run_json(&demo_float(), &format!("-n 3 --record {}", folder.path().join("s").display()))
        .expect(0);
    // What a hostile program would write: raw characters in the document, escapes in the session.
    let model = demo_float().display().to_string();
    let result =
        done.text().replace(&model, HOSTILE).replace("Conv2d", &format!("Conv{HOSTILE}")).replace("v2.47", HOSTILE);
    let escaped = "a\\u009b31m\\u202eb\\u001b[31m";
    let session = std::fs::read_to_string(folder.path().join("s")).unwrap();
    let session = session.replace(&model, escaped).replace("Conv2d", escaped).replace("v2.47", escaped);
    let result = folder.file(format!("result{HOSTILE}.json"), result.as_bytes());
    let session = folder.file(format!("session{HOSTILE}"), session.as_bytes());
    for json in [true, false] {
        let call = Qnnscope::without_runtime().arg("compare").arg(&result).arg(&session);
        let done = if json { call.arg("--json") } else { call }.finish().expect(0);
        printable(&done);
        assert!(done.text().contains("31m"), "the text is there, without its controls");
    }
}

#[test]
fn names_in_a_model_are_clean_in_every_document() {
    let folder = Folder::new();
    let model = folder.path().join(format!("{HOSTILE}.dlc"));
    std::fs::copy(demo_float(), &model).unwrap();
    for command in ["inspect", "recommend", "check"] {
        for json in [true, false] {
            let call = Qnnscope::on(&runtime_247()).arg(command).arg(&model);
            printable(&if json { call.arg("--json") } else { call }.finish());
        }
    }
    printable(&Qnnscope::on(&runtime_247()).run_json(&model, "-n 1 --profiling off").expect(0));
}

#[test]
fn too_few_open_files_are_reported_as_that() {
    let installed = runtime_247();
    let data = installed.parent().and_then(Path::parent).unwrap();
    for limit in [6, 8, 10, 14, 20, 40] {
        for line in ["run \"$2\" --json -n 1", "inspect \"$2\"", "runtime list", "doctor", "check \"$2\"", "devices"] {
            let script = format!("ulimit -n {limit}; exec \"$1\" {line}");
            let output = std::process::Command::new("sh")
                .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_qnnscope")])
                .arg(demo_float())
                .env("QNNSCOPE_DATA_DIR", data)
                .env("ADB_SERVER_SOCKET", "tcp:127.0.0.1:9")
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{limit}, {line}: {stderr}");
            assert!(stderr.contains(&format!("limit of open files is {limit}")), "{limit}, {line}: {stderr}");
            assert!(stderr.contains("ulimit -n") && !stderr.contains("nothing installed"), "{limit}, {line}: {stderr}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_runtime_folder_that_cannot_be_read_is_not_taken_for_an_empty_one() {
    // Nobody can read a loop of links, not even root.
    let folder = Folder::new();
    std::os::unix::fs::symlink("runtimes", folder.path().join("runtimes")).unwrap();
    let done = Qnnscope::without_runtime()
        .env("QNNSCOPE_DATA_DIR", folder.path())
        .args(["run".as_ref(), demo_float().as_os_str()])
        .finish()
        .expect(3);
    assert!(done.stderr.contains("cannot read") && !done.stderr.contains("nothing installed"), "{}", done.stderr);
}

#[test]
fn an_answer_that_does_not_come_is_named_and_given_up() {
    let folder = Folder::new();
    // Instead of the runner: neither answers nor ends.
    let silent = folder.file("silent", b"#!/bin/sh\nexec sleep 600\n");
    std::fs::set_permissions(&silent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for command in ["inspect", "recommend", "check"] {
        let done = Qnnscope::on(&runtime_247())
            .env("QNNSCOPE_RUNNER", &silent)
            .arg(command)
            .arg(demo_float())
            .args(["--timeout", "3"])
            .finish()
            .expect(1)
            .leaves_nothing_behind();
        assert!(done.stderr.contains("waiting for ") && done.stderr.contains("at most 3 s"), "{}", done.stderr);
        assert!(done.stderr.contains("gave up after 3 s") && done.stderr.contains("--timeout"), "{}", done.stderr);
    }
    let done = Qnnscope::on(&runtime_247()).env("QNNSCOPE_RUNNER", &silent).flags("runtime list --timeout 3").finish();
    assert!(done.expect(1).stderr.contains("waiting for the libraries"));
}
