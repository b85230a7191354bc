//! Comparing two runs of 5,000 ops and 10,000 inferences, and aligning graphs without any names in common.

use criterion::{Criterion, criterion_group, criterion_main};
use qnnscope::analysis::compare::{CompareOptions, Key, Side, align, compare};
use qnnscope::event::{Event, InferenceBatch, OpRow, OpSample, OpUnit, Phase, Record, RunId};
use qnnscope::models::{Graph, Op};
use qnnscope::store::Store;
use std::hint::black_box;

const OPS: u32 = 5_000;
const INFERENCES: u64 = 10_000;
const TYPES: [&str; 5] = ["Conv2d", "ElementWiseNeuron", "DepthWiseConv2d", "ElementWiseBinary", "Concat"];

fn op(index: u32, renamed: bool) -> Op {
    let name = if renamed { format!("part{}/{index}x", index / 7) } else { format!("layer{index}/op") };
    Op {
        index,
        name,
        op_type: TYPES[index as usize % TYPES.len()].to_owned(),
        package: "qti.aisw".to_owned(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        params: serde_json::Map::new(),
        macs: None,
        parameter_bytes: 0,
        bytes_moved: None,
    }
}

fn store(seed: u64, renamed: bool) -> Store {
    let mut store = Store::new();
    let mut apply = |event: Event| store.apply(&Record { seq: 0, t_us: 0, run: Some(RunId(0)), event });
    let plan = serde_json::json!({
        "device": "local", "backend": "cpu", "model": "bench", "warmup": 0, "budget": {"iterations": INFERENCES},
        "profiling": "detailed", "profiling_budget": null, "simulated": false
    });
    if let Ok(plan) = serde_json::from_value(plan) {
        apply(Event::RunStarted(Box::new(plan)));
    }
    let ops: Vec<Op> = (0..OPS).map(|index| op(index, renamed)).collect();
    let rows = ops
        .iter()
        .map(|op| OpRow { name: op.name.clone(), op: Some(op.index), unit: OpUnit::Us, htp_op: None })
        .collect();
    let graph = Graph { name: "g".to_owned(), inputs: Vec::new(), outputs: Vec::new(), ops, parameter_bytes: 0 };
    apply(Event::GraphComposed(Box::new(graph)));
    apply(Event::OpsDeclared(rows));
    let mut state = seed | 1;
    let mut draw = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    for inference in 0..20 {
        apply(Event::OpTimes(OpSample { inference, values: (0..OPS).map(|_| 50 + draw(20)).collect() }));
    }
    let latency_ns: Vec<u64> = (0..INFERENCES).map(|_| 1_000_000 + draw(100_000)).collect();
    let start_us = (0..INFERENCES).map(|index| index * 1_100).collect();
    apply(Event::Inferences(InferenceBatch {
        phase: Phase::Clean,
        first_index: 0,
        start_us,
        latency_ns,
        late_ns: Vec::new(),
    }));
    store
}

fn whole(c: &mut Criterion) {
    for (name, renamed) in [("same_names", false), ("other_names", true)] {
        let (one, two) = (store(1, false), store(2, renamed));
        c.bench_function(&format!("compare_5000_ops_{name}"), |b| {
            b.iter(|| {
                let sides = [&one, &two].map(|store| Side::of(store, &store.runs()[0]));
                black_box(compare(&sides, &CompareOptions::default()))
            });
        });
    }
}

fn alignment(c: &mut Criterion) {
    let (one, two): (Vec<Op>, Vec<Op>) = (0..OPS).map(|index| (op(index, false), op(index + 1, true))).unzip();
    let keys = |ops: &'static [Op]| -> Vec<Key<'static>> {
        ops.iter().map(|op| Key { name: &op.name, op_type: Some(&op.op_type), macs: None }).collect()
    };
    let (one, two) = (keys(one.leak()), keys(two.leak()));
    c.bench_function("align_5000_ops_without_a_common_name", |b| b.iter(|| black_box(align(&one, &two))));
}

criterion_group!(benches, whole, alignment);
criterion_main!(benches);
