//! All rules on random graphs: nothing panics, and no gain is promised that is not there.

use super::case::{rows, run, store};
use super::check;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{
    Budget, Constraints, Driver, Event, InferenceBatch, Metric, MetricSample, Mode, OpSample, OpUnit, Phase, RunPlan,
    Setting, SettingOutcome,
};
use crate::models::{DataType, Graph, Op, Quantization, Tensor, TensorKind};
use crate::store::Store;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeSet;

const TYPES: [&str; 34] = [
    "Conv2d",
    "DepthWiseConv2d",
    "TransposeConv2d",
    "FullyConnected",
    "MatMul",
    "ElementWiseBinary",
    "ElementWiseNeuron",
    "ElementWiseUnary",
    "Prelu",
    "Softmax",
    "LayerNorm",
    "InstanceNorm",
    "ReduceMean",
    "PoolAvg2d",
    "Transpose",
    "Reshape",
    "Concat",
    "StridedSlice",
    "Split",
    "Quantize",
    "Dequantize",
    "Convert",
    "Cast",
    "TopK",
    "Argmax",
    "Gather",
    "NonMaxSuppression",
    "Batchnorm",
    "ElementWiseDivide",
    "ElementWiseAdd",
    "Relu",
    "Gelu",
    "SpaceToDepth",
    "NoSuchOp",
];
const DTYPES: [u32; 8] = [0x0408, 0x0416, 0x0232, 0x0216, 0x0032, 0x0308, 0x0404, 0x0999];
const METRICS: [&str; 12] = [
    "Accelerator (execute) time",
    "QNN (execute) time",
    "RPC (execute) time",
    "Accelerator (execute) time (cycles)",
    "Time for initial VTCM acquire",
    "Num times yield occured",
    "DDR spill",
    "DDR fill",
    "DDR read total",
    "DDR write total",
    "Number of HVX threads used",
    "GRAPH_EXECUTE",
];

fn tensor() -> impl Strategy<Value = Tensor> {
    let dimension = prop_oneof![4 => 0u32..300, 1 => Just(u32::MAX), 1 => Just(65_536u32)];
    let kind = prop_oneof![4 => Just(TensorKind::Native), 2 => Just(TensorKind::Static), 1 => Just(TensorKind::Input),
        1 => Just(TensorKind::Output), 1 => Just(TensorKind::Null)];
    // Few names, so that ops read one another, themselves and tensors that several ops write.
    (0u8..12, prop::sample::select(&DTYPES[..]), prop::collection::vec(dimension, 0..6), kind, -300i32..300).prop_map(
        |(name, dtype, shape, kind, offset)| Tensor {
            name: format!("t{name}"),
            dtype: DataType(dtype),
            shape,
            quantization: Some(Quantization::ScaleOffset { scale: 1.0, offset, bitwidth: None }),
            kind,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let tensors = |most| prop::collection::vec(tensor(), 0..most);
    let bytes = prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    (prop::sample::select(&TYPES[..]), tensors(4), tensors(3), -6i64..20, bytes, any::<u64>()).prop_map(
        |(op_type, inputs, outputs, number, bytes_moved, parameter_bytes)| Op {
            index: 0,
            name: String::new(),
            op_type: op_type.to_owned(),
            package: "qti.aisw".to_owned(),
            inputs,
            outputs,
            params: [
                ("operation", json!(number)),
                ("axis", json!(number)),
                ("axes", json!({"values": [1, 2, number]})),
                ("filter_size", json!({"values": [[number, 8]]})),
                ("transpose_in0", json!(number == 1)),
            ]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
            macs: None,
            parameter_bytes,
            bytes_moved,
        },
    )
}

/// A run with random ops, times, latencies, figures and settings.
type Random = (Vec<Op>, Vec<u64>, Vec<u64>, Vec<f64>, Backend, bool, &'static str, &'static str);

fn random() -> impl Strategy<Value = Random> {
    (
        prop::collection::vec(op(), 0..40),
        prop::collection::vec(prop_oneof![Just(0u64), 1u64..1_000_000, Just(u64::MAX / 64)], 40),
        prop::collection::vec(1u64..10_000_000_000, 0..80),
        prop::collection::vec(prop_oneof![Just(0.0f64), 0.0..1e9, Just(f64::NAN), Just(-5.0)], METRICS.len()),
        prop::sample::select(&Backend::ALL[..]),
        any::<bool>(),
        prop::sample::select(&["57", "30", "68", "0", "x"][..]),
        prop::sample::select(&["0", "8", "999999", "-"][..]),
    )
}

fn random_store((mut ops, times, latency_ns, metrics, backend, simulated, soc, vtcm): Random) -> Store {
    for (index, op) in (0..).zip(&mut ops) {
        (op.index, op.name) = (index, format!("op{index}"));
    }
    let tensors = ops.iter().flat_map(|op| op.inputs.iter().chain(&op.outputs));
    let edge = |kind: TensorKind| tensors.clone().filter(|tensor| tensor.kind == kind).cloned().collect();
    let graph = Graph {
        name: "g\"{}".to_owned(),
        inputs: edge(TensorKind::Input),
        outputs: edge(TensorKind::Output),
        ops: ops.clone(),
        parameter_bytes: 0,
    };
    let applied = |key: &str, value: &str| {
        let outcome = SettingOutcome::Applied;
        Event::SettingApplied(Setting { key: key.to_owned(), value: value.to_owned(), outcome })
    };
    let metric =
        |(name, value): (&&str, &f64)| Metric { name: (*name).to_owned(), unit: "us".to_owned(), value: *value };
    let start_us = (0..latency_ns.len() as u64).map(|i| i * 10_000_000).collect();
    store(vec![
        Event::RunStarted(Box::new(RunPlan {
            device: "local".to_owned(),
            backend,
            model: "m'odel {run}\u{1b}".to_owned(),
            warmup: 0,
            budget: Budget::Iterations(1),
            profiling: ProfilingLevel::Detailed,
            profiling_budget: None,
            simulated,
            driver: Driver::Runner,
            energy_while_charging: false,
            mode: Mode::default(),
            constraints: Constraints::default(),
        })),
        applied("--soc-model", soc),
        applied("htp_config.vtcm_mb", vtcm),
        Event::GraphComposed(Box::new(graph.clone())),
        Event::GraphComposed(Box::new(graph.clone())),
        Event::Inferences(InferenceBatch {
            phase: Phase::Clean,
            first_index: 0,
            start_us,
            latency_ns,
            late_ns: Vec::new(),
        }),
        Event::OpsDeclared(rows(&graph, OpUnit::Cycles)),
        Event::OpTimes(OpSample { inference: 0, values: times[..ops.len()].to_vec() }),
        Event::Metrics(MetricSample {
            phase: Phase::Detailed,
            inference: 0,
            metrics: METRICS.iter().zip(&metrics).map(metric).collect(),
        }),
    ])
}

#[test]
fn nothing_is_promised_that_is_not_there() {
    let mut runner = TestRunner::new(ProptestConfig { cases: 256, ..ProptestConfig::default() });
    let spoke = RefCell::new(BTreeSet::new());
    let result = runner.run(&random(), |random| {
        let store = random_store(random);
        for finding in super::findings(&store, run(&store)) {
            check(&finding, &store);
            let snippets = finding.suggestion.unwrap().snippets;
            prop_assert!(!snippets.iter().any(|snippet| snippet.contains(char::is_control)));
            spoke.borrow_mut().insert(finding.id);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(spoke.borrow().len() >= 8, "random runs hardly show anything: {spoke:?}");
}
