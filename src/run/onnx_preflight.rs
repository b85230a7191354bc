//! Asks ONNX Runtime's QNN plug-in about a model without running it: one session per backend and target, each
//! in its own runner. Creating the session compiles: whatever QNN accepts is built for that target.

use crate::backends::local::{Ended, Limits, RunnerError, Supervisor};
use crate::backends::qnn::runner::{OnnxTask, Pin, RunTask, Task};
use crate::backends::settings::SettingRequest;
use crate::backends::{Backend, ProfilingLevel};
use crate::diagnosis::preflight::{NodesAnswer, Target};
use crate::event::{Budget, Event, LogLevel, NodesPlaced};
use crate::session::Hub;
use std::path::PathBuf;
use tokio::sync::watch;

/// What to find out about an ONNX model.
#[derive(Debug, Clone)]
pub struct OnnxPreflight {
    /// Folder of the libraries.
    pub runtime_dir: PathBuf,
    /// ONNX Runtime, its plug-in, and the model's free dimensions.
    pub onnx: OnnxTask,
    /// Model file.
    pub model: PathBuf,
    /// Backends, and whether the user named each.
    pub backends: Vec<(Backend, bool)>,
    /// Targets for which HTP answers.
    pub targets: Vec<Target>,
    /// VTCM per graph, MB; `None` for the backend's own choice.
    pub vtcm_mb: Option<u32>,
    /// Accept unknown core API versions.
    pub allow_unknown_runtime: bool,
    /// Limits of each runner.
    pub limits: Limits,
}

impl OnnxPreflight {
    /// Asks everything; `tell` receives each question with its number and the total. Dropping the future ends
    /// the active runner.
    pub async fn ask(&self, mut tell: impl FnMut(&str, usize, usize)) -> Result<Vec<NodesAnswer>, RunnerError> {
        let asks: Vec<(Backend, bool, Option<&Target>)> = self
            .backends
            .iter()
            .flat_map(|&(backend, named)| match backend {
                Backend::Htp => self.targets.iter().map(|target| (backend, named, Some(target))).collect(),
                _ => vec![(backend, named, None)],
            })
            .collect();
        let mut answers = Vec::with_capacity(asks.len());
        for (number, &(backend, named, target)) in asks.iter().enumerate() {
            let place = target.map_or_else(String::new, |target| format!(" for {}", target.full_name()));
            tell(&format!("{backend}: which nodes it takes{place}"), number, asks.len());
            answers.push(self.one(backend, named, target).await?);
        }
        Ok(answers)
    }

    /// One question.
    async fn one(&self, backend: Backend, named: bool, target: Option<&Target>) -> Result<NodesAnswer, RunnerError> {
        let (mut hub, source) = Hub::new(None);
        let run = source.new_run();
        let supervisor = Supervisor::new(Some((source, run)), self.limits);
        let (_stop, stopped) = watch::channel(false);
        let heard = async {
            let (mut placed, mut runtime, mut sandbox) = (None::<NodesPlaced>, None, None);
            while let Some(record) = hub.next().await {
                match record.event {
                    // The last one has the reasons.
                    Event::NodesPlaced(found) => placed = Some(*found),
                    Event::RuntimeLoaded(found) => runtime = Some(found),
                    Event::Sandboxed(found) => sandbox = Some(*found),
                    _ => {}
                }
            }
            (placed, runtime, sandbox)
        };
        let task = Task::Run(Box::new(self.task(backend, target)));
        let (ended, (placed, runtime, sandbox)) = tokio::join!(supervisor.run(&task, stopped), heard);
        let placed = match ended? {
            Ended::Failed(failure) => Err(failure),
            Ended::Done(_) => placed.ok_or_else(super::preflight::no_answer),
        };
        Ok(NodesAnswer { backend, target: target.cloned(), named, placed, runtime, sandbox })
    }

    fn task(&self, backend: Backend, target: Option<&Target>) -> RunTask {
        let setting = |name: &str, value: u32| SettingRequest {
            origin: format!("--{}", name.replace('_', "-")),
            name: name.to_owned(),
            value: value.into(),
            backend: Some(backend),
        };
        let soc = target.and_then(|target| target.soc_model).map(|number| setting("soc_model", number));
        let vtcm = self.vtcm_mb.filter(|_| backend == Backend::Htp).map(|mb| setting("vtcm_mb", mb));
        RunTask {
            runtime_dir: self.runtime_dir.clone(),
            backend,
            model: self.model.clone(),
            graph: None,
            inputs: Vec::new(),
            input_list: None,
            native_input: false,
            seed: 0,
            save_outputs: None,
            save_context: None,
            staged_context: None,
            profile_log: None,
            straight: None,
            warmup: 0,
            budget: Budget::Iterations(0),
            rate_hz: None,
            profiling: ProfilingLevel::Off,
            profiling_budget: Budget::Iterations(0),
            settings: soc.into_iter().chain(vtcm).collect(),
            log_level: LogLevel::Error,
            allow_unknown_runtime: self.allow_unknown_runtime,
            slow_load: None,
            pin: Pin::Unset,
            onnx: Some(OnnxTask { placement_only: true, ..self.onnx.clone() }),
            overwrite: false,
            protected: Vec::new(),
        }
    }
}
