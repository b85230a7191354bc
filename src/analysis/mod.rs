//! What the figures mean: pure functions of the store.

mod bounds;
pub mod compare;
mod course;
mod energy;
mod finding;
mod heat;
mod load;
mod outliers;
pub mod recommend;
mod roofline;
mod summary;
#[cfg(test)]
pub(crate) mod testing;
mod trust;
mod verdicts;
mod window;

pub use bounds::{Bound, Bounds, Share};
pub use energy::{Energy, NoEnergy, energy};
pub use finding::{Advice, Effort, Evidence, Finding, FindingKind, Place, Severity};
pub use outliers::{Around, LineAround, Outlier, Outliers, outliers};
pub use roofline::{Achieved, Roofline, roofline};
pub use summary::summary;
pub use trust::{Reason, Trust, Verdict, trust};
pub use verdicts::{Verdicts, verdicts};

use crate::store::{Run, Store};

/// Everything that can be said about a run, what matters most first.
pub fn findings(store: &Store, run: &Run) -> Vec<Finding> {
    // One line per part: `findings.extend(trust::findings(store, run));`
    let mut findings = Vec::new();
    findings.extend(verdicts(store, run).findings());
    finding::rank(&mut findings);
    findings
}
