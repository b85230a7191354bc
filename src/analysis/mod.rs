//! What the figures mean: pure functions of the store.

mod energy;
mod finding;
pub mod rules;

pub use energy::{Energy, NoEnergy, energy};
pub use finding::{Advice, Effort, Evidence, Finding, FindingKind, Place, Severity};

use crate::store::{Run, Store};

/// Everything that can be said about a run, what matters most first.
pub fn findings(store: &Store, run: &Run) -> Vec<Finding> {
    // One line per part: `findings.extend(trust::findings(store, run));`
    let mut findings = Vec::new();
    findings.extend(rules::findings(store, run));
    finding::rank(&mut findings);
    findings
}
