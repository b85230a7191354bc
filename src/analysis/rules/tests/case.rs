//! A run in a few words: what a rule is tried on.

use crate::backends::{Backend, ProfilingLevel};
use crate::devices::Root;
use crate::event::{
    Budget, Cluster, Confound, CounterInfo, CounterSample, CounterSet, DeviceFacts, DeviceInfo, DeviceKind, Driver,
    Event, Failure, InferenceBatch, Metric, MetricSample, ModelInfo, OpRow, OpSample, OpUnit, Phase, Record, RunId,
    RunPlan, RunStatus, Setting, SettingOutcome, SocFacts, Stage,
};
use crate::models::{
    ContextBinaryInfo, ContextGraphInfo, DataType, Graph, ModelFormat, Op, Quantization, Tensor, TensorKind,
};
use crate::store::{Run, Store};
use serde::Deserialize;
use std::collections::BTreeMap;

const ID: RunId = RunId(0);

/// One case of a rule.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// The rule that it is about.
    pub rule: String,
    /// Whether the rule speaks.
    pub fires: bool,
    /// The layers that it must name, worst first.
    #[serde(default)]
    pub names: Option<Vec<String>>,
    #[serde(default = "htp")]
    backend: Backend,
    #[serde(default)]
    simulated: bool,
    /// A phone behind adb, or this machine.
    #[serde(default)]
    phone: bool,
    /// `SM8650`, which a phone tells and a simulation is asked for.
    soc: Option<String>,
    #[serde(default = "ufixed8")]
    dtype: String,
    /// An op per line: `TIME TYPE NAME {PARAMETERS}: TENSORS -> TENSORS`; see [`tensor`].
    #[serde(default)]
    graph: String,
    /// A second graph of the model.
    #[serde(default)]
    second_graph: String,
    #[serde(default = "hundred")]
    inferences: u64,
    #[serde(default = "millisecond")]
    latency_us: u64,
    first_us: Option<u64>,
    /// Latency of the last inference; those between are on a line.
    last_us: Option<u64>,
    #[serde(default)]
    metrics: BTreeMap<String, f64>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    finalize_us: Option<f64>,
    #[serde(default)]
    confounds: Vec<String>,
    failed_at: Option<String>,
    #[serde(default)]
    net_run: bool,
    model_bytes: Option<u64>,
    binary: Option<Binary>,
    /// Highest clock of each cluster of four cores, MHz.
    #[serde(default)]
    clusters: Vec<u64>,
    /// Counters of the device: values over the clean phase.
    #[serde(default)]
    counters: BTreeMap<String, Vec<f64>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Binary {
    vtcm_mb: Option<u64>,
    hvx_threads: Option<u64>,
    optimization_level: Option<u32>,
}

fn htp() -> Backend {
    Backend::Htp
}

fn ufixed8() -> String {
    "ufixed8".to_owned()
}

fn hundred() -> u64 {
    100
}

fn millisecond() -> u64 {
    1000
}

impl Case {
    /// The store after such a run.
    pub fn store(&self) -> Store {
        let mut events = vec![self.plan(), self.device()];
        events.extend(self.before());
        let (graph, times) = graph("first", &self.graph, &self.dtype);
        let rows = rows(&graph, if self.backend == Backend::Htp { OpUnit::Cycles } else { OpUnit::Us });
        if !graph.ops.is_empty() {
            events.push(Event::GraphComposed(Box::new(graph)));
        }
        if !self.second_graph.is_empty() {
            events.push(Event::GraphComposed(Box::new(self::graph("second", &self.second_graph, &self.dtype).0)));
        }
        if let Some(stage) = &self.failed_at {
            let stage = Stage::ALL.into_iter().find(|known| known.name() == stage).unwrap();
            events.push(Event::Failed(Box::new(Failure::new(stage, "graphFinalize", "refused with 1002"))));
            events.push(Event::RunFinished { status: RunStatus::Failed });
        } else {
            events.extend(self.inferences());
            if times.iter().any(|time| *time > 0) {
                events.push(Event::OpsDeclared(rows));
                events.push(Event::OpTimes(OpSample { inference: 0, values: times }));
            }
            events.push(self.metrics());
            events.extend(self.counters());
            events.push(Event::RunFinished { status: RunStatus::Ok });
        }
        store(events)
    }

    fn plan(&self) -> Event {
        Event::RunStarted(Box::new(RunPlan {
            device: self.device_id().to_owned(),
            backend: self.backend,
            model: "my model.dlc".to_owned(),
            warmup: 5,
            budget: Budget::Iterations(self.inferences),
            profiling: ProfilingLevel::Detailed,
            profiling_budget: None,
            simulated: self.simulated,
            driver: if self.net_run { Driver::NetRun } else { Driver::Runner },
            energy_while_charging: false,
        }))
    }

    fn device_id(&self) -> &'static str {
        if self.phone { "PHONE" } else { "local" }
    }

    fn device(&self) -> Event {
        let (kind, abi) = if self.phone { (DeviceKind::Adb, "arm64-v8a") } else { (DeviceKind::Local, "x86_64") };
        Event::DeviceSeen(DeviceInfo {
            id: self.device_id().to_owned(),
            kind,
            model: None,
            soc: None,
            hexagon_arch: None,
            abi: abi.to_owned(),
            os: "test".to_owned(),
        })
    }

    /// What comes before the graph: facts of the device, model, settings, stages.
    fn before(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut settings = self.settings.clone();
        if self.phone {
            events.push(Event::DeviceDescribed(Box::new(self.facts())));
        } else if let Some(soc) = &self.soc {
            let number = crate::devices::soc_by_part(soc).and_then(|soc| soc.soc_model).unwrap();
            settings.insert("--soc-model".to_owned(), number.to_string());
        }
        events.push(Event::ModelIdentified(Box::new(ModelInfo {
            path: "my model.dlc".to_owned(),
            format: if self.binary.is_some() { ModelFormat::ContextBinary } else { ModelFormat::Dlc },
            sha256: String::new(),
            bytes: self.model_bytes.unwrap_or(1000),
            context_binary: self.binary.as_ref().map(Binary::info),
        })));
        for (key, value) in settings {
            events.push(Event::SettingApplied(Setting { key, value, outcome: SettingOutcome::Applied }));
        }
        if let Some(duration_us) = self.finalize_us {
            events.push(Event::StageFinished { stage: Stage::Finalize, duration_us });
        }
        let confound =
            |id: &String| Confound { id: id.clone(), observation: format!("seen: {id}"), advice: String::new() };
        events.push(Event::ConfoundsFound(self.confounds.iter().map(confound).collect()));
        events
    }

    fn facts(&self) -> DeviceFacts {
        let clusters = self.clusters.iter().enumerate().map(|(number, mhz)| {
            let first = u32::try_from(number).unwrap() * 4;
            Cluster {
                cpus: (first..first + 4).collect(),
                min_freq_hz: None,
                max_freq_hz: Some(mhz * 1_000_000),
                governor: None,
            }
        });
        DeviceFacts {
            id: "PHONE".to_owned(),
            model: None,
            soc: SocFacts { part: self.soc.clone(), ..SocFacts::default() },
            os: String::new(),
            build: None,
            kernel: None,
            abi: "arm64-v8a".to_owned(),
            gpu: None,
            clusters: clusters.collect(),
            shell_uid: None,
            root: Root::None,
            selinux: None,
            free_bytes: None,
            memory_bytes: None,
            memory_available_bytes: None,
            nodes: Vec::new(),
            battery: None,
            thermal_status: None,
            hottest_celsius: None,
            power_save: None,
            screen_on: None,
            busy_processes: Vec::new(),
        }
    }

    fn inferences(&self) -> Vec<Event> {
        let batch = |phase, latencies: Vec<u64>| {
            let mut now = 1_000_000;
            let starts = latencies.iter().map(|us| {
                now += us;
                now - us
            });
            let start_us = starts.collect();
            let latency_ns = latencies.iter().map(|us| us * 1000).collect();
            Event::Inferences(InferenceBatch { phase, first_index: 0, start_us, latency_ns })
        };
        let last = self.last_us.unwrap_or(self.latency_us);
        let steps = self.inferences.saturating_sub(1).max(1);
        let at = |i: u64| (self.latency_us * (steps - i.min(steps)) + last * i.min(steps)) / steps;
        vec![
            batch(Phase::First, vec![self.first_us.unwrap_or(self.latency_us)]),
            batch(Phase::Clean, (0..self.inferences).map(at).collect()),
        ]
    }

    fn metrics(&self) -> Event {
        let unit = |name: &str| if name.contains("cycles") { "cycles" } else { "us" };
        let metric =
            |(name, value): (&String, &f64)| Metric { name: name.clone(), unit: unit(name).to_owned(), value: *value };
        Event::Metrics(MetricSample {
            phase: Phase::Detailed,
            inference: 0,
            metrics: self.metrics.iter().map(metric).collect(),
        })
    }

    fn counters(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (set, (id, values)) in (1..).zip(&self.counters) {
            let info = CounterInfo {
                id: id.clone(),
                label: id.clone(),
                unit: String::new(),
                maximum: None,
                unavailable: None,
            };
            let device = "PHONE".to_owned();
            events.push(Event::CounterSetDeclared(CounterSet { set, device, period_us: 0, counters: vec![info] }));
            for (i, value) in (0..).zip(values) {
                let t_us = 1_000_000 + i * self.latency_us;
                events.push(Event::Counters(CounterSample { set, t_us, values: vec![Some(*value)] }));
            }
        }
        events
    }
}

impl Binary {
    fn info(&self) -> ContextBinaryInfo {
        ContextBinaryInfo {
            info_version: 3,
            backend_id: 6,
            build_id: String::new(),
            core_api: String::new(),
            backend_api: String::new(),
            soc_version: None,
            soc_model: None,
            hexagon_arch: None,
            blob_version: String::new(),
            blob_bytes: 0,
            graphs: vec![ContextGraphInfo {
                name: "first".to_owned(),
                inputs: Vec::new(),
                outputs: Vec::new(),
                spill_fill_bytes: None,
                vtcm_bytes: self.vtcm_mb.map(|mb| mb << 20),
                optimization_level: self.optimization_level,
                hvx_threads: self.hvx_threads,
            }],
        }
    }
}

/// A store that has seen these events of run 0.
pub fn store(events: Vec<Event>) -> Store {
    let mut store = Store::new();
    for (seq, event) in (0..).zip(events) {
        store.apply(&Record { seq, t_us: seq, run: Some(ID), event });
    }
    store
}

/// The run of a case.
pub fn run(store: &Store) -> &Run {
    store.run(ID).unwrap()
}

/// A row per op.
pub fn rows(graph: &Graph, unit: OpUnit) -> Vec<OpRow> {
    graph.ops.iter().map(|op| OpRow { name: op.name.clone(), op: Some(op.index), unit }).collect()
}

/// A graph and the time of each op from its lines.
pub fn graph(name: &str, text: &str, dtype: &str) -> (Graph, Vec<u64>) {
    let mut known: BTreeMap<String, Tensor> = BTreeMap::new();
    let mut ops: Vec<Op> = Vec::new();
    let mut times = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // Parameters are JSON, which has colons as well.
        let (head, body) = match line.split_once("}: ") {
            Some((head, body)) => (format!("{head}}}"), body),
            None => {
                line.split_once(": ").map(|(head, body)| (head.to_owned(), body)).unwrap_or_else(|| panic!("{line}"))
            }
        };
        let (head, params) = head.split_once(" {").map_or((&*head, "{}".to_owned()), |(h, p)| (h, format!("{{{p}")));
        let [time, op_type, op_name] = head.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (inputs, outputs) = body.split_once(" -> ").unwrap_or_else(|| panic!("no ` -> ` in {line}"));
        let mut list =
            |text: &str| text.split(", ").map(|text| tensor(text.trim(), dtype, &mut known)).collect::<Vec<_>>();
        let mut op = Op {
            index: u32::try_from(ops.len()).unwrap(),
            name: op_name.to_owned(),
            op_type: op_type.to_owned(),
            package: "qti.aisw".to_owned(),
            inputs: list(inputs),
            outputs: list(outputs),
            params: serde_json::from_str(&params).unwrap_or_else(|error| panic!("{params}: {error}")),
            macs: None,
            parameter_bytes: 0,
            bytes_moved: None,
        };
        let constants = op.inputs.iter().filter(|tensor| tensor.kind == TensorKind::Static);
        op.parameter_bytes = constants.filter_map(Tensor::bytes).sum();
        op.bytes_moved = Some(op.inputs.iter().chain(&op.outputs).filter_map(Tensor::bytes).sum());
        times.push(time.parse().unwrap());
        ops.push(op);
    }
    // What nobody writes is an input of the graph, what nobody reads an output.
    let written: Vec<String> = ops.iter().flat_map(|op| &op.outputs).map(|tensor| tensor.name.clone()).collect();
    let read: Vec<String> = ops.iter().flat_map(|op| &op.inputs).map(|tensor| tensor.name.clone()).collect();
    let (mut graph_inputs, mut graph_outputs) = (Vec::new(), Vec::new());
    for op in &mut ops {
        for tensor in op.inputs.iter_mut().filter(|tensor| tensor.kind == TensorKind::Native) {
            if !written.contains(&tensor.name) {
                tensor.kind = TensorKind::Input;
                graph_inputs.push(tensor.clone());
            }
        }
        for tensor in &mut op.outputs {
            if !read.contains(&tensor.name) {
                tensor.kind = TensorKind::Output;
                graph_outputs.push(tensor.clone());
            }
        }
    }
    let graph = Graph { name: name.to_owned(), inputs: graph_inputs, outputs: graph_outputs, ops, parameter_bytes: 0 };
    (graph, times)
}

/// `NAME SHAPE:TYPE` is a tensor, `NAME=SHAPE:TYPE@OFFSET` a constant; type and offset may be left out, and all but the
/// name of a tensor that was seen before.
fn tensor(text: &str, dtype: &str, known: &mut BTreeMap<String, Tensor>) -> Tensor {
    if let Some(tensor) = known.get(text) {
        return tensor.clone();
    }
    let (name, rest, kind) = match text.split_once('=') {
        Some((name, rest)) => (name, rest, TensorKind::Static),
        None => {
            let (name, rest) = text.split_once(' ').unwrap_or_else(|| panic!("unknown tensor {text}"));
            (name, rest, TensorKind::Native)
        }
    };
    let (rest, offset) = rest.split_once('@').map_or((rest, None), |(rest, offset)| (rest, Some(offset)));
    let (shape, dtype) = rest.split_once(':').unwrap_or((rest, dtype));
    let dtype: DataType = serde_json::from_value(dtype.into()).unwrap();
    let tensor = Tensor {
        name: name.to_owned(),
        dtype,
        shape: shape.split('x').map(|d| d.parse().unwrap()).collect(),
        quantization: dtype.is_fixed_point().then(|| Quantization::ScaleOffset {
            scale: 0.5,
            // The middle of an unsigned type unless another is given.
            offset: offset.map_or(if dtype.name() == "ufixed8" { -128 } else { 0 }, |offset| offset.parse().unwrap()),
            bitwidth: None,
        }),
        kind,
    };
    known.insert(name.to_owned(), tensor.clone());
    tensor
}
