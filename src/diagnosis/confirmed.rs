//! How the results of checks change a diagnosis.

use super::catalogue::cause;
use super::evidence::Evidence;
use super::finding::{Diagnosis, Finding};
use crate::event::{CheckOutcome, CheckResult};

/// Confidence in a cause that a check has confirmed.
const CONFIRMED: f64 = 0.99;
/// Factor for the confidence in a cause that a check has refuted.
const REFUTED: f64 = 0.2;

impl Diagnosis {
    /// Applies the results of checks. Confirmed causes come first, including those that the log did not name;
    /// refuted ones stay, last. Among confirmed causes, one that the log points to comes first, then the one
    /// checked first.
    pub fn take_checks(&mut self, results: &[CheckResult]) {
        for result in results {
            // An old session may name causes that have left the catalogue.
            let Some(known) = cause(&result.cause) else { continue };
            let at = self.causes.iter().position(|finding| finding.id == known.id);
            let at = match at {
                Some(at) => at,
                None if result.outcome == CheckOutcome::Confirms => {
                    self.causes.push(Finding {
                        id: &known.id,
                        confidence: 0.0,
                        confirmed: None,
                        results: Vec::new(),
                        evidence: vec![Evidence { line: 0, text: result.detail.clone() }],
                        signs: Vec::new(),
                        lowered: Vec::new(),
                        codes: Vec::new(),
                        remedy: None,
                        steps: &[],
                        cause: known,
                    });
                    self.causes.len() - 1
                }
                None => continue,
            };
            self.causes[at].results.push(result.clone());
        }
        // All results of a cause count, including those from before it was confirmed.
        for finding in &mut self.causes {
            let all: Vec<CheckResult> = results.iter().filter(|result| result.cause == finding.id).cloned().collect();
            let says = |outcome| all.iter().any(|result: &CheckResult| result.outcome == outcome);
            finding.confirmed = match (says(CheckOutcome::Confirms), says(CheckOutcome::Refutes)) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
            };
            finding.results = all;
        }
        // Confirmed causes come first and refuted ones last.
        let place = |finding: &Finding| match finding.confirmed {
            Some(true) => 0,
            None => 1,
            Some(false) => 2,
        };
        let order = |finding: &Finding| results.iter().position(|result| result.cause == finding.id);
        self.causes.sort_by(|a, b| {
            let by_words = b.confidence.total_cmp(&a.confidence);
            place(a).cmp(&place(b)).then(by_words).then_with(|| order(a).cmp(&order(b)))
        });
        for finding in &mut self.causes {
            match finding.confirmed {
                Some(true) => finding.confidence = CONFIRMED,
                Some(false) => finding.confidence *= REFUTED,
                None => {}
            }
        }
        self.advise();
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnosis::Diagnoser;
    use crate::event::{CheckOutcome, CheckResult};

    fn result(cause: &str, check: &str, outcome: CheckOutcome) -> CheckResult {
        CheckResult { cause: cause.into(), check: check.into(), outcome, detail: "seen".into() }
    }

    #[test]
    fn confirmed_causes_go_first_and_refuted_ones_last() {
        let mut diagnoser = Diagnoser::new();
        diagnoser.feed(b"QnnDsp <E> DspTransport.openSession qnn_open failed, 0x80000406\nQnnDsp <E> Unable to load Skel Library. transportStatus: 9\n");
        let mut diagnosis = diagnoser.finish();
        assert_eq!(diagnosis.causes[0].id, "skel-not-found");
        let before = diagnosis.causes[0].confidence;
        let results = [
            result("stub-skel-build-id-mismatch", "build-ids", CheckOutcome::Confirms),
            result("skel-not-found", "skel-files", CheckOutcome::Refutes),
            result("libcdsprpc-missing", "find", CheckOutcome::Refutes),
            result("no-such-cause", "find", CheckOutcome::Confirms),
        ];
        diagnosis.take_checks(&results);
        let ids: Vec<&str> = diagnosis.causes.iter().map(|finding| finding.id).collect();
        assert_eq!((ids[0], ids.last().copied()), ("stub-skel-build-id-mismatch", Some("skel-not-found")));
        assert_eq!(diagnosis.causes[0].confirmed, Some(true));
        let refuted = diagnosis.causes.last().unwrap();
        assert_eq!(refuted.confirmed, Some(false));
        assert!(refuted.confidence < before / 2.0);
        assert!(!ids.contains(&"libcdsprpc-missing"), "nobody had thought of it");
    }
}
