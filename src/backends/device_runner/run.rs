//! A run by a runner on a device, from the user's files to the fetched results.

use super::DeviceRunnerError;
use super::fetch::fetch;
use super::process;
use super::resume::Course;
use super::script::{RUNNER, Start};
use super::shipment::{CONTEXT, PROFILE_LOG, Shipment};
use super::translate::Translation;
use crate::backends::local::{Exit, Limits, Supervisor, request};
use crate::backends::on_device::clock::WallClock;
use crate::backends::on_device::environment::priority_outcome;
use crate::backends::on_device::kit::{Needs, hexagon_arch, runner_libraries};
use crate::backends::on_device::link::{Link, persist};
use crate::backends::on_device::names::machine;
use crate::backends::on_device::tenants::Claim;
use crate::backends::on_device::versions::doubts;
use crate::backends::on_device::{LibraryTarget, around, logcat};
use crate::backends::qnn::runner::{RunTask, Task};
use crate::backends::{AfterFailure, asked_to_stop, settings};
use crate::devices::{Device, DeviceError, Root, quote};
use crate::event::{Event, Failure, LogLevel, LogLine, LogSource, RunId, RunStatus, Stage};
use crate::models::identify_for;
use crate::probes::{CounterOptions, DeviceProbe};
use crate::session::Source;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// Time spent trying to clean up on a lost device.
const TIDY_LIMIT: Duration = Duration::from_secs(15);

/// What a runner needs on a device.
#[derive(Debug, Clone)]
pub struct DeviceRunnerOptions {
    /// The runner, a local file built for the device.
    pub runner: PathBuf,
    /// Libraries for the device.
    pub libraries: LibraryTarget,
    /// Whether to search the system's library folders too.
    pub vendor_libraries: bool,
    /// Device counters to sample meanwhile.
    pub counters: CounterOptions,
}

/// One run.
pub struct DeviceRun<'a> {
    /// Where to run.
    pub device: &'a Device,
    /// With which options.
    pub options: &'a DeviceRunnerOptions,
    /// What to run.
    pub task: &'a RunTask,
    /// Limits; memory is up to the device.
    pub limits: Limits,
    /// Where events go.
    pub source: &'a Source,
    /// The run they belong to.
    pub run: RunId,
    /// What to do after a failure.
    pub after_failure: AfterFailure,
}

/// What has been put on the device for a run.
struct Prepared {
    shipment: Shipment,
    claim: Claim,
    model: Option<String>,
    clock: WallClock,
    root: Root,
}

impl DeviceRun<'_> {
    /// Carries out the run while `probe` samples counters; creates a probe if there was none. Failures of any
    /// kind go to the stream, and so does its end.
    pub async fn run(&self, probe: &mut Option<DeviceProbe>, mut stop: watch::Receiver<bool>) {
        self.send(Event::StageStarted { stage: Stage::Prepare }).await;
        // If the run is cancelled, there is no need to finish sending files.
        let prepared = tokio::select! {
            prepared = self.prepare(probe) => prepared,
            () = asked_to_stop(&mut stop) => return self.send(Event::RunFinished { status: RunStatus::Stopped }).await,
        };
        match prepared {
            Ok(prepared) => self.carry_out(prepared, probe, stop).await,
            Err(error) => {
                self.send(Event::Failed(Box::new(failure(&error, Stage::Prepare)))).await;
                self.send(Event::RunFinished { status: RunStatus::Failed }).await;
            }
        }
    }

    async fn prepare(&self, probe: &mut Option<DeviceProbe>) -> Result<Prepared, DeviceRunnerError> {
        let (task, libraries) = (self.task, &self.options.libraries);
        let facts = around::describe(self.device, self.source, self.run).await?;
        let format = identify_for(&task.model, machine(&facts.abi))?;
        let shipment = Shipment::new(task, &self.options.runner, format)?;
        let resolved = settings::resolve(&task.settings, task.backend)
            .map_err(|error| DeviceRunnerError::Input(error.to_string()))?;
        let has_dsp = !libraries.is_emulated();
        let arch = if has_dsp { hexagon_arch(task.backend, &resolved, &facts)? } else { None };
        let needs = Needs { backend: task.backend, format, arch, configured: false, has_dsp };
        let mut files = runner_libraries(libraries, needs)?;
        for doubt in doubts(&files, task.backend, &task.model, format, None).await {
            self.send(Event::Log(LogLine::new(LogLevel::Warning, LogSource::Qnnscope, &doubt))).await;
        }
        files.extend(shipment.files.clone());
        let link =
            Link { device: self.device, model: facts.model.as_deref(), source: self.source, run: Some(self.run) };
        let claim = around::send_files(link, &files, self.options.vendor_libraries).await?;
        self.send(Event::SettingApplied(priority_outcome(facts.root))).await;
        let clock = around::sample(link, facts.root, &self.options.counters, probe).await?;
        Ok(Prepared { shipment, claim, model: facts.model, clock, root: facts.root })
    }

    async fn carry_out(&self, prepared: Prepared, probe: &mut Option<DeviceProbe>, stop: watch::Receiver<bool>) {
        let Prepared { shipment, mut claim, model, clock, root } = prepared;
        let folder = claim.folder().to_owned();
        let stopping = stop.clone();
        let _logcat = logcat::follow(self.device, self.source.clone(), self.run);
        let (course, names) = (Course::default(), shipment.names(self.task, &folder));
        let mut supervisor = Supervisor::new(Some((self.source.clone(), self.run)), self.limits)
            .translating(Translation::new(clock, names.clone(), course.clone()));
        let start = Start { folder: folder.clone(), root, vendor_libraries: self.options.vendor_libraries };
        let mut task = self.task.clone();
        let exit = loop {
            let sent = shipment.task(&task, &folder);
            let (exit, pid) = self.launch(&mut supervisor, sent, &start, probe.as_ref(), stop.clone()).await;
            let Some(Exit::Lost { error, .. }) = &exit else { break exit };
            if !error.is_link() || !course.can_resume(self.task) {
                break exit;
            }
            let link = Link { device: self.device, model: model.as_deref(), source: self.source, run: Some(self.run) };
            if !link.wait_for_return(error, Some(&stopping)).await {
                break exit;
            }
            // Whatever else fails, the run ends as it would have with the lost link.
            let Ok(clock) = persist!(link, self.resume(&folder, pid).await) else { break exit };
            claim.renew();
            if let Some(probe) = probe.as_mut() {
                probe.revive();
            }
            if let Some(report) = course.cut_off(self.task) {
                self.send(Event::PaceReported(report)).await;
            }
            self.send(Event::RoundStarted { round: course.resume() }).await;
            if self.task.profile_log.is_some() {
                let text =
                    "the profile log restarts here: the runner that wrote the earlier part ended with the connection";
                self.send(Event::Log(LogLine::new(LogLevel::Warning, LogSource::Qnnscope, text))).await;
            }
            supervisor.go_on(Translation::new(clock, names.clone(), course.clone()));
            task = course.rest(self.task);
        };
        let lost = matches!(exit, Some(Exit::Lost { .. }));
        if !lost {
            match fetch(self.device, &folder, self.task).await {
                Ok(files) if files.is_empty() => {}
                Ok(files) => self.send(Event::OutputsSaved { files }).await,
                Err(error) => supervisor.fail(failure(&error, Stage::Teardown)).await,
            }
        }
        supervisor.settle(exit.as_ref()).await;
        if !lost {
            // Does nothing if the run did not fail; the run's folder still exists.
            (self.after_failure)(self.source, self.run, self.device, &stopping).await;
        }
        // The next run, or `clean`, removes what is left there.
        let _ = tokio::time::timeout(TIDY_LIMIT, async {
            if lost {
                let _ = self.device.revive().await;
            }
            around::tell_visitor(&claim, self.source, self.run).await;
            claim.remove().await
        })
        .await;
        supervisor.finish(exit).await;
    }

    /// Starts a runner with a task and supervises it to its end; returns its process on the device.
    async fn launch(
        &self,
        supervisor: &mut Supervisor,
        task: RunTask,
        start: &Start,
        probe: Option<&DeviceProbe>,
        stop: watch::Receiver<bool>,
    ) -> (Option<Exit>, Option<u32>) {
        let request = match request(&Task::Run(Box::new(task))) {
            Ok(request) => request,
            Err(error) => {
                supervisor.fail(failure(&error.into(), Stage::Prepare)).await;
                return (None, None);
            }
        };
        let (runner, pid) = process::start(self.device, start.clone());
        let counted = async {
            // None if it did not even start.
            let pid = pid.await.ok();
            if let (Some(_), Some(probe)) = (pid, probe) {
                probe.watch(pid);
            }
            pid
        };
        tokio::join!(supervisor.watch(&request, runner, stop), counted)
    }

    /// Prepares a reconnected device for another runner: ends the previous one if still running, removes what it may
    /// have begun to write, and measures the clock again. The run's files must still exist.
    async fn resume(&self, folder: &str, pid: Option<u32>) -> Result<WallClock, DeviceError> {
        let pid = pid.unwrap_or(0);
        let script = format!(
            "case \"$(tr '\\000' ' ' </proc/{pid}/cmdline 2>/dev/null)\" in ./{RUNNER}*) kill -9 {pid};; esac; cd {} && rm -f {PROFILE_LOG} {CONTEXT} && [ -e {RUNNER} ]",
            quote(folder)
        );
        self.device.run_ok(&script, "looking for the files of the run").await?;
        WallClock::align(self.device).await
    }

    async fn send(&self, event: Event) {
        self.source.send(Some(self.run), event).await;
    }
}

fn failure(error: &DeviceRunnerError, stage: Stage) -> Failure {
    Failure {
        hint: error.advice(),
        missing: error.is_missing(),
        bad_input: error.is_bad_input(),
        ..Failure::new(stage, error.call(), &error.to_string())
    }
}
