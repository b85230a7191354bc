//! Time for one frame: updating the view and drawing it into a buffer, for models of several sizes.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use qnnscope::app::{Column, KeyAction, Sort, StartChoice, Theme, View, draw, update};
use qnnscope::backends::{Backend, ProfilingLevel};
use qnnscope::event::{
    Budget, CounterInfo, CounterSample, Event, Failure, InferenceBatch, LogLevel, LogLine, LogSource, MemoryMark,
    MemorySample, OpRow, OpSample, OpUnit, Phase, Record, RunId, RunPlan, RunStatus, Stage,
};
use qnnscope::models::{Graph, Op};
use qnnscope::store::Store;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::hint::black_box;
use std::path::PathBuf;

const SIZE: (u16, u16) = (200, 60);

struct Feed {
    store: Store,
    seq: u64,
    t_us: u64,
    ops: u64,
}

impl Feed {
    fn emit(&mut self, event: Event) {
        self.seq += 1;
        self.store.apply(&Record { seq: self.seq, t_us: self.t_us, run: Some(RunId(0)), event });
    }

    /// Adds one inference of the detailed phase.
    fn step(&mut self) {
        let i = self.seq;
        self.t_us += 33_000;
        let latency = vec![5_000_000 + noise(i) * 1000];
        let batch = |phase| InferenceBatch {
            phase,
            first_index: i,
            start_us: vec![i],
            latency_ns: latency.clone(),
            late_ns: Vec::new(),
        };
        let batches = [batch(Phase::Clean), batch(Phase::Detailed)];
        for batch in batches {
            self.emit(Event::Inferences(batch));
        }
        let values = (0..self.ops).map(|op| 20 + noise(op) * 3 + noise(i + op) % 11).collect();
        self.emit(Event::OpTimes(OpSample { inference: i, values }));
        let values = (0..12).map(|counter| Some(noise(i + counter) as f64)).collect();
        let t_us = self.t_us;
        self.emit(Event::Counters(CounterSample { set: 0, t_us, values }));
        let rss = (100 << 20) + i * 64;
        let memory = MemorySample { mark: MemoryMark::Running, rss, rss_peak: None, pss: None, inferences: i };
        self.emit(Event::Memory(memory));
        self.emit(Event::Log(LogLine::new(LogLevel::Info, LogSource::Backend, "an inference of the detailed phase")));
    }
}

fn noise(i: u64) -> u64 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 1000
}

fn feed(ops: u64, inferences: u64) -> Feed {
    let mut feed = Feed { store: Store::new(), seq: 0, t_us: 1_000_000, ops };
    feed.emit(Event::RunStarted(Box::new(RunPlan {
        device: "local".to_owned(),
        backend: Backend::Cpu,
        model: "/models/large.dlc".to_owned(),
        warmup: 0,
        budget: Budget::Iterations(1000),
        profiling: ProfilingLevel::Detailed,
        profiling_budget: Some(Budget::Iterations(100_000)),
        simulated: false,
        driver: qnnscope::event::Driver::default(),
        energy_while_charging: false,
        mode: qnnscope::event::Mode::default(),
        constraints: qnnscope::event::Constraints::default(),
    })));
    let index = |i: u64| u32::try_from(i).unwrap_or(u32::MAX);
    let graph_ops = (0..ops).map(|i| Op {
        index: index(i),
        name: format!("model/stage_{}/block_{i}/conv", i / 50),
        op_type: "Conv2d".to_owned(),
        package: "qti.aisw".to_owned(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        params: serde_json::Map::default(),
        macs: Some(noise(i) * 10_000),
        parameter_bytes: 0,
        bytes_moved: None,
    });
    let graph_ops: Vec<Op> = graph_ops.collect();
    let rows =
        graph_ops.iter().map(|op| OpRow { name: op.name.clone(), op: Some(op.index), unit: OpUnit::Us, htp_op: None });
    let rows = rows.collect();
    let name = "large".to_owned();
    let graph = Graph { name, inputs: Vec::new(), outputs: Vec::new(), ops: graph_ops, parameter_bytes: 0 };
    feed.emit(Event::GraphComposed(Box::new(graph)));
    feed.emit(Event::OpsDeclared(rows));
    let counters = (0..12).map(|i| CounterInfo {
        id: format!("host.cpu.{i}"),
        label: format!("CPU {i}"),
        unit: "%".to_owned(),
        maximum: Some(1000.0),
        unavailable: None,
    });
    feed.emit(Event::CountersDeclared(counters.collect()));
    feed.emit(Event::PhaseStarted { phase: Phase::Detailed, budget: Budget::Iterations(100_000) });
    for _ in 0..inferences {
        feed.step();
    }
    feed
}

fn view() -> View {
    let model = PathBuf::from("/models/large.dlc");
    let choice = StartChoice { device: "local".to_owned(), model, backends: vec![Backend::Cpu] };
    View::live(&choice, Vec::new(), Vec::new())
}

fn frames(criterion: &mut Criterion) {
    let theme = Theme::shipped("dark").expect("it is shipped");
    let mut group = criterion.benchmark_group("frame_200x60");
    for ops in [60, 500, 5_000] {
        let mut feed = feed(ops, 300);
        let mut view = view();
        let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).expect("a test backend never fails");
        group.bench_function(BenchmarkId::new("still", ops), |bencher| {
            bencher.iter(|| {
                let now = feed.t_us;
                let store = &feed.store;
                let drawn = terminal.draw(|frame| {
                    view.prepare(store, frame.area(), now);
                    draw(frame, store, &view, &theme, now);
                });
                black_box(drawn.expect("a test backend never fails").count)
            });
        });
        // Sorted by a percentile and with new data before every frame: the most work that a frame can
        // require.
        view.sort = Sort { column: Column::P99, descending: true };
        group.bench_function(BenchmarkId::new("running", ops), |bencher| {
            bencher.iter_custom(|iterations| {
                let mut spent = std::time::Duration::ZERO;
                for _ in 0..iterations {
                    feed.step();
                    update(&mut view, &feed.store, KeyAction::Down.into());
                    let begun = std::time::Instant::now();
                    let now = feed.t_us;
                    let store = &feed.store;
                    let drawn = terminal.draw(|frame| {
                        view.prepare(store, frame.area(), now);
                        draw(frame, store, &view, &theme, now);
                    });
                    black_box(drawn.expect("a test backend never fails").count);
                    spent += begun.elapsed();
                }
                spent
            });
        });
    }
    group.finish();
}

/// Frames of the pages other than the live view, for the largest model and a full log.
fn pages(criterion: &mut Criterion) {
    let theme = Theme::shipped("dark").expect("it is shipped");
    let mut group = criterion.benchmark_group("page_200x60");
    let mut feed = feed(5_000, 300);
    for i in 0..10_000 {
        let text = format!("prepare: pass {i} over the graph");
        feed.emit(Event::Log(LogLine::new(LogLevel::Info, LogSource::Backend, &text)));
    }
    let failure = Failure::new(Stage::Execute, "graphExecute", "the backend failed");
    feed.emit(Event::Failed(Box::new(failure)));
    feed.emit(Event::RunFinished { status: RunStatus::Failed });
    let keys = [
        ("diagnosis", KeyAction::Diagnosis),
        ("findings", KeyAction::Findings),
        ("outliers", KeyAction::Outliers),
        ("compare", KeyAction::Compare),
    ];
    for (name, key) in keys {
        let mut view = view();
        let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).expect("a test backend never fails");
        let area = ratatui::layout::Rect::new(0, 0, SIZE.0, SIZE.1);
        view.prepare(&feed.store, area, feed.t_us);
        // The diagnosis of the failed run has opened automatically.
        update(&mut view, &feed.store, KeyAction::Back.into());
        update(&mut view, &feed.store, key.into());
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let (store, now) = (&feed.store, feed.t_us);
                let drawn = terminal.draw(|frame| {
                    view.prepare(store, frame.area(), now);
                    draw(frame, store, &view, &theme, now);
                });
                black_box(drawn.expect("a test backend never fails").count)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, frames, pages);
criterion_main!(benches);
