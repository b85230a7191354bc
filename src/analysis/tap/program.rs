//! What is found in a tapped program as a whole.

use super::super::{Advice, Effort, Evidence, Finding, FindingKind, Severity};
use crate::store::Tapped;

/// Sentences that are told.
const LISTED: usize = 5;

/// What keeps a program's figures from being there.
pub fn program_findings(tapped: &Tapped) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !tapped.not_reached.is_empty() {
        let evidence = tapped.not_reached.iter().take(LISTED).map(Evidence::new).collect();
        let title = "the tap did not get into the program, or into a part of it".to_owned();
        findings.push(Finding::new("tap.not-reached", FindingKind::Trust, Severity::Problem, title, evidence));
    }
    // Where the tap could not see, nobody can say that there was nothing.
    let saw_all = tapped.not_reached.is_empty();
    if tapped.ended.is_some() && tapped.processes.is_empty() && tapped.loaded_count > 0 && saw_all {
        let title = "no process of the program asked for QNN: nothing ran on it".to_owned();
        let processes = if tapped.loaded_count == 1 { "process" } else { "processes" };
        let text = format!("the tap was in {} {processes}", tapped.loaded_count);
        let mut finding =
            Finding::new("tap.no-qnn", FindingKind::Trust, Severity::Problem, title, vec![Evidence::new(text)]);
        finding.suggestion = Some(Advice {
            action: "see which backend library the framework was told to open, and whether it is there".to_owned(),
            why:
                "a framework that cannot open it runs on the processor without a word; one that opens it in a way that \
                  hides it from the tap needs --swap DIR; one that is started without the tap's variables (env -i, sudo, a \
                  service) needs --listen, and those variables"
                    .to_owned(),
            effort: Effort::Setting,
            snippets: Vec::new(),
        });
        findings.push(finding);
    }
    findings
}
