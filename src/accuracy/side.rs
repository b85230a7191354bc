//! One model of a comparison, where it is computed, and its graph.

use super::kept::Kept;
use crate::backends::Backend;
use crate::backends::device_runner::{DeviceRunnerError, TensorSite};
use crate::backends::local::{Ended, Limits, RunnerError, ask};
use crate::backends::qnn::runner::{Frame, InspectTask, OnnxTask, Task, graph_of};
use crate::backends::settings::SettingRequest;
use crate::event::{Failure, ModelInfo, clean_text};
use crate::files::sha256_hex;
use crate::models::read_source;
use crate::models::source::{SourceError, SourceFormat};
use crate::models::{Graph, ModelFormat};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// A model and where it is computed.
#[derive(Debug, Clone)]
pub struct Side {
    /// DLC, model library or ONNX model.
    pub model: PathBuf,
    /// Backend.
    pub backend: Backend,
    /// Folder of the libraries.
    pub runtime_dir: PathBuf,
    /// Where its tensors come from.
    pub place: SidePlace,
    /// SHA-256 that the model must still have, lower-case hex: that of the recorded model.
    pub sha256: Option<String>,
    /// Graph; `None` for the first one.
    pub graph: Option<String>,
    /// What an ONNX model needs in addition.
    pub onnx: Option<OnnxTask>,
    /// Settings.
    pub settings: Vec<SettingRequest>,
    /// Accept unknown core API versions.
    pub allow_unknown_runtime: bool,
    /// Limits of its runner.
    pub limits: Limits,
}

/// Where the tensors of a side come from.
#[derive(Debug, Clone)]
pub enum SidePlace {
    /// It is computed on this machine.
    Here,
    /// It is computed by a runner on a device.
    Device(Arc<TensorSite>),
    /// It was computed before.
    Kept(Arc<Kept>),
}

/// Why a side was not computed.
#[derive(Debug, Error)]
pub enum SideError {
    /// The device, or something it needs, is unavailable.
    #[error(transparent)]
    Device(#[from] DeviceRunnerError),
    /// The model is not the recorded one.
    #[error(
        "{model} is not the model that was recorded: its SHA-256 is {found}, the recorded one is {recorded}; give the intended model instead of \
         the record"
    )]
    Changed {
        /// The model.
        model: String,
        /// SHA-256 found.
        found: String,
        /// SHA-256 recorded.
        recorded: String,
    },
    /// The runner could not be started.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// The model, the runtime or the backend failed.
    #[error("{}", .0.message)]
    Failed(Box<Failure>),
    /// The runner ended without an answer.
    #[error("the runner did not answer")]
    NoAnswer,
    /// The temporary folder cannot be used.
    #[error("cannot use the temporary folder: {0}; $TMPDIR must name one with free space")]
    Exchange(#[from] io::Error),
    /// A file that continues an earlier call cannot be used.
    #[error("{0}")]
    State(String),
    /// An ONNX model cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// There is no graph with this name.
    #[error("{model} has no graph `{name}`; its graphs are {known}")]
    NoGraph {
        /// The model.
        model: String,
        /// The name requested.
        name: String,
        /// The graphs that exist.
        known: String,
    },
}

impl Side {
    /// True if its values come from a simulator.
    pub fn is_simulated(&self) -> bool {
        match &self.place {
            SidePlace::Here => self.backend.is_simulated_here(),
            SidePlace::Device(site) => self.backend == Backend::Htp && site.is_emulated(),
            SidePlace::Kept(kept) => kept.simulated,
        }
    }

    /// The device that computes it, unless that is this machine.
    pub fn device(&self) -> Option<&str> {
        match &self.place {
            SidePlace::Here => None,
            SidePlace::Device(site) => Some(site.id()),
            SidePlace::Kept(kept) => kept.device.as_deref(),
        }
    }

    /// All graphs of the model, read without a backend.
    ///
    /// # Errors
    /// The model cannot be read, or is not the one that was recorded.
    pub async fn read_all(&self) -> Result<(Box<ModelInfo>, Vec<Graph>), SideError> {
        let (model, graphs) = self.read_any().await?;
        match &self.sha256 {
            Some(recorded) if *recorded != model.sha256 => Err(SideError::Changed {
                model: model.path.clone(),
                found: model.sha256.clone(),
                recorded: clean_text(recorded),
            }),
            _ => Ok((model, graphs)),
        }
    }

    async fn read_any(&self) -> Result<(Box<ModelInfo>, Vec<Graph>), SideError> {
        if let Some(onnx) = &self.onnx {
            // Our own reader, which runs no foreign code.
            let source = read_source(&self.model, SourceFormat::Onnx, &onnx.dimensions)?;
            let (sha256, bytes) = sha256_hex(File::open(&self.model)?)?;
            let path = clean_text(&self.model.to_string_lossy());
            let info = ModelInfo { path, format: ModelFormat::Onnx, sha256, bytes, context_binary: None };
            return Ok((Box::new(info), vec![graph_of(&source, &self.model)]));
        }
        let task = InspectTask {
            runtime_dir: self.runtime_dir.clone(),
            model: self.model.clone(),
            allow_unknown_runtime: self.allow_unknown_runtime,
        };
        let ended = match &self.place {
            SidePlace::Device(site) => site.inspect(&task, self.limits).await?,
            SidePlace::Here | SidePlace::Kept(_) => ask(&Task::Inspect(task), self.limits).await?,
        };
        match ended {
            Ended::Done(Some(Frame::Inspected { model, graphs, .. })) => Ok((model, graphs)),
            Ended::Failed(failure) => Err(SideError::Failed(failure)),
            Ended::Done(_) => Err(SideError::NoAnswer),
        }
    }

    /// The requested graph.
    ///
    /// # Errors
    /// The model cannot be read, or has no such graph.
    pub async fn read(&self) -> Result<(Box<ModelInfo>, Graph), SideError> {
        let (model, graphs) = self.read_all().await?;
        let known = graphs.iter().map(|graph| format!("`{}`", graph.name)).collect::<Vec<_>>().join(", ");
        let wanted = |graph: &Graph| self.graph.as_ref().is_none_or(|name| *name == graph.name);
        let graph = graphs.into_iter().find(wanted).ok_or_else(|| SideError::NoGraph {
            model: self.model.display().to_string(),
            name: self.graph.clone().unwrap_or_default(),
            known,
        })?;
        Ok((model, graph))
    }
}
