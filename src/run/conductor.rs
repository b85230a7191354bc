//! Runs launch by launch, and the orders that come in between.

use super::after_failure::after_failure;
use super::asked::ask_validator;
use super::cool_down::{HeatWatch, Pause};
use super::judging::Judging;
use super::launches::{Course, LaunchGate, Next, Turns};
use super::site::Site;
use crate::backends::asked_to_stop;
use crate::backends::device_runner::DeviceRun;
use crate::backends::local::{DSP_PATH, Ended, LIBRARY_PATH, Limits, RunnerError, Supervisor, search_path};
use crate::backends::net_run::{NetRun, Pace};
use crate::backends::qnn::runner::{RunTask, Task};
use crate::backends::runtime::{Depth, changed_in};
use crate::devices::{Device, Root};
use crate::event::{Event, Failure, LogLevel, LogLine, LogSource, Placement, RunId, RunPlan, RunStatus, Stage};
use crate::models::source_names;
use crate::probes::{CounterOptions, DeviceProbe, hottest_celsius};
use crate::session::{Source, Tape};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// Time for a run to stop when the session ends: more than a runner gets to stop between inferences.
const LEAVE: Duration = Duration::from_secs(20);

/// A run to be made: what is told on the stream, what is to be done, and where.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// For the stream.
    pub plan: RunPlan,
    /// What is to be done.
    pub task: RunTask,
    /// Where and by what.
    pub site: Arc<Site>,
    /// What its outputs are judged by.
    pub judging: Option<Judging>,
}

/// An order to the conductor.
#[derive(Debug)]
pub enum Order {
    /// Make these runs after those that wait already.
    Run(Vec<RunRequest>),
    /// Stop the current run, clear the queue, and make these.
    Replace(Vec<RunRequest>),
    /// End the run that goes on and drop those that wait.
    Stop,
}

/// A run of which launches are made.
struct OpenRun<'a> {
    id: RunId,
    request: &'a RunRequest,
    source: Source,
    course: Course,
    gate: Arc<LaunchGate>,
    /// How long rounds of qnn-net-run should be.
    pace: Pace,
    /// What follows the last launch.
    next: Next,
}

impl OpenRun<'_> {
    /// True if a difference of the two is looked for: the same backend of the same device.
    fn is_compared_with(&self, other: &Self) -> bool {
        let of = |run: &Self| (run.request.plan.backend, run.request.plan.device.clone());
        self.id != other.id && of(self) == of(other)
    }

    async fn finish(&self, status: RunStatus) {
        self.source.send(Some(self.id), Event::RunFinished { status }).await;
    }
}

/// Makes runs in order; never two at once, they would disturb each other's figures.
#[derive(Debug)]
pub struct Conductor {
    source: Source,
    limits: Limits,
    next_run: u32,
    /// Counters of devices that runs were made on, by device.
    probes: BTreeMap<String, DeviceProbe>,
    /// What their counters tell of heat.
    heat: Arc<HeatWatch>,
    /// This machine's hottest sensor before the first run, °C.
    host_celsius: Option<f64>,
}

impl Conductor {
    /// A conductor whose events go to `source`.
    pub fn new(source: Source, limits: Limits) -> Self {
        let heat = Arc::new(HeatWatch::default());
        let source = source.observed_by(heat.clone());
        Self { source, limits, next_run: 0, probes: BTreeMap::new(), heat, host_celsius: None }
    }

    /// Begins a run: from here on it is on the stream.
    async fn open<'a>(&mut self, request: &'a RunRequest) -> OpenRun<'a> {
        let id = RunId(self.next_run);
        self.next_run += 1;
        // The facts and the log of the run are kept until its end: a failure is looked into at once.
        let source = self.source.taped(Tape::new(id));
        source.send(Some(id), Event::RunStarted(Box::new(request.plan.clone()))).await;
        if request.site.is_here() {
            tell_changes(&source, id, &request.task.runtime_dir).await;
        }
        if let Some(names) = source_names(&request.task.model) {
            source.send(Some(id), Event::SourceNamed(Box::new(names))).await;
        }
        if id.0 == 0 && request.plan.mode.cool_down_s.is_some() {
            self.host_celsius = hottest_celsius();
        }
        let (course, gate) = (Course::new(&request.plan), LaunchGate::new());
        OpenRun { id, request, source, course, gate, pace: Pace::default(), next: Next::Launch }
    }

    /// Makes the next launch of a run, and ends the run if it was the last for sure. True if it was not. Failures of any kind are on
    /// the stream.
    async fn launch(&mut self, run: &mut OpenRun<'_>, mut stop: watch::Receiver<bool>) -> bool {
        let OpenRun { id, request, source, course, gate, pace, next } = run;
        let id = *id;
        let began = Instant::now();
        if !self.cool_down(id, request, course.is_begun(), &mut stop).await {
            source.send(Some(id), Event::RunFinished { status: RunStatus::Stopped }).await;
            return false;
        }
        let (later, (started, task)) = (course.is_begun(), course.begin(&request.task));
        source.send(Some(id), started).await;
        let temporary = request.judging.as_ref().is_some_and(|judging| judging.folder.is_some());
        gate.begin(&task, later, temporary);
        let gated = source.gated(gate.clone());
        // A launch of something else than the first one is ended: its figures would not be those of the run.
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
        // What became of the files is known then.
        if request.site.is_here() && launched.other.is_none() {
            ask_validator(source, id, &task, self.limits, &stop).await;
            after_failure(source, id, &Device::local(), &stop).await;
        }
        false
    }

    /// Carries out the task of one launch.
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
                // Taken out while the run has it: a run may end in the middle of anything.
                let mut probe = self.probes.remove(device.id());
                let run = NetRun { device, options, task, limits, source, run: id, after_failure };
                run.run(&mut probe, pace, stop).await;
                self.probes.extend(probe.map(|probe| (device.id().to_owned(), probe)));
            }
            Site::DeviceRunner { device, options } => {
                let mut probe = self.probes.remove(device.id());
                let run = DeviceRun { device, options, task, limits, source, run: id, after_failure };
                run.run(&mut probe, stop).await;
                self.probes.extend(probe.map(|probe| (device.id().to_owned(), probe)));
            }
        }
    }

    /// Waits until the device of a run is as cool as before the first launch of all, if that is asked for. False if the user
    /// ended the run meanwhile.
    async fn cool_down(&self, id: RunId, request: &RunRequest, later: bool, stop: &mut watch::Receiver<bool>) -> bool {
        let Some(limit_s) = request.plan.mode.cool_down_s.filter(|_| later || id.0 > 0) else { return true };
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

    /// Samples this machine as a device; what cannot be done is told, the run goes on.
    async fn sample_here(&mut self, counters: &CounterOptions) {
        let device = Device::local();
        if self.probes.contains_key(device.id()) {
            return;
        }
        let root = if crate::devices::is_root() { Root::Shell } else { Root::None };
        match DeviceProbe::start(&device, root, counters, &self.source).await {
            Ok(probe) => self.probes.extend(probe.map(|probe| (device.id().to_owned(), probe))),
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

    /// Makes the runs of one order, launch by launch: in rounds, in which each run has one launch, so that heat, clocks and
    /// whatever else changes with time favour none. The first round keeps to the order of `requests`, later ones are in random
    /// order. Setting `stop` ends what goes on and leaves the rest out.
    pub async fn run_all(&mut self, requests: &[RunRequest], stop: &watch::Receiver<bool>) {
        let mut open = Vec::new();
        for request in requests {
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

    /// Ends the sampling of devices, and the loops on them.
    pub async fn finish(self) {
        for (_, probe) in self.probes {
            probe.stop().await;
        }
    }

    /// Carries out orders until their channel closes; then stops the run that goes on, in order where that does not take long.
    pub async fn serve(mut self, mut orders: mpsc::Receiver<Order>) {
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
                        // What the run has to write, and what it has on a device, is brought to its end first. Then
                        // dropping the run kills the runner.
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

/// Lets runs that have enough launches keep pace with those that they are compared with, so that each launch has its neighbour, and ends
/// the others.
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

/// Says which files of the runtime are not as they were installed, before they are loaded.
async fn tell_changes(source: &Source, id: RunId, runtime: &Path) {
    let folder = runtime.to_owned();
    // Files whose time is another one are read, which takes a while.
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

/// Changes what waits; true if the run that goes on has to end.
fn apply(order: Order, waiting: &mut VecDeque<Vec<RunRequest>>) -> bool {
    match order {
        Order::Run(requests) => {
            waiting.push_back(requests);
            false
        }
        Order::Replace(requests) => {
            waiting.clear();
            waiting.push_back(requests);
            true
        }
        Order::Stop => {
            waiting.clear();
            true
        }
    }
}
