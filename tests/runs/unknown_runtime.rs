//! Runtimes of unknown versions: named and refused, unless the user insists.

#![cfg(target_os = "linux")]

use crate::support::{Qnnscope, demo_float, repo, runtime_247};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The runtime of QAIRT 2.47 with a CPU library that claims core API `2.minor`.
fn claiming(minor: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(runtime_247()).unwrap().flatten() {
        std::os::unix::fs::symlink(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let library = folder.path().join("libQnnCpu.so");
    std::fs::remove_file(&library).unwrap();
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .arg(&library)
        .arg(format!("-DREAL=\"{}\"", runtime_247().join("libQnnCpu.so").display()))
        .arg(format!("-DMINOR={minor}"))
        .arg(repo("tests/models/strange_version.c"))
        .output()
        .expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

fn run(runtime: &Path, flags: &str) -> crate::support::Done {
    // The library borrows the real one's table, which is outside of what a confined runner may read.
    Qnnscope::on(runtime).run_json(&demo_float(), &format!("-n 3 --profiling off --no-sandbox {flags}"))
}

#[test]
fn a_known_version_of_the_same_shape_runs() {
    run(claiming(37).path(), "").expect(0);
}

#[test]
fn an_unknown_version_is_named_and_refused() {
    for minor in [8, 35, 50] {
        let done = run(claiming(minor).path(), "").expect(3);
        let error = &done.first_run()["error"];
        assert_eq!(error["stage"], "library_load");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("core API 2.{minor}")), "{message}");
        assert!(message.contains("--allow-unknown-runtime"), "{message}");
    }
}

#[test]
fn a_user_who_insists_gets_the_counted_table() {
    let done = run(claiming(50).path(), "--allow-unknown-runtime").expect(0);
    assert_eq!(done.first_run()["runtime"]["core_api"], "2.50.0");
    // The oldest tables have another order: insisting does not help there.
    run(claiming(8).path(), "--allow-unknown-runtime").expect(3);
}
