//! Why nothing was compared.

use super::inputs::InputError;
use super::side::SideError;
use crate::backends::device_runner::DeviceRunnerError;
use crate::event::Failure;
use std::path::PathBuf;
use thiserror::Error;

/// Why nothing was compared.
#[derive(Debug, Error)]
pub enum AccuracyError {
    /// The reference could not be computed.
    #[error("the reference: {0}")]
    Reference(SideError),
    /// The test could not be computed.
    #[error("the test: {0}")]
    Test(SideError),
    /// The only model could not be computed.
    #[error(transparent)]
    Model(SideError),
    /// The inputs cannot be used.
    #[error(transparent)]
    Inputs(#[from] InputError),
    /// The models have nothing in common.
    #[error("no tensor of {test} matches one of {reference}, neither by name nor by shape")]
    NoPairs {
        /// The reference.
        reference: String,
        /// The test.
        test: String,
    },
    /// Tensors that were to be kept cannot be written.
    #[error("cannot write the tensors to {path}: {source}")]
    Save {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A context binary.
    #[error("{0} exposes no ops: a context binary is compiled; give the DLC or model library it was made from")]
    Compiled(String),
}

impl AccuracyError {
    /// The runner's failure, if that is the reason.
    pub fn failure(&self) -> Option<&Failure> {
        match self.side() {
            Some(SideError::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    fn side(&self) -> Option<&SideError> {
        match self {
            Self::Reference(error) | Self::Test(error) | Self::Model(error) => Some(error),
            _ => None,
        }
    }

    /// The device error that prevented computing a side.
    pub fn device(&self) -> Option<&DeviceRunnerError> {
        match self.side() {
            Some(SideError::Device(error)) => Some(error),
            _ => None,
        }
    }

    /// True if the request was wrong.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Inputs(_) | Self::NoPairs { .. } | Self::Compiled(_) | Self::Model(SideError::State(_)) => true,
            Self::Reference(error) | Self::Test(error) | Self::Model(error) => match error {
                SideError::NoGraph { .. } | SideError::Source(_) | SideError::Changed { .. } => true,
                SideError::Device(error) => error.is_bad_input(),
                SideError::Failed(failure) => failure.bad_input,
                _ => false,
            },
            Self::Save { .. } => false,
        }
    }
}
