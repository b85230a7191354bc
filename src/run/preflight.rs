//! Asks backends about a model without running it: one question after another, each in its own runner, so
//! that a crash is an answer and not the end.

use crate::backends::Backend;
use crate::backends::local::{Ended, Limits, RunnerError, Supervisor, ask};
use crate::backends::qnn::runner::{CheckTask, CheckWork, Frame, InspectTask, Task};
use crate::diagnosis::preflight::{Answers, BackendAnswer, CompileAnswer, Read, Target, matters};
use crate::event::{Event, Failure, LogLevel, Stage};
use crate::session::Hub;
use std::path::PathBuf;
use tokio::sync::watch;

/// Log lines kept per question.
const MOST_LINES: usize = 2_000;

/// What to find out about a model.
#[derive(Debug, Clone)]
pub struct Preflight {
    /// Folder of the libraries.
    pub runtime_dir: PathBuf,
    /// Model file.
    pub model: PathBuf,
    /// Backends, and whether the user named each.
    pub backends: Vec<(Backend, bool)>,
    /// Targets for which HTP answers.
    pub targets: Vec<Target>,
    /// VTCM per graph, MB; `None` for the backend's own choice.
    pub vtcm_mb: Option<u32>,
    /// Whether to compile graphs as well.
    pub compile: bool,
    /// Whether the file is a context binary, which has no ops to ask about.
    pub binary: bool,
    /// Accept unknown core API versions.
    pub allow_unknown_runtime: bool,
    /// Limits of each runner.
    pub limits: Limits,
}

impl Preflight {
    /// Asks everything; `tell` receives each question with its number and the total. Dropping the future ends
    /// the active runner.
    pub async fn ask(&self, mut tell: impl FnMut(&str, usize, usize)) -> Result<Answers, RunnerError> {
        let htp = self.backends.iter().any(|(backend, _)| *backend == Backend::Htp);
        let compile_for = if htp && self.compile { self.targets.as_slice() } else { &[] };
        let asks: Vec<(Backend, bool, Option<&Target>)> =
            self.backends.iter().flat_map(|(backend, named)| self.on_hardware(*backend, *named)).collect();
        let questions = asks.len() + compile_for.len();
        let mut answers = Vec::with_capacity(asks.len());
        for (number, (backend, named, target)) in asks.into_iter().enumerate() {
            let place = target.map_or_else(String::new, |target| format!(" for {}", target.full_name()));
            tell(&format!("{backend}: asking about each op{place}"), number, questions);
            let (ended, _) = self.hear(backend, target, CheckWork::Ask).await?;
            let answer = match ended {
                Ended::Done(Some(Frame::Asked(asked))) => Ok(asked),
                Ended::Done(_) => Err(no_answer()),
                Ended::Failed(failure) => Err(failure),
            };
            answers.push(BackendAnswer { backend, target: target.cloned(), named, answer });
        }
        let mut compiled = Vec::with_capacity(compile_for.len());
        for (number, target) in compile_for.iter().enumerate() {
            let what = if self.binary { "loading" } else { "compiling" };
            let text = format!("htp: {what} for {}", target.full_name());
            tell(&text, questions - compile_for.len() + number, questions);
            let (ended, lines) = self.hear(Backend::Htp, Some(target), CheckWork::Compile).await?;
            let answer = match ended {
                Ended::Done(Some(Frame::Compiled(compiled))) => Ok(compiled),
                Ended::Done(_) => Err(no_answer()),
                Ended::Failed(failure) => Err(failure),
            };
            compiled.push(CompileAnswer { target: target.clone(), answer, lines });
        }
        let read = if answers.iter().any(|answer| answer.answer.is_ok()) { None } else { Some(self.read().await?) };
        Ok(Answers { backends: answers, compiled, read })
    }

    /// The questions for a backend. Only HTP distinguishes targets; a context binary's description is the
    /// same for all of them.
    fn on_hardware(&self, backend: Backend, named: bool) -> Vec<(Backend, bool, Option<&Target>)> {
        match backend {
            Backend::Htp if self.binary => vec![(backend, named, None)],
            Backend::Htp => self.targets.iter().map(|target| (backend, named, Some(target))).collect(),
            Backend::Cpu | Backend::Gpu | Backend::Unknown => vec![(backend, named, None)],
        }
    }

    /// Reads the model without a backend, in case none answers.
    async fn read(&self) -> Result<Read, RunnerError> {
        let task = Task::Inspect(InspectTask {
            runtime_dir: self.runtime_dir.clone(),
            model: self.model.clone(),
            allow_unknown_runtime: self.allow_unknown_runtime,
        });
        Ok(match ask(&task, self.limits).await? {
            Ended::Done(Some(Frame::Inspected { model, graphs, .. })) => Ok((model, graphs)),
            Ended::Done(_) => Err(no_answer()),
            Ended::Failed(failure) => Err(failure),
        })
    }

    /// One question: its outcome and the relevant log.
    async fn hear(
        &self,
        backend: Backend,
        target: Option<&Target>,
        work: CheckWork,
    ) -> Result<(Ended, Vec<(LogLevel, String)>), RunnerError> {
        let task = CheckTask {
            runtime_dir: self.runtime_dir.clone(),
            backend,
            model: self.model.clone(),
            soc_model: target.and_then(|target| target.soc_model),
            arch: None,
            vtcm_mb: self.vtcm_mb,
            work,
            allow_unknown_runtime: self.allow_unknown_runtime,
        };
        let (mut hub, source) = Hub::new(None);
        let run = source.new_run();
        let supervisor = Supervisor::new(Some((source, run)), self.limits);
        let (_stop, stopped) = watch::channel(false);
        let lines = async {
            let mut lines = Vec::new();
            while let Some(record) = hub.next().await {
                let Event::Log(line) = record.event else { continue };
                if lines.len() < MOST_LINES && (line.level == LogLevel::Error || matters(&line.text)) {
                    lines.push((line.level, line.text));
                }
            }
            lines
        };
        let task = Task::Check(Box::new(task));
        let (ended, lines) = tokio::join!(supervisor.run(&task, stopped), lines);
        Ok((ended?, lines))
    }
}

/// The failure of a runner that ended without an answer.
pub(super) fn no_answer() -> Box<Failure> {
    Box::new(Failure::new(Stage::Prepare, "check", "the runner gave no answer"))
}
