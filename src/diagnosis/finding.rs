//! The result of a diagnosis.

use super::catalogue::{Cause, Certainty, Check};
use super::evidence::{Evidence, Sign};
use super::fault::Fault;
use super::platform::Platform;
use super::progress::Unexplained;
use super::similar::Similar;
use super::trace::Trace;
use crate::event::CheckResult;

/// What was found in a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Causes, best first; empty for a healthy log.
    pub causes: Vec<Finding>,
    /// The op at which one of our runs stopped.
    pub fault: Option<Fault>,
    /// What is known if something failed but no cause is well founded.
    pub unexplained: Option<Unexplained>,
    /// Kinds of failure whose known logs share most words with this one, best first, if no cause is well founded.
    pub similar: Vec<Similar>,
    /// What to collect if the log shows neither a failure nor a success, in case something did fail.
    pub collect: Vec<&'static str>,
    /// What the lines state, if requested.
    pub trace: Option<Trace>,
    /// The system that the log comes from, if the log reveals it or the caller set it.
    pub platform: Option<Platform>,
    /// Lines read.
    pub lines: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// A cause that the log points to.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Id in the catalogue.
    pub id: &'static str,
    /// Confidence, 0 to 1: up to 0.97 from the log's own words; 0.99 once a check confirms it.
    pub confidence: f64,
    /// Verdict of the checks: confirmed, refuted, or none if they have not run or do not decide.
    pub confirmed: Option<bool>,
    /// Results of the checks, in the order in which they ran.
    pub results: Vec<CheckResult>,
    /// The first line of each sign, in line order.
    pub evidence: Vec<Evidence>,
    /// The signs that make up its confidence.
    pub signs: Vec<Sign>,
    /// What lowered the confidence afterwards, each with its factor.
    pub lowered: Vec<(&'static str, f64)>,
    /// Codes of the cause that the evidence names, as in the catalogue.
    pub codes: Vec<&'static str>,
    /// How to fix this particular case, if known.
    pub remedy: Option<String>,
    /// How to fix it on the system that the log comes from, in order; empty if that is unknown.
    pub steps: &'static [String],
    pub(super) cause: &'static Cause,
}

impl Finding {
    /// The catalogue's entry: title, stage, reason, fix.
    pub fn cause(&self) -> &'static Cause {
        self.cause
    }

    /// True if no rule knows the log, and only its words are those of known logs of this cause.
    pub fn is_by_words(&self) -> bool {
        self.signs.iter().any(|sign| self.cause.signal[sign.index].told == Some(Certainty::Alike))
    }

    /// The fix for this particular case, otherwise the catalogue's.
    pub fn fix(&self) -> &str {
        self.remedy.as_deref().unwrap_or(&self.cause.fix)
    }

    /// Checks that confirm it, in the order to try them.
    pub fn checks(&self) -> &'static [Check] {
        &self.cause.confirm
    }
}

impl Diagnosis {
    /// Sets the system that the log comes from, which determines the advice.
    pub fn set_platform(&mut self, platform: Platform) {
        self.platform = Some(platform);
        self.advise();
    }

    /// Gives each cause the steps for that system.
    pub(super) fn advise(&mut self) {
        let Some(platform) = self.platform else { return };
        for finding in &mut self.causes {
            finding.steps = finding.cause.steps(platform);
        }
    }
}
