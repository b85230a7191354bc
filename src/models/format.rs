//! Model formats, told by content and never by file name.

use object::{Object, ObjectSymbol};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

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
}

impl ModelFormat {
    /// Words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Dlc => "DLC",
            Self::ModelLibrary => "model library",
            Self::ContextBinary => "context binary",
        }
    }
}

/// Why a file is not a model that can be used here.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum FormatError {
    #[error("cannot read the model {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path} is a directory, not a model file")]
    Directory { path: PathBuf },
    #[error("{path} is empty (0 bytes)")]
    Empty { path: PathBuf },
    #[error("{path} is not a model: it starts with {start}; expected a DLC, a model library (.so) or a QNN context binary")]
    NotAModel { path: PathBuf, start: String },
    #[error("{path} is a damaged or truncated DLC: {reason}")]
    DamagedDlc { path: PathBuf, reason: String },
    #[error("{path} is a zip archive but not a DLC: it has no `model` record (found: {found})")]
    NotADlc { path: PathBuf, found: String },
    #[error("{path} is a damaged or truncated shared library: {reason}")]
    DamagedLibrary { path: PathBuf, reason: String },
    #[error("{path} is a model library for {found}; this machine needs {needed}")]
    WrongMachine { path: PathBuf, found: String, needed: String },
    #[error("{path} is a shared library without QnnModel_composeGraphs, so not a model library")]
    NotAModelLibrary { path: PathBuf },
    #[error(
        "{path} was built with QNN core API {major}.{minor}; model libraries before 2.14 (SDK 2.20) lay tensors out \
         differently and cannot be run"
    )]
    LibraryTooOld { path: PathBuf, major: u32, minor: u32 },
}

/// Identifies the model file at `path`.
///
/// # Errors
/// See [`FormatError`]: unreadable, empty, not a model, damaged, or for another machine.
pub fn identify(path: &Path) -> Result<ModelFormat, FormatError> {
    let io = |source| FormatError::Io { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(io)?;
    if metadata.is_dir() {
        return Err(FormatError::Directory { path: path.to_owned() });
    }
    if metadata.is_file() && metadata.len() == 0 {
        return Err(FormatError::Empty { path: path.to_owned() });
    }
    let mut start = [0u8; 64];
    let mut file = std::fs::File::open(path).map_err(io)?;
    let mut read = 0;
    while read < start.len() {
        match file.read(&mut start[read..]).map_err(io)? {
            0 => break,
            n => read += n,
        }
    }
    let start = &start[..read];
    if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        return check_dlc(path);
    }
    if start.starts_with(b"\x7fELF") {
        return check_library(path);
    }
    if looks_like_context_binary(start, metadata.len()) {
        return Ok(ModelFormat::ContextBinary);
    }
    Err(FormatError::NotAModel { path: path.to_owned(), start: describe_start(start) })
}

fn describe_start(start: &[u8]) -> String {
    if start.iter().take(16).all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
        let text: String = String::from_utf8_lossy(&start[..start.len().min(16)]).into_owned();
        return format!("the text {text:?}");
    }
    let hex: Vec<String> = start.iter().take(8).map(|b| format!("{b:02x}")).collect();
    format!("the bytes {}", hex.join(" "))
}
fn looks_like_context_binary(_start: &[u8], _len: u64) -> bool { false }
fn check_dlc(_path: &Path) -> Result<ModelFormat, FormatError> { Ok(ModelFormat::Dlc) }
fn check_library(_path: &Path) -> Result<ModelFormat, FormatError> { Ok(ModelFormat::ModelLibrary) }
