//! The run as the runner receives it.

use crate::backends::settings::SettingRequest;
use crate::backends::{Backend, ProfilingLevel};
use crate::event::{Budget, LogLevel};
use crate::files::Guard;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

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
    /// An empty file that takes the compiled context for the parent to put in place: a confined runner cannot rename files
    /// in the user's folders.
    #[serde(default)]
    pub staged_context: Option<PathBuf>,
    /// File for a QNN profile log.
    pub profile_log: Option<PathBuf>,
    /// All inferences in one go, instead of in phases.
    pub straight: Option<Straight>,
    /// Warm-up inferences.
    pub warmup: u64,
    /// Budget of the clean phase.
    pub budget: Budget,
    /// Planned starts per second in the clean phase; `None`: back to back.
    pub rate_hz: Option<f64>,
    /// Profiling level.
    pub profiling: ProfilingLevel,
    /// Budget of the detailed phase.
    pub profiling_budget: Budget,
    /// Settings.
    pub settings: Vec<SettingRequest>,
    /// Level of vendor logs.
    pub log_level: LogLevel,
    /// Run core API versions that qnnscope does not know.
    pub allow_unknown_runtime: bool,
    /// What to do if loading takes long, when `budget` is only a share of what was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_load: Option<SlowLoad>,
    /// Processor cores of the runner's threads.
    #[serde(default, skip_serializing_if = "Pin::is_unset")]
    pub pin: Pin,
    /// What an ONNX model needs in addition; `None` for QNN's own formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onnx: Option<OnnxTask>,
    /// Results may replace files that qnnscope did not make.
    #[serde(default)]
    pub overwrite: bool,
    /// More files, in addition to the task's own, that no result may replace.
    #[serde(default)]
    pub protected: Vec<PathBuf>,
}

/// What a run of an ONNX model needs in addition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnnxTask {
    /// ONNX Runtime's library.
    pub library: PathBuf,
    /// Its QNN plug-in.
    pub plugin: PathBuf,
    /// Sizes of free dimensions, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<(String, u64)>,
    /// Options of the QNN provider and entries of the session, as the user gave them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
    /// Whether a node that QNN does not run is an error.
    #[serde(default)]
    pub no_cpu_fallback: bool,
    /// Whether the run ends as soon as it is known which node would run where: a check.
    #[serde(default)]
    pub placement_only: bool,
    /// Whether ONNX Runtime's own kernels run everything, as a reference.
    #[serde(default)]
    pub reference: bool,
}

/// Where the threads of a runner may run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pin {
    /// Not specified: wherever the system and the backend put them.
    #[default]
    Unset,
    /// The same, because the user asked for it.
    Free,
    /// All of them on these cores.
    Cores(Vec<usize>),
    /// Each of the backend's computing threads on its own core (one of these; if there are none, one of all
    /// that the runner may use), and the thread that calls the backend on the core of the first one, which
    /// waits while the caller works. On any other computing thread's core it would wait for a thread that
    /// spins.
    Spread(Vec<usize>),
    /// The same, over all cores, if the backend pins its threads, as QNN's CPU backend does; otherwise
    /// nothing.
    Auto,
}

impl Pin {
    /// True if there is nothing to do or to report.
    pub fn is_unset(&self) -> bool {
        *self == Self::Unset
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |cores: &[usize]| cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        match self {
            Self::Unset | Self::Free => f.write_str("free"),
            Self::Cores(cores) => f.write_str(&list(cores)),
            Self::Auto => f.write_str("spread"),
            Self::Spread(cores) if cores.is_empty() => f.write_str("spread"),
            Self::Spread(cores) => write!(f, "spread:{}", list(cores)),
        }
    }
}

/// All inferences of a run, for a launch that runs them all because another launch would take long to load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SlowLoad {
    /// Load time, up to the first inference, above which this applies, seconds.
    pub seconds: f64,
    /// Budget of the clean phase.
    pub budget: Budget,
    /// Budget of the detailed phase.
    pub profiling_budget: Budget,
}

impl RunTask {
    /// The budgets of the clean and the detailed phase after a load of this length.
    pub fn budgets(&self, load_s: f64) -> (Budget, Budget) {
        match self.slow_load.filter(|slow| load_s > slow.seconds) {
            Some(slow) => (slow.budget, slow.profiling_budget),
            None => (self.budget, self.profiling_budget),
        }
    }

    /// Explains why all inferences run in one launch, if they do after a load of this length.
    pub fn slow_load_text(&self, load_s: f64) -> Option<String> {
        let slow = self.slow_load.filter(|slow| load_s > slow.seconds)?;
        Some(format!(
            "loading took {load_s:.0} s, more than {} s: all inferences ran in one launch; --launches N uses several",
            slow.seconds
        ))
    }

    /// A guard that knows every file the run reads.
    pub fn guard(&self) -> Guard {
        let mut guard = Guard::new(self.overwrite);
        guard.reads("the model", &self.model);
        for input in &self.inputs {
            guard.reads("the input", &input.path);
        }
        if let Some(list) = &self.input_list {
            guard.reads_list(list);
        }
        guard.reads_folder("the library", &self.runtime_dir);
        if let Some(onnx) = &self.onnx {
            guard.reads("the library", &onnx.library);
            guard.reads("the library", &onnx.plugin);
        }
        for path in &self.protected {
            guard.reads("the file", path);
        }
        guard
    }
}

/// All inferences in one go, as qnn-net-run runs them: `budget` inferences at the level `profiling`,
/// including the first one. `warmup` and `profiling_budget` do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Straight {
    /// Write the outputs of this many inferences into `save_outputs`.
    pub keep_outputs: u64,
    /// Write them in the tensors' own types instead of float32.
    pub native_outputs: bool,
}
