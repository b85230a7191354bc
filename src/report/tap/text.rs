//! The text report of a tapped program: the program, each of its processes, each of their graphs as a run.

use super::super::layout::list;
use super::super::text::{counters, device_counters, one_run};
use super::super::verdicts::findings_text;
use super::{binary_lines, signal_text, symbol};
use crate::analysis::tap::{process_findings, program_findings};
use crate::event::GraphOrigin;
use crate::store::{OpStats, Store, Tapped, TappedGraph, TappedProcess};
use crate::text::{bytes_text, count_text, counted, duration_text, paragraph, titled};
use std::fmt::Write;

/// Maximum number of refused ops, loaded binaries and failures listed per process.
const LISTED: usize = 8;
/// Width of its lines, characters.
const WIDTH: usize = 96;

/// The report.
pub fn tap_text(store: &Store) -> String {
    let mut out = String::new();
    let Some(tapped) = store.tapped() else { return out };
    program(&mut out, tapped);
    findings_text(&mut out, &program_findings(tapped));
    for process in &tapped.processes {
        of_process(&mut out, process);
        findings_text(&mut out, &process_findings(store, process));
        for (at, graph) in process.graphs.iter().enumerate() {
            of_graph(&mut out, process, at, graph);
            if let Some(run) = store.run(graph.run) {
                one_run(&mut out, store, run);
            }
        }
    }
    if tapped.more_processes > 0 {
        let _ = writeln!(
            out,
            "\nand {} more {}, not listed here",
            tapped.more_processes,
            if tapped.more_processes == 1 { "process" } else { "processes" }
        );
    }
    device_counters(&mut out, store);
    counters(&mut out, store);
    if store.lost() > 0 {
        let _ = writeln!(out, "\nlost       {} on the way", counted(store.lost(), "item"));
    }
    out
}

fn program(out: &mut String, tapped: &Tapped) {
    let command = if tapped.command.is_empty() { "started elsewhere".to_owned() } else { tapped.command.join(" ") };
    titled(out, "program    ", &command, WIDTH);
    let end = match tapped.ended {
        Some((_, _, Some(signal))) => format!("ended by {}", signal_text(signal)),
        Some((_, Some(status), None)) => format!("exit status {status}"),
        Some((_, None, None)) => "ended".to_owned(),
        None => "not reported".to_owned(),
    };
    let took = tapped.ended.map_or_else(String::new, |(ended_us, ..)| {
        format!(" after {}", duration_text(ended_us.saturating_sub(tapped.started_us) as f64))
    });
    let _ = writeln!(
        out,
        "end        {end}{took}; {} with the tap, {} of them used QNN",
        count(tapped.loaded_count, "process", "processes"),
        tapped.processes.len() as u64 + tapped.more_processes
    );
}

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn of_process(out: &mut String, process: &TappedProcess) {
    let forked =
        if process.process.forked { format!(", a fork of {}", process.process.parent_pid) } else { String::new() };
    let _ = writeln!(out);
    paragraph(out, &format!("== process {}{forked}: {}", process.process.pid, process.command()), 3, 0);
    let backends: Vec<String> = process
        .providers
        .iter()
        .map(|provider| {
            let build = provider.build_id.as_deref().unwrap_or("unnamed build");
            let why = provider.untouched.as_ref().map_or_else(String::new, |why| format!(", not seen: {why}"));
            format!("{} {build} ({}{why})", provider.name, provider.library)
        })
        .collect();
    list(out, "backends", &backends);
    let timeline = &process.timeline;
    if let Some(share) = timeline.share() {
        let _ = writeln!(
            out,
            "time       {:.1} % inside QNN, {:.1} % between graphs, {:.1} % in the program, of {}",
            100.0 * share.qnn,
            100.0 * share.between_graphs,
            100.0 * share.program,
            duration_text(timeline.span_ns() as f64 / 1000.0)
        );
        let each = timeline.graphs_per_inference().unwrap_or(1.0);
        let _ = writeln!(
            out,
            "executed   {} in {} of {each:.1} graphs",
            count(timeline.executions, "execution", "executions"),
            count(timeline.inferences, "inference", "inferences")
        );
    }
    if process.not_followed > 0 {
        let _ = writeln!(
            out,
            "           {} of unknown graphs or backends",
            count(process.not_followed, "execution is", "executions are")
        );
    }
    calls(out, process);
    refusals(out, process);
    votes(out, process);
    if process.registered > 0 {
        let _ = writeln!(
            out,
            "shared     {} registered",
            count(process.registered, "memory descriptor", "memory descriptors")
        );
    }
    for note in &process.notes {
        titled(out, "note       ", note, WIDTH);
    }
}

fn calls(out: &mut String, process: &TappedProcess) {
    let mut calls: Vec<_> = process.calls.iter().collect();
    calls.sort_by_key(|(_, stats)| std::cmp::Reverse(stats.total_ns));
    let rows: Vec<String> = calls
        .into_iter()
        .map(|(name, stats)| {
            let failed = if stats.failed > 0 { format!(" ({} failed)", stats.failed) } else { String::new() };
            format!("{name} {}x {}{failed}", stats.count, duration_text(stats.total_ns as f64 / 1000.0))
        })
        .collect();
    list(out, "calls", &rows);
    binaries(out, process);
    for call in process.failures.iter().take(LISTED) {
        let name = symbol(call).map_or_else(String::new, |symbol| format!(" {symbol}"));
        let message = call.message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
        titled(out, "failed     ", &format!("{} {}{name}{message}", call.call, call.code & 0xffff), WIDTH);
    }
}

/// Contexts that were loaded, and the contents of their binaries; identical binaries are listed once.
fn binaries(out: &mut String, process: &TappedProcess) {
    let mut told = Vec::new();
    let loaded = process.contexts.iter().filter_map(|context| Some((context, context.call.binary_bytes?)));
    for (context, bytes) in loaded.take(LISTED) {
        let how = if context.call.of_list { " with others" } else { "" };
        let took = duration_text(context.call.duration_ns as f64 / 1000.0);
        let _ = writeln!(out, "binary     {} loaded in {took}{how}", bytes_text(bytes as f64));
        let Some(read) = process.binary(context).filter(|read| !told.contains(&read.key)) else { continue };
        told.push(read.key);
        for line in binary_lines(read) {
            titled(out, "           ", &line, WIDTH);
        }
    }
    let more =
        process.contexts.iter().filter(|context| context.call.binary_bytes.is_some()).count().saturating_sub(LISTED);
    if more > 0 {
        let _ = writeln!(out, "           and {more} more, see --json");
    }
}

fn refusals(out: &mut String, process: &TappedProcess) {
    for refusal in process.refusals.iter().take(LISTED) {
        let reason = refusal.reasons.first().map_or_else(String::new, |reason| format!(": {reason}"));
        let text = format!("{} `{}` {}{reason}", refusal.op.op_type, refusal.op.name, refusal.code);
        titled(out, "refused    ", &text, WIDTH);
    }
    let more = process.refused.saturating_sub(LISTED as u64);
    if more > 0 {
        let _ = writeln!(out, "           and {more} more, see --json");
    }
}

fn votes(out: &mut String, process: &TappedProcess) {
    if process.vote_count == 0 {
        return;
    }
    let values: Vec<String> = process.voted.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let changes = count(process.vote_count, "vote", "votes");
    let last = if values.is_empty() { "none is left".to_owned() } else { values.join(", ") };
    titled(out, "power      ", &format!("{changes}; {last}"), WIDTH);
}

fn of_graph(out: &mut String, process: &TappedProcess, at: usize, graph: &TappedGraph) {
    let origin = match graph.origin {
        GraphOrigin::Composed => "composed",
        GraphOrigin::Binary => "from a context binary",
    };
    let made = if graph.made > 1 { format!(", made {} times", graph.made) } else { String::new() };
    let _ = writeln!(out);
    paragraph(
        out,
        &format!("-- graph {}: {origin}{made}, {}", graph.name, count(graph.executions, "execution", "executions")),
        3,
        0,
    );
    let Some(times) = process.timeline.graph(at) else { return };
    let line = |times: &OpStats| {
        let us = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), |ns| duration_text(ns / 1000.0));
        format!(
            "mean {}, p50 {}, p95 {}, max {} ({})",
            us(times.mean()),
            us(times.percentile(50.0)),
            us(times.percentile(95.0)),
            us(times.max()),
            count_text(times.count() as f64)
        )
    };
    if times.between.count() > 0 {
        let _ = writeln!(out, "   since the previous execution: {}", line(&times.between));
    }
    if times.within.count() > 0 && times.within.count() < times.between.count() {
        let _ = writeln!(out, "   within an inference: {}", line(&times.within));
    }
    if let Some(beside_us) = times.overlapped.mean_us() {
        let alone = times.alone.mean_us().map_or_else(|| "–".to_owned(), duration_text);
        let _ = writeln!(
            out,
            "   {} beside those of other threads, mean {}; alone {alone}",
            count(times.overlapped.count, "execution", "executions"),
            duration_text(beside_us)
        );
    }
}
