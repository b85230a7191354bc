//! Which node ran where: ONNX Runtime's record of its assignment, mapped back to the model's names.

use super::reasons::{NodeNote, PlacementLog};
use super::remedies::{Circumstances, explain};
use super::times::Times;
use crate::backends::qnn::onnx::Assignment;
use crate::event::{NodePartition, NodePlacement, NodeProvider, NodesPlaced, clean_text};
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

/// A node of the model, as in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelNode {
    /// Name; may be empty.
    pub name: String,
    /// Its label: its name, or its operator and position.
    pub label: String,
    /// Operator.
    pub op_type: String,
}

/// Everything known about a session.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// The nodes of the model; empty if its file was not read.
    pub model: &'a [ModelNode],
    /// What ONNX Runtime recorded.
    pub assignment: &'a [Assignment],
    /// The plug-in's verbose log.
    pub log: Option<&'a PlacementLog>,
    /// Times of a profiled session.
    pub times: Option<&'a Times>,
    /// Free dimensions without a given size.
    pub free_dimensions: &'a [String],
    /// Name of the QNN provider.
    pub provider: &'a str,
}

/// Where the nodes ran.
pub fn place(known: Known<'_>) -> NodesPlaced {
    let mut names = Names::new(known.model);
    let mut rows: Vec<NodePlacement> =
        known.model.iter().map(|node| row(node.label.clone(), &node.op_type, NodeProvider::None)).collect();
    let mut aliases: Vec<Vec<String>> = known.model.iter().map(|node| vec![node.name.clone()]).collect();
    let mut partitions = Vec::new();
    for piece in known.assignment {
        let is_qnn = piece.provider == known.provider;
        let partition = is_qnn.then_some(partitions.len());
        let provider = if is_qnn { NodeProvider::Qnn } else { NodeProvider::Cpu };
        for node in &piece.nodes {
            let (name, op_type) = (clean_text(&node.name), clean_text(&node.op_type));
            let at = names.find(&name, &op_type).unwrap_or_else(|| {
                let shown = if name.is_empty() { op_type.clone() } else { name.clone() };
                rows.push(NodePlacement { inserted: !known.model.is_empty(), ..row(shown, &op_type, provider) });
                aliases.push(Vec::new());
                rows.len() - 1
            });
            rows[at].provider = provider;
            rows[at].partition = partition;
            aliases[at].push(name);
        }
        if is_qnn {
            let name = format!("partition {}", partitions.len());
            partitions.push(NodePartition { name, nodes: piece.nodes.len(), node_us: None, qnn_us: None });
        }
    }
    let mut placed = NodesPlaced { nodes: rows, partitions, problem: None };
    placed.problem = known.log.and_then(PlacementLog::problem).map(ToOwned::to_owned);
    let problem = placed.problem.clone().filter(|_| placed.is_all_cpu());
    if let Some(times) = known.times {
        time(&mut placed, &aliases, times, known.log);
    }
    let is_compiled = placed.nodes.iter().any(|node| node.op_type == "EPContext");
    let about = Circumstances { free_dimensions: known.free_dimensions, problem: problem.as_deref(), is_compiled };
    for (row, aliases) in placed.nodes.iter_mut().zip(&aliases) {
        match row.provider {
            NodeProvider::Cpu if known.log.is_some() => {
                let told = explain(&row.op_type, note(known.log, aliases), about);
                (row.code, row.reason, row.remedy) = (told.code, Some(told.reason), Some(told.remedy));
            }
            NodeProvider::None => {
                row.reason =
                    Some("ONNX Runtime folded it while loading the model, or merged it into another node".to_owned());
            }
            NodeProvider::Cpu | NodeProvider::Qnn => {}
        }
    }
    placed
}

fn row(node: String, op_type: &str, provider: NodeProvider) -> NodePlacement {
    NodePlacement {
        node,
        op_type: op_type.to_owned(),
        provider,
        partition: None,
        qnn_ops: Vec::new(),
        time_us: None,
        time_derived: false,
        code: None,
        reason: None,
        remedy: None,
        inserted: false,
    }
}

/// The log's verdict on a node under any of these names; a failure outranks a success.
fn note<'a>(log: Option<&'a PlacementLog>, aliases: &[String]) -> Option<&'a NodeNote> {
    let log = log?;
    let mut notes: Vec<&NodeNote> = aliases.iter().rev().filter_map(|name| log.note(name)).collect();
    notes.sort_by_key(|note| note.passed);
    notes.first().copied()
}

/// Adds the times and the QNN ops of each node.
fn time(placed: &mut NodesPlaced, aliases: &[Vec<String>], times: &Times, log: Option<&PlacementLog>) {
    let graphs = times.graphs();
    let by_alias: HashMap<&str, usize> = aliases
        .iter()
        .enumerate()
        .flat_map(|(at, names)| names.iter().map(move |name| (name.as_str(), at)))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    let ops = times.mean_ops_us();
    let mut seen = HashSet::new();
    let mut of_partition: HashMap<&str, Vec<usize>> = HashMap::new();
    for (graph, op) in times.executions.iter().flat_map(|one| one.ops.iter().map(move |op| (one.graph.as_str(), op))) {
        if !seen.insert((graph, op.name.as_str())) {
            continue;
        }
        let Some(&at) = node_of(&op.name, log, &by_alias).and_then(|name| by_alias.get(name)) else { continue };
        let node = &mut placed.nodes[at];
        node.qnn_ops.push(op.name.clone());
        if let Some((us, derived)) = ops.get(&(graph, op.name.as_str())) {
            node.time_us = Some(node.time_us.unwrap_or(0.0) + us);
            node.time_derived |= derived;
        }
        of_partition.entry(graph).or_default().extend(node.partition);
    }
    for (order, graph) in graphs.iter().enumerate() {
        // The partition with most of its ops; if none is known, the order decides.
        let votes = of_partition.get(graph).map(Vec::as_slice).unwrap_or_default();
        let most = (0..placed.partitions.len())
            .max_by_key(|at| (votes.iter().filter(|vote| vote == &at).count(), *at == order));
        if let Some(partition) = most.and_then(|at| placed.partitions.get_mut(at)) {
            (*graph).clone_into(&mut partition.name);
            partition.qnn_us = times.mean_graph_us(graph);
            partition.node_us = times.mean_node_us(graph);
        }
    }
    for (node, aliases) in placed.nodes.iter_mut().zip(aliases).filter(|(node, _)| node.provider == NodeProvider::Cpu) {
        node.time_us = aliases.iter().filter(|name| !name.is_empty()).find_map(|name| times.mean_node_us(name));
    }
}

/// The node behind a QNN op: by its name, which may have a number appended, or from the log.
pub fn node_of<'a>(
    op: &'a str,
    log: Option<&'a PlacementLog>,
    known: &HashMap<&str, usize, impl BuildHasher>,
) -> Option<&'a str> {
    let said = log.and_then(|log| log.made_for(op)).map(|(node, _)| node);
    let numbered = || {
        let (name, number) = op.rsplit_once('_')?;
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
    };
    let told = [Some(op), Some(base_name(op)), fused(base_name(op)), numbered(), said, said.map(base_name)];
    told.into_iter().flatten().find(|name| known.contains_key(name))
}

/// Nodes of the model by name.
struct Names<'a> {
    by_name: HashMap<&'a str, usize>,
    /// Unnamed nodes by operator, in the model's order, except those already found.
    nameless: HashMap<&'a str, std::collections::VecDeque<usize>>,
}

impl<'a> Names<'a> {
    fn new(model: &'a [ModelNode]) -> Self {
        let mut names = Self { by_name: HashMap::new(), nameless: HashMap::new() };
        for (index, node) in model.iter().enumerate() {
            if node.name.is_empty() {
                names.nameless.entry(&node.op_type).or_default().push_back(index);
            } else {
                names.by_name.entry(&node.name).or_insert(index);
            }
        }
        names
    }

    /// The model's node behind a name in ONNX Runtime.
    fn find(&mut self, name: &str, op_type: &str) -> Option<usize> {
        if name.is_empty() {
            return self.nameless.get_mut(op_type)?.pop_front();
        }
        let base = base_name(name);
        [Some(name), Some(base), fused(base)].into_iter().flatten().find_map(|name| self.by_name.get(name).copied())
    }
}

/// A fusion is named after its first node: `mm/MatMulAddFusion`.
fn fused(name: &str) -> Option<&str> {
    name.rsplit_once('/').map(|(first, _)| first).filter(|_| name.ends_with("Fusion"))
}

/// The name without the suffix of a layout change: `conv1_token_1` was `conv1`.
pub fn base_name(name: &str) -> &str {
    match name.rsplit_once("_token_") {
        Some((base, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            base_name(base)
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::qnn::onnx::AssignedNode;
    use crate::event::LogLevel;

    const QNN: &str = "QNNExecutionProvider";

    fn piece(provider: &str, nodes: &[(&str, &str)]) -> Assignment {
        let node = |(name, op_type): &(&str, &str)| AssignedNode {
            name: (*name).to_owned(),
            op_type: (*op_type).to_owned(),
            domain: String::new(),
        };
        Assignment { provider: provider.to_owned(), nodes: nodes.iter().map(node).collect() }
    }

    fn model(nodes: &[(&str, &str)]) -> Vec<ModelNode> {
        let node = |(name, op_type): &(&str, &str)| ModelNode {
            name: (*name).to_owned(),
            label: if name.is_empty() { format!("{op_type} #?") } else { (*name).to_owned() },
            op_type: (*op_type).to_owned(),
        };
        nodes.iter().map(node).collect()
    }

    /// What ONNX Runtime 1.24.4 records for the model of the fixture.
    fn split() -> Vec<Assignment> {
        vec![
            piece(
                QNN,
                &[
                    ("Transpose", "Transpose"),
                    ("conv1_token_1", "Conv"),
                    ("relu1", "Relu"),
                    ("conv2_token_5", "Conv"),
                    ("relu2", "Relu"),
                ],
            ),
            piece(
                QNN,
                &[
                    ("mul_mid", "Mul"),
                    ("conv3_token_9", "Conv"),
                    ("relu3", "Relu"),
                    ("gap_token_13", "GlobalAveragePool"),
                    ("Transpose_token_12", "Transpose"),
                    ("flatten", "Flatten"),
                    ("fc", "Gemm"),
                    ("softmax", "Softmax"),
                ],
            ),
            piece("CPUExecutionProvider", &[("hardmax_mid", "Hardmax")]),
        ]
    }

    const SPLIT: [(&str, &str); 12] = [
        ("conv1", "Conv"),
        ("relu1", "Relu"),
        ("conv2", "Conv"),
        ("relu2", "Relu"),
        ("hardmax_mid", "Hardmax"),
        ("mul_mid", "Mul"),
        ("conv3", "Conv"),
        ("relu3", "Relu"),
        ("gap", "GlobalAveragePool"),
        ("flatten", "Flatten"),
        ("fc", "Gemm"),
        ("softmax", "Softmax"),
    ];

    #[test]
    fn every_node_of_the_model_has_a_place_and_its_time() {
        let mut log = PlacementLog::default();
        let failed = "Validation FAILED for 1 nodes in OrtNodeUnit (Hardmax) :\n\tOperator type: Hardmax Node name: hardmax_mid Node index: 4\n\tREASON : Operators of type `Hardmax` are not supported by QNN EP.";
        log.take(LogLevel::Verbose, failed);
        let times = Times::read(
            Some(&include_bytes!("../../../tests/data/imports/ort-htp_qnn.log")[..]),
            include_bytes!("../../../tests/data/onnx/split-htp-v75-2runs-ortprofile.json"),
            false,
        )
        .unwrap();
        let (model, assignment) = (model(&SPLIT), split());
        let known = Known {
            model: &model,
            assignment: &assignment,
            log: Some(&log),
            times: Some(&times),
            provider: QNN,
            ..Known::default()
        };
        let placed = place(known);
        assert_eq!(placed.nodes.len(), 14);
        assert_eq!(
            (placed.count(NodeProvider::Qnn), placed.count(NodeProvider::Cpu), placed.count(NodeProvider::None)),
            (11, 1, 0)
        );
        let inserted: Vec<_> =
            placed.nodes.iter().filter(|node| node.inserted).map(|node| node.node.as_str()).collect();
        assert_eq!(inserted, ["Transpose", "Transpose_token_12"]);
        let conv1 = &placed.nodes[0];
        assert_eq!(
            (conv1.node.as_str(), conv1.partition, &conv1.qnn_ops[..]),
            ("conv1", Some(0), &["conv1_token_1".to_owned()][..])
        );
        assert!(conv1.time_derived && conv1.time_us.is_some());
        let hardmax = &placed.nodes[4];
        assert_eq!((hardmax.provider, hardmax.partition), (NodeProvider::Cpu, None));
        assert!(hardmax.reason.as_deref().unwrap().contains("no translation of Hardmax") && hardmax.remedy.is_some());
        assert!(!hardmax.time_derived && hardmax.time_us.unwrap() > 0.0);
        assert_eq!(placed.partitions.iter().map(|partition| partition.nodes).collect::<Vec<_>>(), [5, 8]);
        for partition in &placed.partitions {
            assert!(partition.name.starts_with("QNNExecutionProvider_"), "{partition:?}");
            assert!(partition.boundary_us().unwrap() > 0.0);
        }
        assert!(!placed.is_all_cpu());
    }

    #[test]
    fn names_lose_what_the_layout_added_and_fusions_go_by_their_first_node() {
        for (name, base) in [
            ("conv1_token_1", "conv1"),
            ("a_token_1_token_22", "a"),
            ("a_token_", "a_token_"),
            ("_token_x", "_token_x"),
        ] {
            assert_eq!(base_name(name), base);
        }
        let model = model(&[("mm", "MatMul"), ("add", "Add"), ("", "Relu"), ("", "Relu")]);
        let assignment = [
            piece(QNN, &[("mm/MatMulAddFusion", "Gemm"), ("", "Relu")]),
            piece("CPUExecutionProvider", &[("", "Relu")]),
        ];
        let placed = place(Known { model: &model, assignment: &assignment, provider: QNN, ..Known::default() });
        let told: Vec<_> = placed.nodes.iter().map(|node| (node.node.as_str(), node.provider)).collect();
        assert_eq!(
            told,
            [
                ("mm", NodeProvider::Qnn),
                ("add", NodeProvider::None),
                ("Relu #?", NodeProvider::Qnn),
                ("Relu #?", NodeProvider::Cpu)
            ]
        );
    }

    #[test]
    fn a_backend_that_is_down_is_the_reason_of_every_node() {
        let mut log = PlacementLog::default();
        log.take(LogLevel::Error, "QNN SetupBackend failed Unable to load backend, error: no such file");
        let assignment =
            [piece("CPUExecutionProvider", &[("a", "Relu")]), piece("CPUExecutionProvider", &[("b", "Relu")])];
        let placed = place(Known { assignment: &assignment, log: Some(&log), provider: QNN, ..Known::default() });
        assert!(placed.is_all_cpu() && placed.problem.is_some());
        assert!(placed.nodes.iter().all(|node| node.reason.as_deref().unwrap().contains("no such file")));
        assert!(!placed.nodes[0].inserted, "without the model's own list, nodes are taken for its own");
    }
}
