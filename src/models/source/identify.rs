//! Recognises the format of a model before conversion by its content.

use super::{SourceError, SourceFile};
use crate::models::onnx;
use serde::Serialize;
use std::path::Path;

/// Formats of models before conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceFormat {
    /// ONNX: a protobuf message without a signature.
    Onnx,
    /// TFLite or LiteRT.
    Tflite,
    /// A program of ExecuTorch.
    Executorch,
}

impl SourceFormat {
    /// Words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Onnx => "ONNX model",
            Self::Tflite => "TFLite model",
            Self::Executorch => "ExecuTorch program",
        }
    }

    /// The same in a sentence.
    pub fn with_article(self) -> String {
        format!("{} {}", if self == Self::Tflite { "a" } else { "an" }, self.label())
    }
}

/// The format of the file at `path`; nothing if it is something else or unreadable.
pub fn identify_source(path: &Path) -> Option<SourceFormat> {
    let file = SourceFile::open(path, "model").ok()?;
    let mut start = [0u8; 8];
    if file.read(0, &mut start).is_ok() {
        match &start[4..] {
            b"TFL3" => return Some(SourceFormat::Tflite),
            [b'E', b'T', b'0'..=b'9', b'0'..=b'9'] => return Some(SourceFormat::Executorch),
            _ => {}
        }
    }
    let known =
        crate::files::starts_context_binary(&start) || start.starts_with(b"PK") || start.starts_with(b"\x7fELF");
    (!known && onnx::looks_like(&file).unwrap_or(false)).then_some(SourceFormat::Onnx)
}

/// Opens the file under the name of its format.
pub(super) fn open(path: &Path, format: SourceFormat) -> Result<SourceFile, SourceError> {
    SourceFile::open(path, format.label())
}
