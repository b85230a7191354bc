//! Whether there are enough inferences for the figures shown.

use super::super::Evidence;
use super::{Reason, Seen, TrustVerdict};
use crate::store::PERCENTILES;
use crate::text::{counted, duration_text};

/// Half of the median's interval, as a fraction of it, from which it is imprecise.
const SHARP: f64 = 0.05;
/// The same, from which the median means nothing: its interval is at least twice as wide as the median, or
/// begins at 0.
const UNKNOWN: f64 = 1.0;
/// Inferences per independent one from which neighbours are called alike.
const ALIKE: f64 = 4.0;
/// Number of independent inferences below which a median is uncertain.
const ENOUGH: f64 = 30.0;
/// Number of inferences below which no interval contains the median.
const NO_INTERVAL: u64 = 6;

pub(super) fn judge(seen: &Seen<'_>, reasons: &mut Vec<Reason>) {
    let clean = seen.run.service();
    let count = clean.count();
    if count < NO_INTERVAL {
        let text = format!("{count} measured after {} for warm-up", seen.run.warmup.count());
        let title =
            format!("too few for an interval of any figure: {}; measure at least 30", counted(count, "inference"));
        reasons.push(Reason::new(TrustVerdict::Not, "trust.few-samples", title, vec![Evidence::new(text)]));
        return;
    }
    // A run that changes over time has neighbours that are alike, which another finding already describes
    // better.
    let told = |ids: &[&str]| reasons.iter().any(|reason| ids.contains(&reason.finding.id));
    let changes = told(&["trust.drift", "trust.level-shift", "trust.warm-up"]);
    let dependence = seen.dependence.filter(|_| !changes).unwrap_or(1.0);
    // More inferences do not sharpen the figures of an unsteady run.
    let unsettled = told(&["trust.drift", "trust.level-shift", "trust.two-levels"]);
    // With several launches, the launches count.
    if !unsettled && clean.launch_count() < 2 {
        reasons.extend(median(seen, dependence));
    }
    if dependence >= ALIKE {
        reasons.push(alike(count, dependence));
    }
    reasons.extend(tail(seen));
}

fn median(seen: &Seen<'_>, dependence: f64) -> Option<Reason> {
    let clean = seen.run.service();
    let p50 = clean.percentile(50.0);
    let (value, low, high) = (p50.value_us?, p50.ci95_us.0?, p50.ci95_us.1?);
    let wider = if dependence >= ALIKE { dependence.sqrt() } else { 1.0 };
    let off = (high - low) / 2.0 / value * wider;
    if off <= SHARP {
        return None;
    }
    let count = clean.count();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of inferences, rounded up")]
    let needed = ((count as f64 * (off / SHARP).powi(2) / 10.0).ceil() as u64) * 10;
    let text = format!(
        "p50 {} with a 95 % interval from {} to {} ({count} inferences)",
        duration_text(value),
        duration_text(low),
        duration_text(high)
    );
    if off >= UNKNOWN {
        let title = format!(
            "the median is not known: by {} it may be anything from {} to {}; measure longer, with nothing else running",
            counted(count, "inference"),
            duration_text(low),
            duration_text(high)
        );
        return Some(Reason::new(TrustVerdict::Not, "trust.few-samples", title, vec![Evidence::new(text)]));
    }
    // A user's program decides its own number of inferences, so there is no option to suggest.
    let option = if seen.run.plan.driver.traits().takes_counts { format!(" (-n {needed})") } else { String::new() };
    let title = format!(
        "the median is only known to ±{:.1} %: about {} more inferences would make it ±{:.0} %{option}",
        off * 100.0,
        needed.saturating_sub(count),
        SHARP * 100.0
    );
    Some(Reason::new(TrustVerdict::WithCare, "trust.few-samples", title, vec![Evidence::new(text)]))
}

fn alike(count: u64, dependence: f64) -> Reason {
    let independent = count as f64 / dependence;
    let weight = if independent < ENOUGH { TrustVerdict::WithCare } else { TrustVerdict::Trusted };
    let text =
        format!("means of 25 batches scatter {:.1} times as much as independent inferences would", dependence.sqrt());
    let title = format!(
        "neighbouring inferences are alike: {count} count as about {independent:.0}, so intervals are {:.1} times as wide as shown",
        dependence.sqrt()
    );
    Reason::new(weight, "trust.dependent-samples", title, vec![Evidence::new(text)])
}

/// The highest percentile shown, if it has no upper bound.
fn tail(seen: &Seen<'_>) -> Option<Reason> {
    let clean = seen.run.service();
    let shown =
        PERCENTILES.into_iter().rev().map(|percent| clean.percentile(percent)).find(|p| p.value_us.is_some())?;
    if shown.ci95_us.1.is_some() {
        return None;
    }
    // The largest of n samples is an upper bound once quantile^n is at most 2.5 %.
    let quantile = shown.percent / 100.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a few thousand")]
    let needed = (0.025f64.ln() / quantile.ln()).ceil() as u64;
    let beyond = clean.count() as f64 * (1.0 - quantile);
    let text = format!("about {beyond:.0} of {} inferences lie beyond p{}", clean.count(), shown.percent);
    let title = format!(
        "p{} has no upper bound: it takes {needed} inferences, {} more",
        shown.percent,
        needed.saturating_sub(clean.count())
    );
    Some(Reason::new(TrustVerdict::Trusted, "trust.tail", title, vec![Evidence::new(text)]))
}

#[cfg(test)]
mod tests {
    use crate::analysis::testing::{Made, only, steady};
    use crate::analysis::trust::{Trust, TrustVerdict, trust};
    use crate::backends::Backend;

    fn judged(latencies: Vec<f64>) -> Trust {
        let store = Made::local(Backend::Cpu).clean(latencies).store();
        trust(&store, only(&store)).unwrap()
    }

    fn reason(trust: &Trust, id: &str) -> Option<(TrustVerdict, String)> {
        let reason = trust.reasons.iter().find(|reason| reason.finding.id == id)?;
        Some((reason.weight, reason.finding.title.clone()))
    }

    #[test]
    fn a_handful_is_no_figure() {
        assert_eq!(reason(&judged(steady(100.0, 5.0, 5)), "trust.few-samples").unwrap().0, TrustVerdict::Not);
        assert_eq!(reason(&judged(steady(100.0, 5.0, 30)), "trust.few-samples"), None);
    }

    #[test]
    fn a_wide_median_says_how_many_more_are_needed() {
        let (weight, title) = reason(&judged(steady(1000.0, 90.0, 60)), "trust.few-samples").unwrap();
        assert!(
            weight == TrustVerdict::WithCare && title.contains("more inferences") && title.contains("-n "),
            "{title}"
        );
        assert_eq!(reason(&judged(steady(1000.0, 90.0, 2000)), "trust.few-samples"), None);
    }

    #[test]
    fn a_tail_without_a_bound_names_the_number_that_bounds_it() {
        let (weight, title) = reason(&judged(steady(1000.0, 5.0, 300)), "trust.tail").unwrap();
        assert_eq!(
            (weight, title.as_str()),
            (TrustVerdict::Trusted, "p99 has no upper bound: it takes 368 inferences, 68 more")
        );
        assert_eq!(reason(&judged(steady(1000.0, 5.0, 368)), "trust.tail"), None);
        assert!(reason(&judged(steady(1000.0, 5.0, 1000)), "trust.tail").unwrap().1.contains("3688"));
    }

    #[test]
    fn dependent_neighbours_count_less() {
        let mut level = 0.0;
        let noise = steady(1.0, 100.0, 400);
        let walk: Vec<f64> = noise
            .iter()
            .map(|us| {
                level = 0.9 * level + (us - 1.0);
                1000.0 + 30.0 * level
            })
            .collect();
        assert!(reason(&judged(walk), "trust.dependent-samples").is_some());
        assert_eq!(reason(&judged(steady(1000.0, 50.0, 400)), "trust.dependent-samples"), None);
    }
}
