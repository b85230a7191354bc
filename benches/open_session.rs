//! A long session: a million inferences, each with the times of 150 ops. Measures its file size, and the time
//! and memory for opening it from its digest and from its stream.
//!
//! `cargo bench --bench open_session [-- INFERENCES OPS]`; it needs about 500 MB of disk.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use qnnscope::event::{
    Budget, Constraints, Driver, Event, InferenceBatch, Metric, MetricSample, Mode, OpRow, OpSample, OpUnit, Phase,
    Record, RunId, RunPlan, RunStatus, SESSION_SCHEMA, SessionStarted,
};
use qnnscope::session::{Recorder, SessionReader, read_any};
use qnnscope::store::Store;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["open", file] => open(Path::new(file)),
        ["stream", file] => stream(Path::new(file)),
        [inferences, ops] => measure(inferences.parse().unwrap(), ops.parse().unwrap()),
        _ => measure(1_000_000, 150),
    }
}

fn measure(inferences: u64, ops: usize) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("long.jsonl.zst");
    let begun = Instant::now();
    let mut recorder = Recorder::create(&file).unwrap();
    let mut store = Store::new();
    let mut seq = 0;
    records(inferences, ops, |t_us, run, event| {
        let record = Record { seq, t_us, run, event };
        seq += 1;
        recorder.write(&record).unwrap();
        store.apply(&record);
    });
    recorder.finish(Some(&store)).unwrap();
    let bytes = std::fs::metadata(&file).unwrap().len();
    println!(
        "{inferences} inferences of {ops} ops: {bytes} bytes in {:.1} s, {:.0} per inference; the bound is {}",
        begun.elapsed().as_secs_f64(),
        bytes as f64 / inferences as f64,
        40 + 3 * ops
    );
    drop(store);
    for how in ["open", "stream"] {
        let program = std::env::current_exe().unwrap();
        assert!(Command::new(program).arg(how).arg(&file).status().unwrap().success());
    }
}

fn open(file: &Path) {
    let begun = Instant::now();
    let store = read_any(file).unwrap().unwrap().store;
    report("by its digest", begun, &store);
}

fn stream(file: &Path) {
    let begun = Instant::now();
    let mut store = Store::new();
    for record in SessionReader::open(file).unwrap() {
        store.apply(&record.unwrap());
    }
    report("by its stream", begun, &store);
}

fn report(how: &str, begun: Instant, store: &Store) {
    let seconds = begun.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map_or("unknown", str::trim);
    let run = &store.runs()[0];
    println!(
        "{how}: {seconds:.2} s, peak {peak}; {} inferences, p50 {:.1} us, {} op times of the first op",
        run.detailed.count(),
        run.detailed.percentile_us(50.0).unwrap_or(0.0),
        run.ops.stats()[0].count()
    );
}

/// Every inference belongs to the detailed phase, the worst case: each has a latency, op times and a backend
/// figure.
fn records(inferences: u64, ops: usize, mut put: impl FnMut(u64, Option<RunId>, Event)) {
    let run = Some(RunId(0));
    let mut random = 1u64;
    let mut noise = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 40
    };
    let header = SessionStarted {
        schema: SESSION_SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        epoch_us: 1_795_250_000_000_000,
        monotonic_us: 1_000_000,
        host: "bench".to_owned(),
    };
    put(1_000_000, None, Event::SessionStarted(header));
    let plan = RunPlan {
        device: "local".to_owned(),
        backend: "htp".parse().unwrap(),
        model: "net.dlc".to_owned(),
        warmup: 0,
        budget: Budget::Iterations(0),
        profiling: qnnscope::backends::ProfilingLevel::Detailed,
        profiling_budget: Some(Budget::Iterations(inferences)),
        simulated: true,
        driver: Driver::default(),
        energy_while_charging: false,
        mode: Mode::default(),
        constraints: Constraints::default(),
    };
    put(1_000_000, run, Event::RunStarted(Box::new(plan)));
    let rows =
        (0..ops).map(|op| OpRow { name: format!("block/op_{op}"), op: None, unit: OpUnit::Cycles, htp_op: None });
    put(1_000_000, run, Event::OpsDeclared(rows.collect()));
    let mut t_us = 2_000_000;
    for inference in 0..inferences {
        let latency_ns = 900_000 + noise() % 50_000;
        let batch = InferenceBatch {
            phase: Phase::Detailed,
            first_index: inference,
            start_us: vec![t_us],
            latency_ns: vec![latency_ns],
            late_ns: Vec::new(),
        };
        put(t_us, run, Event::Inferences(batch));
        // Ops of 1,000 to 50,000 cycles that vary by a few per cent, like measured ones.
        let values = (1..=ops as u64).map(|op| (1000 + op * 331) * (100_000 + noise() % 4_000) / 100_000).collect();
        put(t_us, run, Event::OpTimes(OpSample { inference, values }));
        let metric = Metric {
            name: "Accelerator (execute) time".to_owned(),
            unit: "us".to_owned(),
            value: latency_ns as f64 / 1e3 - 50.0,
        };
        put(t_us, run, Event::Metrics(MetricSample { phase: Phase::Detailed, inference, metrics: vec![metric] }));
        t_us += 1_000;
    }
    put(t_us, run, Event::RunFinished { status: RunStatus::Ok });
}
