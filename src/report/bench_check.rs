//! Which differences a machine or device can resolve: `qnnscope.bench-check/1` and its text.

use crate::analysis::launches::{
    InTime, between_launches, between_runs, difference, launches_to_tell, minimal_difference,
};
use crate::store::{Run, Store};
use crate::text::duration_text;
use serde::Serialize;
use std::fmt::Write;

/// Schema of the document.
pub const BENCH_CHECK_SCHEMA: &str = "qnnscope.bench-check/1";
/// Numbers of launches per side considered.
const SIDES: [usize; 4] = [3, 6, 10, 20];
/// Differences considered, per cent.
const DIFFERENCES: [f64; 5] = [1.0, 2.0, 5.0, 10.0, 30.0];
/// Launches per side for comparing equal launches with each other.
const GROUP: usize = 3;
/// Minimum number of launches for a result.
pub const FEWEST: usize = GROUP;

/// Which differences a machine or device can resolve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchCheckDocument {
    schema: &'static str,
    tool_version: &'static str,
    device: String,
    backend: &'static str,
    simulated: bool,
    model: String,
    model_sha256: Option<String>,
    build_id: Option<String>,
    inferences_per_launch: u64,
    medians_us: Vec<f64>,
    seconds: f64,
    seconds_per_launch: f64,
    spread_percent: Option<f64>,
    deviation_percent: Option<f64>,
    variance_share: Option<f64>,
    tells: Vec<Tells>,
    takes: Vec<Takes>,
    equal_sides: Option<EqualSides>,
}

/// The difference that a number of launches per side can resolve.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Tells {
    launches: usize,
    difference_percent: f64,
    /// The same if the two sides are separate runs; `None` if launches disagree too much for that.
    separate_runs_percent: Option<f64>,
    seconds: f64,
}

/// What it takes to resolve a difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Takes {
    difference_percent: f64,
    launches: Option<usize>,
    seconds: Option<f64>,
    /// Launches per side if the two sides are separate runs.
    separate_runs_launches: Option<usize>,
}

/// Groups of equal launches compared with each other: ideally no pair differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct EqualSides {
    launches: usize,
    pairs: usize,
    told_apart: usize,
}

impl BenchCheckDocument {
    /// The document of the only run in the store; `None` if it has fewer than [`FEWEST`] launches with a median.
    pub fn new(store: &Store) -> Option<Self> {
        let run = store.runs().first()?;
        let measured = run.clean.launches();
        // The last one may have been cut short.
        let usual = measured.iter().map(|launch| launch.figures.count).max()?;
        let whole = measured.iter().filter(|launch| launch.figures.count * 2 >= usual);
        let medians_us: Vec<f64> = whole.filter_map(|launch| launch.figures.percentile_us(50.0)).collect();
        if medians_us.len() < FEWEST {
            return None;
        }
        let seconds = seconds(store, run);
        let each = seconds / run.launches.len() as f64;
        let both = |launches: usize| 2.0 * launches as f64 * each;
        let seen = between_launches(&run.clean);
        let tells = |launches| {
            let [in_turns, apart] = [InTime::InTurns, InTime::Apart]
                .map(|in_time| minimal_difference(&medians_us, launches, in_time).map(|part| 100.0 * part));
            let difference_percent = in_turns?;
            Some(Tells { launches, difference_percent, separate_runs_percent: apart, seconds: both(launches) })
        };
        let takes = |difference_percent: f64| {
            let [launches, separate_runs_launches] = [InTime::InTurns, InTime::Apart]
                .map(|in_time| launches_to_tell(&medians_us, &medians_us, difference_percent / 100.0, in_time));
            Takes { difference_percent, launches, seconds: launches.map(both), separate_runs_launches }
        };
        Some(Self {
            schema: BENCH_CHECK_SCHEMA,
            tool_version: env!("CARGO_PKG_VERSION"),
            device: run.plan.device.clone(),
            backend: run.plan.backend.name(),
            simulated: run.plan.simulated,
            model: run.plan.model.clone(),
            model_sha256: run.model.as_ref().map(|model| model.sha256.clone()),
            build_id: run.runtime.as_ref().and_then(|runtime| runtime.build_id.clone()),
            inferences_per_launch: usual,
            seconds,
            seconds_per_launch: each,
            spread_percent: seen.as_ref().map(|seen| seen.spread_percent),
            deviation_percent: seen.as_ref().map(|seen| seen.deviation_percent),
            variance_share: seen.and_then(|seen| seen.variance_share),
            tells: SIDES.into_iter().filter_map(tells).collect(),
            takes: DIFFERENCES.into_iter().map(takes).collect(),
            equal_sides: equal_sides(&medians_us),
            medians_us,
        })
    }
}

/// Time from the start of the run to its end, seconds.
fn seconds(store: &Store, run: &Run) -> f64 {
    run.ended_us.unwrap_or_else(|| store.now_us()).saturating_sub(run.started_us) as f64 / 1e6
}

/// Compares every group of consecutive launches with every other one.
fn equal_sides(medians_us: &[f64]) -> Option<EqualSides> {
    let groups: Vec<&[f64]> = medians_us.chunks_exact(GROUP).collect();
    let pairs = groups.iter().enumerate().flat_map(|(at, one)| groups[at + 1..].iter().map(move |other| (one, other)));
    let told: Vec<bool> =
        pairs.filter_map(|(one, other)| difference(one, other, InTime::InTurns).map(|found| found.told)).collect();
    let told_apart = told.iter().filter(|told| **told).count();
    (!told.is_empty()).then_some(EqualSides { launches: GROUP, pairs: told.len(), told_apart })
}

/// The document as text.
pub fn bench_check_text(document: &BenchCheckDocument) -> String {
    let mut out = String::new();
    let simulated = if document.simulated { " [simulated]" } else { "" };
    let _ = writeln!(
        out,
        "{} on {} of {}{simulated}: {} launches of {} inferences in {:.0} s",
        document.model,
        document.backend,
        document.device,
        document.medians_us.len(),
        document.inferences_per_launch,
        document.seconds
    );
    let least = document.medians_us.iter().copied().fold(f64::INFINITY, f64::min);
    let most = document.medians_us.iter().copied().fold(0.0, f64::max);
    let _ = write!(out, "medians of launches: {} to {}", duration_text(least), duration_text(most));
    if let Some((spread, deviation)) = document.spread_percent.zip(document.deviation_percent) {
        let _ = write!(out, ", {spread:.1} % apart, standard deviation {deviation:.1} %");
    }
    if let Some(share) = document.variance_share {
        let _ = write!(out, "; {:.0} % of the variance is between launches", share * 100.0);
    }
    let _ = writeln!(out, "\n\n  {:<24}{:<28}time for two sides", "launches per side", "resolves a difference of");
    let _ = writeln!(out, "  {:<24}{:<14}{:<14}", "", "in turns", "two runs");
    for row in &document.tells {
        let in_turns = part(row.difference_percent);
        let apart = row.separate_runs_percent.map_or_else(|| "unresolved".to_owned(), part);
        let _ = writeln!(out, "  {:<24}{in_turns:<14}{apart:<14}{}", row.launches, time(row.seconds));
    }
    if document.tells.len() < SIDES.len() {
        let _ = writeln!(out, "  fewer resolve nothing: launches differ too much");
    }
    let _ = writeln!(out, "\n  {:<24}{:<28}time in turns", "a difference of", "takes launches");
    let _ = writeln!(out, "  {:<24}{:<14}{:<14}", "", "in turns", "two runs");
    for row in &document.takes {
        let percent = format!("{} %", row.difference_percent);
        let count = |launches: Option<usize>| launches.map_or_else(|| "over 100".to_owned(), |some| some.to_string());
        let two = if row.separate_runs_launches.is_none() && row.launches.is_some() {
            "unresolved".to_owned()
        } else {
            count(row.separate_runs_launches)
        };
        let seconds = row.seconds.map_or_else(|| "–".to_owned(), time);
        let _ = writeln!(out, "  {percent:<24}{:<14}{two:<14}{seconds}", count(row.launches));
    }
    let _ = writeln!(
        out,
        "\nIn turns: `qnnscope run A B`, or -b with several backends. Two runs: one after the other; equal ones differ by up \
         to {:.1} %, which no number of launches removes",
        100.0 * between_runs(&[&document.medians_us]).exp_m1()
    );
    if let Some(equal) = &document.equal_sides {
        let _ = writeln!(
            out,
            "\nA/A: {} pairs of {} launches each of the same thing: {} reported as different",
            equal.pairs, equal.launches, equal.told_apart
        );
    }
    out
}

fn part(percent: f64) -> String {
    if percent < 100.0 { format!("{percent:.1} %") } else { format!("a factor of {:.1}", 1.0 + percent / 100.0) }
}

fn time(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.1} min", seconds / 60.0) }
}
