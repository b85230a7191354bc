//! What a diagnosis consists of.

use super::catalogue::{Cause, Check};
use super::evidence::{Evidence, Sign};
use super::fault::Fault;
use super::platform::Platform;
use super::progress::Unexplained;
use super::trace::Trace;
use crate::event::CheckResult;

/// What was found in a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Causes, best first. None is the answer for a healthy log.
    pub causes: Vec<Finding>,
    /// The op at which a run of ours stopped.
    pub fault: Option<Fault>,
    /// What is known where no cause is well founded, and something failed.
    pub unexplained: Option<Unexplained>,
    /// What to collect where the log shows neither a failure nor a good end, should something have failed.
    pub collect: Vec<&'static str>,
    /// What lines state, if it was asked for.
    pub trace: Option<Trace>,
    /// The system that the log comes from, as far as it tells or somebody said so.
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
    /// How sure it is, 0 to 1: how far the log's own words carry, up to 0.97; a check that confirms it makes it 0.99.
    pub confidence: f64,
    /// What the checks said: true, false, or nothing yet, or nothing that decides.
    pub confirmed: Option<bool>,
    /// What the checks found, in the order in which they were made.
    pub results: Vec<CheckResult>,
    /// The first line of each sign, by line.
    pub evidence: Vec<Evidence>,
    /// The signs that add up to it.
    pub signs: Vec<Sign>,
    /// What lowered the confidence after that, and to which part.
    pub lowered: Vec<(&'static str, f64)>,
    /// Codes of the cause that the evidence names, as in the catalogue.
    pub codes: Vec<&'static str>,
    /// What to do in this very case, where that is known.
    pub remedy: Option<String>,
    /// What to do on the system that the log comes from, in order; none where that is not known.
    pub steps: &'static [String],
    pub(super) cause: &'static Cause,
}

impl Finding {
    /// The catalogue's entry: title, stage, reason, fix.
    pub fn cause(&self) -> &'static Cause {
        self.cause
    }

    /// What to do: in this very case, else what the catalogue says of the cause.
    pub fn fix(&self) -> &str {
        self.remedy.as_deref().unwrap_or(&self.cause.fix)
    }

    /// Checks that confirm it, in the order in which to try.
    pub fn checks(&self) -> &'static [Check] {
        &self.cause.confirm
    }
}

impl Diagnosis {
    /// Sets the system that the log comes from, which decides the advice.
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
