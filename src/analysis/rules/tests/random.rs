//! All rules on random graphs: nothing panics, nothing is promised that is not there.

use super::case::{rows, run, store};
use super::check;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{
    Budget, Event, InferenceBatch, Metric, MetricSample, OpSample, OpUnit, Phase, RunPlan, Setting, SettingOutcome,
};
use crate::models::{DataType, Graph, Op, Quantization, Tensor, TensorKind};
use proptest::prelude::*;
use serde_json::json;

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_promised_that_is_not_there(
        mut ops in prop::collection::vec(op(), 0..40),
        times in prop::collection::vec(prop_oneof![Just(0u64), 1u64..1_000_000, Just(u64::MAX / 64)], 40),
        latencies in prop::collection::vec(1u64..10_000_000_000, 0..80),
        metrics in prop::collection::vec(prop_oneof![Just(0.0f64), 0.0..1e9, Just(f64::NAN), Just(-5.0)], 12),
        backend in prop::sample::select(&Backend::ALL[..]),
        simulated in any::<bool>(),
        soc in prop::sample::select(&["57", "30", "68", "0", "x"][..]),
        vtcm in prop::sample::select(&["0", "8", "999999", "-"][..]),
    ) {
        for (index, op) in (0..).zip(&mut ops) {
            (op.index, op.name) = (index, format!("op{index}"));
        }
        let edge = |kind: TensorKind| ops.iter().flat_map(|op| op.inputs.iter().chain(&op.outputs)).filter(|t| t.kind == kind).cloned().collect();
        let graph = Graph {
            name: "g\"{}".to_owned(), inputs: edge(TensorKind::Input), outputs: edge(TensorKind::Output), parameter_bytes: 0, ops: ops.clone(),
        };
        let applied = |key: &str, value: &str| Event::SettingApplied(Setting {
            key: key.to_owned(), value: value.to_owned(), outcome: SettingOutcome::Applied,
        });
        let values = times[..ops.len()].to_vec();
        let metrics = METRICS.iter().zip(&metrics).map(|(name, value)| Metric { name: (*name).to_owned(), unit: "us".to_owned(), value: *value });
        let store = store(vec![
            Event::RunStarted(Box::new(RunPlan {
                device: "local".to_owned(), backend, model: "m'odel {run}\u{1b}".to_owned(), warmup: 0, budget: Budget::Iterations(1),
                profiling: ProfilingLevel::Detailed, profiling_budget: None, simulated, driver: crate::event::Driver::Runner,
                energy_while_charging: false,
            })),
            applied("--soc-model", soc),
            applied("htp_config.vtcm_mb", vtcm),
            Event::GraphComposed(Box::new(graph.clone())),
            Event::GraphComposed(Box::new(graph.clone())),
            Event::Inferences(InferenceBatch {
                phase: Phase::Clean, first_index: 0, start_us: (0..latencies.len() as u64).map(|i| i * 10_000_000).collect(), latency_ns: latencies,
            }),
            Event::OpsDeclared(rows(&graph, OpUnit::Cycles)),
            Event::OpTimes(OpSample { inference: 0, values }),
            Event::Metrics(MetricSample { phase: Phase::Detailed, inference: 0, metrics: metrics.collect() }),
        ]);
        for finding in super::findings(&store, run(&store)) {
            check(&finding, &store);
            let snippets = finding.suggestion.unwrap().snippets;
            prop_assert!(!snippets.iter().any(|snippet| snippet.contains(char::is_control)));
        }
    }
}
