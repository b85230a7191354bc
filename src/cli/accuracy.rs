//! `qnnscope accuracy`.

use super::diagnose::text_width;
use super::headless::{print, print_json};
use super::patience::Patience;
use super::{CliError, FAILED, Global, OK, options, target};
use crate::accuracy::{AccuracyDocument, Comparison, Inputs, Progress, Side, accuracy_text, compare};
use crate::backends::Backend;
use crate::backends::local::Limits;
use crate::backends::runtime::{Env, choose};
use crate::backends::settings::{self, SettingRequest};
use crate::files::{Guard, make_output_folder};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `qnnscope accuracy`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct AccuracyArgs {
    /// The model that is right, such as the float one; MODEL@BACKEND says where it is computed [default: cpu]
    #[arg(value_name = "REFERENCE")]
    reference: String,
    /// The model to look at, such as the quantised one; MODEL@BACKEND says where it is computed [default: htp]
    #[arg(value_name = "TEST")]
    test: String,
    /// Backend of the reference, instead of REFERENCE@BACKEND
    #[arg(long, value_name = "BACKEND", value_parser = options::backend)]
    reference_backend: Option<Backend>,
    /// Backend of the test, instead of TEST@BACKEND
    #[arg(long, value_name = "BACKEND", value_parser = options::backend)]
    test_backend: Option<Backend>,
    /// Folder with the reference's QNN libraries, where they are others than the test's
    #[arg(long, value_name = "DIR")]
    reference_runtime: Option<PathBuf>,
    #[command(flatten)]
    data: DataOptions,
    /// Graph to compare, where the models have several
    #[arg(long, value_name = "NAME")]
    graph: Option<String>,
    #[command(flatten)]
    hardware: HardwareOptions,
    /// Signal to noise below which a layer diverges, dB
    #[arg(long, value_name = "DB", default_value_t = 20.0, value_parser = decibels)]
    min_sqnr_db: f64,
    /// Look for the first layer that diverges by halves, instead of reading all of them
    #[arg(long)]
    bisect: bool,
    /// Most memory for tensors that are held at a time; longer graphs are read in several passes
    #[arg(long, value_name = "MB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    memory_limit_mb: u64,
    /// Write the tensors of both sides here, as .npy in the test's layout
    #[arg(long, value_name = "DIR")]
    save_tensors: Option<PathBuf>,
    /// Let --save-tensors overwrite files that qnnscope did not make; never those that the command reads
    #[arg(long, requires = "save_tensors")]
    force: bool,
    /// List every layer, and how each pair of tensors was found
    #[arg(long)]
    all: bool,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    /// Longest time for everything, such as 30, 30s or 5m [default: none]
    #[arg(long, value_name = "TIME", value_parser = options::seconds)]
    timeout: Option<f64>,
    /// Longest time without progress before a runner is given up, seconds
    #[arg(long, value_name = "S", default_value = "300", value_parser = options::seconds)]
    stage_timeout: f64,
}

/// Data for models.
#[derive(Debug, Clone, clap::Args)]
pub struct DataOptions {
    /// Folder with inputs: NAME.npy or NAME.raw (float32) of each input, folders of these, or one file for each inference
    #[arg(long, value_name = "DIR", conflicts_with = "input_list")]
    inputs: Option<PathBuf>,
    /// Inputs in qnn-net-run's list format, a line per inference; raw files hold float32
    #[arg(long, value_name = "FILE")]
    input_list: Option<PathBuf>,
    /// Random inputs, where no files are given
    #[arg(short = 'n', long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=100_000), conflicts_with_all = ["inputs", "input_list"])]
    iterations: u64,
    /// Seed of random inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl DataOptions {
    /// What must not be written over.
    pub fn guard(&self, guard: &mut Guard) {
        if let Some(folder) = &self.inputs {
            guard.reads_tree("the input", folder);
        }
        if let Some(list) = &self.input_list {
            guard.reads_list(list);
        }
    }

    /// Where the data comes from.
    pub fn inputs(&self) -> Inputs {
        match (&self.inputs, &self.input_list) {
            (Some(folder), _) => Inputs::Folder(folder.clone()),
            (None, Some(list)) => Inputs::List(list.clone()),
            (None, None) => {
                Inputs::Random { count: usize::try_from(self.iterations).unwrap_or(usize::MAX), seed: self.seed }
            }
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
    /// The settings for a backend: these are about HTP.
    pub fn settings(&self, backend: Backend) -> Result<Vec<SettingRequest>, CliError> {
        if backend != Backend::Htp {
            return Ok(Vec::new());
        }
        let rows = [
            ("--soc-model", "soc_model", self.soc_model.map(serde_json::Value::from)),
            ("--htp-arch", "htp_arch", self.htp_arch.clone().map(Into::into)),
            ("--precision", "precision", self.precision.clone().map(Into::into)),
        ];
        let requests: Vec<SettingRequest> = rows
            .into_iter()
            .filter_map(|(origin, name, value)| {
                Some(SettingRequest { origin: origin.to_owned(), name: name.to_owned(), value: value?, backend: None })
            })
            .collect();
        settings::resolve(&requests, backend)?;
        Ok(requests)
    }
}

fn decibels(text: &str) -> Result<f64, String> {
    let value: f64 =
        text.trim_end_matches("dB").trim().parse().map_err(|_| format!("`{text}` is not a number of dB"))?;
    if value.is_finite() { Ok(value) } else { Err(format!("`{text}` is not a number of dB")) }
}

/// `MODEL@BACKEND` as model and backend; a file with such a name is a file.
pub fn model_on(text: &str) -> (PathBuf, Option<Backend>) {
    let split = text.rsplit_once('@').filter(|_| !Path::new(text).exists());
    match split.map(|(model, backend)| (model, backend.parse::<Backend>())) {
        Some((model, Ok(backend))) => (PathBuf::from(model), Some(backend)),
        _ => (PathBuf::from(text), None),
    }
}

/// Bounds of a runner of ours.
pub fn limits(stage_timeout: f64) -> Limits {
    Limits { stage_timeout: Duration::from_secs_f64(stage_timeout), memory_bytes: options::free_memory_share() }
}

/// Only libraries of this machine are asked.
pub fn refuse_device(global: &Global, command: &str) -> Result<(), CliError> {
    let named = global.device.as_deref().is_some_and(|device| device != target::LOCAL);
    if named || global.runner.is_some() {
        let text =
            format!("{command} computes with the libraries of this machine; --device and --runner are of no use here");
        return Err(CliError::Usage(text));
    }
    Ok(())
}

/// Compares the two models layer by layer; 1 if a layer diverges.
pub fn accuracy(args: &AccuracyArgs, global: &Global) -> Result<u8, CliError> {
    refuse_device(global, "accuracy")?;
    let runtime = || options::runtime(global).map(|runtime| runtime.path);
    let side = |text: &str, flag: Option<Backend>, usual: Backend, dir: Option<&PathBuf>| {
        let (model, named) = model_on(text);
        let backend = flag.or(named).unwrap_or(usual);
        crate::models::identify(&model)?;
        Ok::<_, CliError>(Side {
            model,
            backend,
            runtime_dir: match dir {
                Some(dir) => choose(Some(dir), &Env::from_process())?.path,
                None => runtime()?,
            },
            graph: args.graph.clone(),
            settings: args.hardware.settings(backend)?,
            allow_unknown_runtime: global.allow_unknown_runtime,
            limits: limits(args.stage_timeout),
        })
    };
    let reference = side(&args.reference, args.reference_backend, Backend::Cpu, args.reference_runtime.as_ref())?;
    let test = side(&args.test, args.test_backend, Backend::Htp, None)?;
    let comparison = Comparison {
        reference,
        test,
        inputs: args.data.inputs(),
        min_sqnr_db: args.min_sqnr_db,
        bisect: args.bisect,
        tensor_bytes: args.memory_limit_mb << 20,
        save_tensors: args.save_tensors.clone(),
    };
    if let Some(folder) = &args.save_tensors {
        let mut guard = Guard::new(args.force);
        guard.reads("the model", &comparison.reference.model);
        guard.reads("the model", &comparison.test.model);
        args.data.guard(&mut guard);
        guard.check_folder("--save-tensors", folder)?;
        make_output_folder(folder)
            .map_err(|source| CliError::Io { action: format!("make {}", folder.display()), source })?;
    }
    let bar = bar();
    let tell = |progress: &Progress| show(bar.as_ref(), progress);
    let waited_for = || if bar.is_none() { "the two models".to_owned() } else { String::new() };
    let outcome = Patience::of(args.timeout).wait(waited_for, compare(&comparison, &tell));
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let outcome = outcome?;
    if args.json {
        print_json(&AccuracyDocument::new(&outcome))?;
    } else {
        print(&accuracy_text(&outcome, text_width(), args.all))?;
    }
    Ok(if outcome.first.is_some() { FAILED } else { OK })
}

/// Progress on a terminal.
pub fn bar() -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    // Cleared also where Ctrl-C drops it.
    let bar = ProgressBar::new(0).with_finish(ProgressFinish::AndClear);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} {eta} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    Some(bar)
}

/// Shows how far it is.
pub fn show(bar: Option<&ProgressBar>, progress: &Progress) {
    if let Some(bar) = bar {
        bar.set_length(progress.of as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(progress.step.clone());
    }
}
