//! One process of a tapped program.

use super::MOST_SENTENCES;
use super::timeline::{Timed, Timeline};
use crate::event::{BinaryRead, BoundInput, GraphOrigin, RunId, TapSeen};
use qnnscope_core::tap::{Call, Execution, Process, Provider, RefusedOp, Vote, execution_flags};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Most refused ops, failed calls, votes and contexts kept, each; more are only counted.
const MOST: usize = 512;
/// Most graph ids that are remembered.
const MOST_IDS: usize = 1 << 20;

/// Number and duration of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallStats {
    /// Number of calls.
    pub count: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that started after the first execution.
    pub late: u64,
    /// Total duration, in nanoseconds.
    pub total_ns: u64,
    /// Longest duration, in nanoseconds.
    pub longest_ns: u64,
}

/// Graphs created by a process, executed or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphsMade {
    /// Composed and finalized.
    pub finalized: u64,
    /// Found in context binaries.
    pub retrieved: u64,
    /// Names of the first ones.
    pub names: BTreeSet<String>,
}

/// A context that was created.
#[derive(Debug, Clone, PartialEq)]
pub struct TappedContext {
    /// Its id.
    pub context: u32,
    /// The call that created it.
    pub call: Call,
    /// When it was freed, in nanoseconds on the monotonic clock.
    pub freed_ns: Option<u64>,
}

/// A graph that executes; each is a run.
#[derive(Debug)]
pub struct TappedGraph {
    /// The run.
    pub run: RunId,
    /// Name in QNN.
    pub name: String,
    /// Where it comes from.
    pub origin: GraphOrigin,
    /// Its context, if known.
    pub context: Option<u32>,
    /// How often it was created; more than once if the program recreates it.
    pub made: u64,
    /// Executions, synchronous and asynchronous.
    pub executions: u64,
    /// Executions that failed.
    pub failed: u64,
    /// Code of the first failed execution.
    pub failed_code: Option<u64>,
    /// Executions under the program's own profiling.
    pub host_profiled: u64,
    /// Executions that copied at least one input.
    pub copied: u64,
    /// Asynchronous executions.
    pub asynchronous: u64,
    /// Inputs as passed to the first execution; empty if not reported.
    pub inputs: Vec<BoundInput>,
    /// Number of inputs and outputs with floats, and of all inputs and outputs.
    pub floats: Option<(u32, u32)>,
}

impl TappedGraph {
    /// Input bytes copied per execution, for inputs of known type.
    pub fn copied_bytes(&self) -> u64 {
        self.inputs.iter().filter(|input| !input.shared).filter_map(|input| input.bytes).fold(0, u64::saturating_add)
    }
}

/// A process that uses QNN.
#[derive(Debug)]
pub struct TappedProcess {
    /// Its number within the session.
    pub number: u32,
    /// Its identity.
    pub process: Process,
    /// When it started to use QNN, in host monotonic microseconds.
    pub started_us: u64,
    /// When it ended; `None` while it runs.
    pub ended_us: Option<u64>,
    /// True if it ended normally.
    pub orderly: bool,
    /// Calls in progress when it ended.
    pub died_in: Vec<String>,
    /// Backends that it found.
    pub providers: Vec<Provider>,
    /// Statistics of calls, by name.
    pub calls: BTreeMap<String, CallStats>,
    /// The first calls that failed.
    pub failures: Vec<Call>,
    /// Graphs that it created.
    pub made: GraphsMade,
    /// The first contexts that it created.
    pub contexts: Vec<TappedContext>,
    /// Contents of the first context binaries that it loaded, by the binary number in its calls.
    pub binaries: BTreeMap<u64, BinaryRead>,
    /// Its graphs that execute.
    pub graphs: Vec<TappedGraph>,
    /// Executions of graphs that are not runs: on backends that are not followed, or of unknown graphs.
    pub not_followed: u64,
    /// The first ops that were refused.
    pub refusals: Vec<RefusedOp>,
    /// Number of refused ops.
    pub refused: u64,
    /// The first power votes.
    pub votes: Vec<Vote>,
    /// Votes set after the first execution.
    pub late_votes: u64,
    /// Number of votes.
    pub vote_count: u64,
    /// The latest vote for each option.
    pub voted: BTreeMap<String, serde_json::Value>,
    /// Total number of registered memory descriptors.
    pub registered: u64,
    /// Messages of the tap about itself.
    pub notes: Vec<String>,
    /// Lost data, by kind and reason.
    pub lost: BTreeMap<String, u64>,
    /// Its executions on a common time axis.
    pub timeline: Timeline,
    graph_of: HashMap<u32, usize>,
    /// For each contextCreateFromBinaryListAsync, from its start: the time to its last notification so far.
    lists: BTreeMap<u64, u64>,
    /// Graphs that a list reported.
    listed: BTreeSet<u32>,
}

/// The call that creates contexts from several binaries.
const LIST: &str = "contextCreateFromBinaryListAsync";

impl TappedProcess {
    pub(super) fn new(number: u32, process: Process, started_us: u64) -> Self {
        Self {
            number,
            process,
            started_us,
            ended_us: None,
            orderly: false,
            died_in: Vec::new(),
            providers: Vec::new(),
            calls: BTreeMap::new(),
            failures: Vec::new(),
            made: GraphsMade::default(),
            contexts: Vec::new(),
            binaries: BTreeMap::new(),
            graphs: Vec::new(),
            not_followed: 0,
            refusals: Vec::new(),
            refused: 0,
            votes: Vec::new(),
            late_votes: 0,
            vote_count: 0,
            voted: BTreeMap::new(),
            registered: 0,
            notes: Vec::new(),
            lost: BTreeMap::new(),
            timeline: Timeline::default(),
            graph_of: HashMap::new(),
            lists: BTreeMap::new(),
            listed: BTreeSet::new(),
        }
    }

    /// Its command, or its executable if the command was not reported.
    pub fn command(&self) -> String {
        if self.process.command.is_empty() { self.process.executable.clone() } else { self.process.command.join(" ") }
    }

    /// Time in loading calls, in nanoseconds: all calls except executions and those that free.
    pub fn loading_ns(&self) -> u64 {
        self.calls.iter().filter(|(name, _)| !name.ends_with("Free")).map(|(_, stats)| stats.total_ns).sum()
    }

    /// Contents of a context's binary, if known yet.
    pub fn binary(&self, context: &TappedContext) -> Option<&BinaryRead> {
        self.binaries.get(&context.call.binary?)
    }

    /// A provider by number.
    pub fn provider(&self, number: u32) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.provider == number)
    }

    /// Statistics of the calls with this name.
    pub fn call(&self, name: &str) -> CallStats {
        self.calls.get(name).copied().unwrap_or_default()
    }

    pub(super) fn apply(&mut self, t_us: u64, run: Option<RunId>, seen: &TapSeen) {
        match seen {
            TapSeen::Provider(provider) if self.providers.len() < MOST_SENTENCES => {
                self.providers.push(provider.clone());
            }
            TapSeen::Called(call) => self.called(call),
            TapSeen::Followed { graph, name, origin, context } => self.follow(run, *graph, name, *origin, *context),
            TapSeen::Bound { graph, inputs, floats, tensors } => {
                if let Some(graph) = self.graph_of.get(graph).map(|&at| &mut self.graphs[at]) {
                    graph.inputs.clone_from(inputs);
                    graph.floats = Some((*floats, *tensors));
                }
            }
            TapSeen::Refused(op) => {
                self.refused += 1;
                if self.refusals.len() < MOST {
                    self.refusals.push((**op).clone());
                }
            }
            TapSeen::Executed(executions) => {
                for execution in executions {
                    self.executed(execution);
                }
                self.timeline.settle();
            }
            TapSeen::Voted(vote) => self.vote(vote),
            TapSeen::MemoryShared { count, code: 0 } => {
                self.registered += u64::try_from(*count).unwrap_or(0);
            }
            TapSeen::BinaryRead(read) if self.binaries.len() < MOST_SENTENCES => {
                self.binaries.insert(read.key, (**read).clone());
            }
            TapSeen::Note { text } if self.notes.len() < MOST_SENTENCES && !self.notes.contains(text) => {
                self.notes.push(text.clone());
            }
            TapSeen::Lost { what, count, reason } => {
                let what = reason.as_ref().map_or_else(|| what.clone(), |reason| format!("{what}: {reason}"));
                if self.lost.len() < MOST_SENTENCES || self.lost.contains_key(&what) {
                    *self.lost.entry(what).or_default() += count;
                }
            }
            TapSeen::ProcessEnded { orderly, during } => {
                self.ended_us = Some(t_us);
                self.orderly = *orderly;
                self.died_in.clone_from(during);
                self.timeline.finish();
            }
            _ => {}
        }
    }

    fn called(&mut self, call: &Call) {
        let is_late = self.timeline.executions > 0;
        let time_ns = self.of_list(call).unwrap_or(call.duration_ns);
        // A graph that a list reported was not requested by a call.
        let is_call = !call.of_list || call.call.starts_with("contextCreate");
        if is_call && (self.calls.len() < MOST_SENTENCES || self.calls.contains_key(&call.call)) {
            let stats = self.calls.entry(call.call.clone()).or_default();
            stats.count += 1;
            stats.failed += u64::from(call.code != 0);
            stats.late += u64::from(is_late);
            stats.total_ns = stats.total_ns.saturating_add(time_ns);
            stats.longest_ns = stats.longest_ns.max(call.duration_ns);
        }
        if call.code != 0 {
            if self.failures.len() < MOST {
                self.failures.push(call.clone());
            }
            return;
        }
        let is_new = match call.call.as_str() {
            "graphFinalize" => {
                self.made.finalized += 1;
                true
            }
            "graphRetrieve" => {
                let is_known = !call.of_list && call.graph.is_some_and(|graph| self.listed.contains(&graph));
                self.made.retrieved += u64::from(!is_known);
                true
            }
            _ => false,
        };
        if let Some(name) = call.name.as_ref().filter(|_| is_new && self.made.names.len() < MOST_SENTENCES) {
            self.made.names.insert(name.clone());
        }
        match (call.context, call.call.as_str()) {
            (Some(context), "contextFree") => {
                if let Some(known) = self.contexts.iter_mut().find(|known| known.context == context) {
                    known.freed_ns = Some(call.start_ns);
                }
            }
            (Some(context), name) if name.starts_with("contextCreate") && self.contexts.len() < MOST => {
                self.contexts.push(TappedContext { context, call: call.clone(), freed_ns: None });
            }
            _ => {}
        }
    }

    /// A list's work runs concurrently: for the call and for each context, returns what it adds to the time
    /// since the call started.
    fn of_list(&mut self, call: &Call) -> Option<u64> {
        if !call.of_list && call.call != LIST {
            return None;
        }
        if let Some(graph) = call.graph.filter(|_| call.of_list) {
            if self.listed.len() < MOST_IDS {
                self.listed.insert(graph);
            }
            return Some(0);
        }
        if self.lists.len() >= MOST && !self.lists.contains_key(&call.start_ns) {
            return None;
        }
        let longest = self.lists.entry(call.start_ns).or_default();
        let added = call.duration_ns.saturating_sub(*longest);
        *longest += added;
        Some(added)
    }

    fn follow(&mut self, run: Option<RunId>, graph: u32, name: &str, origin: GraphOrigin, context: Option<u32>) {
        let Some(run) = run else { return };
        let at = match self.graphs.iter().position(|known| known.run == run) {
            Some(at) => {
                self.graphs[at].made += 1;
                at
            }
            None => {
                self.graphs.push(TappedGraph {
                    run,
                    name: name.to_owned(),
                    origin,
                    context,
                    made: 1,
                    executions: 0,
                    failed: 0,
                    failed_code: None,
                    host_profiled: 0,
                    copied: 0,
                    asynchronous: 0,
                    inputs: Vec::new(),
                    floats: None,
                });
                self.graphs.len() - 1
            }
        };
        if self.graph_of.len() < MOST_IDS {
            self.graph_of.insert(graph, at);
        }
    }

    fn executed(&mut self, execution: &Execution) {
        let at = self.graph_of.get(&execution.graph).copied();
        match at.map(|at| &mut self.graphs[at]) {
            Some(graph) => {
                let has = |flag| u64::from(execution.flags & flag != 0);
                graph.executions += 1;
                graph.failed += u64::from(execution.code != 0);
                graph.failed_code = graph.failed_code.or((execution.code != 0).then_some(execution.code));
                graph.host_profiled += has(execution_flags::HOST_PROFILED);
                graph.copied += has(execution_flags::RAW_INPUT);
                graph.asynchronous += has(execution_flags::ASYNC);
            }
            None => self.not_followed += 1,
        }
        self.timeline.push(Timed {
            start_ns: execution.start_ns,
            end_ns: execution.start_ns.saturating_add(execution.duration_ns),
            thread: execution.thread,
            graph: at,
        });
    }

    fn vote(&mut self, vote: &Vote) {
        self.vote_count += 1;
        if vote.action == "set" && self.timeline.executions > 0 {
            self.late_votes += 1;
        }
        if vote.code == 0 {
            match vote.action.as_str() {
                "set" => {
                    for (name, value) in &vote.settings {
                        if self.voted.len() < MOST_SENTENCES || self.voted.contains_key(name) {
                            self.voted.insert(name.clone(), value.clone());
                        }
                    }
                }
                "destroy" => self.voted.clear(),
                _ => {}
            }
        }
        if self.votes.len() < MOST {
            self.votes.push(vote.clone());
        }
    }
}
