//! Analysing a run of 5,000 ops over 100,000 inferences, with counters and a log.

use criterion::{Criterion, criterion_group, criterion_main};
use qnnscope::analysis::{findings, summary, verdicts};
use qnnscope::backends::{Backend, ProfilingLevel};
use qnnscope::event::{
    Budget, Constraints, CounterInfo, CounterSample, Driver, Event, InferenceBatch, LogLevel, LogLine, LogSource,
    Metric, MetricSample, Mode, OpRow, OpSample, OpUnit, Phase, Record, RunId, RunPlan, RunStatus,
};
use qnnscope::models::{DataType, Graph, Op, Tensor, TensorKind};
use qnnscope::store::Store;
use std::hint::black_box;

const OPS: u32 = 5_000;
const INFERENCES: u64 = 100_000;

fn apply(store: &mut Store, t_us: u64, event: Event) {
    store.apply(&Record { seq: 0, t_us, run: Some(RunId(0)), event });
}

fn op(index: u32) -> Op {
    let tensor = |shape: &[u32], kind| Tensor {
        name: format!("t{index}"),
        dtype: DataType::FLOAT_32,
        shape: shape.to_vec(),
        quantization: None,
        kind,
    };
    let convolves = index.is_multiple_of(3);
    Op {
        index,
        name: format!("layer_{index}/op"),
        op_type: if convolves { "Conv2d" } else { "Relu" }.to_owned(),
        package: "qti.aisw".to_owned(),
        inputs: vec![tensor(&[1, 16, 16, 32], TensorKind::Native)],
        outputs: vec![tensor(&[1, 16, 16, 32], TensorKind::Native)],
        params: serde_json::Map::new(),
        macs: Some(if convolves { 2_359_296 } else { 0 }),
        parameter_bytes: 0,
        bytes_moved: Some(65_536),
    }
}

/// Latencies that drift and jump, so that every part of the analysis has something to do.
fn store() -> Store {
    let mut store = Store::new();
    let plan = RunPlan {
        device: "local".into(),
        backend: Backend::Cpu,
        model: "bench".into(),
        warmup: 0,
        budget: Budget::Iterations(INFERENCES),
        profiling: ProfilingLevel::Detailed,
        profiling_budget: None,
        simulated: false,
        driver: Driver::default(),
        energy_while_charging: false,
        mode: Mode::default(),
        constraints: Constraints::default(),
    };
    apply(&mut store, 0, Event::RunStarted(Box::new(plan)));
    let graph = Graph {
        name: "bench".into(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        ops: (0..OPS).map(op).collect(),
        parameter_bytes: 0,
    };
    apply(&mut store, 0, Event::GraphComposed(Box::new(graph)));
    let counter = |id: &str, maximum| CounterInfo {
        id: id.into(),
        label: id.into(),
        unit: "%".into(),
        maximum,
        unavailable: None,
    };
    let declared =
        vec![counter("host.cpu.busy", Some(100.0)), counter("host.load.1m", Some(8.0)), counter("host.temp.max", None)];
    apply(&mut store, 0, Event::CountersDeclared(declared));
    let (mut now_us, mut state) = (0u64, 1u64);
    let (mut start_us, mut latency_ns) = (Vec::new(), Vec::new());
    for inference in 0..INFERENCES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let slow = if state.is_multiple_of(499) { 4 } else { 1 };
        let latency = (900_000 + state % 200_000 + inference) * slow;
        start_us.push(now_us);
        latency_ns.push(latency);
        now_us += latency / 1000;
    }
    let batch = InferenceBatch { phase: Phase::Clean, first_index: 0, start_us, latency_ns, late_ns: Vec::new() };
    apply(&mut store, now_us, Event::Inferences(batch));
    for t_us in (0..now_us).step_by(20_000) {
        let share = t_us as f64 / now_us as f64;
        let values = vec![Some(50.0 + 10.0 * share), Some(2.0), Some(40.0 + 30.0 * share)];
        apply(&mut store, t_us, Event::Counters(CounterSample { set: 0, t_us, values }));
    }
    for line in 0..10_000 {
        let text = format!("line {line} of a talkative backend, as long as such lines are in the mean, or longer");
        apply(&mut store, line * now_us / 10_000, Event::Log(LogLine::new(LogLevel::Info, LogSource::Backend, &text)));
    }
    apply(&mut store, now_us, Event::CpuUsed { cpu_us: now_us as f64, wall_us: now_us as f64 });
    let rows = (0..OPS)
        .map(|op| OpRow { name: format!("layer_{op}/op"), op: Some(op), unit: OpUnit::Us, htp_op: None })
        .collect();
    apply(&mut store, now_us, Event::OpsDeclared(rows));
    for inference in 0..200 {
        let values = (0..u64::from(OPS)).map(|op| 10 + (op * 7919 + inference) % 50).collect();
        apply(&mut store, now_us, Event::OpTimes(OpSample { inference, values }));
        let metrics = vec![Metric { name: "GRAPH_EXECUTE".into(), unit: "us".into(), value: 180_000.0 }];
        apply(&mut store, now_us, Event::Metrics(MetricSample { phase: Phase::Detailed, inference, metrics }));
    }
    apply(&mut store, now_us, Event::RunFinished { status: RunStatus::Ok });
    store
}

fn analysis(c: &mut Criterion) {
    let store = store();
    let Some(run) = store.runs().first() else { return };
    c.bench_function("judge_5000_ops_100000_inferences", |b| {
        b.iter(|| {
            let verdicts = verdicts(black_box(&store), run);
            let findings = findings(&store, run);
            summary(run, &verdicts, &findings)
        });
    });
}

criterion_group!(benches, analysis);
criterion_main!(benches);
