//! What checks come to together: one cause can leave nothing for another to explain.

use crate::event::{CheckOutcome, CheckResult};

/// A library that is built for another processor: the loader's failure is explained.
const UNLIKE: &str = "wrong-elf-class";
/// Causes of the loader's failure that are read off libraries: of one for another processor they say nothing.
const READ_OFF_LIBRARIES: [&str; 8] = [
    "backend-library-not-found",
    "libcxx-missing",
    "dependency-missing",
    "interface-version-mismatch",
    "prepare-lib-missing",
    "stub-not-found",
    "stub-skel-build-id-mismatch",
    "extension-version-mix",
];

/// Takes back what is confirmed beside a library for another processor.
pub fn settle(results: &mut [CheckResult]) {
    let confirmed = |result: &CheckResult| result.outcome == CheckOutcome::Confirms;
    if !results.iter().any(|result| result.cause == UNLIKE && confirmed(result)) {
        return;
    }
    for result in results.iter_mut().filter(|result| READ_OFF_LIBRARIES.contains(&result.cause.as_str())) {
        if confirmed(result) {
            result.outcome = CheckOutcome::Neutral;
            result.detail += "; a library for another processor explains the failure already";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::cause;

    fn result(cause: &str, outcome: CheckOutcome) -> CheckResult {
        CheckResult { cause: cause.into(), check: "check".into(), outcome, detail: "seen".into() }
    }

    #[test]
    fn beside_a_library_for_another_processor_nothing_of_the_loader_is_confirmed() {
        use CheckOutcome::{Confirms, Neutral, Refutes};
        let given = [("libcxx-missing", Confirms), ("model-missing", Confirms), ("dependency-missing", Refutes)];
        let mut results: Vec<CheckResult> = given.iter().map(|(cause, outcome)| result(cause, *outcome)).collect();
        let before = results.clone();
        settle(&mut results);
        assert_eq!(results, before, "nobody has shown another processor");
        results.push(result(UNLIKE, Confirms));
        settle(&mut results);
        let outcomes: Vec<CheckOutcome> = results.iter().map(|result| result.outcome).collect();
        assert_eq!(outcomes, [Neutral, Confirms, Refutes, Confirms]);
        assert!(results[0].detail.contains("another processor"));
    }

    #[test]
    fn the_causes_are_in_the_catalogue() {
        for id in READ_OFF_LIBRARIES.iter().chain([&UNLIKE]) {
            assert!(cause(id).is_some_and(|known| known.id == *id), "{id}");
        }
    }
}
