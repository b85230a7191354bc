//! Whether a run meets the user's constraints.

use super::launches::percentile;
use super::{Evidence, Finding, FindingKind, Severity};
use crate::event::{RunStatus, TruthMetric};
use crate::store::{LatencyStats, Percentile, Run, Store};
use crate::text::{bytes_text, counted, duration_text};

/// Percentiles compared with a latency budget by default, best first.
const PERCENTS: [f64; 4] = [99.0, 95.0, 90.0, 50.0];
/// Share of the budget below which even the slowest of a few inferences clearly meets it.
const WIDE_MARGIN: f64 = 0.5;

/// The percentile compared with a latency budget, in findings and recommendations: the requested one, or the
/// highest that this many inferences support.
pub fn percent_that_counts(asked: Option<f64>, inferences: u64) -> f64 {
    let supported = || PERCENTS.into_iter().find(|percent| LatencyStats::supports(inferences, *percent));
    asked.or_else(supported).unwrap_or(PERCENTS[0])
}

/// Why a percentile has no figure.
pub fn too_few(percent: f64, inferences: u64) -> String {
    let needed = (100.0 / (100.0 - percent)).ceil().max(1.0);
    format!("p{percent} needs at least {needed} inferences; there are {inferences}")
}

/// Outcome of a constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConstraintVerdict {
    Met,
    /// By a wide margin, but supported by few inferences.
    MetByFar,
    /// The figure is on one side of the limit, but its 95 % interval spans both.
    Unsure {
        met: bool,
    },
    Missed,
    CannotTell,
}

/// One finding per constraint of the run's plan; none before the run has ended. Power is never met or missed:
/// it only affects recommendations.
pub fn findings(_store: &Store, run: &Run) -> Vec<Finding> {
    let wanted = &run.plan.constraints;
    if !run.is_ended() {
        return Vec::new();
    }
    let latency = wanted.latency_budget_us.map(|budget_us| latency(run, budget_us, wanted.latency_percent));
    let memory = wanted.max_memory_bytes.map(|limit| memory(run, limit));
    let sqnr = wanted.min_sqnr_db.map(|limit_db| sqnr(run, limit_db));
    latency.into_iter().chain(memory).chain(sqnr).collect()
}

fn sqnr(run: &Run, limit_db: f64) -> Finding {
    const ID: &str = "constraint.sqnr";
    let what = format!("SQNR of at least {limit_db} dB");
    let cannot = |why: &str| finding(ID, &what, ConstraintVerdict::CannotTell, vec![Evidence::new(why)]);
    let Some(judged) = &run.judged else { return cannot("its outputs were not judged") };
    if let Some(reason) = &judged.error {
        return cannot(reason);
    }
    let truth = format!("against {}, over {}", judged.truth, counted(u64::from(judged.inferences), "inference"));
    match judged.worst(TruthMetric::SqnrDb) {
        _ if judged.is_identical() => {
            finding(ID, &what, ConstraintVerdict::Met, vec![Evidence::new(format!("identical {truth}"))])
        }
        Some(own) => {
            let verdict = if own >= limit_db { ConstraintVerdict::Met } else { ConstraintVerdict::Missed };
            finding(ID, &what, verdict, vec![Evidence::new(format!("SQNR is {own:.1} dB {truth}"))])
        }
        None => cannot("no SQNR: the expected outputs are zero, or --metric excludes it"),
    }
}

fn finding(id: &'static str, what: &str, verdict: ConstraintVerdict, evidence: Vec<Evidence>) -> Finding {
    let (severity, word) = match verdict {
        ConstraintVerdict::Met => (Severity::Info, "met"),
        ConstraintVerdict::MetByFar => (Severity::Info, "met by a wide margin, on few inferences"),
        ConstraintVerdict::Unsure { met: true } => (Severity::Warning, "met, but within the uncertainty"),
        ConstraintVerdict::Unsure { met: false } => (Severity::Warning, "missed, but within the uncertainty"),
        ConstraintVerdict::Missed => (Severity::Problem, "missed"),
        ConstraintVerdict::CannotTell => (Severity::Warning, "cannot tell"),
    };
    Finding::new(id, FindingKind::Constraint, severity, format!("{what}: {word}"), evidence)
}

/// Why this run's figures cannot be judged, if so.
fn disqualified(run: &Run) -> Option<String> {
    match (run.status(), run.plan.simulated) {
        (Some(RunStatus::Failed), _) => Some("the run failed".to_owned()),
        (_, true) => Some("the figures are simulated and predict no device".to_owned()),
        _ => None,
    }
}

fn latency(run: &Run, budget_us: f64, percent: Option<f64>) -> Finding {
    const ID: &str = "constraint.latency";
    let budget = duration_text(budget_us);
    let clean = &run.clean;
    let chosen = percent_that_counts(percent, clean.count());
    let what = format!("latency budget of {budget} at p{chosen}");
    if let Some(reason) = disqualified(run) {
        return finding(ID, &what, ConstraintVerdict::CannotTell, vec![Evidence::new(reason)]);
    }
    let measured = percentile(clean, chosen);
    let Some(value_us) = measured.value_us else {
        return finding(ID, &what, ConstraintVerdict::CannotTell, vec![Evidence::new(too_few(chosen, clean.count()))]);
    };
    let mut evidence = vec![Evidence::new(interval_text(&measured, value_us, clean.launch_count()))];
    if percent.is_none() && chosen < PERCENTS[0] {
        evidence.push(Evidence::new(format!(
            "p{chosen} is the highest percentile for {}; p99 needs 100",
            counted(clean.count(), "inference")
        )));
    }
    if let Some(pace) = &run.pace {
        evidence.push(Evidence::new(format!("counted from the planned starts, {} per second", pace.rate_hz)));
    }
    let mut verdict = against(&measured, value_us, budget_us);
    if let (ConstraintVerdict::Unsure { met: true }, Some(max_us)) = (verdict, clean.max_us())
        && max_us <= WIDE_MARGIN * budget_us
    {
        verdict = ConstraintVerdict::MetByFar;
        let slowest = duration_text(max_us);
        evidence.push(Evidence::new(format!(
            "few inferences support it ({}), but the slowest took {slowest}, less than half the budget",
            clean.count()
        )));
    }
    finding(ID, &what, verdict, evidence)
}

fn interval_text(measured: &Percentile, value_us: f64, launches: usize) -> String {
    let bound = |us: Option<f64>| us.map_or_else(|| "unknown".to_owned(), duration_text);
    format!(
        "p{} is {} over {}, 95 % interval {} to {}{}",
        measured.percent,
        duration_text(value_us),
        counted(measured.samples, "inference"),
        bound(measured.ci95_us.0),
        bound(measured.ci95_us.1),
        if launches > 1 { format!(" from {launches} launches") } else { " within one launch".to_owned() }
    )
}

/// A bound that the samples do not provide could be anywhere.
fn against(measured: &Percentile, value_us: f64, budget_us: f64) -> ConstraintVerdict {
    let (low, high) = measured.ci95_us;
    match value_us <= budget_us {
        true if high.is_some_and(|high| high <= budget_us) => ConstraintVerdict::Met,
        true => ConstraintVerdict::Unsure { met: true },
        false if low.is_some_and(|low| low > budget_us) => ConstraintVerdict::Missed,
        false => ConstraintVerdict::Unsure { met: false },
    }
}

fn memory(run: &Run, limit: u64) -> Finding {
    const ID: &str = "constraint.memory";
    let what = format!("memory of at most {}", bytes_text(limit as f64));
    let Some(peak) = run.memory.rss_peak else {
        let text = "the memory of the process that runs the model is unknown";
        return finding(ID, &what, ConstraintVerdict::CannotTell, vec![Evidence::new(text)]);
    };
    let mut evidence = vec![Evidence::new(format!("peak resident set: {}", bytes_text(peak as f64)))];
    if let Some(before) = run.memory.rss_before {
        let text = format!("{} of it before the vendor's libraries were loaded", bytes_text(before as f64));
        evidence.push(Evidence::new(text));
    }
    // A failed or emulated run shows only what it used itself; a complete one might use more.
    let verdict = match disqualified(run) {
        Some(reason) if peak <= limit || run.plan.simulated => {
            evidence.insert(0, Evidence::new(reason));
            ConstraintVerdict::CannotTell
        }
        _ if peak <= limit => ConstraintVerdict::Met,
        _ => ConstraintVerdict::Missed,
    };
    finding(ID, &what, verdict, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Feed, plan};
    use crate::event::{Event, MemoryMark, MemorySample, RunPlan};

    fn with_budget(ms: f64, percent: Option<f64>) -> RunPlan {
        let mut plan = plan();
        plan.constraints.latency_budget_us = Some(ms * 1000.0);
        plan.constraints.latency_percent = percent;
        plan
    }

    /// The only finding of a run of `count` inferences of 1 to 2 ms.
    fn only(plan: RunPlan, count: u64) -> Finding {
        let mut feed = Feed::on_phone(plan, None);
        feed.clean(0, count, |index| 1000.0 + (index * 7919 % 1000) as f64);
        assert!(findings(&feed.store, feed.only()).is_empty(), "nothing before the end");
        feed.end();
        let mut found = findings(&feed.store, feed.only());
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn a_budget_is_held_against_the_best_percentile_there_is() {
        for (plan, count, severity, words) in [
            (with_budget(3.0, None), 1000, Severity::Info, "at p99: met"),
            (with_budget(1.2, None), 1000, Severity::Problem, "at p99: missed"),
            (with_budget(1.2, Some(10.0)), 1000, Severity::Info, "at p10: met"),
            (with_budget(1.991, None), 1000, Severity::Warning, "within the uncertainty"),
            // 50 samples support p95, but its interval has no upper bound yet.
            (with_budget(3.0, None), 50, Severity::Warning, "at p95: met, but within the uncertainty"),
            (with_budget(1.1, None), 50, Severity::Problem, "at p95: missed"),
            (with_budget(3.0, Some(99.0)), 50, Severity::Warning, "cannot tell"),
            // Even the slowest of the few takes less than half the budget.
            (with_budget(100.0, None), 3, Severity::Info, "at p50: met by a wide margin, on few inferences"),
            (with_budget(100.0, None), 1000, Severity::Info, "at p99: met"),
            (with_budget(3.0, None), 0, Severity::Warning, "cannot tell"),
        ] {
            let finding = only(plan, count);
            assert!(finding.title.contains(words), "{} for {count}, not {words}", finding.title);
            assert_eq!(finding.severity, severity, "{}", finding.title);
            assert!(!finding.evidence.is_empty());
        }
    }

    #[test]
    fn simulated_figures_meet_nothing() {
        let simulated = RunPlan { simulated: true, ..with_budget(3.0, None) };
        let finding = only(simulated, 1000);
        assert!(finding.title.contains("cannot tell") && finding.evidence[0].text.contains("simulated"), "{finding:?}");
    }

    #[test]
    fn memory_is_held_against_its_peak() {
        for (limit_mb, peak_mb, severity) in
            [(100, Some(50), Severity::Info), (100, Some(150), Severity::Problem), (100, None, Severity::Warning)]
        {
            let mut plan = plan();
            plan.constraints.max_memory_bytes = Some(limit_mb << 20);
            let mut feed = Feed::on_phone(plan, None);
            if let Some(peak_mb) = peak_mb {
                let rss = peak_mb << 20;
                let mark = MemoryMark::Running;
                feed.run(Event::Memory(MemorySample { mark, rss, rss_peak: Some(rss), pss: None, inferences: 1 }));
            }
            feed.end();
            let found = findings(&feed.store, feed.only());
            assert_eq!(found[0].severity, severity, "{found:?}");
        }
    }
}
