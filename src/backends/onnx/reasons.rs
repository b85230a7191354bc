//! The plug-in's verbose log: which nodes it tried, which QNN ops it made from them, and why it rejected a
//! node.
//!
//! Nodes are queried twice, before and after ONNX Runtime changes the layout, and then built; the last
//! message counts.

use crate::event::{LogLevel, clean_text};
use std::collections::HashMap;

/// Maximum number of nodes remembered.
const MOST_NODES: usize = 100_000;
/// Maximum number of backend messages kept per node.
const MOST_WORDS: usize = 5;
/// Longest reason.
const MAX_CHARS: usize = 600;

/// A QNN op that the plug-in made, or tried to make, from a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriedOp {
    /// Its name.
    pub name: String,
    /// Its QNN type.
    pub op_type: String,
    /// Largest number of dimensions among its tensors.
    pub rank: usize,
    /// QNN names of its tensors' types, each once.
    pub types: Vec<String>,
}

/// A refusal by the backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendRefusal {
    /// QNN's code.
    pub code: u64,
    /// The op.
    pub op: TriedOp,
    /// The backend's own messages, oldest first.
    pub words: Vec<String>,
}

/// What the log says about a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeNote {
    /// Whether the plug-in could run it, by its last message.
    pub passed: bool,
    /// Its reason, if not.
    pub reason: Option<String>,
    /// The backend's refusal behind it, if any.
    pub refusal: Option<BackendRefusal>,
}

/// The log, read line by line.
#[derive(Debug, Default)]
pub struct PlacementLog {
    notes: HashMap<String, NodeNote>,
    /// The node a QNN op was made for, by the op's name.
    made_for: HashMap<String, (String, String)>,
    trying: Option<String>,
    /// True while the graph itself is built: all nodes are then named first, followed by all ops.
    building: bool,
    /// Ops of the built graphs, with their types.
    built: Vec<(String, String)>,
    op: TriedOp,
    words: Vec<String>,
    refusal: Option<BackendRefusal>,
    problem: Option<String>,
}

impl PlacementLog {
    /// Processes a message, possibly of several lines.
    pub fn take(&mut self, level: LogLevel, text: &str) {
        if let Some(rest) = after(text, "QNN node builder is trying to add node. Onnx node name: [") {
            // The name may hold brackets; what follows it does not.
            let name = rest.split_once("] onnx node type: [").map_or(rest, |(name, _)| name);
            self.building = self.trying.is_some();
            self.trying = Some(kept(name));
            self.words.clear();
            self.refusal = None;
        } else if let Some(rest) = after(text, "Qnn_OpConfig node name: ") {
            self.op = tried_op(rest);
            if self.building && self.built.len() < MOST_NODES {
                self.built.push((self.op.name.clone(), self.op.op_type.clone()));
            }
            if let Some(node) = self.trying.clone().filter(|_| !self.building && self.made_for.len() < MOST_NODES) {
                self.made_for.insert(self.op.name.clone(), (node, self.op.op_type.clone()));
            }
        } else if let Some(rest) = after(text, "QNN.backendValidateOpConfig() failed for node `") {
            let code = after(rest, "with error code ").and_then(leading_number);
            if let Some(code) = code {
                let words = std::mem::take(&mut self.words);
                self.refusal = Some(BackendRefusal { code, op: self.op.clone(), words });
            }
        } else if let Some(rest) = after(text, "QNN SetupBackend failed ") {
            self.problem.get_or_insert_with(|| kept(rest.lines().next().unwrap_or(rest)));
        } else if text.contains("OrtNodeUnit (")
            && (text.contains("Validation PASSED") || text.contains("Validation FAILED"))
        {
            self.verdict(text);
        } else if level <= LogLevel::Warning && self.trying.is_some() && self.words.len() < MOST_WORDS {
            self.words.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).take(2).map(kept));
        }
    }

    fn verdict(&mut self, text: &str) {
        let passed = text.contains("Validation PASSED");
        let reason = text
            .split_once("REASON : ")
            .map(|(_, reason)| kept(&reason.split_whitespace().collect::<Vec<_>>().join(" ")));
        let refusal = self.refusal.take().filter(|_| !passed);
        for line in text.lines() {
            let Some(name) = node_name(line) else { continue };
            if self.notes.len() >= MOST_NODES && !self.notes.contains_key(&name) {
                continue;
            }
            let before = self.notes.remove(&name).unwrap_or_default();
            let note = if passed {
                NodeNote { passed, reason: None, refusal: None }
            } else {
                NodeNote { passed, reason: reason.clone(), refusal: refusal.clone().or(before.refusal) }
            };
            self.notes.insert(name, note);
        }
        self.trying = None;
        self.building = false;
        self.words.clear();
    }

    /// A message about a node, under ONNX Runtime's name at that time.
    pub fn note(&self, node: &str) -> Option<&NodeNote> {
        self.notes.get(node)
    }

    /// The node an op was made for, and the op's QNN type.
    pub fn made_for(&self, op: &str) -> Option<(&str, &str)> {
        self.made_for.get(op).map(|(node, op_type)| (node.as_str(), op_type.as_str()))
    }

    /// Names and types of the built graphs' ops, in order.
    pub fn built(&self) -> impl Iterator<Item = (&str, &str)> {
        // A graph of one node is built during the query: its ops are those of the last query.
        let lone = self.built.is_empty().then(|| self.made_for.iter().map(|(op, (_, op_type))| (op, op_type)));
        let built = self.built.iter().map(|(op, op_type)| (op, op_type));
        built.chain(lone.into_iter().flatten()).map(|(op, op_type)| (op.as_str(), op_type.as_str()))
    }

    /// Why the backend did not start, if so.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The nodes the plug-in could not run, by name, with its messages.
    pub fn failed(&self) -> Vec<(&str, &NodeNote)> {
        let mut failed: Vec<(&str, &NodeNote)> =
            self.notes.iter().filter(|(_, note)| !note.passed).map(|(name, note)| (name.as_str(), note)).collect();
        failed.sort_by_key(|(name, _)| *name);
        failed
    }
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark).map(|(_, rest)| rest)
}

/// Log text for display: bounded, and without the colours ONNX Runtime puts around it.
fn kept(text: &str) -> String {
    let plain = text.replace("\u{1b}[m", "");
    let text: String = clean_text(plain.trim()).chars().take(MAX_CHARS).collect();
    text.trim_end_matches('.').to_owned()
}

fn leading_number(text: &str) -> Option<u64> {
    let digits: &str = &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())];
    digits.parse().ok()
}

/// `Operator type: Add Node name: add_rank6 Node index: 5`: names may contain spaces.
fn node_name(line: &str) -> Option<String> {
    let rest = after(line, "Node name: ").filter(|_| line.contains("Operator type: "))?;
    let name = rest.rsplit_once(" Node index: ").map_or(rest, |(name, _)| name);
    Some(clean_text(name.trim()))
}

/// `add_rank6 package_name: qti.aisw QNN_op_type: ElementWiseAdd num_of_inputs: 2 ...`, then a line for each tensor.
fn tried_op(text: &str) -> TriedOp {
    let name = text.split_once(" package_name: ").map_or(text, |(name, _)| name);
    let op_type = after(text, "QNN_op_type: ").and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
    let mut op = TriedOp { name: kept(name), op_type: kept(op_type), ..TriedOp::default() };
    for line in text.lines().skip(1).take(64) {
        if let Some(rank) = after(line, " rank=").and_then(leading_number) {
            op.rank = op.rank.max(usize::try_from(rank).unwrap_or(0));
        }
        let dtype = after(line, "dataType=").and_then(|rest| rest.split_whitespace().next());
        if let Some(dtype) = dtype.map(|dtype| kept(dtype.trim_start_matches("QNN_DATATYPE_")))
            && !op.types.contains(&dtype)
            && op.types.len() < 8
        {
            op.types.push(dtype);
        }
    }
    op
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log of a file, message by message: a message begins with its level.
    fn read(text: &str) -> PlacementLog {
        let mut log = PlacementLog::default();
        let mut message = String::new();
        for line in text.lines() {
            let marks = ["[V:onnxruntime", "[I:onnxruntime", "[W:onnxruntime", "[E:onnxruntime"];
            let begins = marks.iter().any(|mark| line.contains(mark));
            if begins && !message.is_empty() {
                log.take(LogLevel::Verbose, &std::mem::take(&mut message));
            }
            message.push_str(line);
            message.push('\n');
        }
        log.take(LogLevel::Verbose, &message);
        log
    }

    #[test]
    fn the_last_word_on_each_node_holds() {
        let log = read(include_str!("../../../tests/data/onnx/split-partition-verbose.log"));
        let failed: Vec<_> = log.failed().into_iter().map(|(name, _)| name).collect();
        assert_eq!(failed, ["hardmax_mid"]);
        let note = log.note("hardmax_mid").unwrap();
        let reason = note.reason.as_deref().unwrap();
        assert!(reason.starts_with("Operators of type `Hardmax` are not supported by QNN EP"), "{reason}");
        assert!(log.note("conv1_token_1").unwrap().passed && log.note("softmax").unwrap().passed);
    }

    #[test]
    fn a_refusal_has_code_rank_and_types() {
        let log = read(include_str!("../../../tests/data/onnx/refuse-htp-verbose.log"));
        let note = log.note("add_rank6").unwrap();
        let refusal = note.refusal.as_ref().unwrap();
        assert_eq!((refusal.code, refusal.op.rank, refusal.op.op_type.as_str()), (3110, 6, "ElementWiseAdd"));
        assert_eq!(refusal.op.types, ["FLOAT_32"]);
        assert_eq!(note.reason.as_deref(), Some("Failed to add node"));
        assert!(log.note("sig").unwrap().passed);
        assert_eq!(log.made_for("relu_a_2"), Some(("relu_a", "Relu")));
    }

    #[test]
    fn a_backend_that_does_not_load_is_the_problem() {
        let log = read(include_str!("../../../tests/data/onnx/backend-missing.log"));
        let problem = log.problem().unwrap();
        assert!(
            problem.starts_with("Unable to load backend") && problem.ends_with("No such file or directory"),
            "{problem}"
        );
        assert!(log.failed().is_empty());
    }

    #[test]
    fn foreign_text_never_panics() {
        let mut log = PlacementLog::default();
        for text in [
            "",
            "QNN node builder is trying to add node. Onnx node name: [",
            "Qnn_OpConfig node name: ",
            "Qnn_OpConfig node name: é\n rank=99999999999999999999 dataType=",
            "QNN.backendValidateOpConfig() failed for node ` with error code x",
            "Validation FAILED OrtNodeUnit (\nOperator type: Node name:  Node index: \nREASON : ",
            "QNN SetupBackend failed ",
        ] {
            log.take(LogLevel::Error, text);
        }
    }
}
