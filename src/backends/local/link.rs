//! What the supervisor needs from a runner, wherever its process is.

use crate::backends::qnn::runner::Hello;
use crate::devices::DeviceError;
use crate::event::Event;
use crate::probes::process::ProcessMemory;
use std::io;
use std::time::Duration;

/// Time to end after the last frame, or after being asked to stop between inferences.
pub const GRACE: Duration = Duration::from_secs(10);

/// A runner's process.
pub trait Process: Send {
    /// Writes to its standard input.
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send;

    /// Requests its immediate end. May be repeated.
    fn kill(&mut self);

    /// Whether it has ended. Processes it started and left behind are then killed.
    fn has_ended(&mut self) -> bool;

    /// Waits for its end, for a limited time; `None` if that could not be determined.
    fn wait(&mut self) -> impl Future<Output = Option<Exit>> + Send;

    /// Its memory, if observed from outside.
    fn memory(&self) -> Option<ProcessMemory>;
}

/// A runner with its two outputs: frames, and what libraries print.
#[derive(Debug)]
pub struct Running<P, F, C> {
    /// The process.
    pub process: P,
    /// Its frames, as lines.
    pub frames: F,
    /// What was printed, as lines.
    pub console: C,
}

/// How a process ended.
#[derive(Debug)]
pub enum Exit {
    /// With this status; `None` if the system does not report it.
    Status(Option<i32>),
    /// By this signal.
    Signal(i32),
    /// It never started: it cannot be executed there.
    NotExecuted {
        /// Status of the shell that tried.
        status: i32,
        /// What to do about it.
        advice: String,
    },
    /// Unknown: the link to its device broke.
    Lost {
        /// What broke.
        error: DeviceError,
        /// What to do about it.
        advice: String,
    },
}

/// Translates a runner's messages to this machine's clock and file names.
pub trait Translate: Send + Sync {
    /// The runner is up.
    fn hello(&mut self, hello: &Hello);

    /// An event and its timestamp, microseconds. `None` if it is not for the stream.
    fn event(&mut self, t_us: u64, event: Event) -> Option<(u64, Event)>;
}
