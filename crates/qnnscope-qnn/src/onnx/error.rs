//! Errors of ONNX Runtime and its use.

use std::path::PathBuf;
use thiserror::Error;

/// A failed call of ONNX Runtime.
#[derive(Debug, Error)]
pub enum OnnxError {
    /// The library cannot be opened, or is too old.
    #[error("{path} cannot be used as ONNX Runtime: {reason}")]
    Library {
        /// The library.
        path: PathBuf,
        /// The loader's message, or ort's.
        reason: String,
    },
    /// The plug-in cannot be registered.
    #[error("{path} cannot be used as ONNX Runtime's QNN plug-in: {reason}")]
    Plugin {
        /// The plug-in.
        path: PathBuf,
        /// ONNX Runtime's words.
        reason: String,
    },
    /// The plug-in offers no device.
    #[error("{path} offers no device to ONNX Runtime")]
    NoDevice {
        /// The plug-in.
        path: PathBuf,
    },
    /// Any other call.
    #[error("{call} failed: {message}")]
    Call {
        /// The call, by ONNX Runtime's name.
        call: &'static str,
        /// ONNX Runtime's own code, such as 1 for `FAIL`; `None` if there is none.
        code: Option<u64>,
        /// Its words.
        message: String,
    },
    /// An input whose elements are not plain numbers.
    #[error("`{name}` is {found}, which cannot be given as bytes")]
    NotNumbers {
        /// Tensor.
        name: String,
        /// Its type.
        found: String,
    },
}

impl OnnxError {
    /// The call, for the stream.
    pub fn call(&self) -> &'static str {
        match self {
            Self::Library { .. } => "dlopen",
            Self::Plugin { .. } | Self::NoDevice { .. } => "RegisterExecutionProviderLibrary",
            Self::Call { call, .. } => call,
            Self::NotNumbers { .. } => "CreateTensorAsOrtValue",
        }
    }

    /// True if the runtime is at fault, not the model.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Library { .. } | Self::Plugin { .. } | Self::NoDevice { .. })
    }

    pub(super) fn of<R>(call: &'static str) -> impl Fn(ort::Error<R>) -> Self {
        move |error| Self::Call { call, code: Some(code(error.code())), message: error.message().to_owned() }
    }
}

/// ONNX Runtime's number for a code.
fn code(code: ort::ErrorCode) -> u64 {
    use ort::ErrorCode as Code;
    match code {
        Code::Ok => 0,
        Code::InvalidArgument => 2,
        Code::NoSuchFile => 3,
        Code::NoModel => 4,
        Code::EngineError => 5,
        Code::RuntimeException => 6,
        Code::InvalidProtobuf => 7,
        Code::ModelLoaded => 8,
        Code::NotImplemented => 9,
        Code::InvalidGraph => 10,
        Code::ExecutionProviderFailure => 11,
        Code::ModelLoadCanceled => 12,
        Code::CompilationRequired => 13,
        Code::NotFound => 14,
        // `FAIL`, and any code added later.
        _ => 1,
    }
}
