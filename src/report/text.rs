//! The text report.

mod counters;

pub(super) use counters::{counters, device_counters};

use super::judged;
use super::launches;
use super::layout::{list, shortened};
use super::verdicts::findings_text;
use super::{modes, nodes};
use crate::analysis::{NoEnergy, energy, findings, summary, verdicts};
use crate::diagnosis::{Fault, causes_text, diagnose_run};
use crate::event::{RunStatus, SandboxState, SettingOutcome};
use crate::store::{PERCENTILES, Run, RunState, Store};
use crate::text::{bytes_text, count_text, counted, duration_text, file_name, paragraph};
use std::fmt::Write;

/// Maximum number of layers listed.
const TOP_LAYERS: usize = 15;
/// Width of a share bar, characters.
const BAR: usize = 12;

/// The report on every run in the store.
pub fn text_report(store: &Store) -> String {
    let mut out = String::new();
    if let Some(run) = store.runs().iter().find(|run| run.model.is_some()) {
        model(&mut out, run);
    }
    for run in store.runs() {
        one_run(&mut out, store, run);
    }
    modes::groups(&mut out, store);
    device_counters(&mut out, store);
    counters(&mut out, store);
    if let Some(recommendation) = super::recommendation(store) {
        out.push('\n');
        out.push_str(&super::recommendation_text(&recommendation));
    }
    out
}

/// The report on one run.
pub(super) fn one_run(out: &mut String, store: &Store, run: &Run) {
    let _ = writeln!(out);
    heading(out, store, run);
    settings(out, run);
    modes::cool_down(out, run);
    stages(out, run);
    latency(out, run);
    modes::over_time(out, store, run);
    modes::published(out, store, run);
    memory(out, run);
    energy_line(out, store, run);
    judged::lines(out, run);
    nodes::table(out, run);
    layers(out, run);
    metrics(out, run);
    failure(out, store, run);
    let found = findings(store, run);
    findings_text(out, &found);
    if let Some(text) = summary(run, &verdicts(store, run), &found) {
        out.push('\n');
        paragraph(out, &text, 0, 0);
    }
}

fn model(out: &mut String, run: &Run) {
    let Some(model) = &run.model else { return };
    let _ = writeln!(out, "{}  {}, {}", model.path, model.format.label(), bytes_text(model.bytes as f64));
    if let Some(graph) = run.graph() {
        let ops = if graph.ops.is_empty() {
            String::new()
        } else {
            format!(
                ": {}, {} MACs, {} of parameters",
                counted(graph.ops.len() as u64, "op"),
                count_text(graph.macs() as f64),
                bytes_text(graph.parameter_bytes as f64)
            )
        };
        let _ = writeln!(out, "graph {}{ops}", graph.name);
        if run.graphs.len() > 1 {
            let names: Vec<&str> = run.graphs.iter().map(|g| g.name.as_str()).collect();
            let _ = writeln!(out, "graphs of the model: {} (--graph picks)", names.join(", "));
        }
    }
}

/// The model of a run, if another run has a different one.
fn which_model(store: &Store, run: &Run) -> String {
    if store.runs().iter().all(|other| other.plan.model == run.plan.model) {
        return String::new();
    }
    let own = file_name(&run.plan.model);
    // Two models with the same name are in different folders.
    let same = |other: &Run| other.plan.model != run.plan.model && file_name(&other.plan.model) == own;
    if store.runs().iter().any(same) { format!("  {}", run.plan.model) } else { format!("  {own}") }
}

fn heading(out: &mut String, store: &Store, run: &Run) {
    let simulated = if run.plan.simulated { "  [simulated]" } else { "" };
    let device = store.device(&run.plan.device).map_or(run.plan.device.as_str(), |device| device.id.as_str());
    let build = run.runtime.as_ref().map_or_else(String::new, |runtime| {
        let api = if runtime.core_api.is_empty() { String::new() } else { format!(" (core API {})", runtime.core_api) };
        format!("  {}{api}", runtime.build_id.as_deref().unwrap_or("unnamed build"))
    });
    let end = match run.status() {
        Some(RunStatus::Ok) => String::new(),
        Some(RunStatus::Stopped) => "  stopped early".to_owned(),
        Some(RunStatus::Failed) => "  FAILED".to_owned(),
        None => match run.state {
            RunState::In(stage) => format!("  unfinished: it was in stage {stage}"),
            _ => format!("  unfinished: after stage {}", run.last_stage()),
        },
    };
    let model = which_model(store, run);
    let _ = writeln!(out, "== {} on {device}{model}{simulated}{build}{end}", run.plan.backend);
    if let Some(origin) = &run.plan.mode.origin {
        let _ = writeln!(out, "   {}: read from a file of another tool ({})", run.plan.model, origin.label);
    }
    for file in &run.changed_files {
        let _ = writeln!(out, "   CHANGED since the runtime was installed: {file}");
    }
    if let Some(sandbox) = run.sandbox.as_ref().filter(|sandbox| sandbox.state != SandboxState::Enforced) {
        let _ = writeln!(out, "   sandbox {}", sandbox.summary());
    }
    if run.plan.simulated {
        let _ = writeln!(out, "   simulated: these figures predict no device");
    }
}

fn settings(out: &mut String, run: &Run) {
    for setting in &run.settings {
        let outcome = match &setting.outcome {
            SettingOutcome::Applied => "applied".to_owned(),
            SettingOutcome::NoEffect(reason) => format!("no effect: {reason}"),
            SettingOutcome::Refused(reason) => format!("refused: {reason}"),
        };
        let _ = writeln!(out, "   {} {}: {outcome}", setting.key, setting.value);
    }
}

fn stages(out: &mut String, run: &Run) {
    let rows: Vec<String> = run
        .stages
        .iter()
        .filter(|time| time.stage.is_reported())
        .map(|time| format!("{} {}", time.stage.name().replace('_', " "), duration_text(time.duration_us)))
        .collect();
    if !rows.is_empty() {
        out.push('\n');
        list(out, "stages", &rows);
    }
    let parts: Vec<String> = run
        .sub_stages
        .iter()
        .map(|sub| match sub.unit.as_str() {
            "us" => format!("{} {}", sub.name, duration_text(sub.value)),
            "bytes" => format!("{} {}", sub.name, bytes_text(sub.value)),
            unit => format!("{} {} {unit}", sub.name, sub.value),
        })
        .collect();
    list(out, "  parts", &parts);
}

fn latency(out: &mut String, run: &Run) {
    let clean = &run.clean;
    let (Some(mean), Some(min), Some(max)) = (clean.mean_us(), clean.min_us(), clean.max_us()) else { return };
    let profiling = run.plan.clean_profiling().name();
    if run.plan.mode.origin.as_ref().is_some_and(|origin| origin.is_summary) {
        let _ = writeln!(out, "\nlatency    {}, as the tool computed it", duration_text(mean));
        return;
    }
    let throughput = run.throughput_ips().map_or_else(String::new, |ips| format!("; {ips:.1} inferences/s"));
    let _ = writeln!(
        out,
        "\nlatency    {} after {} warm-up, profiling {profiling}{throughput}",
        counted(clean.count(), "inference"),
        run.warmup.count()
    );
    let stddev = clean.stddev_us().map_or_else(|| "–".to_owned(), duration_text);
    let _ = writeln!(
        out,
        "  mean {}  stddev {stddev}  min {}  max {}",
        duration_text(mean),
        duration_text(min),
        duration_text(max)
    );
    for (percent, interval) in PERCENTILES.into_iter().zip(launches::intervals(run)) {
        let p = clean.percentile(percent);
        let bound = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), duration_text);
        match p.value_us {
            Some(value) => {
                let _ = writeln!(
                    out,
                    "  p{percent:<5} {:>10}   95 % interval {} to {}",
                    duration_text(value),
                    bound(interval.0),
                    bound(interval.1)
                );
            }
            None => {
                let needed = (100.0 / (100.0 - percent)).round();
                let _ = writeln!(out, "  p{percent:<5} {:>10}   needs at least {needed} samples", "–");
            }
        }
    }
    launches::text(out, run);
    modes::pace(out, run);
    let first = run.first_us().map_or_else(|| "–".to_owned(), duration_text);
    let warmup = run.warmup.mean_us().map_or_else(|| "–".to_owned(), duration_text);
    let _ = writeln!(out, "  first inference {first}, warm-up mean {warmup}");
    if let Some(percent) = run.cpu_utilization_percent() {
        let _ = writeln!(out, "  runner uses {percent:.0} % of one CPU core");
    }
}

fn memory(out: &mut String, run: &Run) {
    let memory = &run.memory;
    let (Some(before), Some(loaded), Some(peak)) = (memory.rss_before, memory.rss_loaded, memory.rss_peak) else {
        return;
    };
    let delta = memory.rss_delta().map_or_else(|| "–".to_owned(), |delta| bytes_text(delta as f64));
    let pss = memory.pss_loaded.map_or_else(|| "–".to_owned(), |pss| bytes_text(pss as f64));
    let _ = writeln!(
        out,
        "\nmemory     RSS {} before load, {} loaded ({delta} more), {} peak; PSS {pss} loaded",
        bytes_text(before as f64),
        bytes_text(loaded as f64),
        bytes_text(peak as f64)
    );
    let stages: Vec<String> = run
        .stages
        .iter()
        .filter_map(|time| Some((time.stage, time.rss_delta?)))
        .filter(|(stage, delta)| stage.is_reported() && delta.abs() >= 64 * 1024)
        .map(|(stage, delta)| format!("{} {}", stage.name().replace('_', " "), bytes_text(delta as f64)))
        .collect();
    list(out, "  by stage", &stages);
    if let Some(growth) = memory.growth_per_inference() {
        let _ = writeln!(out, "  growth per inference {}", bytes_text(growth));
    }
}

fn layers(out: &mut String, run: &Run) {
    if run.ops.inferences() == 0 {
        return;
    }
    let overhead = run
        .overhead_factor()
        .map_or_else(String::new, |factor| format!("; tracing makes an inference {factor:.2} times as long"));
    let derived = if run.op_time_is_derived() { ", times derived from cycles" } else { "" };
    let _ = writeln!(out, "\nlayers     {}{derived}{overhead}", counted(run.ops.inferences(), "detailed inference"));
    if run.ops.mismatched() > 0 {
        let _ = writeln!(out, "  {} with other ops left out", counted(run.ops.mismatched(), "inference"));
    }
    let mut order: Vec<usize> = (0..run.ops.rows().len()).collect();
    order.sort_by(|&a, &b| run.ops.share(b).total_cmp(&run.ops.share(a)).then(a.cmp(&b)));
    let factor = run.us_per_op_unit();
    let width = order
        .iter()
        .take(TOP_LAYERS)
        .map(|&row| run.ops.rows()[row].name.chars().count())
        .max()
        .unwrap_or(0)
        .clamp(4, 30);
    // The node only if its name differs.
    let node = |row: usize| run.source_of_row(row).filter(|node| *node != run.ops.rows()[row].name);
    let head = if order.iter().take(TOP_LAYERS).any(|&row| node(row).is_some()) { "  node" } else { "" };
    let _ = writeln!(
        out,
        "  {:<width$}  {:<18} {:>6}  {:<BAR$} {:>9} {:>9} {:>8}{head}",
        "op", "type", "share", "", "mean*", "p95", "MACs"
    );
    for &row in order.iter().take(TOP_LAYERS) {
        let op = run.op(row);
        let share = run.ops.share(row);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and BAR")]
        let bar = "█".repeat((share * BAR as f64).round() as usize);
        let p95 = run.ops.stats()[row].percentile(95.0).zip(factor).map(|(value, factor)| value * factor);
        let time = |us: Option<f64>| us.map_or_else(|| "–".to_owned(), duration_text);
        let name = shortened(&run.ops.rows()[row].name, width);
        let _ = writeln!(
            out,
            "  {name:<width$}  {:<18} {:>5.1}%  {bar:<BAR$} {:>9} {:>9} {:>8}{}",
            op.map_or_else(|| "–".to_owned(), |op| shortened(&op.op_type, 18)),
            share * 100.0,
            time(run.scaled_op_us(row)),
            time(p95),
            op.and_then(|op| op.macs).map_or_else(|| "–".to_owned(), |macs| count_text(macs as f64)),
            node(row).map_or_else(String::new, |node| format!("  {}", shortened(node, 30))),
        );
    }
    let rest = order.len().saturating_sub(TOP_LAYERS);
    if rest > 0 {
        let share: f64 = order.iter().skip(TOP_LAYERS).map(|&row| run.ops.share(row)).sum();
        let _ = writeln!(out, "  and {rest} more with {:.1}% together", share * 100.0);
    }
    let _ = writeln!(out, "  * share of the clean mean latency; p95 as measured under profiling");
}

fn metrics(out: &mut String, run: &Run) {
    if run.metrics.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nbackend");
    for metric in &run.metrics {
        let show = |value: f64| match metric.unit.as_str() {
            "us" => duration_text(value),
            "bytes" => bytes_text(value),
            "cycles" => format!("{} cycles", count_text(value)),
            _ => count_text(value),
        };
        let _ = writeln!(
            out,
            "  {:<40} mean {:>13}  min {:>13}  max {:>13}",
            metric.name,
            show(metric.mean()),
            show(metric.min),
            show(metric.max)
        );
    }
}

/// Maximum number of causes named for a failure, likeliest first.
const CAUSES: usize = 3;
/// Width of its text, characters.
const WIDTH: usize = 80;

fn failure(out: &mut String, store: &Store, run: &Run) {
    let Some(failure) = &run.failure else { return };
    let fault = Fault::of(failure);
    let place = format!("{}{}", failure.stage, launches::which(run));
    if let Some(fault) = &fault {
        let _ = writeln!(out, "\nfailed in stage {place} at {}", fault.sentence());
        let _ = writeln!(out, "  {}", failure.message);
    } else {
        let _ = writeln!(out, "\nfailed in stage {place}: {}", failure.message);
    }
    // A remedy for the op is shown with its cause.
    if let Some(hint) = failure.hint.as_ref().filter(|_| fault.is_none_or(|fault| fault.remedy.is_none())) {
        let _ = writeln!(out, "  next: {hint}");
    }
    if let Some(diagnosis) = diagnose_run(store, run) {
        out.push_str(&causes_text(&diagnosis, CAUSES, 2, WIDTH));
    }
    if !failure.log_tail.is_empty() {
        let _ = writeln!(out, "  relevant log lines:");
        for line in &failure.log_tail {
            let _ = writeln!(out, "    {line}");
        }
    }
}

/// Energy if known; for a device with a battery, also why it is unknown.
fn energy_line(out: &mut String, store: &Store, run: &Run) {
    match energy(store, run) {
        Ok(energy) => {
            let _ = writeln!(
                out,
                "energy     {:.3} mJ per inference at {:.2} W, of the whole device ({} readings of the battery)",
                energy.per_inference_mj, energy.average_power_w, energy.readings
            );
        }
        Err(NoEnergy::NoDevice) => {}
        Err(reason) if run.clean.is_empty() => drop(reason),
        Err(reason) => {
            let _ = writeln!(out, "energy     not reported: {reason}");
        }
    }
}
