//! The way to the DSP on the vendor's own libraries, with everything that can go wrong on it: each failure is made, and the
//! cause that was behind it has to come first. What was made is written down here before any of it is run.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::device::Bench;
use crate::support::dsp_lab::{Case, Lab, Work};
use crate::support::virtual_device::Snapshot;
use crate::support::{Qnnscope, model_library, python_packages, runtime_247};
use qnnscope::diagnosis::{Diagnoser, Diagnosis};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const V247: &str = "2.3.0";
const V251: &str = "2.7.0";
const SESSION: &str = "fastrpc-session-open-failed";

fn diagnose(log: &str) -> Diagnosis {
    let mut diagnoser = Diagnoser::new();
    diagnoser.feed(log.as_bytes());
    diagnoser.finish()
}

/// What is said of a log: its causes in order.
fn causes(diagnosis: &Diagnosis) -> Vec<String> {
    diagnosis.causes.iter().map(|finding| format!("{} {:.2}", finding.id, finding.confidence)).collect()
}

/// Makes each case, and says which did not come out as they should: `(name, right first causes, case)`.
fn wrong(lab: &Lab, cases: &[(&str, &[&str], Case<'_>)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, right, case) in cases {
        let log = lab.log(case);
        let diagnosis = diagnose(&log);
        let first = diagnosis.causes.first().map(|finding| finding.id);
        let fits = first.map_or(right.is_empty(), |first| right.contains(&first));
        let answered = right.is_empty() || !diagnosis.causes[0].cause().generic;
        if !fits || !answered {
            wrong.push(format!("{name}: {:?}, not {right:?}\n{log}", causes(&diagnosis)));
        }
    }
    wrong
}

#[track_caller]
fn all_right(lab: &Lab, cases: &[(&str, &[&str], Case<'_>)]) {
    let wrong = wrong(lab, cases);
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn fails(fails: &str) -> Case<'_> {
    Case { fails, ..Case::default() }
}

#[test]
fn no_way_to_the_dsp() {
    let lab = Lab::new(V247);
    let skel = lab.libraries().join("libQnnHtpV79Skel.so");
    let newer = python_packages(&format!("aarch64-{V251}"), "onnxruntime_qnn").join("onnxruntime_qnn");
    let newer_stub = newer.join("libQnnHtpV79Stub.so");
    all_right(
        &lab,
        &[
            ("no FastRPC client", &["libcdsprpc-missing"], Case { without: &["libcdsprpc.so"], ..fails("") }),
            (
                "no stub of the part",
                &["stub-not-found"],
                Case { soc_id: Some("557"), without: &["libQnnHtpV75Stub.so"], ..fails("") },
            ),
            (
                "the DSP's file in the stub's place",
                &["wrong-elf-class"],
                Case { replaced: &[("libQnnHtpV79Stub.so", &skel)], ..fails("") },
            ),
            (
                "a stub of another release",
                &["stub-skel-build-id-mismatch"],
                Case { replaced: &[("libQnnHtpV79Stub.so", &newer_stub)], ..fails("") },
            ),
            (
                "a skel of another release",
                &["stub-skel-build-id-mismatch"],
                Case { skel_build: Some("v2.40.0.251030114326"), ..fails("") },
            ),
            ("an unknown part", &["soc-unknown-to-sdk"], Case { soc_id: Some("9999"), ..fails("") }),
            ("no word on the part", &["soc-unknown-to-sdk"], Case { soc_id: Some(""), ..fails("") }),
            (
                "a part without HTP",
                &["dsp-arch-not-htp", "soc-unknown-to-sdk"],
                Case { soc_id: Some("356"), ..fails("") },
            ),
        ],
    );
}

/// What goes wrong on the way to a session, with the number of the release's command that asks the skel for its build id.
fn rows_of_the_session(build_id_call: &'static str) -> Vec<(&'static str, &'static [&'static str], Case<'static>)> {
    vec![
        ("a healthy board", &[], fails("")),
        ("the skel is not found", &["skel-not-found"], fails("open=0x80000406")),
        ("the DSP's heap does not grow", &["dsp-heap-growth-failed"], fails("open=0x80000402")),
        ("no memory for the DSP's process", &[SESSION, "dsp-memory-not-reserved"], fails("open=0x80000600")),
        ("the DSP's process is gone", &[SESSION, "cdsp-ssr"], fails("open=0x8000040d")),
        ("the node may not be opened", &["fastrpc-permission-denied"], fails("open=0xd")),
        ("the connection is refused", &[SESSION, "cdsp-ssr"], fails("open=0x27")),
        ("the connection is reset", &[SESSION, "cdsp-ssr"], fails("open=0x68")),
        ("no session is free", &[SESSION], fails("open=0x72")),
        ("the driver does not answer", &[SESSION], fails("open=0x2c")),
        ("opening is refused without a reason", &["fastrpc-permission-denied", SESSION], fails("open=0xffffffff")),
        ("a skel of an older release", &["stub-skel-build-id-mismatch", "skel-not-found"], fails("open=0x80000442")),
        ("the session's name is not taken", &[SESSION], fails("open=0x80000416")),
        ("an attribute is not known", &["fastrpc-api-unsupported"], fails("open=0x80000414")),
        ("unsigned processes are refused", &["unsigned-pd-unavailable"], fails("session2=0x6")),
        (
            "unsigned processes are not offered, and a signed one finds no skel",
            &["unsigned-pd-unavailable", "skel-signature-rejected"],
            fails("unsigned=0,open=0x80000406"),
        ),
        ("no effective domain", &[SESSION], fails("session14=0x2c")),
        ("the first call fails", &[SESSION], fails("method2=0x2c")),
        ("the DSP restarts at the first call", &[SESSION, "cdsp-ssr"], fails("method2=0x68")),
        ("the DSP crashes at the first call", &[SESSION, "cdsp-ssr"], fails("method2=0x27")),
        ("the first call is not known", &["fastrpc-api-unsupported"], fails("method2=0x80000414")),
        ("the skel does not tell its build", &[SESSION], fails(build_id_call)),
        ("no shared memory", &["rpcmem-alloc-failed"], fails("rpcmem=1")),
    ]
}

/// The rows that end while the device is made, on three parts.
#[track_caller]
fn sessions_fail_on_three_parts(wheel: &str, build_id_call: &'static str) {
    let lab = Lab::new(wheel);
    let mut cases = Vec::new();
    for soc_id in ["498", "557", "618"] {
        cases.extend(
            rows_of_the_session(build_id_call)
                .into_iter()
                .map(|(name, right, case)| (name, right, Case { soc_id: Some(soc_id), ..case })),
        );
    }
    all_right(&lab, &cases);
}

#[test]
fn no_session_with_the_dsp() {
    sessions_fail_on_three_parts(V247, "command38=0x4");
}

#[test]
fn no_session_with_the_dsp_of_the_newer_release() {
    sessions_fail_on_three_parts(V251, "command40=0x4");
}

/// A cause, its case, the libraries that the device lacks, and those that it has from elsewhere.
type Broken<'a> = (&'a str, Case<'a>, &'a [&'a str], &'a [(&'a str, &'a Path)]);

/// What was broken in the lab, put on a device of the same architecture: the check finds it there, it stays first, and what is to
/// be done about it is named.
#[test]
fn checks_confirm_what_was_made_and_name_what_to_do() {
    for wheel in [V247, V251] {
        let lab = Lab::new(wheel);
        let other = if wheel == V247 { V251 } else { V247 };
        let other = python_packages(&format!("aarch64-{other}"), "onnxruntime_qnn").join("onnxruntime_qnn");
        let (stub, skel) = ("libQnnHtpV73Stub.so", "libQnnHtpV73Skel.so");
        let (own_skel, other_stub, other_skel) = (lab.libraries().join(skel), other.join(stub), other.join(skel));
        let other_build = qnnscope::facts::build_id_of(&other.join("libQnnHtp.so")).unwrap().unwrap().to_string();
        let (newer_stub, skel_as_stub) = ([(stub, other_stub.as_path())], [(stub, own_skel.as_path())]);
        let part = |case| Case { soc_id: Some("603"), ..case };
        let newer_skel = [(skel, other_skel.as_path())];
        let rows: [Broken<'_>; 6] = [
            ("stub-not-found", part(Case { without: &["libQnnHtpV73Stub.so"], ..fails("") }), &[stub], &[]),
            ("skel-not-found", part(fails("open=0x80000406")), &[skel], &[]),
            ("libcdsprpc-missing", part(Case { without: &["libcdsprpc.so"], ..fails("") }), &["libcdsprpc.so"], &[]),
            ("stub-skel-build-id-mismatch", part(Case { replaced: &newer_stub, ..fails("") }), &[], &newer_stub),
            (
                "stub-skel-build-id-mismatch",
                part(Case { skel_build: Some(&other_build), ..fails("") }),
                &[],
                &newer_skel,
            ),
            ("wrong-elf-class", part(Case { replaced: &skel_as_stub, ..fails("") }), &[], &skel_as_stub),
        ];
        for (cause, case, without, replaced) in rows {
            let log = lab.log(&case);
            let bench = Bench::new(Snapshot::Sm8550Root);
            bench.shell("mkdir -p /data/local/tmp/lab");
            if !without.contains(&"libcdsprpc.so") {
                bench.device.write("/vendor/lib64/libcdsprpc.so", std::fs::read(lab.client()).unwrap());
            }
            for name in ["libQnnHtp.so", "libQnnSystem.so", stub, skel] {
                let from = replaced.iter().find(|(replaced, _)| *replaced == name).map(|(_, from)| from.to_path_buf());
                if !without.contains(&name) {
                    let bytes = std::fs::read(from.unwrap_or_else(|| lab.libraries().join(name))).unwrap();
                    bench.device.write(&format!("/data/local/tmp/lab/{name}"), bytes);
                }
            }
            let call = bench.on_device();
            let path = call.home().join("board.log");
            std::fs::write(&path, &log).unwrap();
            let call = call.arg("diagnose").arg(&path).args(["--json", "--check", "--files", "/data/local/tmp/lab"]);
            let document = call.args(["--platform", "android"]).finish().expect(0).json();
            let first = &document["causes"][0];
            assert_eq!((&first["id"], &first["confirmed"]), (&cause.into(), &true.into()), "{document:#}\n{log}");
            assert!(
                !first["fix"].as_str().unwrap().is_empty() && !first["steps"].as_array().unwrap().is_empty(),
                "{first:#}"
            );
        }
    }
}

#[test]
fn healthy_boards_have_nothing_that_is_wrong_and_graphs_fail_as_they_were_made_to() {
    let lab = Lab::new(V247);
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("saved.bin");
    let healthy = lab.log(&Case { work: Work::Model(2, Some(&saved)), ..Case::default() });
    for call in ["composeGraphs", "graphFinalize", "graphExecute", "contextGetBinary", "deviceFree"] {
        assert!(healthy.contains(&format!("{call}: ok 0")), "{call}: {healthy}");
    }
    let diagnosis = diagnose(&healthy);
    assert!(diagnosis.causes.is_empty() && diagnosis.unexplained.is_none(), "{:?}", causes(&diagnosis));
    let binary = |count| Work::Binary(&saved, count);
    let cut = dir.path().join("cut.bin");
    let bytes = std::fs::read(&saved).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let on = |work, what| Case { work, ..fails(what) };
    all_right(
        &lab,
        &[
            ("a healthy board runs the binary", &[], on(binary(2), "")),
            ("an old client that does not know the effective domain", &[], fails("session14=0x14")),
            ("a signed process in place of an unsigned one", &[], fails("unsigned=0")),
            ("a healthy v68 board", &[], Case { soc_id: Some("498"), ..fails("") }),
            ("a board whose power can be asked for", &[], Case { votes: true, ..fails("") }),
            ("power votes are refused", &["perf-mode-not-applied"], Case { votes: true, ..fails("command23=0x4") }),
            (
                "a binary for a newer part",
                &["context-binary-arch-newer"],
                Case { soc_id: Some("557"), ..on(binary(1), "") },
            ),
            (
                "a binary that was cut",
                &["context-binary-wrong-container", "context-binary-incompatible"],
                on(Work::Binary(&cut, 1), ""),
            ),
        ],
    );

    // What no line tells shows in the exit status: a call that never answers, until somebody ends the program, and a crash.
    let ended = |what| {
        let (log, status) = lab.ended(&on(binary(3), what));
        let ran = log.matches("graphExecute: ok 0").count();
        let mut diagnoser = Diagnoser::new();
        diagnoser.exit_status(status);
        diagnoser.feed(log.as_bytes());
        (diagnoser.finish(), status, ran)
    };
    let (hangs, status, ran) = ended("method7@3=killed");
    assert_eq!((status, ran, hangs.causes.first().map(|cause| cause.id)), (137, 2, Some("timed-out")), "{hangs:?}");
    let (crashes, status, ran) = ended("method7@2=crash");
    assert_eq!((status, ran), (134, 1));
    let unexplained = crashes.unexplained.expect("a crash is never left without an answer");
    let went_well: Vec<&str> = unexplained.went_well.iter().map(|(what, _)| *what).collect();
    assert!(went_well.contains(&"an inference ran") && !unexplained.collect.is_empty(), "{unexplained:?}");

    waits_and_slowness_become_findings(&lab, &saved);
    binaries_are_exchanged(&lab, dir.path(), &saved);
    releases_exchange_binaries(&lab, dir.path(), &saved);
}

/// What the board's accelerator waits for, and that it becomes slower: its own events and times, in a session of the same
/// binary, are what the rules read.
fn waits_and_slowness_become_findings(lab: &Lab, saved: &Path) {
    let (shown, told) = on_board(lab, saved, 2, [20_000, 7_000, 3_000], None);
    for (name, us) in [
        ("Time for initial VTCM acquire", 7_000.0),
        ("Time for HVX + HMX power on and acquire", 3_000.0),
        ("Accelerator (execute) time", 30_000.0),
    ] {
        assert!(told[name].iter().all(|value| *value == us), "{told:?}");
    }
    for finding in [
        "an inference waits for the VTCM for 23 % of the accelerator's time",
        "an inference waits 10 % of the accelerator's time for power-up",
    ] {
        assert!(shown.contains(finding), "{shown}");
    }
    let (steady, _) = on_board(lab, saved, 100, [8_000, 0, 0], None);
    let (slower, _) = on_board(lab, saved, 100, [8_000, 0, 0], Some(60));
    let tells = |shown: &str| shown.contains("% slower") || shown.contains("inferences get slower");
    assert!(tells(&slower), "{slower}");
    for (shown, word) in [(&steady, "waits for the VTCM"), (&steady, "power-up"), (&slower, "waits for the VTCM")] {
        assert!(!shown.contains(word), "{shown}");
    }
}

/// What `show` says of a session of a saved context whose times and events are the board's, and these by name.
fn on_board(
    lab: &Lab,
    saved: &Path,
    count: u32,
    times_us: [u32; 3],
    slow_from: Option<u32>,
) -> (String, BTreeMap<String, Vec<f64>>) {
    let work = Work::Binary(saved, count + 1);
    let log = lab.log(&Case { work, times_us: Some(times_us), slow_from, ..Case::default() });
    let event = |line: &str| {
        let (name, value) = line.strip_prefix("event ")?.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse::<f64>().ok()?))
    };
    let mut told: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (name, value) in log.lines().filter_map(event) {
        told.entry(name).or_default().push(value);
    }
    let of = |name: &str, index: usize| told.get(name).and_then(|values| values.get(index).or(values.last()));
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("s.jsonl");
    let flags = format!("-b htp --soc-model 69 -n {count} --warmup 0 --headless --record {}", session.display());
    Qnnscope::on(&runtime_247()).arg("run").arg(saved).flags(&flags).finish().expect(0);
    // The figures of the simulator give way to those of the board.
    let text = std::fs::read_to_string(&session).unwrap().replace("\"simulated\":true", "\"simulated\":false");
    let (mut made, mut first_us) = (0, None);
    let board = text.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        for metric in record.pointer_mut("/event/metrics/metrics").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(us) = of(metric["name"].as_str().unwrap(), 0) {
                metric["value"] = (*us).into();
            }
        }
        if let Some(inferences) = record.pointer_mut("/event/inferences") {
            for index in 0..inferences["latency_ns"].as_array().unwrap().len() {
                let us = of("QNN (execute) time", made).expect("the board tells it");
                inferences["latency_ns"][index] = ((us * 1000.0) as u64).into();
                // One after the other, as the board made them.
                let start = *first_us.get_or_insert(inferences["start_us"][index].as_u64().unwrap());
                inferences["start_us"][index] = start.into();
                first_us = Some(start + *us as u64 + 1);
                made += 1;
            }
        }
        record.to_string()
    });
    let board: Vec<String> = board.collect();
    std::fs::write(&session, board.join("\n") + "\n").unwrap();
    (Qnnscope::without_runtime().arg("show").arg(&session).finish().expect(0).text(), told)
}

/// A context binary of x86 on the board and the other way round, and of a part with more VTCM.
fn binaries_are_exchanged(lab: &Lab, dir: &Path, saved: &Path) {
    let model = model_library(dir, "odd_graph.c", &[]);
    let compiled = |flags: &str, name: &str| {
        let file = dir.join(name);
        let flags = format!("-b htp {flags} -n 1 --warmup 0 --headless --save-context {}", file.display());
        Qnnscope::on(&runtime_247()).arg("run").arg(&model).flags(&flags).finish().expect(0);
        file
    };
    let (of_x86, of_more) = (compiled("--soc-model 69", "x86.bin"), compiled("--soc-model 35 --vtcm-mb 8", "more.bin"));
    all_right(
        lab,
        &[
            ("a binary that x86 compiled", &[], Case { work: Work::Binary(&of_x86, 1), ..fails("") }),
            (
                "a binary that asks for more VTCM than there is",
                &["context-binary-vtcm-too-large"],
                Case { soc_id: Some("498"), work: Work::Binary(&of_more, 1), ..fails("") },
            ),
        ],
    );
    let flags = "-b htp --soc-model 69 -n 1 --warmup 0 --headless";
    Qnnscope::on(&runtime_247()).arg("run").arg(saved).flags(flags).finish().expect(0);
}

/// A binary of the newer release on the older one, which cannot read it, and the other way round.
fn releases_exchange_binaries(older: &Lab, dir: &Path, of_older: &Path) {
    let newer = Lab::new(V251);
    let of_newer = dir.join("newer.bin");
    newer.log(&Case { work: Work::Model(1, Some(&of_newer)), ..Case::default() });
    let runs = |file| Case { work: Work::Binary(file, 1), ..fails("") };
    all_right(older, &[("a binary of the newer release", &["context-binary-sdk-newer"], runs(&of_newer))]);
    let log = newer.log(&runs(of_older));
    let diagnosis = diagnose(&log);
    assert!(log.contains("graphExecute: ok 0"), "{log}");
    assert!(diagnosis.causes.is_empty() && diagnosis.unexplained.is_none(), "{:?}\n{log}", causes(&diagnosis));
}

#[test]
fn the_newer_release_speaks_of_the_same_failures() {
    let lab = Lab::new(V251);
    let part = |soc_id, what| Case { soc_id: Some(soc_id), ..fails(what) };
    all_right(
        &lab,
        &[
            ("a healthy v75 board", &[], part("557", "")),
            ("a healthy v79 board", &[], part("618", "")),
            ("the skel is not found", &["skel-not-found"], part("603", "open=0x80000406")),
            (
                "an older skel lacks the entry",
                &["stub-skel-build-id-mismatch", "skel-not-found"],
                part("557", "open=0x80000442"),
            ),
            (
                "a skel of the release before",
                &["stub-skel-build-id-mismatch"],
                Case { skel_build: Some("v2.47.0.260601114230"), ..fails("") },
            ),
            ("FastRPC has no queues", &["fastrpc-api-unsupported"], fails("queue=0x14")),
            ("the skel does not tell its build", &[SESSION], fails("command40=0x4")),
            ("no FastRPC client", &["libcdsprpc-missing"], Case { without: &["libcdsprpc.so"], ..fails("") }),
        ],
    );
}

/// What goes wrong between the session and the last inference, on three parts: each compiles the model for itself.
#[track_caller]
fn graphs_fail_on_three_parts(wheel: &str) {
    let lab = Lab::new(wheel);
    let other = if wheel == V247 { V251 } else { V247 };
    let other = python_packages(&format!("aarch64-{other}"), "onnxruntime_qnn").join("onnxruntime_qnn");
    let other_prepare = other.join("libQnnHtpPrepare.so");
    let (without, replaced) = (["libQnnHtpPrepare.so"], [("libQnnHtpPrepare.so", other_prepare.as_path())]);
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty.bin");
    std::fs::write(&empty, "").unwrap();
    let mut wrongs = Vec::new();
    for soc_id in ["498", "557", "618"] {
        let (saved, cut) = (dir.path().join(format!("{soc_id}.bin")), dir.path().join(format!("{soc_id}-cut.bin")));
        let on = |work, what| Case { soc_id: Some(soc_id), work, ..fails(what) };
        let compiled: [(&str, &[&str], Case<'_>); 1] =
            [("a healthy board compiles and runs", &[], on(Work::Model(2, Some(&saved)), ""))];
        wrongs.extend(wrong(&lab, &compiled));
        let bytes = std::fs::read(&saved).unwrap();
        std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
        let model = |what| on(Work::Model(1, None), what);
        let binary = |what| on(Work::Binary(&saved, 3), what);
        // The newer release maps a buffer on parts of v75 and newer while it makes the device.
        let unmapped = ["cdsp-address-space-exhausted", "mem-register-failed", "session-leak-reinit"];
        let unmapped = if wheel == V251 && soc_id != "498" { &unmapped[..] } else { &unmapped[..2] };
        let of_float: &[&str] = if soc_id == "498" { &["float-unsupported-on-arch"] } else { &["input-count"] };
        let container = ["context-binary-wrong-container", "context-binary-incompatible"];
        let rows: [(&str, &[&str], Case<'_>); 14] = [
            ("a healthy board runs the binary", &[], binary("")),
            ("the DSP does not take the graph", &["finalize-op-prepare-failed"], model("command14=0x4")),
            ("a model's buffers are not mapped", unmapped, model("map=0x1")),
            ("no large buffer for a model", &["rpcmem-alloc-failed"], model("rpcmem=65536")),
            ("what compiles is missing", &["prepare-lib-missing"], Case { without: &without, ..model("") }),
            (
                "what compiles is of another release",
                &["stub-skel-build-id-mismatch"],
                Case { replaced: &replaced, ..model("") },
            ),
            ("a binary's buffers are not mapped", unmapped, binary("map=0x1")),
            ("no large buffer for a binary", &["rpcmem-alloc-failed"], binary("rpcmem=65536")),
            ("the DSP restarts at the second inference", &["cdsp-ssr"], binary("method7@2=0x68")),
            ("the DSP crashes at the third inference", &["cdsp-ssr"], binary("method7@3=0x27")),
            (
                "the first inference fails without a reason",
                &["graph-execute-general-error"],
                binary("method7=0xffffffff"),
            ),
            ("a binary that was cut", &container, on(Work::Binary(&cut, 1), "")),
            ("an empty binary", &container, on(Work::Binary(&empty, 1), "")),
            ("a float op, and fewer inputs than the graph has", of_float, Case { model: &["-DHARD"], ..model("") }),
        ];
        for name in wrong(&lab, &rows) {
            wrongs.push(format!("{soc_id}: {name}"));
        }
    }
    assert!(wrongs.is_empty(), "{} are wrong:\n{}", wrongs.len(), wrongs.join("\n"));
}

#[test]
fn graphs_fail() {
    graphs_fail_on_three_parts(V247);
}

#[test]
fn graphs_fail_on_the_newer_release() {
    graphs_fail_on_three_parts(V251);
}
