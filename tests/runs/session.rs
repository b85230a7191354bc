//! Session files: a recording yields the same figures as the live run, even if it was cut off.

#![cfg(target_os = "linux")]

use crate::support::{Qnnscope, demo_int8, runtime_247, runtime_251};
use qnnscope::event::{Event, RunStatus};
use qnnscope::report::ResultDocument;
use qnnscope::session::SessionReader;
use qnnscope::store::Store;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// Folds a session file; returns the document, the number of records and whether the file ended within a
/// line.
fn replay(path: &Path) -> (Value, usize, bool) {
    let mut reader = SessionReader::open(path).unwrap();
    let mut store = Store::new();
    let mut count = 0;
    for record in reader.by_ref() {
        let record = record.unwrap();
        assert_eq!(record.seq, count as u64, "numbered without gaps");
        store.apply(&record);
        count += 1;
    }
    (serde_json::to_value(ResultDocument::new(&store)).unwrap(), count, reader.is_truncated())
}

/// Compares two documents and names the first place where they differ.
#[track_caller]
fn assert_same(live: &Value, replayed: &Value, at: &str) {
    match (live, replayed) {
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{at}");
            a.iter().for_each(|(key, value)| assert_same(value, &b[key], &format!("{at}.{key}")));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter().zip(b).enumerate().for_each(|(i, (a, b))| assert_same(a, b, &format!("{at}[{i}]")));
        }
        _ => assert_eq!(live, replayed, "{at}"),
    }
}

/// Sessions of the bundled models on the CPU backend of an otherwise idle machine.
#[test]
fn quiet_runs_on_the_processor_have_no_finding_above_info() {
    for (name, inferences) in [("quiet-cpu-float.jsonl", 400), ("quiet-cpu-int8.jsonl", 100)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sessions").join(name);
        let (document, _, truncated) = replay(&path);
        let run = &document["runs"][0];
        assert!(!truncated && run["latency_us"]["samples"] == inferences, "{name}");
        assert_eq!(
            (&run["simulated"], &run["trust"]["verdict"]),
            (&Value::Bool(false), &Value::from("within_launch")),
            "{name}"
        );
        let findings = run["findings"].as_array().unwrap();
        assert!(findings.len() >= 2, "{name}: something is known of it");
        assert!(findings.iter().all(|finding| finding["severity"] == "info"), "{name}: {findings:#?}");
    }
}

#[test]
fn a_recorded_session_gives_the_same_document() {
    let done = Qnnscope::on(&runtime_247())
        .run_json(&demo_int8(), "--backend cpu,htp -n 10 --profiling-iterations 5 --record session --log-level verbose")
        .expect(0);
    let session = done.home().join("session");
    let (document, count, truncated) = replay(&session);
    assert!(!truncated && count > 100, "{count}");
    assert_same(&parsed_twice(&done.json()), &parsed_twice(&document), "document");

    // Cut within a line: everything before it can be read, and the unfinished run counts as failed.
    let bytes = std::fs::read(&session).unwrap();
    let lines: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    assert_eq!((lines.len(), lines.last()), (count, Some(&bytes.len())), "one line per record, all whole");
    for line in [1, 2, count / 4, count / 2, count - 1] {
        let cut = done.home().join("cut");
        std::fs::write(&cut, &bytes[..lines[line] - 3]).unwrap();
        let (document, records, truncated) = replay(&cut);
        assert_eq!((records, truncated), (line, true));
        for run in document["runs"].as_array().unwrap().iter().filter(|run| run["status"] == "failed") {
            assert_eq!(run["error"]["call"], "session", "{run}");
        }
        std::fs::write(&cut, &bytes[..lines[line]]).unwrap();
        assert_eq!((replay(&cut).1, replay(&cut).2), (line + 1, false), "cut between lines");
    }
    // A last line that lacks only its newline still counts.
    let cut = done.home().join("cut");
    std::fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(replay(&cut).1, count);
}

/// Numbers as a reader of the text gets them: both sides go through the same printing and parsing.
fn parsed_twice(value: &Value) -> Value {
    serde_json::from_str(&value.to_string()).unwrap()
}

#[test]
fn a_failed_session_gives_the_same_document() {
    let done = Qnnscope::on(&runtime_251()).run_json(&demo_int8(), "--backend cpu -n 10 --record session").expect(3);
    let (document, _, truncated) = replay(&done.home().join("session"));
    assert!(!truncated);
    assert_same(&parsed_twice(&done.json()), &parsed_twice(&document), "document");
    assert_eq!(document["runs"][0]["status"], "failed");
}

#[test]
fn events_come_in_order() {
    let done = Qnnscope::on(&runtime_247())
        .run_json(&demo_int8(), "--backend cpu,htp -n 5 --profiling-iterations 5 --record session")
        .expect(0);
    let records: Vec<_> = SessionReader::open(&done.home().join("session")).unwrap().map(Result::unwrap).collect();
    assert!(matches!(records[0].event, Event::SessionStarted(_)));
    for run in 0..2u32 {
        let own: Vec<_> = records.iter().filter(|record| record.run.is_some_and(|id| id.0 == run)).collect();
        assert!(matches!(own[0].event, Event::RunStarted(_)));
        assert!(matches!(own[own.len() - 1].event, Event::RunFinished { status: RunStatus::Ok }));
        // Every stage that begins also ends, before the next one begins.
        let mut open = None;
        let mut finished = Vec::new();
        for record in &own {
            match record.event {
                Event::StageStarted { stage } => assert_eq!(open.replace(stage), None, "{stage}"),
                Event::StageFinished { stage, duration_us } => {
                    assert_eq!(open.take(), Some(stage));
                    assert!(duration_us >= 0.0);
                    finished.push(stage);
                }
                _ => {}
            }
        }
        assert!(open.is_none() && finished.is_sorted(), "{finished:?}");
        // Timestamps of one source never go back, and latencies are within the session.
        let starts: Vec<u64> = own
            .iter()
            .filter_map(|record| match &record.event {
                Event::Inferences(batch) => Some(batch.start_us.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        assert!(starts.is_sorted() && starts.len() >= 1 + 5 + 5 + 5);
        assert!(starts[0] >= own[0].t_us && *starts.last().unwrap() <= own[own.len() - 1].t_us);
    }
    let ends: Vec<usize> = records
        .iter()
        .enumerate()
        .filter(|(_, record)| matches!(record.event, Event::RunStarted(_) | Event::RunFinished { .. }))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(ends.len(), 4, "one run after the other");
}

#[test]
fn a_session_is_written_over_and_can_go_to_a_pipe() {
    let call = Qnnscope::on(&runtime_247());
    let session = call.home().join("session");
    // An older session that is longer than the new one and damaged.
    let header = b"{\"event\":{\"session_started\":{\"schema\":\"qnnscope.session/1\"}}}\n";
    std::fs::write(&session, [&header[..], &vec![b'x'; 5_000_000]].concat()).unwrap();
    let done = call.run_json(&demo_int8(), "-n 2 --profiling off --record session").expect(0);
    assert!(!replay(&session).2);
    drop(done);

    let call = Qnnscope::on(&runtime_247());
    let pipe = call.home().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    let done = call.run_json(&demo_int8(), "-n 2 --profiling off --record pipe").expect(0);
    let copy = done.home().join("copy");
    std::fs::File::create(&copy).unwrap().write_all(&reader.join().unwrap()).unwrap();
    assert_same(&parsed_twice(&done.json()), &parsed_twice(&replay(&copy).0), "document");
}

#[test]
fn damage_in_the_middle_is_named_by_line() {
    let done = Qnnscope::on(&runtime_247()).run_json(&demo_int8(), "-n 2 --profiling off --record session").expect(0);
    let session = done.home().join("session");
    let mut lines: Vec<String> = std::fs::read_to_string(&session).unwrap().lines().map(str::to_owned).collect();
    lines[2] = lines[2][..lines[2].len() / 2].to_owned();
    std::fs::write(&session, lines.join("\n") + "\n").unwrap();
    let error = SessionReader::open(&session).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("line 3") && error.contains("damaged"), "{error}");
}
