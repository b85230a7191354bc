//! Findings about a tapped program as a whole.

use super::super::{Advice, Effort, Evidence, Finding, FindingKind, Severity};
use crate::store::Tapped;

/// Sentences listed in a finding.
const LISTED: usize = 5;

/// Why a program's figures are missing.
pub fn program_findings(tapped: &Tapped) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !tapped.not_reached.is_empty() {
        let evidence = tapped.not_reached.iter().take(LISTED).map(Evidence::new).collect();
        let title = "the tap was not loaded into the program, or into part of it".to_owned();
        findings.push(Finding::new("tap.not-reached", FindingKind::Trust, Severity::Problem, title, evidence));
    }
    // If the tap could not reach everything, the absence of executions proves nothing.
    let saw_all = tapped.not_reached.is_empty();
    if tapped.ended.is_some() && tapped.processes.is_empty() && tapped.loaded_count > 0 && saw_all {
        let title = "no process of the program used QNN".to_owned();
        let processes = if tapped.loaded_count == 1 { "process" } else { "processes" };
        let text = format!("the tap was loaded in {} {processes}", tapped.loaded_count);
        let mut finding =
            Finding::new("tap.no-qnn", FindingKind::Trust, Severity::Problem, title, vec![Evidence::new(text)]);
        finding.suggestion = Some(Advice {
            action: "check which backend library the framework was configured to open, and whether it exists".to_owned(),
            why:
                "a framework that cannot open it silently runs on the CPU; one that opens it in a way hidden from the \
                  tap needs --swap DIR; one started without the tap's variables (env -i, sudo, a service) needs --listen and those variables"
                    .to_owned(),
            effort: Effort::Setting,
            snippets: Vec::new(),
        });
        findings.push(finding);
    }
    findings
}
