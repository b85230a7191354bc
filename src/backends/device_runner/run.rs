//! A run by a runner on a device, from the user's files to what is fetched in the end.

use super::DeviceRunnerError;
use super::fetch::fetch;
use super::process;
use super::script::Start;
use super::shipment::Shipment;
use super::translate::Translation;
use crate::backends::local::{Exit, Limits, Supervisor, request};
use crate::backends::net_run::clock::WallClock;
use crate::backends::net_run::environment::priority_outcome;
use crate::backends::net_run::kit::{Needs, hexagon_arch, runner_libraries};
use crate::backends::net_run::prepare::machine;
use crate::backends::net_run::{Target, around, deploy, logcat};
use crate::backends::qnn::runner::{RunTask, Task};
use crate::backends::{AfterFailure, settings};
use crate::devices::{Device, Root};
use crate::event::{Event, Failure, RunId, RunStatus, Stage};
use crate::models::identify_for;
use crate::probes::{CounterOptions, DeviceProbe};
use crate::session::Source;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// Time that is spent on a lost device to leave nothing on it.
const TIDY_LIMIT: Duration = Duration::from_secs(15);

/// With what a runner on a device works.
#[derive(Debug, Clone)]
pub struct DeviceRunnerOptions {
    /// The runner, a file of this machine that is built for the device.
    pub runner: PathBuf,
    /// Libraries for the device.
    pub libraries: Target,
    /// Whether the system's library folders are searched too.
    pub vendor_libraries: bool,
    /// Counters of the device that are sampled meanwhile.
    pub counters: CounterOptions,
}

/// One run.
pub struct DeviceRun<'a> {
    /// Where.
    pub device: &'a Device,
    /// With what.
    pub options: &'a DeviceRunnerOptions,
    /// What.
    pub task: &'a RunTask,
    /// Bounds; memory is the device's own business.
    pub limits: Limits,
    /// Where events go.
    pub source: &'a Source,
    /// Which run they belong to.
    pub run: RunId,
    /// What is done after a failure.
    pub after_failure: AfterFailure,
}

/// What is on the device for a run.
struct Prepared {
    shipment: Shipment,
    folder: String,
    clock: WallClock,
    root: Root,
}

impl DeviceRun<'_> {
    /// Makes the run, with the counters that `probe` samples; there is one afterwards if there was none. Failures of any kind
    /// are on the stream; so is its end.
    pub async fn run(&self, probe: &mut Option<DeviceProbe>, mut stop: watch::Receiver<bool>) {
        self.send(Event::StageStarted { stage: Stage::Prepare }).await;
        // Files that are being sent need not all arrive when the run is not wanted any more.
        let prepared = tokio::select! {
            prepared = self.prepare(probe) => prepared,
            () = stopped(&mut stop) => return self.send(Event::RunFinished { status: RunStatus::Stopped }).await,
        };
        match prepared {
            Ok(prepared) => self.carry_out(prepared, probe.as_ref(), stop).await,
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
        files.extend(shipment.files.clone());
        let sent =
            around::send_files(self.device, &files, self.options.vendor_libraries, self.source, self.run).await?;
        self.send(Event::SettingApplied(priority_outcome(facts.root))).await;
        around::sample(self.device, facts.root, &self.options.counters, self.source, probe).await?;
        let clock = WallClock::align(self.device).await?;
        Ok(Prepared { shipment, folder: sent.folder, clock, root: facts.root })
    }

    async fn carry_out(&self, prepared: Prepared, probe: Option<&DeviceProbe>, stop: watch::Receiver<bool>) {
        let Prepared { shipment, folder, clock, root } = prepared;
        let stopping = stop.clone();
        let _logcat = logcat::follow(self.device, self.source.clone(), self.run);
        let translation = Translation::new(clock, shipment.names(self.task, &folder));
        let mut supervisor =
            Supervisor::new(Some((self.source.clone(), self.run)), self.limits).translating(translation);
        let exit = match request(&Task::Run(Box::new(shipment.task(self.task, &folder)))) {
            Ok(request) => {
                let vendor_libraries = self.options.vendor_libraries;
                let runner = process::start(self.device, Start { folder: folder.clone(), root, vendor_libraries });
                let (runner, pid) = runner;
                let counted = async {
                    // None where it did not even start.
                    if let (Ok(pid), Some(probe)) = (pid.await, probe) {
                        probe.watch(Some(pid));
                    }
                };
                tokio::join!(supervisor.watch(&request, runner, stop), counted).0
            }
            Err(error) => {
                supervisor.fail(failure(&error.into(), Stage::Prepare)).await;
                None
            }
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
            // Tells nothing of a run that did not fail; the run's folder is still there.
            (self.after_failure)(self.source, self.run, self.device, &stopping).await;
        }
        // What is left there is removed by the next `clean`.
        let _ = tokio::time::timeout(TIDY_LIMIT, async {
            if lost {
                let _ = self.device.revive().await;
            }
            deploy::remove_run(self.device, &folder).await
        })
        .await;
        supervisor.finish(exit).await;
    }

    async fn send(&self, event: Event) {
        self.source.send(Some(self.run), event).await;
    }
}

/// Waits until the run is to end.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
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
