//! Tables of a comparison.

use super::ComparisonReport;
use super::differences::short;
use crate::analysis::compare::{Better, LayerRow, Matched, Row};
use crate::report::layout::shortened;
use crate::text::{bytes_text, duration_text};
use std::fmt::Write;

/// Columns of one table.
pub struct Block {
    /// Their indices, from 0.
    pub columns: Vec<usize>,
}

/// Width of the names of figures and of layers, characters.
const LABEL: usize = 17;
const LAYER: usize = 24;
/// Maximum number of op types shown.
const TOP_TYPES: usize = 12;
/// Maximum number of counter rows shown; the document has all of them.
const TOP_COUNTERS: usize = 12;

/// Writes the figures of some columns.
pub fn figures(out: &mut String, report: &ComparisonReport, block: &Block) {
    let _ = write!(out, "\n{:LABEL$}", "");
    for &column in &block.columns {
        let side = &report.sides[column];
        let name = format!("{} {}{}", column + 1, side.backend, if side.simulated { " [sim]" } else { "" });
        let base = if column == report.comparison.baseline { " (base)" } else { "" };
        let _ = write!(out, "  {:<18}", format!("{name}{base}"));
    }
    out.push('\n');
    let mut counters = 0;
    for row in &report.comparison.rows {
        if row.id.starts_with("counter.") {
            counters += 1;
            if counters > TOP_COUNTERS {
                continue;
            }
        }
        figure(out, row, block);
    }
    if counters > TOP_COUNTERS {
        let _ = writeln!(out, "  and {} more counters, in the JSON document", counters - TOP_COUNTERS);
    }
}

fn figure(out: &mut String, row: &Row, block: &Block) {
    let _ = write!(out, "{:<LABEL$}", shortened(&row.label, LABEL));
    for &column in &block.columns {
        let cell = &row.cells[column];
        let mark = if cell.best { '*' } else { ' ' };
        let value = cell.value.map_or_else(|| "–".to_owned(), |value| value_text(value, &row.unit));
        let difference = if row.better == Better::Neither { String::new() } else { short(cell.difference.as_ref()) };
        let _ = write!(out, " {mark}{value:>9} {difference:<8}");
    }
    out.push('\n');
}

/// A value with its unit.
pub fn value_text(value: f64, unit: &str) -> String {
    match unit {
        "us" => duration_text(value),
        "bytes" => bytes_text(value),
        "ips" => format!("{}/s", digits(value)),
        "%" => format!("{value:.0} %"),
        "" if value != 0.0 && value.abs() < 0.001 => format!("{value:.2e}"),
        "" => format!("{value:.6}"),
        unit => format!("{} {unit}", digits(value)),
    }
}

fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A time difference with its sign.
fn signed(us: f64) -> String {
    if us == 0.0 { "=".to_owned() } else { format!("{}{}", if us > 0.0 { "+" } else { "" }, duration_text(us)) }
}

/// Writes the first layers in the requested order.
pub fn layers(out: &mut String, report: &ComparisonReport, blocks: &[Block]) {
    let rows = &report.comparison.layers;
    let shown = rows.len().min(report.shown_layers);
    if shown == 0 || rows.iter().all(|row| row.cells.iter().all(|cell| cell.time_us.is_none())) {
        return;
    }
    let derived: Vec<String> = report
        .sides
        .iter()
        .enumerate()
        .filter(|(_, side)| side.op_time_derived)
        .map(|(column, _)| (column + 1).to_string())
        .collect();
    let derived =
        if derived.is_empty() { String::new() } else { format!("; {} derived from cycles", derived.join(", ")) };
    let _ = writeln!(out, "\nlayers, share of the clean mean latency ({shown} of {}{derived})", rows.len());
    for block in blocks {
        heading(out, report, block);
        for row in rows.iter().take(shown) {
            layer(out, report, row, block);
        }
    }
    let listed = || rows.iter().take(shown);
    if listed().any(|row| !row.fused.is_empty()) {
        let _ = writeln!(out, "  +N: with N ops fused into it");
    }
    if listed().any(|row| row.matched == Matched::Position) {
        let _ = writeln!(out, "  ^: matched by type and position, not by name");
    }
    if listed().any(|row| row.cells.iter().any(|cell| cell.ops.is_empty())) {
        let _ = writeln!(out, "  ·: the run has no such op");
    }
}

fn heading(out: &mut String, report: &ComparisonReport, block: &Block) {
    let _ = write!(out, "  {:LAYER$}", "");
    for &column in &block.columns {
        let name = format!("{} {}", column + 1, report.sides[column].backend);
        let _ = write!(out, " {name:>9}");
        if column != report.comparison.baseline {
            let _ = write!(out, " {:>9}", "");
        }
    }
    out.push('\n');
}

fn layer(out: &mut String, report: &ComparisonReport, row: &LayerRow, block: &Block) {
    let place = if row.matched == Matched::Position { "^" } else { "" };
    let fused = if row.fused.is_empty() { String::new() } else { format!(" +{}", row.fused.len()) };
    let marks = format!("{place}{fused}");
    let name = shortened(&row.name, LAYER - marks.chars().count());
    let _ = write!(out, "  {:<LAYER$}", format!("{name}{marks}"));
    for &column in &block.columns {
        let cell = &row.cells[column];
        let time = match cell.time_us {
            Some(us) => duration_text(us),
            None if cell.ops.is_empty() => "·".to_owned(),
            None => "–".to_owned(),
        };
        let _ = write!(out, " {time:>9}");
        if column != report.comparison.baseline {
            let _ = write!(out, " {:>9}", cell.difference_us.map_or_else(String::new, signed));
        }
    }
    out.push('\n');
}

/// Writes the totals by op type.
pub fn op_types(out: &mut String, report: &ComparisonReport, blocks: &[Block]) {
    let timed = |row: &&crate::analysis::compare::TypeRow| row.cells.iter().any(|cell| cell.time_us.is_some());
    let rows: Vec<_> = report.comparison.op_types.iter().filter(timed).take(TOP_TYPES).collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nop types (time of the layers they lead, and their ops)");
    for block in blocks {
        let _ = write!(out, "  {:LAYER$}", "");
        for &column in &block.columns {
            let _ = write!(out, " {:>15}", format!("{} {}", column + 1, report.sides[column].backend));
        }
        out.push('\n');
        for row in &rows {
            let _ = write!(out, "  {:<LAYER$}", shortened(&row.op_type, LAYER));
            for &column in &block.columns {
                let cell = &row.cells[column];
                let time = cell.time_us.map_or_else(|| "–".to_owned(), duration_text);
                let _ = write!(out, " {time:>9} {:>5}", cell.ops);
            }
            out.push('\n');
        }
    }
}
