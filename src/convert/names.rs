//! The map from a model's nodes to the ops of the converted model, stored beside the result.

use super::error::ConvertError;
use crate::backends::qnn::runner::Converted;
use crate::event::NodeProvider;
use crate::files::{read_at_most, write_whole};
use crate::models::NAMES_SCHEMA;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Largest map that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// A node, its operator, and the names and types of the ops it was converted to.
pub type MappedNode = (String, String, Vec<(String, String)>);

/// The map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NameMap {
    schema: String,
    source: String,
    results: Vec<String>,
    nodes: Vec<NodeRow>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct NodeRow {
    node: Option<String>,
    op_type: Option<String>,
    provider: Option<NodeProvider>,
    partition: Option<usize>,
    #[serde(default)]
    qnn_ops: Vec<OpName>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OpName {
    name: String,
    #[serde(rename = "type")]
    op_type: String,
    /// HTP's number for the op, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    htp_op: Option<u64>,
}

impl OpName {
    fn new((name, op_type): &(String, String)) -> Self {
        Self { name: name.clone(), op_type: op_type.clone(), htp_op: None }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

impl NameMap {
    /// The map of a conversion: the nodes in the model's order, then ops that come from none of them.
    pub fn new(source: &Path, results: &[PathBuf], converted: &Converted) -> Self {
        let mut by_node: HashMap<&str, Vec<OpName>> = HashMap::new();
        for row in &converted.ops {
            if let Some(node) = row.node.as_deref() {
                by_node.entry(node).or_default().extend(row.ops.iter().map(OpName::new));
            }
        }
        let mut nodes: Vec<NodeRow> = converted
            .placed
            .of_model()
            .map(|node| NodeRow {
                node: Some(node.node.clone()),
                op_type: Some(node.op_type.clone()),
                provider: Some(node.provider),
                partition: node.partition,
                qnn_ops: by_node.remove(node.node.as_str()).unwrap_or_default(),
            })
            .collect();
        for row in converted.ops.iter().filter(|row| row.node.is_none()) {
            nodes.push(NodeRow { qnn_ops: row.ops.iter().map(OpName::new).collect(), ..NodeRow::default() });
        }
        let results = results.iter().map(|path| file_name(path)).collect();
        Self { schema: NAMES_SCHEMA.to_owned(), source: file_name(source), results, nodes }
    }

    /// The map of a model whose ops are known by name: for each node with its operator, the ops it was
    /// converted to.
    pub fn of_ops(source: &Path, results: &[PathBuf], nodes: Vec<MappedNode>) -> Self {
        let row = |(node, op_type, ops): MappedNode| NodeRow {
            provider: Some(if ops.is_empty() { NodeProvider::None } else { NodeProvider::Qnn }),
            node: Some(node),
            op_type: Some(op_type),
            partition: None,
            qnn_ops: ops.iter().map(OpName::new).collect(),
        };
        let results = results.iter().map(|path| file_name(path)).collect();
        let nodes = nodes.into_iter().map(row).collect();
        Self { schema: NAMES_SCHEMA.to_owned(), source: file_name(source), results, nodes }
    }

    /// Reads the map in a file; `None` if it is not one.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&read_at_most(path, MOST_BYTES).ok()?).ok()
    }

    /// Writes it completely or not at all.
    pub fn write(&self, path: &Path) -> Result<(), ConvertError> {
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        write_whole(path, &text).map_err(|source| ConvertError::Io { action: "write", path: path.to_owned(), source })
    }

    /// The map for something derived from a result of this map, such as a context binary from a DLC.
    #[must_use]
    pub fn handed_on(mut self, result: &Path) -> Self {
        let name = file_name(result);
        if !self.results.contains(&name) {
            self.results.push(name);
        }
        self
    }

    fn number(&mut self, numbers: &BTreeMap<String, u64>) {
        for op in self.nodes.iter_mut().flat_map(|node| &mut node.qnn_ops) {
            op.htp_op = numbers.get(&op.name).copied().or(op.htp_op);
        }
    }
}

/// Adds HTP's op numbers, given by op name, to the map in a file.
///
/// # Errors
/// The map cannot be written.
pub fn number_ops(map: &Path, numbers: &BTreeMap<String, u64>) -> Result<(), ConvertError> {
    match NameMap::read(map).filter(|_| !numbers.is_empty()) {
        Some(mut names) => {
            names.number(numbers);
            names.write(map)
        }
        None => Ok(()),
    }
}
