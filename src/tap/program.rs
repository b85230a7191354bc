//! The tapped program: how it is started, which signals it gets, and how it ended.

use qnnscope_core::tap::{DETAIL_VARIABLE, LOG_VARIABLE, REAL_VARIABLE, REPAIR_VARIABLE, SINK_VARIABLE};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use thiserror::Error;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The program cannot be started.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ProgramError {
    #[error("cannot start {}: {source}", program.display())]
    Start { program: PathBuf, source: std::io::Error },
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
}

/// Destination of the program's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Wherever it would go without us; the program also reads from the terminal.
    Own,
    /// To us; the program has no input.
    Piped,
}

/// The tap's settings, as environment variables.
#[derive(Debug, Clone, Default)]
pub struct Variables(Vec<(OsString, OsString)>);

impl Variables {
    /// The socket the tap writes to.
    pub fn sink(&mut self, socket: &Path) {
        let mut sink = OsString::from("unix:");
        sink.push(socket);
        self.0.insert(0, (SINK_VARIABLE.into(), sink));
    }

    /// Adds a variable.
    pub fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.0.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
    }

    /// How often executions are profiled in detail.
    pub fn detail(&mut self, value: &str) {
        self.set(DETAIL_VARIABLE, value);
    }

    /// Level of the vendor's log.
    pub fn log(&mut self, level: &str) {
        self.set(LOG_VARIABLE, level);
    }

    /// Repairs requested by the user.
    pub fn repair(&mut self, repairs: &str) {
        self.set(REPAIR_VARIABLE, repairs);
    }

    /// Folder of the real libraries.
    pub fn real(&mut self, folder: &Path) {
        self.set(REAL_VARIABLE, folder);
    }

    /// Names and values, in the order they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Exit status, if it had one.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        Self { status: status.code(), signal: status.signal() }
    }
}

/// The running program. Dropping this does not end it: it belongs to the user.
#[derive(Debug)]
pub struct Program {
    child: Child,
    pid: Option<u32>,
    output: Output,
    signals: Signals,
}

/// Signals that are passed on; a terminal itself sends the first three to everything in its foreground.
const PASSED: [SignalKind; 6] = [
    SignalKind::interrupt(),
    SignalKind::quit(),
    SignalKind::hangup(),
    SignalKind::terminate(),
    SignalKind::user_defined1(),
    SignalKind::user_defined2(),
];
const OF_TERMINALS: usize = 3;

/// Signals sent to this process but meant for the program.
#[derive(Debug)]
pub struct Signals(Vec<(i32, Signal)>);

impl Signals {
    /// From here on, none of these signals ends this process. Ignored ones stay ignored.
    ///
    /// # Errors
    /// The system's error.
    pub fn catch() -> std::io::Result<Self> {
        let ignored = ignored_signals();
        let wanted = PASSED.iter().filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 0);
        Ok(Self(wanted.map(|kind| Ok((kind.as_raw_value(), signal(*kind)?))).collect::<std::io::Result<_>>()?))
    }

    /// Waits for the next signal; returns its number.
    pub async fn next(&mut self) -> i32 {
        std::future::poll_fn(|context| {
            for (number, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

impl Program {
    /// Starts the program.
    ///
    /// # Errors
    /// The system cannot start it.
    pub fn start(command: &[OsString], variables: &Variables, output: Output) -> Result<Self, ProgramError> {
        let (program, arguments) = command.split_first().map_or((OsStr::new(""), &[][..]), |(p, a)| (p.as_os_str(), a));
        let mut call = Command::new(program);
        call.args(arguments).envs(variables.iter());
        if output == Output::Piped {
            call.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // The keyboard belongs to the live view; signals from its keys must not reach the program
            // directly.
            call.process_group(0);
        }
        // Before the program exists, so that no signal is lost. Ignored ones stay ignored, here and in the
        // program; those handled here have their default effect in the program.
        let signals = Signals::catch().map_err(ProgramError::Signals)?;
        let child = call.spawn().map_err(|source| ProgramError::Start { program: PathBuf::from(program), source })?;
        let pid = child.id();
        Ok(Self { child, pid, output, signals })
    }

    /// Its process id.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Its outputs; returns them once.
    pub fn outputs(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for its end; signals that arrive meanwhile are passed on to it.
    pub async fn wait(&mut self) -> std::io::Result<Ended> {
        loop {
            let caught = tokio::select! {
                biased;
                status = self.child.wait() => return status.map(Ended::from),
                caught = self.signals.next() => caught,
            };
            let of_terminal = PASSED[..OF_TERMINALS].iter().any(|kind| kind.as_raw_value() == caught);
            if !(of_terminal && self.output == Output::Own && in_foreground()) {
                send(self.pid, caught);
            }
        }
    }
}

/// Sends a program a signal; no effect if it has ended.
pub fn send(pid: Option<u32>, number: i32) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(number)) {
        let _ = kill_process(pid, signal);
    }
}

/// The signals that our parent process made us ignore, as a mask.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// True if the terminal sends its signals to our process group, which includes the program.
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}
