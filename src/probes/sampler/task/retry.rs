//! Restarts the loop: handles a device that falls silent or a broken link.

use super::{Command, End, Marks, SILENCE_LIMIT, Task};
use crate::event::{Event, SamplerEnded};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Maximum consecutive restarts of a silent loop, if sampling does not persist.
const MAX_SILENCES: u32 = 3;
/// Pauses before a retry: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Task {
    pub async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) -> SamplerEnded {
        let mut failures = 0;
        let reason = loop {
            let (began, known) = (Instant::now(), self.hanging.len());
            let end = self.life(&mut commands).await;
            failures = if began.elapsed() > SILENCE_LIMIT * 4 { 1 } else { failures + 1 };
            let why = match end {
                End::Stopped => break None,
                End::Changed => continue,
                // Each hanging file costs one instance of the loop to find, and the next one starts at once.
                End::Silent if self.hanging.len() > known => {
                    self.marks = Marks::Off;
                    failures = 0;
                    self.interrupted_by_file().await;
                    continue;
                }
                End::Silent => {
                    // A file that hangs only sometimes escapes the timing, so the loop itself must announce
                    // what it reads.
                    self.marks = Marks::On(None);
                    if !self.options.persists && failures > MAX_SILENCES {
                        break Some("the device does not answer".to_owned());
                    }
                    format!("nothing came for {} s", SILENCE_LIMIT.as_secs())
                }
                End::Lost(reason) if self.options.persists => reason,
                End::Lost(reason) | End::Failed(reason) => break Some(reason),
            };
            self.interrupt(why).await;
            let pause = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(LONGEST_PAUSE);
            if !self.wait(&mut commands, pause).await {
                break None;
            }
        };
        SamplerEnded { device: self.device.id().to_owned(), reason, resumes: false }
    }

    async fn interrupted_by_file(&mut self) {
        // The most recent entry is the one that hung; the set is small.
        let path = |source: &usize| self.state.sources.files().get(*source).map(|file| file.path.clone());
        let paths: Vec<String> = self.hanging.iter().filter_map(path).collect();
        self.interrupt(format!("reading {} does not come to an end", paths.join(", "))).await;
    }

    /// Reports that there are no samples and why, once per reason.
    async fn interrupt(&mut self, reason: String) {
        if self.interrupted.as_ref() == Some(&reason) {
            return;
        }
        let device = self.device.id().to_owned();
        self.log(&format!("sampling the counters of {device} is interrupted: {reason}")).await;
        let ended = SamplerEnded { device, reason: Some(reason.clone()), resumes: true };
        self.source.send(None, Event::SamplerEnded(ended)).await;
        self.interrupted = Some(reason);
    }

    /// Waits before the next try. False if sampling should stop.
    async fn wait(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(end) => return true,
                command = commands.recv() => match command {
                    None | Some(Command::Stop) => return false,
                    Some(Command::Retry) => return true,
                    Some(command) => self.remember(command),
                },
            }
        }
    }
}
