//! A composed graph: its ops, with what each reads and writes.

use super::DataType;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How stored integers map to real numbers: `real = (stored + offset) * scale`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "encoding", rename_all = "snake_case")]
pub enum Quantization {
    /// One scale and offset for the tensor.
    ScaleOffset {
        /// Scale.
        scale: f64,
        /// Offset, zero or negative for unsigned types.
        offset: i32,
        /// Used bits, if the encoding names them (fewer than the container's).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bitwidth: Option<u32>,
    },
    /// One scale and offset per slice of an axis.
    AxisScaleOffset {
        /// Axis.
        axis: i32,
        /// One scale per slice.
        scales: Vec<f64>,
        /// One offset per slice; empty means all zero.
        offsets: Vec<i32>,
        /// Used bits, if the encoding names them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bitwidth: Option<u32>,
    },
    /// An encoding that is named but not decoded.
    Other {
        /// QNN's number of the encoding.
        id: u32,
        /// Its name, if known.
        name: Option<String>,
    },
}

/// How a tensor is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TensorKind {
    /// Written by the application: a graph input.
    Input,
    /// Read by the application: a graph output.
    Output,
    /// Both.
    InputOutput,
    /// Between ops.
    Native,
    /// Constant: weights, biases, tables.
    Static,
    /// An absent optional tensor.
    Null,
    /// A number outside the table.
    Other(u32),
}

impl TensorKind {
    /// From QNN's tensor type.
    pub fn from_qnn(value: u32) -> Self {
        match value {
            0 | 8 | 11 => Self::Input,
            1 | 9 | 12 => Self::Output,
            2 | 10 | 13 => Self::InputOutput,
            3 | 7 => Self::Native,
            4 | 6 => Self::Static,
            5 => Self::Null,
            other => Self::Other(other),
        }
    }
}

/// A tensor of an op or a graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    /// Name, free of control characters.
    pub name: String,
    /// Data type.
    pub dtype: DataType,
    /// Dimensions; empty for a scalar.
    pub shape: Vec<u32>,
    /// Encoding, if it has one.
    pub quantization: Option<Quantization>,
    /// Use.
    pub kind: TensorKind,
}

impl Tensor {
    /// Number of elements: the product of the dimensions, 1 for a scalar; `None` if it does not fit.
    pub fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, &d| product.checked_mul(u64::from(d)))
    }

    /// Size in bytes; `None` for types with an unknown layout.
    pub fn bytes(&self) -> Option<u64> {
        self.elements()?.checked_mul(self.dtype.bytes()? as u64)
    }

    /// `1x64x64x3`, or `scalar`.
    pub fn shape_text(&self) -> String {
        if self.shape.is_empty() {
            return "scalar".to_owned();
        }
        self.shape.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
    }
}

/// One op.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Op {
    /// Position in the order of composition, from 0.
    pub index: u32,
    /// Name, free of control characters.
    pub name: String,
    /// Op type, such as `Conv2d`.
    #[serde(rename = "type")]
    pub op_type: String,
    /// Op package, such as `qti.aisw`.
    pub package: String,
    /// Inputs, constants included.
    pub inputs: Vec<Tensor>,
    /// Outputs.
    pub outputs: Vec<Tensor>,
    /// Parameters: scalars as numbers, tensors as `{dtype, shape, values}` with at most 64 values.
    pub params: Map<String, Value>,
    /// Multiply-accumulates of one execution; `None` for op types whose count is not derived.
    pub macs: Option<u64>,
    /// Bytes of constant inputs.
    pub parameter_bytes: u64,
    /// Bytes read and written per execution if every tensor moves once; `None` if a size is unknown.
    pub bytes_moved: Option<u64>,
}

/// A composed graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Name.
    pub name: String,
    /// Inputs in the order of execution.
    pub inputs: Vec<Tensor>,
    /// Outputs in the order of execution.
    pub outputs: Vec<Tensor>,
    /// Ops in the order of composition; empty for a context binary, which does not report them.
    pub ops: Vec<Op>,
    /// Bytes of all constants, each counted once.
    pub parameter_bytes: u64,
}

impl Graph {
    /// Multiply-accumulates of all ops whose count is known.
    pub fn macs(&self) -> u64 {
        self.ops.iter().filter_map(|op| op.macs).fold(0, u64::saturating_add)
    }
}

/// Totals of one op type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpTypeTotal {
    /// Op type.
    #[serde(rename = "type")]
    pub op_type: String,
    /// Ops of this type.
    pub count: u64,
    /// Their multiply-accumulates.
    pub macs: u64,
    /// Their constants, bytes.
    pub parameter_bytes: u64,
}

/// Totals by op type, most MACs first, then by count and name.
pub fn op_type_totals(ops: &[Op]) -> Vec<OpTypeTotal> {
    let mut totals: std::collections::BTreeMap<&str, OpTypeTotal> = std::collections::BTreeMap::new();
    for op in ops {
        let total = totals.entry(&op.op_type).or_insert_with(|| OpTypeTotal {
            op_type: op.op_type.clone(),
            count: 0,
            macs: 0,
            parameter_bytes: 0,
        });
        total.count += 1;
        total.macs = total.macs.saturating_add(op.macs.unwrap_or(0));
        total.parameter_bytes = total.parameter_bytes.saturating_add(op.parameter_bytes);
    }
    let mut rows: Vec<_> = totals.into_values().collect();
    rows.sort_by(|a, b| (b.macs, b.count).cmp(&(a.macs, a.count)).then_with(|| a.op_type.cmp(&b.op_type)));
    rows
}

/// A context binary's own description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextBinaryInfo {
    /// Version of the record read (1, 2 or 3).
    pub info_version: u32,
    /// Backend it was made for, by QNN's backend id.
    pub backend_id: u32,
    /// SDK build that made it; empty for CPU binaries.
    pub build_id: String,
    /// Core API version.
    pub core_api: String,
    /// Backend API version.
    pub backend_api: String,
    /// SoC version text, if any.
    pub soc_version: Option<String>,
    /// QNN's SoC number; 0 if none was named.
    pub soc_model: Option<u32>,
    /// Hexagon architecture, such as 75.
    pub hexagon_arch: Option<u32>,
    /// Version of the blob format.
    pub blob_version: String,
    /// Size of the blob, bytes.
    pub blob_bytes: u64,
    /// Its graphs.
    pub graphs: Vec<ContextGraphInfo>,
}

/// What a context binary records about one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextGraphInfo {
    /// Name.
    pub name: String,
    /// Inputs.
    pub inputs: Vec<Tensor>,
    /// Outputs.
    pub outputs: Vec<Tensor>,
    /// Spill and fill buffer, bytes (HTP).
    pub spill_fill_bytes: Option<u64>,
    /// VTCM, bytes (HTP).
    pub vtcm_bytes: Option<u64>,
    /// Optimisation level (HTP).
    pub optimization_level: Option<u32>,
    /// HVX threads (HTP).
    pub hvx_threads: Option<u64>,
}
