//! Suggestions for a run of 5,000 ops.

#![allow(missing_docs, clippy::unwrap_used, reason = "benchmark")]

use criterion::{Criterion, criterion_group, criterion_main};
use qnnscope::analysis::rules;
use qnnscope::backends::{Backend, ProfilingLevel};
use qnnscope::event::{
    Budget, Constraints, Driver, Event, InferenceBatch, Mode, OpRow, OpSample, OpUnit, Phase, Record, RunId, RunPlan,
    now_us,
};
use qnnscope::models::{DataType, Graph, Op, Tensor, TensorKind};
use qnnscope::store::Store;
use std::hint::black_box;

const OPS: u32 = 5000;
const INFERENCES: u64 = 10_000;

fn tensor(name: String, kind: TensorKind, shape: &[u32]) -> Tensor {
    Tensor { name, dtype: DataType(0x0408), shape: shape.to_vec(), quantization: None, kind }
}

/// A chain in which every pattern of the rules occurs repeatedly.
fn graph() -> Graph {
    let types = [
        ("Conv2d", 0),
        ("Prelu", 0),
        ("ElementWiseBinary", 2),
        ("Transpose", 0),
        ("ReduceMean", 0),
        ("ElementWiseBinary", 18),
        ("ElementWiseBinary", 13),
        ("ReduceMean", 0),
        ("ElementWiseBinary", 0),
        ("ElementWiseUnary", 15),
        ("Convert", 0),
        ("Softmax", 0),
    ];
    let op = |index: u32| {
        let (op_type, operation) = types[index as usize % types.len()];
        let input =
            |back: u32| tensor(format!("t{}", index.saturating_sub(back)), TensorKind::Native, &[1, 40, 40, 24]);
        let weights = tensor(format!("w{index}"), TensorKind::Static, &[3, 3, 24, 24]);
        let inputs = if index.is_multiple_of(2) { vec![input(0), weights] } else { vec![input(0), input(1)] };
        Op {
            index,
            name: format!("op_{index}"),
            op_type: op_type.to_owned(),
            package: "qti.aisw".to_owned(),
            inputs,
            outputs: vec![tensor(format!("t{}", index + 1), TensorKind::Native, &[1, 40, 40, 24])],
            params: [("operation".to_owned(), operation.into()), ("axis".to_owned(), 3.into())].into_iter().collect(),
            macs: Some(1000),
            parameter_bytes: 5184,
            bytes_moved: Some(80_000),
        }
    };
    Graph { name: "g".to_owned(), inputs: vec![], outputs: vec![], ops: (0..OPS).map(op).collect(), parameter_bytes: 0 }
}

fn store() -> Store {
    let graph = graph();
    let row = |op: &Op| OpRow { name: op.name.clone(), op: Some(op.index), unit: OpUnit::Cycles, htp_op: None };
    let rows = graph.ops.iter().map(row).collect();
    let plan = RunPlan {
        device: "local".to_owned(),
        backend: Backend::Htp,
        model: "model.dlc".to_owned(),
        warmup: 0,
        budget: Budget::Iterations(INFERENCES),
        profiling: ProfilingLevel::Detailed,
        profiling_budget: None,
        simulated: false,
        driver: Driver::Runner,
        energy_while_charging: false,
        mode: Mode::default(),
        constraints: Constraints::default(),
    };
    let batch = InferenceBatch {
        phase: Phase::Clean,
        first_index: 0,
        start_us: (0..INFERENCES).map(|i| i * 1000).collect(),
        latency_ns: (0..INFERENCES).map(|i| 900_000 + i % 7919).collect(),
        late_ns: Vec::new(),
    };
    let events = [
        Event::RunStarted(Box::new(plan)),
        Event::GraphComposed(Box::new(graph)),
        Event::Inferences(batch),
        Event::OpsDeclared(rows),
        Event::OpTimes(OpSample { inference: 0, values: (0..u64::from(OPS)).map(|i| 100 + i % 977).collect() }),
    ];
    let mut store = Store::new();
    for (seq, event) in (0..).zip(events) {
        store.apply(&Record { seq, t_us: now_us(), run: Some(RunId(0)), event });
    }
    store
}

fn suggestions(c: &mut Criterion) {
    let store = store();
    let run = store.run(RunId(0)).unwrap();
    assert!(rules::findings(&store, run).len() >= 3);
    c.bench_function("suggestions of 5,000 ops and 10,000 inferences", |b| {
        b.iter(|| black_box(rules::findings(black_box(&store), run)));
    });
}

criterion_group!(benches, suggestions);
criterion_main!(benches);
