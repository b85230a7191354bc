//! The runner: a child process of our own binary in which all vendor code runs.
//!
//! It reads one [`Task`] as a JSON line from standard input and writes [`Frame`]s as JSON lines to its
//! original standard output. Hosts without local runtimes (macOS, Windows) have the protocol, and a runner
//! that only reports this.

#[cfg(unix)]
mod child;
#[cfg(not(unix))]
#[path = "elsewhere.rs"]
mod child;
mod protocol;
mod run_task;
mod tensors_protocol;
#[cfg(unix)]
pub(crate) use child::SCRATCH_VARIABLE;

pub use child::main;
#[cfg(unix)]
pub use child::{InputSet, emit, measure};
#[cfg(unix)]
pub(crate) use child::{encode, graph_of, read_list, read_npy, scale_offset};
#[cfg(unix)]
pub(crate) use child::{input_sets, profile_events};
pub use protocol::{
    Asked, CheckTask, CheckWork, Command, Compiled, CompiledGraph, ConvertTask, ConvertWork, Converted, Frame, Hello,
    InspectTask, NamedOps, NoDevice, OpVerdict, PROTOCOL, ProbeAnswer, ProbeTask, SAVE_PROFILE_LOG, TABLE_LENDERS,
    Task,
};
pub use run_task::{InputFile, OnnxTask, Pin, RunTask, SlowLoad, Straight};
pub use tensors_protocol::{
    EXCHANGE_CONSTANTS, EXCHANGE_INPUTS, EXCHANGE_TENSORS, GivenTensor, OpenedTensors, TensorsTask,
};
