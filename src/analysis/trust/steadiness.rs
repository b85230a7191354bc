//! Whether a run measured one state: no remaining warm-up, no drift, no two levels.

use super::super::course::{MIN_SAMPLES, Step, Trend, is_rather_a_step, median, step, trend, two_levels};
use super::super::{Evidence, EvidencePlace};
use super::{Part, Reason, Seen, TrustVerdict};
use crate::text::duration_text;

/// Minimum significant change of level, as a fraction of it.
const MATTERS: f64 = 0.05;
/// Change from which the figures describe no state at all.
const TOO_MUCH: f64 = 0.3;
/// A slower stretch that ends within this first part of a phase is warm-up.
const WARM_UP_PART: f64 = 0.34;

pub(super) fn judge(seen: &Seen<'_>, reasons: &mut Vec<Reason>, not_judged: &mut Vec<String>) {
    let long: Vec<&Part> = seen.parts.iter().filter(|part| !part.blocks.is_empty()).collect();
    if long.is_empty() {
        let each = if seen.parts.len() > 1 { " in each launch" } else { "" };
        not_judged.push(format!(
            "steady state and drift need at least {MIN_SAMPLES} inferences{each}; there are {}",
            seen.run.service().count()
        ));
        return;
    }
    // One launch that changes is enough; the one that changes most is reported.
    let changed =
        long.iter().filter_map(|part| changed(seen, part)).reduce(|a, b| if b.weight > a.weight { b } else { a });
    let steady = changed.is_none();
    reasons.extend(changed);
    // Two states in succession are two levels, too; that has already been reported.
    let levels = || long.iter().find_map(|part| Some((part, two_levels(&part.latency)?)));
    if let Some((part, levels)) = levels().filter(|_| steady) {
        let text = format!(
            "{:.0} % of the inferences take about {}, the others about {}; few lie in between{}",
            levels.high_share * 100.0,
            duration_text(levels.high_us),
            duration_text(levels.low_us),
            part.which
        );
        let title = format!(
            "inferences take one of two times, {} or {}: mean and median describe neither",
            duration_text(levels.low_us),
            duration_text(levels.high_us)
        );
        reasons.push(Reason::new(TrustVerdict::WithCare, "trust.two-levels", title, vec![Evidence::new(text)]));
    }
}

/// What changes within a launch.
fn changed(seen: &Seen<'_>, part: &Part) -> Option<Reason> {
    let step = step(&part.blocks).filter(|step| (step.after_us / step.before_us - 1.0).abs() >= MATTERS);
    let trend = trend(&part.blocks).filter(|trend| trend.change.abs() >= MATTERS);
    match (step, trend) {
        (Some(step), Some(trend)) if !is_rather_a_step(&part.blocks, &step, &trend) => Some(drifting(part, &trend)),
        (Some(step), _) => Some(stepped(seen, part, &step)),
        (None, Some(trend)) => Some(drifting(part, &trend)),
        (None, None) => None,
    }
}

fn weight(change: f64) -> TrustVerdict {
    if change.abs() >= TOO_MUCH { TrustVerdict::Not } else { TrustVerdict::WithCare }
}

fn drifting(part: &Part, trend: &Trend) -> Reason {
    let way = if trend.change > 0.0 { "slower" } else { "faster" };
    let (first, last) = (
        duration_text(part.blocks.first().map_or(0.0, |block| block.median_us)),
        duration_text(part.blocks.last().map_or(0.0, |block| block.median_us)),
    );
    let title =
        format!("the run drifts: inferences get {way}, from {first} at its start to {last} at its end{}", part.which);
    let text = format!(
        "medians of the first and last {} inferences; trend {:+.0} % of the median (99 % interval {:+.0} to {:+.0} %)",
        part.blocks.get(1).map_or(0, |block| block.first),
        trend.change * 100.0,
        trend.interval.0 * 100.0,
        trend.interval.1 * 100.0
    );
    Reason::new(weight(trend.change), "trust.drift", title, vec![Evidence::new(text)])
}

fn stepped(seen: &Seen<'_>, part: &Part, step: &Step) -> Reason {
    let count = part.latency.count();
    let change = step.after_us / step.before_us - 1.0;
    let mut evidence = vec![Evidence::at(
        format!(
            "median {} before inference {} of {count}, {} from there on ({:+.0} %){}",
            duration_text(step.before_us),
            step.index,
            duration_text(step.after_us),
            change * 100.0,
            part.which
        ),
        EvidencePlace::Moment(step.at_us),
    )];
    if change < 0.0 && (step.index as f64) < WARM_UP_PART * count as f64 {
        let title = format!(
            "steady only from inference {} of {count} on: before it inferences take {:.0} % longer; measure with --warmup {}",
            step.index,
            (step.before_us / step.after_us - 1.0) * 100.0,
            seen.run.warmup.count() / seen.parts.len().max(1) as u64 + step.index as u64
        );
        // Its effect on the figures counts: a short warm-up hardly moves a median.
        let moved = without_first(part, step.index);
        evidence.push(Evidence::new(format!("without them the median is {:.1} % lower", moved * 100.0)));
        let weight = if moved < MATTERS { TrustVerdict::Trusted } else { weight(moved) };
        return Reason::new(weight, "trust.warm-up", title, evidence);
    }
    let way = if change > 0.0 { "slower" } else { "faster" };
    let title = format!(
        "the level changes: from inference {} of {count} on they are {:.0} % {way}{}",
        step.index,
        change.abs() * 100.0,
        part.which
    );
    Reason::new(weight(change), "trust.level-shift", title, evidence)
}

/// How much lower the median is without the first inferences, as a fraction of it.
fn without_first(part: &Part, count: usize) -> f64 {
    let samples = part.latency.samples_us();
    let count = count / usize::try_from(part.latency.stride()).unwrap_or(usize::MAX).max(1);
    let of = |samples: &[f32]| median(samples.iter().map(|us| f64::from(*us)));
    let all = of(samples);
    if all > 0.0 { 1.0 - of(samples.get(count..).unwrap_or_default()) / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use crate::analysis::EvidencePlace;
    use crate::analysis::testing::{Made, moment, only, steady};
    use crate::analysis::trust::{Reason, TrustVerdict, trust};
    use crate::backends::Backend;

    fn reasons(latencies: Vec<f64>) -> Vec<Reason> {
        let store = Made::local(Backend::Cpu).clean(latencies).store();
        let mut reasons = trust(&store, only(&store)).unwrap().reasons;
        // They have one launch, which is reported after everything except reasons without weight.
        let one = reasons.iter().position(|reason| reason.finding.id == "trust.one-launch").unwrap();
        reasons.remove(one);
        reasons
    }

    fn ids(reasons: &[Reason]) -> Vec<&str> {
        reasons.iter().map(|reason| reason.finding.id).collect()
    }

    #[test]
    fn warm_up_that_reaches_into_the_figures_is_told_with_the_setting_against_it() {
        let mut latencies = steady(1000.0, 4.0, 500);
        latencies[..100].iter_mut().for_each(|us| *us *= 1.2);
        let found = reasons(latencies.clone());
        assert_eq!(
            (found[0].finding.id, found[0].weight),
            ("trust.warm-up", TrustVerdict::Trusted),
            "the median hardly moves"
        );
        latencies[..160].iter_mut().for_each(|us| *us *= 2.0);
        latencies[160..].iter_mut().step_by(3).for_each(|us| *us *= 1.3);
        let found = reasons(latencies);
        assert_eq!((found[0].finding.id, found[0].weight), ("trust.warm-up", TrustVerdict::WithCare));
        assert!(found[0].finding.title.contains("measure with --warmup "), "{}", found[0].finding.title);
    }

    #[test]
    fn a_change_of_level_names_its_moment() {
        let mut latencies = steady(10_000.0, 4.0, 500);
        latencies[250..].iter_mut().for_each(|us| *us *= 1.5);
        let found = reasons(latencies);
        assert_eq!((found[0].finding.id, found[0].weight), ("trust.level-shift", TrustVerdict::Not));
        let Some(EvidencePlace::Moment(at_us)) = found[0].finding.evidence[0].at else { panic!("{found:?}") };
        assert!(at_us.abs_diff(moment(2.5)) < 200_000, "{at_us}");
    }

    #[test]
    fn a_drift_is_told_with_its_size_and_interval() {
        let rising: Vec<f64> =
            steady(1000.0, 5.0, 500).iter().enumerate().map(|(i, us)| us * (1.0 + i as f64 / 4000.0)).collect();
        let found = reasons(rising);
        assert_eq!(ids(&found)[0], "trust.drift");
        assert!(found[0].finding.evidence[0].text.contains("99 % interval"), "{found:?}");
    }

    #[test]
    fn two_levels_are_told_once_and_only_while_steady() {
        let mut mixed = steady(1000.0, 5.0, 500);
        mixed.iter_mut().enumerate().filter(|(i, _)| i * 7919 % 100 < 30).for_each(|(_, us)| *us *= 1.6);
        assert_eq!(ids(&reasons(mixed)), ["trust.two-levels"]);
        let mut halves = steady(1000.0, 5.0, 500);
        halves[250..].iter_mut().for_each(|us| *us *= 1.6);
        assert!(!ids(&reasons(halves)).contains(&"trust.two-levels"));
    }

    #[test]
    fn a_launch_that_changes_is_named() {
        let mut second = steady(10_000.0, 4.0, 500);
        second[250..].iter_mut().for_each(|us| *us *= 1.5);
        let launches = vec![steady(10_000.0, 4.0, 500), second, steady(10_000.0, 4.0, 500)];
        let store = Made::local(Backend::Cpu).launches(launches).store();
        let found = trust(&store, only(&store)).unwrap().reasons;
        let level = found.iter().find(|reason| reason.finding.id == "trust.level-shift").unwrap();
        assert!(level.finding.title.ends_with("(launch 2 of 3)"), "{}", level.finding.title);
        let Some(EvidencePlace::Moment(at_us)) = level.finding.evidence[0].at else { panic!("{level:?}") };
        assert!(at_us.abs_diff(moment(7.5)) < 300_000, "{at_us}");
    }

    #[test]
    fn small_changes_and_noise_are_no_reason() {
        let slight: Vec<f64> =
            steady(1000.0, 5.0, 500).iter().enumerate().map(|(i, us)| us * (1.0 + i as f64 / 50_000.0)).collect();
        for latencies in [slight, steady(1000.0, 20.0, 500), steady(1000.0, 5.0, 400)] {
            assert!(ids(&reasons(latencies)).is_empty());
        }
    }
}
