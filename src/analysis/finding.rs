//! The result of an analysis: a finding with its evidence.

use serde::{Deserialize, Serialize};

/// What a finding is about; also the order in which findings are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Whether the backend ran the model at all, or all of it: otherwise the figures are those of something else.
    Placement,
    /// Whether the user's constraints (latency, memory, power) are met.
    Constraint,
    /// Whether the figures can be trusted.
    Trust,
    /// What bounds the run, or one of its layers.
    Bound,
    /// Inferences far from the others.
    Outlier,
    /// What to change.
    Suggestion,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know, or all is well.
    Info,
    /// Figures are worse, or less sure, than they could be.
    Warning,
    /// Figures cannot be used as they are, or a constraint is not met.
    Problem,
}

/// An observation that supports a finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// One sentence with its figures and their units.
    pub text: String,
    /// Where to see it.
    pub at: Option<EvidencePlace>,
}

/// Where an observation can be seen in the views.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidencePlace {
    /// A row of the run's op table, from 0.
    Op(usize),
    /// A counter; without a device, one of this machine's.
    Counter {
        /// Device id.
        device: Option<String>,
        /// Counter id.
        id: String,
    },
    /// A point in time on the host's monotonic clock, microseconds.
    Moment(u64),
}

/// A suggested change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// What to do, in plain English.
    pub action: String,
    /// Why that helps.
    pub why: String,
    /// How much effort it takes.
    pub effort: Effort,
    /// Commands or parts of configuration files, ready to copy.
    pub snippets: Vec<String>,
}

/// Effort of a change; also the order in which equal gains are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// A flag or a setting of the run.
    Setting,
    /// The model is converted, quantised or compiled again.
    Reconvert,
    /// The program that calls QNN changes.
    Code,
    /// The model itself changes, and may need training.
    Model,
}

/// A finding of an analysis. Never without evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Stable id: `trust.few-samples`, `bound.memory-bandwidth`, `q4-convert-count`.
    pub id: &'static str,
    /// What it is about.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence.
    pub title: String,
    /// Its evidence, strongest first; at least one.
    pub evidence: Vec<Evidence>,
    /// What to change, if anything.
    pub suggestion: Option<Advice>,
    /// Time per inference that the change may save, microseconds: lowest and highest, out of the clean
    /// latency. `None` if no bound is known, and for a simulated run, whose times are those of the emulator.
    pub expected_gain_us: Option<[f64; 2]>,
    /// The same as shares of an inference, 0 to 1; for a simulated run, shares of its simulated cycles.
    pub expected_gain_share: Option<[f64; 2]>,
    /// Names of the ops involved.
    pub ops: Vec<String>,
    /// Where the rule comes from.
    pub source: Option<&'static str>,
}

impl Finding {
    /// The possible saving in words: `100 µs to 300 µs, up to 30 %`. `micro` is the microseconds unit to
    /// print.
    pub fn gain_text(&self, micro: &str) -> Option<String> {
        let time = |us: f64| crate::text::duration_with_micro(us, micro);
        let [_, most] = self.expected_gain_share?;
        let percent = format!("up to {:.0} %", 100.0 * most);
        Some(match self.expected_gain_us {
            Some([low, high]) if low > 0.0 => format!("{} to {}, {percent}", time(low), time(high)),
            Some([_, high]) => format!("up to {}, {:.0} %", time(high), 100.0 * most),
            None => format!("{percent} of the simulated cycles"),
        })
    }
}

impl Evidence {
    /// An observation about the run as a whole.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), at: None }
    }

    /// An observation that can be seen at a place in the views.
    pub fn at(text: impl Into<String>, place: EvidencePlace) -> Self {
        Self { text: text.into(), at: Some(place) }
    }
}

impl Finding {
    /// A finding with its first observation; the caller sets the other fields.
    pub fn new(
        id: &'static str,
        kind: FindingKind,
        severity: Severity,
        title: String,
        evidence: Vec<Evidence>,
    ) -> Self {
        debug_assert!(!evidence.is_empty(), "{id} has no evidence");
        Self {
            id,
            kind,
            severity,
            title,
            evidence,
            suggestion: None,
            expected_gain_us: None,
            expected_gain_share: None,
            ops: Vec::new(),
            source: None,
        }
    }
}

/// Orders findings for display: by kind, then severity, then expected gain, then effort.
pub(super) fn rank(findings: &mut [Finding]) {
    let gain = |finding: &Finding| finding.expected_gain_share.map_or(0.0, |[_, high]| high);
    let effort = |finding: &Finding| finding.suggestion.as_ref().map(|advice| advice.effort);
    findings.sort_by(|a, b| {
        (a.kind.cmp(&b.kind))
            .then(b.severity.cmp(&a.severity))
            .then(gain(b).total_cmp(&gain(a)))
            .then(effort(a).cmp(&effort(b)))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: FindingKind, severity: Severity, gain: Option<[f64; 2]>) -> Finding {
        let mut finding = Finding::new("x", kind, severity, "title".to_owned(), vec![Evidence::new("seen")]);
        finding.expected_gain_share = gain;
        finding
    }

    #[test]
    fn what_matters_comes_first() {
        let mut findings = vec![
            finding(FindingKind::Suggestion, Severity::Info, Some([0.01, 0.05])),
            finding(FindingKind::Suggestion, Severity::Info, Some([0.0, 0.5])),
            finding(FindingKind::Suggestion, Severity::Warning, None),
            finding(FindingKind::Trust, Severity::Info, None),
        ];
        rank(&mut findings);
        let order: Vec<_> = findings.iter().map(|f| (f.kind, f.severity, f.expected_gain_share)).collect();
        assert_eq!(order[0].0, FindingKind::Trust);
        assert_eq!(order[1].1, Severity::Warning);
        assert_eq!(order[2].2, Some([0.0, 0.5]));
    }
}
