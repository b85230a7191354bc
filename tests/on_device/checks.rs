//! Confirming checks: failed runs on a device with one fault each, and logs that are checked on a device
//! afterwards.

#![cfg(target_os = "linux")]

use crate::support::device::{Bench, Recorded};
use crate::support::virtual_device::Snapshot;
use crate::support::{Qnnscope, demo_float, demo_int8, model_library, repo, runtime_247, schema};
use qnnscope::report::ResultDocument;
use qnnscope::session::SessionReader;
use qnnscope::store::Store;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Build id of the real libraries that the fake SDK has for this machine's processor.
const BUILD: &str = "v2.47.0.260601114230";

/// What QNN prints when the DSP cannot load its skel, from the log's first error to the last (from public
/// threads).
const NO_SKEL: &str = "   0.1ms [ ERROR ]  <E> DspTransport.openSession qnn_open failed, 0x80000406, prio 100
   0.2ms [ ERROR ]  <E> IDspTransport: Unable to load lib 0x80000406
   0.2ms [ ERROR ]  <E> DspTransport failed,cannot open session, error 0x00000009
   0.3ms [ ERROR ]  <E> Unable to load Skel Library. transportStatus: 9
   0.3ms [ ERROR ]  <E> Failed to retrieve skel build id: err: 1008
   0.3ms [ ERROR ]  <E> Failed to create transport for device, error: 1008
   0.3ms [ ERROR ]  <E> Failed to load skel, error: 1008
   0.4ms [ ERROR ]  <E> Transport layer setup failed: 14001
   0.4ms [ ERROR ]  <E> Failed to parse platform config: 14001";

const NO_SESSION: &str = "   0.1ms [ ERROR ]  <E> DspTransport.openSession qnn_open failed, 0xffffffff, prio 100
   0.3ms [ ERROR ]  <E> Failed to retrieve skel build id: err: 1003
   0.3ms [ ERROR ]  <E> Transport layer setup failed: 14001";

const ARCH_REFUSED: &str = "   0.1ms [ ERROR ]  <E> Request feature arch with value 75 unsupported
   0.1ms [ ERROR ]  <E> Failed to register context to device and backend
   0.1ms [ ERROR ]  <E> Failed to create context from binary with err 0x138d";

/// Puts a tool into the SDK that causes `fault` in the run's folder and fails like the real one, with its
/// messages.
fn failing_tool(bench: &Bench, fault: &str, log: &str, end: &str, status: u8) {
    let text = format!(
        "#!/system/bin/sh\necho \"qnn-net-run pid:$$\"\n{fault}\ncat <<'END'\n{log}\nEND\necho '{end}' >&2\nexit {status}\n"
    );
    bench.sdk.replace("bin/aarch64-android/qnn-net-run", text.as_bytes());
}

/// Installs a valid stub, skel and compiler.
fn sound_libraries(bench: &Bench, arch: u32) {
    let header = |bits: u8, machine: u8, flags: u8| {
        let mut header = vec![0; 64];
        header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', bits, 1, 1]);
        (header[16], header[18], header[20]) = (3, machine, 1);
        if bits == 1 {
            (header[36], header[40]) = (flags, 52);
        } else {
            header[52] = 64;
        }
        [header, format!("\0{BUILD}_1\0").into_bytes()].concat()
    };
    let flags = u8::from_str_radix(&arch.to_string(), 16).unwrap();
    bench.sdk.replace(&format!("lib/hexagon-v{arch}/unsigned/libQnnHtpV{arch}Skel.so"), &header(1, 164, flags));
    bench.sdk.replace(&format!("lib/aarch64-android/libQnnHtpV{arch}Stub.so"), &header(2, 183, 0));
    bench.sdk.replace("lib/aarch64-android/libQnnHtpPrepare.so", &header(2, 183, 0));
    bench.device.write("/vendor/lib64/libcdsprpc.so", "client");
}

fn causes(run: &Recorded) -> Vec<Value> {
    run.result()["diagnosis"]["causes"].as_array().unwrap_or_else(|| panic!("{}", run.done.stderr)).clone()
}

/// Checks that the run failed, that its first cause is this one and confirmed, and that no other cause is.
#[track_caller]
fn confirmed(run: &Recorded, id: &str, words: &[&str]) {
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let causes = causes(run);
    let brief = |cause: &Value| {
        let results: Vec<String> = cause["confirm"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| format!("{}: {} {}", row["id"], row["outcome"], row["detail"]))
            .collect();
        format!("{} {} {results:?}", cause["id"], cause["confirmed"])
    };
    let all: Vec<String> = causes.iter().map(brief).collect();
    assert_eq!(causes[0]["id"], id, "{all:#?}");
    let yes: Vec<&Value> = causes.iter().filter(|cause| cause["confirmed"] == true).map(|cause| &cause["id"]).collect();
    assert_eq!(yes, [id], "{all:#?}");
    let details = causes[0]["confirm"].to_string();
    for word in words {
        assert!(details.contains(word), "{word} in {details}");
    }
    assert!(run.done.stderr.contains(&format!("confirmed: {id}: ")), "{}", run.done.stderr);
}

#[test]
fn each_fault_of_the_libraries_is_confirmed() {
    let bench = Bench::new(Snapshot::Sm8650User);
    sound_libraries(&bench, 75);
    let run = || bench.run(&demo_int8(), "-b htp -n 3 --warmup 0");

    failing_tool(&bench, "rm -f libQnnHtpV75Skel.so", NO_SKEL, "Device Creation failure", 11);
    let missing = run();
    confirmed(&missing, "skel-not-found", &["libQnnHtpV75Skel.so is in none of the folders"]);
    schema::fits(&schema::read("result.schema.json"), &missing.done.json());
    let at = |kind: &str| missing.events.iter().position(|event| event.get(kind).is_some()).unwrap();
    assert!(at("failed") < at("check_finished") && at("check_finished") < at("run_finished"));
    // The session shows the same as the run did.
    let mut store = Store::new();
    for record in SessionReader::open(&missing.session).unwrap() {
        store.apply(&record.unwrap());
    }
    let replayed = serde_json::to_value(ResultDocument::new(&store)).unwrap();
    assert_eq!(replayed["runs"][0]["diagnosis"], missing.result()["diagnosis"]);

    failing_tool(&bench, "rm -f libQnnHtpV75Stub.so", NO_SKEL, "Device Creation failure", 11);
    confirmed(&run(), "stub-not-found", &["libQnnHtpV75Stub.so is in none of"]);

    failing_tool(&bench, "ADSP=unchanged", NO_SKEL, "Device Creation failure", 11);
    let sound = run();
    let all = causes(&sound);
    let skel = all.iter().find(|cause| cause["id"] == "skel-not-found").unwrap();
    assert_eq!(
        (&skel["confirmed"], all.iter().any(|cause| cause["confirmed"] == true)),
        (&false.into(), false),
        "{all:#?}"
    );
    // It moves behind all the others; the log does not name it.
    assert!(all.last().unwrap()["id"] == "skel-not-found" && skel["confidence"].as_f64().unwrap() < 0.25, "{all:#?}");

    let skel = "lib/hexagon-v75/unsigned/libQnnHtpV75Skel.so";
    let good = std::fs::read(bench.sdk.root().join(skel)).unwrap();
    let mut wrong = good.clone();
    wrong[36] = 0x73;
    bench.sdk.replace(skel, &wrong);
    confirmed(&run(), "skel-wrong-arch", &["named for v75", "says v73"]);

    let at = good.windows(BUILD.len()).position(|window| window == BUILD.as_bytes()).unwrap();
    let mut other = good.clone();
    other[at..at + BUILD.len()].copy_from_slice(b"v2.31.0.250130151446");
    bench.sdk.replace(skel, &other);
    confirmed(&run(), "stub-skel-build-id-mismatch", &["v2.31.0.250130151446", BUILD]);
}

#[test]
fn permissions_and_the_state_of_the_dsp_are_confirmed() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    sound_libraries(&bench, 73);
    failing_tool(&bench, ":", NO_SESSION, "Device Creation failure", 11);
    let run = || bench.run(&demo_int8(), "-b htp -n 3 --warmup 0");
    bench.device.write("/sys/class/remoteproc/remoteproc1/state", "offline\n");
    confirmed(&run(), "fastrpc-session-open-failed", &["32300000.remoteproc-cdsp", "offline"]);
    bench.device.write("/sys/class/remoteproc/remoteproc1/state", "running\n");
    bench.device.write("/dev/fastrpc-cdsp", "");
    bench.device.refuse("/dev/fastrpc-cdsp");
    let refused = run();
    confirmed(&refused, "fastrpc-permission-denied", &["this user may open none of them", "fastrpc-cdsp"]);
    // The text says the same.
    let text = bench.on_device().arg("run").arg(demo_int8()).flags("-b htp -n 3 --warmup 0 --headless").finish();
    assert!(text.text().contains("cause, confirmed: The user may not open the DSP"), "{}", text.text());
    assert!(text.text().contains("check: nodes confirms it: this user may open none"), "{}", text.text());
}

#[test]
fn a_context_binary_for_a_newer_part_is_confirmed() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    sound_libraries(&bench, 73);
    failing_tool(&bench, ":", ARCH_REFUSED, "Create From Binary failure", 16);
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("made for v75.bin");
    std::fs::write(&model, crate::support::context_binary("2.3.0", "htp", &demo_int8(), Some(57))).unwrap();
    let run = bench.run(&model, "-b htp -n 3 --warmup 0");
    confirmed(&run, "context-binary-arch-newer", &["for Hexagon v75, this device has v73"]);
}

#[test]
fn a_path_with_colons_is_confirmed_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let model = model_library(folder.path(), "small_graph.c", &["BEHAVIOUR=no_transport"]);
    let done = Qnnscope::on(&runtime_247())
        .env("ADSP_LIBRARY_PATH", "/opt/qnn/dsp:/usr/lib/rfsa/adsp")
        .run_json(&model, "-n 1 --warmup 0")
        .expect(1);
    let cause = &done.first_run()["diagnosis"]["causes"][0];
    assert_eq!((&cause["id"], &cause["confirmed"]), (&"adsp-path-colon".into(), &true.into()), "{cause:#}");
    schema::fits(&schema::read("result.schema.json"), &done.json());
    let without = Qnnscope::on(&runtime_247()).run_json(&model, "-n 1 --warmup 0").expect(1);
    let causes = without.first_run()["diagnosis"]["causes"].as_array().unwrap().clone();
    assert!(causes.iter().all(|cause| cause["id"] != "adsp-path-colon" || cause["confirmed"] != true), "{causes:#?}");
}

/// Every file in a tree with its size, mode and times of change.
fn tree(root: &Path) -> BTreeMap<String, (u64, u32, i64, i64)> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let meta = entry.path().symlink_metadata().unwrap();
            if meta.is_dir() {
                waiting.push(entry.path());
            }
            let about = (meta.size(), meta.mode(), meta.mtime_nsec(), meta.ctime_nsec());
            all.insert(entry.path().display().to_string(), about);
        }
    }
    all
}

#[test]
fn a_log_is_checked_on_a_device_that_stays_as_it_is() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    bench.device.write("/vendor/lib64/libcdsprpc.so", "client");
    bench.shell("mkdir -p '/data/local/tmp/my app'; cd '/data/local/tmp/my app'; echo x >libQnnHtp.so; echo y >'libQnn $(touch owned) `id`.so'; echo z >libQnnHtpV68Skel.so");
    let log = bench.on_device();
    let path = log.home().join("pasted.log");
    std::fs::write(&path, format!("{NO_SKEL}\nsh -c 'touch /data/local/tmp/owned'; $(touch owned)\n")).unwrap();
    let before = tree(&bench.device.tree());
    let done = log.arg("diagnose").arg(&path).args(["--json", "--check", "--files", "/data/local/tmp/my app"]).finish();
    assert_eq!(tree(&bench.device.tree()), before);
    assert_eq!(done.code(), 0, "{}", done.stderr);
    let document = done.json();
    schema::fits(&schema::read("diagnosis.schema.json"), &document);
    let first = &document["causes"][0];
    assert_eq!((&first["id"], &first["confirmed"]), (&"stub-not-found".into(), &true.into()), "{document:#}");
    let wrong = document["causes"].as_array().unwrap().iter().find(|cause| cause["id"] == "skel-wrong-arch").unwrap();
    assert!(wrong["confirm"].to_string().contains("this DSP is v73, and only"), "{wrong:#}");

    // Header and build id of a file that exists only on the device.
    let mut skel = vec![0; 64];
    skel[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    (skel[18], skel[20], skel[36]) = (164, 1, 0x68);
    bench.device.write("/vendor/dsp/cdsp/libQnnHtpV73Skel.so", [skel, b"\0v2.20.0.240223161227_1\0".to_vec()].concat());
    let call = bench.on_device().arg("diagnose").arg(&path).args(["--json", "--check"]);
    let document = call.args(["--files", "/data/local/tmp/my app"]).finish().json();
    let wrong = document["causes"].as_array().unwrap().iter().find(|cause| cause["id"] == "skel-wrong-arch").unwrap();
    assert!(wrong["confirm"].to_string().contains("its ELF header says v68"), "{wrong:#}");

    // Unless requested, no device is examined, and nothing is confirmed.
    let plain = bench.on_device().arg("diagnose").arg(&path).arg("--json").finish().json();
    assert!(plain["causes"].as_array().unwrap().iter().all(|cause| cause["confirmed"].is_null()));
    let gone = Qnnscope::without_runtime().args(["--device", "no-such", "diagnose", "--check"]).arg(&path);
    let gone = gone.arg("--adb-server").arg(format!("127.0.0.1:{}", bench.server.port())).finish();
    assert_eq!(gone.code(), 3, "{}", gone.stderr);
}

#[test]
fn files_of_windows_are_checked_in_a_folder() {
    let log = repo("tests/data/windows-skel.log");
    let folder = tempfile::tempdir().unwrap();
    for name in ["QnnHtp.dll", "QnnHtpV73Stub.dll", "libQnnHtpV73Skel.so"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    let check = || {
        let call = Qnnscope::without_runtime().arg("diagnose").arg(&log).args(["--json", "--check", "--files"]);
        let causes = call.arg(folder.path()).finish().expect(0).json()["causes"].clone();
        causes.as_array().unwrap().iter().find(|cause| cause["id"] == "windows-skel-load").unwrap().clone()
    };
    let lacking = check();
    assert!(lacking["confirmed"] == true && lacking["confirm"].to_string().contains("libqnnhtpv73.cat"), "{lacking:#}");
    std::fs::write(folder.path().join("libqnnhtpv73.cat"), "x").unwrap();
    assert_eq!(check()["confirmed"], false);
}

#[test]
fn a_run_that_was_ended_is_not_blamed_on_heat_of_the_day_before() {
    let bench = Bench::new(Snapshot::Sm8650User);
    bench.device.log("01-02 03:04:05.678   700   700 W thermal-engine: thermal mitigation severe: clock lowered");
    failing_tool(&bench, "sleep 1; kill -9 $$", "", "", 1);
    let run = bench.run(&demo_int8(), "-b cpu -n 3 --warmup 0");
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    assert_eq!(run.result()["error"]["call"], "SIGKILL", "{:#}", run.result()["error"]);
    assert!(!run.logged("thermal mitigation"), "a line from before the run: {:#?}", run.log());
    let causes = causes(&run);
    assert!(causes.iter().all(|cause| cause["id"] != "thermal-throttling"), "{causes:#?}");
}

#[test]
fn the_op_that_qnn_net_run_names_comes_first() {
    let bench = Bench::new(Snapshot::Sm8650User);
    sound_libraries(&bench, 75);
    let log = "     0.0ms [ ERROR ]  <E> [4294967295] has incorrect Rank 6.
     0.0ms [ ERROR ]  <E> QnnBackend_validateOpConfig failed 3110
     0.0ms [ ERROR ]  <E> Failed to validate op d6_0_relu with error 0xc26
[ ERROR ] QnnModel::addNode() validating node d6_0_relu failed.
    72.6ms [ ERROR ] ComposeGraphs Failed with error = 1";
    failing_tool(&bench, ":", log, "Graph Prepare failure", 14);
    let run = bench.run(&demo_int8(), "-b htp -n 3 --warmup 0");
    let op = run.result()["error"]["op"].clone();
    assert_eq!((&op["name"], &op["reason"]), (&"d6_0_relu".into(), &"rank 6 is not taken".into()), "{op:#}");
    assert_eq!(causes(&run)[0]["id"], "op-rank-unsupported");
    assert!(run.done.stderr.contains("at op `d6_0_relu`: rank 6 is not taken"), "{}", run.done.stderr);
}

#[test]
fn a_tool_for_another_processor_is_not_sent() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let own = bench.sdk.root().join("bin/aarch64-android/qnn-net-run");
    let mut bytes = std::fs::read(&own).unwrap();
    bytes.truncate(4 << 20);
    // The machine of the ELF header: 243 is RISC-V.
    (bytes[18], bytes[19]) = (243, 0);
    bench.sdk.replace("bin/aarch64-android/qnn-net-run", &bytes);
    let run = bench.run(&demo_int8(), "-b cpu -n 3 --warmup 0");
    assert_eq!(run.done.code(), 2, "{}", run.done.stderr);
    let error = run.result()["error"]["message"].as_str().unwrap().to_owned();
    assert!(error.contains("qnn-net-run does not run on") && error.contains("ELF machine 243"), "{error}");
    assert!(run.all("files_sent").is_empty() && !bench.shell("ls /data/local/tmp").contains("qnnscope"));
}

#[test]
fn a_tool_older_than_the_model_is_named_before_and_confirmed_after() {
    let bench = Bench::new(Snapshot::Sm8650User);
    let log = "    20.1ms [ ERROR ] Failed to open Dlc\n    20.2ms [ ERROR ] Failed in composeGraphs()";
    failing_tool(&bench, "# v2.25.0.240728104910_97711", log, "Graph Prepare failure", 14);
    let run = bench.run(&demo_float(), "-b cpu -n 3 --warmup 0");
    let warning = "qnn-net-run is v2.25.0.240728104910, libQnnCpu.so is v2.47.0.260601114230";
    let at = |found: &dyn Fn(&str) -> bool| {
        run.events.iter().position(|event| event["log"]["text"].as_str().is_some_and(found))
    };
    let warned = at(&|text| text.contains(warning));
    let sent = at(&|text| text.starts_with("sent "));
    assert!(warned.unwrap() < sent.unwrap(), "{:#?}", run.log());
    assert!(run.done.stderr.contains(warning), "{}", run.done.stderr);
    confirmed(&run, "dlc-sdk-newer", &["made the DLC, qnn-net-run is v2.25.0"]);
}

#[test]
fn a_library_for_another_processor_is_the_only_cause() {
    let bench = Bench::new(Snapshot::Sm8550Root);
    let mut header = vec![0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (header[16], header[18], header[20], header[52]) = (3, 62, 1, 64);
    bench.shell("mkdir -p /data/local/tmp/app");
    bench.device.write("/data/local/tmp/app/libQnnHtp.so", header);
    let call = bench.on_device();
    let path = call.home().join("pasted.log");
    let log = "[ ERROR ] Unable to load backend. dlerror(): dlopen failed: library \"libc++.so.1\" not found: needed by libQnnHtp.so\n";
    std::fs::write(&path, log).unwrap();
    let call = call.arg("diagnose").arg(&path).args(["--json", "--check", "--files", "/data/local/tmp/app"]);
    let document = call.finish().json();
    let causes = document["causes"].as_array().unwrap();
    let yes: Vec<&Value> = causes.iter().filter(|cause| cause["confirmed"] == true).map(|cause| &cause["id"]).collect();
    assert_eq!(
        (&causes[0]["id"], yes),
        (&"wrong-elf-class".into(), vec![&Value::from("wrong-elf-class")]),
        "{document:#}"
    );
}
