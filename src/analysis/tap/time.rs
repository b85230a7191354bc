//! Where the time of a process goes.

use super::super::{Advice, Effort, Evidence, Finding, FindingKind, Severity};
use crate::store::{Alone, TappedProcess};
use crate::text::{counted, duration_text, share_text};

/// Share of time outside QNN that deserves a warning.
const MUCH: f64 = 0.5;
/// Minimum number of executions of a kind for a comparison.
const FEWEST: u64 = 10;
/// Factor by which overlapping executions must be longer to count as waiting.
const WAITS: f64 = 1.3;
/// Mean number of graphs per inference from which it consists of several.
const SEVERAL: f64 = 1.5;

pub(super) fn findings(process: &TappedProcess) -> Vec<Finding> {
    [share(process), partitions(process), loading(process)].into_iter().flatten().chain(waiting(process)).collect()
}

fn share(process: &TappedProcess) -> Option<Finding> {
    let timeline = &process.timeline;
    let share = timeline.share().filter(|_| timeline.executions >= FEWEST)?;
    let severity = if share.program >= MUCH { Severity::Warning } else { Severity::Info };
    let between = if share.between_graphs >= 0.005 {
        format!(", {} between the graphs of an inference", share_text(share.between_graphs))
    } else {
        String::new()
    };
    let title = format!(
        "of the time from the first to the last execution, {} is inside QNN{between}, {} in the program",
        share_text(share.qnn),
        share_text(share.program)
    );
    let span_us = timeline.span_ns() as f64 / 1000.0;
    let text = format!(
        "{} and {} in {}, {} of it in QNN",
        counted(timeline.executions, "execution"),
        counted(timeline.inferences, "inference"),
        duration_text(span_us),
        duration_text(timeline.qnn_ns() as f64 / 1000.0)
    );
    let mut finding = Finding::new("tap.time-share", FindingKind::Bound, severity, title, vec![Evidence::new(text)]);
    if severity == Severity::Warning {
        let per_inference_us = (timeline.span_ns() as f64 * share.program) / 1000.0 / timeline.inferences.max(1) as f64;
        finding.suggestion = Some(Advice {
            action: "shorten the program's own work between inferences, or do it while the next one executes"
                .to_owned(),
            why: format!(
                "a faster graph does not shorten the {} per inference spent waiting for the program",
                duration_text(per_inference_us)
            ),
            effort: Effort::Code,
            snippets: Vec::new(),
        });
    }
    Some(finding)
}

fn partitions(process: &TappedProcess) -> Option<Finding> {
    let timeline = &process.timeline;
    let each = timeline.graphs_per_inference().filter(|each| *each >= SEVERAL && timeline.inferences >= 2)?;
    let gaps: Vec<(usize, f64, u64)> = (0..process.graphs.len())
        .filter_map(|at| {
            let within = &timeline.graph(at)?.within;
            Some((at, within.mean()? / 1000.0, within.count()))
        })
        .collect();
    let gap_us = timeline.between_ns() as f64 / 1000.0 / timeline.inferences as f64;
    let title = format!("an inference runs {each:.1} graphs, and {} of it passes between them", duration_text(gap_us));
    let evidence = gaps.iter().take(8).map(|(at, mean_us, count)| {
        let name = &process.graphs[*at].name;
        Evidence::new(format!("before graph {name}: {} on average over {count}", duration_text(*mean_us)))
    });
    let mut evidence: Vec<Evidence> = evidence.collect();
    if evidence.is_empty() {
        evidence.push(Evidence::new(format!(
            "{} in {}",
            timeline.executions,
            counted(timeline.inferences, "inference")
        )));
    }
    let heavy = timeline.share().is_some_and(|share| share.between_graphs >= 0.05);
    let severity = if heavy { Severity::Warning } else { Severity::Info };
    let mut finding = Finding::new("tap.partitions", FindingKind::Bound, severity, title, evidence);
    finding.suggestion = Some(Advice {
        action: "keep the ops between the graphs on the backend, so that the graphs merge".to_owned(),
        why: "between graphs the program copies tensors and runs the ops the backend did not take".to_owned(),
        effort: Effort::Reconvert,
        snippets: Vec::new(),
    });
    Some(finding)
}

fn loading(process: &TappedProcess) -> Option<Finding> {
    let (loading_ns, qnn_ns) = (process.loading_ns(), process.timeline.qnn_ns());
    if process.timeline.executions == 0 || loading_ns <= qnn_ns {
        return None;
    }
    let title = format!(
        "loading dominates: {} to create backends, contexts and graphs, {} to execute them",
        duration_text(loading_ns as f64 / 1000.0),
        duration_text(qnn_ns as f64 / 1000.0)
    );
    let mut calls: Vec<_> = process.calls.iter().filter(|(name, _)| !name.ends_with("Free")).collect();
    calls.sort_by_key(|(_, stats)| std::cmp::Reverse(stats.total_ns));
    let evidence = calls.iter().take(3).map(|(name, stats)| {
        let text =
            format!("{name}: {} in {}", duration_text(stats.total_ns as f64 / 1000.0), counted(stats.count, "call"));
        Evidence::new(text)
    });
    let evidence: Vec<Evidence> = evidence.collect();
    if evidence.is_empty() {
        return None;
    }
    let mut finding = Finding::new("tap.loading", FindingKind::Bound, Severity::Info, title, evidence);
    if process.made.finalized > 0 {
        finding.suggestion = Some(Advice {
            action: "save the compiled context as a binary and load that".to_owned(),
            why: "graphs of a context binary need no graphFinalize".to_owned(),
            effort: Effort::Setting,
            snippets: Vec::new(),
        });
    }
    Some(finding)
}

/// Executions of several threads on one backend take turns: whichever comes second waits.
fn waiting(process: &TappedProcess) -> Vec<Finding> {
    let judge = |(at, graph): (usize, &crate::store::TappedGraph)| {
        let times = process.timeline.graph(at)?;
        let (alone, beside) = (times.alone, times.overlapped);
        if beside.count < FEWEST {
            return None;
        }
        let part = beside.count as f64 / (alone.count + beside.count) as f64;
        let beside_us = beside.mean_us()?;
        let enough = |alone: Alone| (alone.count >= FEWEST).then(|| alone.mean_us()).flatten();
        let factor = enough(alone).map(|alone_us| beside_us / alone_us);
        let waits = factor.is_some_and(|factor| factor >= WAITS);
        if !waits && (factor.is_some() || part < MUCH) {
            return None;
        }
        let text = match enough(alone) {
            Some(alone_us) => format!(
                "{} beside another thread's take {} on average, {} alone {}",
                counted(beside.count, "execution"),
                duration_text(beside_us),
                counted(alone.count, "execution"),
                duration_text(alone_us)
            ),
            None => format!(
                "{} of its executions overlap another thread's, {} on average; too few run alone to compare",
                share_text(part),
                duration_text(beside_us)
            ),
        };
        let title = match factor {
            Some(factor) => format!(
                "executions of graph {} wait for those of other threads: they take {factor:.1} times as long when they overlap",
                graph.name
            ),
            None => format!("executions of graph {} overlap those of other threads", graph.name),
        };
        let severity = if waits { Severity::Warning } else { Severity::Info };
        let mut finding = Finding::new("tap.waiting", FindingKind::Bound, severity, title, vec![Evidence::new(text)]);
        finding.suggestion = waits.then(|| Advice {
            action: "execute from one thread, or give the graph that matters a higher priority".to_owned(),
            why: "a backend executes one graph at a time; more threads only make each of them wait".to_owned(),
            effort: Effort::Code,
            snippets: Vec::new(),
        });
        Some(finding)
    };
    process.graphs.iter().enumerate().filter_map(judge).collect()
}
