//! A run on a device, from the user's files to its last round.

use super::job::{Broken, NetRun, Setup};
use super::kept_log::KeptLog;
use super::pace::Pace;
use super::prepare::prepare;
use super::rounds::Rounds;
use super::{config, fits};
use crate::backends::on_device::environment::priority_outcome;
use crate::backends::on_device::kit::{Needs, hexagon_arch, kit};
use crate::backends::on_device::link::persist;
use crate::backends::on_device::names::model_name;
use crate::backends::on_device::{OnDeviceError, TOOL, around, versions};
use crate::backends::qnn::runner::Pin;
use crate::backends::settings;
use crate::backends::{Backend, asked_to_stop};
use crate::devices::DeviceError;
use crate::event::{DeviceFacts, Event, Failure, LogLevel, RunStatus, Setting, SettingOutcome, Stage};
use crate::probes::DeviceProbe;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Time a device gets to log a crash.
const TOMBSTONE: Duration = Duration::from_millis(800);
/// The system's folders on a run's library path.
const VENDOR_FOLDERS: [&str; 2] = ["/vendor/dsp/cdsp", "/vendor/lib64"];

impl NetRun<'_> {
    /// Carries out the run while `probe` samples counters; creates a probe if there was none. Failures of any
    /// kind go to the stream, and so does its end. `pace` holds what earlier launches of the run learned, and
    /// afterwards what this one learned.
    pub async fn run(&self, probe: &mut Option<DeviceProbe>, pace: &mut Pace, mut stop: watch::Receiver<bool>) {
        let mut setup = None;
        let status = match self.carry_out(probe, pace, &mut stop, &mut setup).await {
            Ok(status) => status,
            Err(broken) => {
                let failure = Self::failure(&broken);
                self.send(Event::Failed(Box::new(failure))).await;
                // While the run's folder still exists.
                (self.after_failure)(self.source, self.run, self.device, &stop).await;
                RunStatus::Failed
            }
        };
        if let Some(claim) = setup.and_then(|setup| setup.claim) {
            around::tell_visitor(&claim, self.source, self.run).await;
            // A lost device is out of reach now: the next run, or `clean`, removes what is left there.
            let _ = claim.remove().await;
        }
        self.send(Event::RunFinished { status }).await;
    }

    async fn carry_out(
        &self,
        probe: &mut Option<DeviceProbe>,
        pace: &mut Pace,
        stop: &mut watch::Receiver<bool>,
        kept: &mut Option<Setup>,
    ) -> Result<RunStatus, Broken> {
        self.send(Event::StageStarted { stage: Stage::Prepare }).await;
        let began = Instant::now();
        let setup = tokio::select! {
            setup = self.set_up() => setup?,
            // Sending a large model's files takes a while; dropping the future ends it at the next block.
            () = asked_to_stop(stop) => return Ok(RunStatus::Stopped),
        };
        let setup = kept.insert(setup);
        let link = self.link(&setup.facts);
        let clock = around::sample(link, setup.facts.root, &self.options.counters, probe).await?;
        let duration_us = began.elapsed().as_secs_f64() * 1e6;
        self.send(Event::StageFinished { stage: Stage::Prepare, duration_us }).await;
        let _logcat = crate::backends::on_device::logcat::follow(self.device, self.source.clone(), self.run);
        let text = format!("the device's clock is aligned with this machine's to ±{} µs", clock.uncertainty_us);
        self.note(LogLevel::Info, &text).await;
        let kept_log = setup.kept_log.take();
        let mut claim = setup.claim.take().ok_or(OnDeviceError::Input("the run's folder is missing".to_owned()))?;
        let mut rounds = Rounds::new(self, setup, &mut claim, clock, *pace, probe).keeping(kept_log);
        let ended = rounds.all(stop).await;
        *pace = rounds.pace();
        setup.claim = Some(claim);
        if matches!(&ended, Err(Broken::Failed(failure)) if failure.call.starts_with("SIG")) {
            // The device logs a crash a moment later.
            tokio::time::sleep(TOMBSTONE).await;
        }
        ended
    }

    /// Everything up to the first round.
    async fn set_up(&self) -> Result<Setup, Broken> {
        let kept_log = KeptLog::open(self.task)?;
        let facts = around::describe(self.device, self.source, self.run).await?;
        let prepared = prepare(self.task, self.options.host_runtime.as_deref(), &facts).await?;
        self.send(Event::ModelIdentified(Box::new(prepared.model.clone()))).await;
        for note in &prepared.notes {
            self.note(LogLevel::Info, note).await;
        }
        for graph in &prepared.graphs {
            self.send(Event::GraphComposed(Box::new(graph.clone()))).await;
        }
        if let Some(graph) = &prepared.graph {
            self.send(Event::GraphChosen { name: graph.name.clone() }).await;
        }
        let inputs = prepared.inputs.origin.clone();
        self.send(Event::InputsPrepared { seed: self.task.seed, inputs }).await;
        let resolved = settings::resolve(&self.task.settings, self.task.backend)
            .map_err(|error| OnDeviceError::Input(error.to_string()))?;
        let target = self.options.sdk.target(&facts)?;
        let arch = hexagon_arch(self.task.backend, &resolved, &facts)?;
        let graph = prepared.graph.as_ref().map(|graph| graph.name.as_str()).or(self.task.graph.as_deref());
        let inner = (self.task.backend == Backend::Htp).then(|| config::inner(&resolved, graph, &facts)).flatten();
        let configured = inner.is_some();
        let needs =
            Needs { backend: self.task.backend, format: prepared.model.format, arch, configured, has_dsp: true };
        let mut files = kit(&target, needs)?;
        let searched = if self.options.vendor_libraries { &VENDOR_FOLDERS[..] } else { &[] };
        let searched: Vec<String> = searched.iter().map(|&folder| folder.to_owned()).collect();
        let opened = [self.task.backend.library()];
        let link = self.link(&facts);
        persist!(link, fits::check(self.device, &files, TOOL, &opened, &searched).await)?;
        let (format, info) = (prepared.model.format, prepared.model.context_binary.as_ref());
        for doubt in versions::doubts(&files, self.task.backend, &self.task.model, format, info).await {
            self.note(LogLevel::Warning, &doubt).await;
        }
        files.insert(model_name(prepared.model.format).to_owned(), self.task.model.clone());
        files.extend(prepared.inputs.files.iter().cloned());
        // The configuration contains the path of the run's folder, which is unknown before the files are
        // sent, so it is written on the device.
        let claim = around::send_files(link, &files, self.options.vendor_libraries).await?;
        let folder = claim.folder().to_owned();
        if let Some(inner) = inner {
            for (name, text) in [(config::INNER, &inner), (config::OUTER, &config::outer(&folder))] {
                persist!(link, self.write(&folder, name, &text.to_string()).await)?;
            }
        }
        for setting in config::outcomes(&resolved, graph) {
            self.send(Event::SettingApplied(setting)).await;
        }
        for setting in self.other_outcomes(&facts) {
            self.send(Event::SettingApplied(setting)).await;
        }
        Ok(Setup { facts, prepared, folder, claim: Some(claim), kept_log, resolved, configured })
    }

    /// Settings without an option in qnn-net-run, and the priority.
    fn other_outcomes(&self, facts: &DeviceFacts) -> Vec<Setting> {
        let no_effect = |key: &str, value: String, why: &str| Setting {
            key: key.to_owned(),
            value,
            outcome: SettingOutcome::NoEffect(why.to_owned()),
        };
        let mut settings = Vec::new();
        if let Some(path) = &self.task.save_context {
            let why = "qnn-net-run does not write contexts; use the SDK's qnn-context-binary-generator";
            settings.push(no_effect("--save-context", crate::event::clean_text(&path.to_string_lossy()), why));
        }
        if let Some(path) = &self.task.profile_log {
            let value = crate::event::clean_text(&path.to_string_lossy());
            let outcome = SettingOutcome::Applied;
            settings.push(Setting { key: "--save-profile-log".to_owned(), value, outcome });
        }
        if !matches!(self.task.pin, Pin::Unset | Pin::Free) {
            let why = "qnn-net-run has no option for it; a qnnscope built for the device has (--runner FILE)";
            settings.push(no_effect("--pin", self.task.pin.to_string(), why));
        }
        settings.push(priority_outcome(facts.root));
        settings
    }

    /// Writes a small text file of the run.
    async fn write(&self, folder: &str, name: &str, text: &str) -> Result<(), DeviceError> {
        let script = format!(
            "printf %s {} >{}",
            crate::devices::quote(text),
            crate::devices::quote(&format!("{folder}/{name}"))
        );
        self.device.run_ok(&script, &format!("writing {name}")).await.map(|_| ())
    }

    fn failure(broken: &Broken) -> Failure {
        match broken {
            Broken::Failed(failure) => (**failure).clone(),
            Broken::Setup(error) => {
                let call = match error {
                    OnDeviceError::Device(_) | OnDeviceError::Gone { .. } => "adb",
                    OnDeviceError::Input(_) | OnDeviceError::NoInputs { .. } => "inputs",
                    OnDeviceError::Format(_) => "identify",
                    _ => "prepare",
                };
                Failure {
                    hint: error.advice(),
                    missing: error.is_missing(),
                    bad_input: error.is_bad_input(),
                    ..Failure::new(Stage::Prepare, call, &error.to_string())
                }
            }
        }
    }
}
