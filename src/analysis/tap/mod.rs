//! What only a tap can see: how a program uses QNN, around and between the executions of its graphs.

mod graph;
mod making;
mod power;
mod program;
mod time;

pub use program::program_findings;

use super::finding::{self, Finding};
use crate::store::{Run, Store, TappedProcess};

/// Findings about a process as a whole, most important first.
pub fn process_findings(store: &Store, process: &TappedProcess) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(making::findings(store, process));
    findings.extend(time::findings(process));
    findings.extend(power::findings(store, process));
    finding::rank(&mut findings);
    findings
}

/// Findings about how a program executes the graph of a run; none for other runs.
pub(super) fn graph_findings(store: &Store, run: &Run) -> Vec<Finding> {
    store
        .tapped()
        .and_then(|tapped| tapped.of_run(run.id))
        .map_or_else(Vec::new, |(_, graph)| graph::findings(run, graph))
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
