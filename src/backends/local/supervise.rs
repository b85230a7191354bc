//! Supervises one runner child: its frames, console, deadlines, memory and end.

mod bounds;
mod ending;

pub use bounds::Limits;

use super::console::{self, Flood, LINES_PER_S};
use super::frames::{Line, LineReader, MAX_CONSOLE_LINE, MAX_FRAME};
use super::link::{Exit, GRACE, Process, Running, Translate};
use super::process::{RunnerError, spawn};
use super::staged::Staged;
use crate::backends::qnn::runner::{Command, Frame, PROTOCOL, SAVE_PROFILE_LOG, Task};
use crate::event::{
    Event, Failure, LogLevel, LogLine, LogSource, LogTail, RunId, RunStatus, Setting, SettingOutcome, Stage,
};
use crate::session::Source;
use std::time::{Duration, Instant};
use tokio::io::AsyncBufRead;
use tokio::sync::{mpsc, watch};

/// How often deadlines and memory are checked.
const TICK: Duration = Duration::from_millis(100);
/// Time to read what an ended runner left in its pipes.
const DRAIN: Duration = Duration::from_secs(2);

/// How a runner ended.
#[derive(Debug)]
pub enum Ended {
    /// It completed its task; holds the answer of an inspection or a probe.
    Done(Option<Frame>),
    /// It did not; the last known state. For runs the failure is on the stream too.
    Failed(Box<Failure>),
}

/// Watches one runner.
#[expect(clippy::struct_excessive_bools, reason = "what is known of the runner so far, each by itself")]
pub struct Supervisor {
    source: Option<(Source, RunId)>,
    limits: Limits,
    translate: Option<Box<dyn Translate>>,
    stage: Stage,
    last_sign: Instant,
    tail: LogTail,
    failure: Option<Box<Failure>>,
    status: Option<RunStatus>,
    answer: Option<Frame>,
    hello: bool,
    done: bool,
    garbage: u64,
    killed_for: Option<String>,
    ended_on_request: bool,
    console: Flood,
    staged: Staged,
    orders: Option<mpsc::Receiver<Command>>,
    answers: Option<mpsc::Sender<Frame>>,
    /// The runner has answered and waits for the next order.
    idle: bool,
}

/// Orders to a runner during its task, and its answers.
pub struct Dialogue {
    /// Lines for the runner; closing it asks the runner to end.
    pub orders: mpsc::Receiver<Command>,
    /// Its answers.
    pub answers: mpsc::Sender<Frame>,
}

/// Runs an inspection or a probe and returns its answer.
pub async fn ask(task: &Task, limits: Limits) -> Result<Ended, RunnerError> {
    let (_stop, stopped) = watch::channel(false);
    Supervisor::new(None, limits).run(task, stopped).await
}

impl Supervisor {
    /// A supervisor whose events go to `source`; without one, only the answer and the failure are returned.
    pub fn new(source: Option<(Source, RunId)>, limits: Limits) -> Self {
        Self {
            source,
            limits,
            translate: None,
            stage: Stage::Prepare,
            last_sign: Instant::now(),
            tail: LogTail::default(),
            failure: None,
            status: None,
            answer: None,
            hello: false,
            done: false,
            garbage: 0,
            killed_for: None,
            ended_on_request: false,
            console: Flood::new(),
            staged: Staged::default(),
            orders: None,
            answers: None,
            idle: false,
        }
    }

    /// Passes every answer to `dialogue`, and its orders to the runner.
    #[must_use]
    pub fn talking(self, dialogue: Dialogue) -> Self {
        Self { orders: Some(dialogue.orders), answers: Some(dialogue.answers), ..self }
    }

    /// Passes all of the runner's messages through `translate`.
    pub(in crate::backends) fn translating(mut self, translate: impl Translate + 'static) -> Self {
        self.translate = Some(Box::new(translate));
        self
    }

    /// Another runner continues the run of a lost one; must be followed by [`Supervisor::watch`].
    pub(in crate::backends) fn go_on(&mut self, translate: impl Translate + 'static) {
        self.translate = Some(Box::new(translate));
        (self.hello, self.done, self.answer) = (false, false, None);
    }

    /// Starts the runner, supervises it to its end, and returns how it ended. Setting `stop` asks it to end its phase.
    pub async fn run(mut self, task: &Task, stop: watch::Receiver<bool>) -> Result<Ended, RunnerError> {
        let mut task = task.clone();
        self.staged = Staged::prepare(&mut task);
        let request = request(&task)?;
        let exit = self.watch(&request, spawn(&task)?, stop).await;
        Ok(self.finish(exit).await)
    }

    /// Gives the runner its task and supervises it to the end of its process. Must be followed by
    /// [`Supervisor::finish`].
    pub(in crate::backends) async fn watch<P: Process>(
        &mut self,
        request: &[u8],
        runner: Running<P, impl AsyncBufRead + Unpin, impl AsyncBufRead + Unpin>,
        mut stop: watch::Receiver<bool>,
    ) -> Option<Exit> {
        let Running { mut process, frames, console } = runner;
        if process.write(request).await.is_err() {
            self.note(LogLevel::Error, "the runner closed its input before it read the task").await;
        }
        let mut frames = LineReader::new(frames, MAX_FRAME);
        let mut console = LineReader::new(console, MAX_CONSOLE_LINE);
        let (mut frames_open, mut console_open) = (true, true);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut ticks = 0u32;
        let mut stop_open = true;
        let mut stop_deadline: Option<Instant> = None;
        let mut exited: Option<Instant> = None;
        self.last_sign = Instant::now();
        while frames_open || console_open {
            // A noisy runner always has a line ready, and the buffers hold many: other events must get their
            // turn too.
            tokio::task::coop::consume_budget().await;
            tokio::select! {
                biased;
                changed = stop.changed(), if stop_open && stop_deadline.is_none() => {
                    stop_open = changed.is_ok();
                    if *stop.borrow() {
                        let mut line = serde_json::to_vec(&Command::Stop).unwrap_or_default();
                        line.push(b'\n');
                        let _ = process.write(&line).await;
                        // Between inferences it listens; while compiling it does not, but then there is
                        // nothing worth keeping yet.
                        let patience = if self.stage < Stage::FirstInference { Duration::ZERO } else { GRACE };
                        stop_deadline = Some(Instant::now() + patience);
                    }
                }
                // Before the pipes: a child that never stops writing must not keep its deadlines from being checked.
                _ = tick.tick() => {
                    ticks = ticks.wrapping_add(1);
                    self.watch_memory(&process, ticks).await;
                    if let Some(reason) = self.overdue() {
                        self.killed_for.get_or_insert(reason);
                    }
                    if stop_deadline.is_some_and(|deadline| Instant::now() > deadline) && !self.done {
                        self.ended_on_request = true;
                    }
                    if self.killed_for.is_some() || self.ended_on_request {
                        process.kill();
                    }
                    if exited.is_none() && process.has_ended() {
                        exited = Some(Instant::now());
                    }
                }
                order = next_order(&mut self.orders) => {
                    // The sender has no more orders.
                    let command = order.unwrap_or(Command::Stop);
                    let mut line = serde_json::to_vec(&command).unwrap_or_default();
                    line.push(b'\n');
                    self.idle = false;
                    self.last_sign = Instant::now();
                    let _ = process.write(&line).await;
                    if command == Command::Stop {
                        self.orders = None;
                        stop_deadline.get_or_insert(Instant::now() + GRACE);
                    }
                }
                line = frames.next(), if frames_open => frames_open = self.take_frame_line(line).await,
                line = console.next(), if console_open => console_open = self.take_console_line(line).await,
            }
            // A process started by vendor code may hold the pipes open after the runner is gone.
            if exited.is_some_and(|at| at.elapsed() > DRAIN) {
                break;
            }
        }
        process.wait().await
    }

    async fn take_frame_line(&mut self, line: Line) -> bool {
        match line {
            Line::End => return false,
            Line::Whole(bytes) => match serde_json::from_slice::<Frame>(&bytes) {
                Ok(frame) => {
                    // Only frames count: anything else that model code writes to the channel is not progress.
                    self.last_sign = Instant::now();
                    self.take_frame(frame).await;
                }
                Err(_) => self.take_garbage(&bytes).await,
            },
            Line::Cut(bytes) => {
                let text = format!("the runner stopped inside a line of {} bytes", bytes.len());
                self.note(LogLevel::Error, &text).await;
            }
            Line::TooLong(start) => self.take_garbage(&start).await,
        }
        true
    }

    /// Data on the frame channel that is not a frame: quoted a few times, then only counted.
    async fn take_garbage(&mut self, bytes: &[u8]) {
        self.garbage += 1;
        if self.garbage <= 5 {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
            self.note(LogLevel::Warning, &format!("the runner sent something that is not a frame: {start}")).await;
        }
        if !self.hello {
            self.killed_for.get_or_insert_with(|| "the runner does not speak qnnscope's protocol".to_owned());
        }
    }

    async fn take_frame(&mut self, frame: Frame) {
        match frame {
            Frame::Hello(hello) => {
                if let Some(translate) = &mut self.translate {
                    translate.hello(&hello);
                }
                self.hello = hello.protocol == PROTOCOL;
                if !self.hello {
                    let text = format!(
                        "the runner speaks protocol {}, not {PROTOCOL}: it is from another version of qnnscope (version {}); rebuild \
                         it from this one",
                        hello.protocol,
                        crate::event::clean_text(&hello.version)
                    );
                    self.killed_for.get_or_insert(text);
                }
            }
            Frame::Event { t_us, event } => {
                let translated = match &mut self.translate {
                    Some(translate) => translate.event(t_us, event),
                    None => Some((t_us, event)),
                };
                let Some((t_us, event)) = translated else { return };
                match &event {
                    Event::StageStarted { stage } => {
                        self.stage = *stage;
                        self.tail.next_stage();
                    }
                    Event::Log(line) => self.tail.take(line),
                    Event::SettingApplied(Setting { key, outcome: SettingOutcome::NoEffect(_), .. })
                        if key == SAVE_PROFILE_LOG =>
                    {
                        self.staged.drop_profile_log();
                    }
                    _ => {}
                }
                match event {
                    // Hints are the front end's job, so they are added here and not by the runner.
                    Event::Failed(mut failure) => {
                        failure.hint = crate::hints::for_failure(&failure);
                        self.failure = Some(failure.clone());
                        self.send(t_us, Event::Failed(failure)).await;
                    }
                    // Sent by `finish`, once the process has really ended.
                    Event::RunFinished { status } => self.status = Some(status),
                    event => self.send(t_us, event).await,
                }
            }
            Frame::ContextStaged => self.place_context().await,
            Frame::Done => self.done = true,
            answer => match &self.answers {
                Some(answers) => {
                    self.idle = true;
                    let _ = answers.send(answer).await;
                }
                None => self.answer = Some(answer),
            },
        }
    }

    async fn place_context(&mut self) {
        if let Err((path, error)) = self.staged.place_context() {
            let message = format!("cannot write the context binary to {}: {error}", path.display());
            let failure = Failure { bad_input: true, ..Failure::new(Stage::Finalize, "save context", &message) };
            self.fail(failure).await;
        }
    }

    async fn take_console_line(&mut self, line: Line) -> bool {
        let bytes = match line {
            Line::End => return false,
            Line::Whole(bytes) | Line::Cut(bytes) | Line::TooLong(bytes) => bytes,
        };
        let (passes, held_back) = self.console.take();
        self.report_held_back(held_back).await;
        if !passes {
            return true;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for event in console::events(&text) {
            match &event {
                Event::Log(line) => self.tail.take(line),
                // A session recreated for layer times compiles the same graphs again.
                Event::SubStageFinished(_) if self.stage >= Stage::Execute => continue,
                _ => {}
            }
            self.send(crate::event::now_us(), event).await;
        }
        true
    }

    async fn report_held_back(&self, count: u64) {
        if count > 0 {
            let reason = format!("more than {LINES_PER_S} console lines per second");
            let lost = Event::Lost { source: "runner console".to_owned(), reason, count };
            self.send(crate::event::now_us(), lost).await;
        }
    }

    async fn send(&self, t_us: u64, event: Event) {
        if let Some((source, run)) = &self.source {
            source.send_at(t_us, Some(*run), event).await;
        }
    }

    async fn note(&mut self, level: LogLevel, text: &str) {
        let line = LogLine::new(level, LogSource::Qnnscope, text);
        self.tail.take(&line);
        self.send(crate::event::now_us(), Event::Log(line)).await;
    }

    /// Records a failure of the work around the runner; the first failure is the one that counts.
    pub(in crate::backends) async fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() {
            let failure = Box::new(failure);
            self.failure = Some(failure.clone());
            self.send(crate::event::now_us(), Event::Failed(failure)).await;
        }
    }
}

/// The next order of a dialogue, `None` when there are no more; waits forever without a dialogue.
async fn next_order(orders: &mut Option<mpsc::Receiver<Command>>) -> Option<Command> {
    match orders {
        Some(orders) => orders.recv().await,
        None => std::future::pending().await,
    }
}

/// The line that gives a runner its task.
pub(in crate::backends) fn request(task: &Task) -> Result<Vec<u8>, RunnerError> {
    let mut line = serde_json::to_vec(task).map_err(|error| RunnerError::Request { reason: error.to_string() })?;
    line.push(b'\n');
    Ok(line)
}
