//! The formats of model files. `qnnscope` recognises them by content.

use serde::{Deserialize, Serialize};

/// The formats qnnscope runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFormat {
    /// Deep-learning container: a zip archive with a `model` record.
    Dlc,
    /// Shared library with `QnnModel_composeGraphs`.
    ModelLibrary,
    /// Serialised context.
    ContextBinary,
    /// ONNX model, run through ONNX Runtime.
    Onnx,
}

impl ModelFormat {
    /// Name for display.
    pub fn label(self) -> &'static str {
        match self {
            Self::Dlc => "DLC",
            Self::ModelLibrary => "model library",
            Self::ContextBinary => "context binary",
            Self::Onnx => "ONNX model",
        }
    }
}
