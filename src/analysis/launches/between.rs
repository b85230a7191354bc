//! The variation between the launches of one run.

use super::difference::InTime;
use super::enough::minimal_difference;
use super::spread::Spread;
use crate::store::{LatencyStats, Launch, Percentile};
use serde::Serialize;
use std::collections::BTreeMap;

/// How the launches of a run differ, and what follows for its figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BetweenLaunches {
    /// Launches with a median.
    pub launches: usize,
    /// Largest launch median relative to the smallest, per cent.
    pub spread_percent: f64,
    /// Standard deviation of the launch medians, per cent of their geometric mean.
    pub deviation_percent: f64,
    /// Share of the variance of single latencies that lies between launches, 0 to 1; `None` if latencies do not vary.
    pub variance_share: Option<f64>,
    /// Half of the median's 95 % interval over all launches, per cent of the median.
    pub known_to_percent: f64,
    /// 95 % intervals over all launches, microseconds: of `mean`, and of `p50`, `p90`, `p95` and `p99` if at
    /// least two launches support them.
    pub ci95: BTreeMap<&'static str, [f64; 2]>,
    /// The smallest difference from another run of as many launches that would be detected nine times in ten,
    /// per cent.
    pub tells_percent: Option<f64>,
    /// The same for a run that alternates with this one.
    pub tells_in_turns_percent: Option<f64>,
}

type Figure = (&'static str, fn(&Launch<'_>) -> Option<f64>);

const FIGURES: [Figure; 5] = [
    ("mean", |launch| Some(launch.figures.mean_us)),
    ("p50", |launch| launch.figures.percentile_us(50.0)),
    ("p90", |launch| launch.figures.percentile_us(90.0)),
    ("p95", |launch| launch.figures.percentile_us(95.0)),
    ("p99", |launch| launch.figures.percentile_us(99.0)),
];

/// The variation between the launches of a phase; `None` unless at least two of them have a median.
pub fn between_launches(stats: &LatencyStats) -> Option<BetweenLaunches> {
    let launches = stats.launches();
    let values = |of: fn(&Launch<'_>) -> Option<f64>| -> Vec<f64> { launches.iter().filter_map(of).collect() };
    let medians = values(|launch| launch.figures.percentile_us(50.0));
    let spread = Spread::of(&medians)?;
    let tells = |in_time| minimal_difference(&medians, medians.len(), in_time).map(|part| 100.0 * part);
    let interval = |(name, of): Figure| Some((name, Spread::of(&values(of))?.interval()));
    Some(BetweenLaunches {
        launches: spread.launches,
        spread_percent: 100.0 * spread.range,
        deviation_percent: 100.0 * spread.deviation,
        variance_share: variance_share(&launches),
        known_to_percent: 100.0 * spread.half_width(),
        ci95: FIGURES.into_iter().filter_map(interval).collect(),
        tells_percent: tells(InTime::Apart),
        tells_in_turns_percent: tells(InTime::InTurns),
    })
}

/// A percentile with the 95 % interval over its launches if at least two of them support it, else with the
/// interval within the only launch.
pub fn percentile(stats: &LatencyStats, percent: f64) -> Percentile {
    let whole = stats.percentile(percent);
    let values: Vec<f64> = stats.launches().iter().filter_map(|launch| launch.figures.percentile_us(percent)).collect();
    match (whole.value_us, Spread::of(&values)) {
        (Some(value), Some(spread)) => {
            let [low, high] = spread.interval();
            Percentile { ci95_us: (Some(low.min(value)), Some(high.max(value))), ..whole }
        }
        _ => whole,
    }
}

/// The between-launch component of a one-way analysis of variance with random effects.
fn variance_share(launches: &[Launch<'_>]) -> Option<f64> {
    let groups: Vec<(f64, f64, f64)> = launches
        .iter()
        .map(|launch| &launch.figures)
        .map(|figures| (figures.count as f64, figures.mean_us, figures.stddev_us.unwrap_or(0.0)))
        .collect();
    let (count, all) = (groups.len() as f64, groups.iter().map(|group| group.0).sum::<f64>());
    if groups.len() < 2 || all <= count {
        return None;
    }
    let mean = groups.iter().map(|(n, own, _)| n * own).sum::<f64>() / all;
    let between = groups.iter().map(|(n, own, _)| n * (own - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let within = groups.iter().map(|(n, _, deviation)| (n - 1.0) * deviation.powi(2)).sum::<f64>() / (all - count);
    // Effective number of inferences per launch, for launches of unequal length.
    let usual = (all - groups.iter().map(|(n, ..)| n * n).sum::<f64>() / all) / (count - 1.0);
    let of_launches = ((between - within) / usual).max(0.0);
    let whole = of_launches + within;
    (whole > 0.0).then(|| of_launches / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::steady;

    fn stats(levels_us: &[f64]) -> LatencyStats {
        let mut stats = LatencyStats::default();
        let mut now_us = 0.0;
        for level in levels_us {
            stats.interrupt();
            for us in steady(*level, 5.0, 200) {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small made-up numbers")]
                stats.push(now_us as u64, (us * 1000.0) as u64);
                now_us += us;
            }
        }
        stats
    }

    #[test]
    fn launches_on_two_levels_hold_most_of_the_variance() {
        let seen = between_launches(&stats(&[1000.0, 2000.0, 1000.0])).unwrap();
        assert_eq!(seen.launches, 3);
        assert!((seen.spread_percent - 100.0).abs() < 1.0, "{seen:?}");
        assert!(seen.variance_share.unwrap() > 0.95 && seen.tells_in_turns_percent.unwrap() > 50.0, "{seen:?}");
        assert_eq!(seen.tells_percent, None, "another run may meet other levels");
        let [low, high] = seen.ci95["p50"];
        assert!(low < 1000.0 && high > 2000.0, "{seen:?}");
        assert!(seen.ci95.contains_key("p99") && seen.ci95.contains_key("mean"));
    }

    #[test]
    fn launches_that_agree_hold_none_of_it_and_one_launch_says_nothing() {
        let seen = between_launches(&stats(&[1000.0; 6])).unwrap();
        assert!(seen.variance_share.unwrap() < 0.02 && seen.tells_in_turns_percent.unwrap() < 2.0, "{seen:?}");
        // Equal runs differ by more than these launches do.
        assert!((3.5..5.0).contains(&seen.tells_percent.unwrap()), "{seen:?}");
        assert!(seen.known_to_percent < 1.0);
        assert_eq!(between_launches(&stats(&[1000.0])), None);
        assert_eq!(between_launches(&LatencyStats::default()), None);
    }
}
