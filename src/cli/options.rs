//! Options of a run, and the requests they become.

use super::launches;
use super::modes::{ModeOptions, ModeRequest, Slot, positive};
use super::names::Names;
use super::onnx_options::OnnxOptions;
use super::pin::pin;
use super::truth_options::TruthOptions;
pub use super::values::{decibels, points, seconds};
use super::{CliError, Global, kept, say};
use crate::analysis::recommend::Constraints;
use crate::backends::local::Limits;
use crate::backends::qnn::runner::{InputFile, Pin, RunTask};
use crate::backends::runtime::{Env, RuntimeDir, choose};
use crate::backends::settings::{self, SettingRequest};
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{Budget, Driver, LogLevel, RunPlan};
use crate::files::Kind;
use crate::probes::CounterOptions;
use crate::run::{RunRequest, Site};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Default number of detailed inferences: a quarter of the clean ones, within these bounds.
const DETAILED_ITERATIONS: (u64, u64) = (5, 200);
/// The detailed phase's share of a clean phase in seconds.
const DETAILED_SHARE: f64 = 0.25;
/// Default share of the free memory for a runner.
const MEMORY_SHARE: f64 = 0.9;

/// What to measure and how.
#[derive(Debug, Clone, clap::Args)]
pub struct RunOptions {
    /// Backends, one run each, in this order
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', default_value = "cpu", value_parser = backend)]
    pub backend: Vec<Backend>,
    /// Graph to run, if the model has several
    #[arg(long, value_name = "NAME")]
    pub graph: Option<String>,
    /// Input data, raw or .npy; float32 is quantised with the tensor's encoding
    #[arg(short, long, value_name = "NAME=FILE", value_parser = input)]
    pub input: Vec<(String, PathBuf)>,
    /// Inputs in qnn-net-run's list format, a line per inference
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    pub input_list: Option<PathBuf>,
    /// Raw files hold the tensor's own type
    #[arg(long)]
    pub native_input: bool,
    /// Seed of the random data for inputs without a file
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write the outputs to this folder, as float32 .raw and .npy
    #[arg(long, value_name = "DIR")]
    pub save_outputs: Option<PathBuf>,
    /// Write the compiled context as a context binary; with several backends one each, named FILE-BACKEND
    #[arg(long, value_name = "FILE")]
    pub save_context: Option<PathBuf>,
    /// Write a QNN profile log, as qnn-net-run does; with several backends one each, named FILE-BACKEND
    #[arg(long, value_name = "FILE")]
    pub save_profile_log: Option<PathBuf>,
    /// Inferences to measure [default: 100]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub iterations: Option<u64>,
    /// How long to measure (10, 30s, 5m), instead of a number of inferences
    #[arg(long, value_name = "S", conflicts_with = "iterations", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Warm-up inferences after the first one, not measured
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub warmup: u64,
    /// off: latencies only; basic: also backend totals; detailed: also layer times, in a separate phase
    #[arg(long, value_name = "LEVEL", default_value = "detailed", value_parser = profiling)]
    pub profiling: ProfilingLevel,
    /// Inferences of the detailed phase [default: a quarter of --iterations, 5 to 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub profiling_iterations: Option<u64>,
    /// HTP performance profile, by QNN's name: burst, balanced, ...
    #[arg(long, value_name = "PROFILE")]
    pub perf_profile: Option<String>,
    /// Hexagon architecture to compile for: v68, v69, v73, v75, v79, v81
    #[arg(long, value_name = "ARCH")]
    pub htp_arch: Option<String>,
    /// QNN's number of the SoC to compile for: 57 is SM8650
    #[arg(long, value_name = "N")]
    pub soc_model: Option<u32>,
    /// Precision of float graphs on HTP: float32 or float16
    #[arg(long, value_name = "P")]
    pub precision: Option<String>,
    /// VTCM for the graph in MB; 0 uses all available
    #[arg(long, value_name = "MB")]
    pub vtcm_mb: Option<u32>,
    /// JSON file with htp_config, gpu_config and cpu_config objects; flags take precedence
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Detail of the vendor's log: error, warning, info, verbose, debug
    #[arg(long, value_name = "LEVEL", default_value = "warning", value_parser = log_level)]
    pub log_level: LogLevel,
    /// Readings of a device's counters a second; 0: none
    #[arg(long, value_name = "HZ", default_value_t = 20.0, value_parser = rate, help_heading = "Options of runs on a device")]
    pub counter_rate: f64,
    /// Counters to read, by id, group or glob: cpu, thermal.npu*; `qnnscope counters` lists them
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Options of runs on a device")]
    pub counters: Vec<String>,
    /// File with your own counters [default: counters.toml in the config folder]
    #[arg(long, value_name = "FILE", help_heading = "Options of runs on a device")]
    pub counter_file: Option<PathBuf>,
    /// On a device, report energy even while charging; the battery current then is not what the chip draws
    #[arg(long, help_heading = "Options of runs on a device")]
    pub energy_while_charging: bool,
    /// On a device, leave the system's own library folders out of the search paths
    #[arg(long, help_heading = "Options of runs on a device")]
    pub no_vendor_libs: bool,
    /// CPU cores for the process that runs the model: a list such as 0-3,6; spread (or spread:0-3), one core per
    /// compute thread; or free, where the scheduler decides [default: spread for the cpu backend on this machine, else free]
    #[arg(long, value_name = "CORES", value_parser = pin)]
    pub pin: Option<Pin>,
    /// Give up after this many seconds without progress
    #[arg(long, value_name = "S", default_value = "300", value_parser = seconds)]
    pub stage_timeout: f64,
    /// Memory limit of a runner [default: 90 % of what is free]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..))]
    pub memory_limit_mb: Option<u64>,
    #[command(flatten)]
    pub onnx: OnnxOptions,
    #[command(flatten)]
    pub modes: ModeOptions,
    #[command(flatten)]
    pub truth: TruthOptions,
    /// What the command writes beside the results of runs.
    #[arg(skip)]
    pub beside: Beside,
}

/// What a command writes besides the results of its runs, and what it may overwrite.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// The session.
    pub record: Option<PathBuf>,
    /// Files that qnnscope did not write may be overwritten.
    pub force: bool,
}

/// Where results go.
#[derive(Debug, Clone, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct OutputOptions {
    /// Print the result document as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Print a text report instead of the live view
    #[arg(long)]
    pub headless: bool,
    /// Write the session to this file as it happens
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Do not keep the session in the history
    #[arg(long)]
    pub no_history: bool,
    /// Overwrite files and output folders that qnnscope did not write; never those the command reads
    #[arg(long)]
    pub force: bool,
}

/// Heading of options for recommendations.
pub(super) const RECOMMENDATION: &str = "Options of the recommendation";

/// What a choice of backends is to go by.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Wishes {
    /// Latency budget, milliseconds
    #[arg(long, value_name = "MS", value_parser = positive, help_heading = RECOMMENDATION)]
    latency_budget_ms: Option<f64>,
    /// Memory limit, MB (1024 x 1024 bytes)
    #[arg(long, value_name = "MB", value_parser = positive, help_heading = RECOMMENDATION)]
    max_memory_mb: Option<f64>,
    /// Prefer low energy to low latency
    #[arg(long, conflicts_with = "latency_critical", help_heading = RECOMMENDATION)]
    power_critical: bool,
    /// Judge by the slowest inferences, not the typical one
    #[arg(long, help_heading = RECOMMENDATION)]
    latency_critical: bool,
    /// Lowest SQNR of the outputs in dB, against the expected outputs or else the reference run's
    #[arg(long, value_name = "DB", value_parser = decibels, help_heading = RECOMMENDATION)]
    min_sqnr_db: Option<f64>,
    /// Largest loss of top-1 accuracy against the best run, percentage points
    #[arg(long, value_name = "POINTS", value_parser = points, help_heading = RECOMMENDATION)]
    max_top1_loss: Option<f64>,
}

impl Wishes {
    /// The same for the analysis.
    pub fn constraints(&self) -> Constraints {
        Constraints {
            latency_budget_ms: self.latency_budget_ms,
            latency_percent: None,
            max_memory_mb: self.max_memory_mb,
            power_critical: self.power_critical,
            latency_critical: self.latency_critical,
            min_sqnr_db: self.min_sqnr_db,
            max_top1_loss: self.max_top1_loss,
        }
    }
}

impl OutputOptions {
    /// True if the live view is requested and possible.
    pub fn is_live(&self) -> bool {
        !self.json && !self.headless && std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
    }

    /// What runs have to know of it.
    pub fn beside(&self) -> Beside {
        Beside { record: self.record.clone(), force: self.force }
    }
}

/// Where runs are made, of what.
#[derive(Debug)]
pub struct Destination {
    /// Where.
    pub site: Arc<Site>,
    /// The models as they are there.
    pub models: Vec<PathBuf>,
    /// The libraries for ONNX models among them.
    pub onnx: OnnxOptions,
}

/// A short name for one of several places, for file names.
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
    /// Checks everything that can be checked before a runner starts, and makes the requests: one per backend and model, unless the
    /// measurement mode wants several.
    pub fn requests(&self, models: &[PathBuf], site: &Arc<Site>, global: &Global) -> Result<Vec<RunRequest>, CliError> {
        let place = Destination { site: site.clone(), models: models.to_vec(), onnx: self.onnx.clone() };
        self.requests_on(&[place], global)
    }

    /// The same on several devices, of which each has as many models as the others.
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
                // Invalid values are bad input, detected now.
                settings::resolve(&settings, slot.backend)?;
                // Rounds and sweeps of two devices are separate.
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

    /// A runner cannot read this: its standard input carries its orders.
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

    /// Ensures that the runs write nothing they read, nothing twice, and no foreign files.
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

    /// Files of the command that a runner does not read.
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

    /// What a way of measuring may contradict.
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

    /// The file's settings, then the flags.
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

    /// Counters of a device.
    pub fn counter_options(&self) -> Result<CounterOptions, CliError> {
        Ok(CounterOptions::new(self.counter_rate, self.counters.clone(), self.counter_file.as_deref())?)
    }

    /// Bounds of the runners.
    pub fn limits(&self) -> Limits {
        Limits {
            stage_timeout: Duration::from_secs_f64(self.stage_timeout),
            memory_bytes: self.memory_limit_mb.map(|mb| mb << 20).or_else(free_memory_share),
        }
    }
}

/// The default share of the free memory for a runner.
pub fn free_memory_share() -> Option<u64> {
    let system = sysinfo::System::new_with_specifics(
        sysinfo::RefreshKind::nothing().with_memory(sysinfo::MemoryRefreshKind::nothing().with_ram()),
    )
    .ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a byte count")]
    let share = (system.available_memory() as f64 * MEMORY_SHARE) as u64;
    (share > 0).then_some(share)
}

/// The runtime resulting from `--runtime`, the environment and installed ones.
pub fn runtime(global: &Global) -> Result<RuntimeDir, CliError> {
    Ok(choose(global.runtime.as_deref(), &Env::from_process())?)
}

/// A backend by its name.
pub fn backend(text: &str) -> Result<Backend, String> {
    text.parse()
}

fn input(text: &str) -> Result<(String, PathBuf), String> {
    // A tensor's name may contain `=`; an existing file decides, else the last one splits.
    let splits: Vec<(&str, &str)> = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..])).collect();
    let chosen = splits.iter().find(|(_, file)| Path::new(file).exists()).or(splits.first());
    match chosen {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok(((*name).to_owned(), PathBuf::from(file))),
        _ => Err("expected NAME=FILE".to_owned()),
    }
}

/// Hertz, or 0.
pub fn rate(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && (0.0..=2000.0).contains(&value) => Ok(value),
        _ => Err("expected readings per second, from 0 to 2000".to_owned()),
    }
}

fn profiling(text: &str) -> Result<ProfilingLevel, String> {
    match text {
        "off" => Ok(ProfilingLevel::Off),
        "basic" => Ok(ProfilingLevel::Basic),
        "detailed" => Ok(ProfilingLevel::Detailed),
        _ => Err("known levels are off, basic, detailed".to_owned()),
    }
}

fn log_level(text: &str) -> Result<LogLevel, String> {
    match text {
        "error" => Ok(LogLevel::Error),
        "warn" | "warning" => Ok(LogLevel::Warning),
        "info" => Ok(LogLevel::Info),
        "verbose" => Ok(LogLevel::Verbose),
        "debug" => Ok(LogLevel::Debug),
        _ => Err("known levels are error, warning, info, verbose, debug".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, expected) in [("10", 10.0), ("10s", 10.0), ("500ms", 0.5), ("2m", 120.0), ("1.5", 1.5)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["0", "-1", "inf", "NaN", "", "ms", "5x", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn input_names_may_hold_an_equals_sign() {
        assert_eq!(input("x=/no/file"), Ok(("x".to_owned(), PathBuf::from("/no/file"))));
        assert_eq!(input("a=b=/dev/null"), Ok(("a=b".to_owned(), PathBuf::from("/dev/null"))));
        assert!(input("x=").is_err() && input("=f").is_err() && input("x").is_err());
    }
}
