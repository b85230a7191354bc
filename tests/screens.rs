//! Whole screens at fixed sizes, from events that the store folds as in a live run.

#![allow(clippy::pedantic, clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use qnnscope::app::{
    Action, BackendAvailability, Entry, EntryKind, KeyAction, Listing, Meaning, Request, StartChoice, Theme, View,
    draw, update,
};
use qnnscope::app::{ColorDepth, Pane};
use qnnscope::backends::{Backend, ProfilingLevel};
use qnnscope::event::{
    Budget, CheckOutcome, CheckResult, CoolDown, CoolDownEnd, Cooling, CounterInfo, CounterSample, CounterSet,
    DeviceInfo, DeviceKind, Event, Failure, InferenceBatch, Launches, LogLevel, LogLine, LogSource, MemoryMark,
    MemorySample, Metric, MetricSample, ModelInfo, OpRow, OpSample, OpUnit, Phase, Record, RunId, RunPlan, RunStatus,
    RuntimeInfo, SESSION_SCHEMA, SessionStarted, Stage,
};
use qnnscope::models::{DataType, Graph, ModelFormat, Op, Quantization, Tensor, TensorKind};
use qnnscope::store::Store;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::path::PathBuf;

/// A session with a clock that only moves when told to.
struct Session {
    store: Store,
    seq: u64,
    t_us: u64,
}

impl Session {
    fn new() -> Self {
        let mut session = Self { store: Store::new(), seq: 0, t_us: 1_000_000 };
        session.emit(
            None,
            Event::SessionStarted(SessionStarted {
                schema: SESSION_SCHEMA.to_owned(),
                tool_version: "0.1.0".to_owned(),
                epoch_us: 1_700_000_000_000_000,
                monotonic_us: 1_000_000,
                host: "Linux x86_64".to_owned(),
            }),
        );
        session.emit(
            None,
            Event::DeviceSeen(DeviceInfo {
                id: "local".to_owned(),
                kind: DeviceKind::Local,
                model: Some("Intel Xeon".to_owned()),
                soc: None,
                hexagon_arch: None,
                abi: "x86_64".to_owned(),
                os: "Linux 6.8".to_owned(),
            }),
        );
        let counter = |id: &str, label: &str, unit: &str, maximum, unavailable: Option<&str>| CounterInfo {
            id: id.to_owned(),
            label: label.to_owned(),
            unit: unit.to_owned(),
            maximum,
            unavailable: unavailable.map(str::to_owned),
        };
        session.emit(
            None,
            Event::CountersDeclared(vec![
                counter("host.cpu.busy", "CPU busy", "%", Some(100.0), None),
                counter("host.mem.used", "memory used", "bytes", Some(16e9), None),
                counter("host.cpu.freq", "CPU clock", "MHz", None, None),
                counter("host.temp.cpu", "CPU temperature", "°C", None, Some("no thermal zone here")),
            ]),
        );
        session
    }

    fn emit(&mut self, run: Option<u32>, event: Event) {
        self.seq += 1;
        self.store.apply(&Record { seq: self.seq, t_us: self.t_us, run: run.map(RunId), event });
    }

    fn log(&mut self, run: u32, level: LogLevel, text: &str) {
        self.emit(Some(run), Event::Log(LogLine::new(level, LogSource::Backend, text)));
    }

    fn counters(&mut self, ticks: u64) {
        for i in 0..ticks {
            self.t_us += 100_000;
            let values = vec![
                Some(40.0 + 30.0 * wave(i, 17)),
                Some(5e9 + 1e8 * wave(i, 60)),
                (i % 10 != 9).then(|| 2600.0 + 300.0 * wave(i, 9)),
                None,
            ];
            let t_us = self.t_us;
            self.emit(None, Event::Counters(CounterSample { set: 0, t_us, values }));
        }
    }

    fn memory(&mut self, run: u32, mark: MemoryMark, mib: u64, inferences: u64) {
        let rss = mib * 1024 * 1024;
        let sample = MemorySample { mark, rss, rss_peak: None, pss: Some(rss / 2), inferences };
        self.emit(Some(run), Event::Memory(sample));
    }

    fn stage(&mut self, run: u32, stage: Stage, duration_us: f64) {
        self.emit(Some(run), Event::StageStarted { stage });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small positive test values")]
        let step = duration_us as u64;
        self.t_us += step;
        self.emit(Some(run), Event::StageFinished { stage, duration_us });
    }

    /// A run, up to the point where it could execute.
    fn load(&mut self, run: u32, backend: Backend, ops: u32) {
        self.emit(Some(run), Event::RunStarted(Box::new(plan(backend))));
        self.ready(run, backend, ops);
    }

    fn ready(&mut self, run: u32, backend: Backend, ops: u32) {
        self.stage(run, Stage::Prepare, 3_100.0);
        self.emit(
            Some(run),
            Event::ModelIdentified(Box::new(ModelInfo {
                path: "/home/ada/models/mobilenet_v2.dlc".to_owned(),
                format: ModelFormat::Dlc,
                sha256: "00".repeat(32),
                bytes: 14_200_000,
                context_binary: None,
            })),
        );
        self.memory(run, MemoryMark::BeforeLoad, 12, 0);
        self.stage(run, Stage::LibraryLoad, 18_400.0);
        self.emit(
            Some(run),
            Event::RuntimeLoaded(RuntimeInfo {
                path: format!("/opt/qnn/{}", backend.library()),
                build_id: Some("v2.47.0.250601".to_owned()),
                core_api: "2.37.0".to_owned(),
                backend_api: "1.1.0".to_owned(),
                provider: "QTI".to_owned(),
            }),
        );
        self.stage(run, Stage::BackendCreate, 5_020.0);
        self.stage(run, Stage::DeviceCreate, 210.0);
        self.stage(run, Stage::ContextCreate, 96.0);
        self.stage(run, Stage::Compose, 41_000.0);
        self.emit(Some(run), Event::GraphComposed(Box::new(graph(ops))));
        self.log(run, LogLevel::Info, "graph composed");
    }

    fn finalize(&mut self, run: u32) {
        self.stage(run, Stage::Finalize, 812_000.0);
        self.memory(run, MemoryMark::Loaded, 96, 0);
        self.memory(run, MemoryMark::After(Stage::FirstInference), 96, 0);
    }

    fn inferences(&mut self, run: u32, phase: Phase, first: u64, count: u64, base_us: u64) {
        for i in first..first + count {
            let spike = if i % 97 == 96 { base_us } else { 0 };
            let latency_us = base_us + noise(i) * base_us / 1000 + spike;
            let batch = InferenceBatch {
                phase,
                first_index: i,
                start_us: vec![self.t_us],
                latency_ns: vec![latency_us * 1000],
                late_ns: Vec::new(),
            };
            self.t_us += latency_us + 20;
            self.emit(Some(run), Event::Inferences(batch));
        }
    }

    /// The phases up to `clean` clean inferences.
    fn execute(&mut self, run: u32, base_us: u64, clean: u64) {
        self.emit(Some(run), Event::StageStarted { stage: Stage::FirstInference });
        self.inferences(run, Phase::First, 0, 1, base_us * 3);
        self.emit(Some(run), Event::StageFinished { stage: Stage::FirstInference, duration_us: 3.0 * base_us as f64 });
        self.emit(Some(run), Event::StageStarted { stage: Stage::Execute });
        self.emit(Some(run), Event::PhaseStarted { phase: Phase::Warmup, budget: Budget::Iterations(10) });
        self.inferences(run, Phase::Warmup, 0, 10, base_us * 6 / 5);
        self.emit(Some(run), Event::PhaseStarted { phase: Phase::Clean, budget: Budget::Iterations(1000) });
        self.inferences(run, Phase::Clean, 0, clean, base_us);
        for i in 0..20 {
            self.memory(run, MemoryMark::Running, 96 + i / 4, i);
        }
    }

    fn detailed(&mut self, run: u32, ops: u32, unit: OpUnit, count: u64, base_us: u64) {
        self.emit(Some(run), Event::PhaseStarted { phase: Phase::Detailed, budget: Budget::Iterations(200) });
        let mut rows: Vec<OpRow> =
            (0..ops).map(|i| OpRow { name: op_name(i), op: Some(i), unit, htp_op: None }).collect();
        rows.push(OpRow { name: "InputTransfer".to_owned(), op: None, unit, htp_op: None });
        self.emit(Some(run), Event::OpsDeclared(rows));
        for i in 0..count {
            self.inferences(run, Phase::Detailed, i, 1, base_us);
            let scale = if unit == OpUnit::Cycles { 900 } else { 1 };
            let values =
                (0..=ops).map(|op| scale * (20 + u64::from(op * op % 97) * 5 + noise(i + u64::from(op)) % 9)).collect();
            self.emit(Some(run), Event::OpTimes(OpSample { inference: i, values }));
            if unit == OpUnit::Cycles {
                let name = "Accelerator (execute) time".to_owned();
                let metrics = vec![Metric { name, unit: "us".to_owned(), value: base_us as f64 * 0.8 }];
                self.emit(Some(run), Event::Metrics(MetricSample { phase: Phase::Detailed, inference: i, metrics }));
            }
        }
    }

    fn finish(&mut self, run: u32, status: RunStatus) {
        self.memory(run, MemoryMark::End, 101, 1210);
        self.emit(Some(run), Event::StageFinished { stage: Stage::Execute, duration_us: 9_000_000.0 });
        self.stage(run, Stage::Teardown, 2_000.0);
        self.emit(Some(run), Event::RunFinished { status });
    }

    fn whole_run(&mut self, run: u32, backend: Backend, ops: u32) {
        self.load(run, backend, ops);
        self.finalize(run);
        let (base, unit) = if backend == Backend::Htp { (2_400, OpUnit::Cycles) } else { (7_300, OpUnit::Us) };
        self.execute(run, base, 1000);
        self.detailed(run, ops, unit, 200, base * 11 / 10);
        self.finish(run, RunStatus::Ok);
    }
}

/// The plan of a run on a backend.
fn plan(backend: Backend) -> RunPlan {
    RunPlan {
        device: "local".to_owned(),
        backend,
        model: "/home/ada/models/mobilenet_v2.dlc".to_owned(),
        warmup: 10,
        budget: Budget::Iterations(1000),
        profiling: ProfilingLevel::Detailed,
        profiling_budget: Some(Budget::Iterations(200)),
        simulated: backend == Backend::Htp,
        driver: qnnscope::event::Driver::default(),
        energy_while_charging: false,
        mode: qnnscope::event::Mode::default(),
        constraints: qnnscope::event::Constraints::default(),
    }
}

fn wave(i: u64, period: u64) -> f64 {
    (i as f64 * std::f64::consts::TAU / period as f64).sin()
}

/// Numbers between 0 and 99 without a visible order.
fn noise(i: u64) -> u64 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 100
}

fn op_name(i: u32) -> String {
    format!("mobilenet/block_{}/{}", i / 4, ["expand", "depthwise", "project", "add"][(i % 4) as usize])
}

fn tensor(name: &str, shape: &[u32], kind: TensorKind) -> Tensor {
    let quantization = Some(Quantization::ScaleOffset { scale: 0.023_528, offset: -128, bitwidth: None });
    Tensor { name: name.to_owned(), dtype: DataType(0x0408), shape: shape.to_vec(), quantization, kind }
}

fn graph(ops: u32) -> Graph {
    let types = ["Conv2d", "DepthWiseConv2d", "Conv2d", "ElementWiseAdd"];
    let ops = (0..ops)
        .map(|i| Op {
            index: i,
            name: op_name(i),
            op_type: types[(i % 4) as usize].to_owned(),
            package: "qti.aisw".to_owned(),
            inputs: vec![
                tensor("activation_in", &[1, 56, 56, 24], TensorKind::Native),
                tensor("weights", &[1, 1, 24, 144], TensorKind::Static),
            ],
            outputs: vec![tensor("activation_out", &[1, 56, 56, 144], TensorKind::Native)],
            params: serde_json::Map::from_iter([("stride".to_owned(), serde_json::json!([1, 1]))]),
            macs: (i % 4 != 3).then(|| 1_200_000 * u64::from(i % 13 + 1)),
            parameter_bytes: 3_456,
            bytes_moved: Some(530_000),
        })
        .collect();
    let input = tensor("input", &[1, 224, 224, 3], TensorKind::Input);
    let output = tensor("logits", &[1, 1000], TensorKind::Output);
    Graph { name: "mobilenet".to_owned(), inputs: vec![input], outputs: vec![output], ops, parameter_bytes: 3_500_000 }
}

fn backends() -> Vec<BackendAvailability> {
    vec![
        BackendAvailability { backend: Backend::Cpu, available: Ok(()) },
        BackendAvailability { backend: Backend::Gpu, available: Err("it needs an Adreno driver".to_owned()) },
    ]
}

fn live_view() -> View {
    let model = PathBuf::from("/home/ada/models/mobilenet_v2.dlc");
    let choice = StartChoice { device: "local".to_owned(), model, backends: vec![Backend::Cpu] };
    View::live(&choice, Vec::new(), backends())
}

fn render_with(session: &Session, view: &mut View, width: u16, height: u16, theme: &Theme) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    while view.prepare(&session.store, area, session.t_us) {}
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test backend never fails");
    let drawn = terminal.draw(|frame| draw(frame, &session.store, view, theme, session.t_us));
    drawn.expect("a test backend never fails").buffer.clone()
}

fn render(session: &Session, view: &mut View, width: u16, height: u16) -> Buffer {
    render_with(session, view, width, height, &theme())
}

fn theme() -> Theme {
    Theme::shipped("dark").expect("it is shipped")
}

fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let lines = buffer.content.chunks(width).map(|row| {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

fn press(session: &Session, view: &mut View, keys: &[KeyAction]) -> Option<Request> {
    let mut request = None;
    for key in keys {
        request = update(view, &session.store, (*key).into());
        while view.prepare(&session.store, Rect::new(0, 0, 80, 24), session.t_us) {}
    }
    request
}

fn type_text(session: &Session, view: &mut View, text: &str) {
    for c in text.chars() {
        update(view, &session.store, Action::Type(c));
    }
}

/// Where a text starts on the screen.
fn find(buffer: &Buffer, wanted: &str) -> (u16, u16) {
    for y in 0..buffer.area.height {
        let cells: Vec<&str> = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        for x in 0..cells.len() {
            if cells[x..].concat().starts_with(wanted) {
                return (u16::try_from(x).expect("a column"), y);
            }
        }
    }
    panic!("`{wanted}` is not on the screen:\n{}", text(buffer));
}

fn running_cpu() -> Session {
    let mut session = Session::new();
    session.counters(40);
    session.load(0, Backend::Cpu, 60);
    session.finalize(0);
    session.execute(0, 7_300, 412);
    session.log(0, LogLevel::Warning, "no core is set aside for this run");
    session
}

fn finished_htp() -> Session {
    let mut session = Session::new();
    session.counters(120);
    session.whole_run(0, Backend::Htp, 60);
    session
}

fn failed() -> Session {
    let mut session = Session::new();
    session.counters(20);
    session.load(0, Backend::Htp, 60);
    session.emit(Some(0), Event::StageStarted { stage: Stage::Finalize });
    let log = [
        "prepare: op mobilenet/block_3/expand",
        "validation of op mobilenet/block_3/expand failed",
        "no kernel for the data types of this op",
    ];
    for line in log {
        session.log(0, LogLevel::Error, line);
    }
    session.emit(
        Some(0),
        Event::Failed(Box::new(Failure {
            stage: Stage::Finalize,
            call: "graphFinalize".to_owned(),
            code: Some(1002),
            symbol: Some("QNN_GRAPH_ERROR_INVALID_ARGUMENT".to_owned()),
            message:
                "the backend refused the op mobilenet/block_3/expand (Conv2d): it has no kernel for float32 weights"
                    .to_owned(),
            hint: Some("quantise the model, or run it with `--backend cpu`".to_owned()),
            missing: false,
            bad_input: false,
            log_tail: log.map(str::to_owned).to_vec(),
            refusal: None,
        })),
    );
    session.emit(Some(0), Event::RunFinished { status: RunStatus::Failed });
    session
}

macro_rules! screen {
    ($name:ident, $session:expr, $view:expr, $width:literal x $height:literal) => {
        insta::assert_snapshot!(stringify!($name), text(&render(&$session, &mut $view, $width, $height)))
    };
}

#[path = "screens/accuracy.rs"]
mod accuracy;
#[path = "screens/pages.rs"]
mod pages;

fn start_view() -> View {
    let recent = ["/home/ada/models/mobilenet_v2.dlc", "/home/ada/models/libyolo_nas_s.so"].map(PathBuf::from);
    View::start(recent.to_vec(), backends())
}

#[test]
fn start_screen() {
    let session = Session::new();
    screen!(start_80x24, session, start_view(), 80 x 24);
    screen!(start_120x40, session, start_view(), 120 x 40);
}

#[test]
fn start_screen_before_anything_is_known() {
    let session = Session { store: Store::new(), seq: 0, t_us: 0 };
    screen!(start_empty_80x24, session, View::start(Vec::new(), backends()), 80 x 24);
}

#[test]
fn running() {
    let session = running_cpu();
    screen!(running_80x24, session, live_view(), 80 x 24);
    screen!(running_120x40, session, live_view(), 120 x 40);
}

#[test]
fn finished_and_simulated() {
    let session = finished_htp();
    screen!(finished_80x24, session, live_view(), 80 x 24);
    screen!(finished_120x40, session, live_view(), 120 x 40);
    screen!(finished_200x60, session, live_view(), 200 x 60);
}

#[test]
fn values_that_are_old_are_grey_and_say_how_old() {
    let mut session = running_cpu();
    let counters = vec![CounterInfo {
        id: "gpu.freq".to_owned(),
        label: "GPU clock".to_owned(),
        unit: "MHz".to_owned(),
        maximum: None,
        unavailable: None,
    }];
    let device = "local".to_owned();
    session.emit(None, Event::CounterSetDeclared(CounterSet { set: 1, device, period_us: 100_000, counters }));
    for _ in 0..5 {
        session.t_us += 100_000;
        let t_us = session.t_us;
        session.emit(None, Event::Counters(CounterSample { set: 1, t_us, values: vec![Some(812.0)] }));
    }
    let style_of_value = |buffer: &Buffer| {
        let (x, y) = find(buffer, "812 MHz");
        buffer[(x, y)].style().fg
    };
    let mut view = live_view();
    let fresh = render(&session, &mut view, 200, 60);
    assert_eq!(style_of_value(&fresh), theme().style(Meaning::Text).fg);
    assert!(!text(&fresh).contains(" old"), "{}", text(&fresh));
    // The host's own counters continue.
    session.counters(30);
    let later = render(&session, &mut view, 200, 60);
    assert_eq!(style_of_value(&later), theme().style(Meaning::Muted).fg);
    assert!(text(&later).contains("3.00 s old") || text(&later).contains("3.0 s old"), "{}", text(&later));
}

#[test]
fn two_runs_and_a_switch() {
    let mut session = finished_htp();
    session.whole_run(1, Backend::Cpu, 60);
    let mut view = live_view();
    screen!(two_runs_newest, session, view, 80 x 24);
    press(&session, &mut view, &[KeyAction::PreviousRun]);
    screen!(two_runs_previous, session, view, 80 x 24);
}

#[test]
fn runs_of_several_models_say_which() {
    let mut session = Session::new();
    let paths = ["/home/ada/old/face.dlc", "/home/ada/new/face.dlc", "/home/ada/models/mobilenet_v2.dlc"];
    for (number, path) in (0..).zip(paths) {
        let plan = RunPlan { model: path.to_owned(), ..plan(Backend::Cpu) };
        session.emit(Some(number), Event::RunStarted(Box::new(plan)));
    }
    let mut view = live_view();
    // A narrow list shows the runs around the chosen one.
    for tab in ["3 cpu mobilenet_v2.dlc ", "2 cpu new/face.dlc ", "1 cpu old/face.dlc "] {
        let screen = text(&render(&session, &mut view, 120, 40));
        assert!(screen.contains(tab), "{tab}: {screen}");
        press(&session, &mut view, &[KeyAction::PreviousRun]);
    }
    let mut one = Session::new();
    (0..2).for_each(|number| one.emit(Some(number), Event::RunStarted(Box::new(plan(Backend::Cpu)))));
    assert!(text(&render(&one, &mut live_view(), 120, 40)).contains("1 cpu "), "one model is named once");
}

#[test]
fn a_failure_says_what_why_and_next() {
    let session = failed();
    let mut view = live_view();
    // The diagnosis opens by itself; this is the screen behind it.
    press(&session, &mut view, &[KeyAction::Redraw, KeyAction::Back]);
    screen!(failed_80x24, session, view, 80 x 24);
    screen!(failed_120x40, session, view, 120 x 40);
}

#[test]
fn the_status_shows_the_launch_and_how_far_launches_lie_apart() {
    let mut session = Session::new();
    let mut shared = plan(Backend::Cpu);
    shared.mode.launches = Launches { planned: 3, limit: 10, seed: 1 };
    session.emit(Some(0), Event::RunStarted(Box::new(shared)));
    let launch = |session: &mut Session, index: u32, base_us: u64| {
        session.emit(Some(0), Event::LaunchStarted { index, of: 3, reason: None });
        session.ready(0, Backend::Cpu, 60);
        session.finalize(0);
        session.emit(Some(0), Event::StageStarted { stage: Stage::Execute });
        session.emit(Some(0), Event::PhaseStarted { phase: Phase::Clean, budget: Budget::Iterations(40) });
        session.inferences(0, Phase::Clean, 0, 20, base_us);
    };
    launch(&mut session, 0, 1000);
    let see = |session: &Session, wanted: &[&str], unwanted: &[&str]| {
        for (width, height) in [(80, 24), (120, 40), (200, 60)] {
            let screen = text(&render(session, &mut live_view(), width, height));
            wanted.iter().for_each(|part| assert!(screen.contains(part), "no `{part}` in {screen}"));
            unwanted.iter().for_each(|part| assert!(!screen.contains(part), "`{part}` in {screen}"));
        }
    };
    see(&session, &["launch 1 of 3: clean", "20/40"], &["apart"]);
    session.stage(0, Stage::Teardown, 900.0);
    see(&session, &["launch 1 of 3: waits for its turn"], &["apart"]);
    // The progress is that of the launch, and a launch in progress is not compared with those that have
    // ended.
    launch(&mut session, 1, 2000);
    see(&session, &["launch 2 of 3: clean", "20/40", "50 %"], &["apart"]);
    session.stage(0, Stage::Teardown, 900.0);
    launch(&mut session, 2, 1000);
    see(&session, &["launch 3 of 3: clean", "20/40"], &[]);
    // On a small screen the latency pane's title has no room for it.
    for (width, height) in [(120, 40), (200, 60)] {
        let screen = text(&render(&session, &mut live_view(), width, height));
        assert!(screen.contains("100 % apart"), "{screen}");
    }
    session.emit(Some(0), Event::RunFinished { status: RunStatus::Ok });
    see(&session, &["60 inferences of 3 launches"], &[]);
}

#[test]
fn the_view_follows_launches_that_take_turns() {
    let mut session = Session::new();
    let mut shared = [plan(Backend::Cpu), plan(Backend::Htp)];
    for (run, plan) in (0u32..).zip(&mut shared) {
        plan.mode.launches = Launches { planned: 3, limit: 3, seed: 1 };
        session.emit(Some(run), Event::RunStarted(Box::new(plan.clone())));
    }
    let mut view = live_view();
    let shown = |session: &Session, view: &mut View| {
        press(session, view, &[KeyAction::Redraw]);
        view.shown.run
    };
    for (index, run) in [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1)] {
        session.t_us += 1_000_000;
        session.emit(Some(run), Event::LaunchStarted { index, of: 3, reason: None });
        session.ready(run, shared[run as usize].backend, 60);
        assert_eq!(shown(&session, &mut view), Some(RunId(run)), "launch {index} of run {run}");
    }
    // A chosen run stays selected, whichever run's turn it is.
    press(&session, &mut view, &[KeyAction::PreviousRun]);
    assert_eq!(view.shown.run, Some(RunId(0)));
    for run in [1, 0] {
        session.emit(Some(run), Event::RunFinished { status: RunStatus::Ok });
    }
    assert_eq!(shown(&session, &mut view), Some(RunId(0)));
}

#[test]
fn the_status_tells_a_pace_and_a_cool_down() {
    let mut session = Session::new();
    let mut paced = plan(Backend::Cpu);
    paced.mode.rate_hz = Some(30.0);
    session.emit(Some(0), Event::RunStarted(Box::new(paced)));
    session.ready(0, Backend::Cpu, 60);
    session.finalize(0);
    session.emit(Some(0), Event::StageStarted { stage: Stage::Execute });
    session.emit(Some(0), Event::PhaseStarted { phase: Phase::Clean, budget: Budget::Iterations(1000) });
    for (first_index, late_ms) in [(0, 0), (1, 0), (2, 60)] {
        let batch = InferenceBatch {
            phase: Phase::Clean,
            first_index,
            start_us: vec![session.t_us],
            latency_ns: vec![5_000_000],
            late_ns: vec![late_ms * 1_000_000],
        };
        session.emit(Some(0), Event::Inferences(batch));
        session.t_us += 33_333;
    }
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let screen = text(&render(&session, &mut live_view(), width, height));
        assert!(screen.contains("3/1,000  30/s planned, 1 late"), "{screen}");
    }
    session.emit(Some(0), Event::RunFinished { status: RunStatus::Ok });
    let screen = text(&render(&session, &mut live_view(), 80, 24));
    assert!(screen.contains("30/s planned, 1 late"), "{screen}");

    session.emit(Some(1), Event::RunStarted(Box::new(plan(Backend::Cpu))));
    let mut pause = CoolDown {
        device: "local".to_owned(),
        waited_us: 12_000_000,
        limit_us: 300_000_000,
        watched: 4,
        waiting_for: vec![Cooling { id: "thermal.npu".to_owned(), unit: "°C".to_owned(), value: 61.8, target: 45.2 }],
        end: None,
    };
    session.emit(Some(1), Event::CoolingDown(pause.clone()));
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let screen = text(&render(&session, &mut live_view(), width, height));
        assert!(screen.contains("cooling down  thermal.npu 62 to 45 °C"), "{screen}");
    }
    pause.end = Some(CoolDownEnd::Back);
    session.emit(Some(1), Event::CoolingDown(pause));
    assert!(!text(&render(&session, &mut live_view(), 80, 24)).contains("cooling down"));
}

#[test]
fn a_confirmed_cause_comes_with_its_fix() {
    let mut session = failed();
    let result = CheckResult {
        cause: "skel-wrong-arch".to_owned(),
        check: "skel-files".to_owned(),
        outcome: CheckOutcome::Confirms,
        detail: "this DSP is v75 and there is only v73".to_owned(),
    };
    session.emit(Some(0), Event::CheckFinished(Box::new(result)));
    let mut view = live_view();
    // The diagnosis opens by itself; this is the screen behind it.
    press(&session, &mut view, &[KeyAction::Redraw, KeyAction::Back]);
    let shown = text(&render(&session, &mut view, 120, 40));
    assert!(shown.contains("The skel that was pushed is for another Hexagon architecture (confirmed:"), "{shown}");
    assert!(shown.contains("fix") && shown.contains("Push the pair libQnnHtpVNNStub.so"), "{shown}");
    assert!(!shown.contains("quantise the model"), "a hint that only knew the failure gives way: {shown}");
}

#[test]
fn help() {
    let session = running_cpu();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Help]);
    screen!(help_80x24, session, view, 80 x 24);
    screen!(help_120x40, session, view, 120 x 40);
    press(&session, &mut view, &[KeyAction::Last]);
    let end = view.overlays.clone();
    press(&session, &mut view, &[KeyAction::Down, KeyAction::Up]);
    assert_ne!(view.overlays, end, "the first key goes back from the end");
}

#[test]
fn filter() {
    let session = finished_htp();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Filter]);
    type_text(&session, &mut view, "DEPTH block_1");
    screen!(filter_80x24, session, view, 80 x 24);
    press(&session, &mut view, &[KeyAction::Open]);
    assert_eq!(view.filter, "DEPTH block_1");
    press(&session, &mut view, &[KeyAction::Back]);
    assert_eq!(view.filter, "");
}

#[test]
fn details() {
    let session = finished_htp();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::Down, KeyAction::Down, KeyAction::Open]);
    screen!(details_80x24, session, view, 80 x 24);
    screen!(details_120x40, session, view, 120 x 40);
}

#[test]
fn every_pane_of_a_small_screen() {
    let session = finished_htp();
    let mut view = live_view();
    for name in ["memory_80x24", "host_80x24", "log_80x24"] {
        press(&session, &mut view, &[KeyAction::FocusNext]);
        insta::assert_snapshot!(name, text(&render(&session, &mut view, 80, 24)));
    }
}

#[test]
fn file_picker() {
    let session = Session::new();
    let mut view = start_view();
    press(&session, &mut view, &[KeyAction::Browse]);
    screen!(picker_reading, session, view, 80 x 24);
    let dir = PathBuf::from("/home/ada/models");
    let entry = |name: &str, kind, bytes| Entry { path: dir.join(name), name: name.to_owned(), kind, bytes };
    let entries = vec![
        Entry { path: PathBuf::from("/home/ada"), name: "..".to_owned(), kind: EntryKind::Parent, bytes: None },
        entry("calibration", EntryKind::Directory, None),
        entry("libyolo_nas_s.so", EntryKind::Model, Some(48_000_000)),
        entry("mobilenet_v2.dlc", EntryKind::Model, Some(14_200_000)),
        entry("notes.txt", EntryKind::File, Some(1_200)),
    ];
    update(&mut view, &session.store, Action::Listed(Listing { dir: dir.clone(), entries: Ok(entries) }));
    screen!(picker_80x24, session, view, 80 x 24);
    type_text(&session, &mut view, "yolo");
    press(&session, &mut view, &[KeyAction::Open]);
    assert_eq!(view.start.models[0], dir.join("libyolo_nas_s.so"));
    assert_eq!(view.screen(), "start");
}

#[test]
fn an_unreadable_folder_says_why() {
    let session = Session::new();
    let mut view = start_view();
    press(&session, &mut view, &[KeyAction::Browse]);
    let dir = PathBuf::from("/home/ada/models");
    let entries = Err("Permission denied (os error 13)".to_owned());
    update(&mut view, &session.store, Action::Listed(Listing { dir, entries }));
    let buffer = render(&session, &mut view, 80, 24);
    find(&buffer, "cannot read this folder: Permission denied");
}

#[test]
fn choosing_a_backend() {
    let session = finished_htp();
    let mut view = live_view();
    press(&session, &mut view, &[KeyAction::SwitchBackend]);
    screen!(backends_80x24, session, view, 80 x 24);
    assert_eq!(press(&session, &mut view, &[KeyAction::Down, KeyAction::Open]), None);
    assert_eq!(view.notice.as_deref(), Some("gpu is not available: it needs an Adreno driver"));
    assert_eq!(
        press(&session, &mut view, &[KeyAction::Up, KeyAction::Open]),
        Some(Request::Switch { device: "local".to_owned(), backend: Backend::Cpu })
    );
}

#[test]
fn a_paused_view_stands_still_and_counts() {
    let mut session = running_cpu();
    let mut view = live_view();
    let before = render(&session, &mut view, 120, 40);
    press(&session, &mut view, &[KeyAction::Pause]);
    let paused = render(&session, &mut view, 120, 40);
    session.inferences(0, Phase::Clean, 412, 300, 9_000);
    session.counters(30);
    session.log(0, LogLevel::Error, "a late line");
    session.memory(0, MemoryMark::Running, 400, 700);
    let later = render(&session, &mut view, 120, 40);
    let all_but_last = |buffer: &Buffer| {
        let text = text(buffer);
        text.lines().take(39).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(all_but_last(&before), all_but_last(&paused));
    assert_eq!(all_but_last(&paused), all_but_last(&later));
    assert!(text(&later).contains("PAUSED +332 events"), "{}", text(&later));
    press(&session, &mut view, &[KeyAction::Pause]);
    let live = text(&render(&session, &mut view, 120, 40));
    assert!(live.contains("712/1,000") && live.contains("a late line"), "{live}");
}

#[test]
fn layers_of_a_paused_view_can_be_sorted_and_scrolled() {
    let mut session = finished_htp();
    let mut view = live_view();
    render(&session, &mut view, 80, 24);
    press(&session, &mut view, &[KeyAction::Pause]);
    session.whole_run(1, Backend::Cpu, 20);
    let first = view.shown.layers.order[0];
    press(&session, &mut view, &[KeyAction::Last, KeyAction::SortReverse]);
    render(&session, &mut view, 80, 24);
    assert_eq!(view.shown.layers.order.len(), 61, "the run that was shown stays");
    assert_eq!(view.shown.layers.order.last(), Some(&first));
    assert_eq!(view.position(), 0, "the selection stays on its op");
}

#[test]
fn without_colours_the_screen_says_the_same() {
    let session = finished_htp();
    let (mono, _) = Theme::load("dark", ColorDepth::None, false, None).expect("it is shipped");
    let plain = render_with(&session, &mut live_view(), 120, 40, &mono);
    let coloured = render(&session, &mut live_view(), 120, 40);
    assert_eq!(text(&plain), text(&coloured));
    let reset = ratatui::style::Color::Reset;
    assert!(plain.content.iter().all(|cell| cell.fg == reset && cell.bg == reset));
}

#[test]
fn ascii_only() {
    let session = finished_htp();
    let (theme, _) = Theme::load("ansi", ColorDepth::Ansi16, true, None).expect("it is shipped");
    let screen = text(&render_with(&session, &mut live_view(), 120, 40, &theme));
    // The one other character is part of a unit that came with a counter.
    let foreign: Vec<char> = screen.chars().filter(|c| !c.is_ascii() && *c != '°').collect();
    assert_eq!(foreign, Vec::<char>::new(), "{screen}");
    insta::assert_snapshot!("ascii_120x40", screen);
}

#[test]
fn meanings_reach_the_cells() {
    let session = finished_htp();
    let theme = theme();
    let buffer = render(&session, &mut live_view(), 80, 24);
    let simulated = theme.style(Meaning::Simulated);
    let cell = &buffer[find(&buffer, "simulated")];
    assert_eq!((Some(cell.fg), cell.modifier), (simulated.fg, simulated.add_modifier));
    let selection = theme.style(Meaning::Selection);
    let (x, y) = find(&buffer, "Conv2d");
    let cell = &buffer[(x, y)];
    assert_eq!((Some(cell.fg), Some(cell.bg)), (selection.fg, selection.bg));
    assert_eq!(buffer[(0, y)].symbol(), "▸", "colour alone carries nothing");
}

#[test]
fn simulated_figures_are_labelled_wherever_they_are() {
    let session = finished_htp();
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        for pane in Pane::ALL {
            let mut view = live_view();
            view.focus = pane;
            view.main = if pane.is_main() { pane } else { view.main };
            view.zoomed = true;
            let screen = text(&render(&session, &mut view, width, height));
            let figures = !matches!(pane, Pane::Host | Pane::Log);
            assert_eq!(screen.contains("simulated"), figures, "{pane:?} at {width}x{height}:\n{screen}");
        }
    }
}

#[test]
fn every_size_is_survived() {
    let sessions =
        [Session { store: Store::new(), seq: 0, t_us: 0 }, Session::new(), running_cpu(), finished_htp(), failed()];
    let opened = [
        vec![],
        vec![KeyAction::Help],
        vec![KeyAction::Filter],
        vec![KeyAction::Open],
        vec![KeyAction::SwitchBackend],
        vec![KeyAction::NewRun],
        vec![KeyAction::NewRun, KeyAction::Browse],
    ];
    for session in &sessions {
        for keys in &opened {
            let mut view = live_view();
            press(session, &mut view, keys);
            for width in (1..30).chain([40, 59, 60, 72, 79, 109, 110, 111]) {
                for height in (1..16).chain([23, 29, 30, 31, 38]) {
                    render(session, &mut view, width, height);
                }
            }
        }
        for keys in pages::WAYS {
            let mut view = live_view();
            press(session, &mut view, keys);
            for (width, height) in pages::SIZES {
                render(session, &mut view, width, height);
            }
        }
        for pane in Pane::ALL {
            let mut view = live_view();
            (view.focus, view.zoomed) = (pane, true);
            for (width, height) in [(1, 1), (2, 2), (3, 3), (5, 4), (12, 2), (2, 12), (40, 10), (150, 50)] {
                render(session, &mut view, width, height);
            }
        }
    }
}

#[test]
fn text_from_outside_cannot_control_the_terminal() {
    let mut session = Session::new();
    let plan = RunPlan {
        device: "lo\x1bcal".to_owned(),
        backend: Backend::Cpu,
        model: "/tmp/\x1b]0;evil\x07.dlc".to_owned(),
        warmup: 0,
        budget: Budget::Seconds(1.0),
        profiling: ProfilingLevel::Detailed,
        profiling_budget: None,
        simulated: false,
        driver: qnnscope::event::Driver::default(),
        energy_while_charging: false,
        mode: qnnscope::event::Mode::default(),
        constraints: qnnscope::event::Constraints::default(),
    };
    session.emit(Some(0), Event::RunStarted(Box::new(plan)));
    let rows = vec![OpRow { name: "a\x1b[2Jb".to_owned(), op: None, unit: OpUnit::Us, htp_op: None }];
    session.emit(Some(0), Event::OpsDeclared(rows));
    session.emit(Some(0), Event::OpTimes(OpSample { inference: 0, values: vec![5] }));
    let screen = text(&render(&session, &mut live_view(), 120, 40));
    assert!(screen.chars().all(|c| c == '\n' || !c.is_control()), "{screen:?}");
}
