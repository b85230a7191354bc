//! Outliers among the inferences, with the counters and log lines around them.

use super::window::watched;
use super::{Evidence, EvidencePlace, Finding, FindingKind, Severity};
use crate::event::{LogLevel, OutlierLimit};
use crate::store::{Run, Store};
use crate::text::{counted, duration_text};
use serde::Serialize;

/// Minimum number of inferences for a median reliable enough to tell outliers by.
const MIN_SAMPLES: u64 = 20;
/// Outliers kept, slowest first; all of them are counted.
const KEPT: usize = 20;
/// Time before and after an outlier that counts as its surroundings, microseconds.
const AROUND_US: u64 = 500_000;
/// Log lines kept with an outlier.
const LINES: usize = 20;
/// Share of all inferences above which outliers are not rare.
const MANY: f64 = 0.01;
/// Fewer outliers than this are isolated events, whatever their share of a short run.
const FEW: u64 = 3;
/// A counter counts as moved if it changed by this share of its range in the session.
const MOVED: f64 = 0.25;

/// A counter around an outlier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Around {
    /// Device id; `None` for this machine.
    pub device: Option<String>,
    /// Counter id.
    pub id: String,
    /// Human-readable label.
    pub label: String,
    /// Unit of the values.
    pub unit: String,
    /// Mean over the half second before.
    pub before: Option<f64>,
    /// Mean from its start to half a second after its end: a counter's reading covers the time before it.
    pub during: Option<f64>,
    /// The change as a share of the counter's range in the session, 0 to 1.
    pub change: f64,
}

/// A log line around an outlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineAround {
    /// Host monotonic microseconds.
    pub t_us: u64,
    /// Severity.
    pub level: LogLevel,
    /// The text.
    pub text: String,
}

/// An inference that took far longer than the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlier {
    /// Index in the clean phase, from 0.
    pub index: u64,
    /// Start, host monotonic microseconds.
    pub start_us: u64,
    /// Latency, microseconds.
    pub latency_us: f64,
    /// Counters around it, largest change first.
    pub counters: Vec<Around>,
    /// Log lines around it, oldest first.
    pub logs: Vec<LineAround>,
    /// True if individual readings or lines of that time are no longer in memory; the session file still has
    /// them.
    pub surroundings_gone: bool,
}

/// All outliers of the clean phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Outliers {
    /// The limit requested.
    pub limit: OutlierLimit,
    /// Median of the clean phase, microseconds.
    pub median_us: f64,
    /// Latency above which an inference is an outlier, microseconds.
    pub limit_us: f64,
    /// Total number of outliers.
    pub count: u64,
    /// The slowest ones, slowest first.
    pub kept: Vec<Outlier>,
}

impl Around {
    /// True if the counter changed enough to be reported.
    pub fn moved(&self) -> bool {
        self.change >= MOVED
    }
}

/// Inferences of the clean phase above the limit of the run's plan; `None` while there are too few to judge.
pub fn outliers(store: &Store, run: &Run) -> Option<Outliers> {
    if run.clean.count() < MIN_SAMPLES {
        return None;
    }
    let limit = run.plan.mode.outlier_limit.unwrap_or_default();
    let median_us = run.clean.percentile_us(50.0)?;
    let limit_us = match limit {
        OutlierLimit::TimesMedian(times) => times * median_us,
        OutlierLimit::Percentile(percent) => run.clean.percentile_us(percent)?,
    };
    let micro = |ns: u64| ns as f64 / 1000.0;
    let slowest = run.clean.slowest().iter().take(KEPT).take_while(|slow| micro(slow.latency_ns) > limit_us);
    let kept = slowest.map(|slow| one(store, run, slow.index, slow.start_us, micro(slow.latency_ns)));
    let count = run.clean.count_above(limit_us);
    Some(Outliers { limit, median_us, limit_us, count, kept: kept.collect() })
}

/// Why the requested limit cannot be judged; `None` if it can, if none was requested, or if nothing was
/// measured.
pub fn limit_not_supported(run: &Run) -> Option<String> {
    let limit = run.plan.mode.outlier_limit?;
    let needed = match limit {
        OutlierLimit::TimesMedian(_) => MIN_SAMPLES,
        OutlierLimit::Percentile(percent) => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "positive, saturating is right"
            )]
            // Tolerance for rounding errors such as that of 100 - 99.9.
            let beyond = (100.0 / (100.0 - percent) - 1e-6).ceil() as u64;
            beyond.max(MIN_SAMPLES)
        }
    };
    let count = run.clean.count();
    (0 < count && count < needed).then(|| {
        let do_not = if count == 1 { "does not" } else { "do not" };
        let count = counted(count, "inference");
        format!("{count} {do_not} support {limit} as the limit for slow inferences: at least {needed} are needed")
    })
}

fn one(store: &Store, run: &Run, index: u64, start_us: u64, latency_us: f64) -> Outlier {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a latency, far below 2^63")]
    let end_us = start_us + latency_us as u64;
    let (from_us, to_us) = (start_us.saturating_sub(AROUND_US), end_us + AROUND_US);
    let mut gone = false;
    let mut counters = Vec::new();
    for counter in watched(store, run) {
        let Some((_, min, max)) = counter.series.summary() else { continue };
        if !counter.has_points_from(from_us) {
            gone = true;
            continue;
        }
        let (before, during) = (counter.mean(from_us, start_us.saturating_sub(1)), counter.mean(start_us, to_us));
        if before.is_none() && during.is_none() {
            continue;
        }
        let range = max - min;
        let change = before.zip(during).filter(|_| range > 0.0).map_or(0.0, |(a, b)| (b - a).abs() / range);
        counters.push(Around {
            device: counter.device.map(ToOwned::to_owned),
            id: counter.info().id.clone(),
            label: counter.info().label.clone(),
            unit: counter.info().unit.clone(),
            before,
            during,
            change,
        });
    }
    counters.sort_by(|a, b| b.change.total_cmp(&a.change));
    let lines = store.logs();
    gone |= store.logs_dropped() > 0 && lines.front().is_some_and(|oldest| oldest.t_us > from_us);
    let within = |t_us: u64| (from_us..=to_us).contains(&t_us);
    let logs = lines.iter().filter(|line| within(line.t_us) && line.run.is_none_or(|id| id == run.id));
    let logs = logs.take(LINES).map(|line| LineAround {
        t_us: line.t_us,
        level: line.line.level,
        text: line.line.text.clone(),
    });
    Outlier { index, start_us, latency_us, counters, logs: logs.collect(), surroundings_gone: gone }
}

/// The finding about outliers, or about a limit that could not be judged. None for an emulator.
pub(super) fn finding(run: &Run, outliers: Option<&Outliers>) -> Option<Finding> {
    let Some(outliers) = outliers else {
        let text = limit_not_supported(run).filter(|_| run.is_ended() && !run.plan.simulated)?;
        let evidence = vec![Evidence::new(format!("{} in the clean phase", counted(run.clean.count(), "inference")))];
        let title = format!("outliers were not searched for: {text}");
        return Some(Finding::new("outlier.not-judged", FindingKind::Outlier, Severity::Info, title, evidence));
    };
    let worst = outliers.kept.first().filter(|_| !run.plan.simulated)?;
    let share = outliers.count as f64 / run.clean.count() as f64;
    // Every run exceeds a percentile by the corresponding share.
    let by_median = matches!(outliers.limit, OutlierLimit::TimesMedian(_));
    let many = by_median && share > MANY && outliers.count >= FEW;
    let severity = if many { Severity::Warning } else { Severity::Info };
    let mut evidence = vec![Evidence::at(
        format!("the slowest is inference {} with {}", worst.index, duration_text(worst.latency_us)),
        EvidencePlace::Moment(worst.start_us),
    )];
    evidence.extend(common(outliers));
    let with_lines = outliers.kept.iter().filter(|outlier| !outlier.logs.is_empty()).count();
    if with_lines > 0 {
        evidence.push(Evidence::new(format!(
            "{with_lines} of the slowest {} have log lines around them",
            outliers.kept.len()
        )));
    }
    if outliers.kept.iter().any(|outlier| outlier.surroundings_gone) {
        evidence
            .push(Evidence::new("counters around some of them are no longer in memory; a recorded session keeps them"));
    }
    let title = format!(
        "{} of {} inferences ({:.1} %) took more than {} ({})",
        outliers.count,
        run.clean.count(),
        share * 100.0,
        duration_text(outliers.limit_us),
        outliers.limit
    );
    Some(Finding::new("outlier.slow-inferences", FindingKind::Outlier, severity, title, evidence))
}

/// The counter that moved the same way with at least half of the outliers kept, if there are three or more.
fn common(outliers: &Outliers) -> Option<Evidence> {
    let mut moved: Vec<(&Around, i32, usize)> = Vec::new();
    for around in outliers.kept.iter().flat_map(|outlier| &outlier.counters).filter(|around| around.moved()) {
        let way = if around.during > around.before { 1 } else { -1 };
        match moved
            .iter_mut()
            .find(|(known, known_way, _)| (&known.id, &known.device, *known_way) == (&around.id, &around.device, way))
        {
            Some(known) => known.2 += 1,
            None => moved.push((around, way, 1)),
        }
    }
    let (around, way, count) = moved.into_iter().max_by_key(|moved| moved.2)?;
    if outliers.kept.len() < 3 || count * 2 < outliers.kept.len() {
        return None;
    }
    let text = format!(
        "{} {} with {count} of the slowest {}",
        around.label,
        if way > 0 { "rises" } else { "falls" },
        outliers.kept.len()
    );
    Some(Evidence::at(text, EvidencePlace::Counter { device: around.device.clone(), id: around.id.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Made, moment, only, steady};
    use crate::backends::Backend;
    use crate::event::RunStatus;
    use crate::store::SERIES_CAPACITY;

    fn with_slow(count: usize, slow: &[usize]) -> Vec<f64> {
        let mut latencies = steady(10_000.0, 5.0, count);
        slow.iter().zip(0u32..).for_each(|(at, more)| latencies[*at] = 50_000.0 + 1000.0 * f64::from(more));
        latencies
    }

    #[test]
    fn the_slowest_are_kept_with_what_happened_around_them() {
        // Inference 200 starts 2 s into the phase.
        let store = Made::local(Backend::Cpu)
            .clean(with_slow(500, &[200]))
            .host_counter("host.cpu.busy", Some(100.0), |t_s| if (2.0..2.5).contains(&t_s) { 95.0 } else { 20.0 })
            .host_counter("host.cpu.freq", None, |_| 2600.0)
            .log(2.1, "something else began")
            .log(4.0, "later")
            .store();
        let found = outliers(&store, only(&store)).unwrap();
        assert_eq!((found.count, found.kept.len(), found.kept[0].index), (1, 1, 200));
        let kept = &found.kept[0];
        assert!(kept.start_us.abs_diff(moment(2.0)) < 20_000 && !kept.surroundings_gone);
        assert_eq!((kept.counters[0].id.as_str(), kept.counters[0].before), ("host.cpu.busy", Some(20.0)));
        assert!(kept.counters[0].moved() && !kept.counters[1].moved());
        assert_eq!(kept.logs.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["something else began"]);
        let finding = finding(only(&store), Some(&found)).unwrap();
        assert_eq!(finding.severity, Severity::Info, "one of 500");
    }

    #[test]
    fn all_are_counted_and_the_slowest_come_first() {
        let slow: Vec<usize> = (0..40).map(|i| i * 12).collect();
        let store = Made::local(Backend::Cpu).clean(with_slow(500, &slow)).store();
        let found = outliers(&store, only(&store)).unwrap();
        assert_eq!((found.count, found.kept.len()), (40, KEPT));
        assert!(found.kept.is_sorted_by(|a, b| a.latency_us >= b.latency_us));
        assert_eq!(found.kept[0].index, 39 * 12);
        assert_eq!(finding(only(&store), Some(&found)).unwrap().severity, Severity::Warning, "eight in a hundred");
    }

    #[test]
    fn even_runs_and_short_ones_have_none() {
        let store = Made::local(Backend::Cpu).clean(steady(1000.0, 50.0, 500)).store();
        let found = outliers(&store, only(&store)).unwrap();
        assert_eq!((found.count, finding(only(&store), Some(&found))), (0, None));
        let store = Made::local(Backend::Cpu).clean(with_slow(19, &[3])).store();
        assert_eq!(outliers(&store, only(&store)), None);
    }

    #[test]
    fn the_limit_is_the_users_to_choose() {
        let of = |limit| {
            let slow: Vec<usize> = (0..40).map(|i| i * 12).collect();
            let made = Made::local(Backend::Cpu).clean(with_slow(1000, &slow));
            let store = made.plan(|plan| plan.mode.outlier_limit = Some(limit)).store();
            outliers(&store, only(&store))
        };
        let some = of(OutlierLimit::Percentile(99.0)).unwrap();
        assert_eq!((some.count, some.limit.to_string().as_str()), (10, "p99"));
        assert_eq!(of(OutlierLimit::TimesMedian(20.0)).unwrap().count, 0);
        assert_eq!(of(OutlierLimit::Percentile(99.99)), None, "1,000 samples do not support it");
    }

    #[test]
    fn a_percentile_is_no_warning_and_one_without_samples_is_told() {
        let judged = |percent: f64, count: usize| {
            let made = Made::local(Backend::Cpu).clean(with_slow(count, &[5, 9, 12]));
            let made = made.plan(|plan| plan.mode.outlier_limit = Some(OutlierLimit::Percentile(percent)));
            let store = made.ended(RunStatus::Ok).store();
            finding(only(&store), outliers(&store, only(&store)).as_ref()).unwrap()
        };
        let many = judged(90.0, 200);
        assert_eq!((many.id, many.severity), ("outlier.slow-inferences", Severity::Info), "{many:?}");
        let few = judged(99.9, 100);
        assert_eq!((few.id, few.severity), ("outlier.not-judged", Severity::Info));
        assert!(few.title.contains("100 inferences do not support p99.9") && few.title.contains("1000"), "{few:?}");
        assert!(judged(99.7, 333).title.contains("334"), "a third of an inference is none");
        assert_eq!(judged(99.7, 334).id, "outlier.slow-inferences");
    }

    #[test]
    fn surroundings_that_have_gone_are_told() {
        // Ten readings per second: the first ones of a long run have been dropped by its end.
        let seconds = SERIES_CAPACITY / 10 + 60;
        let store = Made::on_phone(Backend::Htp)
            .clean(with_slow(seconds * 100, &[500, seconds * 100 - 500]))
            .phone_counter("cpu.busy", Some(100.0), |_| 20.0)
            .store();
        let found = outliers(&store, only(&store)).unwrap();
        let gone: Vec<bool> = found.kept.iter().map(|outlier| outlier.surroundings_gone).collect();
        assert_eq!(gone, [false, true]);
        let finding = finding(only(&store), Some(&found)).unwrap();
        assert!(finding.evidence.iter().any(|evidence| evidence.text.contains("no longer in memory")));
    }
}
