//! The protocol between parent and runner for a graph whose tensors are read and supplied.

use super::run_task::OnnxTask;
use crate::backends::Backend;
use crate::backends::settings::SettingRequest;
use crate::event::RuntimeInfo;
use crate::models::Tensor;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A graph whose tensors between ops are read or supplied. Its times are meaningless: ops are not fused across such
/// tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorsTask {
    /// Folder of the libraries.
    pub runtime_dir: PathBuf,
    /// Backend.
    pub backend: Backend,
    /// DLC, model library or ONNX model.
    pub model: PathBuf,
    /// Graph; the only one if `None`.
    pub graph: Option<String>,
    /// Extra settings for an ONNX model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnx: Option<OnnxTask>,
    /// Settings.
    pub settings: Vec<SettingRequest>,
    /// Use core API versions that qnnscope does not know.
    pub allow_unknown_runtime: bool,
    /// An existing folder, exclusive to this task, for the `inputs` and `tensors` of one inference, and for
    /// `constants`.
    pub exchange: PathBuf,
    /// Tensors between ops to read, by name.
    pub readable: Vec<String>,
    /// Tensors that their readers get from the parent instead of from the preceding op.
    pub given: Vec<GivenTensor>,
    /// Constants to write out, by name.
    pub constants: Vec<String>,
}

/// A tensor supplied by the parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenTensor {
    /// Name of the tensor in the model.
    pub name: String,
    /// A scale and offset different from the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<(f32, i32)>,
}

/// The file in the exchange folder with the data of all inputs of one inference, concatenated.
pub const EXCHANGE_INPUTS: &str = "inputs";
/// The same for all tensors that were read.
pub const EXCHANGE_TENSORS: &str = "tensors";
/// The data of the constants.
pub const EXCHANGE_CONSTANTS: &str = "constants";

/// A graph with readable and writable tensors; lists are in the order of the files' data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenedTensors {
    /// The backend's library.
    pub runtime: RuntimeInfo,
    /// Name of the graph.
    pub graph: String,
    /// Inputs of the graph.
    pub inputs: Vec<Tensor>,
    /// Inputs that replace tensors between ops, following those of the graph: name in the model, and how to write it.
    pub given: Vec<(String, Tensor)>,
    /// Outputs of the graph, then tensors between ops.
    pub tensors: Vec<Tensor>,
    /// Constants.
    pub constants: Vec<Tensor>,
    /// Tensors the backend refused to open.
    pub refused: Vec<String>,
}
