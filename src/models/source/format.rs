//! Formats of models before conversion.

use serde::Serialize;

/// Formats of models before conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceFormat {
    /// ONNX: a protobuf message without a signature.
    Onnx,
    /// TFLite or LiteRT.
    Tflite,
    /// An ExecuTorch program.
    Executorch,
}

impl SourceFormat {
    /// Name for users.
    pub fn label(self) -> &'static str {
        match self {
            Self::Onnx => "ONNX model",
            Self::Tflite => "TFLite model",
            Self::Executorch => "ExecuTorch program",
        }
    }

    /// The same with its article, for use in a sentence.
    pub fn with_article(self) -> String {
        format!("{} {}", if self == Self::Tflite { "a" } else { "an" }, self.label())
    }
}
