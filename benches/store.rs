//! Folding op samples into the store, and the memory for 5,000 ops over 100,000 inferences.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use qnnscope::backends::{Backend, ProfilingLevel};
use qnnscope::event::{Budget, Event, OpRow, OpSample, OpUnit, Record, RunId, RunPlan};
use qnnscope::probes::process;
use qnnscope::store::Store;
use std::hint::black_box;

const RUN: Option<RunId> = Some(RunId(0));

fn record(event: Event) -> Record {
    Record { seq: 0, t_us: 0, run: RUN, event }
}

fn store_with(ops: usize) -> Store {
    let mut store = Store::new();
    store.apply(&record(Event::RunStarted(Box::new(RunPlan {
        device: "local".into(),
        backend: Backend::Htp,
        model: "bench".into(),
        warmup: 0,
        budget: Budget::Iterations(1),
        profiling: ProfilingLevel::Detailed,
        profiling_budget: None,
        simulated: false,
        driver: qnnscope::event::Driver::default(),
        energy_while_charging: false,
        mode: qnnscope::event::Mode::default(),
        constraints: qnnscope::event::Constraints::default(),
    }))));
    let rows = (0..ops)
        .map(|i| OpRow { name: format!("layer_{i}/conv"), op: None, unit: OpUnit::Cycles, htp_op: None })
        .collect();
    store.apply(&record(Event::OpsDeclared(rows)));
    store
}

/// Cycles as on a device: each op at its own level from hundreds to millions, 10 % noise, a rare outlier.
fn samples(ops: usize, inference: u64) -> Record {
    let mut state = inference.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let values = (0..ops)
        .map(|op| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let level = 100 + (op as u64 * 2_654_435_761 % 2_000_000);
            let noise = state % (level / 10 + 1);
            if state.is_multiple_of(1009) { (level + noise) * 8 } else { level + noise }
        })
        .collect();
    record(Event::OpTimes(OpSample { inference, values }))
}

fn fold(c: &mut Criterion) {
    let mut group = c.benchmark_group("fold_op_samples");
    for ops in [60, 500, 5000] {
        let batch: Vec<Record> = (0..20).map(|i| samples(ops, i)).collect();
        group.throughput(Throughput::Elements((ops * batch.len()) as u64));
        group.bench_with_input(BenchmarkId::from_parameter(ops), &batch, |b, batch| {
            b.iter_batched_ref(
                || store_with(ops),
                |store| {
                    for record in batch {
                        store.apply(black_box(record));
                    }
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

/// Not a timing: prints how much the process grew while folding 5,000 ops x 100,000 inferences.
fn memory(_: &mut Criterion) {
    const OPS: usize = 5000;
    const INFERENCES: u64 = 100_000;
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let records: Vec<Record> = (0..64).map(|i| samples(OPS, i)).collect();
    let before = process::memory(None).map_or(0, |memory| memory.rss);
    let mut store = store_with(OPS);
    let begun = std::time::Instant::now();
    for i in 0..INFERENCES {
        store.apply(&records[usize::try_from(i % 64).unwrap_or(0)]);
    }
    let rate = OPS as f64 * INFERENCES as f64 / begun.elapsed().as_secs_f64() / 1e6;
    let after = process::memory(None).map_or(0, |memory| memory.rss);
    println!(
        "memory: {OPS} ops x {INFERENCES} inferences grew the process by {:.1} MiB, folding {rate:.0} million samples/s",
        after.saturating_sub(before) as f64 / 1_048_576.0
    );
    black_box(store);
}

criterion_group!(benches, fold, memory);
criterion_main!(benches);
