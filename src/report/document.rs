//! A result document as text: what it holds about its runs, in the order of the text report.

use super::layout::{list, shortened};
use crate::analysis::compare::{Side, SideLatency, SideOp};
use crate::text::{bytes_text, count_text, duration_text, noun, rate_text};
use std::fmt::Write;

/// Maximum number of layers listed.
const TOP_LAYERS: usize = 15;

/// The report on the runs of a result document. Findings and counters over time require the session.
pub fn document_text(sides: &[Side]) -> String {
    let mut out = String::new();
    for (at, side) in sides.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        heading(&mut out, side);
        let stages: Vec<String> = side
            .stages_us
            .iter()
            .map(|(stage, us)| format!("{} {}", stage.name().replace('_', " "), duration_text(*us)))
            .collect();
        list(&mut out, "stages", &stages);
        if let Some(latency) = &side.latency {
            figures(&mut out, "latency", latency);
        }
        if let Some(service) = &side.service {
            figures(&mut out, "service", service);
        }
        others(&mut out, side);
        layers(&mut out, side);
        if let Some(failure) = &side.failure {
            let code = failure.code.map_or_else(String::new, |code| format!(" ({code})"));
            let _ = writeln!(out, "failed in stage {}: {}{code}: {}", failure.stage, failure.call, failure.message);
        }
        for note in &side.notes {
            let _ = writeln!(out, "note: {note}");
        }
    }
    out
}

fn heading(out: &mut String, side: &Side) {
    let simulated = if side.simulated { "  [simulated]" } else { "" };
    let build = side.build_id.as_ref().map_or_else(String::new, |build| format!("  {build}"));
    let end = if side.failure.is_some() { "  FAILED" } else { "" };
    if let Some(model) = &side.model {
        let _ = writeln!(out, "{model}");
    }
    let _ = writeln!(out, "== {} on {}{simulated}{build}{end}", side.backend, side.device);
    for setting in &side.settings {
        let outcome = if setting.applied { "applied" } else { "not applied" };
        let _ = writeln!(out, "   {} {}: {outcome}", setting.key, setting.value);
    }
}

fn figures(out: &mut String, title: &str, latency: &SideLatency) {
    let named = [
        ("mean", latency.mean),
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p95", latency.p95),
        ("p99", latency.p99),
        ("max", latency.max),
    ];
    let mut rows: Vec<String> =
        named.into_iter().filter_map(|(name, us)| Some(format!("{name} {}", duration_text(us?)))).collect();
    rows.push(format!("of {} {}", count_text(latency.count as f64), noun(latency.count, "inference")));
    if latency.launches.len() > 1 {
        rows.push(format!("{} launches", latency.launches.len()));
    }
    list(out, title, &rows);
}

fn others(out: &mut String, side: &Side) {
    let mut rows = Vec::new();
    rows.extend(side.first_us.map(|us| format!("first inference {}", duration_text(us))));
    rows.extend(side.throughput_ips.map(|ips| format!("{} inferences/s", rate_text(ips))));
    rows.extend(side.memory_peak.map(|bytes| format!("peak memory {}", bytes_text(bytes))));
    rows.extend(side.cpu_percent.map(|percent| format!("processor {percent:.0} %")));
    rows.extend(side.energy_mj.map(|mj| format!("energy {mj:.2} mJ per inference")));
    list(out, "also", &rows);
    let counters: Vec<String> =
        side.counters.iter().map(|counter| format!("{} {:.1} {}", counter.id, counter.mean, counter.unit)).collect();
    list(out, "counters", &counters);
}

fn layers(out: &mut String, side: &Side) {
    let mut ops: Vec<(&SideOp, f64)> = side.ops.iter().filter_map(|op| Some((op, op.time_us?))).collect();
    let total: f64 = ops.iter().map(|(_, us)| us).sum();
    if ops.is_empty() || total <= 0.0 {
        return;
    }
    ops.sort_by(|a, b| b.1.total_cmp(&a.1));
    let derived = if side.op_time_derived { ", derived from cycles" } else { "" };
    let _ = writeln!(out, "layers     the {} slowest of {}{derived}", TOP_LAYERS.min(ops.len()), ops.len());
    for (op, us) in ops.iter().take(TOP_LAYERS) {
        let kind = op.op_type.as_deref().unwrap_or("-");
        let share = 100.0 * us / total;
        let _ = writeln!(out, "  {:>9}  {share:>5.1} %  {:<20}  {}", duration_text(*us), kind, shortened(&op.name, 48));
    }
}
