//! A run in one paragraph of plain English.

use super::trust::TrustVerdict;
use super::{Finding, FindingKind, Severity, Verdicts};
use crate::event::capitalised;
use crate::store::Run;
use crate::text::{duration_text, rate_text};
use std::fmt::Write;

/// What was measured, how fast it is, what bounds it, whether to trust it, and what to change first; `None`
/// for a run that neither measured anything nor failed. `findings` are the run's, ranked.
pub fn summary(run: &Run, verdicts: &Verdicts, findings: &[Finding]) -> Option<String> {
    let mut text = String::new();
    if let Some(failure) = &run.failure {
        let _ = write!(
            text,
            "The run on {} failed in stage {}: {}.",
            run.plan.backend,
            failure.stage,
            trimmed(&failure.message)
        );
    }
    let Some(p50) = run.clean.percentile_us(50.0) else { return (!text.is_empty()).then_some(text) };
    let model = run.plan.model.rsplit(['/', '\\']).next().unwrap_or(&run.plan.model);
    let simulated = if run.plan.simulated { "simulated " } else { "" };
    let device = if run.plan.device == "local" { String::new() } else { format!(" of {}", run.plan.device) };
    let before = if text.is_empty() { "" } else { " Before that, " };
    let _ = write!(
        text,
        "{before}{model} takes {} per inference on the {simulated}{}{device} (median of {}",
        duration_text(p50),
        run.plan.backend.name().to_uppercase(),
        run.clean.count()
    );
    let tail = [99.0, 95.0, 90.0].into_iter().find_map(|percent| Some((percent, run.clean.percentile_us(percent)?)));
    if let Some((percent, value)) = tail {
        let _ = write!(text, "; p{percent} {}", duration_text(value));
    }
    if let Some(ips) = run.throughput_ips() {
        let _ = write!(text, "; {} per second", rate_text(ips));
    }
    text.push_str(").");
    if let Some(pace) = &run.pace {
        let alone = pace.service.percentile_us(50.0).unwrap_or(p50);
        let _ = write!(
            text,
            " It was started {} times per second, and times count from the planned starts; the inference alone takes {}.",
            rate_text(pace.rate_hz),
            duration_text(alone)
        );
    }
    bound(&mut text, verdicts);
    trust(&mut text, run, verdicts);
    next(&mut text, verdicts, findings);
    Some(text)
}

fn trimmed(text: &str) -> &str {
    text.trim_end_matches(['.', ' '])
}

fn bound(text: &mut String, verdicts: &Verdicts) {
    let bounds = &verdicts.bounds;
    let part = |share: &super::Share| format!("{} ({:.0} %)", share.bound.text(), share.share * 100.0);
    match (bounds.main, bounds.shares.as_slice()) {
        (Some(main), [first, ..]) if first.bound == main => {
            let _ = write!(text, " Most of that is {}.", part(first));
        }
        (None, [first, second, ..]) => {
            let _ = write!(text, " No single bound dominates: {}, {}.", part(first), part(second));
        }
        _ => {}
    }
    // The reason that weakens trust is reported with it.
    let reason = verdicts.trust.as_ref().and_then(|trust| trust.reasons.first()).map(|reason| reason.finding.id);
    let with_trust = |id: &str| match id {
        "bound.contention" => reason == Some("trust.background-load"),
        "bound.thermal-throttling" => reason == Some("trust.throttled"),
        _ => false,
    };
    // Bounds that have already been mentioned as the largest part.
    let said = |id: &str| ["bound.call-overhead", "bound.host-processing"].contains(&id);
    let outside = bounds.findings.iter().filter(|finding| finding.severity > Severity::Info);
    for finding in outside.filter(|finding| !with_trust(finding.id) && !said(finding.id)).take(2) {
        let _ = write!(text, " {}.", capitalised(&finding.title));
    }
}

fn trust(text: &mut String, run: &Run, verdicts: &Verdicts) {
    let Some(trust) = &verdicts.trust else { return };
    if run.plan.simulated {
        text.push_str(" Simulated: these times do not predict a device.");
        return;
    }
    let weighs = |reason: &&super::trust::Reason| reason.weight > TrustVerdict::WithinLaunch;
    let first = trust.reasons.first().filter(weighs);
    let others = trust.reasons.iter().filter(weighs).count().saturating_sub(1);
    let more = match others {
        0 => String::new(),
        1 => " (and one more reason)".to_owned(),
        others => format!(" (and {others} more reasons)"),
    };
    match (trust.verdict, first) {
        (TrustVerdict::Trusted, _) if trust.not_judged.is_empty() => text.push_str(" These figures can be trusted."),
        (TrustVerdict::Trusted, _) => text.push_str(" Everything that could be checked supports these figures."),
        (TrustVerdict::WithinLaunch, _) => text.push_str(
            " Everything that could be checked supports these figures within this launch; the next one may be faster or slower (--launches \
             3).",
        ),
        (TrustVerdict::WithCare, Some(reason)) => {
            let _ = write!(text, " Use the figures with care: {}{more}.", reason.finding.title);
        }
        (_, Some(reason)) => {
            let _ = write!(text, " Do not use the figures as they are: {}{more}.", reason.finding.title);
        }
        _ => {}
    }
}

/// The first thing to do: measure again, make the change with the highest gain, or collect data that shows
/// more.
fn next(text: &mut String, verdicts: &Verdicts, findings: &[Finding]) {
    let gain = |finding: &&Finding| finding.expected_gain_share.map_or(0.0, |gain| gain[1]);
    let advice = findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Suggestion && gain(finding) > 0.0)
        .max_by(|a, b| gain(a).total_cmp(&gain(b)));
    if let Some((finding, advice)) = advice.and_then(|finding| Some((finding, finding.suggestion.as_ref()?))) {
        let _ = write!(text, " Change first: {}", trimmed(&advice.action));
        if let Some(gain) = finding.gain_text("µs") {
            let _ = write!(text, " (may save {gain})");
        }
        text.push('.');
    } else if let Some(would_tell) = verdicts.bounds.would_tell.first() {
        let _ = write!(text, " To learn more, {would_tell}.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::{Made, only, op, steady};
    use crate::analysis::{Advice, Effort, Evidence, findings, verdicts};
    use crate::backends::Backend;
    use crate::event::{Event, Failure, OpUnit, RunStatus, Stage};
    use crate::store::Store;

    fn words(store: &Store, more: Vec<Finding>) -> Option<String> {
        let run = only(store);
        let mut findings = findings(store, run);
        findings.extend(more);
        summary(run, &verdicts(store, run), &findings)
    }

    fn made() -> Made {
        let conv = || op("Conv2d", &[1, 32, 32, 16], &[3, 3, 16, 32], &[1, 32, 32, 32]);
        Made::local(Backend::Cpu)
            .graph(vec![conv(), conv(), conv(), conv()])
            .op_times(OpUnit::Us, &[240, 240, 250, 250])
            .metric("GRAPH_EXECUTE", "us", 990.0)
            .clean(steady(1000.0, 5.0, 500))
            .detailed(&[1000.0; 10])
    }

    fn suggestion(action: &str, gain: [f64; 2]) -> Finding {
        let evidence = vec![Evidence::new("seen")];
        let mut finding = Finding::new("x", FindingKind::Suggestion, Severity::Info, "title".to_owned(), evidence);
        let (action, why, effort) = (action.to_owned(), String::new(), Effort::Setting);
        finding.suggestion = Some(Advice { action, why, effort, snippets: Vec::new() });
        finding.expected_gain_us = Some(gain);
        finding.expected_gain_share = Some(gain.map(|us| us / 1000.0));
        finding
    }

    #[test]
    fn it_says_what_was_measured_what_bounds_it_and_whether_to_trust_it() {
        let text = words(&made().store(), Vec::new()).unwrap();
        for part in
            ["made.dlc takes", "per inference on the CPU (median of 500; p99", "Most of that is computing (98 %)"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("the next one may be faster or slower (--launches 3)."), "{text}");
        let several = made().launches(vec![steady(1000.0, 5.0, 500); 3]).store();
        let text = words(&several, Vec::new()).unwrap();
        assert!(text.contains("(median of 1500; p99"), "{text}");
        assert!(text.ends_with("Everything that could be checked supports these figures."), "{text}");
    }

    #[test]
    fn the_change_with_the_highest_gain_comes_first_in_it() {
        let more = vec![suggestion("do little", [1.0, 10.0]), suggestion("do this", [100.0, 300.0])];
        let text = words(&made().store(), more).unwrap();
        assert!(text.ends_with("Change first: do this (may save 100 µs to 300 µs, up to 30 %)."), "{text}");
    }

    #[test]
    fn simulated_failed_and_empty_runs_say_so() {
        let store = Made::local(Backend::Htp).simulated().clean(steady(1000.0, 5.0, 100)).store();
        let text = words(&store, Vec::new()).unwrap();
        assert!(text.contains("on the simulated HTP") && text.contains("do not predict a device"), "{text}");
        assert!(text.ends_with("To learn more, run it on a device: this htp is simulated."), "{text}");
        let failure = Failure::new(Stage::Finalize, "graphFinalize", "no memory.");
        let failed = Made::local(Backend::Cpu).event(Event::Failed(Box::new(failure))).ended(RunStatus::Failed);
        assert_eq!(words(&failed.store(), Vec::new()).unwrap(), "The run on cpu failed in stage finalize: no memory.");
        assert_eq!(words(&Made::local(Backend::Cpu).store(), Vec::new()), None);
    }

    #[test]
    fn figures_that_cannot_be_used_are_not_recommended() {
        let mut latencies = steady(1000.0, 5.0, 500);
        latencies[250..].iter_mut().for_each(|us| *us *= 2.0);
        let text = words(&made().clean(latencies).store(), Vec::new()).unwrap();
        assert!(text.contains("Do not use the figures as they are: the level changes:"), "{text}");
    }
}
