//! A check as text for users: short if all is well.

use super::compiled::CompileRow;
use super::document::{BackendRow, BinaryRow, CheckDocument, State, Verdict};
use super::ops::{OpResult, OpRow, TensorRow};
use super::quantization::{Note, Severity, grouped};
use super::target::{DEFAULT_SOC, Origin};
use crate::models::{Quantization, Tensor};
use crate::text::{bytes_text, duration_text, titled};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Most names listed per kind of finding.
const NAMES: usize = 6;
/// Groups of findings that are shown in full.
const GROUPS: usize = 12;

/// The document in lines of about `width` columns; with `all`, every op and every note.
pub fn check_text(document: &CheckDocument, width: usize, all: bool) -> String {
    let mut out = String::new();
    let model = &document.model;
    let ops = document.ops.len();
    let ops = if ops == 0 { String::new() } else { format!(", {ops} ops") };
    titled(
        &mut out,
        "",
        &format!("{}: {}, {}{ops}", model.path, model.format.label(), bytes_text(model.bytes as f64)),
        width,
    );
    if let Some(binary) = &document.context_binary {
        binary_lines(&mut out, binary, width);
    }
    backends(&mut out, document, width);
    refusals(&mut out, document, width, all);
    compile(&mut out, &document.compile, document.context_binary.is_some(), width);
    quantization(&mut out, &document.quantization, width, all);
    if all {
        every_op(&mut out, document, width);
    }
    out.push('\n');
    titled(&mut out, "", &ending(document), width);
    out
}

fn ending(document: &CheckDocument) -> String {
    let encodings = document.quantization.iter().filter(|note| note.severity != Severity::Info).count();
    let encodings = match encodings {
        0 => String::new(),
        1 => "; 1 encoding is doubtful".to_owned(),
        count => format!("; {count} encodings are doubtful"),
    };
    let verdict = match document.verdict() {
        Verdict::Fine => "ok: nothing is refused",
        Verdict::Refused => "not ok: see above",
        Verdict::Unknown => "unknown: not everything could be asked on this machine",
    };
    format!("{verdict}{encodings}")
}

fn binary_lines(out: &mut String, binary: &BinaryRow, width: usize) {
    let arch = binary.arch.as_ref().map_or_else(String::new, |arch| format!(" {arch}"));
    let soc = binary.soc_model.map_or_else(String::new, |number| format!(", soc_model {number}"));
    let vtcm = binary.vtcm_bytes.map_or_else(String::new, |bytes| format!(", VTCM {}", bytes_text(bytes as f64)));
    let build = if binary.build_id.is_empty() { "an unnamed build" } else { &binary.build_id };
    titled(out, "  ", &format!("made for {}{arch}{soc}{vtcm}, by {build}", binary.backend), width);
    if let Some(problem) = &binary.problem {
        titled(out, "  problem: ", &problem.message, width);
        titled(out, "  fix: ", &problem.remedy, width);
    }
}

fn backends(out: &mut String, document: &CheckDocument, width: usize) {
    let builds: Vec<&str> = document.backends.iter().filter_map(|row| row.build_id.as_deref()).collect();
    if let Some(build) = builds.first() {
        titled(out, "  ", &format!("asked: libraries {build} on this machine"), width);
    }
    out.push('\n');
    let name = |row: &BackendRow| match (&row.soc, &row.arch) {
        (Some(soc), Some(arch)) => format!("{} for {soc} ({arch})", row.name),
        (Some(soc), None) => format!("{} for {soc}", row.name),
        _ => row.name.to_string(),
    };
    let widest = document.backends.iter().map(|row| name(row).width()).max().unwrap_or(0);
    for row in &document.backends {
        let title = format!("  {:<widest$}  ", name(row));
        let said = match (row.state, row.refused) {
            (State::NotAsked, _) => format!("not asked: {}", row.reason.as_deref().unwrap_or("unknown")),
            (State::Failed, _) => format!("failed: {}", row.reason.as_deref().unwrap_or("unknown")),
            (State::Asked, _) if document.context_binary.is_some() => "the file can be read".to_owned(),
            (State::Asked, None | Some(0)) => "takes every op".to_owned(),
            (State::Asked, Some(refused)) => format!("refuses {refused} of {} ops", document.ops.len()),
        };
        titled(out, &title, &said, width);
        if let Some(hint) = row.hint.as_ref().filter(|_| row.state == State::Failed || row.named) {
            titled(out, &format!("  {:widest$}  next: ", ""), hint, width);
        }
    }
    if document.backends.iter().any(|row| row.chosen_by == Some(Origin::Default)) {
        titled(out, "  ", &format!("{DEFAULT_SOC} stands for all: --soc or --htp-arch name other hardware"), width);
    }
}

/// Groups refusals with the same reason.
fn refusals(out: &mut String, document: &CheckDocument, width: usize, all: bool) {
    let mut groups: Vec<(&str, &OpResult, Vec<&OpRow>)> = Vec::new();
    for row in &document.ops {
        for (backend, result) in row.results.iter().filter(|(_, result)| !result.ok) {
            let same = groups.iter_mut().find(|(name, first, _)| {
                name == backend
                    && first.code == result.code
                    && first.reason == result.reason
                    && first.refused_on == result.refused_on
            });
            match same {
                Some((_, _, rows)) => rows.push(row),
                None => groups.push((backend, result, vec![row])),
            }
        }
    }
    if groups.is_empty() {
        return;
    }
    out.push_str("\nRefused ops\n");
    // Backends in the order in which they were asked.
    let order = |name: &str| document.backends.iter().position(|row| row.name.name() == name);
    groups.sort_by_key(|(backend, ..)| order(backend));
    let shown = if all { groups.len() } else { GROUPS };
    for (backend, result, rows) in groups.iter().take(shown) {
        let several = document.backends.iter().filter(|row| row.name.name() == *backend).count() > 1;
        let on = if several { format!(" for {}", result.refused_on.join(", ")) } else { String::new() };
        let reason = result.reason.as_deref().unwrap_or("no reason");
        titled(out, "  ", &format!("{backend}{on}: {} ({})", names(rows, all), result.code), width);
        titled(out, "    why: ", reason, width);
        if let Some(tensor) = &result.tensor {
            titled(out, "    tensor: ", &tensor_text(tensor), width);
        }
        if let Some(remedy) = &result.remedy {
            titled(out, "    fix: ", remedy, width);
        }
    }
    if groups.len() > shown {
        let _ = writeln!(out, "  and {} more kinds of refusals; --all shows them", groups.len() - shown);
    }
}

/// ``5 ops: Relu `a`, `b`, Conv2d `c` and 2 more``.
fn names(rows: &[&OpRow], all: bool) -> String {
    let shown = if all { rows.len() } else { NAMES };
    let mut text = if rows.len() > 1 { format!("{} ops: ", rows.len()) } else { String::new() };
    let mut last_type = "";
    for (at, row) in rows.iter().take(shown).enumerate() {
        let comma = if at > 0 { ", " } else { "" };
        let op_type = if row.op_type == last_type { String::new() } else { format!("{} ", row.op_type) };
        let _ = write!(text, "{comma}{op_type}`{}`{}", row.name, of_node(row));
        last_type = &row.op_type;
    }
    if rows.len() > shown {
        let _ = write!(text, " and {} more", rows.len() - shown);
    }
    text
}

/// Its source node, if the name differs.
fn of_node(row: &OpRow) -> String {
    let node = row.source_node.as_ref().filter(|node| **node != row.name);
    node.map_or_else(String::new, |node| format!(" (node `{node}`)"))
}

fn tensor_text(tensor: &TensorRow) -> String {
    let shape = Tensor {
        name: String::new(),
        dtype: tensor.dtype,
        shape: tensor.shape.clone(),
        quantization: None,
        kind: crate::models::TensorKind::Native,
    }
    .shape_text();
    let encoding = encoding_text(tensor.quantization.as_ref());
    format!("`{}`, {} {}: {} {shape}, {encoding}", tensor.name, tensor.role, tensor.slot, tensor.dtype)
}

fn encoding_text(quantization: Option<&Quantization>) -> String {
    match quantization {
        None => "no encoding".to_owned(),
        Some(Quantization::ScaleOffset { scale, offset, .. }) => format!("scale {scale:.4e}, offset {offset}"),
        Some(Quantization::AxisScaleOffset { axis, scales, .. }) => format!("{} scales on axis {axis}", scales.len()),
        Some(Quantization::Other { id, name }) => {
            format!("encoding {}", name.clone().unwrap_or_else(|| id.to_string()))
        }
    }
}

fn compile(out: &mut String, rows: &[CompileRow], binary: bool, width: usize) {
    if rows.is_empty() {
        return;
    }
    if binary {
        return loading(out, rows, width);
    }
    let first = rows.iter().find_map(|row| row.graph.as_ref());
    let graphs = rows.iter().any(|row| row.graph.is_some() && row.graph.as_ref() != first);
    let _ = writeln!(out, "\nHTP compiler, on this machine (bytes an inference, as the compiler plans them)");
    let _ = writeln!(
        out,
        "  {:<10} {:<5} {:<7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "SoC", "arch", "result", "VTCM", "spill", "DDR read", "DDR write", "time"
    );
    for row in rows {
        let result = result(row);
        let size = |bytes: Option<u64>| bytes.map_or_else(|| "–".to_owned(), |bytes| bytes_text(bytes as f64));
        let time = row.finalize_us.map_or_else(|| "–".to_owned(), duration_text);
        let arch = row.arch.as_deref().unwrap_or("?");
        let _ = writeln!(
            out,
            "  {:<10} {arch:<5} {result:<7} {:>9} {:>9} {:>9} {:>9} {time:>9}{}",
            row.soc,
            size(row.vtcm_bytes),
            size(row.spill_bytes),
            size(row.ddr_read_bytes),
            size(row.ddr_write_bytes),
            row.graph.as_ref().filter(|_| graphs).map_or_else(String::new, |graph| format!("  {graph}")),
        );
    }
    details(out, rows, width);
}

fn result(row: &CompileRow) -> &'static str {
    match row.ok {
        Some(true) => "ok",
        Some(false) => "FAILED",
        None => "unknown",
    }
}

/// Where a context binary loads.
fn loading(out: &mut String, rows: &[CompileRow], width: usize) {
    out.push('\n');
    let text = "Loading it (by these libraries, which load it for any SoC, and by what is known of each SoC)";
    titled(out, "", text, width);
    for row in rows {
        let arch = row.arch.as_deref().unwrap_or("?");
        let _ = writeln!(out, "  {:<10} {arch:<5} {}", row.soc, result(row));
    }
    details(out, rows, width);
}

/// What does not fit into the table; details that are the same for several SoCs appear once.
fn details(out: &mut String, rows: &[CompileRow], width: usize) {
    /// SoCs, and their lines, each with a title.
    type Said<'a> = (Vec<&'a str>, Vec<(&'static str, String)>);
    let mut said: Vec<Said<'_>> = Vec::new();
    for row in rows {
        let mut lines: Vec<(&'static str, String)> = Vec::new();
        if row.ok != Some(true) {
            let code = row.code.map_or_else(String::new, |code| format!(" ({code})"));
            let stopped = row.stopped_at.as_ref().map_or_else(String::new, |op| format!(" at op `{op}`"));
            let reason = row.reason.as_deref().unwrap_or("unknown");
            lines.push(("why: ", format!("stopped{stopped}{code}: {reason}").replacen("stopped: ", "", 1)));
            if let Some(cause) = &row.cause {
                lines.push(("cause: ", format!("{} ({})", cause.title, cause.id)));
                lines.push(("fix: ", cause.fix.clone()));
            }
        }
        lines.extend(row.notes.iter().map(|note| ("note: ", note.clone())));
        if lines.is_empty() {
            continue;
        }
        match said.iter_mut().find(|(_, known)| *known == lines) {
            Some((socs, _)) if !socs.contains(&row.soc.as_str()) => socs.push(&row.soc),
            Some(_) => {}
            None => said.push((vec![&row.soc], lines)),
        }
    }
    for (socs, lines) in said {
        let _ = writeln!(out, "  {}", socs.join(", "));
        for (title, text) in lines {
            titled(out, &format!("    {title}"), &text, width);
        }
    }
}

fn quantization(out: &mut String, notes: &[Note], width: usize, all: bool) {
    let groups = grouped(notes);
    let infos = groups.iter().filter(|(_, notes)| notes[0].severity == Severity::Info);
    let hidden: usize = if all { 0 } else { infos.map(|(_, notes)| notes.len()).sum() };
    let shown = groups.iter().filter(|(_, notes)| all || notes[0].severity != Severity::Info);
    if groups.is_empty() {
        return;
    }
    out.push_str("\nEncodings\n");
    for (id, notes) in shown {
        let severity = match notes[0].severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        let count = notes.len();
        let _ = writeln!(out, "  {severity}: {id}, {count} {}", if count == 1 { "tensor" } else { "tensors" });
        let most = if all { count } else { NAMES.min(3) };
        for note in notes.iter().take(most) {
            titled(out, "    - ", &note.message, width);
        }
        if count > most {
            let _ = writeln!(out, "    and {} more", count - most);
        }
        titled(out, "    fix: ", notes[0].remedy, width);
    }
    if hidden > 0 {
        let _ = writeln!(out, "  {hidden} more worth a word; --all shows them");
    }
}

fn every_op(out: &mut String, document: &CheckDocument, width: usize) {
    if document.ops.is_empty() {
        return;
    }
    out.push_str("\nEvery op\n");
    for row in &document.ops {
        let results: Vec<String> = row
            .results
            .iter()
            .map(|(backend, result)| {
                let said = if result.ok { "ok".to_owned() } else { result.code.to_string() };
                format!("{backend} {said}")
            })
            .collect();
        titled(
            out,
            &format!("  {:>5} ", row.index),
            &format!("{}{} ({}): {}", row.name, of_node(row), row.op_type, results.join(", ")),
            width,
        );
    }
}
