//! Verdicts on a run, for the result document and the text report.

use crate::analysis::{
    Around, Bound, Finding, FindingKind, LineAround, Outliers, Severity, Share, Trust, TrustVerdict, Verdicts,
};
use crate::text::paragraph;
use serde::Serialize;
use std::fmt::Write;

/// Maximum number of counters per outlier in the document: those that changed most.
const COUNTERS: usize = 8;
/// Maximum number of findings listed in full in the text.
const LISTED: usize = 6;
/// Maximum number of observations per finding in the text.
const OBSERVATIONS: usize = 2;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TrustResult {
    verdict: TrustVerdict,
    reasons: Vec<TrustReason>,
    not_judged: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct TrustReason {
    id: &'static str,
    weight: TrustVerdict,
    title: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct BoundsResult {
    main: Option<Bound>,
    shares: Vec<Share>,
    best_gmac_per_s: Option<f64>,
    best_gb_per_s: Option<f64>,
    would_tell: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct OutliersResult {
    median_us: f64,
    limit_us: f64,
    count: u64,
    slowest: Vec<OutlierResult>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct OutlierResult {
    index: u64,
    start_us: u64,
    latency_us: f64,
    counters: Vec<Around>,
    logs: Vec<LineAround>,
    surroundings_gone: bool,
}

impl TrustResult {
    pub(super) fn new(trust: &Trust) -> Self {
        let reason = |reason: &crate::analysis::Reason| TrustReason {
            id: reason.finding.id,
            weight: reason.weight,
            title: reason.finding.title.clone(),
        };
        let reasons = trust.reasons.iter().map(reason).collect();
        Self { verdict: trust.verdict, reasons, not_judged: trust.not_judged.clone() }
    }
}

impl BoundsResult {
    pub(super) fn new(verdicts: &Verdicts) -> Self {
        Self {
            main: verdicts.bounds.main,
            shares: verdicts.bounds.shares.clone(),
            best_gmac_per_s: verdicts.roofline.best_gmac_per_s,
            best_gb_per_s: verdicts.roofline.best_gb_per_s,
            would_tell: verdicts.bounds.would_tell.clone(),
        }
    }
}

impl OutliersResult {
    pub(super) fn new(outliers: &Outliers) -> Self {
        let one = |outlier: &crate::analysis::Outlier| OutlierResult {
            index: outlier.index,
            start_us: outlier.start_us,
            latency_us: outlier.latency_us,
            counters: outlier.counters.iter().take(COUNTERS).cloned().collect(),
            logs: outlier.logs.clone(),
            surroundings_gone: outlier.surroundings_gone,
        };
        let slowest = outliers.kept.iter().map(one).collect();
        Self { median_us: outliers.median_us, limit_us: outliers.limit_us, count: outliers.count, slowest }
    }
}

/// The findings of a run as text: the important ones with their evidence, the others by title only.
pub(super) fn findings_text(out: &mut String, findings: &[Finding]) {
    // The heading of a run already shows that it is simulated.
    let shown: Vec<&Finding> = findings.iter().filter(|finding| finding.id != "trust.simulated").collect();
    if shown.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nfindings");
    for (number, finding) in shown.iter().enumerate() {
        if number >= LISTED && finding.severity == Severity::Info {
            continue;
        }
        let mark = match finding.severity {
            Severity::Problem => "!!",
            Severity::Warning => " !",
            Severity::Info => "  ",
        };
        paragraph(out, &format!("{mark} {}", finding.title), 5, 2);
        let notable = finding.severity > Severity::Info || finding.kind == FindingKind::Suggestion;
        for evidence in finding.evidence.iter().take(if notable { OBSERVATIONS } else { 0 }) {
            paragraph(out, &format!("- {}", evidence.text), 7, 5);
        }
        advice(out, finding);
    }
    let left = shown.iter().skip(LISTED).filter(|finding| finding.severity == Severity::Info).count();
    if left > 0 {
        let _ = writeln!(out, "   and {left} less important ones, see --json");
    }
}

fn advice(out: &mut String, finding: &Finding) {
    let Some(advice) = &finding.suggestion else { return };
    let gain = finding.gain_text("µs").map_or_else(String::new, |gain| format!(" (may save {gain})"));
    paragraph(out, &format!("> {}{gain}", advice.action), 7, 5);
    for snippet in advice.snippets.iter().flat_map(|snippet| snippet.lines()) {
        let _ = writeln!(out, "         {snippet}");
    }
}
