//! One shell on the device.

use super::script;
use crate::devices::{Device, DeviceError, Root, ShellStream, as_root};
use crate::event::Gap;
use std::time::Duration;

/// Longest that ending by itself may take before the shell is cut off.
const END_LIMIT: Duration = Duration::from_secs(2);
/// The text of a service is cut here.
const MAX_SERVICE_BYTES: usize = 1 << 20;

/// A running loop.
#[derive(Debug)]
pub struct Link {
    stream: ShellStream,
    text: Option<(usize, Vec<u8>)>,
}

/// What came over the link.
#[derive(Debug)]
pub enum Incoming {
    /// A line.
    Line(Vec<u8>),
    /// The whole text of a service, and the source that it is.
    Text(usize, Result<Vec<u8>, Gap>),
    /// The line at which the text of a service begins.
    TextStart(Vec<u8>),
}

impl Link {
    /// Starts the loop's script; it waits for commands.
    pub fn start(device: &Device, root: Root) -> Self {
        Self { stream: device.stream(&as_root(root, &script::script())), text: None }
    }

    /// Sends commands.
    pub fn send(&self, commands: &str) {
        self.stream.write(commands.as_bytes());
        if !commands.ends_with('\n') {
            self.stream.write(b"\n");
        }
    }

    /// The next line or text; `None` when the shell has ended. May be dropped while it waits.
    pub async fn next(&mut self) -> Option<Result<Incoming, DeviceError>> {
        loop {
            let line = match self.stream.next_line().await? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            match (super::line::parse(&line), &mut self.text) {
                (Some(super::line::Line::TextStart { source, .. }), None) => {
                    self.text = Some((source, Vec::new()));
                    return Some(Ok(Incoming::TextStart(line)));
                }
                (Some(super::line::Line::TextEnd { source }), Some((reading, text))) if source == *reading => {
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
                (_, None) => return Some(Ok(Incoming::Line(line))),
            }
        }
    }

    /// Ends the loop: by its own means, or else by cutting it off.
    pub async fn end(mut self) {
        self.send("exit");
        let rest = async { while let Some(Ok(_)) = self.stream.next_line().await {} };
        let _ = tokio::time::timeout(END_LIMIT, rest).await;
    }
}
