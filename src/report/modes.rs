//! Ways of measuring in the text report: paced, in turns, at several rates, over time, as published.

use crate::analysis::{
    Cadence, Cause, ConditionState, Gap, LikeReport, Rounds, Sustained, cadence, interleaved, like, sustained,
};
use crate::event::{CoolDown, CoolDownEnd};
use crate::store::{Run, Store};
use crate::text::{duration_text, paragraph};
use std::fmt::Write;

fn or_dash(us: Option<f64>) -> String {
    us.map_or_else(|| "–".to_owned(), duration_text)
}

/// A rate for people: `30/s`, `0.5/s`.
pub fn rate(hz: f64) -> String {
    format!("{hz}/s")
}

/// How a paced run kept to its schedule, and what its inferences took.
pub(super) fn pace(out: &mut String, run: &Run) {
    let Some(pace) = run.pace.as_ref().filter(|pace| !pace.service.is_empty()) else { return };
    let _ = writeln!(out, "  paced at {}: the latencies above count from the planned starts", rate(pace.rate_hz));
    if let Some(report) = &pace.report {
        let _ = writeln!(
            out,
            "    {} planned, {} on time, {} late (not done by the next), {} never begun",
            report.planned,
            pace.service.count() - pace.missed,
            pace.missed,
            pace.unstarted()
        );
    }
    let service = &pace.service;
    let _ = writeln!(
        out,
        "    inference alone: p50 {}  p90 {}  p99 {}  max {}",
        or_dash(service.percentile_us(50.0)),
        or_dash(service.percentile_us(90.0)),
        or_dash(service.percentile_us(99.0)),
        or_dash(service.max_us())
    );
    if pace.is_overloaded() {
        let mean = or_dash(service.mean_us());
        let _ = writeln!(
            out,
            "    too slow for this rate: an inference takes {mean}, a period {};\n    the queue grew as long as the run \
             lasted, so the latencies say how long it was",
            duration_text(pace.period_us())
        );
    }
    if let Some(report) = pace.report.filter(|report| report.waited_us > 0.0) {
        let _ = writeln!(
            out,
            "    waiting cost {:.1} % of one CPU core; the worst start when idle was {} late",
            100.0 * report.wait_cpu_us / report.wall_us.max(1.0),
            duration_text(report.worst_start_us)
        );
    }
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
        None if pause.watched == 0 => format!("no temperature can be read here: pausing for {limit}"),
        None => format!("cooling down, {waited} of at most {limit}{first}"),
        Some(CoolDownEnd::Back) => format!("cooled down in {waited}: {} counters are back", pause.watched),
        Some(CoolDownEnd::Limit) => format!("not cooled down within {limit}{first}"),
        Some(CoolDownEnd::Fixed) => format!("paused for {waited}: no temperature can be read here"),
        Some(CoolDownEnd::Stopped) => format!("cool-down ended by the user after {waited}{first}"),
    }
}

/// What several runs say together.
pub(super) fn groups(out: &mut String, store: &Store) {
    let sets = interleaved(store);
    if !sets.is_empty() {
        let _ = writeln!(out, "\nin turns   all rounds of a backend together");
        for set in &sets {
            rounds(out, set);
        }
    }
    for sweep in &cadence(store) {
        rates(out, sweep);
    }
}

fn simulated(simulated: bool) -> &'static str {
    if simulated { " [simulated]" } else { "" }
}

fn rounds(out: &mut String, set: &Rounds) {
    let all = &set.latency_us;
    let _ = writeln!(
        out,
        "  {}{}: {} of {} rounds, {} inferences, p50 {}  p90 {}  p99 {}",
        set.backend,
        simulated(set.simulated),
        set.rounds.len(),
        set.asked,
        all.samples,
        or_dash(all.p50),
        or_dash(all.p90),
        or_dash(all.p99)
    );
    let shown = 8;
    let medians: Vec<String> = set.rounds.iter().take(shown).map(|round| or_dash(round.p50_us)).collect();
    let more = if set.rounds.len() > shown { ", …" } else { "" };
    let _ = write!(out, "    p50 by round {}{more}", medians.join(", "));
    if let Some((drift, spread)) = set.drift_percent.zip(set.spread_percent) {
        let _ = write!(out, "\n    last against first {drift:+.1} %, slowest against fastest {spread:+.1} %");
    }
    out.push('\n');
}

fn rates(out: &mut String, sweep: &Cadence) {
    let _ = writeln!(out, "\nby rate    {}{} on {}", sweep.backend, simulated(sweep.simulated), sweep.device);
    let _ = writeln!(
        out,
        "  {:>8} {:>8} {:>6} {:>5}  {:>9} {:>9}  {:>9} {:>10}",
        "rate", "got", "done", "late", "p50", "p99", "alone p50", "wake-up"
    );
    for point in &sweep.points {
        let late = if point.overloaded { "slow".to_owned() } else { point.missed.to_string() };
        let wake = match point.wake_us {
            Some(us) if us > 0.0 => format!("{}{}", if point.wake_is_sure { "+" } else { "~" }, duration_text(us)),
            Some(_) => "quickest".to_owned(),
            None => "–".to_owned(),
        };
        let _ = writeln!(
            out,
            "  {:>8} {:>8} {:>6} {:>5}  {:>9} {:>9}  {:>9} {:>10}",
            point.rate_hz.map_or_else(|| "max".to_owned(), rate),
            point.throughput_ips.map_or_else(|| "–".to_owned(), |ips| format!("{ips:.1}/s")),
            point.latency_us.samples,
            late,
            or_dash(point.latency_us.p50),
            or_dash(point.latency_us.p99),
            or_dash(point.service_us.p50),
            wake
        );
    }
    let _ = writeln!(
        out,
        "  p50 and p99 count from the planned start; alone is the inference itself\n  wake-up: its median against the \
         quickest rate's (~ within the 95 % intervals)\n  slow: an inference takes longer than a period"
    );
}

/// A moment of a run: `12.5 s`, `3 min`.
fn moment(seconds: f64) -> String {
    if seconds < 120.0 { format!("{seconds:.1} s") } else { format!("{:.0} min", seconds / 60.0) }
}

/// Windows that are listed: the first, the last, and those at even distances between them.
const LISTED: usize = 12;

/// A sustained run over time.
pub(super) fn over_time(out: &mut String, store: &Store, run: &Run) {
    let Some(told) = sustained(store, run) else { return };
    let _ = writeln!(out, "\nover time  windows of {}", duration_text(told.window_s * 1e6));
    let _ = writeln!(
        out,
        "  {:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>8}",
        "from", "count", "p50", "p90", "p99", "max", "hottest"
    );
    let step = told.windows.len().div_ceil(LISTED).max(1);
    for (index, window) in told.windows.iter().enumerate() {
        if index % step != 0 && index + 1 != told.windows.len() {
            continue;
        }
        let figures = &window.latency_us;
        let _ = writeln!(
            out,
            "  {:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>8}",
            moment(window.from_s),
            figures.samples,
            or_dash(figures.p50),
            or_dash(figures.p90),
            or_dash(figures.p99),
            or_dash(figures.max),
            window.temperature_c.map_or_else(|| "–".to_owned(), |celsius| format!("{celsius:.1} °C"))
        );
    }
    slowdown(out, &told);
}

fn slowdown(out: &mut String, told: &Sustained) {
    match &told.slowdown {
        None => {
            let _ = writeln!(out, "  it did not become slower by more than 5 % for good");
        }
        Some(slow) => {
            let cause = match slow.cause {
                Cause::Throttling => "throttling",
                Cause::Clocks => "slower clocks",
                Cause::Warmth => "warmth",
                Cause::Unknown => "cause not known",
            };
            let _ = writeln!(
                out,
                "  slower from {} on, by {:.0} % in the median: {cause}",
                moment(slow.after_s),
                slow.percent
            );
            for text in &slow.evidence {
                let _ = writeln!(out, "    {text}");
            }
        }
    }
    let _ = match &told.steady {
        Some(steady) => writeln!(
            out,
            "  steady from {} on: p50 {}  p90 {}  p99 {} over {} inferences",
            moment(steady.from_s),
            or_dash(steady.latency_us.p50),
            or_dash(steady.latency_us.p90),
            or_dash(steady.latency_us.p99),
            steady.latency_us.samples
        ),
        None => writeln!(out, "  no steady state: the medians at the end still differ by more than 5 %"),
    };
}

/// A run against a published way of measuring.
pub(super) fn published(out: &mut String, store: &Store, run: &Run) {
    let Some(report) = like(store, run) else { return };
    let met = report.conditions.iter().filter(|condition| condition.state == ConditionState::Met).count();
    let _ = writeln!(
        out,
        "\nas {:<7} p{} {}; {met} of {} conditions met",
        report.like.name(),
        report.percent,
        or_dash(report.figure_us),
        report.conditions.len()
    );
    for condition in &report.conditions {
        let state = match condition.state {
            ConditionState::Met => "met",
            ConditionState::NotMet => "not met",
            ConditionState::CannotTell => "cannot tell",
        };
        let _ = writeln!(out, "  {state:<11} {}", condition.text);
        if condition.state != ConditionState::Met {
            below(out, &condition.observed);
        }
    }
    if let Some(gap) = &report.gap {
        explain(out, &report, gap);
    }
}

fn explain(out: &mut String, report: &LikeReport, gap: &Gap) {
    let side = if gap.percent < 0.0 { "faster" } else { "slower" };
    let _ = writeln!(
        out,
        "  published {}: this run is {:.1} % {side}{}",
        duration_text(gap.published_us),
        gap.percent.abs(),
        if gap.within_noise { ", which is within its 95 % interval" } else { "" }
    );
    if gap.within_noise || gap.percent < 0.0 {
        return;
    }
    let open = report.conditions.iter().filter(|condition| gap.explained_by.contains(&condition.id));
    for condition in open {
        let beyond = condition.worth_percent.is_some_and(|[_, high]| gap.percent > high);
        let beyond = if beyond { "; this alone was never seen to cost as much" } else { "" };
        below(out, &format!("may explain it: {}; {}{beyond}", condition.text, condition.worth.unwrap_or_default()));
    }
    if gap.explained_by.is_empty() {
        below(out, "no condition is known that explains it: compare the SDK's build, the model's file and the device");
    }
}

/// A text below a line that it belongs to.
fn below(out: &mut String, text: &str) {
    paragraph(out, text, 14, 14);
}
