//! A comparison as text, 80 columns wide: up to three runs side by side, more in several tables.

use super::ComparisonReport;
use super::differences::percent;
use super::tables::{self, Block};
use crate::analysis::compare::{Cell, Difference, DifferenceVerdict, Side};
use crate::event::clean_text;
use crate::report::recommendation_text;
use crate::text::{counted, wrapped};
use std::fmt::Write;
use std::path::Path;

/// Width of the text, characters.
pub const WIDTH: usize = 80;

/// The report as text.
pub fn comparison_text(report: &ComparisonReport) -> String {
    let mut out = String::new();
    head(&mut out, report);
    for block in blocks(report) {
        tables::figures(&mut out, report, &block);
    }
    let _ = writeln!(out, "  * best   ≈ within noise   ? not tested: one launch (below), or measured once");
    around(&mut out, report);
    intervals(&mut out, report);
    accuracy(&mut out, report);
    tables::layers(&mut out, report, &blocks(report));
    tables::op_types(&mut out, report, &blocks(report));
    refused(&mut out, report);
    if let Some(recommendation) = &report.recommendation {
        out.push('\n');
        out.push_str(&recommendation_text(recommendation));
    }
    out.lines().map(|line| clean_text(line.trim_end()) + "\n").collect()
}

/// Columns of each table: the baseline and two others.
fn blocks(report: &ComparisonReport) -> Vec<Block> {
    let baseline = report.comparison.baseline;
    let others: Vec<usize> = (0..report.sides.len()).filter(|column| *column != baseline).collect();
    let block = |others: &[usize]| {
        let mut columns = others.to_vec();
        columns.push(baseline);
        // In the given order if one table holds all.
        columns.sort_unstable_by_key(|column| (report.sides.len() > 3 && *column != baseline, *column));
        Block { columns }
    };
    others.chunks(2).map(block).collect()
}

fn head(out: &mut String, report: &ComparisonReport) {
    let baseline = report.comparison.baseline + 1;
    let _ = writeln!(out, "{} runs; differences are relative to {baseline}", report.sides.len());
    for (number, side) in (1..).zip(&report.sides) {
        let name = if side.failure.is_some() { format!("{} FAILED", side.name()) } else { side.name() };
        out.push_str(&wrapped(&format!("  {number}  {name:<15}  "), &" ".repeat(22), &about(side), WIDTH));
        for note in &side.notes {
            out.push_str(&wrapped("     note: ", "           ", note, WIDTH));
        }
        if let Some(failure) = &side.failure {
            let text = format!("stage {}: {}", failure.stage, failure.message);
            out.push_str(&wrapped("     failed in ", "       ", &text, WIDTH));
        }
    }
    if report.sides.iter().any(|side| side.simulated) {
        let text = "simulated: these figures predict no device";
        out.push_str(&wrapped("     ", "     ", text, WIDTH));
    }
    for mismatch in &report.comparison.mismatches {
        out.push_str(&wrapped("  !  ", "     ", &mismatch.text, WIDTH));
    }
}

/// The surroundings of a program's inferences, which a benchmark lacks.
fn around(out: &mut String, report: &ComparisonReport) {
    let programs = (1..).zip(&report.sides).filter_map(|(number, side)| Some((number, side, side.around.as_ref()?)));
    for (number, side, around) in programs {
        let latency = side.service.as_ref().or(side.latency.as_ref());
        let lines = around.lines(latency.and_then(|latency| latency.p50));
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\naround {number}, in its program");
        for line in lines {
            out.push_str(&wrapped("  ", "    ", &line, WIDTH));
        }
    }
}

fn about(side: &Side) -> String {
    let model = side.model.as_deref().map(Path::new).and_then(Path::file_name).map(|name| name.to_string_lossy());
    let build = side.build_id.as_deref().unwrap_or("unknown build");
    let is_summary = side.mode.origin.as_ref().is_some_and(|origin| origin.is_summary);
    let count = match &side.latency {
        Some(_) if is_summary => "one figure for all inferences".to_owned(),
        latency => counted(latency.as_ref().map_or(0, |latency| latency.count), "inference"),
    };
    let kept = match side.latency.as_ref().and_then(|latency| latency.series.as_ref()) {
        Some(series) if series.stride > 1 => format!(" (1 in {} kept)", series.stride),
        _ => String::new(),
    };
    let model = model.as_deref().unwrap_or("unknown model");
    let launches = match side.latency.as_ref().map(|latency| latency.launches().len()) {
        Some(launches) if launches > 1 => format!(" in {launches} launches"),
        Some(_) if !is_summary => " in one launch".to_owned(),
        _ => String::new(),
    };
    format!("{}: {model} on {}, {build}, {count}{launches}{kept}", side.origin, side.device)
}

/// Intervals of the differences, and why some have none.
fn intervals(out: &mut String, report: &ComparisonReport) {
    let comparison = &report.comparison;
    let tested = |difference: &Difference| difference.ci95.is_some();
    let has_interval =
        comparison.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.difference.as_ref().is_some_and(tested));
    if has_interval {
        let _ = writeln!(out, "\ndifferences from {}, 95 % intervals of launches", comparison.baseline + 1);
    }
    list(out, report, |difference| {
        let [low, high] = difference.ci95?;
        let range = format!("{} to {}", percent(low), percent(high));
        Some(match difference.verdict {
            DifferenceVerdict::WithinNoise => not_told_apart(difference),
            DifferenceVerdict::Better => format!("better, {range}"),
            DifferenceVerdict::NotComparable => format!("simulated vs real, {range}"),
            DifferenceVerdict::Worse | DifferenceVerdict::Unknown => format!("worse, {range}"),
        })
    });
    let within = |difference: &Difference| {
        let [low, high] = difference.within_ci95?;
        Some(format!("{} to {}", percent(low), percent(high)))
    };
    if comparison.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.difference.as_ref().and_then(within).is_some())
    {
        let base = comparison.baseline + 1;
        let _ = writeln!(out, "\nunknown: one launch; differences from {base} within it (95 %, block bootstrap)");
        list(out, report, within);
    }
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for row in comparison.rows.iter().filter(|row| row.id.starts_with('p') || row.id == "throughput_ips") {
        for difference in row.cells.iter().filter_map(|cell| cell.difference.as_ref()) {
            let Some(reason) = difference.no_interval.as_ref().filter(|_| row.unit == "us" || row.unit == "ips") else {
                continue;
            };
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, rows)) if rows.contains(&row.label.as_str()) => {}
                Some((_, rows)) => rows.push(&row.label),
                None => reasons.push((reason.clone(), vec![&row.label])),
            }
        }
    }
    for (reason, rows) in reasons {
        out.push_str(&wrapped(&format!("  not tested, {}: ", rows.join(", ")), "    ", &reason, WIDTH));
    }
    if comparison.rows.iter().flat_map(|row| &row.cells).any(needs_launches) {
        let text = "Launches of the same thing vary more than inferences within a launch. Measure with several (--launches), \
                    or count repeated runs as launches (compare --pool).";
        out.push_str(&wrapped("  ", "  ", text, WIDTH));
    }
}

/// Why a difference is not resolved, and what would help.
fn not_told_apart(difference: &Difference) -> String {
    // Launches that vary by a factor say nothing about differences.
    let known = difference.up_to.filter(|part| *part < 9.0);
    let up_to = known.map_or_else(String::new, |part| format!(": up to {}", percent(part).trim_start_matches('+')));
    let decide = match difference.launches_to_tell {
        Some(launches) => format!(" ({launches} launches each would decide)"),
        None => String::new(),
    };
    format!("not told apart{up_to}{decide}")
}

fn needs_launches(cell: &Cell) -> bool {
    let reason = cell.difference.as_ref().and_then(|difference| difference.no_interval.as_ref());
    reason.is_some_and(|reason| reason.contains("has one launch"))
}

/// One line per figure with the verdict on its differences.
fn list(out: &mut String, report: &ComparisonReport, said: impl Fn(&Difference) -> Option<String>) {
    for row in &report.comparison.rows {
        let cells = row.cells.iter().enumerate();
        let item =
            |(column, cell): (usize, &Cell)| Some(format!("{}: {}", column + 1, said(cell.difference.as_ref()?)?));
        let items: Vec<String> = cells.filter_map(item).collect();
        if !items.is_empty() {
            out.push_str(&wrapped(&format!("  {:<17} ", row.label), &" ".repeat(20), &items.join(";  "), WIDTH));
        }
    }
}

fn accuracy(out: &mut String, report: &ComparisonReport) {
    let known: Vec<(usize, &Result<_, String>)> =
        report.accuracy.iter().enumerate().filter_map(|(at, known)| Some((at, known.as_ref()?))).collect();
    if known.is_empty() {
        return;
    }
    let _ = writeln!(out, "\noutputs compared with those of {}", report.reference + 1);
    for (at, known) in known {
        let text = match known {
            Ok(accuracy) => {
                let figure = |name: &str, value: Option<f64>, unit: &str, digits: usize| {
                    value.map(|value| format!("{name} {value:.digits$}{unit}"))
                };
                let parts = [
                    accuracy.identical.then(|| "identical".to_owned()),
                    figure("cosine similarity", accuracy.cosine, "", 6),
                    figure("SQNR", accuracy.sqnr_db, " dB", 1),
                    Some(format!("max abs error {:.3e}", accuracy.max_abs_error)),
                    figure("top-1 agreement", accuracy.top1.map(|part| part * 100.0), " %", 0),
                    figure("top-5 agreement", accuracy.top5.map(|part| part * 100.0), " %", 0),
                    accuracy.note.clone(),
                ];
                let outputs = &accuracy.outputs;
                let inferences = outputs.first().map_or(0, |output| output.inferences);
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                let of = format!("({} x {inferences})", outputs.len());
                format!("{} {of}", parts.join(", "))
            }
            Err(reason) => format!("no figure: {reason}"),
        };
        out.push_str(&wrapped(&format!("  {}  ", at + 1), "     ", &text, WIDTH));
    }
}

fn refused(out: &mut String, report: &ComparisonReport) {
    for refused in &report.comparison.refused {
        let kind = refused.op_type.as_ref().map_or_else(String::new, |kind| format!(" ({kind})"));
        let name = report.sides[refused.column].name();
        let text = format!("{} ({name}) cannot run op `{}`{kind}", refused.column + 1, refused.op);
        out.push_str(&wrapped("\nrefused  ", "  ", &text, WIDTH));
    }
}
