//! Runs on two devices in one session: they run in parallel, each as if it were alone.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::device_runner::{bench, left};
use crate::support::device::{Bench, Recording};
use crate::support::virtual_device::{LinkState, Options, Snapshot, VirtualDevice};
use crate::support::{Qnnscope, demo_float, demo_int8, max_difference, number, read_f32, runtime_247, send};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// More inferences than any test will wait for.
const LONG: &str = "-b cpu --duration 120s --warmup 0 --profiling basic";

struct Two {
    bench: Bench,
    second: VirtualDevice,
}

impl Two {
    fn new(second: Options) -> Self {
        let bench = bench();
        let second = VirtualDevice::start(Snapshot::Sm8650User, second);
        second.set_property("ro.product.cpu.abi", b"x86_64");
        bench.server.connect(&second);
        Self { bench, second }
    }

    fn serials(&self) -> [String; 2] {
        [self.bench.device.serial(), self.second.serial()]
    }

    fn call(&self) -> Qnnscope {
        let program = env!("CARGO_BIN_EXE_qnnscope");
        self.bench.qnnscope().arg("--device").arg(self.serials().join(",")).arg("--runner").arg(program)
    }

    fn start(&self, models: &[&Path], flags: &str) -> Recording {
        Recording::of(self.call(), models, flags)
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        for device in [&self.bench.device, &self.second] {
            while !left(&self.bench, device).is_empty() {
                assert!(Instant::now() < deadline, "{}", left(&self.bench, device));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    fn folders(&self, device: &VirtualDevice) -> String {
        let output = self.bench.server.on(device, ["shell", "ls /data/local/tmp/qnnscope"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// The devices of all runs, by run id.
fn devices(records: &[Value]) -> Vec<(u64, String)> {
    let started = records.iter().filter(|record| record["event"].get("run_started").is_some());
    started
        .map(|record| {
            let device = record["event"]["run_started"]["device"].as_str().unwrap();
            (record["run"].as_u64().unwrap(), device.to_owned())
        })
        .collect()
}

/// Positions of the events of one kind, of all runs on a device.
fn places(records: &[Value], device: &str, kind: &str) -> Vec<usize> {
    let runs: Vec<u64> = devices(records).into_iter().filter(|(_, of)| of == device).map(|(run, _)| run).collect();
    let is_there = |record: &Value| record["run"].as_u64().is_some_and(|run| runs.contains(&run));
    let wanted = |record: &&Value| is_there(record) && record["event"].get(kind).is_some();
    (0..).zip(records).filter(|(_, record)| wanted(record)).map(|(at, _)| at).collect()
}

/// Waits until both devices are measuring, and neither has finished.
#[track_caller]
fn both_measure(two: &Two, recording: &Recording) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let records = recording.records();
        let measuring = |serial: &String| !places(&records, serial, "inferences").is_empty();
        if two.serials().iter().all(measuring) {
            assert!(!records.iter().any(|record| record["event"].get("run_finished").is_some()), "{records:#?}");
            return;
        }
        assert!(Instant::now() < deadline, "{:#?}", records.last());
        std::thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn runs_on_two_devices_overlap_and_runs_on_one_do_not() {
    let two = Two::new(Options::default());
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let flags = |folder: &Path| format!("-b cpu -n 10 --warmup 1 --launches 1 --save-outputs {}", folder.display());
    let (float, int8) = (demo_float(), demo_int8());
    let run = two.start(&[&float, &int8], &flags(there.path())).wait();
    assert_eq!(run.done.code(), 0, "{}\n{:#?}", run.done.stderr, run.log());
    let records = run.records();
    let ids: Vec<u64> = devices(&records).iter().map(|(run, _)| *run).collect();
    assert_eq!(ids, [0, 1, 2, 3], "the session hands out one id after the other");
    let [a, b] = two.serials().map(|serial| {
        let (started, finished) = (places(&records, &serial, "run_started"), places(&records, &serial, "run_finished"));
        assert_eq!((started.len(), finished.len()), (2, 2), "{serial}");
        assert!(started[0] < finished[0] && finished[0] < started[1] && started[1] < finished[1], "one after another");
        (started, finished)
    });
    assert!(a.0[0] < b.1[0] && b.0[0] < a.1[0], "the first runs of both devices overlap: {a:?} {b:?}");
    // Each result is what a run on its own yields.
    Qnnscope::on(&runtime_247()).run_json(&float, &flags(here.path())).expect(0);
    let document = run.done.json();
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for (serial, other) in two.serials().iter().zip(two.serials().iter().rev()) {
        let own: Vec<&Value> = runs.iter().filter(|run| run["device"]["id"] == **serial).collect();
        assert_eq!(own.len(), 2);
        for result in own {
            assert_eq!((&result["status"], &result["latency_us"]["samples"]), (&json!("ok"), &json!(10)), "{serial}");
            assert!(number(&result["stages_us"]["compose"]) > 0.0);
        }
        let folder = format!("{}-cpu", serial.replace(':', "_"));
        let name = format!("{}-{folder}", float.file_stem().unwrap().to_str().unwrap());
        let raw = "Result_0/probabilities.raw";
        let saved = read_f32(&there.path().join(&name).join(raw));
        assert_eq!(max_difference(&saved, &read_f32(&here.path().join(raw))), 0.0, "{name}");
        let lines: Vec<&str> = run.done.stderr.lines().filter(|line| line.contains(serial.as_str())).collect();
        assert!(lines.len() >= 2 && !lines.iter().any(|line| line.contains(other.as_str())), "{lines:?}");
    }
    two.nothing_is_left();
}

#[test]
fn ctrl_c_ends_the_runs_on_both_and_leaves_nothing() {
    let two = Two::new(Options::default());
    let recording = two.start(&[&demo_int8()], LONG);
    both_measure(&two, &recording);
    for device in [&two.bench.device, &two.second] {
        assert!(left(&two.bench, device).contains("__runner"), "the check below sees them");
    }
    send(recording.running.pid(), Signal::INT);
    let run = recording.wait();
    assert_eq!(run.done.code(), 130, "{}", run.done.stderr);
    let document = run.done.json();
    for result in document["runs"].as_array().unwrap() {
        assert_eq!((&result["status"], &result["stopped_early"]), (&json!("ok"), &json!(true)));
        assert!(number(&result["latency_us"]["samples"]) > 0.0);
        assert!(number(&result["stages_us"]["teardown"]) > 0.0, "everything was freed in order");
    }
    two.nothing_is_left();
    for device in [&two.bench.device, &two.second] {
        assert!(!two.folders(device).contains("run-"), "{}", two.folders(device));
    }
}

#[test]
fn a_failure_on_one_device_leaves_the_other_alone() {
    let two = Two::new(Options { disk_bytes: Some(4 << 20), ..Options::default() });
    let run = two.start(&[&demo_int8()], "-b cpu -n 10 --warmup 0").wait();
    assert_eq!(run.done.code(), 1, "{}", run.done.stderr);
    let document = run.done.json();
    let [first, second] = two.serials().map(|serial| {
        let of = document["runs"].as_array().unwrap().iter().find(|run| run["device"]["id"] == serial);
        of.unwrap_or_else(|| panic!("{document:#}")).clone()
    });
    assert_eq!((&first["status"], &first["latency_us"]["samples"]), (&json!("ok"), &json!(10)));
    assert_eq!(second["status"], "failed");
    assert!(second["error"]["message"].as_str().unwrap().contains("too little space"), "{second:#}");
}

#[test]
fn a_lost_link_of_one_device_leaves_the_other_alone() {
    let two = Two::new(Options::default());
    let recording = two.start(&[&demo_int8()], LONG);
    both_measure(&two, &recording);
    two.second.set_state(LinkState::Unauthorized);
    two.second.drop_link();
    recording.until("log", |line| line["text"].as_str().unwrap().contains("waiting up to"));
    let [first, second] = two.serials();
    let seen = places(&recording.records(), &first, "inferences").len();
    let deadline = Instant::now() + Duration::from_secs(60);
    while places(&recording.records(), &first, "inferences").len() < seen + 2 {
        assert!(Instant::now() < deadline, "the first device does not go on");
        std::thread::sleep(Duration::from_millis(30));
    }
    send(recording.running.pid(), Signal::INT);
    let run = recording.wait();
    assert_eq!(run.done.code(), 130, "{}", run.done.stderr);
    let document = run.done.json();
    for result in document["runs"].as_array().unwrap() {
        let expected = if result["device"]["id"] == second { "failed" } else { "ok" };
        assert_eq!(result["status"], expected, "{result:#}");
        assert!(result["device"]["id"] == second || number(&result["latency_us"]["samples"]) > 0.0, "{result:#}");
    }
}

#[test]
fn only_runs_take_several_devices_and_each_of_them_once() {
    let bench = bench();
    let twice = format!("{0},{0}", bench.device.serial());
    let say = |call: Qnnscope| call.finish().expect(2).stderr;
    let said = say(bench.qnnscope().arg("clean").arg("--device").arg("local,adb"));
    assert!(said.contains("only `qnnscope run` takes several devices"), "{said}");
    let run = bench.qnnscope().arg("--device").arg(twice).arg("--runner").arg(env!("CARGO_BIN_EXE_qnnscope"));
    let said = say(run.arg("run").arg(demo_int8()).flags("-b cpu -n 1 --json"));
    assert!(said.contains("twice"), "{said}");
}
