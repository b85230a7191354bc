//! One run: latency, layers, counters, findings.

use super::overview::{dash, run_name};
use super::{Block, Section, Table, findings, judged, placement};
use crate::analysis::throttling_marks;
use crate::event::{LOCAL_DEVICE, SettingOutcome};
use crate::report::charts::{Chart, Mark, Plot};
use crate::report::launches::intervals;
use crate::report::mask::Mask;
use crate::store::{CounterSeries, PERCENTILES, Run, Store, by_importance};
use crate::text::{bytes_text, count_text, counted, duration_text};
use std::collections::BTreeMap;

/// Maximum number of layers in a short report, and in a chart.
const BRIEF_LAYERS: usize = 10;
const CHART_LAYERS: usize = 20;
/// Number of bars in the distribution.
const BINS: usize = 60;
/// Maximum number of counters with a chart.
const CHARTED: usize = 6;

/// A run's sections, under its number and name if there are several.
pub fn sections(number: usize, several: bool, store: &Store, run: &Run, mask: &Mask) -> Vec<Section> {
    let heading = if several { format!("Run {number}: {}", run_name(run)) } else { "Run".to_owned() };
    let mut sections = vec![Section { title: heading, is_sub: false, blocks: about(run) }];
    let mut add = |title: &str, blocks: Vec<Block>| {
        if !blocks.is_empty() {
            sections.push(Section { title: title.to_owned(), is_sub: true, blocks });
        }
    };
    add("Failure", findings::failure(store, run, mask));
    let told = findings::told(store, run);
    add("Findings", if told.is_empty() { Vec::new() } else { vec![Block::Findings(told)] });
    add("Latency", latency(store, run));
    add("Outputs against truth", judged::blocks(run, mask));
    add("Layers", layers(run, mask));
    add("Op types", op_types(run));
    add("Placement", placement::blocks(run, mask));
    add("Stages", stages(run));
    add("Counters", counters(store, run));
    add("Backend's figures", metrics(run));
    sections
}

fn about(run: &Run) -> Vec<Block> {
    let mut facts: Vec<(String, String)> = vec![("model".to_owned(), run.plan.model.clone())];
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.filter(|value| !value.is_empty()).map(|value| (name.to_owned(), value)));
    };
    if let Some(model) = &run.model {
        fact("format", Some(format!("{}, {}", model.format.label(), bytes_text(model.bytes as f64))));
        fact("SHA-256", Some(model.sha256.clone()));
    }
    if let Some(graph) = run.graph().filter(|graph| !graph.ops.is_empty()) {
        let macs = Some(graph.macs()).filter(|macs| *macs > 0);
        let macs = macs.map_or_else(String::new, |macs| format!(", {} MACs", count_text(macs as f64)));
        fact("graph", Some(format!("{} ({}{macs})", graph.name, counted(graph.ops.len() as u64, "op"))));
    }
    fact("driver", Some(run.plan.driver.label().to_owned()));
    fact("QNN", run.runtime.as_ref().and_then(|runtime| runtime.build_id.clone()));
    fact("rate", run.plan.mode.rate_hz.map(|hz| format!("{hz}/s")));
    let settings: Vec<String> = run
        .settings
        .iter()
        .map(|setting| {
            let outcome = match &setting.outcome {
                SettingOutcome::Applied => String::new(),
                SettingOutcome::NoEffect(reason) => format!(" (no effect: {reason})"),
                SettingOutcome::Refused(reason) => format!(" (refused: {reason})"),
            };
            format!("{} {}{outcome}", setting.key, setting.value)
        })
        .collect();
    fact("settings", Some(settings.join("; ")));
    let confounds: Vec<&str> = run.confounds.iter().map(|confound| confound.observation.as_str()).collect();
    fact("seen before the run", Some(confounds.join("; ")));
    vec![Block::Facts(facts)]
}

fn latency(store: &Store, run: &Run) -> Vec<Block> {
    let clean = &run.clean;
    let (Some(mean), Some(min), Some(max)) = (clean.mean_us(), clean.min_us(), clean.max_us()) else {
        return run
            .first_us()
            .map(|us| Block::Text(format!("First inference {}.", duration_text(us))))
            .into_iter()
            .collect();
    };
    let origin = run.plan.mode.origin.as_ref();
    if let Some(origin) = origin.filter(|origin| origin.is_summary) {
        return vec![Block::Text(format!("{}, one figure of the tool ({}).", duration_text(mean), origin.label))];
    }
    let launches = clean.launch_count();
    let mut text = format!(
        "{}{}, profiling {}. Mean {}, smallest {}, largest {}",
        counted(clean.count(), "inference"),
        if launches > 1 { format!(" in {launches} launches") } else { String::new() },
        run.plan.clean_profiling().name(),
        duration_text(mean),
        duration_text(min),
        duration_text(max)
    );
    if let Some(first) = run.first_us() {
        text.push_str("; first inference ");
        text.push_str(&duration_text(first));
    }
    text.push('.');
    let mut table = Table::new(&["percentile", "#value", "#95 % interval"], PERCENTILES.len());
    for (percent, (low, high)) in PERCENTILES.into_iter().zip(intervals(run)) {
        let value = clean.percentile_us(percent);
        let needed = (100.0 / (100.0 - percent)).round();
        let interval = match value {
            Some(_) => format!("{} to {}", dash(low.map(duration_text)), dash(high.map(duration_text))),
            None => format!("needs {needed} inferences"),
        };
        table.rows.push(vec![format!("p{percent}"), dash(value.map(duration_text)), interval]);
    }
    let mut blocks = vec![Block::Text(text), Block::Table(table)];
    if clean.count() >= 10 {
        let marks = [50.0, 95.0, 99.0].into_iter().filter_map(|percent| {
            Some(Mark { at: clean.percentile_us(percent)? / 1000.0, label: format!("p{percent}") })
        });
        let bins = clean.bins(BINS).into_iter().map(|(us, count)| (us / 1000.0, count as f64)).collect();
        blocks.push(Block::Chart(Chart {
            title: "Distribution of latency".to_owned(),
            x: "latency, ms (the last bar holds all slower inferences)".to_owned(),
            y: "inferences".to_owned(),
            plot: Plot::Bins { bins, marks: marks.collect() },
        }));
        let has_moments = origin.is_none_or(|origin| origin.has_moments);
        let begun_us = clean.window_us().map_or(0, |window| window.0);
        let at = |t_us: u64| t_us.saturating_sub(begun_us) as f64 / 1e6;
        let points = clean.timed().map(|(t_us, us)| (at(t_us), f64::from(us) / 1000.0)).collect();
        let marks = throttling_marks(store, run).into_iter().filter(|mark| has_moments && mark.concerns_backend);
        let marks = marks.map(|mark| Mark { at: at(mark.since_us), label: format!("throttled: {}", mark.label) });
        blocks.push(Block::Chart(Chart {
            title: "Latency over time".to_owned(),
            x: if has_moments { "s since the first inference" } else { "s of inferences (the file has no timestamps)" }
                .to_owned(),
            y: "ms".to_owned(),
            plot: Plot::Course { points, marks: marks.collect() },
        }));
    }
    blocks
}

fn layers(run: &Run, mask: &Mask) -> Vec<Block> {
    if run.ops.inferences() == 0 {
        return ops_without_times(run, mask);
    }
    let mut order: Vec<usize> = (0..run.ops.rows().len()).collect();
    order.sort_by(|&a, &b| run.ops.share(b).total_cmp(&run.ops.share(a)).then(a.cmp(&b)));
    let where_told = order.iter().any(|row| run.op(*row).is_some_and(|op| is_place(&op.package)));
    let mut heads = vec!["layer", "type", "#share", "#time", "#p95 as profiled", "#MACs"];
    if where_told {
        heads.push("runs on");
    }
    let node = |row: usize| run.source_of_row(row).filter(|node| *node != run.ops.rows()[row].name);
    let is_named = order.iter().any(|row| node(*row).is_some());
    if is_named {
        heads.push("node of the source");
    }
    let mut table = Table::new(&heads, BRIEF_LAYERS);
    table.is_long = order.len() > 30;
    let factor = run.us_per_op_unit();
    for &row in &order {
        let op = run.op(row);
        let p95 = run.ops.stats()[row].percentile(95.0).zip(factor).map(|(value, factor)| value * factor);
        let mut cells = vec![
            mask.name(&run.ops.rows()[row].name).into_owned(),
            op.map_or_else(String::new, |op| op.op_type.clone()),
            format!("{:.1} %", 100.0 * run.ops.share(row)),
            dash(run.scaled_op_us(row).map(duration_text)),
            dash(p95.map(duration_text)),
            dash(op.and_then(|op| op.macs).map(|macs| count_text(macs as f64))),
        ];
        if where_told {
            cells.push(op.map_or_else(String::new, |op| op.package.clone()));
        }
        if is_named {
            cells.push(run.source_of_row(row).map_or_else(String::new, |node| mask.name(node).into_owned()));
        }
        table.rows.push(cells);
    }
    let derived = if run.op_time_is_derived() { " Times are derived from cycles." } else { "" };
    let overhead = run
        .overhead_factor()
        .map_or_else(String::new, |factor| format!(" Timing layers makes an inference {factor:.2} times as long."));
    let text = format!(
        "{}, of {}; time is the layer's share of the clean mean latency.{derived}{overhead}",
        counted(order.len() as u64, "layer"),
        counted(run.ops.inferences(), "detailed inference")
    );
    let bars = order
        .iter()
        .take(CHART_LAYERS)
        .filter(|row| run.ops.share(**row) > 0.0)
        .map(|&row| (mask.name(&run.ops.rows()[row].name).into_owned(), 100.0 * run.ops.share(row)));
    let chart = Chart {
        title: "Slowest layers".to_owned(),
        x: "% of the inference".to_owned(),
        y: String::new(),
        plot: Plot::Bars { rows: bars.collect() },
    };
    vec![Block::Text(text), Block::Chart(chart), Block::Table(table)]
}

/// QNN's own op packages do not indicate a place.
fn is_place(package: &str) -> bool {
    !package.is_empty() && !package.starts_with("qti")
}

/// What is known about a graph without times: its ops, and where they run.
fn ops_without_times(run: &Run, mask: &Mask) -> Vec<Block> {
    let Some(graph) = run.graph().filter(|graph| run.plan.mode.origin.is_some() && !graph.ops.is_empty()) else {
        return Vec::new();
    };
    let mut table = Table::new(&["layer", "type", "runs on"], BRIEF_LAYERS);
    table.is_long = graph.ops.len() > 30;
    for op in &graph.ops {
        table.rows.push(vec![mask.name(&op.name).into_owned(), op.op_type.clone(), op.package.clone()]);
    }
    vec![
        Block::Text(format!("{}; the file has no layer times.", counted(graph.ops.len() as u64, "op"))),
        Block::Table(table),
    ]
}

fn op_types(run: &Run) -> Vec<Block> {
    let mut types: BTreeMap<&str, (usize, f64, u64)> = BTreeMap::new();
    for row in 0..run.ops.rows().len() {
        let Some(op) = run.op(row).filter(|op| !op.op_type.is_empty()) else { continue };
        let total = types.entry(&op.op_type).or_default();
        *total = (total.0 + 1, total.1 + run.ops.share(row), total.2.saturating_add(op.macs.unwrap_or(0)));
    }
    if types.is_empty() || run.ops.inferences() == 0 {
        return Vec::new();
    }
    let mut rows: Vec<_> = types.into_iter().collect();
    rows.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    let mean_us = run.service().mean_us();
    let mut table = Table::new(&["type", "#ops", "#share", "#time", "#MACs"], BRIEF_LAYERS);
    for (kind, (count, share, macs)) in rows {
        table.rows.push(vec![
            kind.to_owned(),
            count.to_string(),
            format!("{:.1} %", 100.0 * share),
            dash(mean_us.map(|us| duration_text(us * share))),
            if macs > 0 { count_text(macs as f64) } else { "–".to_owned() },
        ]);
    }
    vec![Block::Table(table)]
}

fn stages(run: &Run) -> Vec<Block> {
    let mut table = Table::new(&["stage", "#time", "#resident set"], 10);
    for time in run.stages.iter().filter(|time| time.stage.is_reported()) {
        table.rows.push(vec![
            time.stage.name().replace('_', " "),
            duration_text(time.duration_us),
            dash(time.rss_delta.map(|bytes| bytes_text(bytes as f64))),
        ]);
    }
    for part in &run.sub_stages {
        let value = match part.unit.as_str() {
            "us" => duration_text(part.value),
            "bytes" => bytes_text(part.value),
            unit => format!("{} {unit}", part.value),
        };
        table.rows.push(vec![format!("{}: {}", part.stage.name().replace('_', " "), part.name), value, String::new()]);
    }
    if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] }
}

/// Counters of the machine that ran the model, during the run.
fn counters(store: &Store, run: &Run) -> Vec<Block> {
    let is_local = run.plan.device == LOCAL_DEVICE;
    let own: Vec<&CounterSeries> = if is_local {
        store.counters().iter().collect()
    } else {
        let device = store.device_counters().series().iter().filter(|series| series.device == run.plan.device);
        by_importance(device).into_iter().map(|series| &series.series).collect()
    };
    let (from_us, to_us) = (run.started_us, run.ended_us.unwrap_or_else(|| store.now_us()));
    let mut table = Table::new(&["counter", "#mean", "#smallest", "#largest", "unit"], BRIEF_LAYERS);
    let mut charts = Vec::new();
    let marks = throttling_marks(store, run);
    let at = |t_us: u64| t_us.saturating_sub(from_us) as f64 / 1e6;
    for series in own {
        let points = series.points().iter().filter(|(t_us, _)| (from_us..=to_us).contains(t_us));
        let points: Vec<(f64, f64)> = points.filter_map(|(t_us, value)| Some((at(*t_us), (*value)?))).collect();
        let Some(mean) = mean(&points) else { continue };
        let (low, high) =
            points.iter().fold((f64::MAX, f64::MIN), |(low, high), point| (low.min(point.1), high.max(point.1)));
        let unit = &series.info.unit;
        let show = |value: f64| if unit == "bytes" { bytes_text(value) } else { format!("{value:.1}") };
        let shown_unit = if unit == "bytes" { String::new() } else { unit.clone() };
        table.rows.push(vec![series.info.label.clone(), show(mean), show(low), show(high), shown_unit]);
        let moved = high - low > 0.02 * high.abs();
        if moved && points.len() > 5 && charts.len() < CHARTED && unit != "bytes" {
            let own =
                marks.iter().map(|mark| Mark { at: at(mark.since_us), label: format!("throttled: {}", mark.label) });
            charts.push(Block::Chart(Chart {
                title: series.info.label.clone(),
                x: "s since the run began".to_owned(),
                y: unit.clone(),
                plot: Plot::Course { points, marks: own.collect() },
            }));
        }
    }
    if table.rows.is_empty() {
        return Vec::new();
    }
    let mut blocks: Vec<Block> = marks
        .iter()
        .map(|mark| {
            let what = if mark.concerns_backend { "" } else { " (not used by the backend)" };
            let seconds = at(mark.since_us);
            Block::Warning(format!("Throttled from {seconds:.1} s on: {}{what}", mark.label))
        })
        .collect();
    blocks.push(Block::Table(table));
    blocks.extend(charts);
    blocks
}

fn mean(points: &[(f64, f64)]) -> Option<f64> {
    (!points.is_empty()).then(|| points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64)
}

fn metrics(run: &Run) -> Vec<Block> {
    let mut table = Table::new(&["figure", "#mean", "#smallest", "#largest"], 0);
    for metric in &run.metrics {
        let show = |value: f64| match metric.unit.as_str() {
            "us" => duration_text(value),
            "bytes" => bytes_text(value),
            "cycles" => format!("{} cycles", count_text(value)),
            "count" | "" => count_text(value),
            unit => format!("{value:.1} {unit}"),
        };
        table.rows.push(vec![metric.name.clone(), show(metric.mean()), show(metric.min), show(metric.max)]);
    }
    if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] }
}
