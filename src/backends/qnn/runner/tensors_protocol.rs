//! What parent and runner say to each other about a graph whose tensors are read and given.

use super::run_task::OnnxTask;
use crate::backends::Backend;
use crate::backends::settings::SettingRequest;
use crate::event::RuntimeInfo;
use crate::models::Tensor;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A graph whose tensors between ops are read, or given. Times of it mean nothing: ops are not fused across such tensors.
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
    /// What an ONNX model needs besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnx: Option<OnnxTask>,
    /// Settings.
    pub settings: Vec<SettingRequest>,
    /// Use core API versions that are not known.
    pub allow_unknown_runtime: bool,
    /// An existing folder of this task alone: `inputs` and `tensors` of one inference, `constants`.
    pub exchange: PathBuf,
    /// Tensors between ops to read, by name.
    pub readable: Vec<String>,
    /// Tensors that the ops reading them get from the parent instead of from the op before.
    pub given: Vec<GivenTensor>,
    /// Constants to write down, by name.
    pub constants: Vec<String>,
}

/// A tensor that the parent gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenTensor {
    /// Name of the tensor in the model.
    pub name: String,
    /// Another scale and offset than the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<(f32, i32)>,
}

/// The file of the exchange folder with the data of all inputs of one inference, one after the other.
pub const EXCHANGE_INPUTS: &str = "inputs";
/// The same of all tensors that were read.
pub const EXCHANGE_TENSORS: &str = "tensors";
/// The data of the constants.
pub const EXCHANGE_CONSTANTS: &str = "constants";

/// A graph with tensors that can be read and written; lists are in the order of the files' data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenedTensors {
    /// The backend's library.
    pub runtime: RuntimeInfo,
    /// Name of the graph.
    pub graph: String,
    /// Inputs of the graph.
    pub inputs: Vec<Tensor>,
    /// Inputs that stand for tensors between ops, which follow those of the graph: name in the model, and how to write it.
    pub given: Vec<(String, Tensor)>,
    /// Outputs of the graph, then tensors between ops.
    pub tensors: Vec<Tensor>,
    /// Constants.
    pub constants: Vec<Tensor>,
    /// Tensors that the backend did not let be opened.
    pub refused: Vec<String>,
}
