//! What the tap costs: one graph through the tap's function table and through the real one, alternately, in
//! one process.
//!
//!     cargo bench -p qnnscope-tap
//!
//! The program is `tests/support/tap_host.c` in its mode `bench`; the backends are one that does nothing, one
//! that takes a millisecond of CPU time, and the CPU backend of the tests' runtimes (`./test.sh` installs
//! them).

#![cfg_attr(not(target_os = "linux"), allow(unused))]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark for the command line")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn built(folder: &Path, source: &str, output: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/support").join(source);
    let to = folder.join(output);
    let status = Command::new("cc").args(["-O2", "-w", "-o"]).arg(&to).arg(source).args(options).status().unwrap();
    assert!(status.success(), "a C compiler: apt-get install gcc libc6-dev");
    to
}

fn main() {
    // `cargo test --benches` only checks whether it runs.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let folder = tempfile::tempdir().unwrap();
    let host = built(folder.path(), "tap_host.c", "tap_host", &["-ldl", "-lpthread"]);
    let fake = built(folder.path(), "tap_backend.c", "libQnnFake.so", &["-shared", "-fPIC", "-lpthread"]);
    let library = std::env::current_exe().unwrap().with_file_name("libqnnscope_tap.so");
    let places = folder.path().join("tap");
    std::fs::create_dir(&places).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-runtimes");
    let root = std::env::var_os("QNNSCOPE_TEST_RUNTIMES").map_or(root, PathBuf::from).join("runtimes");
    let runtime = std::fs::read_dir(&root).unwrap_or_else(|_| panic!("run ./test.sh: {} is missing", root.display()));
    let cpu = runtime.flatten().map(|folder| folder.path().join("libQnnCpu.so")).find(|path| path.exists()).unwrap();
    println!(
        "{:<34} {:>9} {:>12} {:>12} {:>14} {:>9}",
        "backend", "detail", "real p50", "added p50", "added cpu mean", "of cpu"
    );
    for (name, backend, count, detail, us, size) in [
        ("nothing to do", &fake, 200_000, "0", "0", "8"),
        ("nothing to do", &fake, 200_000, "auto", "0", "8"),
        ("1 ms of the processor", &fake, 3_000, "0", "1000", "8"),
        ("1 ms of the processor", &fake, 3_000, "auto", "1000", "8"),
        ("libQnnCpu.so, 4 ops of 1x40x40x16", &cpu, 3_000, "0", "0", "40"),
        ("libQnnCpu.so, 4 ops of 1x40x40x16", &cpu, 3_000, "auto", "0", "40"),
    ] {
        let stand_in = places.join(backend.file_name().unwrap());
        std::fs::copy(&library, &stand_in).unwrap();
        let told = folder.path().join("told");
        std::fs::create_dir_all(&told).unwrap();
        let count = if is_test { 50 } else { count };
        let output = Command::new(&host)
            .arg(&stand_in)
            .args(["bench", &count.to_string()])
            .env("BENCH_REAL", backend)
            .env("QNNSCOPE_TAP_REAL", backend.parent().unwrap())
            .env("QNNSCOPE_TAP", format!("dir:{}", told.display()))
            .env("QNNSCOPE_TAP_DETAIL", detail)
            .env("LD_LIBRARY_PATH", backend.parent().unwrap())
            .envs([("FAKE_CPU_US", us), ("HOST_SIZE", size)])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let figure = |which: &str, what: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(which)).unwrap_or_else(|| panic!("{text}"));
            let words: Vec<&str> = line.split(' ').collect();
            words[words.iter().position(|word| *word == what).unwrap() + 1].parse().unwrap()
        };
        // Means include the rare executions that are profiled. They are means of CPU time, since wall time
        // would include whatever else ran.
        let (real, tapped) = (figure("real", "cpu_mean_ns"), figure("tapped", "cpu_mean_ns"));
        let p50 = figure("real", "p50_ns");
        println!(
            "{name:<34} {detail:>9} {:>9.2} us {:>9.2} us {:>11.2} us {:>7.2} %",
            p50 / 1e3,
            (figure("tapped", "p50_ns") - p50) / 1e3,
            (tapped - real) / 1e3,
            (tapped - real) / real * 100.0,
        );
        std::fs::remove_dir_all(&told).unwrap();
    }
}
