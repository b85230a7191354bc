//! Progress of a conversion: its steps with their times, and its log.

use super::error::ConvertError;
use crate::backends::local::{Ended, Limits, Supervisor};
use crate::backends::qnn::runner::Task;
use crate::diagnosis::Diagnoser;
use crate::event::{Event, Failure, Stage, clean_text};
use crate::files::write_whole;
use crate::session::Hub;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// Largest log that is kept, in bytes.
const MAX_LOG_BYTES: usize = 16 << 20;

/// A completed step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What was done.
    pub step: String,
    /// Time, in seconds.
    pub seconds: f64,
}

/// Progress of a conversion.
#[derive(Debug, Clone, Copy)]
pub enum StepProgress<'a> {
    /// A step begins.
    Begun(&'a str),
    /// A step has been completed.
    Taken(&'a Step),
}

/// Receives the progress of a conversion.
pub type Tell<'a> = &'a (dyn Fn(StepProgress<'_>) + Sync);

/// The steps of a conversion and its log.
pub struct Course<'a> {
    tell: Tell<'a>,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    steps: Vec<Step>,
    log: Vec<u8>,
}

impl<'a> Course<'a> {
    /// A course without any steps yet.
    pub fn new(tell: Tell<'a>) -> Self {
        Self { tell, heard: Mutex::default() }
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the start of a step.
    pub fn begin(&self, step: &str) {
        (self.tell)(StepProgress::Begun(step));
    }

    /// Runs and times a step.
    pub async fn take<T>(&self, step: &str, work: impl Future<Output = T>) -> T {
        self.begin(step);
        let begun = Instant::now();
        let done = work.await;
        self.taken(step, begun.elapsed().as_secs_f64());
        done
    }

    fn taken(&self, step: &str, seconds: f64) {
        let step = Step { step: step.to_owned(), seconds };
        (self.tell)(StepProgress::Taken(&step));
        self.heard().steps.push(step);
    }

    /// Appends to the log.
    pub fn log(&self, bytes: &[u8]) {
        let log = &mut self.heard().log;
        log.extend_from_slice(bytes);
        log.truncate(MAX_LOG_BYTES);
    }

    /// The steps so far.
    pub fn steps(&self) -> Vec<Step> {
        self.heard().steps.clone()
    }

    /// Lets a runner process execute a task, and records its stages and its log.
    pub async fn ask(&self, task: &Task, limits: Limits) -> Result<Ended, ConvertError> {
        let (_stop, stopped) = watch::channel(false);
        let (mut hub, source) = Hub::new(None);
        let run = source.new_run();
        let supervisor = Supervisor::new(Some((source, run)), limits);
        let listening = async {
            while let Some(record) = hub.next().await {
                match record.event {
                    Event::StageStarted { stage } => self.begin(words(stage)),
                    Event::StageFinished { stage, duration_us } => self.taken(words(stage), duration_us / 1e6),
                    Event::Log(line) => self.log(format!("{:<5} {}\n", line.level.short(), line.text).as_bytes()),
                    _ => {}
                }
            }
        };
        let (ended, ()) = tokio::join!(supervisor.run(task, stopped), listening);
        Ok(ended?)
    }

    /// Writes the log to `path`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, path: &Path) -> Result<(), ConvertError> {
        let io = |source| ConvertError::Io { action: "write", path: path.to_owned(), source };
        write_whole(path, &self.heard().log).map_err(io)
    }

    /// Adds to an error what is known about its cause and where the log is; a failure leaves the log beside
    /// `out`.
    pub fn failed(&self, error: ConvertError, log: Option<PathBuf>, out: &Path, force: bool) -> ConvertError {
        let beside = out.with_extension("log");
        let log = log.or_else(|| (force || !beside.exists()).then_some(beside));
        let kept = log.filter(|path| !self.heard().log.is_empty() && self.keep(path).is_ok());
        match error {
            ConvertError::Failure(failure) => {
                let cause = || {
                    let tail = failure.log_tail.join("\n");
                    let text = format!("{}\n{tail}\n{}\n", String::from_utf8_lossy(&self.heard().log), failure.message);
                    cause(text.as_bytes(), None)
                };
                let known = failure.hint.clone().or_else(cause);
                let place = kept.map(|path| format!("the log is {}", clean_text(&path.to_string_lossy())));
                let hint: Vec<String> = known.into_iter().chain(place).collect();
                let hint = (!hint.is_empty()).then(|| hint.join("; "));
                ConvertError::Failure(Box::new(Failure { hint, ..*failure }))
            }
            other => other,
        }
    }
}

/// What happens in a stage, for users.
fn words(stage: Stage) -> &'static str {
    match stage {
        Stage::Prepare => "reading the model",
        Stage::LibraryLoad => "loading the libraries",
        Stage::BackendCreate | Stage::DeviceCreate | Stage::ContextCreate => "starting the backend",
        Stage::Compose => "composing the graph",
        Stage::Finalize => "placing the nodes and compiling",
        Stage::FirstInference | Stage::Execute => "running it once",
        Stage::Teardown => "freeing the backend",
    }
}

/// The likeliest known cause of the failure in a log, with its fix.
pub fn cause(log: &[u8], status: Option<i32>) -> Option<String> {
    let mut diagnoser = Diagnoser::new();
    if let Some(status) = status {
        diagnoser.exit_status(status);
    }
    diagnoser.feed(log);
    let diagnosis = diagnoser.finish();
    let cause = diagnosis.causes.first()?.cause();
    Some(format!("{} ({}): {}", cause.title, cause.id, cause.fix))
}
