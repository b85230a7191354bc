//! Whether another launch would give the same figures.

use super::super::launches::{InTime, MOST_LAUNCHES, Spread, minimal_difference};
use super::super::{Advice, Effort, Evidence};
use super::cause::{Cause, cause};
use super::{Reason, Seen, TrustVerdict};
use crate::store::LaunchFigures;
use crate::text::{counted, duration_text, known_text};

/// Ratio of the largest launch median to the smallest, less 1, from which launches disagree.
const MATTERS: f64 = 0.05;
/// The same, from which no single figure describes them.
const TOO_MUCH: f64 = 0.3;
/// Half-width of the median's interval, as a fraction of the median, from which the median is imprecise.
const SHARP: f64 = 0.05;

pub(super) fn judge(seen: &Seen<'_>, reasons: &mut Vec<Reason>) {
    let launches: Vec<LaunchFigures> = seen.run.service().launches().into_iter().map(|launch| launch.figures).collect();
    let medians: Vec<f64> = launches.iter().filter_map(|launch| launch.percentile_us(50.0)).collect();
    match Spread::of(&medians) {
        None => reasons.push(one_launch(seen)),
        Some(spread) if spread.range >= MATTERS && !overlap(&launches) => {
            reasons.push(disagree(seen, &medians, &spread));
        }
        Some(spread) => reasons.extend(few(&medians, &spread)),
    }
}

fn one_launch(seen: &Seen<'_>) -> Reason {
    let count = seen.run.service().count();
    let text = format!("{} of one process", counted(count, "inference"));
    let advice = if seen.run.plan.driver.traits().takes_counts {
        "measure with --launches 3 or more"
    } else {
        "start the program several times and compare"
    };
    let title = format!("one launch: the next may settle at another speed, which these figures cannot show ({advice})");
    Reason::new(TrustVerdict::WithinLaunch, "trust.one-launch", title, vec![Evidence::new(text)])
}

/// True if the fastest and the slowest launch could have the same median by their own intervals.
fn overlap(launches: &[LaunchFigures]) -> bool {
    let medians = || launches.iter().filter_map(|launch| launch.percentile(50.0));
    let value = |a: &&crate::store::Percentile| a.value_us.unwrap_or(0.0);
    let fastest = medians().min_by(|a, b| value(a).total_cmp(&value(b)));
    let slowest = medians().max_by(|a, b| value(a).total_cmp(&value(b)));
    match fastest.and_then(|p| p.ci95_us.1).zip(slowest.and_then(|p| p.ci95_us.0)) {
        Some((high, low)) => high >= low,
        // Too few inferences each for intervals: the medians decide.
        None => false,
    }
}

fn disagree(seen: &Seen<'_>, medians: &[f64], spread: &Spread) -> Reason {
    let weight = if spread.range >= TOO_MUCH { TrustVerdict::Not } else { TrustVerdict::WithCare };
    let (least, most) = medians.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), us| (a.min(*us), b.max(*us)));
    let title = format!(
        "launches disagree: their medians range from {} to {} ({:+.0} %)",
        duration_text(least),
        duration_text(most),
        spread.range * 100.0
    );
    let all: Vec<String> = medians.iter().map(|us| duration_text(*us)).collect();
    let mut evidence = vec![Evidence::new(format!("medians of the {} launches: {}", medians.len(), all.join(", ")))];
    let [low, high] = spread.interval();
    evidence.push(Evidence::new(format!(
        "over all launches the median is {}, 95 % interval {} to {}",
        duration_text(spread.middle),
        duration_text(low),
        duration_text(high)
    )));
    let cause = cause(seen.store, seen.run, medians);
    evidence.extend(cause.as_ref().map(Cause::evidence));
    let mut reason = Reason::new(weight, "trust.launches-disagree", title, evidence);
    let told = minimal_difference(medians, MOST_LAUNCHES, InTime::Apart).map_or_else(String::new, |part| {
        format!("; {MOST_LAUNCHES} launches would resolve differences of {:.0} %", part * 100.0)
    });
    reason.finding.suggestion = Some(match cause {
        Some(cause) => cause.remedy(seen.run),
        None => Advice {
            action: "measure with more launches, and compare by intervals of launches".to_owned(),
            why: format!("no sampled counter explains the difference between these launches{told}"),
            effort: Effort::Setting,
            snippets: vec![format!("qnnscope run MODEL -b {} --launches {MOST_LAUNCHES}", seen.run.plan.backend)],
        },
    });
    reason
}

/// Launches that agree within their variation, but are too few to show so precisely.
fn few(medians: &[f64], spread: &Spread) -> Option<Reason> {
    let known_to = spread.half_width();
    if known_to <= SHARP {
        return None;
    }
    let count = medians.len();
    let needed = (count + 1..=20).find(|count| spread.of_launches(*count).half_width() <= SHARP);
    let more = needed.map_or_else(
        || "more inferences in each would narrow it (-n)".to_owned(),
        |needed| format!("--launches {needed} would make it about ±{:.0} %", SHARP * 100.0),
    );
    let title = format!(
        "{count} launches give the median only {}: {more}",
        known_text(known_to * 100.0).trim_start_matches("only ")
    );
    let all: Vec<String> = medians.iter().map(|us| duration_text(*us)).collect();
    let text = format!("their medians are {}", all.join(", "));
    Some(Reason::new(TrustVerdict::WithCare, "trust.few-launches", title, vec![Evidence::new(text)]))
}

#[cfg(test)]
mod tests {
    use crate::analysis::testing::{Made, only, steady};
    use crate::analysis::trust::{Reason, Trust, TrustVerdict, trust};
    use crate::backends::Backend;

    fn judged(made: Made) -> Trust {
        let store = made.store();
        trust(&store, only(&store)).unwrap()
    }

    fn reason<'a>(trust: &'a Trust, id: &str) -> Option<&'a Reason> {
        trust.reasons.iter().find(|reason| reason.finding.id == id)
    }

    fn levels(levels_us: &[f64]) -> Made {
        Made::local(Backend::Cpu).launches(levels_us.iter().map(|us| steady(*us, 5.0, 100)).collect())
    }

    #[test]
    fn one_launch_is_never_more_than_trusted_within_it() {
        let trust = judged(Made::local(Backend::Cpu).clean(steady(10_000.0, 5.0, 5000)));
        assert_eq!(trust.verdict, TrustVerdict::WithinLaunch);
        assert!(reason(&trust, "trust.one-launch").unwrap().finding.title.contains("--launches 3"));
        assert_eq!(judged(levels(&[10_000.0; 3])).verdict, TrustVerdict::Trusted);
    }

    #[test]
    fn launches_on_two_levels_disagree_and_are_no_drift() {
        let trust = judged(levels(&[1000.0, 2000.0, 1010.0, 1990.0]));
        let found = reason(&trust, "trust.launches-disagree").unwrap();
        assert_eq!((trust.verdict, found.weight), (TrustVerdict::Not, TrustVerdict::Not));
        assert!(found.finding.title.contains("(+100 %)"), "{}", found.finding.title);
        assert!(found.finding.suggestion.as_ref().unwrap().snippets[0].contains("--"), "{found:?}");
        for other in ["trust.level-shift", "trust.drift", "trust.two-levels", "trust.dependent-samples"] {
            assert_eq!(reason(&trust, other), None, "{other}");
        }
        let slightly = judged(levels(&[1000.0, 1100.0, 1010.0]));
        assert_eq!(reason(&slightly, "trust.launches-disagree").unwrap().weight, TrustVerdict::WithCare);
        assert_eq!(reason(&judged(levels(&[1000.0, 1020.0, 1010.0])), "trust.launches-disagree"), None);
    }

    #[test]
    fn a_slower_clock_heat_and_others_are_named_where_they_go_with_the_slow_launches() {
        // Launches of one second each: the second and the fourth are slow.
        let slow = |t_s: f64| (1.0..2.2).contains(&t_s) || (3.2..5.0).contains(&t_s);
        let made = || levels(&[10_000.0, 12_000.0, 10_000.0, 12_500.0]);
        let told = |made: Made| {
            let trust = judged(made);
            let found = reason(&trust, "trust.launches-disagree").unwrap().finding.clone();
            (found.evidence.last().unwrap().text.clone(), found.suggestion.unwrap().action)
        };
        let (clock, remedy) =
            told(made().host_counter("host.cpu.freq.max", None, move |t| if slow(t) { 2000.0 } else { 2500.0 }));
        assert!(clock.contains("clock") && remedy.contains("clock"), "{clock}: {remedy}");
        let (heat, remedy) =
            told(made().host_counter("host.temp.max", None, move |t| if slow(t) { 90.0 } else { 70.0 }));
        assert!(heat.contains("90") && remedy.contains("cool"), "{heat}: {remedy}");
        let others = made().runner_cores(1.0).host_counter("host.load.1m", Some(4.0), |_| 1.0).host_counter(
            "host.cpu.busy",
            Some(100.0),
            move |t| if slow(t) { 75.0 } else { 26.0 },
        );
        let (busy, remedy) = told(others);
        assert!(busy.contains("other processes") && remedy.contains("process"), "{busy}: {remedy}");
    }

    #[test]
    fn threads_that_work_as_much_and_get_less_done_share_cores() {
        let trust = judged(levels(&[1000.0, 2000.0, 1010.0, 1990.0]));
        let found = &reason(&trust, "trust.launches-disagree").unwrap().finding;
        assert!(found.evidence.last().unwrap().text.contains("threads"), "{found:?}");
        assert!(found.suggestion.as_ref().unwrap().action.contains("--pin"), "{found:?}");
        // Not on another backend, whose speed does not depend on this process's threads.
        let gpu = Made::local(Backend::Gpu).launches([1000.0, 2000.0, 1010.0].map(|us| steady(us, 5.0, 100)).to_vec());
        let trust = judged(gpu);
        let found = &reason(&trust, "trust.launches-disagree").unwrap().finding;
        assert!(!found.evidence.last().unwrap().text.contains("threads"), "{found:?}");
    }

    #[test]
    fn few_launches_that_scatter_say_how_many_would_do() {
        let noisy: Vec<Vec<f64>> = [1000.0, 1150.0, 1050.0].map(|us| steady(us, 90.0, 20)).to_vec();
        let trust = judged(Made::local(Backend::Cpu).launches(noisy));
        let found = reason(&trust, "trust.few-launches").or_else(|| reason(&trust, "trust.launches-disagree"));
        assert_eq!(found.unwrap().weight, TrustVerdict::WithCare);
    }
}
