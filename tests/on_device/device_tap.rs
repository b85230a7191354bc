//! `qnnscope tap --device`: the real adb server, the real CPU backend, the C host of the tap's tests as the program there.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::device::Bench;
use crate::support::schema::{self, fits};
use crate::support::virtual_device::Snapshot;
use crate::support::{Done, Qnnscope, repo, runtime_247};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

fn compiled(source: &Path, name: &str, options: &[&str]) -> PathBuf {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let status = Command::new("cc").args(["-O2", "-w", "-o"]).arg(&to).arg(source).args(options).status();
    assert!(status.expect("a C compiler: apt-get install gcc libc6-dev").success());
    to
}

static HOST: LazyLock<PathBuf> =
    LazyLock::new(|| compiled(&repo("tests/support/tap_host.c"), "device_tap_host", &["-ldl", "-lpthread"]));

/// The program's own folder on the device.
const APP: &str = "/data/local/tmp/app";

/// A device with this machine's processor, with the program and its backend on it.
fn bench() -> Bench {
    let bench = Bench::new(Snapshot::Sm8650User);
    bench.device.set_property("ro.product.cpu.abi", b"x86_64");
    push(&bench, &HOST, "tap_host");
    // The backend, and the C++ libraries beside it that it needs.
    for entry in std::fs::read_dir(runtime_247()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name == "libQnnCpu.so" || name.starts_with("libc++") || name.starts_with("libunwind") {
            push(&bench, &entry.path(), &name);
        }
    }
    bench
}

fn push(bench: &Bench, from: &Path, name: &str) {
    let to = format!("{APP}/{name}");
    let pushed = bench.server.on(&bench.device, ["push", from.to_str().unwrap(), &to]);
    assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    bench.shell(&format!("chmod 755 {to}"));
}

/// A call with these tap options, and the program in this mode.
fn call(bench: &Bench, flags: &str, mode: &str, count: u32) -> Qnnscope {
    let program = format!("{APP}/tap_host {APP}/libQnnCpu.so {mode} {count}");
    bench.on_device().arg("tap").flags(flags).arg("--").flags(&program)
}

/// What the program prints on this machine without the tap.
fn alone(mode: &str, count: u32) -> Vec<u8> {
    let backend = runtime_247().join("libQnnCpu.so");
    Command::new(&*HOST).arg(backend).arg(mode).arg(count.to_string()).output().unwrap().stdout
}

/// What the program printed, and the document on the line after it.
#[track_caller]
fn split(done: &Done) -> (String, Value) {
    let stdout = std::str::from_utf8(&done.stdout).unwrap();
    let at = stdout.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
    let document = serde_json::from_str(&stdout[at..]).unwrap_or_else(|_| panic!("{stdout}\n{}", done.stderr));
    (stdout[..at].to_owned(), document)
}

fn executions(document: &Value) -> Vec<u64> {
    let graphs =
        document["processes"].as_array().unwrap().iter().flat_map(|process| process["graphs"].as_array().unwrap());
    graphs.map(|graph| graph["executions"].as_u64().unwrap()).collect()
}

#[track_caller]
fn nothing_is_left(bench: &Bench) {
    let left = || {
        let runs = bench.shell("ls -d /data/local/tmp/qnnscope/run-* 2>/dev/null");
        let ours = "for p in /proc/[0-9]*; do c=$(cat $p/cmdline 2>/dev/null | tr '\\0' ' '); case $c in *cmdline*) ;; *tap_host*) echo \
                    \"$c\";; esac; done";
        format!("{runs}{}", bench.shell(ours))
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while !left().is_empty() {
        assert!(Instant::now() < deadline, "{}", left());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_program_on_a_device_is_told_like_one_here() {
    let bench = bench();
    let done = call(&bench, "--json --detail-every 50 --counter-rate 20 --env HOST_PAUSE_US=3000", "plain", 200)
        .finish()
        .expect(0);
    let (own, document) = split(&done);
    assert_eq!(own.as_bytes(), alone("plain", 200), "its output comes whole");
    // The backend complains there that it cannot choose its cores; nothing else is printed.
    let ours = ["qnnscope", "error", "preload", "link"].iter().find(|word| done.stderr.contains(*word));
    assert_eq!(ours, None, "{}", done.stderr);
    fits(&schema::read("tap.schema.json"), &document);
    assert_eq!(document["exit"], json!({"status": 0, "signal": null}));
    assert_eq!((&document["loaded"], &document["lost"]), (&json!(1), &json!(0)));
    let process = &document["processes"][0];
    assert_eq!((&process["end"], process["graphs"].as_array().unwrap().len()), (&json!("orderly"), 1));
    let graph = &process["graphs"][0];
    assert_eq!(
        (&graph["executions"], &graph["backend"], &graph["driver"]),
        (&json!(200), &json!("cpu"), &json!("tap"))
    );
    assert_eq!((&graph["device"]["id"], &graph["device"]["soc"]), (&json!(bench.device.serial()), &json!("SM8650")));
    assert_eq!(graph["profiling"]["iterations"], 4, "every fiftieth");
    let ops: Vec<&str> = graph["ops"].as_array().unwrap().iter().map(|op| op["name"].as_str().unwrap()).collect();
    assert_eq!(ops, ["add_0", "add_1", "add_2", "relu"]);
    assert!(crate::support::number(&graph["memory_bytes"]["rss_peak"]) > 1e6, "{:#}", graph["memory_bytes"]);
    // A loaded machine makes an execution longer than a pause, but never makes a pause shorter than
    // requested.
    assert!(crate::support::number(&graph["between_us"]["p50"]) >= 3000.0, "{:#}", graph["between_us"]);
    assert!(crate::support::number(&process["time_share"]["program"]) > 0.0, "{:#}", process["time_share"]);
    assert!(!document["device_counters"].as_array().unwrap().is_empty(), "counters are sampled beside it");
    nothing_is_left(&bench);
    // The second time, the library is already there.
    let program = format!("{APP}/tap_host libQnnCpu.so plain 20");
    let again =
        bench.on_device().flags("tap --headless --swap /data/local/tmp/app --").flags(&program).finish().expect(0);
    let text = String::from_utf8(again.stdout).unwrap();
    assert!(text.starts_with(std::str::from_utf8(&alone("plain", 20)).unwrap()), "{text}");
    assert!(text.contains("main_graph") && text.contains("add_2"), "a report follows: {text}");
}

#[test]
fn a_lost_link_takes_nothing_with_it() {
    let bench = bench();
    let program = format!("{APP}/tap_host {APP}/libQnnCpu.so plain 2500");
    let call = bench.on_device();
    let session = call.home().join("session.jsonl");
    let running = call
        .args(["tap", "--json", "--detail-every", "0", "--env", "HOST_PAUSE_US=2000", "--record"])
        .arg(&session)
        .arg("--")
        .flags(&program)
        .start();
    let count = |part: &str| std::fs::read_to_string(&session).unwrap_or_default().matches(part).count();
    let deadline = Instant::now() + Duration::from_secs(60);
    let wait_for = |part: &str, most: usize| {
        while count(part) < most {
            assert!(Instant::now() < deadline, "no {part} more than {}", count(part));
            std::thread::sleep(Duration::from_millis(30));
        }
    };
    for lost in 1..=2 {
        wait_for("\"executed\"", count("\"executed\"") + 3);
        bench.device.drop_link();
        // A link cannot be lost again before it is back.
        wait_for(" is back", lost);
    }
    let done = running.wait();
    let (own, document) = split(&done);
    assert_eq!((done.code(), own), (0, String::from_utf8(alone("plain", 2500)).unwrap()), "{}", done.stderr);
    assert_eq!((executions(&document), &document["lost"]), (vec![2500], &json!(0)));
    assert_eq!(document["processes"][0]["end"], "orderly");
    assert_eq!(count(" is back"), 2, "the link was lost twice");
    nothing_is_left(&bench);
}

#[test]
fn it_ends_as_the_program_ends_and_what_a_killed_one_did_is_there() {
    let bench = bench();
    for (mode, status, exit) in [
        ("exit7", 7, json!({"status": 7, "signal": null})),
        ("kill", 137, json!({"status": null, "signal": "SIGKILL"})),
    ] {
        let done = call(&bench, "--json --detail-every 0", mode, 300).finish();
        let (_, document) = split(&done);
        assert_eq!((done.code(), &document["exit"]), (status, &exit), "{mode}: {}", done.stderr);
        assert_eq!((executions(&document), &document["lost"]), (vec![300], &json!(0)), "{mode}");
        assert_ne!(document["processes"][0]["end"], "orderly", "{mode}");
    }
    // A program that becomes another one, and one whose forks do.
    let (_, document) = split(&call(&bench, "--json --detail-every 0", "exec", 30).finish().expect(0));
    assert_eq!((executions(&document), &document["lost"]), (vec![30, 5], &json!(0)));
    let (_, document) = split(&call(&bench, "--json --detail-every 0", "children", 3).finish().expect(0));
    assert_eq!(
        (executions(&document), &document["loaded"]),
        (vec![5, 5, 5], &json!(4)),
        "the program and three that it executes: {document:#}"
    );
    nothing_is_left(&bench);
}

#[test]
fn ctrl_c_reaches_the_program_first() {
    let bench = bench();
    let running = call(&bench, "--json --detail-every 0 --env HOST_PAUSE_US=2000", "plain", 100_000).start();
    let deadline = Instant::now() + Duration::from_secs(60);
    while bench
        .shell("cat /data/local/tmp/qnnscope/run-*/told/*.tap 2>/dev/null | grep -c executions")
        .trim()
        .parse::<u32>()
        .unwrap_or(0)
        < 3
    {
        assert!(Instant::now() < deadline, "the program does not execute");
        std::thread::sleep(Duration::from_millis(100));
    }
    crate::support::send(running.pid(), Signal::INT);
    let done = running.wait();
    let (_, document) = split(&done);
    assert_eq!(
        (done.code(), &document["exit"]),
        (130, &json!({"status": null, "signal": "SIGINT"})),
        "{}",
        done.stderr
    );
    assert!(executions(&document)[0] >= 3, "{document:#}");
    nothing_is_left(&bench);
}

#[test]
fn input_status_and_context_binaries_are_what_they_are_there() {
    let bench = bench();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("input");
    std::fs::write(&file, "first line\nwhat is left\n").unwrap();
    let call = || bench.on_device().args(["tap", "--json", "--", "sh", "-c", "cat; exit 137"]);
    // The rest of a file, from its current position.
    let mut input = std::fs::File::open(&file).unwrap();
    std::io::Seek::seek(&mut input, std::io::SeekFrom::Start(11)).unwrap();
    let done = call().reading(input).finish();
    let (own, document) = split(&done);
    assert_eq!((own.as_str(), done.code()), ("what is left\n", 137), "{}", done.stderr);
    assert_eq!(document["exit"], json!({"status": 137, "signal": null}), "it was not killed");
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"x").unwrap();
    let refused = call().reading(reader).finish().expect(2);
    assert!(refused.stderr.contains("< FILE"), "{}", refused.stderr);
    nothing_is_left(&bench);

    let own = dir.path().join("own.bin");
    let backend = runtime_247().join("libQnnCpu.so");
    let made = Command::new(&*HOST).arg(backend).args(["binary", "1"]).env("HOST_BINARY", &own).output().unwrap();
    assert!(made.status.success());
    let done = self::call(&bench, "--json --detail-every 0", "binary", 3).finish().expect(0);
    let (_, document) = split(&done);
    fits(&schema::read("tap.schema.json"), &document);
    let loaded = &document["processes"][0]["contexts"][1];
    assert_eq!(loaded["binary_bytes"], std::fs::metadata(&own).unwrap().len(), "{loaded:#}");
    let graph = &loaded["binary"]["info"]["graphs"][0];
    assert_eq!((&graph["name"], &graph["outputs"][0]["name"]), (&json!("kept"), &json!("y")), "{loaded:#}");
    assert_eq!(loaded["binary"]["read_by"].as_str().map(Path::new), Some(runtime_247().as_path()), "of this machine");
    nothing_is_left(&bench);
}

#[test]
fn what_cannot_be_is_said_before_anything_runs() {
    let bench = bench();
    let refused = |flags: &str, program: &str, status: i32, parts: &[&str]| {
        let done = bench.on_device().args(["tap", "--headless"]).flags(flags).arg("--").flags(program).finish();
        assert_eq!(done.code(), status, "{}", done.stderr);
        for part in parts {
            assert!(done.stderr.contains(part), "no `{part}` in {}", done.stderr);
        }
    };
    let host = format!("{APP}/tap_host");
    refused("", "/data/local/tmp/none", 3, &["/data/local/tmp/none is not a file on", "adb push"]);
    refused("", "no-such-program", 3, &["no-such-program is not a file on"]);
    bench.shell(&format!("cp {APP}/tap_host {APP}/plain_file; chmod 644 {APP}/plain_file"));
    refused("", &format!("{APP}/plain_file"), 2, &["lacks execute permission", "chmod 755"]);
    refused("--listen /tmp/nowhere", &host, 2, &["--listen"]);
    refused("--swap /data/local", &host, 3, &["/data/local on", "libQnnHtp.so"]);
    let odd = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    refused(&format!("--tap-library {}", odd.display()), &host, 2, &["cannot be the tap", "cargo ndk"]);
    refused("--env 1=2", &host, 2, &["not a valid variable name"]);
    // Nothing can be loaded into it: it still runs, and a finding says so.
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("still-{}.c", std::process::id()));
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"still here\"); return 5; }\n").unwrap();
    let fixed = compiled(&source, "static_host", &["-static"]);
    push(&bench, &fixed, "static_host");
    let done = bench.on_device().args(["tap", "--json", "--", &format!("{APP}/static_host")]).finish();
    let (own, document) = split(&done);
    assert_eq!((done.code(), own.as_str()), (5, "still here\n"), "{}", done.stderr);
    assert!(done.stderr.contains("statically linked"), "{}", done.stderr);
    assert!(document["findings"].to_string().contains("tap.not-reached"), "{document:#}");
    nothing_is_left(&bench);
}

/// The app used by the tests.
const PACKAGE: &str = "com.example.app";

#[test]
fn a_debuggable_app_is_started_with_the_tap_in_it() {
    let bench = bench();
    let (app, libraries) = (format!("/data/app/{PACKAGE}"), format!("/data/app/{PACKAGE}/lib/x86_64"));
    // As an installation creates them, which the shell may not do.
    let root = bench.device.tree();
    for folder in [&libraries, &format!("/data/data/{PACKAGE}")] {
        std::fs::create_dir_all(root.join(&folder[1..])).unwrap();
    }
    bench.shell(&format!("cp {APP}/lib* {libraries} && cp {APP}/tap_host {app}"));
    let runs = |backend: &str| {
        let text = format!("#!/system/bin/sh\nHOST_PAUSE_US=3000 exec {app}/tap_host {backend} plain 200\n");
        bench.device.write(&format!("{app}/run"), text);
        bench.shell(&format!("chmod 755 {app}/run"));
    };
    let tap = |flags: &str| bench.on_device().flags("tap --package").arg(PACKAGE).flags(flags).finish();
    let refused = |flags: &str, status: i32, parts: &[&str]| {
        let done = tap(flags);
        assert_eq!(done.code(), status, "{}", done.stderr);
        for part in parts {
            assert!(done.stderr.contains(part), "no `{part}` in {}", done.stderr);
        }
    };
    refused("--json", 3, &["no app com.example.app", "pm list packages"]);
    let kind = format!("/system/etc/virtual/apps/{PACKAGE}");
    bench.device.write(&kind, "release");
    refused("--json", 2, &["not debuggable", "debug build"]);
    refused("--json -- /system/bin/true", 2, &["remove the program"]);
    bench.device.write(&kind, "debuggable");
    bench.device.write("/system/etc/virtual/no_wrap", "");
    refused("--json", 1, &["may not set wrap.com.example.app", "wrap.sh"]);
    assert_eq!(bench.shell(&format!("ls /data/data/{PACKAGE}")).trim(), "", "nothing stays of a refused tap");
    nothing_is_left(&bench);
    bench.device.remove("/system/etc/virtual/no_wrap");
    for (backend, flags) in [
        (format!("{libraries}/libQnnCpu.so"), "--json --detail-every 0".to_owned()),
        ("libQnnCpu.so".to_owned(), format!("--json --detail-every 0 --swap {libraries}")),
    ] {
        runs(&backend);
        let done = tap(&flags).expect(0);
        let (own, document) = split(&done);
        assert_eq!(own.as_bytes(), alone("plain", 200), "{flags}: what an app prints goes nowhere without the tap");
        assert_eq!((executions(&document), &document["lost"]), (vec![200], &json!(0)), "{flags}");
        assert_eq!((&document["program"], &document["exit"]["status"]), (&json!([PACKAGE]), &Value::Null));
        assert_eq!(document["processes"][0]["end"], "orderly");
        assert_eq!(
            bench.shell(&format!("getprop wrap.{PACKAGE}; ls /data/data/{PACKAGE}")).trim(),
            "",
            "nothing stays"
        );
        nothing_is_left(&bench);
    }
}
