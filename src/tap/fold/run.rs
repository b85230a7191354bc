//! One executing graph as a run, with the same events as the runner's.

use super::Out;
use super::start::Start;
use crate::backends::qnn::api::ProfileEvent;
use crate::backends::qnn::runner::profile_events;
use crate::event::{
    Event, Failure, InferenceBatch, LogLevel, LogLine, LogSource, MemoryMark, MemorySample, MetricSample, OpSample,
    Phase, RunId, RunStatus, Stage,
};
use crate::models::Graph;
use crate::probes::process::ProcessMemory;
use qnnscope_core::tap::{Call, Execution, execution_flags};
use qnnscope_qnn::errors;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run of a graph.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that is told once, by itself")]
pub(super) struct Followed {
    pub id: RunId,
    /// The graph that currently represents it.
    pub graph: u32,
    pub name: String,
    pub provider: u32,
    /// The program profiles every execution itself, so those latencies count.
    profiled: bool,
    composed: Option<Arc<Graph>>,
    declared: bool,
    /// Inferences sent per phase.
    sent: BTreeMap<Phase, u64>,
    details: u64,
    waiting: Vec<(Phase, u64, u64)>,
    failed: u64,
    failure: Option<(u64, u64)>,
    mixed: u64,
    told_mixed: bool,
    executing: bool,
    moved: bool,
    last_rss: Option<u64>,
    finished: bool,
}

impl Followed {
    pub fn new(id: RunId, graph: u32, start: &Start, profiled: bool) -> Self {
        Self {
            id,
            graph,
            name: start.name.clone(),
            provider: start.provider,
            profiled,
            composed: None,
            declared: false,
            sent: BTreeMap::new(),
            details: 0,
            waiting: Vec::new(),
            failed: 0,
            failure: None,
            mixed: 0,
            told_mixed: false,
            executing: false,
            moved: false,
            last_rss: None,
            finished: false,
        }
    }

    fn push(&self, t_us: u64, event: Event, out: &mut Vec<Out>) {
        out.push(Out { t_us, run: Some(self.id), event });
    }

    /// Announces the graph, once, as soon as it is known.
    pub fn compose(&mut self, t_us: u64, graph: Option<Arc<Graph>>, out: &mut Vec<Out>) {
        let Some(graph) = graph.filter(|_| self.composed.is_none()) else { return };
        self.push(t_us, Event::GraphComposed(Box::new((*graph).clone())), out);
        self.push(t_us, Event::GraphChosen { name: graph.name.clone() }, out);
        self.composed = Some(graph);
    }

    /// Records an execution; [`Followed::send`] reports it.
    pub fn executed(&mut self, execution: &Execution) {
        self.moved = true;
        if execution.code != 0 {
            self.failed += 1;
            self.failure.get_or_insert((execution.start_ns / 1000, execution.code));
            return;
        }
        let has = |flag| execution.flags & flag != 0;
        let phase = match (has(execution_flags::HOST_PROFILED), self.profiled) {
            _ if has(execution_flags::FIRST) => Phase::First,
            _ if has(execution_flags::DETAILED) => Phase::Detailed,
            (true, false) => Phase::Detailed,
            (false, true) => {
                // A few executions without the program's profiling among many with it: neither kind may shift
                // the other's figures.
                self.mixed += 1;
                return;
            }
            _ => Phase::Clean,
        };
        self.waiting.push((phase, execution.start_ns / 1000, execution.duration_ns));
    }

    /// Reports the recorded executions.
    pub fn send(&mut self, t_us: u64, out: &mut Vec<Out>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        if !std::mem::replace(&mut self.executing, true) {
            let first = waiting.iter().find(|(phase, ..)| *phase == Phase::First);
            if let Some(&(_, start_us, latency_ns)) = first {
                let stage = Stage::FirstInference;
                self.push(start_us, Event::StageStarted { stage }, out);
                let duration_us = latency_ns as f64 / 1000.0;
                self.push(start_us + latency_ns / 1000, Event::StageFinished { stage, duration_us }, out);
            }
            self.push(t_us, Event::StageStarted { stage: Stage::Execute }, out);
        }
        // Threads finish in another order than they started.
        waiting.sort_by_key(|&(phase, start_us, _)| (phase, start_us));
        for phase in [Phase::First, Phase::Clean, Phase::Detailed] {
            let of_phase = || waiting.iter().filter(|(of, ..)| *of == phase);
            let count = of_phase().count() as u64;
            if count == 0 {
                continue;
            }
            let first_index = self.sent.entry(phase).or_default();
            let batch = InferenceBatch {
                phase,
                first_index: *first_index,
                start_us: of_phase().map(|(_, start_us, _)| *start_us).collect(),
                latency_ns: of_phase().map(|(.., latency_ns)| *latency_ns).collect(),
                late_ns: Vec::new(),
            };
            *first_index += count;
            self.push(t_us, Event::Inferences(batch), out);
        }
        if self.mixed > 0 && !std::mem::replace(&mut self.told_mixed, true) {
            let text = format!(
                "graph {}: the program profiles most executions but not all; its latencies leave out those without",
                self.name
            );
            self.push(t_us, Event::Log(LogLine::new(LogLevel::Info, LogSource::Qnnscope, &text)), out);
        }
    }

    /// Reports op times and figures of one execution, exactly as the runner computes them.
    pub fn detail(&mut self, t_us: u64, graph: Option<Arc<Graph>>, events: &[ProfileEvent], out: &mut Vec<Out>) {
        self.compose(t_us, graph, out);
        let nodes = profile_events::nodes(events);
        let inference = self.details;
        if !nodes.is_empty() {
            if !std::mem::replace(&mut self.declared, true) {
                let none = Graph {
                    name: String::new(),
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                    ops: Vec::new(),
                    parameter_bytes: 0,
                };
                let rows = profile_events::rows(&nodes, self.composed.as_deref().unwrap_or(&none));
                self.push(t_us, Event::OpsDeclared(rows), out);
            }
            let values = nodes.iter().map(|node| node.value).collect();
            self.push(t_us, Event::OpTimes(OpSample { inference, values }), out);
        }
        let metrics = profile_events::metrics(events);
        if !metrics.is_empty() {
            self.push(t_us, Event::Metrics(MetricSample { phase: Phase::Detailed, inference, metrics }), out);
        }
        self.details += 1;
    }

    /// Reports the parts of a stage, timed by the backend.
    pub fn sub_stages(&self, t_us: u64, call: &str, events: &[ProfileEvent], out: &mut Vec<Out>) {
        let stage = if call == "graphFinalize" { Stage::Finalize } else { Stage::ContextCreate };
        for part in profile_events::sub_stages(stage, events) {
            self.push(t_us, Event::SubStageFinished(part), out);
        }
    }

    /// Reports the memory of its process, while the graph executes.
    pub fn memory(&mut self, t_us: u64, memory: ProcessMemory, out: &mut Vec<Out>) {
        if self.finished || !std::mem::take(&mut self.moved) {
            return;
        }
        self.last_rss = Some(memory.rss);
        let inferences = self.sent.values().sum();
        let sample = MemorySample {
            mark: MemoryMark::Running,
            rss: memory.rss,
            rss_peak: memory.rss_peak,
            pss: None,
            inferences,
        };
        self.push(t_us, Event::Memory(sample), out);
    }

    /// Fails the run after a call about the graph returned an error.
    pub fn fail(&mut self, t_us: u64, call: &Call, out: &mut Vec<Out>) {
        let mut failure = failure(Stage::Finalize, &call.call, call.code);
        if let Some(message) = &call.message {
            failure.message = format!("{}: {}", failure.message, message);
        }
        self.finish_failed(t_us, failure, out);
    }

    /// Fails the run after the process ended within a call about the graph.
    pub fn die(&mut self, t_us: u64, call: &str, out: &mut Vec<Out>) {
        let stage = if call == "graphFinalize" { Stage::Finalize } else { Stage::Execute };
        self.finish_failed(t_us, Failure::new(stage, call, &format!("the process ended within {call}")), out);
    }

    fn finish_failed(&mut self, t_us: u64, failure: Failure, out: &mut Vec<Out>) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.push(t_us, Event::StageStarted { stage: failure.stage }, out);
        self.push(t_us, Event::Failed(Box::new(failure)), out);
        self.push(t_us, Event::RunFinished { status: RunStatus::Failed }, out);
    }

    /// Ends the run after its process ended.
    pub fn finish(&mut self, t_us: u64, orderly: bool, out: &mut Vec<Out>) {
        let succeeded: u64 = self.sent.values().sum();
        if let (Some((_, code)), 0) = (self.failure, succeeded) {
            let mut failure = failure(Stage::Execute, "graphExecute", code);
            failure.message = format!("{} ({} executions, none succeeded)", failure.message, self.failed);
            self.finish_failed(t_us, failure, out);
        }
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if let Some(rss) = self.last_rss {
            let sample = MemorySample { mark: MemoryMark::End, rss, rss_peak: None, pss: None, inferences: succeeded };
            self.push(t_us, Event::Memory(sample), out);
        }
        let status = if orderly { RunStatus::Ok } else { RunStatus::Stopped };
        self.push(t_us, Event::RunFinished { status }, out);
    }
}

/// The failure of a QNN call in the program.
fn failure(stage: Stage, call: &str, value: u64) -> Failure {
    let row = errors::lookup(value, call);
    let code = value & 0xffff;
    let symbol = row.map(|row| row.symbol.to_owned());
    let meaning = row.map_or_else(String::new, |row| format!(": {}", row.meaning));
    let name = symbol.clone().map_or_else(String::new, |symbol| format!(" ({symbol})"));
    Failure {
        code: Some(code),
        symbol,
        ..Failure::new(stage, call, &format!("{call} failed with {code}{name}{meaning}"))
    }
}
