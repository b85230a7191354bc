//! Session files as bytes: compressed or not, truncated anywhere, damaged, long; opened by their digest or
//! record by record.

use qnnscope::event::{
    Budget, CounterInfo, CounterSample, Driver, Event, InferenceBatch, LogLevel, LogLine, LogSource, Metric,
    MetricSample, OpRow, OpSample, OpUnit, Phase, Record, RunId, RunPlan, RunStatus, SESSION_SCHEMA, SessionStarted,
    Stage,
};
use qnnscope::report::ResultDocument;
use qnnscope::session::{Playlist, Recorder, SessionReader, read_any};
use qnnscope::store::Store;
use std::path::{Path, PathBuf};

/// A session with one run of `launches` fresh processes, each with clean inferences and as many detailed ones
/// of `ops` ops.
fn records(launches: u32, inferences: u64, ops: usize) -> Vec<Record> {
    let mut out: Vec<Record> = Vec::new();
    let mut t_us = 1_000_000;
    let mut random = 7u64;
    let mut noise = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 40
    };
    let mut put = |t_us: u64, run: Option<u32>, event: Event| {
        let seq = out.len() as u64;
        out.push(Record { seq, t_us, run: run.map(RunId), event });
    };
    let header = SessionStarted {
        schema: SESSION_SCHEMA.to_owned(),
        tool_version: "0.1.0".to_owned(),
        epoch_us: 1_795_250_000_000_000,
        monotonic_us: t_us,
        host: "a host".to_owned(),
    };
    put(t_us, None, Event::SessionStarted(header));
    let counter = CounterInfo {
        id: "host.cpu.busy".to_owned(),
        label: "CPU".to_owned(),
        unit: "%".to_owned(),
        maximum: None,
        unavailable: None,
    };
    put(t_us, None, Event::CountersDeclared(vec![counter]));
    let plan = RunPlan {
        device: "local".to_owned(),
        backend: "htp".parse().unwrap(),
        model: "net.dlc".to_owned(),
        warmup: 5,
        budget: Budget::Iterations(inferences),
        profiling: qnnscope::backends::ProfilingLevel::Detailed,
        profiling_budget: Some(Budget::Iterations(inferences)),
        simulated: true,
        driver: Driver::default(),
        energy_while_charging: false,
        mode: Default::default(),
        constraints: Default::default(),
    };
    put(t_us, Some(0), Event::RunStarted(Box::new(plan)));
    for index in 0..launches {
        put(t_us, Some(0), Event::LaunchStarted { index, of: launches, reason: None });
        put(t_us, Some(0), Event::StageStarted { stage: Stage::Execute });
        let batch = |phase, first_index, start_us: u64, noise: &mut dyn FnMut() -> u64, count: u64| {
            Event::Inferences(InferenceBatch {
                phase,
                first_index,
                start_us: (0..count).map(|i| start_us + i * 1000).collect(),
                latency_ns: (0..count).map(|_| 900_000 + noise() % 50_000).collect(),
                late_ns: Vec::new(),
            })
        };
        put(t_us, Some(0), batch(Phase::First, 0, t_us, &mut noise, 1));
        put(t_us, Some(0), Event::PhaseStarted { phase: Phase::Clean, budget: Budget::Iterations(inferences) });
        let mut done = 0;
        while done < inferences {
            let count = (inferences - done).min(50);
            put(t_us, Some(0), batch(Phase::Clean, done, t_us, &mut noise, count));
            t_us += count * 1000;
            done += count;
            let sample = CounterSample { set: 0, t_us, values: vec![Some((noise() % 100) as f64)] };
            put(t_us, None, Event::Counters(sample));
        }
        let rows =
            (0..ops).map(|op| OpRow { name: format!("block/op_{op}"), op: None, unit: OpUnit::Cycles, htp_op: None });
        put(t_us, Some(0), Event::OpsDeclared(rows.collect()));
        for inference in 0..inferences {
            let values = (0..ops as u64).map(|op| 5_000 + op * 311 + noise() % 2_000).collect();
            put(t_us, Some(0), Event::OpTimes(OpSample { inference, values }));
            let metric = Metric {
                name: "Accelerator (execute) time".to_owned(),
                unit: "us".to_owned(),
                value: 800.0 + (noise() % 100) as f64,
            };
            let sample = MetricSample { phase: Phase::Detailed, inference, metrics: vec![metric] };
            put(t_us, Some(0), Event::Metrics(sample));
            put(t_us, Some(0), batch(Phase::Detailed, inference, t_us, &mut noise, 1));
            t_us += 1500;
        }
        put(t_us, Some(0), Event::StageFinished { stage: Stage::Execute, duration_us: 1234.5 });
        put(t_us, Some(0), Event::Log(LogLine::new(LogLevel::Info, LogSource::Runner, "a line")));
    }
    put(t_us, Some(0), Event::RunFinished { status: RunStatus::Ok });
    out
}

fn folded(records: &[Record]) -> Store {
    let mut store = Store::new();
    records.iter().for_each(|record| store.apply(record));
    store
}

fn written(dir: &Path, name: &str, records: &[Record], store: Option<&Store>) -> PathBuf {
    let path = dir.join(name);
    let mut recorder = Recorder::create(&path).unwrap();
    records.iter().for_each(|record| recorder.write(record).unwrap());
    recorder.finish(store).unwrap();
    path
}

fn document(store: &Store) -> String {
    serde_json::to_string(&ResultDocument::new(store)).unwrap()
}

fn read(path: &Path) -> (Vec<Record>, bool) {
    let mut reader = SessionReader::open(path).unwrap();
    let records = reader.by_ref().map(Result::unwrap).collect();
    (records, reader.is_truncated())
}

#[test]
fn a_compressed_session_has_the_same_records_as_a_plain_one() {
    let dir = tempfile::tempdir().unwrap();
    let records = records(2, 40, 12);
    let plain = written(dir.path(), "s.jsonl", &records, None);
    let packed = written(dir.path(), "s.jsonl.zst", &records, None);
    assert_eq!(read(&plain), (records.clone(), false));
    assert_eq!(read(&packed), (records, false));
    // The format is determined by the first bytes, not by the name.
    let renamed = dir.path().join("renamed");
    std::fs::copy(&packed, &renamed).unwrap();
    assert!(!read(&renamed).1);
    assert!(std::fs::metadata(&packed).unwrap().len() * 4 < std::fs::metadata(&plain).unwrap().len());
}

#[test]
fn a_compressed_session_is_readable_after_a_kill_at_any_byte() {
    let dir = tempfile::tempdir().unwrap();
    let all = records(1, 20, 4);
    let path = dir.path().join("s.zst");
    let mut recorder = Recorder::create(&path).unwrap();
    // Everything flushed is in the file, whatever happens later: the bytes are examined while the recorder is
    // still open.
    let mut flushed = Vec::new();
    for (at, record) in all.iter().enumerate() {
        recorder.write(record).unwrap();
        if at % 7 == 3 {
            recorder.flush().unwrap();
            flushed.push((std::fs::metadata(&path).unwrap().len() as usize, at + 1));
        }
    }
    let bytes = std::fs::read(&path).unwrap();
    let cut = dir.path().join("cut");
    for length in (1..bytes.len()).step_by(13).chain(flushed.iter().map(|(length, _)| *length)) {
        std::fs::write(&cut, &bytes[..length]).unwrap();
        let sure = flushed.iter().filter(|(at, _)| *at <= length).map(|(_, records)| *records).max().unwrap_or(0);
        let mut reader = SessionReader::open(&cut).unwrap();
        let mut found = 0;
        for record in reader.by_ref() {
            match record {
                Ok(record) => assert_eq!(record, all[found], "cut at {length}"),
                Err(error) => {
                    assert_eq!(found, 0, "cut at {length}: {error}");
                    break;
                }
            }
            found += 1;
        }
        assert!(found >= sure, "cut at {length}: {found} of {sure} flushed records");
        assert!(found == 0 || reader.is_truncated(), "cut at {length}");
    }
    // The stage in which it was cut off is reported.
    std::fs::write(&cut, &bytes[..flushed.last().unwrap().0]).unwrap();
    let opened = read_any(&cut).unwrap().unwrap();
    assert_eq!(opened.notes, ["was cut off and is used as far as it goes: in stage execute of the run on htp"]);
    drop(recorder);
    assert!(!read(&path).1, "an interrupted command still ends its file");
}

#[test]
fn a_digest_says_what_the_stream_says() {
    let dir = tempfile::tempdir().unwrap();
    for (launches, inferences, ops) in [(1, 2000, 150), (3, 1500, 60)] {
        let records = records(launches, inferences, ops);
        let store = folded(&records);
        let with = written(dir.path(), "with.zst", &records, Some(&store));
        let without = written(dir.path(), "without.zst", &records, None);
        let (long, short) = (std::fs::read(&with).unwrap(), std::fs::read(&without).unwrap());
        let mark = b"qnnsdig3";
        assert!(long.ends_with(mark) && !short.ends_with(mark), "one of them has a digest");
        let opened = read_any(&with).unwrap().unwrap();
        assert_eq!(document(&opened.store), document(&store));
        assert_eq!(opened.store.records(), records.len() as u64);
        assert_eq!(document(&read_any(&without).unwrap().unwrap().store), document(&store));
        assert_eq!(read(&with), (records, false), "readers of the stream skip it");

        // A later launch continues from a digest just as from the stream.
        let next = Event::LaunchStarted { index: launches, of: launches + 1, reason: None };
        let next = Record { seq: 0, t_us: store.now_us() + 1, run: Some(RunId(0)), event: next };
        let (mut a, mut b) = (store, opened.store);
        a.apply(&next);
        b.apply(&next);
        assert_eq!(document(&a), document(&b));
    }
}

#[test]
fn a_digest_that_is_damaged_or_of_another_session_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let records = records(1, 2000, 150);
    let store = folded(&records);
    let path = written(dir.path(), "s.zst", &records, Some(&store));
    let bytes = std::fs::read(&path).unwrap();
    let expected = document(&store);
    let stream = u64::from_le_bytes(bytes[bytes.len() - 16..bytes.len() - 8].try_into().unwrap()) as usize;
    let changed = dir.path().join("changed.zst");
    let step = (bytes.len() - stream) / 40;
    for at in (stream..bytes.len()).step_by(step.max(1)) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&changed, &bytes).unwrap();
        // Either the change is noticed, and the stream is read instead, or nothing that is shown has changed.
        if let Ok(Some(opened)) = read_any(&changed) {
            assert_eq!(opened.store.records(), records.len() as u64, "byte {at} changed");
        }
    }
    let mut longer = bytes.clone();
    longer.extend_from_slice(&bytes);
    std::fs::write(&changed, &longer).unwrap();
    assert!(read_any(&changed).is_ok(), "two sessions in one file");
    std::fs::write(&changed, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(document(&read_any(&changed).unwrap().unwrap().store), expected, "a cut digest");
}

#[test]
fn damage_in_the_middle_is_told_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), "s.zst", &records(1, 300, 40), None);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    match read_any(&path) {
        Ok(Some(opened)) => assert!(opened.notes[0].contains("damaged at line"), "{:?}", opened.notes),
        other => assert!(other.unwrap_err().to_string().contains("damaged"), "told at its first line"),
    }
}

/// The limit of the format: 40 bytes per inference and 3 bytes per op time, for a model of 150 ops.
#[test]
fn a_compressed_session_is_small() {
    let dir = tempfile::tempdir().unwrap();
    let (inferences, ops) = (2000, 150);
    let path = written(dir.path(), "s.zst", &records(1, inferences, ops), None);
    let bytes = std::fs::metadata(&path).unwrap().len();
    // There is one detailed inference for each clean one.
    let limit = inferences * 2 * 40 + inferences * ops as u64 * 3;
    println!("{bytes} bytes of at most {limit}");
    assert!(bytes <= limit, "{bytes} bytes, at most {limit}");
}

#[test]
fn several_sessions_open_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let records = records(2, 60, 8);
    let one = written(dir.path(), "a.jsonl", &records, None);
    let other = written(dir.path(), "b.jsonl.zst", &records, None);
    let single = Playlist::new(vec![one.clone()]).unwrap();
    assert_eq!(single.records().collect::<Vec<_>>(), records);
    let store = folded(&records);
    assert_eq!(document(&single.fold().unwrap().store), document(&store));

    let both = Playlist::new(vec![one, other]).unwrap();
    let joined: Vec<Record> = both.records().collect();
    assert_eq!(joined.len(), 2 * records.len() - 1, "one header");
    assert!(joined.iter().enumerate().all(|(at, record)| record.seq == at as u64));
    let folded = both.fold().unwrap().store;
    assert_eq!(folded.runs().iter().map(|run| run.id.0).collect::<Vec<_>>(), [0, 1]);
    let windows: Vec<(u64, u64)> = folded.runs().iter().map(|run| run.clean.window_us().unwrap()).collect();
    assert!(windows[0].1 < windows[1].0, "{windows:?}");
    for run in folded.runs() {
        assert_eq!(run.clean.percentile_us(50.0), store.runs()[0].clean.percentile_us(50.0));
        assert_eq!(run.ops.inferences(), store.runs()[0].ops.inferences());
    }
    // The host's counters continue: each run has its own part of them.
    let readings = 2 * store.counters()[0].count();
    assert_eq!(folded.counters()[0].count(), readings);
    let missing = Playlist::new(vec![dir.path().join("none")]).unwrap().fold();
    assert!(missing.unwrap_err().to_string().contains("cannot read"));
}
