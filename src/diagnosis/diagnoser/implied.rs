//! Logs in which no line names QNN. A user brought them here, so a short one of a program that runs models is
//! taken as one of QNN; any other that speaks of models only if its failure is plain.

use super::Diagnoser;
use crate::diagnosis::evidence::Shown;
use crate::diagnosis::finding::Finding;
use crate::diagnosis::score::{lower, rounded, score};
use crate::diagnosis::statements::{Level, level};
use aho_corasick::AhoCorasick;
use std::sync::LazyLock;

/// Longer logs are of many programs: only those that name QNN are of QNN.
const IMPLIED_LINES: u64 = 200;
/// Confidence that a cause needs where nothing but the user ties the log to QNN.
const PLAIN: f64 = 0.75;
/// Factor for its confidence.
const UNTIED: f64 = 0.9;

/// Words of programs that run, convert or quantise models.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = [
        "model",
        "onnx",
        "tflite",
        "torch",
        "tensor",
        "opset",
        "quantiz",
        "quantis",
        "gguf",
        "inference",
        "npu",
        "delegate",
        "litert",
        "mnn",
        "execution provider",
        "neural",
        "calibrat",
        "aimet",
        "quant_",
    ];
    AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
});

/// Whether the start of a log speaks of models.
#[derive(Debug, Clone, Default)]
pub(super) struct Subject {
    is_models: bool,
}

impl Subject {
    pub fn note(&mut self, number: u64, line: &[u8]) {
        if !self.is_models && number <= IMPLIED_LINES {
            self.is_models = WORDS.as_ref().is_some_and(|words| words.is_match(line));
        }
    }
}

impl Diagnoser {
    /// True if no line names QNN or another accelerator, in a log short enough to be of one program.
    fn is_untied(&self) -> bool {
        self.lines <= IMPLIED_LINES && self.near.is_unnamed() && !self.has("other-accelerator")
    }

    /// A short log of a program that runs models, and of no other accelerator, is one of QNN.
    pub(super) fn imply_qnn(&mut self) {
        if self.is_untied() && self.has("runs-models") {
            self.set_flag("qnn", "a program that runs models, and no other accelerator");
        }
    }

    /// The causes of a log that only the user ties to QNN: plain ones, of lines that are no mere warnings.
    pub(super) fn untied_causes(&mut self) -> Vec<Finding> {
        if !self.is_untied() || !self.subject.is_models {
            return Vec::new();
        }
        self.set_flag("qnn", "a text about models, and no other accelerator");
        for (place, evidence) in self.near.at_end() {
            self.see(place, evidence);
        }
        for shown in self.signals.iter_mut().flatten() {
            let lines = std::mem::take(shown);
            let mut kept = Shown::default();
            lines
                .into_lines()
                .filter(|line| level(line.text.as_bytes()) != Level::Warning)
                .for_each(|line| kept.add(line));
            *shown = kept;
        }
        let mut causes = score(self.rules, &self.flags, &self.signals, &self.ignored);
        causes.retain(|finding| finding.confidence >= PLAIN && !finding.cause.generic);
        for finding in &mut causes {
            lower(finding, "no line names QNN", UNTIED);
            finding.confidence = rounded(finding.confidence);
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use crate::diagnosis::Diagnoser;

    const PLAIN_ERROR: &str =
        "ValueError: Cannot set tensor: Got value of type FLOAT64 but expected type FLOAT32 for input 0, name: x:0\n";

    fn first(log: &str) -> Option<&'static str> {
        let mut diagnoser = Diagnoser::new();
        diagnoser.feed(log.as_bytes());
        diagnoser.finish().causes.first().map(|cause| cause.id)
    }

    #[test]
    fn a_short_log_that_only_its_user_ties_to_qnn_gets_its_cause_if_that_is_plain() {
        assert_eq!(first(PLAIN_ERROR), Some("input-dtype-mismatch"));
        let of_others = ["[TRT] building the engine\n", "using Hailo-8\n", "device: NVIDIA Orin\n"];
        for other in of_others {
            assert_eq!(first(&format!("{other}{PLAIN_ERROR}")), None, "{other}");
        }
        assert_eq!(first(&PLAIN_ERROR.replace("ValueError", "[WARNING] UserWarning")), None);
        assert_eq!(first(&format!("{PLAIN_ERROR}{}", "one of many programs\n".repeat(200))), None);
    }

    #[test]
    fn what_any_program_may_say_is_none_of_models() {
        for log in
            ["kernel: Out of memory: Killed process 14001 (chrome)\n", "exec /entrypoint.sh: exec format error\n"]
        {
            assert_eq!(first(log), None, "{log}");
        }
    }
}
