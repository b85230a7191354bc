//! `qnnscope doctor`: with nothing installed, with broken parts, and with devices.

#![cfg(target_os = "linux")]

use crate::support::device::Bench;
use crate::support::virtual_device::{LinkState, Options, Snapshot};
use crate::support::{Done, Qnnscope, runtime_247, schema};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An address without an adb server; without adb, none is started there.
const NO_SERVER: &str = "127.0.0.1:1";

struct Told(Value);

impl Told {
    /// The document, which matches its schema and names every item once.
    #[track_caller]
    fn of(done: Done, code: i32) -> Self {
        let document = done.expect(code).json();
        schema::fits(&schema::read("doctor.schema.json"), &document);
        let sections: Vec<&Value> = document["sections"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
        let mut seen = BTreeSet::new();
        for item in document["items"].as_array().unwrap() {
            assert!(sections.contains(&&item["section"]), "{item}");
            assert!(seen.insert(format!("{} {}", item["section"], item["id"])), "twice: {item}");
            assert!(item["status"] == "ok" || item["fix"].is_string(), "what to do? {item}");
        }
        Self(document)
    }

    #[track_caller]
    fn item(&self, section: &str, id: &str) -> (String, String) {
        let items = self.0["items"].as_array().unwrap();
        let found = items.iter().find(|item| item["section"] == section && item["id"] == id);
        let found = found.unwrap_or_else(|| panic!("no {section} {id} in {:#}", self.0));
        let text = format!("{} {}", found["detail"].as_str().unwrap(), found["fix"].as_str().unwrap_or_default());
        (found["status"].as_str().unwrap().to_owned(), text)
    }

    #[track_caller]
    fn is(&self, section: &str, id: &str, status: &str, words: &[&str]) {
        let (found, text) = self.item(section, id);
        assert_eq!(found, status, "{section} {id}: {text}");
        for word in words {
            assert!(text.contains(word), "{word} in {text}");
        }
    }
}

fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// A program that needs a library which does not exist.
fn program_lacking(path: &Path, library: &str) {
    let dir = tempfile::tempdir().unwrap();
    let build = |arguments: &[&str], code: &str, out: &Path| {
        let source = dir.path().join("source.c");
        std::fs::write(&source, code).unwrap();
        let status = Command::new("cc").args(["-o"]).arg(out).arg(&source).args(arguments).status().unwrap();
        assert!(status.success());
    };
    let lib = dir.path().join(library);
    build(&["-shared", "-fPIC", &format!("-Wl,-soname,{library}")], "int lacking(void) { return 0; }\n", &lib);
    build(&[lib.to_str().unwrap()], "int lacking(void);\nint main(void) { return lacking(); }\n", path);
}

fn doctor(call: Qnnscope) -> Done {
    call.args(["doctor", "--json"]).finish()
}

/// Makes sure that no adb is found anywhere.
fn lonely(call: Qnnscope) -> Qnnscope {
    call.env("PATH", "/no/such/folder")
        .args(["--adb-server", NO_SERVER])
        .env("ADSP_LIBRARY_PATH", "")
        .env("PYTHONPATH", "")
}

#[test]
fn with_nothing_at_all_nothing_can_run_and_each_absence_has_its_fix() {
    let told = Told::of(doctor(lonely(Qnnscope::without_runtime())), 1);
    assert_eq!((&told.0["can_run"], &told.0["backends_here"]), (&false.into(), &serde_json::json!([])));
    told.is("sdk", "sdk", "warning", &["QAIRT_SDK_ROOT"]);
    told.is("sdk", "qnn-profile-viewer", "ok", &["part of the SDK", "on PATH"]);
    told.is("runtime", "runtime", "problem", &["qnnscope runtime install"]);
    told.is("adb", "adb", "warning", &["install adb"]);
    told.is("adb", "devices", "warning", &["none is attached"]);
    let text = lonely(Qnnscope::without_runtime()).arg("doctor").finish().expect(1).text();
    assert!(text.contains("Nothing can run: no backend loads here"), "{text}");
}

#[test]
fn this_machine_alone_is_enough() {
    let told = Told::of(doctor(lonely(Qnnscope::on(&runtime_247()))), 0);
    told.is("runtime", "cpu", "ok", &["loads"]);
    told.is("runtime", "htp", "ok", &["loads"]);
    assert!(told.0["backends_here"].as_array().unwrap().contains(&"cpu".into()));
    // If a device was requested, it does not help that this machine could run.
    let told = Told::of(doctor(lonely(Qnnscope::on(&runtime_247())).args(["--device", "no-such"])), 1);
    told.is("adb", "asked", "problem", &["no-such"]);
}

#[test]
fn libraries_that_do_not_load_say_why() {
    let folder = tempfile::tempdir().unwrap();
    // Without the C++ runtime beside it, and with a truncated library.
    std::fs::copy(runtime_247().join("libQnnCpu.so"), folder.path().join("libQnnCpu.so")).unwrap();
    std::fs::copy(runtime_247().join("libQnnSystem.so"), folder.path().join("libQnnSystem.so")).unwrap();
    let whole = std::fs::read(runtime_247().join("libQnnGpu.so")).unwrap();
    std::fs::write(folder.path().join("libQnnGpu.so"), &whole[..whole.len() / 2]).unwrap();
    let told = Told::of(doctor(lonely(Qnnscope::on(folder.path()))), 1);
    told.is("runtime", "cpu", "problem", &["libc++", "is missing"]);
    told.is("runtime", "gpu", "problem", &["truncated"]);
    told.is("runtime", "htp", "warning", &["no libQnnHtp.so"]);
}

#[test]
fn a_backend_that_loads_and_makes_no_device_does_not_run_here() {
    let folder = tempfile::tempdir().unwrap();
    // A line from a real log in which the DSP does not answer.
    let line = "<E> DspTransport.openSession qnn_open failed, 0x80000406, prio 100";
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-DDEVICE_CODE=14001"])
        .arg(format!("-DDEVICE_LINE=\"{line}\""))
        .arg("-o")
        .arg(folder.path().join("libQnnHtp.so"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/tap_backend.c"))
        .status()
        .unwrap();
    assert!(status.success());
    std::fs::copy(runtime_247().join("libQnnSystem.so"), folder.path().join("libQnnSystem.so")).unwrap();
    let told = Told::of(doctor(lonely(Qnnscope::on(folder.path()))), 1);
    assert!(!told.0["backends_here"].as_array().unwrap().contains(&"htp".into()), "{}", told.0);
    told.is("runtime", "htp", "problem", &["creates no device", "14001", "qnn_open failed, 0x80000406"]);
    let (_, text) = told.item("runtime", "htp");
    assert!(!text.contains("--log-level verbose"), "the code inside says which cause it is: {text}");
}

#[test]
fn variables_are_looked_at() {
    let call = Qnnscope::on(&runtime_247())
        .env("ADSP_LIBRARY_PATH", "/data/local/tmp:/vendor/lib/rfsa/adsp")
        .env("QNN_SDK_ROOT", "/no/such/sdk")
        .env("LD_LIBRARY_PATH", "/no/such/lib:/usr/lib")
        .env("ANDROID_NDK_ROOT", "/no/such/ndk")
        .env("ADB_SERVER_SOCKET", "tcp:x:y:z")
        .env("ANDROID_SERIAL", "");
    // A backend loads, so nothing about it is a problem.
    let told = Told::of(doctor(call), 0);
    assert!(!told.0.to_string().contains("\"problem\""), "{}", told.0);
    told.is("sdk", "sdk", "warning", &["QNN_SDK_ROOT names /no/such/sdk"]);
    told.is("environment", "ADSP_LIBRARY_PATH", "warning", &["\"/data/local/tmp;/vendor/lib/rfsa/adsp\""]);
    told.is("environment", "QNN_SDK_ROOT", "warning", &["is not a folder"]);
    told.is("environment", "LD_LIBRARY_PATH", "warning", &["/no/such/lib"]);
    told.is("environment", "ANDROID_NDK_ROOT", "warning", &["/no/such/ndk"]);
    told.is("environment", "ADB_SERVER_SOCKET", "warning", &[]);
    told.is("adb", "server", "warning", &["tcp:x:y:z"]);
}

#[test]
fn tools_are_started_with_a_limit_and_what_they_lack_is_named() {
    let sdk = tempfile::tempdir().unwrap();
    let (bin, lib) = (sdk.path().join("bin/x86_64-linux-clang"), sdk.path().join("lib/x86_64-linux-clang"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(lib.parent().unwrap()).unwrap();
    symlink(runtime_247(), &lib).unwrap();
    let modules: PathBuf = sdk.path().join("lib/python/qti");
    std::fs::create_dir_all(&modules).unwrap();
    std::fs::write(modules.join("libPyIrGraph302.so"), "").unwrap();
    script(&bin.join("qnn-net-run"), "echo QNN SDK v2.47.0.260601114230_1; touch left-here");
    script(&bin.join("qairt-converter"), "echo \"ModuleNotFoundError: No module named 'qti.aisw'\" >&2; exit 1");
    script(&bin.join("qnn-profile-viewer"), "sleep 300 & sleep 300");
    program_lacking(&bin.join("qnn-context-binary-generator"), "libc++.so.99");
    std::fs::write(bin.join("qnn-model-lib-generator"), "no program").unwrap();
    // Everything the tools need, except adb.
    let path = tempfile::tempdir().unwrap();
    for name in ["sh", "sleep", "touch", "python3"] {
        let found = ["/usr/bin", "/bin", "/usr/local/bin"].map(|dir| Path::new(dir).join(name));
        symlink(found.iter().find(|file| file.exists()).unwrap(), path.path().join(name)).unwrap();
    }
    let call = lonely(Qnnscope::without_runtime()).env("QNN_SDK_ROOT", sdk.path()).env("PATH", path.path());
    let done = doctor(call);
    let left = std::fs::read_dir(done.home()).unwrap().flatten().any(|entry| entry.file_name() == "left-here");
    assert!(!left, "tools are started in a scratch folder");
    let told = Told::of(done.leaves_nothing_behind(), 0);
    told.is("sdk", "sdk", "ok", &["v2.47.0.260601114230", "x86_64-linux-clang"]);
    told.is("sdk", "qnn-net-run", "ok", &["v2.47.0.260601114230", "starts"]);
    told.is("sdk", "versions", "ok", &["v2.47.0.260601114230"]);
    told.is("sdk", "converter", "warning", &["lacks the Python module qti.aisw", "envsetup.sh"]);
    told.is("sdk", "qnn-profile-viewer", "warning", &["did not finish within"]);
    told.is("sdk", "qnn-context-binary-generator", "warning", &["lacks libc++.so.99", "apt-get install libc++1"]);
    told.is("sdk", "qnn-model-lib-generator", "warning", &["chmod +x"]);
    told.is("environment", "PYTHONPATH", "warning", &["envsetup.sh"]);
    told.is("build", "python", "warning", &["3.02"]);
}

#[test]
fn a_plain_phone_is_looked_at() {
    let options = Options { disk_bytes: Some(32 << 20), ..Options::default() };
    let bench = Bench::with(Snapshot::Sm8650User, options);
    bench.device.write("/dev/fastrpc-cdsp", "");
    bench.device.refuse("/dev/fastrpc-cdsp");
    bench.device.write("/vendor/lib64/libcdsprpc.so", "client");
    bench.device.write("/vendor/lib64/libQnnHtpV75Stub.so", b"\x7fELF v2.20.0.240223161227_84962".as_slice());
    bench.device.log("11-21 06:41:00.000  2210  2214 W qnn-net-run: avc: denied { read } for name=\"fastrpc-cdsp\"");
    let told = Told::of(doctor(bench.qnnscope()), 0);
    let section = format!("device:{}", bench.device.serial());
    assert_eq!(told.0["devices"], serde_json::json!([bench.device.serial()]));
    told.is("adb", &bench.device.serial(), "ok", &["ready"]);
    told.is(&section, "device", "ok", &["SM8650", "Android 14"]);
    told.is(&section, "dsp-arch", "ok", &["Hexagon v75", "8 MB of VTCM"]);
    told.is(&section, "fastrpc", "warning", &["fastrpc-cdsp"]);
    told.is(&section, "libcdsprpc", "ok", &["/vendor/lib64/libcdsprpc.so"]);
    told.is(&section, "remoteproc", "ok", &["may not read"]);
    told.is(&section, "vendor", "warning", &["/vendor/lib64/libQnnHtpV75Stub.so v2.20.0.240223161227", "v2.47.0"]);
    told.is(&section, "denials", "warning", &["avc: denied"]);
    told.is(&section, "stub-skel", "ok", &["v75"]);
    told.is(&section, "space", "warning", &["qnnscope clean"]);
    told.is(&section, "thermal", "ok", &["not throttling"]);
    told.is(&section, "access", "ok", &["no root", "SELinux enforcing"]);
    let text = bench.on_device().arg("doctor").finish().expect(0).text();
    assert!(
        text.contains(&format!("device {}", bench.device.serial())) && text.contains("warning  FastRPC nodes"),
        "{text}"
    );
}

#[test]
fn a_rooted_phone_and_a_board_are_looked_at() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    bench.device.write("/sys/class/remoteproc/remoteproc1/state", "crashed\n");
    std::fs::remove_file(bench.sdk.root().join("lib/hexagon-v73/unsigned/libQnnHtpV73Skel.so")).unwrap();
    let told = Told::of(doctor(bench.on_device()), 0);
    let section = format!("device:{}", bench.device.serial());
    told.is(&section, "remoteproc", "warning", &["32300000.remoteproc-cdsp is crashed"]);
    told.is(&section, "stub-skel", "warning", &["libQnnHtpV73Skel.so"]);
    told.is(&section, "access", "ok", &["root via su"]);
    bench.device.set_state(LinkState::Unauthorized);
    let serial = bench.device.serial();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while bench.server.state(&bench.device).as_deref() != Some("unauthorized") {
        assert!(std::time::Instant::now() < deadline);
        bench.server.adb(["connect", &serial]);
    }
    let told = Told::of(doctor(bench.on_device()), 1);
    told.is("adb", &serial, "problem", &["unauthorized", "Allow USB debugging"]);

    let board = Bench::new(Snapshot::Qcs6490Linux);
    // The board has this machine's processor, and reports it.
    let target = if std::env::consts::ARCH == "x86_64" { "x86_64-linux-clang" } else { "aarch64-oe-linux-gcc11.2" };
    board.sdk.replace(&format!("bin/{target}/qnn-net-run"), b"#!/bin/sh\n");
    let told = Told::of(doctor(board.on_device()), 0);
    let section = format!("device:{}", board.device.serial());
    told.is(&section, "dsp-arch", "ok", &["Hexagon v68"]);
    told.is(&section, "remoteproc", "ok", &["running"]);
    told.is(&section, "access", "ok", &["the shell is root"]);
    // The tools for it are gone: nothing can run there, whatever this machine can do.
    std::fs::remove_dir_all(board.sdk.root().join("bin")).unwrap();
    let told = Told::of(doctor(board.on_device()), 1);
    told.is(&section, "net-run", "problem", &["QNN_SDK_ROOT"]);
}
