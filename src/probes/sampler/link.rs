//! One shell on the device.

use super::line::Line;
use super::script;
use crate::devices::{Device, DeviceError, Root, ShellStream, as_root};
use crate::event::Gap;
use std::time::Duration;

/// Time the shell gets to end by itself before it is killed.
const END_LIMIT: Duration = Duration::from_secs(2);
/// Time limit for killing a shell.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// Maximum length of a service's text.
const MAX_SERVICE_BYTES: usize = 1 << 20;

/// A running loop.
#[derive(Debug)]
pub struct Link {
    device: Device,
    root: Root,
    stream: ShellStream,
    text: Option<(usize, Vec<u8>)>,
    /// The shell's process on the device.
    pid: Option<u32>,
}

/// Data from the link.
#[derive(Debug)]
pub enum Incoming {
    /// A line.
    Line(Vec<u8>),
    /// The whole text of a service, and its source.
    Text(usize, Result<Vec<u8>, Gap>),
    /// The line that starts the text of a service.
    TextStart(Vec<u8>),
}

impl Link {
    /// Starts the loop's script; it waits for commands.
    pub fn start(device: &Device, root: Root) -> Self {
        let stream = device.stream(&as_root(root, &script::script()));
        Self { device: device.clone(), root, stream, text: None, pid: None }
    }

    /// Sends commands.
    pub fn send(&self, commands: &str) {
        self.stream.write(commands.as_bytes());
        if !commands.ends_with('\n') {
            self.stream.write(b"\n");
        }
    }

    /// The next line or text; `None` once the shell has ended. May be dropped while waiting.
    pub async fn next(&mut self) -> Option<Result<Incoming, DeviceError>> {
        loop {
            let line = match self.stream.next_line().await? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            match (super::line::parse(&line), &mut self.text) {
                (Some(Line::TextStart { source, .. }), None) => {
                    self.text = Some((source, Vec::new()));
                    return Some(Ok(Incoming::TextStart(line)));
                }
                (Some(Line::TextEnd { source }), Some((reading, text))) if source == *reading => {
                    let text = std::mem::take(text);
                    self.text = None;
                    let is_empty = text.iter().all(u8::is_ascii_whitespace);
                    return Some(Ok(Incoming::Text(source, if is_empty { Err(Gap::Unreadable) } else { Ok(text) })));
                }
                (_, Some((_, text))) => {
                    if text.len() < MAX_SERVICE_BYTES {
                        text.extend_from_slice(&line);
                        text.push(b'\n');
                    }
                }
                (known, None) => {
                    if let Some(Line::Hello { pid, .. }) = known {
                        self.pid = pid;
                    }
                    return Some(Ok(Incoming::Line(line)));
                }
            }
        }
    }

    /// Ends the loop: cleanly, or else by force.
    pub async fn end(mut self) {
        self.send("exit");
        let rest = async { while let Some(Ok(_)) = self.stream.next_line().await {} };
        if tokio::time::timeout(END_LIMIT, rest).await.is_err() {
            self.kill().await;
        }
    }

    /// Ends a loop that hangs on a file, since it does not notice that its stream has been closed.
    pub async fn kill(self) {
        let Some(pid) = self.pid else { return };
        let script = as_root(self.root, &format!("kill -9 {pid} 2>/dev/null"));
        // Nothing can be done from here about a device that does not respond at all.
        let _ = self.device.run_within(&script, "ending a shell that hangs", KILL_LIMIT).await;
    }
}
