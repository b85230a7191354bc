//! The request behind a run, what it loads, its stages and its end.

use super::{Constraints, Driver, Mode, Refusal};
use crate::models::{ContextBinaryInfo, ModelFormat, Quantization};
use crate::{Backend, ProfilingLevel};
use serde::{Deserialize, Serialize};

/// How long a phase goes on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// A number of inferences.
    Iterations(u64),
    /// A time, seconds; at least one inference runs.
    Seconds(f64),
    /// Until both are reached.
    AtLeast {
        /// A number of inferences.
        iterations: u64,
        /// A time, seconds.
        seconds: f64,
    },
}

/// The request behind a run, as the user gave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Device id.
    pub device: String,
    /// Backend.
    pub backend: Backend,
    /// Path of the model as given.
    pub model: String,
    /// Warm-up inferences after the first one.
    pub warmup: u64,
    /// Clean phase.
    pub budget: Budget,
    /// Profiling level of the second phase, and of the first if `basic`.
    pub profiling: ProfilingLevel,
    /// Budget of the detailed phase, if any.
    pub profiling_budget: Option<Budget>,
    /// True if the backend only emulates the hardware.
    pub simulated: bool,
    /// What makes the inferences.
    #[serde(default)]
    pub driver: Driver,
    /// Whether to compute energy even while the device charges.
    #[serde(default)]
    pub energy_while_charging: bool,
    /// How it measures.
    #[serde(default)]
    pub mode: Mode,
    /// What it has to keep to.
    #[serde(default)]
    pub constraints: Constraints,
}

/// Device id of this machine.
pub const LOCAL_DEVICE: &str = "local";

impl RunPlan {
    /// True if the inferences ran on this machine, so that its libraries, sensors and load count. Programs are tapped
    /// both here and on devices; every other driver implies the answer.
    pub fn is_here(&self) -> bool {
        self.driver.traits().is_here && (self.driver != Driver::Tap || self.device == LOCAL_DEVICE)
    }

    /// Profiling level of the clean phase's latencies.
    pub fn clean_profiling(&self) -> ProfilingLevel {
        if let Some(origin) = &self.mode.origin {
            return origin.clean_level;
        }
        if self.driver.traits().always_profiles || self.profiling == ProfilingLevel::Basic {
            ProfilingLevel::Basic
        } else {
            ProfilingLevel::Off
        }
    }
}

/// The opened runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeInfo {
    /// Path of the backend library.
    pub path: String,
    /// The library's own build id, such as `v2.47.0.…`.
    pub build_id: Option<String>,
    /// Core API version, `major.minor.patch`.
    pub core_api: String,
    /// The backend's API version.
    pub backend_api: String,
    /// Provider name as reported by the library.
    pub provider: String,
}

/// The model file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Path as given.
    pub path: String,
    /// Format, recognised by content.
    pub format: ModelFormat,
    /// SHA-256 of the file, lower-case hex.
    pub sha256: String,
    /// Size of the file.
    pub bytes: u64,
    /// What a context binary records about itself.
    pub context_binary: Option<ContextBinaryInfo>,
}

/// Stages of a run, in order. The first eight are those of the result schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Reading and identifying the model, checking inputs. Not part of the result's `stages_us`.
    Prepare,
    /// dlopen of the backend and system libraries.
    LibraryLoad,
    /// backendCreate.
    BackendCreate,
    /// deviceCreate.
    DeviceCreate,
    /// contextCreate, or contextCreateFromBinary.
    ContextCreate,
    /// Building the graph through the model library or the DLC composer.
    Compose,
    /// graphFinalize.
    Finalize,
    /// The first graphExecute.
    FirstInference,
    /// All later inferences. Not part of the result's `stages_us`.
    Execute,
    /// Freeing everything.
    Teardown,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Self; 10] = [
        Self::Prepare,
        Self::LibraryLoad,
        Self::BackendCreate,
        Self::DeviceCreate,
        Self::ContextCreate,
        Self::Compose,
        Self::Finalize,
        Self::FirstInference,
        Self::Execute,
        Self::Teardown,
    ];

    /// Name as in the result document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::LibraryLoad => "library_load",
            Self::BackendCreate => "backend_create",
            Self::DeviceCreate => "device_create",
            Self::ContextCreate => "context_create",
            Self::Compose => "compose",
            Self::Finalize => "finalize",
            Self::FirstInference => "first_inference",
            Self::Execute => "execute",
            Self::Teardown => "teardown",
        }
    }

    /// True for stages whose times the result document reports.
    pub fn is_reported(self) -> bool {
        !matches!(self, Self::Prepare | Self::Execute)
    }
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A part of a stage, timed by the backend (HTP's finalize sub-stages).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubStage {
    /// The stage it is part of.
    pub stage: Stage,
    /// The backend's name for it.
    pub name: String,
    /// Time in microseconds, or another figure in `unit`.
    pub value: f64,
    /// Unit of `value`: `us`, `bytes`, `count`.
    pub unit: String,
}

/// A user's setting and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Key, such as `perf_profile` or `htp_config.vtcm_mb`.
    pub key: String,
    /// Value as text.
    pub value: String,
    /// What became of it.
    pub outcome: SettingOutcome,
}

/// What became of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingOutcome {
    /// The backend accepted it.
    Applied,
    /// It had no effect; the reason.
    NoEffect(String),
    /// The backend refused it; the reason with its code.
    Refused(String),
}

/// The origin of an input's data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorData {
    /// Tensor name.
    pub name: String,
    /// `random`, or the file.
    pub source: String,
    /// Bytes given to the backend.
    pub bytes: u64,
    /// Encoding used to quantise float data, if any.
    pub quantization: Option<Quantization>,
    /// SHA-256 over this input's files of all inferences, in order, lower-case hex; `None` for random data, and in
    /// sessions from versions that did not record it.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// All phases done.
    Ok,
    /// Ended by the user before its budget; the figures up to then stand.
    Stopped,
    /// See [`Failure`].
    Failed,
}

impl Failure {
    /// A failure outside QNN's calls; hints, reasons and log lines may be added.
    pub fn new(stage: Stage, call: &str, message: &str) -> Self {
        Self {
            stage,
            call: call.to_owned(),
            code: None,
            symbol: None,
            message: super::clean_text(message),
            hint: None,
            missing: false,
            bad_input: false,
            refusal: None,
            log_tail: Vec::new(),
        }
    }
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Stage it happened in.
    pub stage: Stage,
    /// The QNN call, signal or step that failed, such as `graphFinalize`.
    pub call: String,
    /// QNN error code (low 16 bits), if a QNN call failed.
    pub code: Option<u64>,
    /// Its symbol, such as `QNN_GRAPH_ERROR_INVALID_HANDLE`.
    pub symbol: Option<String>,
    /// One sentence for people.
    pub message: String,
    /// What to do next, if known.
    pub hint: Option<String>,
    /// True if something needed is missing (a runtime, a library): exit status 3.
    pub missing: bool,
    /// True if the request itself was wrong (bad input): exit status 2.
    pub bad_input: bool,
    /// The op at which the backend stopped, if known; `None` in sessions from versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Box<Refusal>>,
    /// The relevant log lines before the failure.
    pub log_tail: Vec<String>,
}
