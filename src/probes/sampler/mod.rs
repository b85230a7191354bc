//! Samples a device's counters: one shell on it reads all files in a loop and sends changes.
//!
//! A counter is read in one of four ways, depending on its cost and how fast it changes: at every tick, ten times a
//! second, once a second, or, for slow files and Android's services, by a second shell that delays nothing. Slowness is
//! measured on the device at the start, and again when ticks come late.
//!
//! If a counter needs root, the whole loop runs as root: one shell, one clock, and one prompt of `su` to the user.

mod line;
mod link;
mod plan;
mod script;
mod state;
mod task;

use super::clock::HostClock;
use super::counter::Counter;
use crate::devices::{Device, Root};
use crate::event::{Event, SamplerEnded};
use crate::session::Source;
use task::{Command, Task};
use tokio::sync::{mpsc, watch};

/// Reads a line of the loop to its end.
pub(crate) fn read_line(line: &[u8]) {
    if let Some(line::Line::Tick { values, .. }) = line::parse(line) {
        values.for_each(drop);
    }
}

/// How often to read the fast counters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Times per second; clamped to 0.1 to 2000.
    Hertz(f64),
    /// As often as possible.
    Max,
}

impl Default for Rate {
    fn default() -> Self {
        Self::Hertz(20.0)
    }
}

impl Rate {
    /// Time between two ticks, microseconds; 0: none.
    pub fn period_us(self) -> u64 {
        match self {
            Self::Max => 0,
            Self::Hertz(hz) if hz.is_finite() && hz > 0.0 => {
                std::time::Duration::from_secs_f64(1.0 / hz.clamp(0.1, 2000.0)).as_micros().try_into().unwrap_or(50_000)
            }
            Self::Hertz(_) => Self::default().period_us(),
        }
    }
}

/// How to sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// How often to read the counters.
    pub rate: Rate,
    /// The process whose counters to read, if already running.
    pub pid: Option<u32>,
    /// How long the device has slept since boot, see [`super::Discovery::suspended_us`].
    pub suspended_us: Option<u64>,
    /// Whether to resume after a lost link or silence, as soon as the device answers again.
    pub persists: bool,
}

/// Samples a device until stopped or dropped. Without [`Options::persists`], a broken link ends it.
#[derive(Debug)]
pub struct Sampler {
    commands: mpsc::UnboundedSender<Command>,
    clock: watch::Receiver<Option<HostClock>>,
    task: Option<tokio::task::JoinHandle<SamplerEnded>>,
    device: String,
}

impl Sampler {
    /// Starts sampling `counters` into `source`; call on a tokio runtime. Sends events: the sets of counters, the
    /// clock, samples, gaps, a report each second, and [`SamplerEnded`] at the end.
    pub fn start(device: &Device, root: Root, counters: Vec<Counter>, options: Options, source: Source) -> Self {
        let (commands, receiver) = mpsc::unbounded_channel();
        let (clock_sender, clock) = watch::channel(None);
        let task = Task::new(device.clone(), root, counters, options, source.clone(), clock_sender);
        let task = tokio::spawn(async move {
            let ended = task.run(receiver).await;
            source.send(None, Event::SamplerEnded(ended.clone())).await;
            ended
        });
        Self { commands, clock, task: Some(task), device: device.id().to_owned() }
    }

    /// Changes the rate.
    pub fn set_rate(&self, rate: Rate) {
        let _ = self.commands.send(Command::Rate(rate));
    }

    /// Sets the process whose memory and CPU time to read.
    pub fn watch(&self, pid: Option<u32>) {
        let _ = self.commands.send(Command::Watch(pid));
    }

    /// Retries at once if sampling waits for a lost device.
    pub fn retry(&self) {
        let _ = self.commands.send(Command::Retry);
    }

    /// Samples other counters from now on.
    pub fn choose(&self, counters: Vec<Counter>) {
        let _ = self.commands.send(Command::Choose(counters));
    }

    /// The device's clock on the host's axis; `None` until measured.
    pub fn clock(&self) -> watch::Receiver<Option<HostClock>> {
        self.clock.clone()
    }

    /// True once sampling has ended, for whatever reason.
    pub fn is_ended(&self) -> bool {
        self.task.as_ref().is_none_or(tokio::task::JoinHandle::is_finished)
    }

    /// Ends sampling: the loop on the device ends by itself; returns how it ended.
    pub async fn stop(mut self) -> SamplerEnded {
        let _ = self.commands.send(Command::Stop);
        let lost = |reason: String| SamplerEnded { device: self.device.clone(), reason: Some(reason), resumes: false };
        match self.task.take() {
            Some(task) => task.await.unwrap_or_else(|error| lost(error.to_string())),
            None => lost("it had ended before".to_owned()),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // Drops the streams, which ends the loops on the device.
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
