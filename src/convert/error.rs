//! Why a conversion failed.

use crate::backends::local::RunnerError;
use crate::event::Failure;
use std::path::PathBuf;
use thiserror::Error;

/// Why a conversion failed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ConvertError {
    #[error("{} cannot be converted to {to}: {reason}", model.display())]
    NoWay { model: PathBuf, to: String, reason: String },
    #[error("{} exists; --force overwrites it", path.display())]
    Exists { path: PathBuf },
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{} was not converted: QNN took none of its nodes ({reason})", model.display())]
    Nothing { model: PathBuf, reason: String },
    #[error("{} of {} nodes stay on the CPU, which --no-cpu-fallback forbids: {nodes}", count, all)]
    Fallback { count: usize, all: usize, nodes: String },
    #[error("it became {count} QNN graphs, and a context binary holds only one: {reason}")]
    Several { count: usize, reason: String },
    #[error("{tool} is missing: {reason}")]
    MissingTool { tool: &'static str, reason: String, advice: String },
    #[error("{tool} failed ({status}): {last}")]
    Tool { tool: String, status: String, last: String, advice: Option<String> },
    #[error("{}", .0.message)]
    Failure(Box<Failure>),
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

impl ConvertError {
    /// What to do next.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NoWay { .. } => Some(
                "ways: .onnx to .dlc, .onnx or .bin; .dlc and .so to .bin; .tflite to .dlc (`qnnscope convert --help`)"
                    .to_owned(),
            ),
            Self::Nothing { .. } => Some("`qnnscope run MODEL` shows the reason for each node".to_owned()),
            Self::Fallback { .. } => Some("`qnnscope run MODEL` shows what to do about each of them".to_owned()),
            Self::Several { .. } => Some("write an EPContext model, which keeps all of them: -o NAME.onnx".to_owned()),
            Self::MissingTool { advice, .. } => Some(advice.clone()),
            Self::Tool { advice, .. } => advice.clone(),
            Self::Failure(failure) => failure.hint.clone(),
            Self::Exists { .. } | Self::Io { .. } | Self::Runner(_) => None,
        }
    }

    /// True if the request itself was invalid.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::NoWay { .. } | Self::Exists { .. } => true,
            Self::Failure(failure) => failure.bad_input,
            _ => false,
        }
    }

    /// True if something required is missing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::MissingTool { .. }) || matches!(self, Self::Failure(failure) if failure.missing)
    }
}
