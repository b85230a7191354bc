//! `qnnscope.tap/1`: the document of a tapped program. Fields are only ever added; graphs have all the fields
//! of runs in `qnnscope.result/1`.

use super::super::counter_result::{Counter, DeviceCounters, counter, device_counters};
use super::super::result::{Tool, started_at};
use super::super::run_result::{RunResult, run_result};
use super::{signal_text, symbol};
use crate::analysis::Finding;
use crate::analysis::tap::{process_findings, program_findings};
use crate::event::GraphOrigin;
use crate::models::ContextBinaryInfo;
use crate::store::{OpStats, Store, TappedGraph, TappedProcess};
use qnnscope_core::tap::{Provider, Vote};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Schema of the document.
pub const TAP_SCHEMA: &str = "qnnscope.tap/1";

/// A tapped program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TapDocument {
    schema: &'static str,
    tool: Tool,
    started_at: String,
    program: Vec<String>,
    exit: Exit,
    loaded: u64,
    not_reached: Vec<String>,
    processes: Vec<ProcessResult>,
    more_processes: u64,
    findings: Vec<Finding>,
    host_counters: Vec<Counter>,
    device_counters: Vec<DeviceCounters>,
    lost: u64,
}

/// How it ended; empty if it was started elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Exit {
    status: Option<i32>,
    signal: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ProcessResult {
    pid: u32,
    parent_pid: u32,
    forked: bool,
    command: Vec<String>,
    executable: String,
    arch: String,
    tap_version: String,
    end: &'static str,
    died_in: Vec<String>,
    backends: Vec<Provider>,
    graphs: Vec<GraphResult>,
    graphs_made: Made,
    not_followed_executions: u64,
    refusals: Vec<RefusalResult>,
    refused: u64,
    votes: Vec<Vote>,
    vote_count: u64,
    last_votes: BTreeMap<String, Value>,
    contexts: Vec<ContextResult>,
    calls: Vec<CallResult>,
    failures: Vec<FailureResult>,
    registered_memory: u64,
    time_share: Option<ShareResult>,
    inferences: u64,
    graphs_per_inference: Option<f64>,
    loading_us: f64,
    qnn_us: f64,
    notes: Vec<String>,
    findings: Vec<Finding>,
    lost: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Made {
    finalized: u64,
    retrieved: u64,
    names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct GraphResult {
    name: String,
    origin: GraphOrigin,
    context: Option<u32>,
    made: u64,
    executions: u64,
    failed_executions: u64,
    asynchronous_executions: u64,
    copied_executions: u64,
    copied_input_bytes: u64,
    between_us: Spread,
    within_inference_us: Spread,
    alone_mean_us: Option<f64>,
    overlapped: u64,
    overlapped_mean_us: Option<f64>,
    #[serde(flatten)]
    run: RunResult,
}

/// Times of an event between executions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Spread {
    count: u64,
    mean: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    max: Option<f64>,
}

impl Spread {
    fn of(times: &OpStats) -> Self {
        let us = |ns: Option<f64>| ns.map(|ns| ns / 1000.0);
        Self {
            count: times.count(),
            mean: us(times.mean()),
            p50: us(times.percentile(50.0)),
            p95: us(times.percentile(95.0)),
            max: us(times.max()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct RefusalResult {
    op: String,
    #[serde(rename = "type")]
    op_type: String,
    call: String,
    code: u64,
    reason: Option<String>,
    reasons: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ContextResult {
    context: u32,
    call: String,
    origin: GraphOrigin,
    binary_bytes: Option<u64>,
    binary: Option<BinaryResult>,
    duration_us: f64,
    of_list: bool,
    options: Map<String, Value>,
    freed: bool,
}

/// The contents of a context binary.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct BinaryResult {
    sha256: Option<String>,
    read_by: Option<String>,
    info: Option<ContextBinaryInfo>,
    reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct CallResult {
    call: String,
    count: u64,
    failed: u64,
    after_first_execution: u64,
    total_us: f64,
    longest_us: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct FailureResult {
    call: String,
    code: u64,
    symbol: Option<&'static str>,
    message: Option<String>,
    graph: Option<String>,
    options: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ShareResult {
    qnn: f64,
    between_graphs: f64,
    program: f64,
}

impl TapDocument {
    /// The document of the tapped program in the store; without one it has no processes.
    pub fn new(store: &Store) -> Self {
        let tapped = store.tapped();
        let exit = tapped
            .and_then(|tapped| tapped.ended)
            .map(|(_, status, signal)| Exit { status, signal: signal.map(signal_text) });
        Self {
            schema: TAP_SCHEMA,
            tool: Tool::this(),
            started_at: started_at(store),
            program: tapped.map(|tapped| tapped.command.clone()).unwrap_or_default(),
            exit: exit.unwrap_or_default(),
            loaded: tapped.map_or(0, |tapped| tapped.loaded_count),
            not_reached: tapped.map(|tapped| tapped.not_reached.clone()).unwrap_or_default(),
            processes: tapped
                .map(|tapped| tapped.processes.iter().map(|process| of_process(store, process)).collect())
                .unwrap_or_default(),
            more_processes: tapped.map_or(0, |tapped| tapped.more_processes),
            findings: tapped.map(program_findings).unwrap_or_default(),
            host_counters: store.counters().iter().map(counter).collect(),
            device_counters: device_counters(store),
            lost: store.lost(),
        }
    }
}

fn of_process(store: &Store, process: &TappedProcess) -> ProcessResult {
    let graphs = process.graphs.iter().enumerate();
    ProcessResult {
        pid: process.process.pid,
        parent_pid: process.process.parent_pid,
        forked: process.process.forked,
        command: process.process.command.clone(),
        executable: process.process.executable.clone(),
        arch: process.process.arch.clone(),
        tap_version: process.process.tap_version.clone(),
        end: match (process.ended_us, process.orderly) {
            (None, _) => "going_on",
            (Some(_), true) => "orderly",
            (Some(_), false) => "cut_off",
        },
        died_in: process.died_in.clone(),
        backends: process.providers.clone(),
        graphs: graphs.filter_map(|(at, graph)| of_graph(store, process, at, graph)).collect(),
        graphs_made: Made {
            finalized: process.made.finalized,
            retrieved: process.made.retrieved,
            names: process.made.names.iter().cloned().collect(),
        },
        not_followed_executions: process.not_followed,
        refusals: process
            .refusals
            .iter()
            .map(|refusal| RefusalResult {
                op: refusal.op.name.clone(),
                op_type: refusal.op.op_type.clone(),
                call: refusal.call.clone(),
                code: refusal.code,
                reason: refusal.reasons.first().cloned(),
                reasons: refusal.reasons.clone(),
            })
            .collect(),
        refused: process.refused,
        votes: process.votes.clone(),
        vote_count: process.vote_count,
        last_votes: process.voted.clone(),
        contexts: process
            .contexts
            .iter()
            .map(|context| ContextResult {
                context: context.context,
                call: context.call.call.clone(),
                origin: if context.call.call == "contextCreate" { GraphOrigin::Composed } else { GraphOrigin::Binary },
                binary_bytes: context.call.binary_bytes,
                binary: process.binary(context).map(|read| BinaryResult {
                    sha256: read.sha256.clone(),
                    read_by: read.runtime.clone(),
                    info: read.info.clone(),
                    reason: read.reason.clone(),
                }),
                of_list: context.call.of_list,
                duration_us: context.call.duration_ns as f64 / 1000.0,
                options: context.call.options.clone(),
                freed: context.freed_ns.is_some(),
            })
            .collect(),
        calls: process
            .calls
            .iter()
            .map(|(call, stats)| CallResult {
                call: call.clone(),
                count: stats.count,
                failed: stats.failed,
                after_first_execution: stats.late,
                total_us: stats.total_ns as f64 / 1000.0,
                longest_us: stats.longest_ns as f64 / 1000.0,
            })
            .collect(),
        failures: process
            .failures
            .iter()
            .map(|call| FailureResult {
                call: call.call.clone(),
                code: call.code & 0xffff,
                symbol: symbol(call),
                message: call.message.clone(),
                graph: call.name.clone(),
                options: call.options.clone(),
            })
            .collect(),
        registered_memory: process.registered,
        time_share: process.timeline.share().map(|share| ShareResult {
            qnn: share.qnn,
            between_graphs: share.between_graphs,
            program: share.program,
        }),
        inferences: process.timeline.inferences,
        graphs_per_inference: process.timeline.graphs_per_inference(),
        loading_us: process.loading_ns() as f64 / 1000.0,
        qnn_us: process.timeline.qnn_ns() as f64 / 1000.0,
        notes: process.notes.clone(),
        findings: process_findings(store, process),
        lost: process.lost.values().sum(),
    }
}

fn of_graph(store: &Store, process: &TappedProcess, at: usize, graph: &TappedGraph) -> Option<GraphResult> {
    let times = process.timeline.graph(at);
    let spread = |times: Option<&OpStats>| times.map(Spread::of).unwrap_or_default();
    Some(GraphResult {
        name: graph.name.clone(),
        origin: graph.origin,
        context: graph.context,
        made: graph.made,
        executions: graph.executions,
        failed_executions: graph.failed,
        asynchronous_executions: graph.asynchronous,
        copied_executions: graph.copied,
        copied_input_bytes: graph.copied_bytes(),
        between_us: spread(times.map(|times| &times.between)),
        within_inference_us: spread(times.map(|times| &times.within)),
        alone_mean_us: times.and_then(|times| times.alone.mean_us()),
        overlapped: times.map_or(0, |times| times.overlapped.count),
        overlapped_mean_us: times.and_then(|times| times.overlapped.mean_us()),
        run: run_result(store, store.run(graph.run)?),
    })
}
