//! The way to the DSP on the vendor's own libraries, with everything that can go wrong on it: each failure is
//! provoked, and its cause has to come first. The expected causes were written down here before any case was
//! run.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::support::dsp_board::{Board, Shown, shown};
use crate::support::dsp_lab::{Case, Lab, V247, V251, Work};
use crate::support::{Qnnscope, model_library, runtime_247};
use qnnscope::diagnosis::{Diagnoser, Diagnosis, DiagnosisDocument, Platform};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const SESSION: &str = "fastrpc-session-open-failed";

fn diagnose(log: &str) -> Diagnosis {
    let mut diagnoser = Diagnoser::new();
    diagnoser.feed(log.as_bytes());
    diagnoser.finish()
}

/// The causes named for a log, in order.
fn causes(diagnosis: &Diagnosis) -> Vec<String> {
    diagnosis.causes.iter().map(|finding| format!("{} {:.2}", finding.id, finding.confidence)).collect()
}

/// Whether the first cause lacks steps for either system.
fn is_without_steps(diagnosis: &mut Diagnosis) -> bool {
    [Platform::Android, Platform::Linux].into_iter().any(|platform| {
        diagnosis.set_platform(platform);
        let document = serde_json::to_value(DiagnosisDocument::new(diagnosis)).unwrap();
        is_without_advice(&document["causes"][0])
    })
}

fn is_without_advice(cause: &Value) -> bool {
    cause["fix"].as_str().is_none_or(str::is_empty) || cause["steps"].as_array().is_none_or(Vec::is_empty)
}

/// Runs each case, and returns those that did not come out as they should: `(name, right first causes,
/// case)`. With a board, the program also checks what can be seen there.
fn wrong(lab: &Lab, board: Option<&Board<'_>>, cases: &[(&str, &[&str], Case<'_>)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, right, case) in cases {
        let log = lab.log(case);
        let mut diagnosis = diagnose(&log);
        let first = diagnosis.causes.first().map(|finding| finding.id);
        let fits = first.map_or(right.is_empty(), |first| right.contains(&first));
        let answered = right.is_empty() || !diagnosis.causes[0].cause().generic;
        if !fits || !answered {
            wrong.push(format!("{name}: {:?}, not {right:?}\n{log}", causes(&diagnosis)));
        }
        if first.is_some() && is_without_steps(&mut diagnosis) {
            wrong.push(format!("{name}: {first:?} does not say what to do"));
        }
        let Some((board, (cause, shown))) = board.and_then(|board| Some((board, shown(name)?))) else { continue };
        let model = match case.work {
            Work::Binary(file, _) => Some(file),
            _ => None,
        };
        wrong.extend(unconfirmed(board, &log, cause, shown, model).map(|why| format!("{name}: {why}\n{log}")));
    }
    wrong
}

/// What is wrong with the program's answer on a board that shows the cause, and on one with nothing wrong.
fn unconfirmed(board: &Board<'_>, log: &str, cause: &str, shown: Shown, model: Option<&Path>) -> Option<String> {
    let confirmed = |document: &Value| {
        let causes = document["causes"].as_array().unwrap();
        causes.iter().filter(|cause| cause["confirmed"] == true).cloned().collect::<Vec<_>>()
    };
    let document = board.diagnose(log, shown, model);
    let first = &document["causes"][0];
    if cause.is_empty() {
        return (!document["causes"].as_array().unwrap().is_empty()).then(|| format!("{document:#}"));
    }
    if first["id"] != cause || first["confirmed"] != true || is_without_advice(first) {
        return Some(format!("{}: not {cause}, confirmed, with advice: {document:#}", board.soc_id()));
    }
    // Where the part does not matter, once is enough for all three.
    if board.soc_id() != "557" {
        return None;
    }
    let sound = board.diagnose(log, Shown::Nothing, None);
    (!confirmed(&sound).is_empty()).then(|| format!("{}: nothing is wrong there: {sound:#}", board.soc_id()))
}

#[track_caller]
fn all_right(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn fails(fails: &str) -> Case<'_> {
    Case { fails, ..Case::default() }
}

/// Failures before anything is requested from the DSP, on three parts.
#[track_caller]
fn no_way_on_three_parts(wheel: &str) {
    let lab = Lab::new(wheel);
    let other_build = qnnscope::facts::build_id_of(&lab.other().join("libQnnHtp.so")).unwrap().unwrap().to_string();
    let mut wrongs = Vec::new();
    for (soc_id, arch) in [("498", 68), ("557", 75), ("618", 79)] {
        let board = Board::new(&lab, soc_id);
        let (stub, skel) = (format!("libQnnHtpV{arch}Stub.so"), format!("libQnnHtpV{arch}Skel.so"));
        let (own_skel, other_stub) = (lab.libraries().join(skel), lab.other().join(&stub));
        let (skel_as_stub, newer_stub) = ([(&*stub, &*own_skel)], [(&*stub, &*other_stub)]);
        let without_stub = [&*stub];
        let on = |case| Case { soc_id: Some(soc_id), ..case };
        let rows: [(&str, &[&str], Case<'_>); 5] = [
            ("no FastRPC client", &["libcdsprpc-missing"], on(Case { without: &["libcdsprpc.so"], ..fails("") })),
            ("no stub of the part", &["stub-not-found"], on(Case { without: &without_stub, ..fails("") })),
            (
                "the DSP's file in the stub's place",
                &["wrong-elf-class"],
                on(Case { replaced: &skel_as_stub, ..fails("") }),
            ),
            (
                "a stub of another release",
                &["stub-skel-build-id-mismatch"],
                on(Case { replaced: &newer_stub, ..fails("") }),
            ),
            (
                "a skel of another release",
                &["stub-skel-build-id-mismatch"],
                on(Case { skel_build: Some(&other_build), ..fails("") }),
            ),
        ];
        wrongs.extend(wrong(&lab, Some(&board), &rows));
        let other_part = |soc_id| Case { soc_id: Some(soc_id), ..fails("") };
        let parts: [(&str, &[&str], Case<'_>); 3] = [
            ("an unknown part", &["soc-unknown-to-sdk"], other_part("9999")),
            ("no word on the part", &["soc-unknown-to-sdk"], other_part("")),
            ("a part without HTP", &["dsp-arch-not-htp", "soc-unknown-to-sdk"], other_part("356")),
        ];
        // The result is the same whatever the other part is: once on a board, once on a phone.
        if soc_id != "557" {
            wrongs.extend(wrong(&lab, Some(&board), &parts));
        }
    }
    all_right(&wrongs);
}

#[test]
fn no_way_to_the_dsp() {
    no_way_on_three_parts(V247);
}

#[test]
fn no_way_to_the_dsp_on_the_newer_release() {
    no_way_on_three_parts(V251);
}

/// Failures on the way to a session, with the number of the release's command that asks the skel for its
/// build id.
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

/// The rows that fail during device creation, on three parts.
#[track_caller]
fn sessions_fail_on_three_parts(wheel: &str, build_id_call: &'static str) {
    let lab = Lab::new(wheel);
    let mut wrongs = Vec::new();
    for soc_id in ["498", "557", "618"] {
        let rows = rows_of_the_session(build_id_call).into_iter();
        let rows: Vec<_> =
            rows.map(|(name, right, case)| (name, right, Case { soc_id: Some(soc_id), ..case })).collect();
        wrongs.extend(wrong(&lab, Some(&Board::new(&lab, soc_id)), &rows));
    }
    all_right(&wrongs);
}

#[test]
fn no_session_with_the_dsp() {
    sessions_fail_on_three_parts(V247, "command38=0x4");
}

#[test]
fn no_session_with_the_dsp_of_the_newer_release() {
    sessions_fail_on_three_parts(V251, "command40=0x4");
}

#[test]
fn a_path_with_colons_is_found_in_the_environment_of_the_shell() {
    for wheel in [V247, V251] {
        let log = Lab::new(wheel).log(&fails("open=0x80000406"));
        let first = |path: &str| {
            let call = Qnnscope::without_runtime().env("ADSP_LIBRARY_PATH", path);
            let path = call.home().join("board.log");
            std::fs::write(&path, &log).unwrap();
            let call = call.arg("diagnose").arg(&path).args(["--json", "--check", "--platform", "linux"]);
            call.finish().expect(0).json()["causes"][0].clone()
        };
        let colons = first("/opt/qnn/dsp:/usr/lib/rfsa/adsp");
        assert_eq!((&colons["id"], &colons["confirmed"]), (&"adsp-path-colon".into(), &true.into()), "{colons:#}");
        assert!(!is_without_advice(&colons), "{colons:#}");
        assert_ne!(first("/opt/qnn/dsp;/usr/lib/rfsa/adsp")["confirmed"], true);
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
    let on = |work, what| Case { work, ..fails(what) };
    let board = |soc_id, rows: &[(&str, &[&str], Case<'_>)]| {
        all_right(&wrong(&lab, Some(&Board::new(&lab, soc_id)), rows));
    };
    board("618", &[("a healthy board runs the binary", &[], on(binary(2), ""))]);
    let newer = Case { soc_id: Some("557"), ..on(binary(1), "") };
    board("557", &[("a binary for a newer part", &["context-binary-arch-newer"], newer)]);
    all_right(&wrong(
        &lab,
        None,
        &[
            ("an old client that does not know the effective domain", &[], fails("session14=0x14")),
            ("a signed process in place of an unsigned one", &[], fails("unsigned=0")),
            ("a healthy v68 board", &[], Case { soc_id: Some("498"), ..fails("") }),
            ("a board whose power can be asked for", &[], Case { votes: true, ..fails("") }),
            ("power votes are refused", &["perf-mode-not-applied"], Case { votes: true, ..fails("command23=0x4") }),
        ],
    ));

    // What no line reports shows in the exit status: a call that never returns, until somebody kills the
    // program, and a crash.
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

/// What the board's accelerator waits for, and that it gets slower. The rules read its own events and times,
/// put into a session of the same binary.
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

/// The output of `show` for a session of a saved context with the board's times and events, and these events
/// by name.
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
    // The simulator's figures are replaced with those of the board.
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
                // One after the other, as the board ran them.
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

/// A context binary for x86 on the board and the other way round, and one for a part with more VTCM.
fn binaries_are_exchanged(lab: &Lab, dir: &Path, saved: &Path) {
    let model = model_library(dir, "odd_graph.c", &[]);
    let compiled = |flags: &str, name: &str| {
        let file = dir.join(name);
        let flags = format!("-b htp {flags} -n 1 --warmup 0 --headless --save-context {}", file.display());
        Qnnscope::on(&runtime_247()).arg("run").arg(&model).flags(&flags).finish().expect(0);
        file
    };
    let (of_x86, of_more) = (compiled("--soc-model 69", "x86.bin"), compiled("--soc-model 35 --vtcm-mb 8", "more.bin"));
    let of_x86 = Case { work: Work::Binary(&of_x86, 1), ..fails("") };
    let too_large = Case { soc_id: Some("498"), work: Work::Binary(&of_more, 1), ..fails("") };
    let mut wrongs = wrong(lab, Some(&Board::new(lab, "618")), &[("a binary that x86 compiled", &[], of_x86)]);
    wrongs.extend(wrong(
        lab,
        Some(&Board::new(lab, "498")),
        &[("a binary that asks for more VTCM than there is", &["context-binary-vtcm-too-large"], too_large)],
    ));
    all_right(&wrongs);
    let flags = "-b htp --soc-model 69 -n 1 --warmup 0 --headless";
    Qnnscope::on(&runtime_247()).arg("run").arg(saved).flags(flags).finish().expect(0);
}

/// A binary of the newer release on the older one, which cannot read it, and the other way round.
fn releases_exchange_binaries(older: &Lab, dir: &Path, of_older: &Path) {
    let newer = Lab::new(V251);
    let of_newer = dir.join("newer.bin");
    newer.log(&Case { work: Work::Model(1, Some(&of_newer)), ..Case::default() });
    let runs = |file| Case { work: Work::Binary(file, 1), ..fails("") };
    let newer_binary = [("a binary of the newer release", &["context-binary-sdk-newer"][..], runs(&of_newer))];
    all_right(&wrong(older, Some(&Board::new(older, "618")), &newer_binary));
    let log = newer.log(&runs(of_older));
    let diagnosis = diagnose(&log);
    assert!(log.contains("graphExecute: ok 0"), "{log}");
    assert!(diagnosis.causes.is_empty() && diagnosis.unexplained.is_none(), "{:?}\n{log}", causes(&diagnosis));
}

#[test]
fn the_newer_release_speaks_of_the_same_failures() {
    let lab = Lab::new(V251);
    let part = |soc_id, what| Case { soc_id: Some(soc_id), ..fails(what) };
    all_right(&wrong(
        &lab,
        None,
        &[
            ("a healthy v75 board", &[], part("557", "")),
            ("a healthy v79 board", &[], part("618", "")),
            ("the skel is not found", &["skel-not-found"], part("603", "open=0x80000406")),
            (
                "an older skel lacks the entry",
                &["stub-skel-build-id-mismatch", "skel-not-found"],
                part("557", "open=0x80000442"),
            ),
            ("FastRPC has no queues", &["fastrpc-api-unsupported"], fails("queue=0x14")),
        ],
    ));
}

/// Failures between the session and the last inference, on three parts: each compiles the model for itself.
#[track_caller]
fn graphs_fail_on_three_parts(wheel: &str) {
    let lab = Lab::new(wheel);
    let other_prepare = lab.other().join("libQnnHtpPrepare.so");
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
        let board = Board::new(&lab, soc_id);
        wrongs.extend(wrong(&lab, Some(&board), &compiled));
        let bytes = std::fs::read(&saved).unwrap();
        std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
        let model = |what| on(Work::Model(1, None), what);
        let binary = |what| on(Work::Binary(&saved, 3), what);
        // The newer release maps a buffer during device creation on parts from v75 on.
        let unmapped = ["cdsp-address-space-exhausted", "mem-register-failed", "session-leak-reinit"];
        let unmapped = if wheel == V251 && soc_id != "498" { &unmapped[..] } else { &unmapped[..2] };
        let of_float: &[&str] = if soc_id == "498" { &["float-unsupported-on-arch"] } else { &["input-count"] };
        let container = ["context-binary-wrong-container", "context-binary-incompatible"];
        let rows: [(&str, &[&str], Case<'_>); 15] = [
            ("a healthy board runs the binary", &[], binary("")),
            ("the DSP does not take the graph", &["finalize-op-prepare-failed"], model("command14=0x4")),
            ("the DSP does not take the binary", &["context-binary-incompatible"], binary("command15=0x4")),
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
        for name in wrong(&lab, Some(&board), &rows) {
            wrongs.push(format!("{soc_id}: {name}"));
        }
    }
    all_right(&wrongs);
}

#[test]
fn graphs_fail() {
    graphs_fail_on_three_parts(V247);
}

#[test]
fn graphs_fail_on_the_newer_release() {
    graphs_fail_on_three_parts(V251);
}
