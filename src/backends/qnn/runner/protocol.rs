//! The protocol between parent and runner: JSON lines both ways.

use super::run_task::RunTask;
use super::tensors_protocol::{OpenedTensors, TensorsTask};
use crate::backends::Backend;
use crate::event::{Event, ModelInfo, NodesPlaced, RuntimeInfo, Sandbox};
use crate::models::Graph;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Version of this protocol; both sides are the same binary, so a difference means a mixed-up installation. On a device
/// it means a runner of another version, which would ignore what it does not know. 3: launches (`slow_load`) and `pin`.
pub const PROTOCOL: u32 = 3;

/// Key of the setting that reports the outcome of a profile log.
pub const SAVE_PROFILE_LOG: &str = "--save-profile-log";

/// Libraries that can provide their version and function table size for an inspection, lightest first. Saver is
/// excluded: opening it writes a folder into the working directory.
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
    /// The runner's monotonic clock, microseconds; on a device it differs from the host's.
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
        /// How far the runner was confined while it worked.
        #[serde(default)]
        sandbox: Sandbox,
    },
    /// The compiled context is complete in [`RunTask::staged_context`] and can be put in place.
    ContextStaged,
    /// Answer to [`Task::Probe`].
    Probed(ProbeAnswer),
    /// Answer to [`Task::Convert`].
    Converted(Box<Converted>),
    /// Answer to [`CheckWork::Ask`].
    Asked(Box<Asked>),
    /// Answer to [`CheckWork::Compile`].
    Compiled(Box<Compiled>),
    /// First answer to [`Task::Tensors`]: the graph is ready, and these are its tensors.
    Opened(Box<OpenedTensors>),
    /// The tensors of an inference are in the exchange folder.
    Computed {
        /// Its number, as [`Command::Compute`] gave it.
        index: u64,
    },
    /// The task is complete; nothing follows.
    Done,
}

/// A backend that initialises but creates no device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoDevice {
    /// What failed, with its code.
    pub error: String,
    /// The library's last lines.
    pub log: Vec<String>,
}

/// The result of trying a backend library.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// Build id.
    pub build_id: Option<String>,
    /// Core API version.
    pub core_api: Option<String>,
    /// Backend API version.
    pub backend_api: Option<String>,
    /// Why it does not load or initialise; `None` if it does.
    pub error: Option<String>,
    /// Why it creates no device, the first step that reaches a DSP, and what it logged; `None` if it does, or was not
    /// asked.
    #[serde(default)]
    pub device: Option<NoDevice>,
    /// How far the runner was confined while it worked.
    #[serde(default)]
    pub sandbox: Sandbox,
}

/// A task for a runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Run a model.
    Run(Box<RunTask>),
    /// Read a model's graphs without running it.
    Inspect(InspectTask),
    /// Try a backend library.
    Probe(ProbeTask),
    /// Ask a backend about a model without running it.
    Check(Box<CheckTask>),
    /// Compute with readable tensors between ops.
    Tensors(Box<TensorsTask>),
    /// Make a DLC or a context binary from an ONNX model.
    Convert(Box<ConvertTask>),
}

/// An inspection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectTask {
    /// Folder of the libraries.
    pub runtime_dir: PathBuf,
    /// Model file.
    pub model: PathBuf,
    /// Accept unknown core API versions for reading.
    pub allow_unknown_runtime: bool,
}

/// A conversion of an ONNX model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConvertTask {
    /// The model, its backend and its options, as for a run.
    pub run: RunTask,
    /// An existing empty folder for the results.
    pub out_dir: PathBuf,
    /// What to make.
    pub work: ConvertWork,
}

/// The result format of a conversion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConvertWork {
    /// A DLC for each partition.
    Dlc,
    /// An ONNX model whose nodes contain or name context binaries.
    Context {
        /// File name of the model.
        name: String,
        /// Whether the binaries are inside it.
        embed: bool,
    },
}

/// The outcome of a conversion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Converted {
    /// Names of the files in [`ConvertTask::out_dir`].
    pub files: Vec<String>,
    /// Which nodes QNN took.
    pub placed: NodesPlaced,
    /// QNN ops by the nodes they were made from.
    pub ops: Vec<NamedOps>,
}

/// The QNN ops of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedOps {
    /// The node of the model; empty for inserted ones.
    pub node: Option<String>,
    /// Its operator.
    pub node_type: Option<String>,
    /// Names and types of the ops.
    pub ops: Vec<(String, String)>,
}

/// A try of one backend library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeTask {
    /// The library, by absolute path.
    pub library: PathBuf,
    /// An existing folder for files the library writes into the working directory.
    pub scratch: PathBuf,
}

/// A query about a model without running it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckTask {
    /// Folder of the libraries.
    pub runtime_dir: PathBuf,
    /// Backend.
    pub backend: Backend,
    /// Model file.
    pub model: PathBuf,
    /// QNN's number of the SoC to answer for (HTP).
    pub soc_model: Option<u32>,
    /// Hexagon architecture to answer for, if no SoC is named (HTP).
    #[serde(default)]
    pub arch: Option<u32>,
    /// VTCM of each graph, MB; the backend's own choice if `None` (HTP).
    pub vtcm_mb: Option<u32>,
    /// What to ask.
    pub work: CheckWork,
    /// Use core API versions that qnnscope does not know.
    pub allow_unknown_runtime: bool,
}

/// A check's query to a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckWork {
    /// Whether it accepts each op; for a context binary: only the file's own description.
    Ask,
    /// Whether it compiles the graphs; for a context binary: whether it loads.
    Compile,
}

/// A backend's answers about the ops of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Facts of the file.
    pub model: ModelInfo,
    /// The backend's library.
    pub runtime: RuntimeInfo,
    /// The model's graphs, each op with its tensors.
    pub graphs: Vec<Graph>,
    /// The answers, in the order of the ops.
    pub verdicts: Vec<OpVerdict>,
    /// Why composing ended before the model was complete, if so.
    pub incomplete: Option<String>,
    /// How the model's lists of inputs and outputs differ from its graphs', which makes backends refuse to execute it.
    #[serde(default)]
    pub lists: Vec<String>,
    /// How far the runner was confined while it worked.
    #[serde(default)]
    pub sandbox: Sandbox,
}

/// The answer about one op.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpVerdict {
    /// Position of its graph in [`Asked::graphs`].
    pub graph: usize,
    /// Position of the op in its graph.
    pub op: usize,
    /// Returned code, low 16 bits; 0 is yes.
    pub code: u64,
    /// What the backend logged while answering, if it refused.
    pub log: Vec<String>,
    /// The log's numbers for the op's tensors: inputs, then outputs; only if refused.
    pub tensor_ids: Vec<u32>,
}

/// The outcome of compiling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compiled {
    /// The backend's library.
    pub runtime: RuntimeInfo,
    /// One row per graph, in the model's order.
    pub graphs: Vec<CompiledGraph>,
    /// Size of the context binary, if it could be created.
    pub binary_bytes: Option<u64>,
    /// Hexagon architecture the graphs were compiled for.
    pub hexagon_arch: Option<u32>,
}

/// The outcome of compiling one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompiledGraph {
    /// Its name.
    pub name: String,
    /// Code of graphFinalize; 0 is success.
    pub code: u64,
    /// Wall time of graphFinalize, microseconds.
    pub finalize_us: f64,
    /// VTCM, bytes.
    pub vtcm_bytes: Option<u64>,
    /// Spill and fill buffer in DDR, bytes.
    pub spill_fill_buffer_bytes: Option<u64>,
    /// HVX threads; 0 if the device decides.
    pub hvx_threads: Option<u64>,
}

/// A line to the runner after its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// End the current phase and finish cleanly.
    Stop,
    /// Compute with the inputs in the exchange folder ([`TensorsTask`]).
    Compute {
        /// Number of the inference.
        index: u64,
    },
}
