//! The command line: one file per subcommand. Arguments in, library calls, exit status out.

mod accuracy;
mod accuracy_args;
mod accuracy_sides;
mod bench_check;
mod bundle;
mod check;
mod check_args;
mod check_onnx;
mod clean;
mod compare;
mod compute;
mod convert;
mod convert_args;
mod convert_verify;
mod counters;
mod demo;
mod device_onnx;
mod devices;
mod diagnose;
mod doctor;
mod encodings;
mod error;
mod explain;
mod export;
mod headless;
mod inspect;
mod inspect_source;
mod install;
mod kept;
mod launches;
mod live;
mod modes;
mod names;
mod onnx_install;
mod onnx_options;
mod open;
mod options;
mod parse;
mod patience;
mod pin;
mod profile_log;
mod progress;
mod ranges;
mod recommend;
mod report;
mod requests;
mod run;
mod runtime;
mod runtime_list;
mod runtime_verify;
mod sessions;
mod setup;
mod shell;
mod show;
mod start;
#[cfg(unix)]
mod tap;
mod target;
mod truth_options;
mod values;
mod watch;
mod watch_counters;
mod width;
mod wishes;

pub use error::CliError;

use crate::backends::local::run_unconfined;
use clap::{Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Terminal profiler and debugger for Qualcomm QNN models
#[derive(Debug, Parser)]
#[command(name = "qnnscope", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    global: Global,
}

/// Options of every subcommand.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Folder with the QNN libraries, or root of an SDK; takes precedence over every other place
    #[arg(long, global = true, value_name = "DIR")]
    runtime: Option<PathBuf>,
    /// Accept QNN core API versions that this qnnscope does not know
    #[arg(long, global = true)]
    allow_unknown_runtime: bool,
    /// Where to run: local, an adb serial, or adb for the only device attached; `run` takes several, separated by commas
    /// [env: ANDROID_SERIAL]
    #[arg(long, global = true, value_name = "SERIAL", value_delimiter = ',')]
    device: Vec<String>,
    /// qnnscope built for the device, to run there instead of qnn-net-run [default: found in the data folder's runners/]
    #[arg(long, global = true, value_name = "FILE")]
    runner: Option<PathBuf>,
    /// The adb server to ask [env: ADB_SERVER_SOCKET, default: 127.0.0.1:5037]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    adb_server: Option<String>,
    /// Run libraries and models on this machine without the sandbox, with all your permissions
    #[arg(long, global = true)]
    no_sandbox: bool,
    /// Theme of the live view: dark, light, ansi, mono, or one of your own
    #[arg(long, global = true, value_name = "THEME")]
    theme: Option<String>,
    /// Draw the live view with ASCII characters only
    #[arg(long, global = true)]
    ascii: bool,
}

impl Global {
    /// The named device; the first one if there are several.
    fn device(&self) -> Option<&str> {
        self.device.first().map(String::as_str)
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a model and measure it
    Run(Box<run::RunArgs>),
    /// Run your own program with the tap attached: profile every QNN graph it executes, without changing it
    #[cfg(unix)]
    Tap(Box<tap::TapArgs>),
    /// Show a model's graphs, tensors and ops without running it
    Inspect(inspect::InspectArgs),
    /// Convert a model: ONNX or TFLite to DLC, ONNX to an EPContext model or a context binary, DLC to a context binary
    Convert(Box<convert_args::ConvertArgs>),
    /// Find the ops that backends refuse, whether HTP compiles the model, and doubtful encodings; needs no phone
    Check(check_args::CheckArgs),
    /// Compare two models layer by layer on the same inputs: which layer loses the accuracy, and why
    Accuracy(Box<accuracy_args::AccuracyArgs>),
    /// Calibrate on your data: tensor ranges, encodings that fit them, and what given encodings lose
    Ranges(Box<ranges::RangesArgs>),
    /// Check, compare and convert quantisation encodings: QNN overrides, AIMET, and those inside models
    Encodings(encodings::EncodingsArgs),
    /// Profile the bundled model on cpu and htp
    Demo(demo::DemoArgs),
    /// Compare runs from session and result files: figures, layers, accuracy, which backend to use
    Compare(compare::CompareArgs),
    /// Show a session or result file as `run` printed it; @last is the newest of the history
    Show(show::ShowArgs),
    /// Open sessions in the live view: all at once, or replayed
    Open(open::OpenArgs),
    /// Add sessions to a Parquet dataset, for DuckDB, Spark, pandas and the like
    Export(export::ExportArgs),
    /// List, name, tag, remove or export the sessions in the history
    Sessions(sessions::SessionsArgs),
    /// Write a report from sessions and other tools' files: HTML, Markdown, CSV, SVG, Perfetto trace, HDR histograms
    Report(report::ReportArgs),
    /// Recommend a backend for a model without running it
    Recommend(recommend::RecommendArgs),
    /// Measure the smallest difference this machine or device can resolve, by running one model repeatedly
    BenchCheck(bench_check::BenchCheckArgs),
    /// Find known failures in a log of any source: logcat, qnn-net-run, ONNX Runtime, ExecuTorch, LiteRT, AI Hub
    Diagnose(diagnose::DiagnoseArgs),
    /// Check the SDK, libraries, variables, adb and devices: what works, what does not, and how to fix it
    Doctor(doctor::DoctorArgs),
    /// Explain QNN and FastRPC error codes: what they mean and what usually causes them
    Explain(explain::ExplainArgs),
    /// List this machine and the adb devices: what they are, and what may disturb a run
    Devices(devices::DevicesArgs),
    /// Connect to a device with wireless adb
    Connect(devices::ConnectArgs),
    /// Read a QNN profiling log: qnn-profiling-data_*.log, or ONNX Runtime's *_qnn.log
    ProfileLog(profile_log::ProfileLogArgs),
    /// List a device's counters, how fast they can be read, and why others cannot
    Counters(counters::CountersArgs),
    /// Remove everything that qnnscope put on a device
    Clean(clean::CleanArgs),
    /// Install, list or verify the QNN libraries
    Runtime(runtime::RuntimeArgs),
    /// Print the completions of a shell: bash, zsh, fish, elvish, powershell
    Completions(shell::CompletionsArgs),
    /// Print man pages, or write all of them into a folder
    Man(shell::ManArgs),
    /// Runner process of qnnscope itself
    #[command(name = "__runner", hide = true)]
    Runner,
}

/// Whether these arguments, without the program name, are valid; used to test suggested commands.
#[cfg(test)]
pub(crate) fn parses(arguments: &[String]) -> Result<(), clap::Error> {
    Cli::try_parse_from(std::iter::once("qnnscope").chain(arguments.iter().map(String::as_str))).map(drop)
}

/// Time limit for the final messages to devices.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(1);

/// Exceeding a file size limit would end the process by a signal, without a message; with the signal caught,
/// writes fail with an error. Runners are started by this process, too.
fn catch_file_size_limit() {
    #[cfg(target_os = "linux")]
    {
        const SIGXFSZ: i32 = 25;
        let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
    }
}

/// Parses and executes the command line.
pub fn main() -> ExitCode {
    let cli = match parse::parse() {
        Ok(cli) => cli,
        Err(status) => return ExitCode::from(status),
    };
    catch_file_size_limit();
    match (&cli.command, cli.global.no_sandbox) {
        (Some(Command::Runner), _) => {}
        (_, true) => run_unconfined(),
        (_, false) => hide(),
    }
    own_causes(cli.command.as_ref());
    let result = match &cli.command {
        Some(command) if cli.global.device.len() > 1 && !matches!(command, Command::Run(_)) => {
            Err(CliError::Usage("--device: only `qnnscope run` takes several devices".to_owned()))
        }
        None if cli.global.device.len() > 1 => Err(CliError::Usage(
            "--device: only `qnnscope run` takes several devices; the start screen offers those that are attached"
                .to_owned(),
        )),
        None => start::start(&cli.global),
        Some(Command::Run(args)) => run::run(args, &cli.global),
        #[cfg(unix)]
        Some(Command::Tap(args)) => tap::tap(args, &cli.global),
        Some(Command::Inspect(args)) => inspect::inspect(args, &cli.global),
        Some(Command::Convert(args)) => convert::convert(args, &cli.global),
        Some(Command::Check(args)) => check::check(args, &cli.global),
        Some(Command::Accuracy(args)) => accuracy::accuracy(args, &cli.global),
        Some(Command::Encodings(args)) => encodings::encodings(args, &cli.global),
        Some(Command::Ranges(args)) => ranges::ranges(args, &cli.global),
        Some(Command::Demo(args)) => demo::demo(args, &cli.global),
        Some(Command::Compare(args)) => compare::compare(args),
        Some(Command::Show(args)) => show::show(args),
        Some(Command::Open(args)) => open::open(args, &cli.global),
        Some(Command::Export(args)) => export::export(args),
        Some(Command::Sessions(args)) => sessions::sessions(args),
        Some(Command::Report(args)) => report::report(args),
        Some(Command::Recommend(args)) => recommend::recommend(args, &cli.global),
        Some(Command::BenchCheck(args)) => bench_check::bench_check(args, &cli.global),
        Some(Command::Diagnose(args)) => diagnose::diagnose(args, &cli.global),
        Some(Command::Doctor(args)) => doctor::doctor(args, &cli.global),
        Some(Command::Completions(args)) => shell::completions(args),
        Some(Command::Man(args)) => shell::man(args),
        Some(Command::Explain(args)) => explain::explain(args),
        Some(Command::Devices(args)) => devices::devices(args, &cli.global),
        Some(Command::Connect(args)) => devices::connect(args, &cli.global),
        Some(Command::ProfileLog(args)) => profile_log::profile_log(args),
        Some(Command::Counters(args)) => counters::counters(args, &cli.global),
        Some(Command::Clean(args)) => clean::clean(args, &cli.global),
        Some(Command::Runtime(args)) => runtime::runtime(args, &cli.global),
        Some(Command::Runner) => return crate::backends::qnn::runner::main(),
    };
    crate::devices::settle(FAREWELL);
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say(error.render().trim_end());
            ExitCode::from(error.exit_status())
        }
    }
}

/// Loads the user's causes, for every command that may report one. Only commands about causes stop at an
/// error in the file, and those read it themselves; it does not stop a run.
fn own_causes(command: Option<&Command>) {
    let reads_itself = matches!(
        command,
        Some(Command::Runner | Command::Diagnose(_) | Command::Explain(_) | Command::Completions(_) | Command::Man(_))
    );
    if !reads_itself && let Err(error) = crate::diagnosis::load_user_causes() {
        say(&format!("note: {error}; your own causes are not used"));
    }
}

/// Keeps the user's other processes, including the runners, from reading this one's memory: secrets in the
/// environment, recorded inputs. Also disables core dumps.
fn hide() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Only defence in depth: continue if the kernel does not support it.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Prints a line on stderr; a failed write is not an error.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// All runs succeeded.
pub const OK: u8 = 0;
/// A run failed.
pub const FAILED: u8 = 1;
/// Bad usage or bad input.
pub const BAD_INPUT: u8 = 2;
/// Something needed is missing.
pub const MISSING: u8 = 3;
/// Ended by Ctrl-C, following the shells' convention.
pub const INTERRUPTED: u8 = 130;
