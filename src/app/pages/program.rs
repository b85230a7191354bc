//! The tapped program: its identity, each of its processes, their findings, and its output.

use super::known::number;
use super::{Content, Entry, Item, Sign, findings};
use crate::analysis::tap::{process_findings, program_findings};
use crate::app::format;
use crate::app::symbols::Symbols;
use crate::app::theme::Meaning;
use crate::backends::local::signal_name;
use crate::event::{LogSource, clean_text};
use crate::report::binary_lines;
use crate::store::{Store, StoredLine, Tapped, TappedProcess};
use crate::text::{bytes_text, counted};

/// Maximum number of context binaries shown.
const MOST_BINARIES: usize = 16;

/// What the page shows.
pub fn content(store: &Store, symbols: &Symbols) -> Content {
    let Some(tapped) = store.tapped() else {
        let empty = "no program is tapped in this session; start one with `qnnscope tap -- COMMAND`".to_owned();
        return Content { empty, ..Content::default() };
    };
    let mut entries: Vec<Entry> =
        program_findings(tapped).iter().map(|finding| findings::entry(finding, symbols)).collect();
    for process in &tapped.processes {
        entries.push(entry(process, symbols));
        let pid = process.process.pid;
        entries.extend(process_findings(store, process).iter().map(|finding| {
            let entry = findings::entry(finding, symbols);
            Entry { key: format!("{pid} {}", entry.key), ..entry }
        }));
    }
    let empty = "no process has used QNN yet".to_owned();
    Content { head: head(tapped), entries, empty, log: true }
}

/// Lines that the program printed, each with its number in the log.
pub fn printed(store: &Store) -> impl Iterator<Item = (u64, &StoredLine)> {
    let lines = store.logs().iter().enumerate().filter(|(_, line)| line.line.source == LogSource::Program);
    lines.map(|(at, line)| (number(store, at), line))
}

fn head(tapped: &Tapped) -> Vec<(String, Meaning)> {
    let state = match tapped.ended {
        None => ("runs".to_owned(), Meaning::Text),
        Some((_, _, Some(signal))) => {
            let name = signal_name(signal).map_or_else(|| format!("signal {signal}"), ToOwned::to_owned);
            (format!("ended by {name}"), Meaning::Alert)
        }
        Some((_, Some(0), None)) => ("ended with exit status 0".to_owned(), Meaning::Good),
        Some((_, Some(status), None)) => (format!("ended with exit status {status}"), Meaning::Alert),
        Some((_, None, None)) => ("ended".to_owned(), Meaning::Text),
    };
    vec![(clean_text(&tapped.command.join(" ")), Meaning::Title), state]
}

fn entry(process: &TappedProcess, symbols: &Symbols) -> Entry {
    let time = |ns: f64| format::duration(ns / 1000.0, symbols);
    let timeline = &process.timeline;
    let mut items = vec![Item::new("process", process.command()).meaning(Meaning::Title)];
    for (index, provider) in process.providers.iter().enumerate() {
        let label = if index == 0 { "backend" } else { "" };
        let build = provider.build_id.as_deref().unwrap_or("unnamed build");
        items.push(Item::new(label, format!("{} {build}, {}", provider.name, provider.library)));
    }
    if let Some(share) = timeline.share() {
        let text = format!(
            "{:.1} % inside QNN, {:.1} % between graphs, {:.1} % in the program, of {}",
            100.0 * share.qnn,
            100.0 * share.between_graphs,
            100.0 * share.program,
            time(timeline.span_ns() as f64)
        );
        items.push(Item::new("time", text));
    }
    items.push(Item::new(
        "done",
        format!(
            "{} in {} of {}",
            counted(timeline.executions, "execution"),
            counted(timeline.inferences, "inference"),
            counted(process.graphs.len() as u64, "graph")
        ),
    ));
    for (index, (name, stats)) in process.calls.iter().enumerate() {
        let label = if index == 0 { "calls" } else { "" };
        let failed = if stats.failed > 0 { format!(", {} failed", stats.failed) } else { String::new() };
        items.push(Item::new(label, format!("{name}: {} in {}{failed}", stats.count, time(stats.total_ns as f64))));
    }
    items.extend(binaries(process, symbols));
    if process.vote_count > 0 {
        let voted: Vec<String> = process.voted.iter().map(|(name, value)| format!("{name} {value}")).collect();
        items.push(Item::new("power", format!("{} votes; {}", process.vote_count, voted.join(", "))));
    }
    let state = match (process.ended_us, process.orderly) {
        (None, _) => ("runs".to_owned(), Meaning::Text),
        (Some(_), true) => ("ended".to_owned(), Meaning::Muted),
        (Some(_), false) => ("cut off".to_owned(), Meaning::Warn),
    };
    Entry {
        key: format!("process {}", process.number),
        sign: Sign::Note,
        tag: process.process.pid.to_string(),
        title: process.command(),
        note: state,
        items,
    }
}

/// The loaded context binaries, each listed once: repeated loads show up among the calls.
fn binaries(process: &TappedProcess, symbols: &Symbols) -> Vec<Item> {
    let (mut items, mut told) = (Vec::new(), Vec::new());
    for context in &process.contexts {
        let Some(bytes) = context.call.binary_bytes else { continue };
        let key = (context.call.binary, bytes);
        if told.len() >= MOST_BINARIES || told.contains(&key) {
            continue;
        }
        told.push(key);
        let took = format::duration(context.call.duration_ns as f64 / 1000.0, symbols);
        items.push(Item::new("binary", format!("{} loaded in {took}", bytes_text(bytes as f64))));
        let lines = process.binary(context).map(binary_lines).unwrap_or_default();
        items.extend(lines.into_iter().map(|line| Item::new("", line)));
    }
    items
}
