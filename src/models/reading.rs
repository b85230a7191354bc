//! Models before conversion: detects the format by content and calls its reader.

use super::source::{SourceError, SourceFile, SourceFormat, SourceModel};
use super::{executorch, onnx, tflite};
use std::path::Path;

/// The format of the file at `path`; `None` if it is something else or cannot be read.
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

/// Reads the model at `path` in this format. `dimensions` are values for free dimensions, by name.
///
/// # Errors
/// See [`SourceError`]: unreadable, damaged, too large, or missing data files.
pub fn read_source(
    path: &Path,
    format: SourceFormat,
    dimensions: &[(String, u64)],
) -> Result<SourceModel, SourceError> {
    let file = SourceFile::open(path, format.label())?;
    match format {
        SourceFormat::Onnx => onnx::read(&file, dimensions),
        SourceFormat::Tflite => tflite::read(&file),
        SourceFormat::Executorch => executorch::read(&file),
    }
}
