//! What parent and runner say to each other: JSON lines both ways.

use crate::backends::settings::SettingRequest;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::ModelInfo;
use crate::event::{Budget, Event, LogLevel};
use crate::models::Graph;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Version of this protocol; both sides are the same binary, so a difference means a mixed-up installation.
/// On a device it means a runner of another version, which would leave out what it does not know.
pub const PROTOCOL: u32 = 2;

/// Libraries that can lend their version and the size of their function table to an inspection, lightest first. Saver is
/// none: opening it writes a folder into the working directory.
pub const TABLE_LENDERS: [&str; 4] = ["libQnnCpu.so", "libQnnIr.so", "libQnnGpu.so", "libQnnHtp.so"];

/// First frame of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Version of the binary.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// The runner's monotonic clock, microseconds: on a device it is not the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monotonic_us: Option<u64>,
    /// Its wall clock at the same moment, microseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_us: Option<u64>,
}

/// A line from the runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// The runner is up.
    Hello(Hello),
    /// Something happened.
    Event {
        /// Monotonic clock of the runner's machine, microseconds.
        t_us: u64,
        /// What.
        event: Event,
    },
    /// Answer to [`Task::Inspect`].
    Inspected {
        /// Facts of the file.
        model: Box<ModelInfo>,
        /// Its graphs.
        graphs: Vec<Graph>,
    },
    /// Answer to [`Task::Probe`].
    Probed(ProbeAnswer),
    /// The task is carried out; nothing follows.
    Done,
}

/// What a backend library said when it was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// Build id.
    pub build_id: Option<String>,
    /// Core API version.
    pub core_api: Option<String>,
    /// Backend API version.
    pub backend_api: Option<String>,
    /// Why it does not load or initialise; `None` if it does.
    pub error: Option<String>,
}

/// What a runner is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Run a model.
    Run(Box<RunTask>),
    /// Read a model's graphs without running it.
    Inspect(InspectTask),
    /// Try a backend library.
    Probe(ProbeTask),
}

/// A file for an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Tensor name.
    pub name: String,
    /// Raw or .npy file.
    pub path: PathBuf,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunTask {
    /// Folder of the libraries.
    pub runtime_dir: PathBuf,
    /// Backend.
    pub backend: Backend,
    /// Model file.
    pub model: PathBuf,
    /// Graph to run; the only one if `None`.
    pub graph: Option<String>,
    /// Files by input name.
    pub inputs: Vec<InputFile>,
    /// File in qnn-net-run's input-list format.
    pub input_list: Option<PathBuf>,
    /// Raw files hold the tensor's own type instead of float32.
    pub native_input: bool,
    /// Seed of random inputs.
    pub seed: u64,
    /// Folder for outputs.
    pub save_outputs: Option<PathBuf>,
    /// File for the compiled context.
    pub save_context: Option<PathBuf>,
    /// File for a QNN profile log.
    pub profile_log: Option<PathBuf>,
    /// All inferences in one go, instead of in phases.
    pub straight: Option<Straight>,
    /// Warm-up inferences.
    pub warmup: u64,
    /// Budget of the clean phase.
    pub budget: Budget,
    /// Starts a second that the clean phase plans; `None`: one inference right after the other.
    pub rate_hz: Option<f64>,
    /// Profiling level.
    pub profiling: ProfilingLevel,
    /// Budget of the detailed phase.
    pub profiling_budget: Budget,
    /// Settings.
    pub settings: Vec<SettingRequest>,
    /// Level of vendor logs.
    pub log_level: LogLevel,
    /// Run core API versions that are not known.
    pub allow_unknown_runtime: bool,
}

/// All inferences in one go, as qnn-net-run makes them: `budget` inferences at the level `profiling`, the first one
/// among them. `warmup` and `profiling_budget` do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Straight {
    /// Write the outputs of so many inferences into `save_outputs`.
    pub keep_outputs: u64,
    /// Write them in the tensors' own types instead of float32.
    pub native_outputs: bool,
}

/// An inspection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectTask {
    /// Folder of the libraries.
    pub runtime_dir: PathBuf,
    /// Model file.
    pub model: PathBuf,
    /// Read with core API versions that are not known.
    pub allow_unknown_runtime: bool,
}

/// A try of one backend library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeTask {
    /// The library, by absolute path.
    pub library: PathBuf,
    /// An existing folder for what the library writes into the working directory.
    pub scratch: PathBuf,
}

/// A line to the runner after its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// End the phase that goes on and finish orderly.
    Stop,
}
