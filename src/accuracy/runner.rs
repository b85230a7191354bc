//! One model in a runner, its tensors open: inputs go in, tensors come out, one inference at a time.

use crate::backends::Backend;
use crate::backends::local::{Dialogue, Ended, Limits, RunnerError, Supervisor, ask};
use crate::backends::qnn::runner::{
    Command, EXCHANGE_CONSTANTS, EXCHANGE_INPUTS, EXCHANGE_TENSORS, Frame, GivenTensor, InspectTask, OpenedTensors,
    Task, TensorsTask,
};
use crate::backends::settings::SettingRequest;
use crate::event::{Failure, ModelInfo};
use crate::models::{Graph, Tensor};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// A model and where it is computed.
#[derive(Debug, Clone)]
pub struct Side {
    /// DLC or model library.
    pub model: PathBuf,
    /// Backend.
    pub backend: Backend,
    /// Folder of the libraries.
    pub runtime_dir: PathBuf,
    /// Graph; the first one if `None`.
    pub graph: Option<String>,
    /// Settings.
    pub settings: Vec<SettingRequest>,
    /// Use core API versions that are not known.
    pub allow_unknown_runtime: bool,
    /// Bounds of its runner.
    pub limits: Limits,
}

/// Why a side was not computed.
#[derive(Debug, Error)]
pub enum SideError {
    /// The runner could not be started.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// The model, the runtime or the backend.
    #[error("{}", .0.message)]
    Failed(Box<Failure>),
    /// The runner broke off.
    #[error("the runner gave no answer")]
    NoAnswer,
    /// The folder for temporary files.
    #[error("cannot use the folder for temporary files: {0}; $TMPDIR must name one with room")]
    Exchange(#[from] io::Error),
    /// A file that goes on with an earlier call cannot be used.
    #[error("{0}")]
    State(String),
    /// No graph of this name.
    #[error("{model} has no graph `{name}`; its graphs are {known}")]
    NoGraph {
        /// The model.
        model: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}

impl Side {
    /// All graphs of the model, read without a backend.
    ///
    /// # Errors
    /// A model that cannot be read.
    pub async fn read_all(&self) -> Result<(Box<ModelInfo>, Vec<Graph>), SideError> {
        let task = Task::Inspect(InspectTask {
            runtime_dir: self.runtime_dir.clone(),
            model: self.model.clone(),
            allow_unknown_runtime: self.allow_unknown_runtime,
        });
        match ask(&task, self.limits).await? {
            Ended::Done(Some(Frame::Inspected { model, graphs, .. })) => Ok((model, graphs)),
            Ended::Failed(failure) => Err(SideError::Failed(failure)),
            Ended::Done(_) => Err(SideError::NoAnswer),
        }
    }

    /// The graph that is meant.
    ///
    /// # Errors
    /// A model that cannot be read, or has no such graph.
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

    /// Composes the graph with these tensors readable, those given from here, and the data of these constants.
    ///
    /// # Errors
    /// Whatever keeps the graph from being finalized.
    pub async fn open(
        &self,
        readable: Vec<String>,
        given: Vec<GivenTensor>,
        constants: Vec<String>,
    ) -> Result<Opened, SideError> {
        let exchange = tempfile::Builder::new().prefix("qnnscope-tensors-").tempdir()?;
        let task = Task::Tensors(Box::new(TensorsTask {
            runtime_dir: self.runtime_dir.clone(),
            backend: self.backend,
            model: self.model.clone(),
            graph: self.graph.clone(),
            settings: self.settings.clone(),
            allow_unknown_runtime: self.allow_unknown_runtime,
            exchange: exchange.path().to_owned(),
            readable,
            given,
            constants,
        }));
        let (orders, ordered) = mpsc::channel(1);
        let (answering, answers) = mpsc::channel(1);
        let supervisor = Supervisor::new(None, self.limits).talking(Dialogue { orders: ordered, answers: answering });
        let (stop, stopped) = watch::channel(false);
        let child = tokio::spawn(async move { supervisor.run(&task, stopped).await });
        let mut opened = Opened {
            facts: OpenedTensors {
                runtime: crate::event::RuntimeInfo::default(),
                graph: String::new(),
                inputs: Vec::new(),
                given: Vec::new(),
                tensors: Vec::new(),
                constants: Vec::new(),
                refused: Vec::new(),
            },
            places: HashMap::new(),
            orders: Some(orders),
            answers,
            child: Some(child),
            exchange,
            _stop: stop,
        };
        match opened.answers.recv().await {
            Some(Frame::Opened(facts)) => opened.facts = *facts,
            _ => return Err(opened.failure().await),
        }
        let mut at = 0;
        for tensor in &opened.facts.tensors {
            let bytes = tensor.bytes().unwrap_or(0);
            opened.places.entry(tensor.name.clone()).or_insert((at, tensor.clone()));
            at += bytes;
        }
        Ok(opened)
    }
}

/// A graph that computes on our orders. Dropped, its runner ends.
#[derive(Debug)]
pub struct Opened {
    /// What was opened.
    pub facts: OpenedTensors,
    /// Where each tensor begins in the exchange file.
    places: HashMap<String, (u64, Tensor)>,
    orders: Option<mpsc::Sender<Command>>,
    answers: mpsc::Receiver<Frame>,
    child: Option<JoinHandle<Result<Ended, RunnerError>>>,
    exchange: TempDir,
    _stop: watch::Sender<bool>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(child) = &self.child {
            child.abort();
        }
    }
}

impl Opened {
    /// Why the runner ended.
    async fn failure(&mut self) -> SideError {
        self.orders = None;
        let Some(child) = self.child.take() else { return SideError::NoAnswer };
        match child.await {
            Ok(Ok(Ended::Failed(failure))) => SideError::Failed(failure),
            Ok(Err(error)) => error.into(),
            Ok(Ok(Ended::Done(_))) | Err(_) => SideError::NoAnswer,
        }
    }

    /// Puts the inputs of one inference into place and has it computed; [`Opened::computed`] waits for it.
    ///
    /// # Errors
    /// The runner is gone, or the folder is full.
    pub async fn begin<'a>(&mut self, index: u64, inputs: impl Iterator<Item = &'a [u8]>) -> Result<(), SideError> {
        let mut file = BufWriter::new(File::create(self.exchange.path().join(EXCHANGE_INPUTS))?);
        for data in inputs {
            file.write_all(data)?;
        }
        file.flush()?;
        let sent = match &self.orders {
            Some(orders) => orders.send(Command::Compute { index }).await.is_ok(),
            None => false,
        };
        if sent { Ok(()) } else { Err(self.failure().await) }
    }

    /// Waits until the inference is computed.
    ///
    /// # Errors
    /// Whatever it failed of.
    pub async fn computed(&mut self) -> Result<(), SideError> {
        match self.answers.recv().await {
            Some(Frame::Computed { .. }) => Ok(()),
            _ => Err(self.failure().await),
        }
    }

    /// A tensor by name, as this graph has it.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.places.get(name).map(|(_, tensor)| tensor)
    }

    /// The data of a tensor of the inference that was computed last; `None` for one that was not opened.
    ///
    /// # Errors
    /// The folder for temporary files.
    pub fn data(&self, name: &str) -> Result<Option<Vec<u8>>, SideError> {
        let Some((at, tensor)) = self.places.get(name) else { return Ok(None) };
        let mut file = File::open(self.exchange.path().join(EXCHANGE_TENSORS))?;
        file.seek(SeekFrom::Start(*at))?;
        let mut bytes = vec![0; usize::try_from(tensor.bytes().unwrap_or(0)).unwrap_or(0)];
        file.read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// The constants with their data, each once.
    ///
    /// # Errors
    /// The folder for temporary files.
    pub fn constants(&self) -> Result<Vec<(Tensor, Vec<u8>)>, SideError> {
        let mut file = File::open(self.exchange.path().join(EXCHANGE_CONSTANTS))?;
        let mut rows = Vec::new();
        for tensor in &self.facts.constants {
            let Some(bytes) = tensor.bytes() else { break };
            let mut data = vec![0; usize::try_from(bytes).unwrap_or(0)];
            file.read_exact(&mut data)?;
            rows.push((tensor.clone(), data));
        }
        Ok(rows)
    }

    /// The folder that is shared with the runner.
    pub fn folder(&self) -> &Path {
        self.exchange.path()
    }

    /// Lets the runner end in order.
    pub async fn close(mut self) {
        self.orders = None;
        if let Some(child) = self.child.take() {
            let _ = child.await;
        }
    }
}
