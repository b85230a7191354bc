//! What the tap library inside another program reports to qnnscope: one JSON document per line, each process on its own
//! connection or file.
//!
//! Times are nanoseconds on the machine's monotonic clock. The tap assigns ids and never reuses one within a process,
//! unlike QNN's handles.

mod shift;

use crate::models::{Graph, Op, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Version of this vocabulary; a reader refuses a newer one by name.
pub const TAP_PROTOCOL: u32 = 1;

/// Where the tap writes: `unix:PATH` (a listening socket) or `dir:PATH` (one file per process, for devices).
pub const SINK_VARIABLE: &str = "QNNSCOPE_TAP";
/// Folder of the real backend libraries, if the tap replaces them under their names.
pub const REAL_VARIABLE: &str = "QNNSCOPE_TAP_REAL";
/// `auto`, or N to profile every N-th execution of a graph in detail; 0 for never.
pub const DETAIL_VARIABLE: &str = "QNNSCOPE_TAP_DETAIL";
/// Requested level of the vendor's log: `error` to `debug`. Without it, the program's own level applies.
pub const LOG_VARIABLE: &str = "QNNSCOPE_TAP_LOG";
/// Repairs that the user requested, comma-separated: `device-config`.
pub const REPAIR_VARIABLE: &str = "QNNSCOPE_TAP_REPAIR";

/// Something the tap saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TapMessage {
    /// The tap was loaded into a process. Sent alone, on its own connection: the process may never use QNN.
    Loaded(Process),
    /// First message of a process that asks for QNN (or of a fork of one).
    Hello(Process),
    /// First message of a connection reopened because the program closed the previous one: what follows belongs to the
    /// process that sent the hello there.
    Again {
        /// When.
        t_ns: u64,
        /// Its id.
        pid: u32,
    },
    /// A backend's function table was requested.
    Provider(Provider),
    /// A call that may take long, or crash the process, begins.
    Began {
        /// The call.
        call: String,
        /// When.
        t_ns: u64,
        /// Kernel's id of the thread.
        thread: u32,
        /// The graph it concerns, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        graph: Option<u32>,
    },
    /// Such a call returned.
    Ended(Box<Call>),
    /// A graph was composed: everything except its ops, which come in [`TapMessage::GraphOps`], before and after. Sent
    /// before the graph is finalized.
    Composed {
        /// Its id.
        graph: u32,
        /// Its ops.
        op_count: u32,
        /// Name, inputs, outputs; without ops.
        head: Box<Graph>,
    },
    /// Some ops of a composed graph, in order.
    GraphOps {
        /// The graph.
        graph: u32,
        /// The ops; their index gives their place.
        ops: Vec<Op>,
    },
    /// Inputs and outputs as passed to a graph's first execution, for graphs not composed here.
    Bound {
        /// The graph.
        graph: u32,
        /// Inputs in the order of execution.
        inputs: Vec<BoundTensor>,
        /// Outputs in the order of execution.
        outputs: Vec<BoundTensor>,
    },
    /// A backend rejected an op, or an op could not be added.
    Refused(Box<RefusedOp>),
    /// Completed executions.
    Executions(Vec<Execution>),
    /// Profiling events of one call.
    Detail(Box<Detail>),
    /// A power vote was cast, changed or ended.
    Voted(Vote),
    /// The program registered or deregistered memory shared with the backend.
    MemoryShared {
        /// When.
        t_ns: u64,
        /// Descriptors registered; negative if deregistered.
        count: i64,
        /// Returned code, low 16 bits.
        code: u64,
    },
    /// A line of the vendor's log.
    Log {
        /// When.
        t_ns: u64,
        /// QNN's level: 1 error, 2 warning, 3 info, 4 verbose, 5 debug.
        level: u32,
        /// The line, control characters removed.
        text: String,
    },
    /// A context binary was loaded: the part kept for inspection. Sent once per content.
    Binary(Binary),
    /// A note from the tap to the user: a repair it made, why something is not seen.
    Note {
        /// When.
        t_ns: u64,
        /// The sentence.
        text: String,
    },
    /// Data dropped since the last such message.
    Lost {
        /// Kind: `executions`, `messages`, `details`, `graphs`, `contexts of lists`.
        what: String,
        /// How many.
        count: u64,
        /// Why; without it, the queue was full.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The process ends normally.
    Bye {
        /// When.
        t_ns: u64,
    },
}

/// A process of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// [`TAP_PROTOCOL`] of the tap.
    pub protocol: u32,
    /// Version of the tap library.
    pub tap_version: String,
    /// Process id.
    pub pid: u32,
    /// Its parent.
    pub parent_pid: u32,
    /// True for a fork that uses its parent's QNN: it announces backends and graphs again, under the parent's ids.
    pub forked: bool,
    /// Path of its executable.
    pub executable: String,
    /// Its arguments, including the first one.
    pub command: Vec<String>,
    /// Architecture: `x86_64`, `aarch64`.
    pub arch: String,
    /// Now.
    pub t_ns: u64,
    /// The wall clock at the same moment, microseconds since 1970-01-01 UTC.
    pub epoch_us: u64,
    /// File with the queued executions ([`unread`]): if the process is killed, it holds the last ones. The reader
    /// removes it; a process that ends normally removes it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
}

/// A backend library the program found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// Its number within the process.
    pub provider: u32,
    /// Its file.
    pub library: String,
    /// The name it reports.
    pub name: String,
    /// QNN's backend id: 3 CPU, 4 GPU, 6 HTP, 9 IR.
    pub backend_id: u32,
    /// Core API version.
    pub core_api: String,
    /// The backend's own API version.
    pub backend_api: String,
    /// Build id of the library.
    pub build_id: Option<String>,
    /// Why it is passed through untouched and nothing of it is seen, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untouched: Option<String>,
    /// When it was requested.
    pub t_ns: u64,
}

/// A call that returned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// QNN's name of the call: `backendCreate`, `deviceCreate`, `contextCreate`, `contextCreateFromBinary`,
    /// `contextCreateFromBinaryListAsync` (its contexts and graphs follow separately, see [`Call::of_list`]),
    /// `contextFree`, `graphCreate`, `graphRetrieve`, `graphFinalize`, `contextGetBinary`, `backendFree`.
    pub call: String,
    /// The provider.
    pub provider: u32,
    /// When it began.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// Thread.
    pub thread: u32,
    /// Returned value, all 64 bits; the code is the low 16.
    pub code: u64,
    /// The library's own text for the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The context made, used or freed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// The graph made or used. Freeing a context ends its graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<u32>,
    /// Name of that graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Size of the context binary read or written, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_bytes: Option<u64>,
    /// [`Binary::key`] of the context binary that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<u64>,
    /// True for a context, or a graph in one, that contextCreateFromBinaryListAsync notified the program of: from the
    /// start of that call to the notification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_list: bool,
    /// Options the program passed, by name if known, else by number.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// Resident memory of the process before, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_before: Option<u64>,
    /// The same afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_after: Option<u64>,
}

/// A context binary that a process loaded, as far as kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binary {
    /// When.
    pub t_ns: u64,
    /// Number of this content; the same for the same bytes.
    pub key: u64,
    /// The provider that loaded it.
    pub provider: u32,
    /// Its size, bytes.
    pub bytes: u64,
    /// File with its first `head` bytes followed by its last `tail` bytes. The reader removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Bytes from its beginning in the file.
    pub head: u64,
    /// Bytes from its end in the file.
    pub tail: u64,
    /// Why there is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A tensor as passed to an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundTensor {
    /// The tensor.
    pub tensor: Tensor,
    /// True if its data lies in memory shared with the backend, false if it is copied.
    pub shared: bool,
}

/// An op that was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusedOp {
    /// When.
    pub t_ns: u64,
    /// The provider.
    pub provider: u32,
    /// The call that refused: `backendValidateOpConfig` or `graphAddNode`.
    pub call: String,
    /// The op, with its tensors.
    pub op: Op,
    /// Returned code, low 16 bits.
    pub code: u64,
    /// What the backend logged during the call.
    pub reasons: Vec<String>,
}

/// How an execution ran; bits of [`Execution::flags`].
pub mod execution_flags {
    /// The tap profiled it in detail: its latency is not clean.
    pub const DETAILED: u32 = 1;
    /// The program passed a profile handle of its own.
    pub const HOST_PROFILED: u32 = 2;
    /// graphExecuteAsync: from the call to its notification.
    pub const ASYNC: u32 = 4;
    /// First execution of the graph.
    pub const FIRST: u32 = 8;
    /// At least one input was passed as raw client memory, not as memory shared with the backend.
    pub const RAW_INPUT: u32 = 16;
}

/// One execution; written as an array because there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u64, u64, u64, u32)", into = "(u32, u32, u64, u64, u64, u32)")]
pub struct Execution {
    /// The graph; `u32::MAX` if unknown.
    pub graph: u32,
    /// Kernel's id of the thread.
    pub thread: u32,
    /// When it began.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// Returned value.
    pub code: u64,
    /// See [`execution_flags`].
    pub flags: u32,
}

impl From<(u32, u32, u64, u64, u64, u32)> for Execution {
    fn from((graph, thread, start_ns, duration_ns, code, flags): (u32, u32, u64, u64, u64, u32)) -> Self {
        Self { graph, thread, start_ns, duration_ns, code, flags }
    }
}

impl From<Execution> for (u32, u32, u64, u64, u64, u32) {
    fn from(e: Execution) -> Self {
        (e.graph, e.thread, e.start_ns, e.duration_ns, e.code, e.flags)
    }
}

/// Magic number at the start of a ring file.
pub const RING_MAGIC: u64 = u64::from_le_bytes(*b"QNNSTAP1");
/// Bytes before the first slot of a ring file: the magic number, the number of slots, two positions.
pub const RING_HEAD: usize = 64;
/// Bytes of a slot: sequence number, graph and thread, start, duration, code, flags; 8 bytes each, in this machine's
/// byte order.
pub const RING_SLOT: usize = 48;

/// The executions a process could not pass on, from the bytes of its ring file ([`Process::ring`]); empty for any other
/// file. Half-written ones are left out. The last ones sent may be among them: a process can be killed after sending
/// some and before removing them.
#[expect(clippy::cast_possible_truncation, reason = "two halves, and flags that were 32 bits")]
pub fn unread(bytes: &[u8]) -> Vec<Execution> {
    let word = |at: usize| bytes.get(at..at + 8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    let (Some(RING_MAGIC), Some(slots @ 2..)) = (word(0), word(8)) else { return Vec::new() };
    let mut found: Vec<Execution> = bytes[RING_HEAD.min(bytes.len())..]
        .chunks_exact(RING_SLOT)
        .enumerate()
        .filter_map(|(number, _)| {
            let at = RING_HEAD + number * RING_SLOT;
            let field = |index: usize| word(at + index * 8);
            // Added and not removed: its own number plus one plus a multiple of the size.
            let turn = field(0)?.checked_sub(number as u64)?;
            let who = field(1)?;
            (turn % slots == 1).then_some(Execution {
                graph: who as u32,
                thread: (who >> 32) as u32,
                start_ns: field(2)?,
                duration_ns: field(3)?,
                code: field(4)?,
                flags: field(5)? as u32,
            })
        })
        .collect();
    found.sort_by_key(|execution| execution.start_ns);
    found
}

/// One profiling event; a tree is written in depth-first order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u32, u64, String)", into = "(u32, u32, u32, u64, String)")]
pub struct FlatEvent {
    /// 0 for a root.
    pub depth: u32,
    /// QNN's event type.
    pub kind: u32,
    /// QNN's unit.
    pub unit: u32,
    /// Value.
    pub value: u64,
    /// Identifier, control characters removed.
    pub identifier: String,
}

impl From<(u32, u32, u32, u64, String)> for FlatEvent {
    fn from((depth, kind, unit, value, identifier): (u32, u32, u32, u64, String)) -> Self {
        Self { depth, kind, unit, value, identifier }
    }
}

impl From<FlatEvent> for (u32, u32, u32, u64, String) {
    fn from(e: FlatEvent) -> Self {
        (e.depth, e.kind, e.unit, e.value, e.identifier)
    }
}

/// Profiling events of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// `graphExecute`, `graphExecuteAsync`, `graphFinalize` or `contextCreateFromBinary`.
    pub call: String,
    /// The graph; `u32::MAX` if none.
    pub graph: u32,
    /// Thread.
    pub thread: u32,
    /// When the call began: matches the execution with the same graph, thread and start.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// How long reading the events took, after the call.
    pub read_ns: u64,
    /// True if the program's own profile handle was read, at the program's level.
    pub host: bool,
    /// Events that did not fit.
    pub cut: u32,
    /// The events.
    pub events: Vec<FlatEvent>,
}

/// A power vote through the HTP infrastructure table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// When.
    pub t_ns: u64,
    /// The provider.
    pub provider: u32,
    /// `create`, `set` or `destroy`.
    pub action: String,
    /// Power config id.
    pub id: u32,
    /// Returned value.
    pub code: u64,
    /// The voted settings: `dcvs_enable`, `power_mode`, `sleep_latency_us`, `sleep_disable`, `bus_min`, `bus_target`,
    /// `bus_max`, `core_min`, `core_target`, `core_max`, `rpc_latency_us`, `rpc_polling_us`; others as `option_N`.
    pub settings: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_make_reading_a_ring_fail() {
        assert!(unread(&[]).is_empty() && unread(&[0xff; 1000]).is_empty());
        let mut bytes = RING_MAGIC.to_ne_bytes().to_vec();
        for slots in [0u64, 1, 2, u64::MAX] {
            bytes.truncate(8);
            bytes.extend(slots.to_ne_bytes());
            assert!(unread(&bytes).is_empty());
            for length in [16, 63, 64, 65, 111, 112, 1000] {
                bytes.resize(length, 0xff);
                let _ = unread(&bytes);
            }
        }
    }

    #[test]
    fn many_small_things_are_written_as_arrays() {
        let execution = Execution { graph: 1, thread: 2, start_ns: 3, duration_ns: 4, code: 5, flags: 6 };
        let line = serde_json::to_string(&TapMessage::Executions(vec![execution])).unwrap();
        assert_eq!(line, r#"{"executions":[[1,2,3,4,5,6]]}"#);
        assert_eq!(serde_json::from_str::<TapMessage>(&line).unwrap(), TapMessage::Executions(vec![execution]));
        let event = FlatEvent { depth: 1, kind: 404, unit: 3, value: 9, identifier: "conv".into() };
        assert_eq!(serde_json::to_string(&event).unwrap(), r#"[1,404,3,9,"conv"]"#);
    }
}
