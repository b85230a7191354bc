//! The vocabulary: everything that happens is an [`Event`] on one ordered stream.
//!
//! Live view, recording, replay and reports all use these types; every kind of event can be written to a session file.
//! This module does no I/O.

mod check;
mod clock;
mod counters;
mod device;
mod driver;
mod host;
mod judged;
mod kinds;
mod launches;
mod log;
mod log_tail;
mod mode;
mod nodes;
mod origin;
mod refusal;
mod run;
mod sample;
mod sandbox;
mod tap;

pub use check::{CheckOutcome, CheckResult, PlacedFile, Placement};
pub use clock::{epoch_us, now_us};
pub use counters::{ClockAligned, ClockStepped, CounterGap, CounterSet, Gap, SamplerEnded, SamplerReport};
pub use device::{Battery, BusyProcess, Cluster, Confound, DeviceChange, DeviceFacts, SocFacts, Transfer};
pub use driver::{Driver, DriverTraits};
pub use host::{CounterInfo, CounterSample, DeviceInfo, DeviceKind};
pub use judged::{JudgedOutput, OutputsJudged, TruthFigure, TruthMetric};
pub use kinds::UnknownEvent;
pub use launches::Launches;
pub use log::{LogLevel, LogLine, LogSource, MAX_LINE_CHARS, capitalised, clean_text, clean_whole, disturbs};
pub use log_tail::LogTail;
pub use mode::{Constraints, CoolDown, CoolDownEnd, Cooling, Like, Member, Mode, OutlierLimit, PaceReport};
pub use nodes::{NodePartition, NodePlacement, NodeProvider, NodesPlaced, SourceNames};
pub use origin::Origin;
pub use refusal::Refusal;
pub use run::{
    Budget, Failure, LOCAL_DEVICE, ModelInfo, RunPlan, RunStatus, RuntimeInfo, Setting, SettingOutcome, Stage,
    SubStage, TensorData,
};
pub use sample::{InferenceBatch, MemoryMark, MemorySample, Metric, MetricSample, OpRow, OpSample, OpUnit, Phase};
pub use sandbox::{Sandbox, SandboxState};
pub use tap::{BinaryRead, BoundInput, GraphOrigin, TapRecord, TapSeen};

use crate::models::Graph;
use serde::{Deserialize, Serialize};

/// Identity of one run (one model on one backend) within a session. Runs are numbered from 0 in start order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u32);

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One line of the session: an event with its position and timestamp.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Position in the session, from 0, without gaps.
    pub seq: u64,
    /// Timestamp on the host's monotonic clock, microseconds.
    pub t_us: u64,
    /// The run the event belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What happened.
    pub event: Event,
}

/// Something that happened. See each variant's payload for units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// First event of every session: who wrote it, when, and how its clock relates to wall time.
    SessionStarted(SessionStarted),
    /// A device (this machine included) is present.
    DeviceSeen(DeviceInfo),
    /// The adb server answers; devices behind it follow.
    AdbFound {
        /// Its address.
        server: String,
    },
    /// There is no adb server, so nothing is known about devices behind one.
    AdbLost {
        /// Why.
        reason: String,
        /// What to do about it.
        advice: Option<String>,
    },
    /// A device appeared, disappeared, or changed its state.
    DeviceChanged(DeviceChange),
    /// Facts about a device.
    DeviceDescribed(Box<DeviceFacts>),
    /// Where a run's files are, and which paths its process searches.
    RunPlaced(Box<Placement>),
    /// Files are being sent to a device.
    FilesSent(Transfer),
    /// What may disturb the figures of the run that follows.
    ConfoundsFound(Vec<Confound>),
    /// A run was requested; later events with the same run id belong to it.
    RunStarted(Box<RunPlan>),
    /// The model file was read and identified.
    ModelIdentified(Box<ModelInfo>),
    /// The backend library was opened and reported its versions.
    RuntimeLoaded(RuntimeInfo),
    /// How the process that runs the model is confined. Sent before it loads anything.
    Sandboxed(Box<Sandbox>),
    /// Runtime files differ from the installed ones.
    RuntimeChanged {
        /// The runtime's folder.
        folder: String,
        /// The files, each with its change.
        files: Vec<String>,
    },
    /// A setting was applied, or had no effect and why.
    SettingApplied(Setting),
    /// A stage began.
    StageStarted {
        /// Which stage.
        stage: Stage,
    },
    /// A stage ended well.
    StageFinished {
        /// Which stage.
        stage: Stage,
        /// Wall time, microseconds.
        duration_us: f64,
    },
    /// A part of a stage, timed by the backend itself.
    SubStageFinished(SubStage),
    /// A graph was composed: its whole op table, once.
    GraphComposed(Box<Graph>),
    /// The graph that runs, among those composed.
    GraphChosen {
        /// Its name.
        name: String,
    },
    /// Which nodes of an ONNX model run where. A later one of the same run has more detail and replaces it.
    NodesPlaced(Box<NodesPlaced>),
    /// What the ops of a converted model were before conversion.
    SourceNamed(Box<SourceNames>),
    /// The run's input tensors and their origin.
    InputsPrepared {
        /// Seed of the random data, for inputs without a file.
        seed: u64,
        /// One row per input, in graph order.
        inputs: Vec<TensorData>,
    },
    /// A phase of measuring began.
    PhaseStarted {
        /// Which phase.
        phase: Phase,
        /// What it aims for.
        budget: Budget,
    },
    /// A fresh process starts its share of the run's inferences, from loading the model on. Sessions without it
    /// have one launch a run.
    LaunchStarted {
        /// Number of the launch, from 0.
        index: u32,
        /// Launches planned so far; it grows while they disagree.
        of: u32,
        /// Why this one was added to those initially planned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The process that runs the model was restarted; what was measured before and after goes together, the time in
    /// between belongs to no inference.
    RoundStarted {
        /// Number of the round, from 0.
        round: u64,
    },
    /// Inferences finished.
    Inferences(InferenceBatch),
    /// How well a paced phase kept its schedule.
    PaceReported(PaceReport),
    /// The run waits for its device to cool down, or has waited.
    CoolingDown(CoolDown),
    /// The rows later [`Event::OpTimes`] arrays refer to, in order.
    OpsDeclared(Vec<OpRow>),
    /// Times of every op of one inference.
    OpTimes(OpSample),
    /// Figures of the backend for one inference (accelerator time, waits, threads).
    Metrics(MetricSample),
    /// Memory of the process that runs the model.
    Memory(MemorySample),
    /// CPU time the process used during the latency phase.
    CpuUsed {
        /// CPU time, all threads, microseconds.
        cpu_us: f64,
        /// Wall time of the same span, microseconds.
        wall_us: f64,
    },
    /// The host's own counters, set 0, in the order of their samples' values.
    CountersDeclared(Vec<CounterInfo>),
    /// Device counters that are read together.
    CounterSetDeclared(CounterSet),
    /// One tick of a set of counters.
    Counters(CounterSample),
    /// A device's counter has no value from here on, or has one again.
    CounterGap(CounterGap),
    /// A device's clock was compared with the host's.
    ClockAligned(ClockAligned),
    /// A device's wall clock was set.
    ClockStepped(ClockStepped),
    /// How well a device is being sampled.
    SamplerReported(SamplerReport),
    /// Sampling of a device ended.
    SamplerEnded(SamplerEnded),
    /// Output tensors of one inference were written.
    OutputsSaved {
        /// The files.
        files: Vec<String>,
    },
    /// The outputs of each input set were compared with known correct ones.
    OutputsJudged(Box<OutputsJudged>),
    /// A line of text from the vendor libraries, the runner or qnnscope.
    Log(LogLine),
    /// Data was lost; counted, never silent.
    Lost {
        /// Where.
        source: String,
        /// Why.
        reason: String,
        /// How many items.
        count: u64,
    },
    /// A run failed. [`Event::RunFinished`] follows.
    Failed(Box<Failure>),
    /// A likely cause of the failure was checked. On this machine checks come after [`Event::RunFinished`].
    CheckFinished(Box<CheckResult>),
    /// A run ended.
    RunFinished {
        /// How it ended.
        status: RunStatus,
    },
    /// What a tap saw in a program beyond the runs of its graphs.
    Tap(Box<TapRecord>),
    /// An event of unknown kind, read from a newer version's session. It changes nothing but the
    /// count of such events.
    Unknown(UnknownEvent),
}

/// Header of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// Always [`SESSION_SCHEMA`] for files of this version.
    pub schema: String,
    /// Version of qnnscope that wrote the session.
    pub tool_version: String,
    /// Wall clock at the start, microseconds since 1970-01-01 UTC.
    pub epoch_us: u64,
    /// The host's monotonic clock at the same moment, microseconds.
    pub monotonic_us: u64,
    /// Operating system, architecture, kernel.
    pub host: String,
}

/// Schema of session files and of the stream.
pub const SESSION_SCHEMA: &str = "qnnscope.session/1";
