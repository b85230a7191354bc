//! Options of a run.

use super::modes::ModeOptions;
use super::onnx_options::OnnxOptions;
use super::pin::pin;
use super::truth_options::TruthOptions;
pub use super::values::seconds;
use super::{CliError, Global};
use crate::backends::local::Limits;
use crate::backends::qnn::runner::Pin;
use crate::backends::runtime::{Env, RuntimeDir, choose};
use crate::backends::{Backend, ProfilingLevel};
use crate::event::LogLevel;
use crate::probes::CounterOptions;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default share of the free memory that a runner may take.
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

impl OutputOptions {
    /// True if the live view is requested and possible.
    pub fn is_live(&self) -> bool {
        !self.json && !self.headless && std::io::stdout().is_terminal() && std::io::stdin().is_terminal()
    }

    /// The part that runs need to know.
    pub fn beside(&self) -> Beside {
        Beside { record: self.record.clone(), force: self.force }
    }
}

impl RunOptions {
    /// Options for reading a device's counters.
    pub fn counter_options(&self) -> Result<CounterOptions, CliError> {
        Ok(CounterOptions::new(self.counter_rate, self.counters.clone(), self.counter_file.as_deref())?)
    }

    /// Limits of the runners.
    pub fn limits(&self) -> Limits {
        Limits {
            stage_timeout: Duration::from_secs_f64(self.stage_timeout),
            memory_bytes: self.memory_limit_mb.map(|mb| mb << 20).or_else(free_memory_share),
        }
    }
}

/// The default memory limit of a runner, bytes; `None` if the free memory is unknown.
pub fn free_memory_share() -> Option<u64> {
    let system = sysinfo::System::new_with_specifics(
        sysinfo::RefreshKind::nothing().with_memory(sysinfo::MemoryRefreshKind::nothing().with_ram()),
    )
    .ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a byte count")]
    let share = (system.available_memory() as f64 * MEMORY_SHARE) as u64;
    (share > 0).then_some(share)
}

/// The runtime selected by `--runtime`, the environment and what is installed.
pub fn runtime(global: &Global) -> Result<RuntimeDir, CliError> {
    Ok(choose(global.runtime.as_deref(), &Env::from_process())?)
}

/// A backend by its name.
pub fn backend(text: &str) -> Result<Backend, String> {
    text.parse()
}

fn input(text: &str) -> Result<(String, PathBuf), String> {
    // A tensor's name may contain `=`: an existing file decides, otherwise the last `=` separates.
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
