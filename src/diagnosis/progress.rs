//! What succeeded before the failure, and the first lines that state one: the answer if no cause is known.

use super::cases::{self, NearCase};
use super::evidence::Evidence;
use super::near::names_qnn;
use super::statements::{Classes, Decoded, Level, Statement, Statements, decode, lexicon};
use std::collections::BTreeSet;

/// A step of a run, and the words that show its success.
pub struct Step {
    /// The result, for users.
    pub what: &'static str,
    /// The line has to contain one of these.
    pub words: &'static [&'static str],
    /// The line must contain none of these.
    pub not: &'static [&'static str],
}

const BAD: &[&str] = &["fail", "error", "unable", "could not", "cannot"];

/// The steps in order.
pub const STEPS: [Step; 9] = [
    Step {
        what: "the backend library was loaded",
        words: &[
            "backend     build version",
            "backend build id",
            "qnnlog_create exit",
            "logcreate: ok",
            "core api 2.",
            "initializing htpprovider",
            "cpubackend creation start",
        ],
        not: BAD,
    },
    Step {
        what: "the backend was created",
        words: &[
            "qnnbackend_create done",
            "backendcreate: ok",
            "backendcreate 0",
            "cpubackend creation end",
            "initialized backend successfully",
            "backend created",
        ],
        not: BAD,
    },
    Step {
        what: "the device was opened",
        words: &[
            "qnndevice_create done. device = 0x1. status 0x0",
            "devicecreate: ok",
            "devicecreate 0",
            "connection to qnn stub established",
            "device created",
        ],
        not: BAD,
    },
    Step {
        what: "a context was created",
        words: &[
            "contextcreate: ok",
            "qnncontext_create done",
            "createfrombinary done successfully",
            "contextcreatefrombinary: ok",
            "context created",
            "initialized context",
        ],
        not: BAD,
    },
    Step {
        what: "the graph was composed",
        words: &[
            "composegraphs: ok",
            "graph composed",
            "composegraphs succeeded",
            "composed graphs",
            "graphretrieve: ok",
            "retrieved graph",
        ],
        not: BAD,
    },
    Step {
        what: "the graph was finalized",
        words: &[
            "qnngraph_finalize done. status 0x0",
            "graphfinalize: ok",
            "finalized graphs",
            "completed stage: completion",
        ],
        not: BAD,
    },
    Step {
        what: "an inference ran",
        words: &[
            "qnngraph_execute done. status 0x0",
            "graphexecute: ok",
            "finished executing graphs",
            "execution successful",
        ],
        not: BAD,
    },
    Step {
        what: "the converter wrote the model",
        words: &["conversion complete!", "info_conversion_success", "info_write_success", "model cpp saved"],
        not: BAD,
    },
    Step {
        what: "a context binary was written",
        words: &["serialized a context bin", "contextgetbinary: ok", "saved context binary", "binary saved"],
        not: BAD,
    },
];

/// Index of the first entry of [`STEPS`] that is a result.
const RESULTS: usize = 6;

/// What a program prints when it throws or aborts.
const CRASHES: [&[u8]; 6] = [
    b"terminating with uncaught",
    b"Converted Failed!",
    b"terminate called after",
    b"RuntimeError: ",
    b"Fatal signal ",
    b"Unhandled exception",
];
/// Failing lines that are kept.
const KEPT: usize = 6;
/// The same, including those that may come from another program.
const MOST: usize = 24;
/// Speakers whose every line is about QNN.
const QNNS: [&str; 10] = [
    "qnn-net-run",
    "qnn-context-binary-generator",
    "converter",
    "genie",
    "snpe",
    "app-builder",
    "fastrpc",
    "htp backend",
    "gpu backend",
    "cpu backend",
];
/// Lines in which speakers are looked for.
const LISTENED: u32 = 64;

/// What is known about a failure without a known cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Unexplained {
    /// The first line that states a failure.
    pub first: Evidence,
    /// Who reports it, if the lines say so.
    pub who: Option<&'static str>,
    /// What it is about, in the lexicon's words: `missing: model`.
    pub states: Vec<String>,
    /// Codes in the failing lines, with their meanings.
    pub codes: Vec<Decoded>,
    /// Steps that succeeded before, which rules them out.
    pub went_well: Vec<(&'static str, Evidence)>,
    /// What to collect next, with the exact variables and flags for this stack.
    pub collect: Vec<&'static str>,
    /// Known cases that make similar statements.
    pub nearest: Vec<NearCase>,
}

/// A line that states a failure.
#[derive(Debug, Clone)]
struct Failing {
    evidence: Evidence,
    statements: Statements,
    codes: Vec<Decoded>,
    /// The line itself is about QNN.
    is_of_qnn: bool,
}

/// Collected while the log is read.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    steps: Vec<(usize, Evidence)>,
    failing: Vec<Failing>,
    errors: usize,
    /// Who speaks in lines that are about QNN.
    speakers: Classes,
    listened: u32,
    /// The program threw or aborted.
    crashed: bool,
}

impl Progress {
    /// Records a step that succeeded.
    pub fn went_well(&mut self, step: usize, evidence: Evidence) {
        self.steps.push((step, evidence));
    }

    /// Records a line that states a failure. False if nothing of it is kept, nor would be of another line
    /// like it.
    pub fn failed(&mut self, evidence: Evidence, line: &[u8]) -> bool {
        let statements = Statements::of(line);
        let before = self.crashed;
        self.crashed |= CRASHES.iter().any(|words| memchr::memmem::find(line, words).is_some()) || is_exception(line);
        let is_error = statements.level == Level::Error;
        let is_news = self.crashed != before;
        if !is_error && !statements.is_failure() {
            return is_news;
        }
        // Warnings before the first error are kept, but do not take the place of errors.
        if self.failing.len() >= KEPT && !is_error || self.errors >= KEPT || self.failing.len() >= MOST {
            return is_news;
        }
        // Frameworks, the kernel and Python report on all programs.
        let is_qnns = |class: &u8| QNNS.contains(&lexicon().who_name(*class));
        let is_of_qnn = names_qnn(line) || statements.who.iter().any(|class| is_qnns(&class));
        self.errors += usize::from(is_error && is_of_qnn);
        self.failing.push(Failing { evidence, codes: decode(line), statements, is_of_qnn });
        true
    }

    /// Records who speaks in a line that is about QNN.
    pub fn listen(&mut self, line: &[u8]) {
        if self.listened < LISTENED {
            self.listened += 1;
            lexicon().who(line).into_iter().for_each(|(class, _)| self.speakers.insert(class));
        }
    }

    /// True if no more failing lines are needed.
    pub fn is_enough(&self) -> bool {
        self.errors >= KEPT || self.failing.len() >= MOST
    }

    /// True if the log shows a result: an inference, a converted model or a context binary.
    pub fn has_result(&self) -> bool {
        self.steps.iter().any(|(step, _)| *step >= RESULTS)
    }

    /// The failing lines that are kept.
    pub fn failing_lines(&self) -> impl Iterator<Item = &str> {
        self.failing.iter().map(|failing| failing.evidence.text.as_str())
    }

    /// What to collect next on the stack that wrote these lines.
    pub fn collect(&self) -> Vec<&'static str> {
        collect(&self.speakers())
    }

    /// The speakers, those that state failures first.
    fn speakers(&self) -> Vec<&'static str> {
        let failing = self.failing.iter().flat_map(|failing| failing.statements.who.iter());
        failing.chain(self.speakers.iter()).map(|class| lexicon().who_name(class)).collect()
    }

    /// The answer if no cause is well founded; `None` if nothing failed. `succeeded` is the line at which the
    /// program finally succeeded; `has_causes` is true if there is any cause at all.
    pub fn at_end(mut self, has_causes: bool, succeeded: Option<u64>, exit_status: Option<i32>) -> Option<Unexplained> {
        // What came before a successful run did not fail it.
        if let Some(line) = succeeded {
            self.failing.retain(|failing| failing.evidence.line > line);
        }
        let is_error = |failing: &&Failing| failing.statements.level == Level::Error;
        // Without an error or a bad end, warnings are not a failure.
        let ended_badly = exit_status.is_some_and(|status| status != 0) || has_causes || self.crashed;
        let unsaid = |failing: &&Failing| failing.statements.level == Level::Unsaid;
        let of_qnn = || self.failing.iter().filter(|failing| failing.is_of_qnn);
        let grave = of_qnn().find(is_error).or_else(|| of_qnn().find(unsaid));
        // Other programs' lines count if this one is known to have failed. A warning before a crash says less
        // than the crash.
        let any = || {
            self.failing
                .iter()
                .find(is_error)
                .or_else(|| self.failing.iter().find(unsaid))
                .or_else(|| self.failing.first())
        };
        let other = || self.failing.iter().find(is_error).filter(|_| self.listened == 0);
        let first = grave.or_else(|| if ended_badly { any() } else { other() })?;
        let lexicon = lexicon();
        let who = |failing: &Failing| failing.statements.who.iter().next().map(|class| lexicon.who_name(class));
        let states = first.statements.list.iter().map(Statement::shown);
        let mut codes: Vec<Decoded> = Vec::new();
        for code in self.failing.iter().flat_map(|failing| &failing.codes) {
            if !codes.iter().any(|known| known.space == code.space && known.value == code.value) {
                codes.push(code.clone());
            }
        }
        let mut steps = self.steps.clone();
        steps.sort_by_key(|step| step.0);
        let speakers = self.speakers();
        let mut signs = BTreeSet::new();
        for failing in &self.failing {
            cases::signs(&failing.statements, &failing.codes, &mut signs);
        }
        Some(Unexplained {
            first: first.evidence.clone(),
            who: who(first).or_else(|| self.failing.iter().find_map(who)).or_else(|| speakers.first().copied()),
            states: states.collect(),
            codes,
            went_well: steps.into_iter().map(|(step, evidence)| (STEPS[step].what, evidence)).collect(),
            collect: collect(&speakers),
            nearest: cases::nearest(&signs),
        })
    }
}

/// True for the last line of a Python traceback: `module.NameError: what`, starting in the first column.
fn is_exception(line: &[u8]) -> bool {
    const ENDS: [&[u8]; 9] = [
        b"Error",
        b"Exception",
        b"Fail",
        b"InvalidArgument",
        b"NoSuchFile",
        b"InvalidGraph",
        b"InvalidProtobuf",
        b"NotImplemented",
        b"NotFound",
    ];
    let Some(end) = memchr::memmem::find(line, b": ") else { return false };
    let name = &line[..end];
    let is_name = name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'.' || *byte == b'_');
    is_name && ENDS.iter().any(|ending| name.ends_with(ending) && (name.len() > ending.len() || ending.len() > 5))
}

/// What to collect next, by speaker.
const COLLECT: [(&str, &str); 11] = [
    ("qnn-net-run", "run qnn-net-run again with --log_level verbose, and note its exit status (echo $?)"),
    ("qnn-context-binary-generator", "run it again with --log_level verbose, and note its exit status (echo $?)"),
    (
        "converter",
        "run the converter again with --debug 3 (or -v), and keep the whole traceback and `python3 --version; uname -m`",
    ),
    ("genie", "run genie-t2t-run with --log verbose (on Android its lines are in logcat), and keep the config JSON"),
    (
        "onnxruntime",
        "create the session with SessionOptions().log_severity_level = 0 and keep the lines with REASON and with error codes",
    ),
    (
        "executorch",
        "compile with debug logs on (QnnExecuTorchLogLevel.kLogLevelDebug) and run qnn_executor_runner with --logging_level 1; on a device also `logcat -d`",
    ),
    (
        "litert",
        "run with --qnn_log_level / Qualcomm options log level verbose, and `logcat -d -s litert tflite QnnDsp`",
    ),
    ("snpe", "run snpe-net-run with --debug and --userlogs=verbose"),
    ("app-builder", "QNNConfig.Config(..., log_level = LogLevel.VERBOSE) before the first model"),
    ("llama.cpp", "export GGML_HEXAGON_VERBOSE=1, and run llama-cli with -v"),
    ("ai-hub", "download the job's log: `qai-hub get-job --job JOB_ID` shows its address"),
];

/// What to collect on every stack.
const COLLECT_ALWAYS: &str = "on an Android device: adb shell logcat -d | grep -E 'QnnDsp|adsprpc|fastrpc|linker|avc' > device.log, then qnnscope diagnose device.log";

fn collect(speakers: &[&str]) -> Vec<&'static str> {
    let mut list: Vec<&'static str> = COLLECT.iter().filter(|row| speakers.contains(&row.0)).map(|row| row.1).collect();
    if list.is_empty() {
        list.push("raise the QNN log level (--log_level verbose, log_severity_level=0, or QNN's log level verbose in code) and diagnose that log");
    }
    list.push(COLLECT_ALWAYS);
    list.push("qnnscope doctor: what of libraries, device and versions does not fit");
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_traceback_is_known() {
        for line in [
            "ValueError: x",
            "onnxruntime.capi.onnxruntime_pybind11_state.EPFail: [ONNXRuntimeError] : 11 : EP_FAIL : Failed to open",
            "torch._dynamo.exc.InternalTorchDynamoError: y",
            "builtins.Exception: z",
        ] {
            assert!(is_exception(line.as_bytes()), "{line}");
        }
        for line in
            ["Error: x", "  ValueError: x", "error: x", "a b Error: x", "Fail: x", "ValueError", "WarningFail x: y"]
        {
            assert!(!is_exception(line.as_bytes()), "{line}");
        }
    }
}
