//! How far a conversion is: its steps with their times, and the log that is kept.

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

/// Largest log that is kept, bytes.
const MAX_LOG_BYTES: usize = 16 << 20;

/// A step that was taken.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What was done.
    pub step: String,
    /// Time, seconds.
    pub seconds: f64,
}

/// Progress of a conversion.
#[derive(Debug, Clone, Copy)]
pub enum StepProgress<'a> {
    /// A step begins.
    Begun(&'a str),
    /// It was taken.
    Taken(&'a Step),
}

/// Hears how far a conversion is.
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
    /// A course that nothing was done on.
    pub fn new(tell: Tell<'a>) -> Self {
        Self { tell, heard: Mutex::default() }
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what begins.
    pub fn begin(&self, step: &str) {
        (self.tell)(StepProgress::Begun(step));
    }

    /// Takes a step.
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

    /// Adds to the log.
    pub fn log(&self, bytes: &[u8]) {
        let log = &mut self.heard().log;
        log.extend_from_slice(bytes);
        log.truncate(MAX_LOG_BYTES);
    }

    /// The steps so far.
    pub fn steps(&self) -> Vec<Step> {
        self.heard().steps.clone()
    }

    /// Has a runner carry a task out, and hears its stages and its log.
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

    /// Writes the log where it is wanted.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, path: &Path) -> Result<(), ConvertError> {
        let io = |source| ConvertError::Io { action: "write", path: path.to_owned(), source };
        write_whole(path, &self.heard().log).map_err(io)
    }

    /// The error with what is known of its cause, and the place of the log, which a failure leaves beside `out`.
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

/// What is done in a stage, for people.
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

/// The likeliest known cause of what a log tells, with what to do.
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
