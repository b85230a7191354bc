//! The release script: the flags it builds with, and that it finds a path that these have missed. Cargo is
//! replaced with a stand-in, since a release build takes minutes.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs the script with a cargo that writes its flags, and `content`, into the binary.
fn release(home: &Path, content: &str) -> Output {
    let programs = home.join("programs");
    std::fs::create_dir_all(&programs).unwrap();
    let script = "#!/bin/sh\nmkdir -p \"$CARGO_TARGET_DIR/release/deps\"\n: > \"$CARGO_TARGET_DIR/release/deps/libqnnscope_tap.so\"\nprintf '%s\\n' \"$*\" \"$CARGO_ENCODED_RUSTFLAGS\" \
                  > \"$CARGO_TARGET_DIR/flags\"\nprintf 'ELF\\0%s\\0' \"$CONTENT\" > \"$CARGO_TARGET_DIR/release/qnnscope\"";
    // A child writes it: while another test starts a child, a file that this process has open for writing
    // cannot be executed.
    let status = Command::new("sh")
        .args(["-c", r#"printf '%s\n' "$1" > "$2" && chmod +x "$2""#, "sh", script])
        .arg(programs.join("cargo"))
        .status()
        .unwrap();
    assert!(status.success());
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/release.sh"))
        .env("PATH", path)
        .env("HOME", home)
        .env("CARGO_HOME", home.join("crates of mine"))
        .env("CARGO_TARGET_DIR", home.join("target"))
        .env("CONTENT", content)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .unwrap()
}

#[test]
fn every_folder_of_the_builder_is_given_another_name() {
    let home = tempfile::tempdir().unwrap();
    let output = release(home.path(), "src/main.rs cargo/registry/x.rs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let flags = std::fs::read_to_string(home.path().join("target/flags")).unwrap();
    assert!(flags.starts_with("build --locked --release --bin qnnscope\n"), "{flags}");
    let flags: Vec<&str> = flags.lines().nth(1).unwrap().split('\x1f').collect();
    let home = home.path().display();
    for (from, to) in [
        (home.to_string(), "~"),
        (env!("CARGO_MANIFEST_DIR").to_owned(), "qnnscope"),
        (format!("{home}/crates of mine"), "cargo"),
    ] {
        let flag = format!("--remap-path-prefix={from}={to}");
        assert!(flags.contains(&flag.as_str()), "no {flag} in {flags:?}");
    }
}

#[test]
fn a_path_that_is_left_fails_the_build() {
    let home = tempfile::tempdir().unwrap();
    let leak = format!("{}/crates of mine/registry/src/index/itoa/src/lib.rs", home.path().display());
    let output = release(home.path(), &leak);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("names") && said.contains(&home.path().display().to_string()), "{said}");
}
