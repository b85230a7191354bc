//! Turns the options of a run into requests.

use super::launches;
use super::modes::{ModeRequest, Slot};
use super::names::Names;
use super::onnx_options::OnnxOptions;
use super::options::RunOptions;
use super::truth_options::TruthOptions;
use super::{CliError, Global, kept, say};
use crate::backends::qnn::runner::{InputFile, Pin, RunTask};
use crate::backends::settings::{self, SettingRequest};
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{Budget, Driver, RunPlan};
use crate::files::Kind;
use crate::run::{RunRequest, Site};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Default bounds of the number of detailed inferences, a quarter of the clean ones.
const DETAILED_ITERATIONS: (u64, u64) = (5, 200);
/// Detailed phase as a share of a clean phase given in seconds.
const DETAILED_SHARE: f64 = 0.25;

/// Where runs are made, and with which models.
#[derive(Debug)]
pub struct Destination {
    /// Where.
    pub site: Arc<Site>,
    /// The models as they exist there.
    pub models: Vec<PathBuf>,
    /// Options for the ONNX models among them.
    pub onnx: OnnxOptions,
}

/// A short name for one of several places, for use in file names.
fn place_word(places: &[Destination], at: usize) -> String {
    let word = |place: &Destination| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
        place.site.device_id().chars().map(plain).collect::<String>()
    };
    let own = word(&places[at]);
    match places[..at].iter().filter(|earlier| word(earlier) == own).count() {
        0 => own,
        earlier => format!("{own}.{}", earlier + 1),
    }
}

impl RunOptions {
    /// Checks everything that can be checked before a runner starts, and creates the requests: one per
    /// backend and model, unless the measurement mode requires several.
    pub fn requests(&self, models: &[PathBuf], site: &Arc<Site>, global: &Global) -> Result<Vec<RunRequest>, CliError> {
        let place = Destination { site: site.clone(), models: models.to_vec(), onnx: self.onnx.clone() };
        self.requests_on(&[place], global)
    }

    /// The same on several devices, each with the same number of models.
    pub fn requests_on(&self, places: &[Destination], global: &Global) -> Result<Vec<RunRequest>, CliError> {
        let Some(Destination { models, .. }) = places.first() else { return Ok(Vec::new()) };
        let settings = self.settings()?;
        for place in places {
            self.modes.check(self.asked(), &place.site)?;
        }
        self.check_inputs()?;
        let truth = self.truth.read(!self.input.is_empty() || self.input_list.is_some())?;
        let mut slots = self.modes.slots(&self.backend, models.len());
        // One seed for all, since they alternate.
        let launches = launches::plan(&self.modes, self.budgets().0, crate::event::epoch_us())?;
        for slot in &mut slots {
            slot.mode.launches = launches;
        }
        let sides = self.backend.len() * models.len();
        let mut requests = Vec::new();
        for (at, Destination { site, models, onnx }) in places.iter().enumerate() {
            let onnx: Vec<_> = models.iter().map(|model| onnx.task(model, site)).collect::<Result<_, _>>()?;
            let word = (places.len() > 1).then(|| place_word(places, at));
            let names = Names { slots: &slots, models, place: word.as_deref() };
            for (index, slot) in slots.iter().enumerate() {
                // Invalid values are bad input, which is already known now.
                settings::resolve(&settings, slot.backend)?;
                // Rounds and sweeps of two devices must not be combined.
                let slot = slot.moved(at * sides);
                let mut request = self.request(&models[slot.model], &slot, site, &settings, global);
                if onnx[slot.model].is_some() {
                    request.plan.driver = Driver::OnnxRuntime;
                    request.task.onnx.clone_from(&onnx[slot.model]);
                }
                request.task.save_outputs = self.save_outputs.as_ref().map(|dir| names.output_dir(dir, index));
                if let Some(truth) = &truth {
                    let judging = TruthOptions::judging(truth, request.task.save_outputs.is_some())?;
                    if let Some(folder) = &judging.folder {
                        request.task.save_outputs = Some(folder.path().to_owned());
                    }
                    request.judging = Some(judging);
                }
                request.task.profile_log = self.save_profile_log.as_ref().map(|file| names.log_file(file, index));
                request.task.save_context = self.save_context.as_ref().map(|file| names.context_file(file, index));
                requests.push(request);
            }
        }
        self.guard(&requests, global)?;
        // From here on the session is a file that runners must leave alone.
        let record = self.beside.record.as_ref().and_then(|path| std::path::absolute(path).ok());
        for RunRequest { task, .. } in &mut requests {
            task.protected.extend(record.iter().filter(|path| path.to_str().is_some()).cloned());
        }
        Ok(requests)
    }

    /// Refuses what a runner cannot read: its own standard input carries its orders.
    fn check_inputs(&self) -> Result<(), CliError> {
        let is_stdin = |path: &&PathBuf| {
            ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path.as_os_str() == *name)
        };
        let mut files = self.input.iter().map(|(_, path)| path).chain(&self.input_list);
        match files.find(is_stdin) {
            None => Ok(()),
            Some(path) => Err(CliError::Usage(format!(
                "inputs cannot come from standard input ({}), since every launch reads them again; name a file",
                path.display()
            ))),
        }
    }

    /// Makes sure that the runs write nothing they read, nothing twice, and no file of another program.
    fn guard(&self, requests: &[RunRequest], global: &Global) -> Result<(), CliError> {
        let Some(RunRequest { task, site, .. }) = requests.first() else { return Ok(()) };
        let mut guard = task.guard();
        self.truth.guard(&mut guard);
        guard.prints();
        kept::protect_history(&mut guard);
        site.protect(&mut guard);
        for RunRequest { task, site, .. } in requests.iter().filter(|request| !Arc::ptr_eq(&request.site, site)) {
            guard.reads("the model", &task.model);
            if site.is_here() {
                guard.reads_folder("the library", &task.runtime_dir);
            }
            site.protect(&mut guard);
        }
        if let Some(folder) = &global.runtime {
            guard.reads_folder("the library", folder);
        }
        if let Some(record) = &self.beside.record {
            guard.claim("--record", record, Kind::Session)?;
        }
        // Several runs of one backend write the same context.
        let mut contexts: Vec<&Path> = Vec::new();
        for RunRequest { task, .. } in requests {
            if let Some(path) = task.save_context.as_deref().filter(|path| !contexts.contains(path)) {
                contexts.push(path);
                guard.claim("--save-context", path, Kind::Context)?;
            }
            if let Some(path) = &task.profile_log {
                guard.claim("--save-profile-log", path, Kind::ProfileLog)?;
            }
            if let Some(folder) = &task.save_outputs {
                guard.check_folder("--save-outputs", folder)?;
            }
        }
        Ok(())
    }

    /// Files of the command that a runner does not read, as far as it can be told about them.
    fn protected(&self, global: &Global) -> Vec<PathBuf> {
        let files = [&self.config, &self.counter_file, &global.runner];
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let own = std::env::current_exe().ok();
        files.into_iter().flatten().map(absolute).chain(own).filter(|path| path.to_str().is_some()).collect()
    }

    fn request(
        &self,
        model: &Path,
        slot: &Slot,
        site: &Arc<Site>,
        settings: &[SettingRequest],
        global: &Global,
    ) -> RunRequest {
        let Slot { backend, mode, .. } = slot;
        let backend = *backend;
        let (budget, profiling_budget) = self.budgets();
        let task = RunTask {
            runtime_dir: site.runtime_dir().to_owned(),
            backend,
            model: model.to_owned(),
            graph: self.graph.clone(),
            inputs: self
                .input
                .iter()
                .map(|(name, path)| InputFile { name: name.clone(), path: path.clone() })
                .collect(),
            input_list: self.input_list.clone(),
            native_input: self.native_input,
            seed: self.seed,
            save_outputs: None,
            save_context: None,
            staged_context: None,
            profile_log: None,
            straight: None,
            warmup: self.warmup,
            budget,
            rate_hz: mode.rate_hz,
            profiling: self.profiling,
            profiling_budget,
            settings: settings.to_vec(),
            log_level: self.log_level,
            allow_unknown_runtime: global.allow_unknown_runtime,
            slow_load: None,
            pin: match (&self.pin, &**site, backend) {
                (Some(pin), ..) => pin.clone(),
                (None, Site::Here { .. }, Backend::Cpu) => Pin::Auto,
                (None, ..) => Pin::Unset,
            },
            onnx: None,
            overwrite: self.beside.force,
            protected: self.protected(global),
        };
        let plan = RunPlan {
            device: site.device_id().to_owned(),
            backend,
            model: crate::event::clean_text(&model.to_string_lossy()),
            warmup: self.warmup,
            budget,
            profiling: self.profiling,
            profiling_budget: (self.profiling == ProfilingLevel::Detailed).then_some(profiling_budget),
            simulated: site.simulates(backend),
            driver: site.driver(),
            energy_while_charging: self.energy_while_charging,
            mode: mode.clone(),
            constraints: self.modes.constraints(),
        };
        RunRequest { plan, task, site: Arc::clone(site), judging: None }
    }

    /// The options that may conflict with a way of measuring.
    fn asked(&self) -> ModeRequest<'_> {
        ModeRequest {
            iterations: self.iterations,
            duration: self.duration,
            perf_profile: self.perf_profile.as_deref(),
            precision: self.precision.as_deref(),
            stage_timeout: self.stage_timeout,
        }
    }

    fn budgets(&self) -> (Budget, Budget) {
        let detailed = self.profiling_iterations.map(Budget::Iterations);
        if let Some((clean, default)) = self.modes.budgets(self.asked()) {
            return (clean, detailed.unwrap_or(default));
        }
        match self.duration {
            Some(seconds) => (Budget::Seconds(seconds), detailed.unwrap_or(Budget::Seconds(seconds * DETAILED_SHARE))),
            None => {
                let iterations = self.iterations.unwrap_or(100);
                let (low, high) = DETAILED_ITERATIONS;
                let default = Budget::Iterations((iterations / 4).clamp(low, high));
                (Budget::Iterations(iterations), detailed.unwrap_or(default))
            }
        }
    }

    /// The settings of the file, then those of the flags.
    fn settings(&self) -> Result<Vec<SettingRequest>, CliError> {
        let mut requests = match &self.config {
            Some(path) => settings::read_config(path)?,
            None => Vec::new(),
        };
        for request in &requests {
            if let Some(backend) = request.backend.filter(|b| !self.backend.contains(b)) {
                let origin = crate::event::clean_text(&request.origin);
                say(&format!("note: {origin} has no effect: {backend} is not among the backends"));
            }
        }
        let mut flag = |origin: &str, name: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                let (origin, name) = (origin.to_owned(), name.to_owned());
                requests.push(SettingRequest { origin, name, value, backend: None });
            }
        };
        flag("--perf-profile", "perf_profile", self.perf_profile.clone().map(Into::into));
        flag("--htp-arch", "htp_arch", self.htp_arch.clone().map(Into::into));
        flag("--soc-model", "soc_model", self.soc_model.map(Into::into));
        flag("--precision", "precision", self.precision.clone().map(Into::into));
        flag("--vtcm-mb", "vtcm_mb", self.vtcm_mb.map(Into::into));
        requests.extend(self.modes.settings(self.asked()));
        Ok(requests)
    }
}
