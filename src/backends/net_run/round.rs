//! One round: runs the tool, turns its output into log lines, reads its growing log, watches its memory.

use super::command::Round;
use super::console::{Heard, log_line};
use super::kept_log::KeptLog;
use super::memory::{MemoryLook, memory_look, watch_memory};
use super::messages::{ToolMessage, told};
use crate::backends::on_device::names::PID_MARK;
use crate::backends::profile_log::{Decoder, ProfileLogError};
use crate::devices::{Device, DeviceError, EndMarker, ShellStream, quote};
use crate::event::{LogLine, now_us};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often a round's growing log is checked.
const POLL: Duration = Duration::from_millis(500);
/// Largest piece of a log fetched at once.
const PIECE_BYTES: u64 = 4 << 20;
/// Time a round may continue after a stop; longer ones are killed.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// Time the tool gets to end after being told to.
const END_GRACE: Duration = Duration::from_secs(5);

/// What a round reports while it runs.
#[derive(Debug)]
pub enum Progress {
    /// The tool runs; its process id.
    Started(u32),
    /// A line of the tool.
    Line(LogLine),
    /// Data from the profile log.
    Told(ToolMessage),
    /// A memory reading of the tool, on the host's clock.
    Memory(u64, MemoryLook),
}

/// Receives a round's reports.
pub trait Listener: Send {
    /// Takes one report.
    fn take(&mut self, progress: Progress) -> impl Future<Output = ()> + Send;
}

/// How a round ended.
#[derive(Debug)]
pub struct RoundEnd {
    /// Exit status of the tool, 128 + n for signal n.
    pub status: i32,
    /// True if we ended it at the user's request.
    pub stopped: bool,
    /// Why we gave up on it and ended it, if so.
    pub given_up: Option<String>,
    /// From its start to its end, microseconds on the host's clock.
    pub wall_us: u64,
    /// What was printed, for failures.
    pub heard: Heard,
    /// Bytes of the log beyond the last whole chunk.
    pub incomplete_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
}

/// Why the end of a round is unknown.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The device, or the link to it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The log is damaged.
    #[error(transparent)]
    Log(#[from] ProfileLogError),
    /// The log cannot be stored.
    #[error(transparent)]
    Keep(#[from] std::io::Error),
}

/// Reads a growing log on the device.
struct LogFollower<'a> {
    device: &'a Device,
    path: String,
    fetched: u64,
    decoder: Decoder,
    kept: Option<&'a mut KeptLog>,
}

impl LogFollower<'_> {
    /// Fetches and returns new data.
    async fn poll(&mut self, graph: Option<&str>) -> Result<Vec<ToolMessage>, RoundError> {
        let mut found = Vec::new();
        loop {
            let script = format!(
                "tail -c +{} {path} 2>/dev/null | head -c {PIECE_BYTES}",
                self.fetched + 1,
                path = quote(&self.path)
            );
            let output = self.device.run(&script, "reading the profile log").await?;
            let bytes = output.bytes.len() as u64;
            self.fetched += bytes;
            if let Some(kept) = &mut self.kept {
                kept.add(&output.bytes)?;
            }
            self.decoder.push(&output.bytes);
            while let Some(chunk) = self.decoder.next_chunk()? {
                found.extend(told(&chunk, graph));
            }
            if bytes < PIECE_BYTES {
                return Ok(found);
            }
        }
    }
}

/// Runs one round. Its reports go to `listener` as they arrive.
pub async fn run(
    device: &Device,
    round: &Round<'_>,
    graph: Option<&str>,
    silence_limit: Duration,
    stop: &mut watch::Receiver<bool>,
    kept: Option<&mut KeptLog>,
    listener: &mut impl Listener,
) -> Result<RoundEnd, RoundError> {
    let marker = EndMarker::new();
    let began_us = now_us();
    let mut stream = device.stream(&marker.wrap(&round.script()));
    let mut log = LogFollower { device, path: round.log_path(), fetched: 0, decoder: Decoder::new(), kept };
    let mut memory: Option<ShellStream> = None;
    let mut heard = Heard::default();
    let mut poll = tokio::time::interval(POLL);
    poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    poll.tick().await;
    let mut last_sign = Instant::now();
    let mut stop_open = true;
    let mut ending: Option<Instant> = None;
    let mut end_at: Option<Instant> = (*stop.borrow()).then(|| Instant::now() + STOP_GRACE);
    let (mut stopped, mut given_up) = (false, None);
    let status = loop {
        tokio::select! {
            line = stream.next_line() => {
                let Some(line) = line else {
                    return Err(lost(device).into());
                };
                let line = line?;
                last_sign = Instant::now();
                if let Some(status) = marker.status(&with_end(&line)) {
                    break status;
                }
                let text = String::from_utf8_lossy(&line);
                if let Some(pid) = text.strip_prefix(PID_MARK).and_then(|pid| pid.trim().parse().ok()) {
                    memory = Some(watch_memory(device, pid));
                    listener.take(Progress::Started(pid)).await;
                } else if !text.trim().is_empty() {
                    let line = log_line(&text);
                    heard.take(&line);
                    listener.take(Progress::Line(line)).await;
                }
            }
            line = next_line(&mut memory) => match line {
                Some(Ok(line)) => if let Some(look) = memory_look(&line) {
                    listener.take(Progress::Memory(now_us(), look)).await;
                },
                // The process or the link is gone: the tool's own stream shows which one.
                _ => memory = None,
            },
            changed = stop.changed(), if stop_open && end_at.is_none() => {
                stop_open = changed.is_ok();
                end_at = (*stop.borrow()).then(|| Instant::now() + STOP_GRACE);
            }
            _ = poll.tick() => {
                let found = log.poll(graph).await?;
                if !found.is_empty() {
                    last_sign = Instant::now();
                }
                for told in found {
                    listener.take(Progress::Told(told)).await;
                }
                if end_at.is_some_and(|at| Instant::now() > at) && ending.is_none() {
                    stopped = true;
                    stream.write(b"\n");
                    ending = Some(Instant::now());
                }
                if last_sign.elapsed() > silence_limit && ending.is_none() {
                    given_up = Some(format!("it made no progress for {} s (--stage-timeout)", silence_limit.as_secs_f64()));
                    stream.write(b"\n");
                    ending = Some(Instant::now());
                }
                if ending.is_some_and(|since| since.elapsed() > END_GRACE) {
                    // Not even a kill ends it; all that remains is to drop the stream.
                    break 137;
                }
            }
        }
    };
    let wall_us = now_us() - began_us;
    for told in log.poll(graph).await? {
        listener.take(Progress::Told(told)).await;
    }
    Ok(RoundEnd {
        status,
        stopped,
        given_up,
        wall_us,
        heard,
        incomplete_bytes: log.decoder.incomplete_bytes(),
        log_bytes: log.fetched,
    })
}

fn lost(device: &Device) -> DeviceError {
    DeviceError::LinkLost { id: device.id().to_owned(), action: "running qnn-net-run".to_owned() }
}

/// The marker's number counts only with its line end, which reading by lines strips.
fn with_end(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    line.push(b'\n');
    line
}

async fn next_line(stream: &mut Option<ShellStream>) -> Option<Result<Vec<u8>, DeviceError>> {
    match stream {
        Some(stream) => stream.next_line().await,
        None => std::future::pending().await,
    }
}
