//! What is made of a run's figures, worked out once.

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
    /// What its ops achieved.
    pub roofline: Roofline,
    /// Inferences far from the others; `None` while there are too few.
    pub outliers: Option<Outliers>,
    outlier_finding: Option<Finding>,
}

/// The verdicts on a run.
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
    /// What was found, in no order.
    pub fn findings(&self) -> Vec<Finding> {
        let reasons = self.trust.iter().flat_map(|trust| &trust.reasons).map(|reason| reason.finding.clone());
        reasons.chain(self.bounds.findings.iter().cloned()).chain(self.outlier_finding.clone()).collect()
    }
}
