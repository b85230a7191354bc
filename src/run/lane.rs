//! The runs of one device, one after another, launch by launch.

use super::after_failure::after_failure;
use super::asked::ask_validator;
use super::cool_down::{HeatWatch, Pause};
use super::launches::{Course, LaunchGate, Next, Turns};
use super::request::RunRequest;
use super::site::Site;
use crate::backends::asked_to_stop;
use crate::backends::device_runner::DeviceRun;
use crate::backends::local::{DSP_PATH, Ended, LIBRARY_PATH, Limits, RunnerError, Supervisor, search_path};
use crate::backends::net_run::{NetRun, Pace};
use crate::backends::qnn::runner::{RunTask, Task};
use crate::backends::runtime::{Depth, changed_in};
use crate::devices::{Device, Root};
use crate::event::{Event, Failure, LogLevel, LogLine, LogSource, Placement, RunId, RunStatus, Stage};
use crate::models::source_names;
use crate::probes::{CounterOptions, DeviceProbe, hottest_celsius};
use crate::session::{Source, Tape};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Time for a run to stop when the session ends: longer than a runner gets to stop between inferences.
const LEAVE: Duration = Duration::from_secs(20);

/// An order to a lane.
#[derive(Debug, Default)]
pub(super) struct LaneOrder {
    /// End the current run, and drop those queued.
    pub ends: bool,
    /// Then make these runs, after those already queued.
    pub then: Vec<RunRequest>,
}

/// A run whose launches are being made.
struct OpenRun<'a> {
    id: RunId,
    request: &'a RunRequest,
    source: Source,
    course: Course,
    gate: Arc<LaunchGate>,
    /// The length of qnn-net-run's rounds.
    pace: Pace,
    /// What follows the latest launch.
    next: Next,
}

impl OpenRun<'_> {
    /// True if the two can be compared: the same backend on the same device.
    fn is_compared_with(&self, other: &Self) -> bool {
        let of = |run: &Self| (run.request.plan.backend, run.request.plan.device.clone());
        self.id != other.id && of(self) == of(other)
    }

    async fn finish(&self, status: RunStatus) {
        self.source.send(Some(self.id), Event::RunFinished { status }).await;
    }
}

/// Makes the runs of one device, or of this machine, in order; never two at once, since they would disturb
/// each other's figures.
#[derive(Debug)]
pub(super) struct Lane {
    source: Source,
    limits: Limits,
    /// Counters of the device, once it has had a run.
    probe: Option<DeviceProbe>,
    /// What device counters show about heat.
    heat: Arc<HeatWatch>,
    /// This machine's hottest sensor before the first run, °C.
    host_celsius: Option<f64>,
    /// True once a launch has started: later ones find the device warm.
    is_warm: bool,
}

impl Lane {
    /// A lane whose events go to `source`, observed by `heat`.
    pub(super) fn new(source: Source, limits: Limits, heat: Arc<HeatWatch>) -> Self {
        Self { source, limits, probe: None, heat, host_celsius: None, is_warm: false }
    }

    /// Begins a run, which is on the stream from here on.
    async fn open<'a>(&mut self, request: &'a RunRequest) -> OpenRun<'a> {
        let id = self.source.new_run();
        // The facts and the log of the run are kept until its end, since a failure is examined immediately.
        let source = self.source.taped(Tape::new(id));
        source.send(Some(id), Event::RunStarted(Box::new(request.plan.clone()))).await;
        if request.site.is_here() {
            tell_changes(&source, id, &request.task.runtime_dir).await;
        }
        if let Some(names) = source_names(&request.task.model) {
            source.send(Some(id), Event::SourceNamed(Box::new(names))).await;
        }
        if !self.is_warm && request.plan.mode.cool_down_s.is_some() {
            self.host_celsius = hottest_celsius();
        }
        let (course, gate) = (Course::new(&request.plan), LaunchGate::new());
        OpenRun { id, request, source, course, gate, pace: Pace::default(), next: Next::Launch }
    }

    /// Makes the next launch of a run, and ends the run if that was certainly its last one; returns true if
    /// it was not. Failures of any kind go to the stream.
    async fn launch(&mut self, run: &mut OpenRun<'_>, mut stop: watch::Receiver<bool>) -> bool {
        let OpenRun { id, request, source, course, gate, pace, next } = run;
        let id = *id;
        let began = Instant::now();
        if !self.cool_down(id, request, &mut stop).await {
            source.send(Some(id), Event::RunFinished { status: RunStatus::Stopped }).await;
            return false;
        }
        let (later, (started, task)) = (course.is_begun(), course.begin(&request.task));
        source.send(Some(id), started).await;
        let temporary = request.judging.as_ref().is_some_and(|judging| judging.folder.is_some());
        gate.begin(&task, later, temporary);
        let gated = source.gated(gate.clone());
        // A launch that measures something other than the first one is ended: its figures would not belong to
        // the run.
        let (end, ended) = watch::channel(*stop.borrow());
        let ending = async {
            tokio::select! {
                () = asked_to_stop(&mut stop) => {}
                () = gate.other() => {}
            }
            let _ = end.send(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.make(id, &gated, &request.site, &task, pace, &ended) => {}
            () = ending => {}
        }
        let mut launched = gate.end();
        if let Some(judging) = request.judging.as_ref().filter(|_| !later && launched.status == RunStatus::Ok)
            && let Some(judged) = judging.judge(std::mem::take(&mut launched.saved)).await
        {
            source.send(Some(id), Event::OutputsJudged(Box::new(judged))).await;
        }
        if let Some(other) = &launched.other {
            let message = format!("{other}: figures of two things are not put together; run again");
            let failure = Failure::new(Stage::Prepare, "identify", &message);
            source.send(Some(id), Event::Failed(Box::new(failure))).await;
            launched.status = RunStatus::Failed;
        }
        let status = launched.status;
        *next = course.after(&launched, began.elapsed());
        if *next != Next::Over {
            return true;
        }
        source.send(Some(id), Event::RunFinished { status }).await;
        // Whether the files could be written is known by then.
        if request.site.is_here() && launched.other.is_none() {
            ask_validator(source, id, &task, self.limits, &stop).await;
            after_failure(source, id, &Device::local(), &stop).await;
        }
        false
    }

    /// Executes the task of one launch.
    async fn make(
        &mut self,
        id: RunId,
        source: &Source,
        at: &Site,
        task: &RunTask,
        pace: &mut Pace,
        stop: &watch::Receiver<bool>,
    ) {
        let (limits, stop) = (self.limits, stop.clone());
        match at {
            Site::Here { counters, .. } => {
                if let Some(counters) = counters {
                    self.sample_here(counters).await;
                }
                let placement = Box::new(placement_here(task));
                source.send(Some(id), Event::RunPlaced(placement)).await;
                self.run_here(source, id, task, stop).await;
            }
            Site::NetRun { device, options, .. } => {
                let run = NetRun { device, options, task, limits, source, run: id, after_failure };
                run.run(&mut self.probe, pace, stop).await;
            }
            Site::DeviceRunner { device, options } => {
                let run = DeviceRun { device, options, task, limits, source, run: id, after_failure };
                run.run(&mut self.probe, stop).await;
            }
        }
    }

    /// Waits, if requested, until the device is as cool as before its very first launch. Returns false if the
    /// user ended the run in the meantime.
    async fn cool_down(&mut self, id: RunId, request: &RunRequest, stop: &mut watch::Receiver<bool>) -> bool {
        let later = std::mem::replace(&mut self.is_warm, true);
        let Some(limit_s) = request.plan.mode.cool_down_s.filter(|_| later) else { return true };
        let pause = Pause {
            source: &self.source,
            run: id,
            device: &request.plan.device,
            limit: Duration::from_secs_f64(limit_s),
            watch: &self.heat,
            host_celsius: self.host_celsius.filter(|_| request.site.is_here()),
        };
        pause.wait(stop).await
    }

    /// Samples this machine like a device; problems are reported, and the run continues.
    async fn sample_here(&mut self, counters: &CounterOptions) {
        if self.probe.is_some() {
            return;
        }
        let device = Device::local();
        let root = if crate::devices::is_root() { Root::Shell } else { Root::None };
        match DeviceProbe::start(&device, root, counters, &self.source).await {
            Ok(probe) => self.probe = probe,
            Err(error) => {
                let line = LogLine::new(LogLevel::Warning, LogSource::Qnnscope, &error.to_string());
                self.source.send(None, Event::Log(line)).await;
            }
        }
    }

    async fn run_here(&self, source: &Source, id: RunId, task: &RunTask, stop: watch::Receiver<bool>) {
        let supervisor = Supervisor::new(Some((source.clone(), id)), self.limits);
        match supervisor.run(&Task::Run(Box::new(task.clone())), stop).await {
            Ok(Ended::Done(_) | Ended::Failed(_)) => {}
            Err(error) => {
                let failure = Failure {
                    missing: matches!(error, RunnerError::Spawn { .. }),
                    bad_input: matches!(error, RunnerError::Request { .. }),
                    ..Failure::new(Stage::Prepare, "spawn", &error.to_string())
                };
                source.send(Some(id), Event::Failed(Box::new(failure))).await;
                source.send(Some(id), Event::RunFinished { status: RunStatus::Failed }).await;
            }
        }
    }

    /// Makes runs launch by launch, in rounds with one launch of each run, so that heat, clocks and other
    /// changes over time favour none. The first round follows the order of `requests`, later ones are in
    /// random order. Setting `stop` ends the current run and skips the rest.
    pub(super) async fn run_all(&mut self, requests: &[&RunRequest], stop: &watch::Receiver<bool>) {
        let mut open = Vec::new();
        for &request in requests {
            if *stop.borrow() {
                let text = format!("the {} run was left out: stopped", request.plan.backend);
                self.source.send(None, Event::Log(LogLine::new(LogLevel::Warning, LogSource::Qnnscope, &text))).await;
                continue;
            }
            let mut run = self.open(request).await;
            if self.launch(&mut run, stop.clone()).await {
                open.push(run);
            }
        }
        let mut turns = Turns::new(requests.first().map_or(0, |request| request.plan.mode.launches.seed));
        loop {
            open = keep_pace(open).await;
            if open.is_empty() {
                return;
            }
            turns.shuffle(&mut open);
            for mut run in std::mem::take(&mut open) {
                if *stop.borrow() {
                    run.finish(RunStatus::Stopped).await;
                } else if self.launch(&mut run, stop.clone()).await {
                    open.push(run);
                }
            }
        }
    }

    /// Ends the sampling of the device, and the loops on it.
    pub(super) async fn finish(self) {
        if let Some(probe) = self.probe {
            probe.stop().await;
        }
    }

    /// Executes orders until their channel closes; then stops the current run, cleanly unless that takes
    /// long.
    pub(super) async fn serve(mut self, mut orders: mpsc::UnboundedReceiver<LaneOrder>) {
        let mut waiting: VecDeque<Vec<RunRequest>> = VecDeque::new();
        loop {
            let Some(requests) = waiting.pop_front() else {
                match orders.recv().await {
                    Some(order) => {
                        apply(order, &mut waiting);
                        continue;
                    }
                    None => return,
                }
            };
            let (stop, stopped) = watch::channel(false);
            let requests: Vec<&RunRequest> = requests.iter().collect();
            let run = self.run_all(&requests, &stopped);
            tokio::pin!(run);
            loop {
                tokio::select! {
                    () = &mut run => break,
                    order = orders.recv() => match order {
                        Some(order) => {
                            if apply(order, &mut waiting) {
                                let _ = stop.send(true);
                            }
                        }
                        // First finishes the run's files and its cleanup on the device. Dropping the run then
                        // kills the runner.
                        None => {
                            let _ = stop.send(true);
                            let _ = tokio::time::timeout(LEAVE, &mut run).await;
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// Lets runs with enough launches keep pace with those they are compared with, so that each launch has a
/// neighbour, and ends the others.
async fn keep_pace(open: Vec<OpenRun<'_>>) -> Vec<OpenRun<'_>> {
    let goes_on =
        |run: &OpenRun<'_>| open.iter().any(|other| other.next == Next::Launch && other.is_compared_with(run));
    let stays: Vec<bool> = open.iter().map(|run| run.next == Next::Launch || goes_on(run)).collect();
    let mut staying = Vec::new();
    for (mut run, stays) in open.into_iter().zip(stays) {
        if !stays {
            run.finish(RunStatus::Ok).await;
            continue;
        }
        if run.next == Next::Enough {
            run.course.keep_pace();
        }
        staying.push(run);
    }
    staying
}

/// Reports runtime files that differ from their installation, before they are loaded.
async fn tell_changes(source: &Source, id: RunId, runtime: &Path) {
    let folder = runtime.to_owned();
    // Files with a different modification time are read, which takes a while.
    let changed = tokio::task::spawn_blocking(move || changed_in(&folder, Depth::Quick)).await.unwrap_or_default();
    if changed.is_empty() {
        return;
    }
    let folder = crate::event::clean_text(&runtime.to_string_lossy());
    let files: Vec<String> = changed.iter().map(|file| crate::event::clean_text(&file.to_string())).collect();
    let text = format!(
        "the runtime in {folder} was changed since it was installed: {}; `qnnscope runtime verify` looks at all of it",
        files.join(", ")
    );
    let line = LogLine::new(LogLevel::Warning, LogSource::Qnnscope, &text);
    source.send(Some(id), Event::Log(line)).await;
    source.send(Some(id), Event::RuntimeChanged { folder, files }).await;
}

/// Where the runner on this machine finds libraries.
fn placement_here(task: &RunTask) -> Placement {
    let shown = |text: &std::ffi::OsStr| crate::event::clean_text(&text.to_string_lossy());
    Placement {
        folder: shown(task.runtime_dir.as_os_str()),
        library_path: shown(&search_path(&task.runtime_dir, LIBRARY_PATH)),
        dsp_path: shown(&search_path(&task.runtime_dir, DSP_PATH)),
        files: Vec::new(),
    }
}

/// Updates the queue; returns true if the current run must end.
fn apply(order: LaneOrder, waiting: &mut VecDeque<Vec<RunRequest>>) -> bool {
    if order.ends {
        waiting.clear();
    }
    waiting.extend((!order.then.is_empty()).then_some(order.then));
    order.ends
}
