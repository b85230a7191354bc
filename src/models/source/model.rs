//! A model before conversion, in any format.

use super::{EmbeddedContext, SourceFormat, SourceGraph, SourceNode};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An operator set that a model uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Opset {
    /// Domain; empty for ONNX's own.
    pub domain: String,
    /// Version.
    pub version: i64,
}

/// A dimension chosen when the model is loaded or run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FreeDimension {
    /// Its name; `None` if the model does not name it.
    pub name: Option<String>,
    /// Inputs that have it.
    pub inputs: Vec<String>,
}

/// A file beside the model that contains tensor data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExternalFile {
    /// The file as named by the model.
    pub file: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Number of tensors stored in it.
    pub tensors: u64,
    /// Bytes that these tensors take.
    pub tensor_bytes: u64,
}

/// Floating-point nodes between quantised ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FloatIsland {
    /// Names of the nodes, which are connected to each other.
    pub nodes: Vec<String>,
    /// Their op types, each once.
    pub op_types: Vec<String>,
}

/// How much of a model is quantised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuantizationSummary {
    /// Nodes that compute on real numbers: neither the quantise and dequantise nodes themselves nor shape
    /// arithmetic.
    pub compute_nodes: u64,
    /// Those that read and write only quantised values.
    pub quantized_nodes: u64,
    /// Nodes that cannot be classified because types are unknown.
    pub undecided_nodes: u64,
    /// Types of quantised activations, with the number of tensors of each.
    pub activations: BTreeMap<String, u64>,
    /// Types of quantised constants, likewise.
    pub weights: BTreeMap<String, u64>,
    /// Where the model leaves the integer domain.
    pub float_islands: Vec<FloatIsland>,
}

/// A function of an ONNX model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Domain.
    pub domain: String,
    /// Name.
    pub name: String,
    /// Number of nodes in it.
    pub nodes: u64,
}

/// A model before conversion.
#[derive(Debug, Clone)]
pub struct SourceModel {
    /// Path, as given.
    pub path: PathBuf,
    /// Format.
    pub format: SourceFormat,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Version of the format: ONNX's IR version, or the schema version of TFLite and ExecuTorch.
    pub format_version: Option<i64>,
    /// Program that wrote the file.
    pub producer: Option<String>,
    /// Version of that program.
    pub producer_version: Option<String>,
    /// Operator sets that the model declares.
    pub opsets: Vec<Opset>,
    /// Graphs; only one in ONNX.
    pub graphs: Vec<SourceGraph>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Dimensions that are not fixed.
    pub free_dimensions: Vec<FreeDimension>,
    /// Files with tensor data.
    pub external_files: Vec<ExternalFile>,
    /// Quantisation; `None` if the model has none.
    pub quantization: Option<QuantizationSummary>,
    /// Its QNN context binaries.
    pub contexts: Vec<EmbeddedContext>,
}

impl SourceModel {
    /// An empty model for this file.
    pub(crate) fn new(path: &Path, format: SourceFormat, bytes: u64) -> Self {
        Self {
            path: path.to_owned(),
            format,
            bytes,
            format_version: None,
            producer: None,
            producer_version: None,
            opsets: Vec::new(),
            graphs: Vec::new(),
            functions: Vec::new(),
            free_dimensions: Vec::new(),
            external_files: Vec::new(),
            quantization: None,
            contexts: Vec::new(),
        }
    }
}

/// Totals for one op type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeTotal {
    /// Op type.
    #[serde(rename = "type")]
    pub op_type: String,
    /// Domain; empty for the format's own.
    pub domain: String,
    /// Nodes of this type.
    pub count: u64,
    /// Their multiply-accumulates, where known.
    pub macs: u64,
    /// Nodes with unknown multiply-accumulates.
    pub without_macs: u64,
}

impl TypeTotal {
    /// Totals by op type, most MACs first, then by count and name.
    pub fn of(nodes: &[SourceNode]) -> Vec<Self> {
        let mut totals: BTreeMap<(&str, &str), Self> = BTreeMap::new();
        for node in nodes {
            let total = totals.entry((&node.op_type, &node.domain)).or_insert_with(|| Self {
                op_type: node.op_type.clone(),
                domain: node.domain.clone(),
                count: 0,
                macs: 0,
                without_macs: 0,
            });
            total.count += 1;
            total.macs = total.macs.saturating_add(node.macs.unwrap_or(0));
            total.without_macs += u64::from(node.macs.is_none());
        }
        let mut rows: Vec<_> = totals.into_values().collect();
        rows.sort_by(|a, b| (b.macs, b.count).cmp(&(a.macs, a.count)).then_with(|| a.op_type.cmp(&b.op_type)));
        rows
    }
}
