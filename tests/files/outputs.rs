//! What the program writes: never over its own inputs or foreign files, by one writer at a time, synced to
//! disk at the end, and a failure if it is lost.

#![cfg(target_os = "linux")]

use crate::support::{Done, Qnnscope, demo_float, runtime_247};
use serde_json::json;
use std::fs::{hard_link, read, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const SHORT: &str = "--json --warmup 0 --profiling off";

/// One inference, unless the flags say otherwise.
fn with_count(flags: &str) -> String {
    if flags.contains("-n ") { flags.to_owned() } else { format!("-n 1 {flags}") }
}

/// A folder with a model, an input for it, and other names for both.
struct Inputs {
    folder: tempfile::TempDir,
}

impl Inputs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::copy(demo_float(), at("me.dlc")).unwrap();
        // 1 x 32 x 32 x 3 floats or any other size: it is refused before it is read.
        write(at("in.raw"), [0; 64]).unwrap();
        write(at("list.txt"), "in.raw\n").unwrap();
        write(at("config.json"), "{\"cpu_config\": {}}").unwrap();
        symlink("me.dlc", at("soft")).unwrap();
        hard_link(at("me.dlc"), at("hard")).unwrap();
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Everything in the folder, by name and content.
    fn all(&self) -> Vec<(String, Vec<u8>)> {
        let mut all: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.display().to_string(), read(&path).unwrap()))
            .collect();
        all.sort();
        all
    }

    fn run(&self, flags: &str) -> Done {
        self.call(flags).finish()
    }

    fn call(&self, flags: &str) -> Qnnscope {
        let flags = with_count(flags);
        Qnnscope::on(&runtime_247()).within_folder(self.folder.path()).flags(&format!("run me.dlc {SHORT} {flags}"))
    }
}

#[test]
fn nothing_that_is_read_is_written_whatever_its_name() {
    let inputs = Inputs::new();
    let before = inputs.all();
    let program = env!("CARGO_BIN_EXE_qnnscope");
    let library = runtime_247().join("libQnnCpu.so");
    let config = inputs.at("config.json");
    for (flags, what) in [
        ("--record me.dlc", "the model"),
        ("--record soft", "the model"),
        ("--record ./hard --force", "the model"),
        ("--save-context me.dlc", "the model"),
        ("--save-context hard --force", "the model"),
        ("--save-profile-log soft --force", "the model"),
        ("--input image=in.raw --record in.raw", "the input"),
        ("--input-list list.txt --record in.raw", "the input"),
        ("--input-list list.txt --save-context list.txt", "the input list"),
        (&format!("--config {0} --record {0} --force", config.display()), "the file"),
        (&format!("--record {program} --force"), "qnnscope"),
        (&format!("--save-profile-log {} --force", library.display()), "the library"),
        ("--record new --save-context ./new", "--record"),
        ("--save-profile-log new --save-context new", "--save-context"),
    ] {
        let done = inputs.run(flags).expect(2);
        assert!(done.stderr.contains("would overwrite") && done.stderr.contains(what), "{flags}: {}", done.stderr);
        assert!(done.stderr.contains("next: name another file") && done.stdout.is_empty(), "{flags}: {}", done.stderr);
        assert_eq!(inputs.all(), before, "{flags}");
    }
}

#[test]
fn what_is_printed_into_a_file_does_not_mix_with_what_is_recorded_there() {
    let inputs = Inputs::new();
    let script = format!(
        "exec '{}' --runtime '{}' run me.dlc {SHORT} -n 1 --record both >both",
        env!("CARGO_BIN_EXE_qnnscope"),
        runtime_247().display()
    );
    let output = Command::new("sh").args(["-c", &script]).current_dir(inputs.folder.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("standard output"), "{stderr}");
}

#[test]
fn files_of_others_are_kept_without_force() {
    let inputs = Inputs::new();
    write(inputs.at("notes"), "my notes\n").unwrap();
    std::fs::create_dir_all(inputs.at("golden/Result_0")).unwrap();
    let golden = inputs.at("golden/Result_0/probabilities.raw");
    write(&golden, "g").unwrap();
    for flags in ["--record notes", "--save-context notes", "--save-profile-log notes", "--save-outputs golden"] {
        let done = inputs.run(flags).expect(2);
        assert!(done.stderr.contains("exists already") && done.stderr.contains("--force"), "{}", done.stderr);
    }
    assert_eq!((read(inputs.at("notes")).unwrap(), read(&golden).unwrap()), (b"my notes\n".into(), b"g".into()));
    inputs.run("--save-outputs golden --record notes --force").expect(0);
    assert!(read(&golden).unwrap().len() > 1);
    assert!(read(inputs.at("notes")).unwrap().starts_with(b"{\"seq\":0"));
}

#[test]
fn our_own_files_are_replaced_through_links_and_keep_their_permissions() {
    let inputs = Inputs::new();
    let flags = "--record s --save-context c --save-profile-log p --save-outputs o";
    inputs.run(flags).expect(0);
    for name in ["s", "c", "p"] {
        let real = inputs.at(&format!("{name}.real"));
        std::fs::rename(inputs.at(name), &real).unwrap();
        symlink(&real, inputs.at(name)).unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    }
    let before = read(inputs.at("s.real")).unwrap();
    inputs.run(flags).expect(0);
    for name in ["s", "c", "p"] {
        let real = inputs.at(&format!("{name}.real")).metadata().unwrap();
        assert!(inputs.at(name).is_symlink(), "{name}");
        assert_eq!((real.mode() & 0o7777, real.len() > 0), (0o640, true), "{name}");
    }
    assert_ne!(read(inputs.at("s.real")).unwrap(), before);
    // New files have the mode that the umask gives them.
    let made = inputs.at("o/Result_0/probabilities.raw").metadata().unwrap();
    assert_eq!(made.mode() & 0o777, inputs.at("in.raw").metadata().unwrap().mode() & 0o777);
}

#[test]
fn one_file_has_one_writer_at_a_time() {
    let inputs = Inputs::new();
    for option in ["--record", "--save-profile-log"] {
        let mut first = inputs.call(&format!("{option} one -n 100000000")).start();
        let one = inputs.at("one");
        let runner = first.runner();
        first.until("the file", || one.exists().then_some(()));
        // The runner opens the log, after it has read its model.
        first.until("the lock", || std::fs::read_to_string("/proc/locks").unwrap().contains("FLOCK").then_some(runner));
        let id = one.metadata().unwrap().ino().to_string();
        first.until("its lock", || std::fs::read_to_string("/proc/locks").unwrap().contains(&id).then_some(()));
        let second = inputs.run(&format!("{option} one")).expect(2);
        let said = second.stderr.clone() + &second.text();
        assert!(said.contains("is being written by another process"), "{option}: {said}");
        first.signal(rustix::process::Signal::INT);
        first.wait().expect(130);
        std::fs::remove_file(&one).unwrap();
    }
}

#[test]
fn several_backends_write_a_context_each() {
    let inputs = Inputs::new();
    inputs.run("-b cpu,htp --soc-model 57 --save-context c.bin --interleave 2").expect(0);
    assert!(inputs.at("c-cpu.bin").exists() && inputs.at("c-htp.bin").exists() && !inputs.at("c.bin").exists());
}

#[test]
fn pipes_and_devices_are_written_to() {
    let inputs = Inputs::new();
    inputs.run("--record /dev/null --save-context /dev/null --save-profile-log /dev/null").expect(1);
    inputs.run("--record /dev/null --save-context /dev/null").expect(0);
    let script = format!(
        "'{}' --runtime '{}' run me.dlc {SHORT} -n 1 --record /dev/stderr 2>session >result",
        env!("CARGO_BIN_EXE_qnnscope"),
        runtime_247().display()
    );
    let status = Command::new("sh").args(["-c", &script]).current_dir(inputs.folder.path()).status().unwrap();
    assert!(status.success());
    let session = String::from_utf8(read(inputs.at("session")).unwrap()).unwrap();
    assert!(session.contains("{\"seq\":0,") && session.contains("run_finished"), "{session}");
    assert!(read(inputs.at("result")).unwrap().starts_with(b"{"));
}

#[test]
fn whatever_is_lost_is_a_failure() {
    let inputs = Inputs::new();
    inputs.run("--record s --save-profile-log p").expect(0);
    for flags in ["--record /dev/full", "--save-profile-log /dev/full", "--save-context /dev/full"] {
        inputs.run(flags).expect(1);
    }
    for line in [
        "--help",
        "--version",
        "run --help",
        "explain 1002",
        "profile-log p",
        "profile-log p --format json",
        "profile-log p --format csv",
        "compare s s",
        "compare s s --json",
        "inspect me.dlc",
        "inspect me.dlc --json",
        "runtime list --json",
        "diagnose list.txt",
    ] {
        let script = format!("exec '{}' {line} >/dev/full", env!("CARGO_BIN_EXE_qnnscope"));
        let output = Command::new("sh")
            .args(["-c", &script])
            .env("QNNSCOPE_RUNTIME", runtime_247())
            .current_dir(inputs.folder.path())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {stderr}");
        assert!(stderr.contains("error: ") && stderr.contains("No space left"), "{line}: {stderr}");
    }
}

#[test]
fn a_disk_that_fills_up_loses_nothing_in_silence() {
    let inputs = Inputs::new();
    let disk = inputs.at("disk");
    std::fs::create_dir(&disk).unwrap();
    // Room for a bit of each file, but not for all of it.
    let script = r#"mount -t tmpfs -o size=16k tmpfs disk && shift && exec "$@""#;
    for flags in ["--save-context disk/c", "--record disk/s", "--save-profile-log disk/p -n 500 --launches 1"] {
        let output = Command::new("unshare")
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                script,
                "sh",
                "-",
                env!("CARGO_BIN_EXE_qnnscope"),
            ])
            .arg("--runtime")
            .arg(runtime_247())
            .args(format!("run me.dlc {SHORT} {}", with_count(flags)).split_whitespace())
            .current_dir(inputs.folder.path())
            .output()
            .expect("unshare (package util-linux) runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{flags}: {stderr}");
        let said = ["No space left", "disk full"].iter().any(|words| stderr.contains(words));
        assert!(said, "{flags}: {stderr}");
    }
}

#[test]
fn what_is_kept_is_on_the_disk() {
    let inputs = Inputs::new();
    let trace = inputs.at("trace");
    let status = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_qnnscope"))
        .arg("--runtime")
        .arg(runtime_247())
        .args(
            format!("run me.dlc {SHORT} -n 1 --record s --save-context c --save-profile-log p --save-outputs o")
                .split(' '),
        )
        .current_dir(inputs.folder.path())
        .stdout(std::process::Stdio::null())
        .status()
        .expect("strace runs; install it: sudo apt-get install strace");
    assert!(status.success());
    let trace = String::from_utf8_lossy(&read(&trace).unwrap()).into_owned();
    let folder = inputs.folder.path().canonicalize().unwrap();
    let synced = |path: &Path| trace.contains(&format!("{}>", path.display()));
    for path in ["", "s", "p", "o", "o/Result_0"] {
        // Joined with an empty path, a folder would end in a slash.
        let path = if path.is_empty() { folder.clone() } else { folder.join(path) };
        assert!(synced(&path), "{} is not synced:\n{trace}", path.display());
    }
    // Files that are replaced whole are synced under their temporary names.
    let parts = trace.lines().filter(|line| line.contains("/.qnnscope-")).count();
    assert!(parts >= 4, "the context, two outputs and the mark of their folder:\n{trace}");
}

#[test]
fn a_session_that_was_cut_off_names_the_stage_that_went_on() {
    let inputs = Inputs::new();
    inputs.run("--record s").expect(0);
    let session = String::from_utf8(read(inputs.at("s")).unwrap()).unwrap();
    let lines: Vec<&str> = session.split_inclusive('\n').collect();
    for stage in ["backend_create", "compose", "execute"] {
        let began = format!("\"stage_started\":{{\"stage\":\"{stage}\"}}");
        let at = lines.iter().position(|line| line.contains(&began)).unwrap_or_else(|| panic!("{session}"));
        write(inputs.at("cut"), lines[..=at].concat()).unwrap();
        let compared = Qnnscope::without_runtime()
            .within_folder(inputs.folder.path())
            .flags("compare s cut --json")
            .finish()
            .expect(0);
        assert_eq!(
            compared.json()["columns"][1]["failure"]["stage"],
            json!(stage),
            "{:#}",
            compared.json()["columns"][1]
        );
    }
}

#[test]
fn temporary_folders_are_private_whatever_the_umask() {
    let runtime = crate::support::runtime_247();
    let folder = tempfile::tempdir().unwrap();
    let (script, scratch) = (folder.path().join("open"), folder.path().join("tmp"));
    std::fs::create_dir(&scratch).unwrap();
    let text = format!("#!/bin/sh\numask 000\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_qnnscope"));
    // A child writes the file: while another test forks, a file that this process has open for writing cannot
    // be executed.
    let written = std::process::Command::new("sh")
        .args(["-c", r#"printf '%s' "$1" > "$2" && chmod +x "$2""#, "sh", &text])
        .arg(&script)
        .status()
        .unwrap();
    assert!(written.success());
    let mut running = Qnnscope::program(&script)
        .env("TMPDIR", &scratch)
        .arg("--runtime")
        .arg(&runtime)
        .arg("run")
        .arg(crate::support::demo_float())
        .flags("--json --launches 1 --profiling off --duration 4s --save-context context --save-profile-log log --record session")
        .start();
    let seen = running.until("a temporary folder of the runner", || {
        let made: Vec<_> = std::fs::read_dir(&scratch).unwrap().flatten().collect();
        let modes: Vec<(String, u32)> = made
            .iter()
            .filter_map(|entry| Some((entry.file_name().into_string().unwrap(), entry.metadata().ok()?.mode() & 0o777)))
            .collect();
        modes.iter().any(|(name, _)| name.starts_with("qnnscope-scratch-")).then_some(modes)
    });
    for (name, mode) in seen {
        assert_eq!(mode & 0o077, 0, "{name} has {mode:o}");
    }
    let done = running.wait().expect(0);
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0, "none is left");
    // The file that the user requested has the mode that the umask gives, which proves that the umask was in
    // force.
    let made = done.home().join("context").metadata().unwrap();
    assert_eq!(made.mode() & 0o777, 0o666);
}

#[test]
fn man_pages_make_no_folder_of_results_ours() {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("golden/Result_0");
    std::fs::create_dir_all(&results).unwrap();
    std::fs::write(results.join("y.raw"), "golden").unwrap();
    std::fs::write(dir.path().join("golden/qnnscope-show.1"), "notes").unwrap();
    let golden = dir.path().join("golden");
    Qnnscope::without_runtime().args(["man", "--dir"]).arg(&golden).finish().expect(2);
    let mut left: Vec<_> = std::fs::read_dir(&golden).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["Result_0", "qnnscope-show.1"], "refused as a whole");
    Qnnscope::without_runtime().args(["man", "--force", "--dir"]).arg(&golden).finish().expect(0);
    let call = Qnnscope::on(&crate::support::runtime_247()).arg("run").arg(crate::support::demo_float());
    let done = call.args(["--json", "-n", "1", "--save-outputs"]).arg(&golden).finish();
    assert_eq!(done.code(), 2, "{}", done.stderr);
    assert_eq!(std::fs::read_to_string(results.join("y.raw")).unwrap(), "golden");
}

#[test]
fn kept_sessions_are_no_files_to_write_to() {
    let call = Qnnscope::on(&crate::support::runtime_247());
    let data = call.home().join("data");
    let run = |call: Qnnscope| {
        let call = call.env("QNNSCOPE_DATA_DIR", &data).arg("run").arg(crate::support::demo_float());
        call.flags("--json -n 2 --launches 1 --profiling off")
    };
    let first = run(call).finish().expect(0);
    let kept: Vec<PathBuf> = std::fs::read_dir(data.join("sessions"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".jsonl.zst"))
        .collect();
    let [kept] = kept.as_slice() else { panic!("{kept:?} in {}", first.stderr) };
    let before = std::fs::read(kept).unwrap();
    let done = run(Qnnscope::on(&crate::support::runtime_247())).arg("--force").arg("--record").arg(kept).finish();
    assert!(done.expect(2).stderr.contains("the kept session"));
    assert_eq!(std::fs::read(kept).unwrap(), before);
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_no_signal() {
    let dir = tempfile::tempdir().unwrap();
    let session = crate::support::repo("tests/data/sessions");
    let session = std::fs::read_dir(session)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().ends_with(".jsonl") || path.to_string_lossy().ends_with(".jsonl.zst"));
    let script = "ulimit -f 8; exec \"$0\" report \"$1\" -o \"$2\"";
    let done = Qnnscope::program(std::path::Path::new("/bin/bash"))
        .args(["-c", script, env!("CARGO_BIN_EXE_qnnscope")])
        .arg(session.expect("a session"))
        .arg(dir.path().join("big.html"))
        .finish()
        .expect(1);
    assert!(done.stderr.contains("File too large"), "{}", done.stderr);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing half-written is left");
}
