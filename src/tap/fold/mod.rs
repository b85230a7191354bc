//! Folds one process's messages into events: each executing graph is a run.

mod graphs;
mod run;
mod start;

use crate::event::{BoundInput, Event, LogLevel, LogLine, LogSource, RunId, TapRecord, TapSeen};
use crate::probes::process::ProcessMemory;
use crate::session::RunIds;
use graphs::Graphs;
use qnnscope_core::tap::{BoundTensor, Call, Detail, Execution, TapMessage, execution_flags};
use run::Followed;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of runs per session; further graphs are counted with the existing one of the same name.
const MOST_RUNS: u32 = 256;
/// Maximum number of simultaneous graphs of one name with separate runs.
const MOST_OF_A_NAME: usize = 8;

/// An event with its timestamp and run.
#[derive(Debug, Clone, PartialEq)]
pub struct Out {
    /// Timestamp, host monotonic microseconds.
    pub t_us: u64,
    /// Run.
    pub run: Option<RunId>,
    /// The event.
    pub event: Event,
}

/// Allocates run ids up to a limit, shared by all processes of a session.
#[derive(Debug, Clone, Default)]
pub struct FewRuns {
    ids: RunIds,
    begun: Arc<AtomicU32>,
}

impl FewRuns {
    /// Allocates from these ids.
    pub fn new(ids: RunIds) -> Self {
        Self { ids, begun: Arc::default() }
    }

    fn next(&self) -> Option<RunId> {
        (self.begun.fetch_add(1, Ordering::Relaxed) < MOST_RUNS).then(|| self.ids.next())
    }
}

/// What is known about one process.
#[derive(Debug)]
pub struct Fold {
    process: u32,
    ids: FewRuns,
    device: String,
    /// For a fork: the process whose QNN it continues to use.
    parent: Option<Arc<Mutex<Fold>>>,
    arch: String,
    graphs: Graphs,
    runs: Vec<Followed>,
    /// Run of each followed graph, by the graph's id.
    run_of: HashMap<u32, usize>,
    /// The call that each thread is in.
    in_flight: HashMap<u32, (String, Option<u32>)>,
    last_ns: u64,
    orderly: bool,
    ended: bool,
}

impl Fold {
    /// A fold that knows nothing yet about the process with this number.
    pub fn new(process: u32, device: &str, ids: FewRuns, parent: Option<Arc<Mutex<Fold>>>) -> Self {
        Self {
            process,
            ids,
            device: device.to_owned(),
            parent,
            arch: String::new(),
            graphs: Graphs::default(),
            runs: Vec::new(),
            run_of: HashMap::new(),
            in_flight: HashMap::new(),
            last_ns: 0,
            orderly: false,
            ended: false,
        }
    }

    /// Processes a message.
    pub fn take(&mut self, message: TapMessage, out: &mut Vec<Out>) {
        match message {
            // Handled elsewhere: by the owner of the connection, or, for a binary, once it has been read.
            TapMessage::Loaded(_) | TapMessage::Again { .. } | TapMessage::Binary(_) => {}
            TapMessage::Hello(process) => {
                self.arch.clone_from(&process.arch);
                let t_ns = process.t_ns;
                self.see(t_ns, None, TapSeen::ProcessStarted(Box::new(process)), out);
            }
            TapMessage::Provider(provider) => {
                self.graphs.add_provider(provider.clone());
                self.see(provider.t_ns, None, TapSeen::Provider(provider), out);
            }
            TapMessage::Began { call, t_ns, thread, graph } => {
                self.last_ns = self.last_ns.max(t_ns);
                if self.in_flight.len() < 4096 {
                    self.in_flight.insert(thread, (call, graph));
                }
            }
            TapMessage::Ended(call) => self.called(&call, out),
            TapMessage::Composed { graph, op_count, head } => self.graphs.composed(graph, op_count, *head),
            TapMessage::GraphOps { graph, ops } => self.graphs.ops(graph, ops),
            TapMessage::Bound { graph, inputs, outputs } => self.bound(graph, inputs, outputs, out),
            TapMessage::Refused(op) => {
                let t_ns = op.t_ns;
                self.see(t_ns, None, TapSeen::Refused(op), out);
            }
            TapMessage::Executions(executions) => self.executed(executions, out),
            TapMessage::Detail(detail) => self.detail(&detail, out),
            TapMessage::Voted(vote) => self.see(vote.t_ns, None, TapSeen::Voted(vote), out),
            TapMessage::MemoryShared { t_ns, count, code } => {
                self.see(t_ns, None, TapSeen::MemoryShared { count, code }, out);
            }
            TapMessage::Log { t_ns, level, text } => {
                let line = LogLine::new(LogLevel::from_qnn(level), LogSource::Backend, &text);
                let run = self.only_run();
                self.push(t_ns, run, Event::Log(line), out);
            }
            TapMessage::Note { t_ns, text } => {
                let line = LogLine::new(LogLevel::Info, LogSource::Qnnscope, &format!("tap: {text}"));
                self.push(t_ns, None, Event::Log(line), out);
                self.see(t_ns, None, TapSeen::Note { text }, out);
            }
            TapMessage::Lost { what, count, reason } => {
                self.lost(&what, reason.as_deref().unwrap_or("the tap's queue was full"), count, out);
            }
            TapMessage::Bye { t_ns } => {
                self.last_ns = self.last_ns.max(t_ns);
                self.orderly = true;
            }
        }
    }

    /// Reports something that did not arrive.
    pub fn lost(&mut self, what: &str, reason: &str, count: u64, out: &mut Vec<Out>) {
        let source = format!("tap: {what}");
        self.push(self.last_ns, None, Event::Lost { source, reason: reason.to_owned(), count }, out);
        let reason = Some(reason.to_owned());
        self.see(self.last_ns, None, TapSeen::Lost { what: what.to_owned(), count, reason }, out);
    }

    /// Called when the connection has ended, and with it the process or its QNN.
    pub fn end(&mut self, out: &mut Vec<Out>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let mut during: Vec<(String, Option<u32>)> = std::mem::take(&mut self.in_flight).into_values().collect();
        during.sort();
        if !self.orderly {
            for (call, graph) in &during {
                self.died_in(call, *graph, out);
            }
        }
        for run in &mut self.runs {
            run.finish(self.last_ns / 1000, self.orderly, out);
        }
        let during = if self.orderly { Vec::new() } else { during.into_iter().map(|(call, _)| call).collect() };
        self.see(self.last_ns, None, TapSeen::ProcessEnded { orderly: self.orderly, during }, out);
    }

    /// Its number within the session.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// The file of a backend's library, as the process named it.
    pub fn library(&self, provider: u32) -> Option<String> {
        self.graphs.library(provider)
    }

    /// True if the process announced its end.
    pub fn is_orderly(&self) -> bool {
        self.orderly
    }

    /// Records the process's current memory, for every active run in it.
    pub fn memory(&mut self, t_us: u64, memory: ProcessMemory, out: &mut Vec<Out>) {
        for run in &mut self.runs {
            run.memory(t_us, memory, out);
        }
    }

    fn called(&mut self, call: &Call, out: &mut Vec<Out>) {
        // A list notification does not end its thread's call.
        if !call.of_list {
            self.in_flight.remove(&call.thread);
        }
        let end_ns = call.start_ns.saturating_add(call.duration_ns);
        self.graphs.called(call);
        let failed = (call.code != 0).then_some(call.graph).flatten();
        let fails_graph = failed.filter(|_| call.call == "graphFinalize");
        self.see(end_ns, None, TapSeen::Called(Box::new(call.clone())), out);
        if let Some(graph) = fails_graph
            && let Some(run) = self.follow(graph, false, out)
        {
            self.runs[run].fail(end_ns / 1000, call, out);
        }
    }

    /// If a process ends within a call about a graph, that graph's run fails.
    fn died_in(&mut self, call: &str, graph: Option<u32>, out: &mut Vec<Out>) {
        let Some(run) = graph.and_then(|graph| self.follow(graph, false, out)) else { return };
        let t_us = self.last_ns / 1000;
        self.runs[run].die(t_us, call, out);
    }

    fn bound(&mut self, graph: u32, inputs: Vec<BoundTensor>, outputs: Vec<BoundTensor>, out: &mut Vec<Out>) {
        let all = || inputs.iter().chain(&outputs);
        let input = |bound: &BoundTensor| BoundInput {
            name: bound.tensor.name.clone(),
            bytes: bound.tensor.bytes(),
            shared: bound.shared,
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let seen = TapSeen::Bound {
            graph,
            inputs: inputs.iter().map(input).collect(),
            floats: count(all().filter(|bound| bound.tensor.dtype.is_float()).count()),
            tensors: count(all().count()),
        };
        // Reported once the graph is followed, since its first execution comes after this.
        match self.run_id(graph) {
            Some(run) => self.see(self.last_ns, Some(run), seen, out),
            None => self.graphs.keep_bound(graph, seen),
        }
        let tensors = |bound: Vec<BoundTensor>| bound.into_iter().map(|bound| bound.tensor).collect();
        self.graphs.bound(graph, tensors(inputs), tensors(outputs));
        if let Some(&run) = self.run_of.get(&graph) {
            self.runs[run].compose(self.last_ns / 1000, self.graphs.graph(graph), out);
        }
    }

    fn executed(&mut self, executions: Vec<Execution>, out: &mut Vec<Out>) {
        let mut touched = Vec::new();
        for execution in &executions {
            self.last_ns = self.last_ns.max(execution.start_ns.saturating_add(execution.duration_ns));
            // Only a graph's first execution is announced, and its end is reported here.
            if self.in_flight.get(&execution.thread).is_some_and(|(call, _)| call.starts_with("graphExecute")) {
                self.in_flight.remove(&execution.thread);
            }
            let profiled = execution.flags & execution_flags::HOST_PROFILED != 0;
            let Some(run) = self.follow(execution.graph, profiled, out) else { continue };
            self.runs[run].executed(execution);
            if !touched.contains(&run) {
                touched.push(run);
            }
        }
        let t_ns = self.last_ns;
        self.see(t_ns, None, TapSeen::Executed(executions), out);
        for run in touched {
            self.runs[run].send(t_ns / 1000, out);
        }
    }

    fn detail(&mut self, detail: &Detail, out: &mut Vec<Out>) {
        let end_ns = detail.start_ns.saturating_add(detail.duration_ns);
        self.last_ns = self.last_ns.max(end_ns);
        if detail.cut > 0 {
            self.lost("profiling events", "there were more than the tap keeps", detail.cut.into(), out);
        }
        let events = graphs::tree(&detail.events);
        if detail.call.starts_with("graphExecute") {
            if let Some(run) = self.follow(detail.graph, detail.host, out) {
                self.runs[run].detail(end_ns / 1000, self.graphs.graph(detail.graph), &events, out);
            }
        } else if let Some(&run) = self.run_of.get(&detail.graph) {
            self.runs[run].sub_stages(end_ns / 1000, &detail.call, &events, out);
        } else {
            self.graphs.keep_events(detail.graph, &detail.call, events);
        }
    }

    /// The run of a graph, which starts with its first execution. `None` for graphs of backends that are not
    /// followed, and beyond the maximum number of runs.
    fn follow(&mut self, graph: u32, profiled: bool, out: &mut Vec<Out>) -> Option<usize> {
        if let Some(&run) = self.run_of.get(&graph) {
            return Some(run);
        }
        // A fork names the graphs it continues with; its parent reported their contents.
        if !self.graphs.is_composed(graph)
            && let Some(parent) = &self.parent
            && let Some(known) = parent.lock().unwrap_or_else(PoisonError::into_inner).graphs.lend(graph)
        {
            self.graphs.inherit(graph, known);
        }
        let start = self.graphs.start(graph, &self.arch, &self.device, profiled)?;
        let same = |run: &&Followed| run.name == start.name && run.provider == start.provider;
        let of_name: Vec<usize> = (0..self.runs.len()).filter(|&at| same(&&self.runs[at])).collect();
        // A graph recreated after its context was freed continues the previous graph's run.
        let again = of_name.iter().copied().find(|&at| !self.graphs.is_alive(self.runs[at].graph));
        let at = match again.or_else(|| of_name.first().copied().filter(|_| of_name.len() >= MOST_OF_A_NAME)) {
            Some(at) => {
                self.runs[at].graph = graph;
                at
            }
            None => {
                let id = self.ids.next()?;
                let mut run = Followed::new(id, graph, &start, profiled);
                start::send(id, &start, out);
                let followed =
                    TapSeen::Followed { graph, name: start.name.clone(), origin: start.origin, context: start.context };
                self.see(start.began_ns, Some(id), followed, out);
                run.compose(start.began_ns / 1000, self.graphs.graph(graph), out);
                for (call, events) in self.graphs.take_events(graph) {
                    run.sub_stages(start.began_ns / 1000, &call, &events, out);
                }
                start::send_stages(id, &start, out);
                self.runs.push(run);
                self.runs.len() - 1
            }
        };
        let id = self.runs[at].id;
        if again.is_some() {
            let followed = TapSeen::Followed { graph, name: start.name, origin: start.origin, context: start.context };
            self.see(self.last_ns, Some(id), followed, out);
        }
        if let Some(bound) = self.graphs.take_bound(graph) {
            self.see(self.last_ns, Some(id), bound, out);
        }
        self.run_of.insert(graph, at);
        Some(at)
    }

    fn run_id(&self, graph: u32) -> Option<RunId> {
        self.run_of.get(&graph).map(|&at| self.runs[at].id)
    }

    fn only_run(&self) -> Option<RunId> {
        match self.runs.as_slice() {
            [run] => Some(run.id),
            _ => None,
        }
    }

    fn see(&mut self, t_ns: u64, run: Option<RunId>, seen: TapSeen, out: &mut Vec<Out>) {
        let record = TapRecord { process: Some(self.process), seen };
        self.push(t_ns, run, Event::Tap(Box::new(record)), out);
    }

    fn push(&mut self, t_ns: u64, run: Option<RunId>, event: Event, out: &mut Vec<Out>) {
        self.last_ns = self.last_ns.max(t_ns);
        out.push(Out { t_us: t_ns / 1000, run, event });
    }
}

#[cfg(test)]
mod tests;
