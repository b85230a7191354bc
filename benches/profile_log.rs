//! Reading profiling logs: into events, CSV rows, text, and JSON. Single-threaded, except for the CSV.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use qnnscope::backends::profile_log::{Decoder, Events, Value, write_csv, write_json, write_text};
use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;

/// Size of the logs, in bytes; a log is a sequence of chunks, so small ones are concatenated.
const BYTES: usize = 16 << 20;

fn log(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/profile-logs").join(name);
    let once = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    once.repeat(BYTES.div_ceil(once.len()))
}

/// Reads every field that a consumer of op times needs.
fn visit(events: Events<'_>, sum: &mut u64) {
    for event in events {
        let value = if let Value::Unsigned(value) = event.value() { value } else { 0 };
        let name = event.identifier().map_or(0, |name| name.len() as u64);
        let kind = u64::from(event.event_type().name().is_ok()) + u64::from(event.unit().name().is_some());
        *sum = sum.wrapping_add(value + name + kind);
        visit(event.events(), sum);
    }
}

/// Pushes the log in pieces, as they arrive from a pipe, and visits every event.
fn decode(log: &[u8]) -> u64 {
    let (mut decoder, mut sum) = (Decoder::new(), 0);
    for piece in log.chunks(256 << 10) {
        decoder.push(piece);
        while let Ok(Some(chunk)) = decoder.next_chunk() {
            for message in chunk.messages() {
                sum += message.netrun_us();
                visit(message.events(), &mut sum);
            }
        }
    }
    assert_eq!(decoder.incomplete_bytes(), 0);
    sum
}

fn read(c: &mut Criterion) {
    for (name, file) in [
        ("net-run, 2 ops", "cpu-2op-3000inf-detailed.log"),
        ("onnxruntime, 183 ops", "ort-cpu-cls-20inf-detailed.log"),
        ("htp, 2 graphs", "htp-2graphs-5inf-detailed.log"),
    ] {
        let log = log(file);
        let mut group = c.benchmark_group("profile_log");
        group.throughput(Throughput::Bytes(log.len() as u64)).sample_size(20);
        group.bench_with_input(BenchmarkId::new("events", name), &log, |b, log| b.iter(|| decode(black_box(log))));
        group.bench_with_input(BenchmarkId::new("csv", name), &log, |b, log| {
            b.iter(|| write_csv(Cursor::new(black_box(log)), name, std::io::sink()).is_ok());
        });
        group.bench_with_input(BenchmarkId::new("text", name), &log, |b, log| {
            b.iter(|| write_text(black_box(log.as_slice()), name, std::io::sink()).is_ok());
        });
        group.bench_with_input(BenchmarkId::new("json", name), &log, |b, log| {
            b.iter(|| write_json(black_box(log.as_slice()), name, std::io::sink()).is_ok());
        });
        group.finish();
    }
}

criterion_group!(benches, read);
criterion_main!(benches);
