//! Times of a profiled session: QNN's own log of its ops, and ONNX Runtime's profile of its nodes.

use crate::backends::profile_log::{
    Decoder, Event as LogEvent, EventType, Message, Method, ProfileLogError, Unit, Value, op_identifier,
};
use crate::event::clean_text;
use serde::Deserialize;
use std::collections::HashMap;
use std::io::Read;

/// Maximum depth of events considered.
const MAX_DEPTH: usize = 8;
/// Maximum number of executions read.
const MOST_EXECUTIONS: usize = 1 << 20;
/// Bytes read at once.
const PIECE: usize = 1 << 20;

/// One op of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpTime {
    /// Its name without the backend's decoration.
    pub name: String,
    /// Microseconds, or cycles.
    pub value: u64,
    /// Whether it counts cycles.
    pub is_cycles: bool,
    /// HTP's number for it.
    pub htp_op: Option<u64>,
}

/// A figure of the backend.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Its value.
    pub value: f64,
}

/// One execution of a partition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Execution {
    /// Its graph.
    pub graph: String,
    /// Its ops in the backend's order.
    pub ops: Vec<OpTime>,
    /// Everything else reported about it.
    pub figures: Vec<Figure>,
}

impl Execution {
    /// The time of the whole execution as QNN reports it, microseconds.
    pub fn qnn_us(&self) -> Option<f64> {
        let named =
            |name: &str| self.figures.iter().find(|figure| figure.name == name && figure.unit == Unit::Microseconds);
        named("QNN (execute) time").or_else(|| named("GRAPH_EXECUTE")).map(|figure| figure.value)
    }

    /// Microseconds per unit of its ops; `None` if the accelerator's time is unknown.
    pub fn us_per_unit(&self) -> Option<f64> {
        if !self.ops.iter().any(|op| op.is_cycles) {
            return Some(1.0);
        }
        let accelerator = self
            .figures
            .iter()
            .find(|figure| figure.name == "Accelerator (execute) time" && figure.unit == Unit::Microseconds)?;
        let cycles: u64 = self.ops.iter().map(|op| op.value).sum();
        (cycles > 0).then(|| accelerator.value / cycles as f64)
    }
}

/// One node of one run, timed by ONNX Runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeTime {
    /// Its name; for a partition, that of the graph.
    pub name: String,
    /// Microseconds.
    pub us: f64,
    /// Whether it is a QNN partition.
    pub is_qnn: bool,
}

/// The times of a profiled session, inference by inference.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    /// QNN's data about each execution, in order.
    pub executions: Vec<Execution>,
    /// ONNX Runtime's data about each run.
    pub runs: Vec<Vec<NodeTime>>,
}

impl Times {
    /// Reads both.
    pub fn read(profile_log: Option<impl Read>, ort_profile: &[u8], cpu: bool) -> Result<Self, ProfileLogError> {
        let executions = profile_log.map(|log| executions(log, cpu)).transpose()?.unwrap_or_default();
        Ok(Self { executions, runs: runs(ort_profile) })
    }

    /// QNN's graphs in order of first execution.
    pub fn graphs(&self) -> Vec<&str> {
        let mut graphs: Vec<&str> = Vec::new();
        for execution in &self.executions {
            if !graphs.contains(&execution.graph.as_str()) {
                graphs.push(&execution.graph);
            }
        }
        graphs
    }

    /// The executions of each inference: every graph once.
    pub fn by_inference(&self) -> Vec<Vec<&Execution>> {
        let mut inferences: Vec<Vec<&Execution>> = Vec::new();
        let mut done: HashMap<&str, usize> = HashMap::new();
        for execution in &self.executions {
            let at = done.entry(&execution.graph).or_default();
            if inferences.len() <= *at {
                inferences.push(Vec::new());
            }
            inferences[*at].push(execution);
            *at += 1;
        }
        inferences
    }

    /// Mean time of a node or partition over all runs that contain it, microseconds.
    pub fn mean_node_us(&self, name: &str) -> Option<f64> {
        let times: Vec<f64> = self.runs.iter().flatten().filter(|node| node.name == name).map(|node| node.us).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / self.runs.len() as f64)
    }

    /// Mean time QNN reports for a graph, microseconds.
    pub fn mean_graph_us(&self, graph: &str) -> Option<f64> {
        let of = self.executions.iter().filter(|execution| execution.graph == graph);
        let times: Vec<f64> = of.filter_map(Execution::qnn_us).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }

    /// Mean times of all QNN ops, by graph and name, microseconds; true if derived from cycles.
    pub fn mean_ops_us(&self) -> HashMap<(&str, &str), (f64, bool)> {
        let mut sums: HashMap<(&str, &str), (f64, bool, u64)> = HashMap::new();
        for execution in &self.executions {
            let Some(factor) = execution.us_per_unit() else { continue };
            for op in &execution.ops {
                let sum = sums.entry((&execution.graph, &op.name)).or_insert((0.0, op.is_cycles, 0));
                sum.0 += op.value as f64 * factor;
                sum.2 += 1;
            }
        }
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for execution in &self.executions {
            *counts.entry(&execution.graph).or_default() += 1;
        }
        sums.into_iter()
            .map(|((graph, op), (sum, derived, _))| {
                let count = counts.get(graph).copied().unwrap_or(1).max(1);
                ((graph, op), (sum / count as f64, derived))
            })
            .collect()
    }
}

/// Reads the executions of a QNN profiling log. `cpu`: from QNN's CPU backend, which prefixes names with `_`.
fn executions(mut log: impl Read, cpu: bool) -> Result<Vec<Execution>, ProfileLogError> {
    let mut decoder = Decoder::new();
    let mut found = Vec::new();
    loop {
        while let Some(chunk) = decoder.next_chunk()? {
            for message in chunk.messages() {
                let is_one =
                    !message.is_private() && matches!(message.method(), Method::Execute | Method::ExecuteAsync);
                if is_one && found.len() < MOST_EXECUTIONS {
                    found.push(execution(&message, cpu));
                }
            }
        }
        // A log that ends within a chunk was cut by a crash: what precedes it counts.
        if decoder.read_from(&mut log, PIECE).map_err(ProfileLogError::Read)? == 0 {
            return Ok(found);
        }
    }
}

fn execution(message: &Message<'_>, cpu: bool) -> Execution {
    let graph = message.graph_name().map_or_else(String::new, |name| clean_text(&name));
    let mut execution = Execution { graph, ..Execution::default() };
    for event in message.events() {
        walk(&event, cpu, 0, &mut execution);
    }
    execution
}

fn walk(event: &LogEvent<'_>, cpu: bool, depth: usize, into: &mut Execution) {
    let value = number(&event.value());
    let name = event.name().unwrap_or_default();
    if event.event_type() == EventType::Node {
        let unit = event.unit();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; a time is no larger")]
        let value = value.unwrap_or(0.0).max(0.0) as u64;
        let identifier = op_identifier(&name, cpu);
        let (name, htp_op) = (clean_text(identifier.name), identifier.op_id);
        into.ops.push(OpTime { name, value, is_cycles: unit == Unit::Cycles, htp_op });
    } else if let Some(value) = value.filter(|_| depth == 0) {
        into.figures.push(Figure { name: clean_text(&name), unit: event.unit(), value });
    }
    if depth < MAX_DEPTH {
        for child in event.events() {
            walk(&child, cpu, depth + 1, into);
        }
    }
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Unsigned(value) => Some(*value as f64),
        Value::Signed(value) => Some(*value as f64),
        Value::Float(value) => Some(f64::from(*value)),
        Value::Double(value) => Some(*value),
        Value::Object { .. } => None,
    }
}

#[derive(Debug, Deserialize)]
struct Trace {
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: Args,
}

#[derive(Debug, Default, Deserialize)]
struct Args {
    #[serde(default)]
    provider: Option<String>,
}

/// Reads ONNX Runtime's profile: an event for each node, and one for each run, which comes after its nodes.
fn runs(profile: &[u8]) -> Vec<Vec<NodeTime>> {
    let mut runs = Vec::new();
    let mut nodes = Vec::new();
    for event in serde_json::from_slice::<Vec<Trace>>(profile).unwrap_or_default() {
        match (event.cat.as_str(), event.name.as_str()) {
            ("Node", name) => {
                let Some(name) = name.strip_suffix("_kernel_time") else { continue };
                let is_qnn = event.args.provider.as_deref().is_some_and(|provider| provider.starts_with("QNN"));
                nodes.push(NodeTime { name: clean_text(name), us: event.dur, is_qnn });
            }
            ("Session", "model_run") if runs.len() < MOST_EXECUTIONS => runs.push(std::mem::take(&mut nodes)),
            _ => {}
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &[u8] = include_bytes!("../../../tests/data/onnx/split-htp-v75-2runs-ortprofile.json");
    const LOG: &[u8] = include_bytes!("../../../tests/data/imports/ort-htp_qnn.log");

    #[test]
    fn a_split_model_on_htp_is_read_whole() {
        let times = Times::read(Some(LOG), PROFILE, false).unwrap();
        assert_eq!((times.runs.len(), times.graphs().len(), times.executions.len()), (2, 2, 4));
        let inferences = times.by_inference();
        assert_eq!(inferences.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        assert_ne!(inferences[0][0].graph, inferences[0][1].graph);
        let first = inferences[0][0];
        assert!(first.ops.iter().any(|op| op.name == "conv1_token_1" && op.is_cycles));
        // The ops' times add up to the accelerator's.
        let accelerator =
            first.figures.iter().find(|figure| figure.name == "Accelerator (execute) time").unwrap().value;
        let sum: f64 = first.ops.iter().map(|op| op.value as f64).sum::<f64>() * first.us_per_unit().unwrap();
        assert!((sum - accelerator).abs() < 1e-6 * accelerator, "{sum} {accelerator}");
        // Each run of ONNX Runtime: partition, hardmax_mid, partition; and a partition takes at least the time QNN
        // reports.
        for run in &times.runs {
            assert_eq!(run.iter().map(|node| node.is_qnn).collect::<Vec<_>>(), [true, false, true]);
            assert_eq!(run[1].name, "hardmax_mid");
        }
        for graph in times.graphs() {
            assert!(times.mean_node_us(graph).unwrap() >= times.mean_graph_us(graph).unwrap(), "{graph}");
        }
    }

    #[test]
    fn damaged_files_are_no_reason_to_panic() {
        for cut in [0, 1, 100, LOG.len() / 2] {
            let _ = Times::read(Some(&LOG[..cut]), &PROFILE[..cut.min(PROFILE.len())], false);
        }
        let none: Option<&[u8]> = None;
        assert_eq!(Times::read(none, b"{}", true).unwrap(), Times::default());
    }
}
