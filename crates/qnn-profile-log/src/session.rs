//! Finds where one session ends and the next begins: several processes may write into one log.

use super::chunk::{Header, Message};

/// Watches headers and messages in order. A session begins at a header, where sequence numbers restart, or, in ONNX
/// Runtime's logs, whose numbers are always 0, where graphs are prepared after something was executed.
#[derive(Debug, Clone, Default)]
pub struct SessionSplitter {
    sessions: u64,
    onnx_runtime: bool,
    last_seq: Option<u64>,
    executed: bool,
}

impl SessionSplitter {
    /// Before the first message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sessions begun so far.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// A header begins a session.
    pub fn header(&mut self, header: &Header<'_>) {
        self.begin();
        self.onnx_runtime = header.is_onnx_runtime();
    }

    /// True if the message is the first of a session without a header.
    pub fn message(&mut self, message: &Message<'_>) -> bool {
        let method = message.method();
        let again = if self.onnx_runtime {
            self.executed && method.is_setup()
        } else {
            matches!((message.seq(), self.last_seq), (Some(seq), Some(last)) if seq <= last)
        };
        let begins = again || self.sessions == 0;
        if begins {
            self.begin();
        }
        self.last_seq = message.seq().or(self.last_seq);
        self.executed |= method.is_inference();
        begins
    }

    /// A message was followed by inferences with numbers increasing up to `last_seq`.
    pub(super) fn went_on(&mut self, last_seq: u64) {
        self.last_seq = Some(last_seq);
        self.executed = true;
    }

    fn begin(&mut self) {
        self.sessions += 1;
        self.last_seq = None;
        self.executed = false;
    }
}
