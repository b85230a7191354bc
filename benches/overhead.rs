//! The cost of measuring: a run's measuring loop against a bare graphExecute loop in the same process, on the
//! real CPU backend. Needs the runtime that `./test.sh` installs.

use criterion::{Criterion, criterion_group, criterion_main};
use qnnscope::backends::qnn::api::{
    Backend, Composition, Context, Device, DeviceTarget, Dlc, Execution, GraphOptions, Library, Logger, SystemLibrary,
    VersionPolicy,
};
use qnnscope::backends::qnn::runner::emit::Emitter;
use qnnscope::backends::qnn::runner::measure::Loop;
use qnnscope::event::{Budget, LogLevel, Phase};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Inferences per turn; the two loops alternate, so that machine drift affects both.
const TURN: u64 = 100;
const TURNS: u32 = 40;

fn runtime() -> PathBuf {
    let root = std::env::var_os("QNNSCOPE_TEST_RUNTIMES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-runtimes"), PathBuf::from);
    let runtimes = std::fs::read_dir(root.join("runtimes")).into_iter().flatten().flatten();
    runtimes
        .map(|entry| entry.path())
        .find(|path| path.join("libQnnCpu.so").exists())
        .unwrap_or_else(|| panic!("no runtime with a CPU backend under {}; run ./test.sh", root.display()))
}

fn execution(model: &str) -> Execution {
    let runtime = runtime();
    let library =
        Library::open(&runtime.join("libQnnCpu.so"), VersionPolicy::KnownOnly).expect("the CPU library opens");
    let system = SystemLibrary::open(&runtime.join("libQnnSystem.so")).expect("the system library opens");
    let logger = Logger::create(&library, LogLevel::Error).expect("a logger");
    let backend = Backend::create(&logger).expect("a backend");
    let (device, _) = Device::create(&backend, DeviceTarget::default()).expect("a device");
    let context = Context::create(&device).expect("a context");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(model);
    let (graphs, _) = Dlc::open(&system, &path)
        .expect("the DLC opens")
        .compose(&Composition::into_context(&context, GraphOptions::default()));
    let entry = graphs.expect("it composes").swap_remove(0);
    let graph = context.graph(&entry.name).expect("the graph is there");
    graph.finalize(None).expect("it finalizes");
    Execution::new(graph, entry.inputs, entry.outputs).expect("buffers")
}

fn bare(execution: &mut Execution, inferences: u64) -> Duration {
    let begun = Instant::now();
    for _ in 0..inferences {
        execution.run(None).expect("it runs");
    }
    begun.elapsed()
}

fn measured(execution: &mut Execution, emitter: &Emitter, inferences: u64) -> Duration {
    let stop = AtomicBool::new(false);
    let sets = [];
    let begun = Instant::now();
    Loop { emitter, execution, sets: &sets, stop: &stop, rate_hz: None }
        .run(Phase::Clean, 0, Budget::Iterations(inferences), None, |_, _| {})
        .expect("it runs");
    begun.elapsed()
}

fn overhead(c: &mut Criterion) {
    let emitter = Emitter::new(File::create("/dev/null").expect("/dev/null opens"));
    let mut execution = execution("qnnscope-demo-float.dlc");
    bare(&mut execution, 2 * TURN);
    if !std::env::args().any(|argument| argument == "--test") {
        let mut ratios: Vec<f64> = (0..TURNS)
            .map(|turn| {
                // The order alternates from turn to turn.
                let (with, without) = if turn % 2 == 0 {
                    let with = measured(&mut execution, &emitter, TURN);
                    (with, bare(&mut execution, TURN))
                } else {
                    let without = bare(&mut execution, TURN);
                    (measured(&mut execution, &emitter, TURN), without)
                };
                with.as_secs_f64() / without.as_secs_f64()
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let at = |quarter: usize| ratios[(ratios.len() - 1) * quarter / 4];
        println!(
            "overhead: measured / bare, {TURNS} turns of {TURN} inferences: median {:.4}, quartiles {:.4} to {:.4}",
            at(2),
            at(1),
            at(3)
        );
    }
    let mut group = c.benchmark_group("inference");
    group.bench_function("bare", |b| b.iter_custom(|n| bare(&mut execution, n)));
    group.bench_function("measured", |b| b.iter_custom(|n| measured(&mut execution, &emitter, n)));
    group.finish();
}

criterion_group!(benches, overhead);
criterion_main!(benches);
