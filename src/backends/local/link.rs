//! What the supervisor needs of a runner, wherever its process is.

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

    /// Asks for its end at once. May be asked again.
    fn kill(&mut self);

    /// Whether it has ended. What it started, and left behind, is ended then.
    fn has_ended(&mut self) -> bool;

    /// Waits for its end, not for ever; `None` where nothing of it could be learnt.
    fn wait(&mut self) -> impl Future<Output = Option<Exit>> + Send;

    /// Its memory, where that is looked at from outside.
    fn memory(&self) -> Option<ProcessMemory>;
}

/// A runner with what it says: frames on one side, what libraries print on the other.
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
    /// With this status; `None` where the system does not report it.
    Status(Option<i32>),
    /// By this signal.
    Signal(i32),
    /// It never came up: it cannot be executed there.
    NotExecuted {
        /// Status of the shell that tried.
        status: i32,
        /// What to do about it.
        advice: String,
    },
    /// Nobody knows: the link to its device broke.
    Lost {
        /// What broke.
        error: DeviceError,
        /// What to do about it.
        advice: String,
    },
}

/// Brings what a runner says into the terms of this machine: its clock and its file names are others.
pub trait Translate: Send + Sync {
    /// The runner is up.
    fn hello(&mut self, hello: &Hello);

    /// An event and its moment, microseconds. `None` if it is not for the stream.
    fn event(&mut self, t_us: u64, event: Event) -> Option<(u64, Event)>;
}
