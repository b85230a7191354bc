//! Reports through the program: of recorded sessions, of other tools' files, and of sessions with hostile names.

#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::unnecessary_literal_unwrap,
    reason = "a test fails by panicking"
)]
#![cfg(target_os = "linux")]

use crate::support::{Done, Qnnscope, repo};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use qnnscope::backends::{Backend, ProfilingLevel};
use qnnscope::event::{
    Budget, Constraints, CounterInfo, CounterSample, DeviceInfo, DeviceKind, Driver, Event, Failure, InferenceBatch,
    Mode, OpRow, OpSample, OpUnit, Phase, Record, RunId, RunPlan, RunStatus, SESSION_SCHEMA, SessionStarted, Stage,
};
use qnnscope::models::{Graph, Op};
use qnnscope::session::Recorder;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const SERIAL: &str = "R5CT10ABCDE";
const HOSTILE: [&str; 6] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "=HYPERLINK(\"http://evil.example\")",
    "a|b`c @octocat ![x](http://evil.example/p.png)",
    "</text></svg><script>x</script>",
    "-->--!><style>*{display:none}</style>",
];

fn plan(backend: Backend, model: &str) -> RunPlan {
    RunPlan {
        device: SERIAL.to_owned(),
        backend,
        model: model.to_owned(),
        warmup: 0,
        budget: Budget::Iterations(500),
        profiling: ProfilingLevel::Detailed,
        profiling_budget: Some(Budget::Iterations(3)),
        simulated: false,
        driver: Driver::DeviceRunner,
        energy_while_charging: false,
        mode: Mode::default(),
        constraints: Constraints::default(),
    }
}

/// A session with two runs of `ops` layers; the first has hostile names, the second fails at its end.
fn session(path: &Path, ops: u32) {
    let mut recorder = Recorder::create(path).unwrap();
    let mut seq = 0;
    let mut put = |t_us: u64, run: Option<u32>, event: Event| {
        recorder.write(&Record { seq, t_us, run: run.map(RunId), event }).unwrap();
        seq += 1;
    };
    let header = SessionStarted {
        schema: SESSION_SCHEMA.to_owned(),
        tool_version: "0.1.0".to_owned(),
        epoch_us: 1_790_000_000_000_000,
        monotonic_us: 1_000_000,
        host: "Linux, x86_64".to_owned(),
    };
    put(1_000_000, None, Event::SessionStarted(header));
    let device = DeviceInfo {
        id: SERIAL.to_owned(),
        kind: DeviceKind::Adb,
        model: Some("Phone <b>One</b>".to_owned()),
        soc: Some("SM8650".to_owned()),
        hexagon_arch: Some("v75".to_owned()),
        abi: "arm64-v8a".to_owned(),
        os: "Android 14".to_owned(),
    };
    put(1_000_000, None, Event::DeviceSeen(device));
    let counter = CounterInfo {
        id: "gpu.freq".to_owned(),
        label: "GPU clock".to_owned(),
        unit: "MHz".to_owned(),
        maximum: None,
        unavailable: None,
    };
    let set =
        qnnscope::event::CounterSet { set: 1, device: SERIAL.to_owned(), period_us: 10_000, counters: vec![counter] };
    put(1_000_000, None, Event::CounterSetDeclared(set));
    for run in 0..2u32 {
        let begun = 1_100_000 + u64::from(run) * 3_000_000;
        let run = Some(run);
        put(
            begun,
            run,
            Event::RunStarted(Box::new(plan(
                [Backend::Htp, Backend::Gpu][run.unwrap() as usize],
                "/home/jo/secret/face.dlc",
            ))),
        );
        let name = |at: u32| match HOSTILE.get(at as usize) {
            Some(name) => (*name).to_owned(),
            None => format!("block{}/conv{at}", at / 7),
        };
        let op = |index: u32| Op {
            index,
            name: name(index),
            op_type: ["Conv2d", "Relu", "Eltwise<i>"][index as usize % 3].to_owned(),
            package: "qti.aisw".to_owned(),
            inputs: vec![],
            outputs: vec![],
            params: serde_json::Map::new(),
            macs: Some(1000),
            parameter_bytes: 0,
            bytes_moved: None,
        };
        let graph = Graph {
            name: "face".to_owned(),
            inputs: vec![],
            outputs: vec![],
            ops: (0..ops).map(op).collect(),
            parameter_bytes: 10,
        };
        put(begun + 10_000, run, Event::GraphComposed(Box::new(graph)));
        put(begun + 20_000, run, Event::StageFinished { stage: Stage::Finalize, duration_us: 9000.0 });
        let latency_ns: Vec<u64> =
            (0..500u64).map(|at| 1_000_000 + at * 1000 + u64::from(run.unwrap()) * 50_000).collect();
        let start_us: Vec<u64> = (0..500u64).map(|at| begun + 30_000 + at * 2000).collect();
        let batch = |phase, count| InferenceBatch {
            phase,
            first_index: 0,
            start_us: start_us[..count].to_vec(),
            latency_ns: latency_ns[..count].to_vec(),
            late_ns: vec![],
        };
        put(begun + 1_030_000, run, Event::Inferences(batch(Phase::Clean, 500)));
        for tick in 0..100u64 {
            let values = vec![Some(600.0 + tick as f64)];
            put(
                begun + 1_030_000,
                None,
                Event::Counters(CounterSample { set: 1, t_us: begun + 30_000 + tick * 10_000, values }),
            );
        }
        let rows = (0..ops).map(|at| OpRow { name: name(at), op: Some(at), unit: OpUnit::Us, htp_op: None }).collect();
        put(begun + 1_040_000, run, Event::OpsDeclared(rows));
        put(begun + 1_050_000, run, Event::Inferences(batch(Phase::Detailed, 3)));
        for inference in 0..3 {
            let values = (0..ops).map(|at| u64::from(at % 50) + 1).collect();
            put(begun + 1_050_000, run, Event::OpTimes(OpSample { inference, values }));
        }
        if run == Some(1) {
            let mut failure = Failure::new(Stage::Teardown, "contextFree", "cannot free /home/jo/secret/face.dlc");
            failure.log_tail = vec!["<b>secret line of R5CT10ABCDE</b>".to_owned()];
            put(begun + 1_060_000, run, Event::Failed(Box::new(failure)));
            put(begun + 1_060_000, run, Event::RunFinished { status: RunStatus::Failed });
        } else {
            put(begun + 1_060_000, run, Event::RunFinished { status: RunStatus::Ok });
        }
    }
    recorder.finish(None).unwrap();
}

fn report(files: &[&Path], output: &Path, flags: &str) -> Done {
    Qnnscope::without_runtime().arg("report").args(files).arg("-o").arg(output).flags(flags).finish()
}

#[track_caller]
fn written(files: &[&Path], output: &Path, flags: &str) -> String {
    let done = report(files, output, flags).expect(0);
    assert!(done.stderr.contains("wrote "), "{}", done.stderr);
    std::fs::read_to_string(output).unwrap()
}

fn own_session() -> PathBuf {
    repo("tests/data/sessions/quiet-cpu-float.jsonl")
}

/// A page's tags in order, with what follows each up to the next tag; fails on anything a browser would have
/// to guess.
#[track_caller]
fn tags(html: &str) -> Vec<String> {
    const VOID: [&str; 6] = ["meta", "input", "line", "rect", "polyline", "circle"];
    let (mut open, mut found, mut rest) = (Vec::new(), Vec::new(), html);
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with("!") {
            continue;
        }
        let end = rest.find('>').expect("every tag ends");
        let inside = &rest[..end];
        let name: String = inside.trim_start_matches('/').chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        if inside.starts_with('/') {
            assert_eq!(open.pop(), Some(name.clone()), "…{}", &rest[..end.min(80)]);
        } else if !inside.ends_with('/') && !VOID.contains(&name.as_str()) {
            open.push(name.clone());
        }
        // The content of scripts and styles is not markup.
        if !inside.starts_with('/') && ["script", "style"].contains(&name.as_str()) {
            let close = rest.find(&format!("</{name}>")).unwrap();
            rest = &rest[close..];
        }
        found.push(name);
    }
    assert!(open.is_empty(), "left open: {open:?}");
    found
}

#[test]
fn a_page_is_whole_small_and_nothing_in_it_runs_but_its_own_script() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("s.jsonl"), dir.path().join("r.html"));
    session(&input, 1000);
    let html = written(&[&input], &output, "");
    assert!(html.len() < 2 << 20, "{} bytes", html.len());
    let tags = tags(&html);
    assert_eq!(tags.iter().filter(|tag| *tag == "script").count(), 2, "one script, its begin and end");
    for forbidden in ["img", "iframe", "object", "link", "i"] {
        assert!(!tags.iter().any(|tag| tag == forbidden), "{forbidden}");
    }
    for part in [
        "Summary",
        "Environment",
        "Comparison",
        "Distribution of latency",
        "Latency over time",
        "Op types",
        "GPU clock",
        "Failure",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !html.contains("<script>alert"));
    assert!(!html.contains("onerror=alert(1)>") && !html.contains("<b>One"));
    // Nothing is fetched: the only addresses are those in hostile names, as text, and that of the namespace.
    for (at, _) in html.match_indices("http") {
        let text = &html[at..html.len().min(at + 24)];
        assert!(
            text.starts_with("http://www.w3.org")
                || text.starts_with("http://evil.example")
                || text.starts_with("http-equiv"),
            "{text}"
        );
    }
    // The page has styles for print and for dark mode.
    assert!(html.contains("prefers-color-scheme: dark") && html.contains("@media print"));
    // 1,000 layers of each run, all present without a script.
    assert!(html.contains("block142/conv999"));
}

#[test]
fn a_comment_is_short_and_mentions_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("s.jsonl"), dir.path().join("r.md"));
    session(&input, 300);
    let text = written(&[&input], &output, "");
    assert!(text.len() < 60_500, "{}", text.len());
    assert!(
        !text.contains("@octocat") && !text.contains("<script") && !text.contains("](http") && !text.contains("http:")
    );
    let rows = text.lines().filter(|line| line.starts_with('|'));
    for row in rows {
        let bars = row.replace("\\|", "").matches('|').count();
        assert!(bars >= 3, "{row}");
    }
    assert!(text.contains("#### Layers") && text.contains("and 290 more"), "{text}");
}

#[test]
fn the_table_has_every_figure_and_no_formula() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("s.jsonl"), dir.path().join("r.csv"));
    session(&input, 20);
    let text = written(&[&input], &output, "");
    assert!(text.starts_with("qnnscope_run,"));
    let p50 = text.lines().find(|line| line.starts_with("1,htp,") && line.contains(",latency,,,p50,")).unwrap();
    let p50: f64 = p50.rsplit(',').nth(1).unwrap().parse().unwrap();
    assert!((p50 - 1249.5).abs() < 1.5, "{p50}");
    assert!(text.contains("\"'=HYPERLINK(\"\"http://evil.example\"\")\""), "{text}");
    for line in text.lines() {
        // No cell begins with a sign, except that numbers may.
        for cell in line.split(',') {
            let is_number = cell.parse::<f64>().is_ok();
            assert!(is_number || !cell.trim_start_matches('"').starts_with(['=', '+', '-', '@']), "{line}");
        }
    }
    let shares =
        text.lines().filter(|line| line.starts_with("1,") && line.contains(",op,") && line.contains(",share,"));
    let sum: f64 = shares.map(|line| line.rsplit(',').nth(1).unwrap().parse::<f64>().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
}

#[test]
fn a_trace_has_every_inference_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("s.jsonl"), dir.path().join("r.trace.json"));
    session(&input, 20);
    let trace: Value = serde_json::from_str(&written(&[&input], &output, "")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |pid: u64, name: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["ph"] == "X" && event["pid"] == pid && event["name"] == name).collect()
    };
    assert_eq!((of(1, "clean").len(), of(2, "clean").len(), of(1, "detailed").len()), (500, 500, 3));
    assert_eq!(of(1, "clean")[7]["ts"], 100_000.0 + 30_000.0 + 14_000.0);
    assert_eq!(of(1, "clean")[7]["dur"], 1007.0);
    let ops: Vec<&Value> =
        events.iter().filter(|event| event["tid"] == 3 && event["ph"] == "X" && event["pid"] == 1).collect();
    assert_eq!(ops.len(), 3 * 20);
    let sum: f64 = ops[..20].iter().map(|op| op["dur"].as_f64().unwrap()).sum();
    assert!((sum - 1000.0).abs() < 1e-6, "the ops of an inference fill it: {sum}");
    assert_eq!(events.iter().filter(|event| event["ph"] == "C").count(), 200);
}

/// Start, end and name of a slice.
type Slice<'a> = (f64, f64, &'a str);

/// What Perfetto's importer of this format requires: known phases, finite times, names for all processes and
/// tracks, and slices of a track that are nested or apart.
#[track_caller]
fn is_a_trace(trace: &Value) {
    let events = trace["traceEvents"].as_array().unwrap();
    let (mut processes, mut tracks) = (BTreeSet::new(), BTreeSet::new());
    let mut slices: BTreeMap<(u64, u64), Vec<Slice<'_>>> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for event in events {
        let place = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let name = event["name"].as_str().unwrap();
        used.insert(place);
        let time = |key: &str| event[key].as_f64().filter(|us| us.is_finite() && *us >= 0.0);
        match event["ph"].as_str().unwrap() {
            "M" => {
                assert!(event["args"]["name"].is_string(), "{event}");
                match name {
                    "process_name" => assert!(processes.insert(place.0), "named twice: {event}"),
                    "thread_name" => assert!(tracks.insert(place), "named twice: {event}"),
                    _ => panic!("{event}"),
                }
            }
            "X" => {
                let (start, length) = (time("ts").expect("a start"), time("dur").expect("a length"));
                slices.entry(place).or_default().push((start, start + length, name));
            }
            "i" => assert!(time("ts").is_some() && ["g", "p", "t"].contains(&event["s"].as_str().unwrap()), "{event}"),
            "C" => assert!(time("ts").is_some() && event["args"]["value"].is_number(), "{event}"),
            other => panic!("no phase that is used here: {other}"),
        }
    }
    for place in &used {
        assert!(processes.contains(&place.0), "process {} has no name", place.0);
    }
    for (place, mut slices) in slices {
        assert!(tracks.contains(&place), "track {place:?} has no name");
        slices.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut open: Vec<(f64, &str)> = Vec::new();
        for (start, end, name) in slices {
            // Sums of parts may be off by one nanosecond.
            while open.last().is_some_and(|(until, _)| *until <= start + 1e-3) {
                open.pop();
            }
            if let Some((until, around)) = open.last() {
                assert!(end <= until + 1e-3, "{place:?}: {name} ends at {end}, {around} around it at {until}");
            }
            open.push((end, name));
        }
    }
}

#[test]
fn a_trace_is_one_for_its_readers() {
    let dir = tempfile::tempdir().unwrap();
    let hostile = dir.path().join("s.jsonl");
    session(&hostile, 20);
    let imports = ["ai-hub-v1.7.json", "etdump.etdp", "ort-htp_qnn.log", "ort-cpu.csv", "genie.json", "optrace.json"];
    let mut files: Vec<PathBuf> = imports.iter().map(|name| repo("tests/data/imports").join(name)).collect();
    files.extend([own_session(), hostile]);
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let text = written(&files, &dir.path().join("all.trace.json"), "");
    let trace: Value = serde_json::from_str(&text).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 1000);
    is_a_trace(&trace);
}

/// What the browser reports about a page; `how` tells it what to do.
fn browser(page: &Path, how: &[&str]) -> String {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new("chromium");
    command
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"])
        .args(["--disable-background-networking", "--no-first-run", "--window-size=1280,2000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(how)
        .arg(format!("file://{}", page.display()));
    let output = command.output().unwrap_or_else(|error| {
        panic!("chromium does not start ({error}): apt-get install -y --no-install-recommends chromium")
    });
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    // Its own messages are about buses and graphics that do not exist here; those of the page have this mark.
    said.lines().filter(|line| line.contains(":CONSOLE")).map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn a_browser_has_nothing_to_say_about_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("bad.html"), "<!DOCTYPE html><title>x</title><script>console.error('seen')</script>").unwrap();
    let picture = |name: &str| format!("--screenshot={}", at(name).display());
    assert!(browser(&at("bad.html"), &[&picture("bad.png")]).contains("seen"), "the mark is what it was");
    session(&at("hostile.jsonl"), 60);
    session(&at("large.jsonl"), 1000);
    let imports =
        ["ai-hub-v1.7.json", "etdump.etdp", "ort-htp_qnn.log"].map(|name| repo("tests/data/imports").join(name));
    let mixed: Vec<PathBuf> = imports.into_iter().chain([own_session()]).collect();
    for (name, files, how) in [
        ("hostile", vec![at("hostile.jsonl")], picture("hostile.png")),
        ("large", vec![at("large.jsonl")], picture("large.png")),
        ("mixed", mixed, format!("--print-to-pdf={}", at("mixed.pdf").display())),
    ] {
        let page = at(&format!("{name}.html"));
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        written(&files, &page, "");
        let dark = if name == "large" { "--blink-settings=preferredColorScheme=0" } else { "--hide-scrollbars" };
        assert_eq!(browser(&page, &[&how, dark]), "", "{name}");
        let made = std::fs::read(how.split_once('=').unwrap().1).unwrap();
        // A page on which nothing is drawn would be far smaller.
        assert!(made.len() > 20_000, "{name}: {} bytes", made.len());
    }
}

#[test]
fn histograms_read_back_with_every_inference() {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("r.hlog");
    let bytes = written(&[&own_session()], &output, "");
    let (mut count, mut largest) = (0, 0);
    for entry in IntervalLogIterator::new(bytes.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            assert_eq!(interval.tag().unwrap().as_str(), "run1-cpu");
            let raw = base64(interval.encoded_histogram());
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut raw.as_slice()).unwrap();
            count += histogram.len();
            largest = largest.max(histogram.max());
        }
    }
    let csv = written(&[&own_session()], &dir.path().join("r.csv"), "");
    let figure = |statistic: &str| -> f64 {
        let line = csv.lines().find(|line| line.contains(&format!(",latency,,,{statistic},"))).unwrap();
        line.rsplit(',').nth(1).unwrap().parse().unwrap()
    };
    assert_eq!(count as f64, figure("count"));
    assert!((largest as f64 / 1000.0 / figure("max") - 1.0).abs() < 2e-3, "{largest} {}", figure("max"));
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> =
        text.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte)).map(|at| at as u32).collect();
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let word = four.iter().enumerate().fold(0, |word, (at, digit)| word | digit << (18 - 6 * at));
        bytes.extend_from_slice(&word.to_be_bytes()[1..four.len()]);
    }
    bytes
}

#[test]
fn a_picture_has_lines_and_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("s.jsonl");
    session(&input, 15);
    let svg = written(&[&input], &dir.path().join("r.svg"), "");
    tags(&svg);
    assert!(!svg.contains("<script") && svg.contains("&lt;script"), "names are text in it");
    let output = dir.path().join("r.png");
    report(&[&input], &output, "").expect(0);
    let png = std::fs::read(&output).unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    let height: u32 = svg.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert_eq!((side(16), side(20)), (1440, (2 * height).min(16_000)));
    // An empty picture of this size would be far smaller.
    assert!(png.len() > 50_000, "{} bytes", png.len());
}

#[test]
fn what_is_private_stays_here() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("s.jsonl");
    session(&input, 30);
    for name in ["r.html", "r.md", "r.csv", "r.svg", "r.trace.json", "r.hlog"] {
        let output = dir.path().join(name);
        let text = written(&[&input], &output, "--redact");
        for private in [SERIAL, "/home/jo", "secret", "face", "octocat", "evil.example", "block0", "s.jsonl"] {
            assert!(!text.contains(private), "{name} tells {private}");
        }
    }
    let text = std::fs::read_to_string(dir.path().join("r.md")).unwrap();
    for kept in ["op-", "model-1", "device-1", "Conv2d", "SM8650"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[test]
fn other_tools_files_have_reports_too() {
    let dir = tempfile::tempdir().unwrap();
    let files = [repo("tests/data/imports/ai-hub-v1.7.json"), repo("tests/data/imports/etdump.etdp"), own_session()];
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let html = written(&files, &dir.path().join("r.html"), "");
    tags(&html);
    for part in ["AI Hub profile", "ExecuTorch ETDump", "runs on", "NPU", "Comparison", "Times are derived from cycles"]
    {
        assert!(html.contains(part), "{part}");
    }
    // A trace without any ops is refused only by the picture formats.
    let trace = repo("tests/data/imports/op-trace.json");
    let html = written(&[&trace], &dir.path().join("t.html"), "");
    assert!(html.contains("relu_a") && html.contains("the file has no layer times"), "{html}");
    let done = report(&[&trace], &dir.path().join("t.svg"), "");
    assert_eq!(done.code(), 2);
    assert!(done.stderr.contains("there is no data for this format"), "{}", done.stderr);
}

#[test]
fn files_are_written_where_they_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let own = own_session();
    for name in ["r.html", "r.md", "r.csv", "r.svg", "r.png", "r.trace.json", "r.hlog"] {
        for _ in 0..2 {
            // The second report replaces the first one, which is ours.
            report(&[&own], &dir.path().join(name), "").expect(0);
        }
    }
    std::fs::write(dir.path().join("mine.md"), "my notes\n").unwrap();
    let done = report(&[&own], &dir.path().join("mine.md"), "");
    assert_eq!((done.code(), done.stderr.contains("--force")), (2, true), "{}", done.stderr);
    let copy = dir.path().join("s.html");
    std::fs::copy(&own, &copy).unwrap();
    let done = report(&[&copy], &copy, "--force");
    assert_eq!(done.code(), 2, "an input is never overwritten: {}", done.stderr);
    let done = report(&[&own], &dir.path().join("r.docx"), "");
    assert_eq!(done.code(), 2);
    assert!(done.stderr.contains(".html") && done.stderr.contains("--format"), "{}", done.stderr);
    assert!(written(&[&own], &dir.path().join("r.txt"), "--format md").starts_with("<!-- qnnscope"));
    let done = report(&[&repo("Cargo.toml")], &dir.path().join("x.html"), "");
    assert_eq!(done.code(), 2);
    assert!(done.stderr.contains("neither a session nor a known file"), "{}", done.stderr);
    assert!(!dir.path().join("x.html").exists());
    // A result document has figures, but not what reports are made from.
    let result = dir.path().join("result.json");
    std::fs::write(&result, Qnnscope::without_runtime().args(["show", "--json"]).arg(&own).finish().expect(0).text())
        .unwrap();
    let done = report(&[&result], &dir.path().join("x.html"), "").expect(2);
    assert!(
        done.stderr.contains("is a result document") && done.stderr.contains("next: `qnnscope show`"),
        "{}",
        done.stderr
    );
}
