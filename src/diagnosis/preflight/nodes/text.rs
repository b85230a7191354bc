//! The check of an ONNX model as text for users: short if all is well.

use super::{NodeResult, NodeRow, NodesBackend, NodesDocument};
use crate::backends::Backend;
use crate::diagnosis::preflight::document::{State, Verdict};
use crate::diagnosis::preflight::{DEFAULT_SOC, Origin};
use crate::event::NodeProvider;
use crate::text::{bytes_text, titled};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Most nodes named per kind of refusal.
const NAMES: usize = 6;

/// The document in lines of about `width` columns; with `all`, every node.
pub fn nodes_text(document: &NodesDocument, width: usize, all: bool) -> String {
    let mut out = String::new();
    let model = &document.model;
    let count = document.nodes.iter().filter(|row| !row.inserted).count();
    let nodes = if count == 0 { String::new() } else { format!(", {count} nodes") };
    titled(&mut out, "", &format!("{}: ONNX model, {}{nodes}", model.path, bytes_text(model.bytes as f64)), width);
    if let Some(build) = document.backends.iter().find_map(|row| row.build_id.as_deref()) {
        titled(
            &mut out,
            "  ",
            &format!("asked: ONNX Runtime's QNN plug-in on libraries {build} on this machine"),
            width,
        );
    }
    out.push('\n');
    backends(&mut out, document, count, width);
    refusals(&mut out, document, width);
    if all {
        every_node(&mut out, document);
    }
    let ending = match document.verdict() {
        Verdict::Fine => "ok: QNN takes every node",
        Verdict::Refused => "not ok: see above",
        Verdict::Unknown => "unknown: not everything could be asked on this machine",
    };
    let _ = writeln!(out, "\n{ending}");
    out
}

fn backends(out: &mut String, document: &NodesDocument, count: usize, width: usize) {
    let widest = document.backends.iter().map(|row| row.full_name().width()).max().unwrap_or(0);
    for row in &document.backends {
        let said = match row.state {
            State::NotAsked => format!("not asked: {}", row.reason.as_deref().unwrap_or("unknown")),
            State::Failed => format!("no session: {}", row.reason.as_deref().unwrap_or("unknown")),
            State::Asked => taken(row, count),
        };
        titled(out, &format!("  {:<widest$}  ", row.full_name()), &said, width);
        if let Some(hint) = row.hint.as_ref().filter(|_| row.state == State::Failed || row.named) {
            titled(out, &format!("  {:widest$}  next: ", ""), hint, width);
        }
    }
    if document.backends.iter().any(|row| row.chosen_by == Some(Origin::Default)) {
        titled(out, "  ", &format!("{DEFAULT_SOC} stands for all: --soc or --htp-arch name other hardware"), width);
    }
}

/// `takes 11 of 12 nodes, in 2 partitions, which compile`.
fn taken(row: &NodesBackend, count: usize) -> String {
    let (taken, folded) = (row.taken.unwrap_or(0), row.folded.unwrap_or(0));
    let folded = if folded > 0 { format!("; ONNX Runtime folds {folded} away") } else { String::new() };
    let compiles = row.name == Backend::Htp;
    let pieces = match row.partitions.unwrap_or(0) {
        0 => String::new(),
        1 => format!(", in 1 partition{}", if compiles { ", which compiles" } else { "" }),
        many => format!(", in {many} partitions{}", if compiles { ", which compile" } else { "" }),
    };
    format!("takes {taken} of {count} nodes{pieces}{folded}")
}

/// A refused node, with the names of the backends that refuse it.
type Refused<'a> = (&'a NodeRow, Vec<String>);

/// Groups refusals with the same reason and remedy.
fn refusals(out: &mut String, document: &NodesDocument, width: usize) {
    let key = |result: &NodeResult| (result.code, result.reason.clone(), result.remedy.clone());
    let mut groups: Vec<(&NodeResult, Vec<Refused<'_>>)> = Vec::new();
    for row in &document.nodes {
        for result in row.results.iter().filter(|result| result.provider == NodeProvider::Cpu) {
            let name = result
                .soc
                .as_ref()
                .map_or_else(|| result.backend.to_string(), |soc| format!("{} for {soc}", result.backend));
            let at = groups.iter().position(|(first, _)| key(first) == key(result)).unwrap_or_else(|| {
                groups.push((result, Vec::new()));
                groups.len() - 1
            });
            let rows = &mut groups[at].1;
            match rows.last_mut().filter(|(last, _)| std::ptr::eq(*last, row)) {
                Some((_, names)) => names.push(name),
                None => rows.push((row, vec![name])),
            }
        }
    }
    for (result, rows) in groups {
        let mut named: Vec<String> = rows.iter().take(NAMES).map(|(row, _)| label(row)).collect();
        if rows.len() > NAMES {
            named.push(format!("and {} more", rows.len() - NAMES));
        }
        let mut backends: Vec<&String> = rows.iter().flat_map(|(_, names)| names).collect();
        backends.sort();
        backends.dedup();
        let backends: Vec<&str> = backends.into_iter().map(String::as_str).collect();
        out.push('\n');
        titled(out, "  refused: ", &format!("{} on {}", named.join(", "), backends.join(", ")), width);
        let reason = result.reason.as_deref().unwrap_or("the plug-in gave none");
        titled(out, "    reason: ", reason, width);
        if let Some(remedy) = &result.remedy {
            titled(out, "    fix: ", remedy, width);
        }
    }
}

fn label(row: &NodeRow) -> String {
    let inserted = if row.inserted { ", inserted" } else { "" };
    format!("{} ({}{inserted})", row.node, row.op_type)
}

fn every_node(out: &mut String, document: &NodesDocument) {
    out.push('\n');
    for row in &document.nodes {
        let one = |result: &NodeResult| {
            let place = match (result.provider, result.partition) {
                (NodeProvider::Qnn, Some(partition)) => format!("partition {partition}"),
                (NodeProvider::Qnn, None) => "taken".to_owned(),
                (NodeProvider::Cpu, _) => "refused".to_owned(),
                (NodeProvider::None, _) => "folded away".to_owned(),
            };
            let soc = result.soc.as_ref().map_or_else(String::new, |soc| format!(" {soc}"));
            format!("{}{soc} {place}", result.backend)
        };
        let results: Vec<String> = row.results.iter().map(one).collect();
        let _ = writeln!(out, "  {}: {}", label(row), results.join(", "));
    }
}
