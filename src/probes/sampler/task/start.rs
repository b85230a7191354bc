//! The start of the loop: the shell's greeting, and timing of each file.

use super::{End, Task};
use crate::probes::sampler::line::{Line, parse};
use crate::probes::sampler::link::{Incoming, Link};
use crate::probes::sampler::script;
use std::time::Duration;
use tokio::time::Instant;

/// How long the shell may take to start; `su` may have to ask the user first.
const START_LIMIT: Duration = Duration::from_secs(30);
/// A file that takes longer than this to read counts as hanging.
const READ_LIMIT: Duration = Duration::from_secs(2);

impl Task {
    /// The next line of the main stream while nothing else is happening.
    pub(super) async fn line(&self, main: &mut Link, limit: Duration) -> Result<Option<Vec<u8>>, End> {
        loop {
            match tokio::time::timeout(limit, main.next()).await {
                Err(_) => return Ok(None),
                Ok(Some(Ok(Incoming::Line(line)))) => return Ok(Some(line)),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(self.lost(Some(error))),
                Ok(None) => return Err(self.lost(None)),
            }
        }
    }

    pub(super) async fn greet(&mut self, main: &mut Link) -> Result<(), End> {
        let mut said = String::new();
        loop {
            let line = match self.line(main, START_LIMIT).await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(End::Failed("the device's shell does not start".to_owned())),
                // The message from `su` explains why there is no shell.
                Err(End::Lost(reason)) if !said.is_empty() => return Err(End::Failed(format!("{reason}: {said}"))),
                Err(end) => return Err(end),
            };
            if let Some(Line::Hello { waits, has_epoch, .. }) = parse(&line) {
                (self.waits, self.has_epoch) = (waits, has_epoch);
                return Ok(());
            }
            said = crate::event::clean_text(String::from_utf8_lossy(&line).trim());
        }
    }

    /// Times every file once. A file that takes too long is left out of the next instance.
    pub(super) async fn time(&mut self, main: &mut Link) -> Result<(), End> {
        self.token += 1;
        let token = self.token;
        main.send(&script::timing(&self.state.sources, &self.hanging, token));
        let mut reading = None;
        let mut before_us = 0;
        loop {
            let Some(line) = self.line(main, READ_LIMIT).await? else {
                let Some(source) = reading.filter(|source| self.hanging.insert(*source)) else {
                    return Err(End::Silent);
                };
                self.say_hanging(source).await;
                return Err(End::Silent);
            };
            match parse(&line) {
                Some(Line::Timing { source }) => reading = Some(source),
                Some(Line::Timed { source, us, uptime_us }) => {
                    before_us = uptime_us;
                    self.costs_us.extend(us.map(|us| (source, us)));
                }
                // The uptime is coarse, but a shell without a wall clock has nothing better.
                Some(Line::TimedUptime { source, uptime_us }) if !self.has_epoch => {
                    self.costs_us.insert(source, uptime_us.saturating_sub(before_us));
                }
                Some(Line::Done { token: done }) if done == token => break,
                _ => {}
            }
        }
        self.retimed = Some(Instant::now());
        Ok(())
    }

    pub(super) async fn say_hanging(&self, source: usize) {
        let path = self.state.sources.files().get(source).map_or("", |file| &file.path);
        self.log(&format!("{path} does not answer on {}: it is left out", self.device.id())).await;
    }
}
