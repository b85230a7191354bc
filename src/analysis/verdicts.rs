//! All verdicts on a run's figures, computed once.

use super::Finding;
use super::bounds::{Bounds, bounds};
use super::outliers::{self, Outliers, outliers};
use super::roofline::{Roofline, roofline};
use super::trust::{Trust, trust};
use crate::store::{Run, Store};

/// All verdicts on one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdicts {
    /// Whether its latencies can be trusted; `None` while there are none.
    pub trust: Option<Trust>,
    /// What bounds it.
    pub bounds: Bounds,
    /// Achieved rates of its ops.
    pub roofline: Roofline,
    /// Outliers among the inferences; `None` while there are too few to judge.
    pub outliers: Option<Outliers>,
    outlier_finding: Option<Finding>,
}

/// Computes the verdicts on a run.
pub fn verdicts(store: &Store, run: &Run) -> Verdicts {
    let roofline = roofline(store, run);
    let outliers = outliers(store, run);
    Verdicts {
        trust: trust(store, run),
        bounds: bounds(store, run, &roofline),
        roofline,
        outlier_finding: outliers::finding(run, outliers.as_ref()),
        outliers,
    }
}

impl Verdicts {
    /// All findings, in no particular order.
    pub fn findings(&self) -> Vec<Finding> {
        let reasons = self.trust.iter().flat_map(|trust| &trust.reasons).map(|reason| reason.finding.clone());
        reasons.chain(self.bounds.findings.iter().cloned()).chain(self.outlier_finding.clone()).collect()
    }
}
