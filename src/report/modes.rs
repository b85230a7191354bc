//! Ways of measuring in the text report: paced, interleaved, at several rates, sustained, as published.

use crate::analysis::{
    Cadence, Condition, ConditionState, Gap, LikeReport, Rounds, Sustained, Unsteady, cadence, interleaved, like,
    moment, sustained,
};
use crate::event::{CoolDown, CoolDownEnd};
use crate::store::{Run, Store};
use crate::text::{duration_text, paragraph};
use std::fmt::Write;

fn or_dash(us: Option<f64>) -> String {
    us.map_or_else(|| "–".to_owned(), duration_text)
}

/// A rate as text: `30/s`, `0.5/s`.
pub fn rate(hz: f64) -> String {
    format!("{hz}/s")
}

fn put(out: &mut String, indent: &str, lines: &[String]) {
    for line in lines {
        let _ = writeln!(out, "{indent}{line}");
    }
}

/// Writes how well a paced run kept its schedule, and the time of its inferences.
pub(super) fn pace(out: &mut String, run: &Run) {
    let lines = pace_lines(run);
    put(out, "  ", lines.get(..1).unwrap_or_default());
    put(out, "    ", lines.get(1..).unwrap_or_default());
}

/// The same as lines, the first one a heading; empty for an unpaced run.
pub fn pace_lines(run: &Run) -> Vec<String> {
    let Some(pace) = run.pace.as_ref().filter(|pace| !pace.service.is_empty()) else { return Vec::new() };
    let mut lines = vec![format!("paced at {}: the latencies above count from the planned starts", rate(pace.rate_hz))];
    if let Some(report) = &pace.report {
        lines.push(format!(
            "{} planned, {} on time, {} late (not done by the next), {} never started",
            report.planned,
            pace.service.count() - pace.missed,
            pace.missed,
            pace.unstarted()
        ));
    }
    let service = &pace.service;
    lines.push(format!(
        "inference alone: p50 {}  p90 {}  p99 {}  max {}",
        or_dash(service.percentile_us(50.0)),
        or_dash(service.percentile_us(90.0)),
        or_dash(service.percentile_us(99.0)),
        or_dash(service.max_us())
    ));
    if pace.is_overloaded() {
        let mean = or_dash(service.mean_us());
        let period = duration_text(pace.period_us());
        lines.push(format!("too slow for this rate: an inference takes {mean}, a period {period};"));
        lines.push("the queue grew throughout the run, so the latencies reflect the run's length".to_owned());
    }
    if let Some(report) = pace.report.filter(|report| report.waited_us > 0.0) {
        lines.push(format!(
            "waiting cost {:.1} % of one CPU core; the worst start from idle was {} late",
            100.0 * report.wait_cpu_us / report.wall_us.max(1.0),
            duration_text(report.worst_start_us)
        ));
    }
    lines
}

/// The pause before a run.
pub(super) fn cool_down(out: &mut String, run: &Run) {
    if let Some(pause) = &run.cool_down {
        let _ = writeln!(out, "   {}", cool_down_text(pause));
    }
}

/// A pause in one line.
pub fn cool_down_text(pause: &CoolDown) -> String {
    let waited = duration_text(pause.waited_us as f64);
    let limit = duration_text(pause.limit_us as f64);
    let first = pause.waiting_for.first().map(|left| {
        let more = pause.waiting_for.len() - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{} at {:.1} {unit}, to get to {:.1} {unit}{more}", left.id, left.value, left.target, unit = left.unit)
    });
    let first = first.map_or_else(String::new, |text| format!(": {text}"));
    match pause.end {
        None if pause.watched == 0 => format!("no temperature is readable here: pausing for {limit}"),
        None => format!("cooling down, {waited} of at most {limit}{first}"),
        Some(CoolDownEnd::Back) => format!("cooled down in {waited}: {} counters recovered", pause.watched),
        Some(CoolDownEnd::Limit) => format!("not cooled down within {limit}{first}"),
        Some(CoolDownEnd::Fixed) => format!("paused for {waited}: no temperature is readable here"),
        Some(CoolDownEnd::Stopped) => format!("cool-down ended by the user after {waited}{first}"),
    }
}

/// Writes what several runs show together.
pub(super) fn groups(out: &mut String, store: &Store) {
    let sets = interleaved(store);
    if !sets.is_empty() {
        let _ = writeln!(out, "\nin turns   all rounds of a backend together");
        for set in &sets {
            let lines = rounds_lines(set);
            put(out, "  ", &lines[..1]);
            put(out, "    ", &lines[1..]);
        }
    }
    for sweep in &cadence(store) {
        let _ = writeln!(out, "\nby rate    {}{} on {}", sweep.backend, simulated(sweep.simulated), sweep.device);
        put(out, "  ", &rates_table(sweep));
        for note in rates_notes(sweep) {
            paragraph(out, &note, 4, 2);
        }
    }
}

fn simulated(simulated: bool) -> &'static str {
    if simulated { " [simulated]" } else { "" }
}

/// The rounds of a backend as lines, the first one a heading.
pub fn rounds_lines(set: &Rounds) -> Vec<String> {
    let all = &set.latency_us;
    let mut lines = vec![format!(
        "{}{}: {} of {} rounds, {} inferences, p50 {}  p90 {}  p99 {}",
        set.backend,
        simulated(set.simulated),
        set.rounds.len(),
        set.asked,
        all.samples,
        or_dash(all.p50),
        or_dash(all.p90),
        or_dash(all.p99)
    )];
    let shown = 8;
    let medians: Vec<String> = set.rounds.iter().take(shown).map(|round| or_dash(round.p50_us)).collect();
    let more = if set.rounds.len() > shown { ", …" } else { "" };
    lines.push(format!("p50 by round {}{more}", medians.join(", ")));
    if let Some((drift, spread)) = set.drift_percent.zip(set.spread_percent) {
        lines.push(format!("last against first {drift:+.1} %, slowest against fastest {spread:+.1} %"));
    }
    lines
}

/// The cost of pauses between inferences, one row per rate below a heading.
pub fn rates_table(sweep: &Cadence) -> Vec<String> {
    let mut lines = vec![format!(
        "{:>7} {:>7} {:>6} {:>5} {:>9} {:>9}  {:>9} {:>9}",
        "rate", "got", "done", "late", "p50", "p99", "alone p50", "wake-up"
    )];
    for point in &sweep.points {
        let late = if point.overloaded { "slow".to_owned() } else { point.missed.to_string() };
        let wake = match point.wake_us {
            _ if sweep.quickest == Some(point.run) => "quickest".to_owned(),
            Some(us) => format!("{}{}", if point.wake_is_sure { "+" } else { "~" }, duration_text(us)),
            None => "–".to_owned(),
        };
        lines.push(format!(
            "{:>7} {:>7} {:>6} {:>5} {:>9} {:>9}  {:>9} {:>9}",
            point.rate_hz.map_or_else(|| "max".to_owned(), rate),
            point.throughput_ips.map_or_else(|| "–".to_owned(), |ips| format!("{ips:.1}/s")),
            point.latency_us.samples,
            late,
            or_dash(point.latency_us.p50),
            or_dash(point.latency_us.p99),
            or_dash(point.service_us.p50),
            wake
        ));
    }
    lines
}

/// What the table means, and what contradicts it.
pub fn rates_notes(sweep: &Cadence) -> Vec<String> {
    let mut notes = Vec::new();
    if sweep.densest_is_slower {
        let text = "the rate with the fewest pauses was slower than another, which pauses do not explain: other load or heat \
                    may cause these differences, so no wake-up cost is certain";
        notes.push(text.to_owned());
    }
    notes.push("p50 and p99 count from the planned start; alone is the inference itself".to_owned());
    notes.push("wake-up: its median minus the fastest rate's (~ uncertain), where there are pauses".to_owned());
    if sweep.points.iter().any(|point| point.overloaded) {
        notes.push("slow: an inference takes longer than a period".to_owned());
    }
    notes
}

/// Number of windows listed: the first, the last, and evenly spaced ones in between.
const LISTED: usize = 12;

/// Writes the course of a sustained run.
pub(super) fn over_time(out: &mut String, store: &Store, run: &Run) {
    let Some(told) = sustained(store, run) else { return };
    let _ = writeln!(out, "\nover time  windows of {}", duration_text(told.window_s * 1e6));
    put(out, "  ", &windows_table(&told));
    for text in course(&told) {
        let below = if text.starts_with("- ") { 2 } else { 0 };
        paragraph(out, &text, 4 + below, 2 + below);
    }
}

/// The windows of a sustained run, one row each below a heading.
pub fn windows_table(told: &Sustained) -> Vec<String> {
    let mut lines = vec![format!(
        "{:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>8}",
        "from", "count", "p50", "p90", "p99", "max", "hottest"
    )];
    let step = told.windows.len().div_ceil(LISTED).max(1);
    for (index, window) in told.windows.iter().enumerate() {
        if index % step != 0 && index + 1 != told.windows.len() {
            continue;
        }
        let figures = &window.latency_us;
        lines.push(format!(
            "{:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>8}",
            moment(window.from_s),
            figures.samples,
            or_dash(figures.p50),
            or_dash(figures.p90),
            or_dash(figures.p99),
            or_dash(figures.max),
            window.temperature_c.map_or_else(|| "–".to_owned(), |celsius| format!("{celsius:.1} °C"))
        ));
    }
    lines
}

/// When and why a sustained run slowed down, and its steady state, as sentences.
pub fn course(told: &Sustained) -> Vec<String> {
    let mut lines = Vec::new();
    match &told.slowdown {
        Some(slow) => {
            lines.push(slow.text());
            lines.extend(slow.evidence.iter().map(|text| format!("- {text}")));
            if !slow.not_read.is_empty() {
                lines.push(format!("- not read, so not reported: {}", slow.not_read.join(", ")));
            }
        }
        None if told.unsteady == Some(Unsteady::TooFewWindows) => {}
        None => lines.push("no lasting slowdown of more than 5 %".to_owned()),
    }
    let with_median = told.windows.iter().filter(|window| window.latency_us.p50.is_some()).count();
    lines.push(match (&told.steady, told.unsteady) {
        (Some(steady), _) => format!(
            "steady from {} on: p50 {}  p90 {}  p99 {} over {} inferences",
            moment(steady.from_s),
            or_dash(steady.latency_us.p50),
            or_dash(steady.latency_us.p90),
            or_dash(steady.latency_us.p99),
            steady.latency_us.samples
        ),
        (None, Some(Unsteady::TooFewWindows)) => format!(
            "too few windows to detect a slowdown or a steady state: {with_median} of {} have a median, 3 are needed",
            told.windows.len()
        ),
        (None, Some(Unsteady::EmptyWindows)) => format!(
            "no steady state: {} of {} windows have too few inferences for a median, one of them near the end",
            told.windows.len() - with_median,
            told.windows.len()
        ),
        (None, _) => "no steady state: the medians at the end still differ by more than 5 %".to_owned(),
    });
    lines
}

/// Writes the comparison of a run with a published procedure.
pub(super) fn published(out: &mut String, store: &Store, run: &Run) {
    let Some(report) = like(store, run) else { return };
    let _ = writeln!(out, "\nas {:<7} {}", report.like.name(), like_heading(&report));
    for condition in &report.conditions {
        let _ = writeln!(out, "  {:<11} {}", state(condition), condition.text);
        if condition.state != ConditionState::Met {
            below(out, &condition.observed);
        }
    }
    for (index, text) in gap_lines(&report).iter().enumerate() {
        if index == 0 {
            let _ = writeln!(out, "  {text}");
        } else {
            below(out, text);
        }
    }
}

/// The published percentile, and how many conditions are met.
pub fn like_heading(report: &LikeReport) -> String {
    let (met, apply) = report.met();
    let others = report.conditions.len() - apply;
    let others = match others {
        0 => String::new(),
        1 => ", 1 does not apply".to_owned(),
        others => format!(", {others} do not apply"),
    };
    format!("p{} {}; {met} of {apply} conditions met{others}", report.percent, or_dash(report.figure_us))
}

/// The state of a condition in short form.
pub fn state(condition: &Condition) -> &'static str {
    match condition.state {
        ConditionState::Met => "met",
        ConditionState::NotMet => "not met",
        ConditionState::CannotTell => "cannot tell",
        ConditionState::DoesNotApply => "n/a",
    }
}

/// The run relative to the published figure, and what may explain the difference; empty without a figure.
pub fn gap_lines(report: &LikeReport) -> Vec<String> {
    let Some(gap) = &report.gap else { return Vec::new() };
    let side = if gap.percent < 0.0 { "faster" } else { "slower" };
    let mut lines = vec![format!(
        "published {}: this run is {:.1} % {side}{}",
        duration_text(gap.published_us),
        gap.percent.abs(),
        if gap.within_noise { ", which is within its 95 % interval" } else { "" }
    )];
    if !gap.within_noise && gap.percent >= 0.0 {
        lines.extend(explanations(report, gap));
    }
    lines
}

fn explanations(report: &LikeReport, gap: &Gap) -> Vec<String> {
    if gap.explained_by.is_empty() {
        let text = "no known condition explains it: compare SDK build, model file and device";
        return vec![text.to_owned()];
    }
    let open = report.conditions.iter().filter(|condition| gap.explained_by.contains(&condition.id));
    let lines = open.map(|condition| {
        let beyond = condition.worth_percent.is_some_and(|[_, high]| gap.percent > high);
        let beyond = if beyond { "; this alone was never seen to cost that much" } else { "" };
        format!("may explain it: {}; {}{beyond}", condition.text, condition.worth.unwrap_or_default())
    });
    lines.collect()
}

/// Writes a text below the line it belongs to.
fn below(out: &mut String, text: &str) {
    paragraph(out, text, 14, 14);
}
