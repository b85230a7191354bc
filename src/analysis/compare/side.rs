//! The data a comparison needs about a run, from the store or from a file.

use super::around::Around;
use super::latency::SideLatency;
use super::precision::GraphFacts;
use crate::analysis::{crowded, energy};
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{DeviceKind, Driver, Mode, OpUnit, OutputsJudged, RunStatus, SettingOutcome, Stage, TensorData};
use crate::models::{Graph, Op, TensorKind};
use crate::store::{CounterSeries, Run, Store};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Units of the compared counters: clocks, temperatures, power, shares.
const COUNTER_UNITS: [&str; 4] = ["MHz", "°C", "W", "%"];

/// One run as a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// Where it comes from: `a.json`, `a.json#2`, or empty for the live session.
    pub origin: String,
    /// Backend.
    pub backend: Backend,
    /// Device id.
    pub device: String,
    /// SoC or product name of the device, if known.
    pub device_model: Option<String>,
    /// True if the hardware was only emulated.
    pub simulated: bool,
    /// What ran the inferences.
    pub driver: Driver,
    /// Profiling level of the latencies.
    pub clean_level: ProfilingLevel,
    /// Path of the model as given.
    pub model: Option<String>,
    /// SHA-256 of the model file.
    pub model_sha256: Option<String>,
    /// Build id of the backend library.
    pub build_id: Option<String>,
    /// Settings and their outcomes.
    pub settings: Vec<SideSetting>,
    /// How it was measured.
    pub mode: Mode,
    /// Warm-up inferences per launch.
    pub warmup: u64,
    /// Seed of random input data.
    pub seed: Option<u64>,
    /// Where input data came from.
    pub inputs: Vec<TensorData>,
    /// Why it failed.
    pub failure: Option<SideFailure>,
    /// Durations of its stages, microseconds.
    pub stages_us: Vec<(Stage, f64)>,
    /// First inference, microseconds.
    pub first_us: Option<f64>,
    /// Latency of the clean phase, from the planned starts if paced.
    pub latency: Option<SideLatency>,
    /// Execution time of the inferences alone, if the run was paced.
    pub service: Option<SideLatency>,
    /// Inferences per second.
    pub throughput_ips: Option<f64>,
    /// Peak resident set, bytes.
    pub memory_peak: Option<f64>,
    /// Growth of the resident set during loading, bytes.
    pub memory_delta: Option<f64>,
    /// CPU use, per cent of one core.
    pub cpu_percent: Option<f64>,
    /// Energy per inference, mJ.
    pub energy_mj: Option<f64>,
    /// Mean power, W.
    pub power_w: Option<f64>,
    /// Counters during the clean phase.
    pub counters: Vec<SideCounter>,
    /// Ops in graph order, then rows added by the backend.
    pub ops: Vec<SideOp>,
    /// True if op times are derived from cycles.
    pub op_time_derived: bool,
    /// Files of saved outputs.
    pub outputs: Vec<String>,
    /// How far its outputs are from known correct ones.
    pub judged: Option<OutputsJudged>,
    /// The properties of the graph, if known.
    pub facts: Option<GraphFacts>,
    /// The surroundings of its inferences, if a user's program runs them.
    pub around: Option<Around>,
    /// Other processes' share of the CPU that the run needed, if large.
    pub crowded: Option<String>,
    /// How several runs were combined into this one, if so.
    pub together: Option<String>,
    /// What is missing from it, and why.
    pub notes: Vec<String>,
}

/// A setting that was requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SideSetting {
    /// Key as given.
    pub key: String,
    /// Value as text.
    pub value: String,
    /// True if it was applied.
    pub applied: bool,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideFailure {
    /// Stage.
    pub stage: Stage,
    /// The call that failed.
    pub call: String,
    /// QNN error code.
    pub code: Option<u64>,
    /// One sentence.
    pub message: String,
    /// Name of the refused op, if the failure names one.
    pub op: Option<String>,
}

/// A counter during the clean phase of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideCounter {
    /// Stable id.
    pub id: String,
    /// Unit.
    pub unit: String,
    /// Mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Number of readings.
    pub samples: u64,
}

/// One op of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SideOp {
    /// Name without the backend's decoration.
    pub name: String,
    /// Op type; `None` for rows added by the backend.
    pub op_type: Option<String>,
    /// Multiply-accumulates.
    pub macs: Option<u64>,
    /// Share of the clean mean latency, microseconds; `None` if the backend reported no time or 0.
    pub time_us: Option<f64>,
    /// Index of the op that produces its first input.
    pub producer: Option<usize>,
}

impl Side {
    /// From a run in the store, which may still be active.
    pub fn of(store: &Store, run: &Run) -> Self {
        let device = store.device(&run.plan.device);
        let energy = energy(store, run).ok();
        Self {
            origin: String::new(),
            backend: run.plan.backend,
            device: run.plan.device.clone(),
            device_model: device.and_then(|device| device.soc.clone().or_else(|| device.model.clone())),
            simulated: run.plan.simulated,
            driver: run.plan.driver,
            clean_level: run.plan.clean_profiling(),
            model: Some(run.plan.model.clone()),
            model_sha256: run.model.as_ref().map(|model| model.sha256.clone()),
            build_id: run.runtime.as_ref().and_then(|runtime| runtime.build_id.clone()),
            settings: run
                .settings
                .iter()
                .map(|setting| SideSetting {
                    key: setting.key.clone(),
                    value: setting.value.clone(),
                    applied: setting.outcome == SettingOutcome::Applied,
                })
                .collect(),
            mode: run.plan.mode.clone(),
            warmup: run.warmup.count() / run.warmup.launch_count().max(1) as u64,
            seed: run.seed,
            inputs: run.inputs.clone(),
            failure: failure(run),
            stages_us: run.stages.iter().map(|time| (time.stage, time.duration_us)).collect(),
            first_us: run.first_us(),
            latency: (!run.clean.is_empty()).then(|| SideLatency::of(&run.clean)),
            service: run.pace.as_ref().filter(|_| !run.clean.is_empty()).map(|pace| SideLatency::of(&pace.service)),
            throughput_ips: run.throughput_ips(),
            memory_peak: run.memory.rss_peak.map(|bytes| bytes as f64),
            memory_delta: run.memory.rss_delta().map(|bytes| bytes as f64),
            cpu_percent: run.cpu_utilization_percent(),
            energy_mj: energy.map(|energy| energy.per_inference_mj),
            power_w: energy.map(|energy| energy.average_power_w),
            counters: counters(store, run),
            ops: ops(run),
            op_time_derived: run.ops.unit() == Some(OpUnit::Cycles),
            outputs: run.outputs.clone(),
            judged: run.judged.clone(),
            facts: GraphFacts::of_run(run),
            around: Around::of(store, run),
            crowded: crowded(store, run),
            together: None,
            notes: Vec::new(),
        }
    }

    /// From a run whose stream has ended: without an end event, it failed.
    pub fn of_ended(store: &Store, run: &Run) -> Self {
        let mut side = Self::of(store, run);
        if !run.is_ended() && side.failure.is_none() {
            side.failure = Some(SideFailure {
                stage: run.last_stage(),
                call: "session".to_owned(),
                code: None,
                message: "the session ended before the run did".to_owned(),
                op: None,
            });
        }
        side
    }

    /// Display name: backend, and whether simulated.
    pub fn name(&self) -> String {
        format!("{}{}", self.backend, if self.simulated { " [simulated]" } else { "" })
    }

    /// Its file without the run number; empty for the live session.
    pub fn file(&self) -> &str {
        match self.origin.rsplit_once('#') {
            Some((file, run)) if run.parse::<usize>().is_ok() => file,
            _ => &self.origin,
        }
    }

    /// True if it has figures to compare.
    pub fn is_measured(&self) -> bool {
        self.latency.is_some()
    }
}

fn failure(run: &Run) -> Option<SideFailure> {
    match (&run.failure, run.status()) {
        (Some(failure), _) => Some(SideFailure {
            stage: failure.stage,
            call: failure.call.clone(),
            code: failure.code,
            message: failure.message.clone(),
            op: refused_op(&failure.message),
        }),
        (None, Some(RunStatus::Failed)) => Some(SideFailure {
            stage: run.last_stage(),
            call: "run".to_owned(),
            code: None,
            message: "it failed without an error message".to_owned(),
            op: None,
        }),
        _ => None,
    }
}

/// The op named in a failure's message: the runner uses this wording when a backend refuses an op.
pub fn refused_op(message: &str) -> Option<String> {
    let rest = message.strip_prefix("op `")?;
    let (name, rest) = rest.split_once("` (")?;
    rest.contains(") was refused by").then(|| name.to_owned())
}

/// Counters of the run's machine during its clean phase.
pub fn counters(store: &Store, run: &Run) -> Vec<SideCounter> {
    let windows_us = run.clean.windows_us();
    let device = store.device_counters().series().iter().filter(|known| known.device == run.plan.device);
    let is_here = store.device(&run.plan.device).is_none_or(|device| device.kind == DeviceKind::Local);
    let own: Vec<&CounterSeries> =
        if is_here { store.counters().iter().collect() } else { device.map(|known| &known.series).collect() };
    let during = |series: &CounterSeries| {
        if !COUNTER_UNITS.contains(&series.info.unit.as_str()) {
            return None;
        }
        let points = series.points();
        let within = |&(from_us, to_us): &(u64, u64)| {
            let from = points.partition_point(|(t_us, _)| *t_us < from_us);
            points.range(from..).take_while(move |(t_us, _)| *t_us <= to_us).filter_map(|(_, value)| *value)
        };
        let values = windows_us.iter().flat_map(within);
        let mut counter = SideCounter {
            id: series.info.id.clone(),
            unit: series.info.unit.clone(),
            mean: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            samples: 0,
        };
        for value in values {
            counter.samples += 1;
            counter.mean += value;
            counter.min = counter.min.min(value);
            counter.max = counter.max.max(value);
        }
        counter.mean /= counter.samples.max(1) as f64;
        (counter.samples > 0).then_some(counter)
    };
    own.into_iter().filter_map(during).collect()
}

fn ops(run: &Run) -> Vec<SideOp> {
    let rows = run.ops.rows();
    let time = |row: usize| run.scaled_op_us(row).filter(|us| *us > 0.0);
    let graph_ops = run.graph().map(|graph| graph.ops.as_slice()).unwrap_or_default();
    let row_of_op: HashMap<u32, usize> = rows.iter().enumerate().filter_map(|(at, row)| Some((row.op?, at))).collect();
    let producers = run.graph().map(producers).unwrap_or_default();
    let op = |(index, op): (usize, &Op)| SideOp {
        name: op.name.clone(),
        op_type: Some(op.op_type.clone()),
        macs: op.macs,
        time_us: row_of_op.get(&op.index).and_then(|row| time(*row)),
        producer: producers.get(index).copied().flatten(),
    };
    let made_by_backend = rows.iter().enumerate().filter(|(_, row)| row.op.is_none()).map(|(at, row)| SideOp {
        name: row.name.clone(),
        op_type: None,
        macs: None,
        time_us: time(at),
        producer: None,
    });
    graph_ops.iter().enumerate().map(op).chain(made_by_backend).collect()
}

/// For each op, the index of the op that produces its first input.
pub fn producers(graph: &Graph) -> Vec<Option<usize>> {
    let mut maker: HashMap<&str, usize> = HashMap::new();
    for (index, op) in graph.ops.iter().enumerate() {
        for output in &op.outputs {
            maker.insert(&output.name, index);
        }
    }
    let made = |tensor: &crate::models::Tensor| match tensor.kind {
        TensorKind::Static => None,
        _ => maker.get(tensor.name.as_str()).copied(),
    };
    graph.ops.iter().enumerate().map(|(index, op)| op.inputs.iter().find_map(made).filter(|at| *at != index)).collect()
}
