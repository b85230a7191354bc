//! What a tap saw in the processes of a program beyond the runs of their graphs.

use crate::models::ContextBinaryInfo;
use crate::tap::{Call, Execution, Process, Provider, RefusedOp, Vote};
use serde::{Deserialize, Serialize};

/// Something seen in a process of a tapped program, or of the program as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TapRecord {
    /// Number of the process within the session, from 0 in order of first QNN use; none for the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// What it is.
    pub seen: TapSeen,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TapSeen {
    /// The program was started, or qnnscope waits for processes started elsewhere.
    ProgramStarted {
        /// Its command; empty for processes started elsewhere.
        command: Vec<String>,
    },
    /// The tap was loaded into a process, which may never use QNN.
    Loaded {
        /// Its id.
        pid: u32,
        /// Path of its executable.
        executable: String,
    },
    /// The program ended.
    ProgramEnded {
        /// Its exit status, if it had one.
        status: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// Why the tap does not reach the program or part of it.
    NotReached {
        /// One sentence.
        reason: String,
    },
    /// A process began to use QNN.
    ProcessStarted(Box<Process>),
    /// It found a backend.
    Provider(Provider),
    /// A call returned.
    Called(Box<Call>),
    /// A graph of the process is this record's run.
    Followed {
        /// Its id.
        graph: u32,
        /// Name, as QNN knows it.
        name: String,
        /// Where it comes from.
        origin: GraphOrigin,
        /// Its context, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<u32>,
    },
    /// Tensors of a graph's first execution: copied, or shared with the backend.
    Bound {
        /// The graph.
        graph: u32,
        /// Its inputs: size in bytes if known, and whether they are shared.
        inputs: Vec<BoundInput>,
        /// Names of inputs and outputs that hold floats.
        floats: u32,
        /// Inputs and outputs in all.
        tensors: u32,
    },
    /// The backend refused an op.
    Refused(Box<RefusedOp>),
    /// Completed executions of any graph of the process.
    Executed(Vec<Execution>),
    /// A power vote.
    Voted(Vote),
    /// Memory shared with the backend was registered (negative: deregistered).
    MemoryShared {
        /// How many descriptors.
        count: i64,
        /// Returned code.
        code: u64,
    },
    /// What is in a context binary that it loaded.
    BinaryRead(Box<BinaryRead>),
    /// A note from the tap to the user.
    Note {
        /// The sentence.
        text: String,
    },
    /// What could not be passed on.
    Lost {
        /// Of what.
        what: String,
        /// How many.
        count: u64,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The process ended, or turned into another program.
    ProcessEnded {
        /// True if it announced its end; a crash, a kill and an exec do not.
        orderly: bool,
        /// Calls that began but did not return.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        during: Vec<String>,
    },
}

impl TapSeen {
    /// Gives access to its timestamps, nanoseconds on the session's clock, so that they can be shifted.
    pub fn each_moment_ns(&mut self, mut each: impl FnMut(&mut u64)) {
        match self {
            Self::ProcessStarted(process) => each(&mut process.t_ns),
            Self::Provider(provider) => each(&mut provider.t_ns),
            Self::Called(call) => each(&mut call.start_ns),
            Self::Refused(refused) => each(&mut refused.t_ns),
            Self::Executed(executions) => executions.iter_mut().for_each(|execution| each(&mut execution.start_ns)),
            Self::Voted(vote) => each(&mut vote.t_ns),
            // Listed one by one, so that a new one with a timestamp is not forgotten.
            Self::ProgramStarted { .. }
            | Self::Loaded { .. }
            | Self::ProgramEnded { .. }
            | Self::NotReached { .. }
            | Self::Followed { .. }
            | Self::Bound { .. }
            | Self::MemoryShared { .. }
            | Self::BinaryRead(_)
            | Self::Note { .. }
            | Self::Lost { .. }
            | Self::ProcessEnded { .. } => {}
        }
    }
}

/// A context binary as QNN's system library reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BinaryRead {
    /// The number by which the calls that loaded it refer to it.
    pub key: u64,
    /// Its SHA-256, lower-case hex; none if only a part was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Folder of the system library that read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// What it says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<ContextBinaryInfo>,
    /// Why nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An input as passed to the first execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundInput {
    /// Name.
    pub name: String,
    /// Bytes; none for types with an unknown layout.
    pub bytes: Option<u64>,
    /// Whether the data lies in memory shared with the backend.
    pub shared: bool,
}

/// Where a graph comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphOrigin {
    /// The process composed it.
    Composed,
    /// It was in a context binary.
    Binary,
}
