//! How the tool ends: its last line and its exit status.

use super::console;
use rustix::process::{Signal, getpid, kill_process};
use std::time::Duration;

/// Signals that may have killed a crashed runner, by the supervisor's names.
const SIGNALS: [(&str, Signal); 8] = [
    ("SIGSEGV", Signal::SEGV),
    ("SIGABRT", Signal::ABORT),
    ("SIGBUS", Signal::BUS),
    ("SIGFPE", Signal::FPE),
    ("SIGILL", Signal::ILL),
    ("SIGTRAP", Signal::TRAP),
    ("SIGSYS", Signal::SYS),
    ("SIGKILL", Signal::KILL),
];

pub const SIGFPE: Signal = Signal::FPE;

/// How the tool ends; the last line names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Success,
    InitializationFailure,
    BackendInitializationFailure,
    DeviceCreationFailure,
    ContextCreationFailure,
    PrepareFailure,
    FinalizeFailure,
    CreateFromBinaryFailure,
    ExecutionFailure,
    Crashed(Signal),
}

impl Ending {
    /// The signal that the supervisor names, if it names one.
    pub fn crashed(call: &str) -> Option<Self> {
        SIGNALS.iter().find(|(name, _)| *name == call).map(|(_, signal)| Self::Crashed(*signal))
    }

    /// Prints the last line; returns the exit status. The real tool has been seen to return 0, 9 to 11 and 14
    /// to 17.
    pub fn tell(self) -> u8 {
        let (line, status) = match self {
            Self::Success => return 0,
            Self::InitializationFailure => ("Initialization failure", 9),
            Self::BackendInitializationFailure => ("Backend Initialization failure", 10),
            Self::DeviceCreationFailure => ("Device Creation failure", 11),
            Self::ContextCreationFailure => ("Context Creation failure", 13),
            Self::PrepareFailure => ("Graph Prepare failure", 14),
            Self::FinalizeFailure => ("Graph Finalize failure", 15),
            Self::CreateFromBinaryFailure => ("Create From Binary failure", 16),
            Self::ExecutionFailure => ("Graph Execution failure", 17),
            Self::Crashed(signal) => return u8::try_from(128 + signal.as_raw()).unwrap_or(255),
        };
        console::plain_error(line);
        status
    }
}

/// Kills this process with a signal, sent twice: Rust's own SIGSEGV handler takes the first one and steps
/// back.
pub fn die_by(signal: Signal) {
    for _ in 0..2 {
        let _ = kill_process(getpid(), signal);
        std::thread::sleep(Duration::from_millis(50));
    }
}
