//! What the log of HTP's compiler reveals: how much data moves to and from DDR, and where compilation
//! stopped.

use crate::backends::stopped::finalized_op;
use crate::models::Op;
use regex::Regex;
use std::sync::LazyLock;

/// First line of the compiler's summary; there is one per graph.
const SUMMARY: &str = "DDR bandwidth summary";
/// Errors that say no more than that something failed, and one that QAIRT 2.51 prints for every graph.
const HOLLOW: [&str; 6] = [
    "unexpected GraphHtpSettings option",
    "graph prepare failed",
    "Failed to finalize graph",
    "prepare failed (err=",
    "Lookup in ",
    "Failed to successfully compose graph",
];

/// Why a backend refuses an op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// One sentence.
    pub text: String,
    /// The offending tensor: its index among the op's inputs and outputs, counted through.
    pub tensor: Option<usize>,
    /// How to fix it.
    pub remedy: Option<String>,
    /// Id of the cause, if there is no doubt about it.
    pub cause: Option<&'static str>,
    /// The backend gave no reason.
    pub is_guess: bool,
}

/// Traffic between VTCM and DDR in one execution, as planned by the compiler, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Evicted because VTCM was full.
    pub spill: Option<u64>,
    /// Read back after a spill.
    pub fill: Option<u64>,
    /// Read in total.
    pub read: Option<u64>,
    /// Written in total.
    pub write: Option<u64>,
}

/// The summaries in a log, in the order in which the graphs were compiled.
pub fn traffic<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Traffic> {
    let mut found: Vec<Traffic> = Vec::new();
    for line in lines.map(str::trim) {
        if line.contains(SUMMARY) {
            found.push(Traffic::default());
        } else if let (Some((name, bytes)), Some(last)) = (line.split_once('='), found.last_mut()) {
            let place = match name {
                "spill_bytes" => &mut last.spill,
                "fill_bytes" => &mut last.fill,
                "read_total_bytes" => &mut last.read,
                "write_total_bytes" => &mut last.write,
                _ => continue,
            };
            *place = bytes.trim().parse().ok();
        }
    }
    found
}

/// True if this module needs the line of the log.
pub fn matters(line: &str) -> bool {
    line.contains("_bytes=") || line.contains(SUMMARY) || line.contains("generated:")
}

static REFUSED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"op `(.+?)` \(\S*\) was refused by ").ok());

/// The op at which the compiler stopped: it names the source ops of those that failed.
pub fn stopped_at<'a>(mut lines: impl Iterator<Item = &'a str>) -> Option<String> {
    lines.find_map(|line| finalized_op(line).map(ToOwned::to_owned))
}

static NOT_BUILT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:no properties registered for|could not create op:) q::(?:QNN_(\w+))?").ok());

/// Why the compiler could not build an op, from its errors; `hardware` is the architecture it compiled for.
pub fn why_not_built(op: &Op, log: &[String], hardware: Option<&str>) -> Why {
    let on = hardware.unwrap_or("this hardware");
    let told = errors(log.iter().map(String::as_str));
    let found = |words: &[&str]| told.iter().find(|line| words.iter().any(|word| line.contains(word))).copied();
    if let Some(line) = found(&["bytes of TCM", "to fit in TCM"]) {
        return Why {
            text: line.to_owned(),
            tensor: None,
            remedy: None,
            cause: Some("finalize-vtcm-overflow"),
            is_guess: false,
        };
    }
    if let Some(line) = found(&["estimated allocation"]) {
        return Why {
            text: line.to_owned(),
            tensor: None,
            remedy: None,
            cause: Some("finalize-memory-limit"),
            is_guess: false,
        };
    }
    // The compiler names the op that it derived from ours; its internal ops have other names.
    let built =
        NOT_BUILT.as_ref().map(|pattern| log.iter().filter_map(|line| pattern.captures(line)).collect::<Vec<_>>());
    let built = built.unwrap_or_default();
    let made = built.iter().find_map(|found| found.get(1)).map(|name| name.as_str());
    let tensors = || op.inputs.iter().chain(&op.outputs);
    // The tensors of an op are unknown if only the log names it.
    let floats = tensors().next().is_none() || tensors().any(|tensor| tensor.dtype.is_float());
    if !built.is_empty() && floats && log.iter().any(|line| line.contains("PlainFloat")) {
        let op_type = made.or(Some(op.op_type.as_str()).filter(|name| !name.is_empty())).unwrap_or("the op");
        let remedy = "quantise the model, or compile for a part with fp16 (on a PC such as --soc-model 57), or run it on the \
                      GPU or CPU";
        return Why {
            text: format!("{op_type} has no float variant on {on}"),
            tensor: tensors().position(|tensor| tensor.dtype.is_float()),
            remedy: Some(remedy.to_owned()),
            cause: Some("float-unsupported-on-arch"),
            is_guess: false,
        };
    }
    let text = match (made, told.first()) {
        (Some(made), _) => format!("HTP's compiler could not build {made} for {on}"),
        (None, Some(line)) => format!("HTP's compiler says: {line}"),
        (None, None) => "HTP's compiler does not say why".to_owned(),
    };
    Why { text, tensor: None, remedy: None, cause: None, is_guess: false }
}

/// The op named by a failed composition.
pub fn refused_op(message: &str) -> Option<String> {
    Some(REFUSED.as_ref()?.captures(message)?[1].to_owned())
}

/// The errors that say something, each once.
pub fn errors<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for line in lines.map(str::trim) {
        if !HOLLOW.iter().any(|hollow| line.contains(hollow)) && !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_log_of_a_compiler_that_gave_up() {
        let log = include_str!("../../../tests/data/run-logs/htp-finalize-1002-hardswish-info.log");
        let lines = || log.lines().map(|line| line.rsplit("<E>").next().unwrap_or(line));
        assert_eq!(stopped_at(lines()).as_deref(), Some("b0/res"));
        assert!(traffic(log.lines()).is_empty());
        let errors = errors(log.lines().filter(|line| line.contains("ERROR")));
        assert!(errors[0].contains("could not create op: q::flat_from_vtcm"), "{errors:?}");
    }

    #[test]
    fn summaries_belong_to_their_graphs() {
        let log = "spill_bytes=9\n====== DDR bandwidth summary ======\nspill_bytes=1\nfill_bytes=2\nwrite_total_bytes=3\n\
                   read_total_bytes=4\nother=1\n====== DDR bandwidth summary ======\nspill_bytes=x\nfill_bytes=5\n";
        let first = Traffic { spill: Some(1), fill: Some(2), read: Some(4), write: Some(3) };
        assert_eq!(traffic(log.lines()), [first, Traffic { fill: Some(5), ..Traffic::default() }]);
        assert!(log.lines().filter(|line| matters(line)).count() == 9);
    }

    #[test]
    fn a_refused_op_is_found_in_the_message() {
        let message = "op `a `b` c` (Relu) was refused by graphAddNode with 6005 (X: y); then it failed";
        assert_eq!(refused_op(message).as_deref(), Some("a `b` c"));
        assert_eq!(refused_op("op was refused"), None);
    }
}
