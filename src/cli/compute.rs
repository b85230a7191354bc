//! Options of commands that compute models and read their tensors, and where they are computed.

use super::onnx_options::dimension;
use super::{CliError, Global, options, target};
use crate::accuracy::{Inputs, Progress, SidePlace};
use crate::backends::Backend;
use crate::backends::device_runner::TensorSite;
use crate::backends::local::Limits;
use crate::backends::runtime::{Env, RuntimeDir, choose};
use crate::backends::settings::{self, SettingRequest};
use crate::event::LOCAL_DEVICE;
use crate::files::Guard;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Default number of inferences on random data.
const RANDOM: u64 = 4;
/// Default seed of random data.
const SEED: u64 = 1;

/// Data for models.
#[derive(Debug, Clone, clap::Args)]
pub struct DataOptions {
    /// Folder with inputs: NAME.npy or NAME.raw (float32) of each input, folders of these, or one file for each inference
    #[arg(long, value_name = "DIR", conflicts_with = "input_list")]
    inputs: Option<PathBuf>,
    /// Inputs in qnn-net-run's list format, a line per inference; raw files hold float32
    #[arg(long, value_name = "FILE")]
    input_list: Option<PathBuf>,
    /// Number of random inputs, if no files are given [default: 4]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000), conflicts_with_all = ["inputs", "input_list"])]
    iterations: Option<u64>,
    /// Seed of random inputs [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl DataOptions {
    /// Adds the files that must not be overwritten.
    pub fn guard(&self, guard: &mut Guard) {
        if let Some(folder) = &self.inputs {
            guard.reads_tree("the input", folder);
        }
        if let Some(list) = &self.input_list {
            guard.reads_list(list);
        }
    }

    /// The first data option given.
    pub fn given(&self) -> Option<&'static str> {
        [
            ("--inputs", self.inputs.is_some()),
            ("--input-list", self.input_list.is_some()),
            ("-n", self.iterations.is_some()),
            ("--seed", self.seed.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }

    /// Where the data comes from.
    pub fn inputs(&self) -> Inputs {
        match (&self.inputs, &self.input_list) {
            (Some(folder), _) => Inputs::Folder(folder.clone()),
            (None, Some(list)) => Inputs::List(list.clone()),
            (None, None) => Inputs::Random {
                count: usize::try_from(self.iterations.unwrap_or(RANDOM)).unwrap_or(usize::MAX),
                seed: self.seed.unwrap_or(SEED),
            },
        }
    }
}

/// What HTP compiles for.
#[derive(Debug, Clone, clap::Args)]
pub struct HardwareOptions {
    /// QNN's number of the SoC that HTP compiles for: 57 is SM8650
    #[arg(long, value_name = "N")]
    soc_model: Option<u32>,
    /// Hexagon architecture that HTP compiles for: v68, v69, v73, v75, v79, v81
    #[arg(long, value_name = "ARCH")]
    htp_arch: Option<String>,
    /// Precision of float graphs on HTP: float32 or float16
    #[arg(long, value_name = "P")]
    precision: Option<String>,
}

impl HardwareOptions {
    /// The settings for a backend; these concern HTP. The user's options take precedence over `recorded` ones.
    pub fn settings(&self, backend: Backend, recorded: &[SettingRequest]) -> Result<Vec<SettingRequest>, CliError> {
        if backend != Backend::Htp {
            return Ok(Vec::new());
        }
        let rows = [
            ("--soc-model", "soc_model", self.soc_model.map(serde_json::Value::from)),
            ("--htp-arch", "htp_arch", self.htp_arch.clone().map(Into::into)),
            ("--precision", "precision", self.precision.clone().map(Into::into)),
        ];
        let mut requests: Vec<SettingRequest> = rows
            .into_iter()
            .filter_map(|(origin, name, value)| {
                Some(SettingRequest { origin: origin.to_owned(), name: name.to_owned(), value: value?, backend: None })
            })
            .collect();
        for setting in recorded {
            if !requests.iter().any(|request| request.name == setting.name) {
                requests.push(setting.clone());
            }
        }
        settings::resolve(&requests, backend)?;
        Ok(requests)
    }
}

/// The graph, and bounds of the work.
#[derive(Debug, Clone, clap::Args)]
pub struct ComputeOptions {
    /// Graph, where a model has several
    #[arg(long, value_name = "NAME")]
    pub graph: Option<String>,
    /// Memory limit for tensors held at a time; larger graphs are read in several passes
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    memory_limit_mb: u64,
    /// On a device, leave the system's own library folders out of the search paths
    #[arg(long)]
    no_vendor_libs: bool,
    /// Time limit for everything, such as 30, 30s or 5m [default: none]
    #[arg(long, value_name = "TIME", value_parser = options::seconds)]
    pub timeout: Option<f64>,
    /// Give up a runner after this many seconds without progress
    #[arg(long, value_name = "S", default_value = "300", value_parser = options::seconds)]
    stage_timeout: f64,
}

impl ComputeOptions {
    /// Maximum size of tensors held at a time, bytes.
    pub fn tensor_bytes(&self) -> u64 {
        self.memory_limit_mb << 20
    }

    /// Limits of a runner.
    pub fn limits(&self) -> Limits {
        limits(self.stage_timeout)
    }

    /// Where a side is computed: on the named device, or here.
    pub async fn place(&self, device: Option<&str>, global: &Global) -> Result<SidePlace, CliError> {
        let Some(name) = device.filter(|name| *name != LOCAL_DEVICE) else { return Ok(SidePlace::Here) };
        let device = target::find(name, global).await?;
        let facts = device.describe().await?;
        let runner = target::runner(&device, &facts, !self.no_vendor_libs, global).await?;
        Ok(SidePlace::Device(Arc::new(TensorSite::new(device, facts, runner).await?)))
    }
}

/// A size of a free dimension, `NAME=N`.
#[derive(Debug, Clone, clap::Args)]
pub struct DimensionOptions {
    /// Size of a free dimension of an ONNX model; may be repeated
    #[arg(long, value_name = "NAME=N", value_parser = dimension)]
    pub dim: Vec<(String, u64)>,
}

/// The device to compute on. One named only by an environment variable is meant for runs.
pub fn device(global: &Global) -> Option<String> {
    (global.device().is_some() || global.runner.is_some()).then(|| target::named(global))
}

/// Libraries of this machine: `--runtime` may name a folder meant only for the device.
pub fn runtime_here(named: Option<&Path>, global: &Global) -> Result<RuntimeDir, CliError> {
    let env = Env::from_process();
    match named {
        Some(path) => Ok(choose(Some(path), &env)?),
        None => options::runtime(global).or_else(|error| match device(global) {
            Some(name) if name != LOCAL_DEVICE => choose(None, &env).map_err(|_| error),
            _ => Err(error),
        }),
    }
}

/// Splits `MODEL@BACKEND` into model and backend, unless a file with that full name exists.
pub fn model_on(text: &str) -> (PathBuf, Option<Backend>) {
    let split = text.rsplit_once('@').filter(|_| !Path::new(text).exists());
    match split.map(|(model, backend)| (model, backend.parse::<Backend>())) {
        Some((model, Ok(backend))) => (PathBuf::from(model), Some(backend)),
        _ => (PathBuf::from(text), None),
    }
}

/// Limits of one of our runners.
pub fn limits(stage_timeout: f64) -> Limits {
    Limits { stage_timeout: Duration::from_secs_f64(stage_timeout), memory_bytes: options::free_memory_share() }
}

/// Progress on a terminal.
pub fn bar() -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    // Also cleared when Ctrl-C drops it.
    let bar = ProgressBar::new(0).with_finish(ProgressFinish::AndClear);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} {eta} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    Some(bar)
}

/// Shows the progress.
pub fn show(bar: Option<&ProgressBar>, progress: &Progress) {
    if let Some(bar) = bar {
        bar.set_length(progress.of as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.step.clone());
    }
}
