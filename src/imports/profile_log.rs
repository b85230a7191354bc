//! QNN profiling logs: `qnn-profiling-data_*.log` from the vendor's tools, `*_qnn.log` from ONNX Runtime. One
//! run per graph.

use super::Import;
use super::draft::{Draft, RunDraft, metric};
use super::error::Problem;
use super::sample::Sample;
use crate::backends::profile_log::{
    Chunk, Decoder, Event as LogEvent, EventType, Header, Message, Method, SessionSplitter, Unit, Value, op_identifier,
};
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{Event, Metric, OpUnit, Phase, RuntimeInfo, Stage, clean_text};
use std::collections::HashMap;
use std::fs::File;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;
/// Most graphs in one log.
const MAX_GRAPHS: usize = 256;
/// Largest log that is imported, in bytes; `qnnscope profile-log` streams larger ones.
const MAX_BYTES: u64 = 1 << 30;
/// Deepest events that are read; linting has four levels.
const MAX_DEPTH: usize = 8;
/// HTP's name for a figure that is 0 in every inference if it is emulated: no hardware thread ever works.
const THREADS: &str = "Number of HVX threads used";

pub struct ProfileLog;

impl Import for ProfileLog {
    fn kind(&self) -> &'static str {
        "qnn-profile-log"
    }

    fn label(&self) -> &'static str {
        "QNN profiling log"
    }

    fn is_it(&self, sample: &Sample) -> bool {
        if sample.head().len() < 16 {
            return false;
        }
        let mut decoder = Decoder::new();
        decoder.push(sample.head());
        match decoder.next_chunk() {
            Ok(Some(_)) => true,
            Ok(None) => decoder.finish().is_ok(),
            Err(_) => false,
        }
    }

    fn read(&self, sample: &Sample, draft: &mut Draft) -> Result<(), Problem> {
        let mut source = File::open(sample.path())?;
        if source.metadata()?.len() > MAX_BYTES {
            return Err(Problem::content(format!(
                "it is larger than {} MiB; `qnnscope profile-log` reads logs of any size",
                MAX_BYTES >> 20
            )));
        }
        let mut decoder = Decoder::new();
        let mut log = Log::default();
        loop {
            loop {
                match decoder.next_chunk() {
                    Ok(Some(chunk)) => log.chunk(&chunk, draft)?,
                    Ok(None) => break,
                    Err(error) if log.messages == 0 => return Err(Problem::content(error.to_string())),
                    Err(error) => {
                        draft.note(format!("{error}; the part before it is used"));
                        return log.end(draft);
                    }
                }
            }
            if decoder.read_from(&mut source, PIECE)? == 0 {
                break;
            }
        }
        if decoder.incomplete_bytes() > 0 {
            draft.note(format!(
                "its last {} bytes are an incomplete chunk and were skipped",
                decoder.incomplete_bytes()
            ));
        }
        log.end(draft)
    }
}

/// What is known about the log so far.
#[derive(Default)]
struct Log {
    splitter: SessionSplitter,
    messages: u64,
    graphs: HashMap<Vec<u8>, usize>,
    state: Vec<State>,
    runtime: Option<RuntimeInfo>,
    /// Stages reported before the first graph, with their times.
    before: Vec<(u64, Stage, f64)>,
    context_binary: bool,
}

/// What is known about one graph besides its run.
#[derive(Default)]
struct State {
    session: u64,
    sessions: u32,
    begun: bool,
    emulated: Option<bool>,
}

impl Log {
    fn chunk(&mut self, chunk: &Chunk<'_>, draft: &mut Draft) -> Result<(), Problem> {
        if let Some(header) = chunk.header() {
            self.header(&header, draft);
        }
        for message in chunk.messages() {
            self.splitter.message(&message);
            self.messages += 1;
            if !message.is_private() {
                self.message(&message, draft)?;
            }
        }
        Ok(())
    }

    fn header(&mut self, header: &Header<'_>, draft: &mut Draft) {
        self.splitter.header(header);
        draft.clock(header.epoch_us(), header.steady_us());
        let text = |bytes: Option<&[u8]>| bytes.map(|bytes| clean_text(&String::from_utf8_lossy(bytes)));
        let version = text(header.backend_version()).unwrap_or_default();
        // ONNX Runtime writes the backend API version where other tools write the build.
        let is_build = version.starts_with('v');
        self.runtime = (!version.is_empty()).then(|| RuntimeInfo {
            path: String::new(),
            build_id: is_build.then(|| version.clone()),
            core_api: String::new(),
            backend_api: if is_build { String::new() } else { version },
            provider: text(header.writer_name()).unwrap_or_else(|| "qnn-net-run".to_owned()),
        });
    }

    fn message(&mut self, message: &Message<'_>, draft: &mut Draft) -> Result<(), Problem> {
        let start_us = message.interval().map_or(message.time_us(), |interval| interval.start_us);
        let duration_us = message.netrun_us() as f64;
        let stage = match message.method() {
            Method::Execute | Method::ExecuteAsync => return self.inference(message, start_us, draft),
            Method::LibraryLoad => Stage::LibraryLoad,
            Method::ContextCreate | Method::CreateFromBinary => Stage::ContextCreate,
            Method::ComposeGraphs => Stage::Compose,
            Method::Finalize => Stage::Finalize,
            Method::DeInit => Stage::Teardown,
            _ => return Ok(()),
        };
        self.context_binary |= message.method() == Method::CreateFromBinary;
        if stage == Stage::Teardown {
            let runs = draft.runs().iter_mut().zip(&self.state);
            runs.for_each(|(run, _)| run.stage(start_us, stage, duration_us));
        } else if message.method() == Method::Finalize {
            let at = self.graph(message, start_us, draft)?;
            // ONNX Runtime repeats the previous partition's finalize; the first one counts.
            if !std::mem::replace(&mut self.state[at].begun, true) {
                let run = draft.at(at)?;
                let told = if duration_us > 0.0 { duration_us } else { first_us(message) };
                run.stage(start_us, stage, told);
                parts(run, start_us, stage, message);
            }
        } else {
            self.before.push((start_us, stage, duration_us));
        }
        Ok(())
    }

    /// The run for a message's graph.
    fn graph(&mut self, message: &Message<'_>, start_us: u64, draft: &mut Draft) -> Result<usize, Problem> {
        let name = message.graph().unwrap_or_default();
        if let Some(&at) = self.graphs.get(name) {
            return Ok(at);
        }
        let at = self.state.len();
        if at == MAX_GRAPHS {
            return Err(Problem::content(format!("it has more than {MAX_GRAPHS} graphs")));
        }
        self.graphs.insert(name.to_vec(), at);
        self.state.push(State { session: self.splitter.sessions(), sessions: 1, ..State::default() });
        let run = draft.run()?;
        if let Some(name) = message.graph_name().filter(|name| !name.is_empty()) {
            run.model = clean_text(&name);
        }
        run.has_moments = true;
        let begun_us = self.before.first().map_or(start_us, |(t_us, ..)| (*t_us).min(start_us));
        if let Some(runtime) = &self.runtime {
            run.push(begun_us, Event::RuntimeLoaded(runtime.clone()));
        }
        for (t_us, stage, duration_us) in &self.before {
            run.stage(*t_us, *stage, *duration_us);
        }
        Ok(at)
    }

    fn inference(&mut self, message: &Message<'_>, start_us: u64, draft: &mut Draft) -> Result<(), Problem> {
        let at = self.graph(message, start_us, draft)?;
        let session = self.splitter.sessions();
        let (state, run) = (&mut self.state[at], draft.at(at)?);
        if state.session != session {
            state.session = session;
            run.push(start_us, Event::LaunchStarted { index: state.sessions, of: state.sessions + 1, reason: None });
            state.sessions += 1;
        }
        let told = Told::of(message);
        if run.backend == Backend::Unknown {
            run.backend = told.backend;
        }
        let is_first = run.done(Phase::First) < u64::from(state.sessions) && (state.begun || self.context_binary);
        let phase = if is_first { Phase::First } else { Phase::Clean };
        let latency_us = match message.netrun_us() {
            0 => told.execute_us.unwrap_or(0.0),
            us => us as f64,
        };
        run.inference(phase, Some(start_us), latency_us);
        let names = || told.ops.iter().map(|op| op.0.as_str());
        if !told.ops.is_empty() && !run.has_rows() {
            run.clean_level = ProfilingLevel::Detailed;
            let unit = if told.ops[0].1 == Unit::Cycles { OpUnit::Cycles } else { OpUnit::Us };
            run.rows(names().map(|name| (name.to_owned(), None)), unit);
        } else if run.clean_level == ProfilingLevel::Off && !told.metrics.is_empty() {
            run.clean_level = ProfilingLevel::Basic;
        }
        if !told.ops.is_empty() {
            if run.has_these_rows(names().collect::<Vec<_>>().into_iter()) {
                run.op_values(phase, told.ops.iter().map(|op| op.2).collect());
            } else {
                run.other_ops();
            }
        }
        if let Some(threads) = told.metrics.iter().find(|metric| metric.name == THREADS) {
            state.emulated = Some(state.emulated.unwrap_or(true) && threads.value <= 0.0);
        }
        if phase == Phase::Clean {
            run.metrics(phase, told.metrics);
        }
        Ok(())
    }

    fn end(self, draft: &mut Draft) -> Result<(), Problem> {
        if self.state.is_empty() {
            return Err(Problem::content(format!("no graph was prepared or run in its {} messages", self.messages)));
        }
        for (run, state) in draft.runs().iter_mut().zip(&self.state) {
            run.simulated = run.backend == Backend::Htp && state.emulated == Some(true);
        }
        Ok(())
    }
}

/// What a backend reported for one inference.
struct Told {
    backend: Backend,
    execute_us: Option<f64>,
    ops: Vec<(String, Unit, u64)>,
    metrics: Vec<Metric>,
}

impl Told {
    fn of(message: &Message<'_>) -> Self {
        let mut told = Self { backend: Backend::Unknown, execute_us: None, ops: Vec::new(), metrics: Vec::new() };
        for event in message.events() {
            let name = event.name().unwrap_or_default();
            told.backend = match told.backend {
                Backend::Unknown => backend_of(&name),
                known => known,
            };
            if event.event_type() == EventType::Execute {
                told.execute_us = told.execute_us.or(number(event.value()));
            }
            if event.event_type() != EventType::Node
                && event.unit() != Unit::Object
                && let Some(value) = number(event.value())
            {
                told.metrics.push(metric(&name, unit_name(event.unit()), value));
            }
        }
        let is_cpu = told.backend == Backend::Cpu;
        for event in message.events() {
            nodes(&event, is_cpu, &mut told.ops, MAX_DEPTH);
        }
        told
    }
}

/// The backend, recognised by the name of a root event.
pub fn backend_of(event: &str) -> Backend {
    match event {
        "GRAPH_EXECUTE" | "GRAPH_FINALIZE" => Backend::Cpu,
        name if name.starts_with("QNN (") || name.starts_with("Accelerator (") => Backend::Htp,
        _ => Backend::Unknown,
    }
}

fn nodes(event: &LogEvent<'_>, is_cpu: bool, ops: &mut Vec<(String, Unit, u64)>, depth: usize) {
    if event.event_type() == EventType::Node
        && let Some(value) = number(event.value())
    {
        let name = event.name().unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and 0 for less")]
        ops.push((clean_text(op_identifier(&name, is_cpu).name), event.unit(), value as u64));
    }
    if depth > 0 {
        event.events().for_each(|below| nodes(&below, is_cpu, ops, depth - 1));
    }
}

fn parts(run: &mut RunDraft, t_us: u64, stage: Stage, message: &Message<'_>) {
    for event in message.events() {
        let is_part =
            |event: &LogEvent<'_>| event.unit() == Unit::Microseconds && event.event_type() != EventType::Node;
        for part in std::iter::once(event).chain(event.events()).filter(is_part) {
            if let (Some(name), Some(value)) = (part.name(), number(part.value())) {
                run.part(t_us, stage, &name, value, "us");
            }
        }
    }
}

/// The first time reported by the backend, in microseconds.
fn first_us(message: &Message<'_>) -> f64 {
    let mut events = message.events();
    let time = events.find(|event| event.unit() == Unit::Microseconds).and_then(|event| number(event.value()));
    time.unwrap_or(0.0)
}

fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Unsigned(value) => Some(value as f64),
        Value::Signed(value) => Some(value as f64),
        Value::Float(value) => Some(f64::from(value)),
        Value::Double(value) => Some(value),
        Value::Object { .. } => None,
    }
    .filter(|value| value.is_finite())
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Microseconds => "us",
        Unit::Bytes => "bytes",
        Unit::Cycles => "cycles",
        Unit::Count => "count",
        Unit::Object | Unit::NoUnit | Unit::Other(_) => "",
    }
}
