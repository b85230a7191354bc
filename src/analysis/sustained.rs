//! Sustained runs: percentiles per window, when and why the run slowed down, and the steady state.

use super::figures::LatencyFigures;
use super::heat::throttled_from_us;
use super::load::load;
use super::slowdown::{Cause, LASTING, SLOWER, Slowdown, Window, slowdown};
use super::window;
use crate::event::Budget;
use crate::store::nanoseconds;
use crate::store::{CounterSeries, LatencyStats, Run, Store};
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of windows: more add no information, and a report has to end somewhere.
const MAX_WINDOWS: f64 = 240.0;
/// Number of windows of a run too short for windows of a minute.
const SHORT_WINDOWS: f64 = 10.0;
/// Run length from which windows last a minute, seconds.
const LONG_S: f64 = 300.0;
/// A sustained run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sustained {
    /// Length of a window, seconds.
    pub window_s: f64,
    /// The windows in order.
    pub windows: Vec<Window>,
    /// When the run slowed down for good, if it did.
    pub slowdown: Option<Slowdown>,
    /// The stretch up to the end of the run over which latency is stable; `None` if it never is.
    pub steady: Option<Steady>,
    /// Why there is no steady state.
    pub unsteady: Option<Unsteady>,
}

/// The steady state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Steady {
    /// Start, in seconds from the first clean inference.
    pub from_s: f64,
    /// Number of windows in it.
    pub windows: usize,
    /// Latencies over all its windows, microseconds.
    pub latency_us: LatencyFigures,
}

/// Why there is no steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unsteady {
    /// Fewer windows have a median than a steady state needs.
    TooFewWindows,
    /// Windows near the end have no inferences, or too few for a median.
    EmptyWindows,
    /// The medians at the end differ.
    Differs,
}

/// A window while it is being filled.
#[derive(Default)]
struct Filling {
    latency: LatencyStats,
    /// Latencies without queueing delay, if the run is paced.
    service: Option<LatencyStats>,
}

impl Filling {
    fn median(&self) -> Option<f64> {
        self.service.as_ref().unwrap_or(&self.latency).percentile_us(50.0)
    }
}

/// Windows, slowdown and steady state of a run; `None` unless its plan asks for them and it has inferences.
pub fn sustained(store: &Store, run: &Run) -> Option<Sustained> {
    let (from_us, to_us) = run.clean.window_us().filter(|_| run.plan.mode.sustained)?;
    let length_s = match run.plan.budget {
        Budget::Seconds(seconds) | Budget::AtLeast { seconds, .. } => seconds,
        Budget::Iterations(_) => to_us.saturating_sub(from_us) as f64 / 1e6,
    };
    let width_s = window_s(length_s);
    let filled = fill(run, from_us, width_s);
    let sensors = Sensors::of(store, run);
    let window = |(index, filling): (usize, &Filling)| {
        let offset = index as f64 * width_s;
        let span = (at(from_us, offset), at(from_us, offset + width_s).min(to_us));
        Window {
            from_s: offset,
            latency_us: LatencyFigures::of(&filling.latency),
            temperature_c: sensors.hottest(span),
            clocks_mhz: sensors.clocks(span),
            cpu_busy_percent: sensors.busy(span),
        }
    };
    let windows: Vec<Window> = filled.iter().enumerate().map(window).collect();
    let medians: Vec<Option<f64>> = filled.iter().map(Filling::median).collect();
    let steady = steady(&medians);
    Some(Sustained {
        window_s: width_s,
        slowdown: slowdown(&medians, &windows, || load(store, run).ok()).map(|mut slow| {
            if slow.cause == Cause::Throttling {
                slow.throttled_from_s =
                    throttled_from_us(store, run, true).map(|since_us| since_us.saturating_sub(from_us) as f64 / 1e6);
            }
            slow
        }),
        unsteady: steady.err(),
        steady: steady.ok().map(|first| Steady {
            from_s: windows[first].from_s,
            windows: windows.len() - first,
            latency_us: LatencyFigures::of(&super::figures::pooled(
                filled[first..].iter().map(|filling| &filling.latency),
            )),
        }),
        windows,
    })
}

/// Window length: minutes for long runs, more whole minutes if there would be too many windows, a tenth of a
/// short run.
fn window_s(span_s: f64) -> f64 {
    if span_s < LONG_S {
        return (span_s / SHORT_WINDOWS).max(0.05);
    }
    60.0 * (span_s / 60.0 / MAX_WINDOWS).ceil().max(1.0)
}

fn at(from_us: u64, seconds: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive time")]
    let since_us = (seconds * 1e6) as u64;
    from_us.saturating_add(since_us)
}

/// The inferences by window. A remainder of less than half a window is merged into the window before it.
fn fill(run: &Run, from_us: u64, window_s: f64) -> Vec<Filling> {
    let end_us = run.clean.timed().map(|(start_us, _)| start_us).max().unwrap_or(from_us);
    let exact = (end_us.saturating_sub(from_us)) as f64 / 1e6 / window_s;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number")]
    let count = ((exact + 0.5).floor() as usize).max(1);
    let mut filled: Vec<Filling> = (0..count).map(|_| Filling::default()).collect();
    let index = |start_us: u64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number")]
        let index = (start_us.saturating_sub(from_us) as f64 / 1e6 / window_s) as usize;
        index.min(count - 1)
    };
    // An inference's own time belongs to the window of its planned start, as its latency does.
    let mut service = run.pace.as_ref().map(|pace| pace.service.timed());
    let times = run.clean.stride();
    for (start_us, latency_us) in run.clean.timed() {
        let filling = &mut filled[index(start_us)];
        filling.latency.push_for(times, start_us, nanoseconds(latency_us));
        // Both are thinned in the same way, so the samples kept are of the same inferences.
        if let Some((begun_us, alone_us)) = service.as_mut().and_then(Iterator::next) {
            filling.service.get_or_insert_default().push_for(times, begun_us, nanoseconds(alone_us));
        }
    }
    filled
}

/// First window of the longest stretch up to the end whose medians differ little.
fn steady(medians: &[Option<f64>]) -> Result<usize, Unsteady> {
    if medians.iter().flatten().count() < LASTING {
        return Err(Unsteady::TooFewWindows);
    }
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    let (mut first, mut why) = (None, Unsteady::Differs);
    for (index, median) in medians.iter().enumerate().rev() {
        // A window without inferences cannot be part of a steady state.
        let Some(median) = median else {
            why = Unsteady::EmptyWindows;
            break;
        };
        (low, high) = (low.min(*median), high.max(*median));
        if high > low * SLOWER {
            break;
        }
        first = Some(index);
    }
    first.filter(|first| medians.len() - first >= LASTING).ok_or(why)
}

/// Counters of heat, clocks and load.
struct Sensors<'a> {
    temperatures: Vec<&'a CounterSeries>,
    clocks: Vec<&'a CounterSeries>,
    busy: Option<&'a CounterSeries>,
}

impl<'a> Sensors<'a> {
    fn of(store: &'a Store, run: &'a Run) -> Self {
        let (mut temperatures, mut clocks) = (Vec::new(), Vec::new());
        for series in window::watched(store, run).map(|watched| watched.series) {
            if super::is_heat(&series.info.id) {
                temperatures.push(series);
            } else if is_clock(&series.info.id) {
                clocks.push(series);
            }
        }
        let busy = busy_counter(store, run).map(|watched| watched.series);
        Self { temperatures, clocks, busy }
    }

    fn hottest(&self, (from_us, to_us): (u64, u64)) -> Option<f64> {
        self.temperatures.iter().filter_map(|series| series.mean_between(from_us, to_us)).reduce(f64::max)
    }

    fn busy(&self, (from_us, to_us): (u64, u64)) -> Option<f64> {
        self.busy?.mean_between(from_us, to_us)
    }

    fn clocks(&self, (from_us, to_us): (u64, u64)) -> BTreeMap<String, f64> {
        let mean = |series: &&CounterSeries| Some((series.info.id.clone(), series.mean_between(from_us, to_us)?));
        self.clocks.iter().filter_map(mean).collect()
    }
}

/// The CPU use of all cores of the machine that ran the model.
fn busy_counter<'a>(store: &'a Store, run: &'a Run) -> Option<window::Watched<'a>> {
    window::counter(store, run, if run.plan.device == "local" { "host.cpu.busy" } else { "cpu.busy" })
}

/// True for CPU clocks and their limits.
fn is_clock(id: &str) -> bool {
    let of = |name: &str| id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    ["cpu.freq", "cpu.limit", "gpu.freq", "gpu.freq.limit", "host.cpu.freq"].into_iter().any(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Feed, plan};
    use crate::event::RunPlan;

    fn sustained_plan(seconds: f64) -> RunPlan {
        let mut plan = plan();
        plan.mode.sustained = true;
        plan.budget = Budget::Seconds(seconds);
        plan
    }

    /// 10 s of 1 ms inferences; from `slow_at` seconds on they take `slow_ms` while a clock drops and the
    /// temperature rises.
    fn throttling(slow_at: f64, slow_ms: f64) -> Sustained {
        let mut feed = Feed::on_phone(sustained_plan(10.0), None);
        feed.declare(&[("cpu.freq.policy7", "MHz"), ("thermal.npu.nsp0", "°C"), ("thermal.battery", "°C")]);
        let begun_us = feed.now_us;
        while feed.now_us - begun_us < 10_000_000 {
            let slow = (feed.now_us - begun_us) as f64 / 1e6 >= slow_at && slow_ms > 1.0;
            feed.tick(&if slow { [1500.0, 80.0, 30.0] } else { [2500.0, 45.0, 99.0] });
            feed.clean(0, 50, |_| if slow { slow_ms * 1000.0 } else { 1000.0 });
        }
        sustained(&feed.store, feed.only()).unwrap()
    }

    #[test]
    fn throttling_is_found_in_its_window_with_its_witnesses() {
        let told = throttling(4.0, 1.5);
        assert_eq!((told.window_s, told.windows.len()), (1.0, 10));
        let slowdown = told.slowdown.unwrap();
        assert_eq!((slowdown.after_s, slowdown.cause), (4.0, Cause::Throttling));
        assert!((slowdown.percent - 50.0).abs() < 0.5, "{slowdown:?}");
        assert!(slowdown.evidence[0].contains("cpu.freq.policy7 fell from 2500 to 1500 MHz"), "{slowdown:?}");
        assert!(slowdown.evidence[1].contains("45.0 to 80.0"), "{slowdown:?}");
        let steady = told.steady.unwrap();
        assert_eq!((steady.from_s, steady.windows), (4.0, 6));
        assert_eq!(steady.latency_us.p50.map(f64::round), Some(1500.0));
        assert_eq!(told.windows[0].temperature_c, Some(45.0), "the battery is no sign");
    }

    #[test]
    fn a_flat_run_is_steady_from_its_start() {
        let told = throttling(4.0, 1.0);
        assert_eq!(told.slowdown, None);
        assert_eq!(told.steady.map(|steady| steady.from_s), Some(0.0));
        assert_eq!(told.windows.iter().map(|window| window.latency_us.samples).sum::<u64>(), 10_000);
    }

    #[test]
    fn a_drift_without_end_has_no_steady_state_and_no_cause() {
        let mut feed = Feed::on_phone(sustained_plan(10.0), None);
        let begun_us = feed.now_us;
        while feed.now_us - begun_us < 10_000_000 {
            let at = (feed.now_us - begun_us) as f64 / 1e6;
            feed.clean(0, 10, |_| 1000.0 * (1.0 + at / 5.0));
        }
        let told = sustained(&feed.store, feed.only()).unwrap();
        assert_eq!(told.steady, None);
        let slowdown = told.slowdown.unwrap();
        assert_eq!(slowdown.cause, Cause::Unknown);
        assert_eq!(slowdown.evidence, Vec::<String>::new(), "what was not read is no observation");
        assert_eq!(slowdown.not_read, ["clocks", "temperatures", "CPU use"]);
        assert_eq!(told.unsteady, Some(Unsteady::Differs));
    }

    #[test]
    fn windows_that_are_few_or_empty_are_told_as_that() {
        let paced = |seconds: f64, rate_hz: f64, count: u64| {
            let mut plan = sustained_plan(seconds);
            plan.mode.rate_hz = Some(rate_hz);
            let mut feed = Feed::on_phone(plan, None);
            feed.paced(rate_hz, count, 1_000);
            sustained(&feed.store, feed.only()).unwrap()
        };
        let few = paced(2.0, 2.0, 4);
        assert_eq!((few.steady, few.unsteady, few.slowdown), (None, Some(Unsteady::TooFewWindows), None));
        assert_eq!(steady(&[Some(1.0), Some(1.0), Some(1.0), None]), Err(Unsteady::EmptyWindows));
        assert_eq!(steady(&[Some(1.0), Some(1.0), Some(1.0), Some(1.2)]), Err(Unsteady::Differs));
        assert_eq!(steady(&[Some(2.0), Some(1.0), Some(1.0), Some(1.02)]), Ok(1));
    }

    #[test]
    fn a_paced_run_is_judged_by_its_inferences_alone() {
        let mut plan = sustained_plan(2.0);
        plan.mode.rate_hz = Some(100.0);
        let mut feed = Feed::on_phone(plan, None);
        // Twice as slow as the schedule: latencies grow, execution times do not.
        feed.paced(100.0, 100, 20_000);
        let told = sustained(&feed.store, feed.only()).unwrap();
        assert_eq!(told.slowdown, None);
        assert!(told.windows.last().unwrap().latency_us.p50 > told.windows[0].latency_us.p50);
    }

    #[test]
    fn windows_are_bounded() {
        assert_eq!((window_s(2.0), window_s(300.0), window_s(1800.0)), (0.2, 60.0, 60.0));
        for hours in 1..200 {
            let span_s = f64::from(hours) * 3600.0;
            let width = window_s(span_s);
            assert!(span_s / width <= MAX_WINDOWS && width % 60.0 == 0.0, "{hours} h");
        }
    }

    #[test]
    fn only_what_was_asked_for_is_told() {
        let mut feed = Feed::on_phone(plan(), None);
        feed.clean(0, 10, |_| 1000.0);
        assert!(sustained(&feed.store, feed.only()).is_none());
        assert!(
            is_clock("gpu.freq")
                && is_clock("cpu.limit.policy0")
                && !is_clock("cpu.frequency")
                && !is_clock("bus.freq")
        );
    }
}
