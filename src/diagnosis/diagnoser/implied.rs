//! Logs in which no line names QNN. A user brought them here, so a short one of a program that runs models is
//! taken as one of QNN; any other only if its failure is plain, and one of models.

use super::Diagnoser;
use crate::diagnosis::finding::Finding;
use crate::diagnosis::learned::SHORTEST;
use crate::diagnosis::pattern::words;
use crate::diagnosis::score::{lower, rounded};
use crate::diagnosis::statements::{Level, level};
use aho_corasick::AhoCorasick;
use std::sync::LazyLock;

/// The cause of a program that only says that something failed.
pub(super) const HIDDEN: &str = "error-hidden-by-program";
/// Longer logs are of many programs: only those that name QNN are of QNN.
const IMPLIED_LINES: u64 = 200;
/// Confidence that a cause needs where nothing but the user ties the log to QNN.
const PLAIN: f64 = 0.75;
/// Factor for its confidence.
const UNTIED: f64 = 0.9;

/// Causes that programs of every kind run into, and states of QNN's own handles, which QNN would name.
const ANYBODYS: [&str; 8] = [
    "disk-full",
    "host-out-of-memory",
    "wrong-elf-class",
    "dependency-missing",
    "timed-out",
    "output-folder-unusable",
    "session-leak-reinit",
    "graph-execute-invalid-handle",
];
/// How likely a text ends as known logs of other programs do that may be one of them.
const COMMON_WORDS: f32 = 0.3;
/// The same, if it may be one of another program by its words.
const COMMON: [&str; 3] = ["input-size-mismatch", "download-failed", "converter-environment"];
/// Causes that need a word of a model's file or of its conversion: other programs have options, configurations and
/// shapes, too.
const MANYS: [&str; 12] = [
    "cpu-fallback",
    "option-missing",
    "option-unsupported",
    "download-failed",
    "api-misuse",
    "option-unknown",
    "config-invalid",
    "model-missing",
    "input-missing",
    "shape-mismatch",
    "converter-environment",
    "soc-unknown-to-sdk",
];

/// How likely a text without a word of models ends as known logs of other programs do.
const OTHERS_WORDS: f32 = 0.6;
/// Lines at the end of a text that say what it failed of.
const LAST_LINES: u64 = 6;
/// Lines at the end of which none may be of a program that has nothing to do with models.
const LAST_LINES_OF_OTHERS: usize = 4;
/// Programs that have nothing to do with models, and speak under their own names.
const OTHERS: [&str; 31] = [
    "E",
    "gzip",
    "tar",
    "fatal",
    "psql",
    "redis-server",
    "rsync",
    "wget",
    "apache",
    "apt",
    "cargo",
    "docker",
    "dpkg",
    "gcc",
    "git",
    "helm",
    "kernel",
    "kubectl",
    "ld",
    "mysql",
    "nginx",
    "npm",
    "postgres",
    "redis",
    "rustc",
    "snap",
    "ssh",
    "sshd",
    "sudo",
    "systemd",
    "terraform",
];

/// Words of models' files and of their conversion.
const FILES: [&str; 9] = ["onnx", "tflite", "litert", "gguf", "mnn", "aimet", "quantiz", "quantis", "quant_"];
/// Words of the hardware and its software, which may be names of the user's own files and programs.
const OURS: [&str; 25] = [
    "logit",
    ".raw",
    ".npy",
    "infer",
    "calib",
    "modelzoo",
    "libmodel",
    "input_list",
    "array with shape",
    "inference",
    "tensor",
    "models/",
    "--backend",
    "npu",
    "htp",
    "qnn",
    "hexagon",
    "snapdragon",
    "qairt",
    "qcom",
    "adreno",
    "cdsp",
    "torch",
    "tensorflow",
    "keras",
];
/// Words of a line that tells of a success.
const SUCCESSES: [&str; 10] = [
    "succeeded",
    "success",
    "recovered",
    " done",
    "finished",
    "completed",
    " loaded",
    "inference took",
    "all checks",
    "saved ",
];

/// Words of a line that tells of failures beside successes.
const BUT: [&[u8]; 14] = [
    b" 0/",
    b"fail",
    b"Fail",
    b"error",
    b"Error",
    b" 0 ok",
    b"nsuccess",
    b"not ",
    b"n't ",
    b"othing",
    b"exit code",
    b"exit status",
    b"leanup",
    b"clean-up",
];

static FINDERS: LazyLock<[Option<AhoCorasick>; 2]> = LazyLock::new(|| [words(FILES), words(OURS)]);
static HARDWARE: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| words(["npu", "htp", "qnn", "hexagon"]));
static SUCCESS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| words(SUCCESSES));

/// What the start of a log is about.
#[derive(Debug, Clone, Default)]
pub(super) struct Subject {
    /// It names models' files or their conversion.
    is_files: bool,
    /// It has words of the hardware.
    is_ours: bool,
    /// The last line that tells of a success.
    success: u64,
}

impl Subject {
    pub fn note(&mut self, number: u64, line: &[u8]) {
        if number > IMPLIED_LINES {
            return;
        }
        let [files, ours] = FINDERS.each_ref();
        let begins = |at: usize| at == 0 || line[at] == b'.' || !line[at - 1].is_ascii_alphabetic();
        let has = |finder: &Option<AhoCorasick>| {
            finder.iter().flat_map(|finder| finder.find_iter(line)).any(|found| begins(found.start()))
        };
        self.is_files = self.is_files || has(files);
        self.is_ours = self.is_ours || has(ours);
        if is_success(line) {
            self.success = number;
        }
    }

    /// True if a line is about models or their hardware.
    fn is_known(&self) -> bool {
        self.is_files || self.is_ours
    }

    /// The last line that tells of a success, of the first lines.
    pub fn success(&self) -> u64 {
        self.success
    }

    /// True if the text may have this cause, which its last line in evidence shows. If nothing else answers (`lines` is
    /// the length of the text then) so may what any program says: of a text without a word of models or their hardware
    /// only its end, which says what it failed of.
    fn allows(&self, finding: &Finding, lines: Option<u64>, none: impl Fn() -> f32) -> bool {
        let last = finding.evidence.iter().map(|evidence| evidence.line).max().unwrap_or_default();
        if let Some(lines) = lines {
            let is_end = || last + LAST_LINES > lines && !finding.evidence.iter().any(|line| is_of_others(&line.text));
            let is_anybodys =
                || ANYBODYS.contains(&finding.id) || COMMON.contains(&finding.id) && none() >= COMMON_WORDS;
            let is_ours = self.is_known() || is_end() && !is_anybodys();
            return is_ours && last >= self.success;
        }
        !ANYBODYS.contains(&finding.id) && (self.is_files || !MANYS.contains(&finding.id)) && last >= self.success
    }
}

/// True for a line that tells of a success and of nothing else.
pub(super) fn is_success(line: &[u8]) -> bool {
    let tells = SUCCESS.as_ref().is_some_and(|finder| finder.is_match(line))
        || line.trim_ascii_start().get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"done"));
    tells && level(line) != Level::Error && !BUT.iter().any(|word| memchr::memmem::find(line, word).is_some())
}

/// `git: unrecognized option`, `Nov 25 10:01:22 web01 nginx[811]: ...`, `npm ERR! ...`.
fn is_of_others(line: &str) -> bool {
    line.split_whitespace().take(6).any(|word| {
        let name = word.split([':', '[']).next().unwrap_or_default();
        OTHERS.contains(&name) && (name.len() < word.len() || line.starts_with("npm ERR!"))
    })
}

impl Diagnoser {
    /// True if no line names QNN or another accelerator, in a log short enough to be of one program.
    pub(super) fn is_untied(&self) -> bool {
        self.lines <= IMPLIED_LINES && self.near.is_unnamed() && !self.has("other-accelerator")
    }

    /// Counts what failures say of files that commands named.
    pub(super) fn note_roles(&mut self) {
        if !self.has("qnn") {
            return;
        }
        for (fact, line) in self.roles.at_end() {
            if let Some(flag) = self.rules.flag(fact) {
                self.flags[flag] = Some(line.clone());
            }
        }
    }

    /// A short log of a program that runs models, and of no other accelerator, is one of QNN.
    pub(super) fn imply_qnn(&mut self) {
        if self.is_untied() && self.has("runs-models") {
            self.set_flag("qnn", "a program that runs models, and no other accelerator");
        }
    }

    /// True if one of the last lines is of a program that has nothing to do with models. The kernel ends those that do.
    fn ends_with_others(&self) -> bool {
        let ends = self.tail.said_last().take(LAST_LINES_OF_OTHERS);
        ends.map(String::from_utf8_lossy).any(|line| is_of_others(&line) && !line.contains("kernel:"))
    }

    /// True if one of the last lines names the accelerator.
    fn ends_with_hardware(&self) -> bool {
        let mut ends = self.tail.said_last().take(LAST_LINES_OF_OTHERS);
        ends.any(|line| HARDWARE.as_ref().is_some_and(|finder| finder.is_match(line)))
    }

    /// The causes of a log that only the user ties to QNN: plain ones, of lines that are no mere warnings.
    pub(super) fn untied_causes(&mut self) -> Vec<Finding> {
        // Messages of several lines may name QNN where no single line does.
        if !self.is_untied() && !self.is_tied_by_user {
            return Vec::new();
        }
        self.is_tied_by_user = true;
        if !self.subject.is_known() && (self.ends_with_others() || self.none_likely(SHORTEST) >= OTHERS_WORDS) {
            return Vec::new();
        }
        self.set_flag("qnn", "only its user ties the text to QNN");
        self.note_roles();
        self.see_near();
        for shown in self.signals.iter_mut().flatten() {
            shown.retain(|line| level(line.text.as_bytes()) != Level::Warning);
        }
        let mut causes = self.scored();
        let lines = self.told.is_last_resort.then_some(self.lines);
        causes.retain(|finding| {
            let is_plain = (finding.confidence >= PLAIN || finding.is_by_words()) && !finding.cause.generic;
            (is_plain || lines.is_some() && finding.id == HIDDEN && self.ends_with_hardware())
                && self.subject.allows(finding, lines, || self.none_likely(1))
        });
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

    const OPTION: &str = "train.py: error: unrecognized arguments: --batchsize 3\n";

    #[test]
    fn an_ordinary_mistake_that_ends_a_short_log_is_told_whoever_made_it() {
        let file = "FileNotFoundError: [Errno 2] No such file or directory: 'settings.json'\n";
        for (log, cause) in [(OPTION, "option-unknown"), (file, "config-invalid")] {
            assert_eq!(first(log), Some(cause), "{log}");
            let good = "step 3 of 9\n".repeat(9);
            assert_eq!(first(&format!("{good}{log}")), Some(cause), "{log}");
            assert_eq!(first(&format!("{log}{good}")), None, "it went on: {log}");
            assert_eq!(first(&format!("using Hailo-8\n{log}")), None, "{log}");
            assert_eq!(first(&format!("{log}all checks finished\n")), None, "{log}");
        }
    }

    #[test]
    fn what_any_program_may_run_out_of_is_none_of_models() {
        for log in [
            "Reading input from stdin\nerror: cannot write: No space left on device\n",
            "kernel: Out of memory: Killed process 14001 (chrome)\n",
            "exec /entrypoint.sh: exec format error\n",
        ] {
            assert_eq!(first(log), None, "{log}");
            let of_models = format!("building the tensors of net.onnx\n{log}");
            assert_ne!(first(&of_models), None, "{of_models}");
        }
    }
}
