//! A run described in a few words, for testing a rule.

use super::graph_text::graph;
use crate::backends::{Backend, ProfilingLevel};
use crate::devices::Root;
use crate::event::{
    Budget, Cluster, Confound, Constraints, CounterInfo, CounterSample, CounterSet, DeviceFacts, DeviceInfo,
    DeviceKind, Driver, Event, Failure, InferenceBatch, Metric, MetricSample, Mode, ModelInfo, OpRow, OpSample, OpUnit,
    Phase, Record, RunId, RunPlan, RunStatus, Setting, SettingOutcome, SocFacts, Stage,
};
use crate::models::{ContextBinaryInfo, ContextGraphInfo, Graph, ModelFormat};
use crate::store::{Run, Store};
use serde::Deserialize;
use std::collections::BTreeMap;

const ID: RunId = RunId(0);

/// One test case of a rule.
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own in the file")]
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// The rule under test.
    pub rule: String,
    /// Whether the rule applies.
    pub fires: bool,
    /// The layers that it must name, worst first.
    #[serde(default)]
    pub names: Option<Vec<String>>,
    #[serde(default = "htp")]
    backend: Backend,
    #[serde(default)]
    simulated: bool,
    /// A phone behind adb instead of this machine.
    #[serde(default)]
    phone: bool,
    /// `SM8650`: what a phone reports and a simulation is made for.
    soc: Option<String>,
    #[serde(default = "ufixed8")]
    dtype: String,
    /// One op per line: `TIME TYPE NAME {PARAMETERS}: TENSORS -> TENSORS`; see [`tensor`].
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
    /// Latency of the last inference; those in between lie on a line.
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
    /// Counters of the device: values spread over the clean phase.
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
        let (first, times) = graph("first", &self.graph, &self.dtype);
        let rows = rows(&first, if self.backend == Backend::Htp { OpUnit::Cycles } else { OpUnit::Us });
        if !first.ops.is_empty() {
            events.push(Event::GraphComposed(Box::new(first)));
        }
        if !self.second_graph.is_empty() {
            events.push(Event::GraphComposed(Box::new(graph("second", &self.second_graph, &self.dtype).0)));
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
            mode: Mode::default(),
            constraints: Constraints::default(),
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

    /// Events before the graph: facts about the device, model, settings, stages.
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
            Event::Inferences(InferenceBatch { phase, first_index: 0, start_us, latency_ns, late_ns: Vec::new() })
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

/// A store fed with these events of run 0.
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

/// One row per op.
pub fn rows(graph: &Graph, unit: OpUnit) -> Vec<OpRow> {
    graph.ops.iter().map(|op| OpRow { name: op.name.clone(), op: Some(op.index), unit, htp_op: None }).collect()
}
