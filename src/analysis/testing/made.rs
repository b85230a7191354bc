//! Sessions made up for tests, each with just what its test needs.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small made-up numbers")]

use crate::backends::{Backend, ProfilingLevel};
use crate::event::{
    Budget, Confound, Constraints, CounterInfo, CounterSample, CounterSet, DeviceFacts, DeviceInfo, DeviceKind, Driver,
    Event, InferenceBatch, LogLevel, LogLine, LogSource, Metric, MetricSample, Mode, OpRow, OpSample, OpUnit, Phase,
    Record, RunId, RunPlan, RunStatus, Setting, SettingOutcome, SocFacts, Stage, SubStage,
};
use crate::models::{DataType, Graph, Op, Tensor, TensorKind};
use crate::store::{Run, Store};

/// Start of the clean phase in every made-up session, host monotonic microseconds.
pub const CLEAN_START_US: u64 = 100_000_000;
/// Id of the phone.
pub const PHONE: &str = "phone";
/// Counters begin this long before the clean phase and end this long after it, seconds.
const MARGIN_S: f64 = 2.0;

/// A session with one run. Every call adds something; [`Made::store`] finishes it.
pub struct Made {
    store: Store,
    plan: RunPlan,
    later: Vec<Event>,
    clean_us: Vec<Vec<f64>>,
    host: Vec<(CounterInfo, Course)>,
    phone: Vec<(CounterInfo, Course)>,
    status: RunStatus,
}

/// Value of a counter by the time since the start of the clean phase, seconds.
type Course = Box<dyn Fn(f64) -> Option<f64>>;

impl Made {
    /// A run on this machine.
    pub fn local(backend: Backend) -> Self {
        let plan = RunPlan {
            device: "local".to_owned(),
            backend,
            model: "made.dlc".to_owned(),
            warmup: 5,
            budget: Budget::Iterations(100),
            profiling: ProfilingLevel::Detailed,
            profiling_budget: None,
            simulated: false,
            driver: Driver::Runner,
            energy_while_charging: false,
            mode: Mode::default(),
            constraints: Constraints::default(),
        };
        let mut store = Store::new();
        apply(&mut store, None, Event::DeviceSeen(device("local", DeviceKind::Local)));
        let status = RunStatus::Ok;
        Self { store, plan, later: Vec::new(), clean_us: Vec::new(), host: Vec::new(), phone: Vec::new(), status }
    }

    /// A run on a phone, by the runner there.
    pub fn on_phone(backend: Backend) -> Self {
        let mut made = Self::local(backend);
        PHONE.clone_into(&mut made.plan.device);
        made.plan.driver = Driver::DeviceRunner;
        apply(&mut made.store, None, Event::DeviceSeen(device(PHONE, DeviceKind::Adb)));
        made
    }

    /// Changes the run's plan.
    pub fn plan(mut self, change: impl FnOnce(&mut RunPlan)) -> Self {
        change(&mut self.plan);
        self
    }

    /// Marks the backend as an emulation of the hardware.
    pub fn simulated(self) -> Self {
        self.plan(|plan| plan.simulated = true)
    }

    /// Sets what is known about the phone.
    pub fn facts(mut self, facts: DeviceFacts) -> Self {
        apply(&mut self.store, None, Event::DeviceDescribed(Box::new(facts)));
        self
    }

    /// Adds any event of the run before its clean phase.
    pub fn event(mut self, event: Event) -> Self {
        self.later.push(event);
        self
    }

    /// Adds something that may disturb the run, seen before it.
    pub fn confound(self, id: &str, observation: &str) -> Self {
        let confound = Confound { id: id.to_owned(), observation: observation.to_owned(), advice: "-".to_owned() };
        self.event(Event::ConfoundsFound(vec![confound]))
    }

    /// Adds a setting and its outcome.
    pub fn setting(self, key: &str, value: &str, outcome: SettingOutcome) -> Self {
        self.event(Event::SettingApplied(Setting { key: key.to_owned(), value: value.to_owned(), outcome }))
    }

    /// Adds a finished stage.
    pub fn stage(self, stage: Stage, duration_us: f64) -> Self {
        self.event(Event::StageFinished { stage, duration_us })
    }

    /// Adds a figure of the compiler.
    pub fn sub_stage(self, name: &str, value: f64, unit: &str) -> Self {
        let (name, unit) = (name.to_owned(), unit.to_owned());
        self.event(Event::SubStageFinished(SubStage { stage: Stage::Finalize, name, value, unit }))
    }

    /// Sets the graph that runs; ops get their indices here.
    pub fn graph(self, mut ops: Vec<Op>) -> Self {
        for (op, index) in ops.iter_mut().zip(0..) {
            op.index = index;
        }
        let inputs = ops.first().and_then(|op| op.inputs.first().cloned()).into_iter().collect();
        let outputs = ops.last().and_then(|op| op.outputs.first().cloned()).into_iter().collect();
        let parameter_bytes = ops.iter().map(|op| op.parameter_bytes).sum();
        self.event(Event::GraphComposed(Box::new(Graph {
            name: "made".to_owned(),
            inputs,
            outputs,
            ops,
            parameter_bytes,
        })))
    }

    /// Adds ten detailed inferences with these values, one row per op in the graph's order.
    pub fn op_times(self, unit: OpUnit, values: &[u64]) -> Self {
        let rows: Vec<OpRow> = (0..)
            .zip(values)
            .map(|(op, _)| OpRow { name: format!("op{op}"), op: Some(op), unit, htp_op: None })
            .collect();
        let mut made = self.event(Event::OpsDeclared(rows));
        for inference in 0..10 {
            made = made.event(Event::OpTimes(OpSample { inference, values: values.to_vec() }));
        }
        made
    }

    /// Adds a metric of the backend.
    pub fn metric(self, name: &str, unit: &str, value: f64) -> Self {
        let metrics = vec![Metric { name: name.to_owned(), unit: unit.to_owned(), value }];
        self.event(Event::Metrics(MetricSample { phase: Phase::Detailed, inference: 0, metrics }))
    }

    /// Sets the first inference, microseconds.
    pub fn first(self, latency_us: f64) -> Self {
        self.event(batch(Phase::First, 90_000_000, &[latency_us]))
    }

    /// Sets the inferences under detailed profiling, microseconds.
    pub fn detailed(self, latencies_us: &[f64]) -> Self {
        self.event(batch(Phase::Detailed, 95_000_000, latencies_us))
    }

    /// Sets the clean phase, one inference after the other, microseconds.
    pub fn clean(mut self, latencies_us: Vec<f64>) -> Self {
        self.clean_us = vec![latencies_us];
        self
    }

    /// Sets the clean phase in launches, back to back, microseconds.
    pub fn launches(mut self, latencies_us: Vec<Vec<f64>>) -> Self {
        self.clean_us = latencies_us;
        self
    }

    /// Sets a clean phase on a schedule from the execution times of the inferences, microseconds.
    pub fn paced(self, rate_hz: f64, service_us: &[f64]) -> Self {
        let (mut starts, mut late_ns, mut free_us) = (Vec::new(), Vec::new(), 0.0f64);
        for (planned, us) in service_us.iter().enumerate() {
            let planned_us = planned as f64 * 1e6 / rate_hz;
            let start_us = planned_us.max(free_us);
            starts.push(CLEAN_START_US + start_us as u64);
            late_ns.push(((start_us - planned_us) * 1000.0) as u64);
            free_us = start_us + us;
        }
        let latency_ns = service_us.iter().map(|us| (us * 1000.0) as u64).collect();
        let batch = InferenceBatch { phase: Phase::Clean, first_index: 0, start_us: starts, latency_ns, late_ns };
        self.plan(|plan| plan.mode.rate_hz = Some(rate_hz)).event(Event::Inferences(batch))
    }

    /// Sets the runner's CPU use in the clean phase, in cores.
    pub fn runner_cores(self, cores: f64) -> Self {
        self.event(Event::CpuUsed { cpu_us: cores * 1e6, wall_us: 1e6 })
    }

    /// Adds a counter of this machine, read every quarter of a second.
    pub fn host_counter(mut self, id: &str, maximum: Option<f64>, course: impl Fn(f64) -> f64 + 'static) -> Self {
        self.host.push((info(id, maximum), Box::new(move |t_s| Some(course(t_s)))));
        self
    }

    /// Adds a counter of the phone, read ten times a second.
    pub fn phone_counter(mut self, id: &str, maximum: Option<f64>, course: impl Fn(f64) -> f64 + 'static) -> Self {
        self.phone.push((info(id, maximum), Box::new(move |t_s| Some(course(t_s)))));
        self
    }

    /// Adds a line of the backend's log, this many seconds after the start of the clean phase.
    pub fn log(mut self, at_s: f64, text: &str) -> Self {
        let line = LogLine::new(LogLevel::Warning, LogSource::Backend, text);
        let t_us = moment(at_s);
        self.store.apply(&Record { seq: 0, t_us, run: Some(RunId(0)), event: Event::Log(line) });
        self
    }

    /// Sets how it ended; it succeeds unless this says otherwise.
    pub fn ended(mut self, status: RunStatus) -> Self {
        self.status = status;
        self
    }

    /// Finishes the session.
    pub fn store(mut self) -> Store {
        let run = Some(RunId(0));
        apply(&mut self.store, run, Event::RunStarted(Box::new(self.plan)));
        for event in self.later {
            apply(&mut self.store, run, event);
        }
        let span_s = self.clean_us.iter().flatten().sum::<f64>() / 1e6;
        let (of, mut from_us) = (self.clean_us.len() as u32, CLEAN_START_US);
        for (index, launch) in (0..).zip(self.clean_us.iter().filter(|launch| !launch.is_empty())) {
            if of > 1 {
                apply(&mut self.store, run, Event::LaunchStarted { index, of, reason: None });
            }
            apply(&mut self.store, run, batch(Phase::Clean, from_us, launch));
            from_us += launch.iter().sum::<f64>() as u64;
        }
        let ticks = |hz: f64| {
            let count = ((span_s + 2.0 * MARGIN_S) * hz) as u32;
            (0..=count).map(move |tick| f64::from(tick) / hz - MARGIN_S)
        };
        let declare = |counters: &[(CounterInfo, Course)]| counters.iter().map(|(info, _)| info.clone()).collect();
        let sample = |set: u32, t_s: f64, counters: &[(CounterInfo, Course)]| {
            let values = counters.iter().map(|(_, course)| course(t_s)).collect();
            Event::Counters(CounterSample { set, t_us: moment(t_s), values })
        };
        apply(&mut self.store, None, Event::CountersDeclared(declare(&self.host)));
        ticks(4.0).for_each(|t_s| apply(&mut self.store, None, sample(0, t_s, &self.host)));
        if !self.phone.is_empty() {
            let set =
                CounterSet { set: 1, device: PHONE.to_owned(), period_us: 100_000, counters: declare(&self.phone) };
            apply(&mut self.store, None, Event::CounterSetDeclared(set));
            ticks(10.0).for_each(|t_s| apply(&mut self.store, None, sample(1, t_s, &self.phone)));
        }
        apply(&mut self.store, run, Event::RunFinished { status: self.status });
        self.store
    }
}

/// The only run of a made-up session.
pub fn only(store: &Store) -> &Run {
    &store.runs()[0]
}

/// A time this many seconds after the start of the clean phase.
pub fn moment(at_s: f64) -> u64 {
    (CLEAN_START_US as f64 + at_s * 1e6) as u64
}

/// Latencies around `mean_us` with a spread of `percent` to either side, in random order.
pub fn steady(mean_us: f64, percent: f64, count: usize) -> Vec<f64> {
    steady_from(0x9e37_79b9_7f4a_7c15, mean_us, percent, count)
}

/// The same from a seed other than 0, for many series of the same kind.
pub fn steady_from(seed: u64, mean_us: f64, percent: f64, count: usize) -> Vec<f64> {
    let mut state = seed;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    // The mean of four is nearly bell-shaped.
    let mut bell = || (0..4).map(|_| uniform()).sum::<f64>() / 2.0 - 1.0;
    (0..count).map(|_| mean_us * (1.0 + percent / 100.0 * bell())).collect()
}

/// An op of the given type: float tensors of these shapes, and a constant second input if `weights` has one.
pub fn op(op_type: &str, input: &[u32], weights: &[u32], output: &[u32]) -> Op {
    let tensor = |shape: &[u32], kind| Tensor {
        name: "t".to_owned(),
        dtype: DataType::FLOAT_32,
        shape: shape.to_vec(),
        quantization: None,
        kind,
    };
    let mut inputs = vec![tensor(input, TensorKind::Native)];
    if !weights.is_empty() {
        inputs.push(tensor(weights, TensorKind::Static));
    }
    let outputs = vec![tensor(output, TensorKind::Native)];
    let bytes = inputs.iter().chain(&outputs).map(|tensor| tensor.bytes().unwrap_or(0)).sum();
    let parameter_bytes = inputs.get(1).and_then(Tensor::bytes).unwrap_or(0);
    let mut op = Op {
        index: 0,
        name: format!("made_{}", op_type.to_lowercase()),
        op_type: op_type.to_owned(),
        package: "qti.aisw".to_owned(),
        inputs,
        outputs,
        params: serde_json::Map::new(),
        macs: None,
        parameter_bytes,
        bytes_moved: Some(bytes),
    };
    op.macs = crate::models::macs(&op);
    op
}

/// A phone that reports nothing about itself.
pub fn silent_phone() -> DeviceFacts {
    DeviceFacts {
        id: PHONE.to_owned(),
        model: None,
        soc: SocFacts::default(),
        os: String::new(),
        build: None,
        kernel: None,
        abi: "arm64-v8a".to_owned(),
        gpu: None,
        clusters: Vec::new(),
        shell_uid: None,
        root: crate::devices::Root::None,
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

fn apply(store: &mut Store, run: Option<RunId>, event: Event) {
    store.apply(&Record { seq: store.records(), t_us: store.now_us().max(CLEAN_START_US), run, event });
}

fn batch(phase: Phase, from_us: u64, latencies_us: &[f64]) -> Event {
    let mut now_us = from_us as f64;
    let mut starts = Vec::new();
    for latency_us in latencies_us {
        starts.push(now_us as u64);
        now_us += latency_us;
    }
    let latency_ns = latencies_us.iter().map(|us| (us * 1000.0) as u64).collect();
    Event::Inferences(InferenceBatch { phase, first_index: 0, start_us: starts, latency_ns, late_ns: Vec::new() })
}

fn info(id: &str, maximum: Option<f64>) -> CounterInfo {
    CounterInfo { id: id.to_owned(), label: id.to_owned(), unit: String::new(), maximum, unavailable: None }
}

fn device(id: &str, kind: DeviceKind) -> DeviceInfo {
    DeviceInfo {
        id: id.to_owned(),
        kind,
        model: None,
        soc: None,
        hexagon_arch: None,
        abi: "x86_64".to_owned(),
        os: String::new(),
    }
}

#[test]
fn a_made_session_holds_what_it_was_made_of() {
    let store = Made::on_phone(Backend::Htp)
        .graph(vec![op("Conv2d", &[1, 8, 8, 4], &[3, 3, 4, 8], &[1, 8, 8, 8])])
        .op_times(OpUnit::Cycles, &[500])
        .clean(steady(1000.0, 5.0, 200))
        .phone_counter("cpu.busy", Some(100.0), |t_s| if t_s < 0.0 { 1.0 } else { 2.0 })
        .log(0.1, "hello")
        .store();
    let run = only(&store);
    assert_eq!((run.clean.count(), run.ops.inferences(), run.graph().unwrap().macs()), (200, 10, 18_432));
    let mean = run.clean.mean_us().unwrap();
    assert!((mean - 1000.0).abs() < 10.0, "{mean}");
    let points = store.device_counters().series()[0].series.points();
    assert!(points.iter().any(|p| p.1 == Some(1.0)) && points.iter().any(|p| p.1 == Some(2.0)));
    assert_eq!((store.logs().len(), store.logs()[0].t_us), (1, moment(0.1)));
}
