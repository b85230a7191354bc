//! The map from the nodes of a model to the ops of what was made of it, kept beside the result.

use crate::backends::qnn::runner::Converted;
use crate::event::NodeProvider;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Schema of the map.
pub const NAMES_SCHEMA: &str = "qnnscope.names/1";

/// The map.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NameMap {
    schema: &'static str,
    source: String,
    results: Vec<String>,
    nodes: Vec<NodeRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct NodeRow {
    node: Option<String>,
    op_type: Option<String>,
    provider: Option<NodeProvider>,
    partition: Option<usize>,
    qnn_ops: Vec<OpName>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct OpName {
    name: String,
    #[serde(rename = "type")]
    op_type: String,
}

impl NameMap {
    /// The map of a conversion: the nodes in the model's order, then ops that belong to none of them.
    pub fn new(source: &Path, results: &[PathBuf], converted: &Converted) -> Self {
        let name = |path: &Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let ops = |node: &str| {
            let rows = converted.ops.iter().filter(|row| row.node.as_deref() == Some(node));
            let ops = rows.flat_map(|row| &row.ops);
            ops.map(|(name, op_type)| OpName { name: name.clone(), op_type: op_type.clone() }).collect()
        };
        let mut nodes: Vec<NodeRow> = converted
            .placed
            .of_model()
            .map(|node| NodeRow {
                node: Some(node.node.clone()),
                op_type: Some(node.op_type.clone()),
                provider: Some(node.provider),
                partition: node.partition,
                qnn_ops: ops(&node.node),
            })
            .collect();
        for row in converted.ops.iter().filter(|row| row.node.is_none()) {
            let qnn_ops =
                row.ops.iter().map(|(name, op_type)| OpName { name: name.clone(), op_type: op_type.clone() }).collect();
            nodes.push(NodeRow { node: None, op_type: None, provider: None, partition: None, qnn_ops });
        }
        let results = results.iter().map(|path| name(path)).collect();
        Self { schema: NAMES_SCHEMA, source: name(source), results, nodes }
    }

    /// Where the map of a result lies: `model.dlc` has `model.names.json`.
    pub fn path_of(result: &Path) -> PathBuf {
        result.with_extension("names.json")
    }
}
