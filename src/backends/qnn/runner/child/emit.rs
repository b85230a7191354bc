//! Writes frames immediately and whole, so that a crash loses nothing sent before it.

use crate::backends::qnn::api::without_level;
use crate::backends::qnn::runner::protocol::{Frame, Hello, PROTOCOL};
use crate::event::{Event, LogLevel, LogLine, LogSource, LogTail, Sandbox, epoch_us, now_us};
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Writes frames to the original standard output.
pub struct Emitter {
    out: Mutex<Out>,
    sandbox: OnceLock<Sandbox>,
}

struct Out {
    file: File,
    line: Vec<u8>,
    tail: LogTail,
}

impl Emitter {
    /// Takes standard output for frames and points descriptors 1 and 2 at the error pipe, so that whatever libraries print
    /// cannot mix with frames.
    pub fn take_stdout() -> io::Result<Self> {
        let out = rustix::io::dup(rustix::stdio::stdout())?;
        rustix::io::fcntl_setfd(&out, rustix::io::FdFlags::CLOEXEC)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok(Self::new(File::from(out)))
    }

    /// Writes frames to `file`.
    pub fn new(file: File) -> Self {
        Self { out: Mutex::new(Out { file, line: Vec::new(), tail: LogTail::default() }), sandbox: OnceLock::new() }
    }

    /// Stores this process's confinement for later answers, and reports it.
    pub fn confined(&self, sandbox: Sandbox) {
        self.event(Event::Sandboxed(Box::new(sandbox.clone())));
        self.sandbox.get_or_init(|| sandbox);
    }

    /// This process's confinement.
    pub fn sandbox(&self) -> Sandbox {
        self.sandbox.get().cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces that the runner is up.
    pub fn hello(&self) {
        let hello = Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            monotonic_us: Some(now_us()),
            epoch_us: Some(epoch_us()),
        };
        self.frame(&Frame::Hello(hello));
    }

    /// Announces that nothing follows.
    pub fn done(&self) {
        self.frame(&Frame::Done);
    }

    /// Sends an event with the current time.
    pub fn event(&self, event: Event) {
        self.frame(&Frame::Event { t_us: now_us(), event });
    }

    /// Sends a frame.
    pub fn frame(&self, frame: &Frame) {
        let mut out = self.lock();
        let Out { file, line, tail } = &mut *out;
        match frame {
            Frame::Event { event: Event::Log(log), .. } => tail.take(log),
            Frame::Event { event: Event::StageStarted { .. }, .. } => tail.next_stage(),
            _ => {}
        }
        line.clear();
        // Frames hold no maps with foreign key types, so this cannot fail; a failed write means that the
        // parent is gone, and then the command watcher ends the process.
        if serde_json::to_writer(&mut *line, frame).is_ok() {
            line.push(b'\n');
            let _ = file.write_all(line);
        }
    }

    /// A line of the backend's log; the event already carries the level that HTP puts in front.
    pub fn backend_log(&self, level: LogLevel, text: &str) {
        self.event(Event::Log(LogLine::new(level, LogSource::Backend, without_level(text))));
    }

    /// A line of our own.
    pub fn runner_log(&self, level: LogLevel, text: &str) {
        self.event(Event::Log(LogLine::new(level, LogSource::Runner, text)));
    }

    /// The relevant log lines, oldest first.
    pub fn log_tail(&self) -> Vec<String> {
        self.lock().tail.lines()
    }
}
