//! The bounds of a runner: time without a sign of progress, and memory.

use super::Supervisor;
use crate::backends::local::link::{GRACE, Process};
use crate::event::{Event, MemoryMark, MemorySample};
use std::time::Duration;

/// Every n-th tick puts the runner's memory on the stream.
const MEMORY_EVERY: u32 = 2;
/// Time to come up.
const HELLO_TIMEOUT: Duration = Duration::from_secs(20);

/// Bounds of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest time without a sign of progress.
    pub stage_timeout: Duration,
    /// Largest resident set, bytes.
    pub memory_bytes: Option<u64>,
}

impl Default for Limits {
    /// Five minutes, and no bound on memory.
    fn default() -> Self {
        Self { stage_timeout: Duration::from_mins(5), memory_bytes: None }
    }
}

impl Supervisor {
    pub(super) async fn watch_memory(&mut self, process: &impl Process, ticks: u32) {
        let Some(memory) = process.memory() else { return };
        if let Some(limit) = self.limits.memory_bytes
            && memory.rss > limit
        {
            let reason = format!(
                "the runner used {} MiB of memory, above the limit of {} MiB (--memory-limit-mb)",
                memory.rss >> 20,
                limit >> 20
            );
            self.killed_for.get_or_insert(reason);
        }
        if ticks.is_multiple_of(MEMORY_EVERY) && self.hello && !self.done {
            let sample = MemorySample {
                mark: MemoryMark::Running,
                rss: memory.rss,
                rss_peak: memory.rss_peak,
                pss: None,
                inferences: 0,
            };
            self.send(crate::event::now_us(), Event::Memory(sample)).await;
        }
    }

    /// Why the runner must be ended now, if it must.
    pub(super) fn overdue(&self) -> Option<String> {
        let silent = self.last_sign.elapsed();
        if !self.hello && silent > HELLO_TIMEOUT {
            return Some(format!("the runner did not start within {} s", HELLO_TIMEOUT.as_secs()));
        }
        if self.done && silent > GRACE {
            return Some("it finished but did not exit".to_owned());
        }
        if !self.done && !self.idle && silent > self.limits.stage_timeout {
            let limit = self.limits.stage_timeout.as_secs_f64();
            return Some(format!("stage {} made no progress for {limit} s (--stage-timeout)", self.stage));
        }
        None
    }
}
