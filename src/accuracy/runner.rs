//! One model in a runner with readable tensors: inputs go in, tensors come out, one inference at a time.

use super::kept::{Inference, Kept};
use super::side::{Side, SideError, SidePlace};
use super::values::real_values;
use crate::backends::device_runner::Exchange;
use crate::backends::local::{Dialogue, Ended, RunnerError, Supervisor};
use crate::backends::qnn::runner::{
    Command, EXCHANGE_CONSTANTS, EXCHANGE_INPUTS, EXCHANGE_TENSORS, Frame, GivenTensor, OpenedTensors, Task,
    TensorsTask,
};
use crate::event::RuntimeInfo;
use crate::models::Tensor;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

impl Side {
    /// Composes the graph with these tensors readable, with the given tensors supplied from here, and with
    /// the data of these constants.
    ///
    /// # Errors
    /// The graph cannot be finalized, for whatever reason.
    pub async fn open(
        &self,
        readable: Vec<String>,
        given: Vec<GivenTensor>,
        constants: Vec<String>,
    ) -> Result<Opened, SideError> {
        if let SidePlace::Kept(kept) = &self.place
            && constants.is_empty()
        {
            if !given.is_empty() {
                return Err(SideError::State("it was computed before".to_owned()));
            }
            return self.computed_before(kept.clone()).await;
        }
        let exchange = tempfile::Builder::new().prefix("qnnscope-tensors-").tempdir()?;
        let has_constants = !constants.is_empty();
        let task = TensorsTask {
            runtime_dir: self.runtime_dir.clone(),
            backend: self.backend,
            model: self.model.clone(),
            graph: self.graph.clone(),
            onnx: self.onnx.clone(),
            settings: self.settings.clone(),
            allow_unknown_runtime: self.allow_unknown_runtime,
            exchange: exchange.path().to_owned(),
            readable,
            given,
            constants,
        };
        let (orders, ordered) = mpsc::channel(1);
        let (answering, answers) = mpsc::channel(1);
        let dialogue = Dialogue { orders: ordered, answers: answering };
        let (stop, stopped) = watch::channel(false);
        let (there, child) = match &self.place {
            SidePlace::Device(site) => {
                let (there, child) = site.open(&task, self.limits, dialogue).await?;
                (Some(there), child)
            }
            SidePlace::Here | SidePlace::Kept(_) => {
                let supervisor = Supervisor::new(None, self.limits).talking(dialogue);
                let task = Task::Tensors(Box::new(task));
                (None, tokio::spawn(async move { supervisor.run(&task, stopped).await }))
            }
        };
        let mut opened = Opened {
            facts: OpenedTensors {
                runtime: RuntimeInfo::default(),
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
            there,
            kept: None,
            _stop: stop,
        };
        match opened.answers.recv().await {
            Some(Frame::Opened(facts)) => opened.facts = *facts,
            _ => return Err(opened.failure().await),
        }
        if let Some(there) = opened.there.as_ref().filter(|_| has_constants) {
            there.fetch(opened.exchange.path(), EXCHANGE_CONSTANTS).await?;
        }
        let mut at = 0;
        for tensor in &opened.facts.tensors {
            let bytes = tensor.bytes().unwrap_or(0);
            opened.places.entry(tensor.name.clone()).or_insert((at, tensor.clone()));
            at += bytes;
        }
        Ok(opened)
    }

    /// Serves the graph from the tensors in a folder, inference by inference.
    async fn computed_before(&self, kept: Arc<Kept>) -> Result<Opened, SideError> {
        let (_, graph) = self.read().await?;
        let made = graph.ops.into_iter().flat_map(|op| op.outputs);
        let places = made.map(|tensor| (tensor.name.clone(), (0, tensor))).collect();
        let (_, answers) = mpsc::channel(1);
        let (stop, _) = watch::channel(false);
        Ok(Opened {
            facts: OpenedTensors {
                runtime: kept.runtime.clone().unwrap_or_else(|| RuntimeInfo {
                    provider: format!("tensors in {}", kept.folder.display()),
                    ..RuntimeInfo::default()
                }),
                graph: graph.name,
                inputs: graph.inputs,
                given: Vec::new(),
                tensors: Vec::new(),
                constants: Vec::new(),
                refused: Vec::new(),
            },
            places,
            orders: None,
            answers,
            child: None,
            exchange: tempfile::Builder::new().prefix("qnnscope-tensors-").tempdir()?,
            there: None,
            kept: Some((kept, Inference::default())),
            _stop: stop,
        })
    }
}

/// A graph that computes on request. Dropping it ends its runner.
#[derive(Debug)]
pub struct Opened {
    /// What was opened.
    pub facts: OpenedTensors,
    /// Offset of each tensor in the exchange file.
    places: HashMap<String, (u64, Tensor)>,
    orders: Option<mpsc::Sender<Command>>,
    answers: mpsc::Receiver<Frame>,
    child: Option<JoinHandle<Result<Ended, RunnerError>>>,
    exchange: TempDir,
    /// Its counterpart on the device that computes.
    there: Option<Exchange>,
    /// Earlier results, and the current inference.
    kept: Option<(Arc<Kept>, Inference)>,
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

    /// Provides the inputs of one inference and starts computing it; [`Opened::computed`] waits for it.
    ///
    /// # Errors
    /// The runner is gone, or the folder is full.
    pub async fn begin<'a>(&mut self, index: u64, inputs: impl Iterator<Item = &'a [u8]>) -> Result<(), SideError> {
        if let Some((kept, inference)) = &mut self.kept {
            *inference = kept.inference(index).map_err(SideError::State)?;
            return Ok(());
        }
        let mut file = BufWriter::new(File::create(self.exchange.path().join(EXCHANGE_INPUTS))?);
        for data in inputs {
            file.write_all(data)?;
        }
        file.flush()?;
        if let Some(there) = &self.there {
            there.send(self.exchange.path(), EXCHANGE_INPUTS).await?;
        }
        let sent = match &self.orders {
            Some(orders) => orders.send(Command::Compute { index }).await.is_ok(),
            None => false,
        };
        if sent { Ok(()) } else { Err(self.failure().await) }
    }

    /// Waits until the inference is computed.
    ///
    /// # Errors
    /// The inference failed.
    pub async fn computed(&mut self) -> Result<(), SideError> {
        if self.kept.is_some() {
            return Ok(());
        }
        match self.answers.recv().await {
            Some(Frame::Computed { .. }) => {}
            _ => return Err(self.failure().await),
        }
        if let Some(there) = &self.there {
            there.fetch(self.exchange.path(), EXCHANGE_TENSORS).await?;
        }
        Ok(())
    }

    /// A tensor of this graph by name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.places.get(name).map(|(_, tensor)| tensor)
    }

    /// The values of a tensor after the latest inference; `None` if it was not opened, or has no numbers.
    ///
    /// # Errors
    /// As [`Opened::data`].
    pub fn values(&self, name: &str) -> Result<Option<Vec<f64>>, SideError> {
        let Some((_, tensor)) = self.places.get(name) else { return Ok(None) };
        if let Some((_, inference)) = &self.kept {
            return inference.values(tensor).map_err(SideError::State);
        }
        Ok(self.data(name)?.and_then(|bytes| real_values(&bytes, tensor)))
    }

    /// The data of a tensor after the latest inference; `None` if it was not opened.
    ///
    /// # Errors
    /// The temporary folder cannot be read.
    pub fn data(&self, name: &str) -> Result<Option<Vec<u8>>, SideError> {
        let Some((at, tensor)) = self.places.get(name) else { return Ok(None) };
        let mut file = File::open(self.exchange.path().join(EXCHANGE_TENSORS))?;
        file.seek(SeekFrom::Start(*at))?;
        let mut bytes = vec![0; usize::try_from(tensor.bytes().unwrap_or(0)).unwrap_or(0)];
        file.read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// The constants with their data, without duplicates.
    ///
    /// # Errors
    /// The temporary folder cannot be read.
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

    /// The folder shared with the runner.
    pub fn folder(&self) -> &Path {
        self.exchange.path()
    }

    /// Lets the runner exit in an orderly way.
    pub async fn close(mut self) {
        self.orders = None;
        if let Some(child) = self.child.take() {
            let _ = child.await;
        }
        if let Some(there) = self.there.take() {
            there.close().await;
        }
    }
}
