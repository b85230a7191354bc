//! What only a tap can see: how a program uses QNN, around and between its graphs' executions.

mod graph;
mod making;
mod power;
mod program;
mod time;

pub use program::program_findings;

use super::finding::{self, Finding};
use crate::store::{Run, Store, TappedProcess};

/// What is found in a process as a whole, what matters most first.
pub fn process_findings(store: &Store, process: &TappedProcess) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(making::findings(store, process));
    findings.extend(time::findings(process));
    findings.extend(power::findings(store, process));
    finding::rank(&mut findings);
    findings
}

/// What is found in the way in which a program executes the graph of a run; nothing for other runs.
pub(super) fn graph_findings(store: &Store, run: &Run) -> Vec<Finding> {
    store
        .tapped()
        .and_then(|tapped| tapped.of_run(run.id))
        .map_or_else(Vec::new, |(_, graph)| graph::findings(run, graph))
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
