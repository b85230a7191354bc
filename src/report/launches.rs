//! The launches of a run in the result document and in the text report.

use super::layout::list;
use crate::analysis::launches::{self as analysis, between_launches};
use crate::event::{RunStatus, Stage};
use crate::store::{Launch, LaunchFacts, PERCENTILES, Run};
use crate::text::{apart_text, duration_text, known_text};
use serde::Serialize;
use std::fmt::Write;

/// A launch with its latencies, microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LaunchResult {
    index: usize,
    samples: u64,
    mean: f64,
    stddev: Option<f64>,
    min: f64,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: f64,
    load_us: Option<f64>,
    first_inference_us: Option<f64>,
    cpu_utilization_percent: Option<f64>,
    reason: Option<String>,
}

/// How the launches of a run differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct BetweenLaunches {
    launches: usize,
    planned: u32,
    spread_percent: Option<f64>,
    deviation_percent: Option<f64>,
    variance_share: Option<f64>,
    known_to_percent: Option<f64>,
    tells_percent: Option<f64>,
    tells_in_turns_percent: Option<f64>,
    note: Option<String>,
}

/// Launches with clean inferences. Data other than latencies exists only if each process was a separate
/// launch: qnn-net-run makes several rounds in one process.
pub(super) fn launches(run: &Run) -> Vec<LaunchResult> {
    let measured = run.clean.launches();
    let facts: Vec<Option<&LaunchFacts>> = if measured.len() <= run.launches.len() {
        run.launches.iter().map(Some).collect()
    } else {
        vec![None; measured.len()]
    };
    measured.iter().zip(facts).map(|(launch, facts)| row(launch, facts)).collect()
}

fn row(launch: &Launch<'_>, facts: Option<&LaunchFacts>) -> LaunchResult {
    let figures = &launch.figures;
    LaunchResult {
        index: launch.index,
        samples: figures.count,
        mean: figures.mean_us,
        stddev: figures.stddev_us,
        min: figures.min_us,
        p50: figures.percentile_us(50.0),
        p95: figures.percentile_us(95.0),
        p99: figures.percentile_us(99.0),
        max: figures.max_us,
        load_us: facts.and_then(load_us),
        first_inference_us: facts.and_then(|facts| facts.first_us),
        cpu_utilization_percent: facts.and_then(LaunchFacts::cpu_utilization_percent),
        reason: facts.and_then(|facts| facts.reason.clone()),
    }
}

/// Time from the start of loading to the first inference, microseconds.
fn load_us(facts: &LaunchFacts) -> Option<f64> {
    let loading = |stage: Stage| stage.is_reported() && stage < Stage::FirstInference;
    let times: Vec<f64> = facts.stages.iter().filter(|time| loading(time.stage)).map(|time| time.duration_us).collect();
    (!times.is_empty()).then(|| times.iter().sum())
}

/// How they differ.
pub(super) fn between(run: &Run) -> BetweenLaunches {
    let seen = between_launches(&run.clean);
    let of = |figure: fn(&analysis::BetweenLaunches) -> f64| seen.as_ref().map(figure);
    BetweenLaunches {
        launches: run.clean.launch_count(),
        planned: run.launches_planned,
        spread_percent: of(|seen| seen.spread_percent),
        deviation_percent: of(|seen| seen.deviation_percent),
        variance_share: seen.as_ref().and_then(|seen| seen.variance_share),
        known_to_percent: of(|seen| seen.known_to_percent),
        tells_percent: seen.as_ref().and_then(|seen| seen.tells_percent),
        tells_in_turns_percent: seen.as_ref().and_then(|seen| seen.tells_in_turns_percent),
        note: note(run),
    }
}

/// 95 % intervals of [`PERCENTILES`]: over all launches if there are several, since the variation of single
/// inferences says nothing about the next process; otherwise from order statistics. A bound is `None` without
/// enough support.
pub(super) fn intervals(run: &Run) -> [(Option<f64>, Option<f64>); PERCENTILES.len()] {
    const NAMES: [&str; PERCENTILES.len()] = ["p50", "p90", "p95", "p99", "p999"];
    if run.clean.launch_count() < 2 {
        return PERCENTILES.map(|percent| run.clean.percentile(percent).ci95_us);
    }
    let of_all = between_launches(&run.clean).map(|seen| seen.ci95).unwrap_or_default();
    NAMES.map(|name| of_all.get(name).map_or((None, None), |[low, high]| (Some(*low), Some(*high))))
}

/// Largest launch median relative to the smallest, per cent; `None` for fewer than two. An active launch is
/// left out.
pub fn spread_percent(run: &Run) -> Option<f64> {
    let measured = run.clean.launches();
    let going_on = usize::from(run.phase.is_some() && !run.is_ended());
    let ended = &measured[..measured.len().saturating_sub(going_on)];
    let medians: Vec<f64> = ended.iter().filter_map(|launch| launch.figures.percentile_us(50.0)).collect();
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let most = medians.iter().copied().fold(0.0, f64::max);
    (medians.len() > 1 && least > 0.0).then(|| (most / least - 1.0) * 100.0)
}

/// Why there are fewer or more launches than initially planned, if so.
fn note(run: &Run) -> Option<String> {
    let (planned, made) = (run.plan.mode.launches.planned as usize, run.launches.len());
    if made > planned {
        let why = run.launches.last().and_then(|launch| launch.reason.as_deref()).unwrap_or("more were asked for");
        return Some(format!("{planned} launches were planned, {made} ran: {why}"));
    }
    if made < planned && run.status() == Some(RunStatus::Ok) {
        let load =
            run.launches[0].stages.iter().filter(|time| time.stage.is_reported() && time.stage < Stage::FirstInference);
        let load_us: f64 = load.map(|time| time.duration_us).sum();
        return Some(format!(
            "loading took {}, so all inferences ran in one launch; --launches {planned} splits them over {planned}",
            duration_text(load_us)
        ));
    }
    None
}

/// The launches in the text report: their medians and spread.
pub(super) fn text(out: &mut String, run: &Run) {
    if let Some(note) = note(run) {
        let _ = writeln!(out, "  {note}");
    }
    let measured = run.clean.launches();
    if measured.len() < 2 {
        return;
    }
    let medians: Vec<String> = measured
        .iter()
        .map(|launch| launch.figures.percentile_us(50.0).map_or_else(|| "–".to_owned(), duration_text))
        .collect();
    list(out, &format!("  {} launches", measured.len()), &[format!("p50 {}", medians.join(", "))]);
    let Some(seen) = between_launches(&run.clean) else { return };
    let tells = match (seen.tells_percent, seen.tells_in_turns_percent) {
        (Some(percent), _) => {
            format!("this many launches can resolve {} against another run", difference_text(percent))
        }
        (None, Some(percent)) => {
            let told = difference_text(percent);
            format!("this many in turns (`qnnscope run A B`) can resolve {told}; separate runs cannot")
        }
        (None, None) => "so few launches that differ this much cannot be compared with another run".to_owned(),
    };
    let _ = writeln!(
        out,
        "  they are {}: the median is known {}; {tells}",
        apart_text(seen.spread_percent),
        known_text(seen.known_to_percent)
    );
}

/// `a difference of 3.1 %`, or a factor if a percentage would be unwieldy.
pub(super) fn difference_text(percent: f64) -> String {
    if percent < 100.0 {
        format!("a difference of {percent:.1} %")
    } else {
        format!("a factor of {:.1}", 1.0 + percent / 100.0)
    }
}

/// ` of launch 2 of 3`, if there are several.
pub(super) fn which(run: &Run) -> String {
    if run.launches_planned < 2 {
        return String::new();
    }
    format!(" of launch {} of {}", run.launches.len(), run.launches_planned)
}
