//! Combines check results: one cause can fully explain what another would.

use crate::diagnosis::cause;
use crate::event::{CheckOutcome, CheckResult, Stage};

/// A library built for another CPU, which explains the loader's failure.
const UNLIKE: &str = "wrong-elf-class";
/// Causes unrelated to the libraries, which may apply at the same time.
const APART: [&str; 2] = ["model-missing", "disk-full"];

/// Whether a cause concerns the loader, or a stage that a run only reaches after the loader is done.
fn needs_the_library(id: &str) -> bool {
    let stage = cause(id).and_then(|known| Stage::ALL.into_iter().find(|stage| stage.name() == known.stage));
    id != UNLIKE && !APART.contains(&id) && stage.is_some_and(|stage| stage >= Stage::LibraryLoad)
}

/// Withdraws confirmations that a library for another CPU already explains.
pub fn settle(results: &mut [CheckResult]) {
    let confirmed = |result: &CheckResult| result.outcome == CheckOutcome::Confirms;
    if !results.iter().any(|result| result.cause == UNLIKE && confirmed(result)) {
        return;
    }
    for result in results.iter_mut().filter(|result| needs_the_library(&result.cause)) {
        if confirmed(result) {
            result.outcome = CheckOutcome::Neutral;
            result.detail += "; a library for another processor explains the failure already";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(cause: &str, outcome: CheckOutcome) -> CheckResult {
        CheckResult { cause: cause.into(), check: "check".into(), outcome, detail: "seen".into() }
    }

    #[test]
    fn beside_a_library_for_another_processor_nothing_of_the_loader_is_confirmed() {
        use CheckOutcome::{Confirms, Neutral, Refutes};
        let given = [
            ("libcxx-missing", Confirms),
            ("model-missing", Confirms),
            ("dependency-missing", Refutes),
            ("skel-not-found", Confirms),
        ];
        let mut results: Vec<CheckResult> = given.iter().map(|(cause, outcome)| result(cause, *outcome)).collect();
        let before = results.clone();
        settle(&mut results);
        assert_eq!(results, before, "nobody has shown another processor");
        results.push(result(UNLIKE, Confirms));
        settle(&mut results);
        let outcomes: Vec<CheckOutcome> = results.iter().map(|result| result.outcome).collect();
        assert_eq!(outcomes, [Neutral, Confirms, Refutes, Neutral, Confirms]);
        assert!(results[0].detail.contains("another processor"));
    }
}
