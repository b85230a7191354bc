//! One stream of a link: what a service reads from and writes to.

use super::link::Link;
use super::packet::{Command, Packet};
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

/// The host's side is gone; nothing more can be sent.
#[derive(Debug)]
pub struct Closed;

type HangUp = Box<dyn FnOnce() + Send>;

struct State {
    /// The last write has been acknowledged: the protocol allows one at a time.
    ready: bool,
    closed: bool,
    /// Dropped when the stream closes, which ends the reader.
    input: Option<Sender<Vec<u8>>>,
    on_close: Option<HangUp>,
}

/// An open stream.
pub struct Stream {
    link: Arc<Link>,
    local: u32,
    remote: u32,
    state: Mutex<State>,
    changed: Condvar,
}

impl Stream {
    /// A stream, and the reader for what the host sends.
    pub fn new(link: Arc<Link>, local: u32, remote: u32) -> (Arc<Self>, Input) {
        let (input, chunks) = channel();
        let state = State { ready: true, closed: false, input: Some(input), on_close: None };
        let stream = Arc::new(Self { link, local, remote, state: Mutex::new(state), changed: Condvar::new() });
        let reader = Input { stream: stream.clone(), chunks, rest: Vec::new(), at: 0 };
        (stream, reader)
    }

    fn packet(&self, command: Command, payload: Vec<u8>) -> Packet {
        Packet { command, arg0: self.local, arg1: self.remote, payload }
    }

    /// Confirms that the service exists, or that data was received.
    pub fn okay(&self) {
        self.link.send(&self.packet(Command::Okay, Vec::new()));
    }

    /// Sends everything, in as many packets as necessary, each one after the previous one was acknowledged.
    pub fn write(&self, data: &[u8]) -> Result<(), Closed> {
        for chunk in data.chunks(self.link.max_payload()) {
            let mut state = self.state.lock().unwrap();
            while !state.ready && !state.closed {
                state = self.changed.wait(state).unwrap();
            }
            if state.closed {
                return Err(Closed);
            }
            state.ready = false;
            self.link.send(&self.packet(Command::Write, chunk.to_vec()));
        }
        Ok(())
    }

    /// Closes the stream from this side, once the host has acknowledged the last write.
    pub fn close(&self) {
        {
            let mut state = self.state.lock().unwrap();
            while !state.ready && !state.closed {
                state = self.changed.wait(state).unwrap();
            }
            if state.closed {
                return;
            }
            state.closed = true;
            state.input = None;
            state.on_close = None;
        }
        self.link.send(&self.packet(Command::Close, Vec::new()));
        self.link.forget(self.local);
    }

    /// Runs `action` when the host closes the stream or the link is lost; at once if that has already
    /// happened.
    pub fn on_close(&self, action: impl FnOnce() + Send + 'static) {
        let mut state = self.state.lock().unwrap();
        if state.closed {
            drop(state);
            action();
        } else {
            state.on_close = Some(Box::new(action));
        }
    }

    /// Called when the host has acknowledged a write.
    pub fn acknowledged(&self) {
        self.state.lock().unwrap().ready = true;
        self.changed.notify_all();
    }

    /// Called when the host has sent data.
    pub fn received(&self, data: Vec<u8>) {
        if let Some(input) = &self.state.lock().unwrap().input {
            let _ = input.send(data);
        }
    }

    /// Called when the host has closed the stream, or the link is gone.
    pub fn closed_by_host(&self) {
        let action = {
            let mut state = self.state.lock().unwrap();
            state.closed = true;
            state.input = None;
            state.on_close.take()
        };
        self.changed.notify_all();
        if let Some(action) = action {
            // An action may wait for a process to appear; meanwhile the link continues.
            std::thread::spawn(action);
        }
    }
}

/// What the host sends on a stream. Each chunk is acknowledged when it is read, so a slow service slows down
/// the host.
pub struct Input {
    stream: Arc<Stream>,
    chunks: Receiver<Vec<u8>>,
    rest: Vec<u8>,
    at: usize,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.rest.len() {
            let Ok(chunk) = self.chunks.recv() else { return Ok(0) };
            self.stream.okay();
            self.rest = chunk;
            self.at = 0;
        }
        let count = buffer.len().min(self.rest.len() - self.at);
        buffer[..count].copy_from_slice(&self.rest[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
