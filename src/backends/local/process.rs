//! Starts the runner process, ends it with all its descendants, and reads how it ended.

use super::confinement::is_confined;
use super::environment;
use super::leftovers;
use super::link::{Exit, GRACE, Process, Running};
use super::scratch::Scratch;
use crate::backends::qnn::runner::SCRATCH_VARIABLE;
use crate::backends::qnn::runner::Task;
use crate::devices::Group;
use crate::probes::process::{ProcessMemory, memory};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use thiserror::Error;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

/// The runner cannot be started.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunnerError {
    #[error("cannot start the runner process {program}: {source}")]
    Spawn { program: PathBuf, source: std::io::Error },
    #[error("cannot create the runner's temporary folder: {source}; $TMPDIR must name a writable folder")]
    Scratch { source: std::io::Error },
    #[error("the request cannot be sent to the runner: {reason}; file names must be UTF-8 text")]
    Request { reason: String },
}

/// Name of a fatal signal by number; the numbers are the same on all Linux systems that run QNN.
pub fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(number) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::Signal(number);
        }
        Self::Status(status.code())
    }
}

/// A runner on this machine. Dropping it kills it with all its descendants.
pub struct LocalProcess {
    child: Child,
    stdin: ChildStdin,
    pid: Option<u32>,
    group: Group,
    /// The folder it may write to; removed with it.
    scratch: Option<Scratch>,
    is_swept: bool,
}

impl Process for LocalProcess {
    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stdin.write_all(bytes).await?;
        self.stdin.flush().await
    }

    fn kill(&mut self) {
        let _ = self.child.start_kill();
    }

    fn has_ended(&mut self) -> bool {
        let ended = matches!(self.child.try_wait(), Ok(Some(_)));
        if ended {
            self.end_what_it_started();
        }
        ended
    }

    async fn wait(&mut self) -> Option<Exit> {
        let status = match tokio::time::timeout(GRACE, self.child.wait()).await {
            Ok(Ok(status)) => Some(status),
            _ => {
                self.kill();
                self.child.wait().await.ok()
            }
        };
        status.map(Exit::from)
    }

    fn memory(&self) -> Option<ProcessMemory> {
        self.pid.and_then(|pid| memory(Some(pid)))
    }
}

impl LocalProcess {
    /// Kills everything the runner started, wherever it is. Once is enough: when the runner and all its
    /// descendants have ended, nothing is left that could start another process.
    fn end_what_it_started(&mut self) {
        if std::mem::replace(&mut self.is_swept, true) {
            return;
        }
        self.group.kill();
        if let Some(scratch) = &self.scratch {
            leftovers::end(SCRATCH_VARIABLE, scratch.path());
        }
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        self.end_what_it_started();
    }
}

/// The runner's program: this binary, or `$QNNSCOPE_RUNNER` (for debugging the protocol).
fn program() -> Result<PathBuf, RunnerError> {
    if let Some(program) = std::env::var_os("QNNSCOPE_RUNNER") {
        return Ok(PathBuf::from(program));
    }
    std::env::current_exe().map_err(|source| RunnerError::Spawn { program: PathBuf::from("qnnscope"), source })
}

/// A runner on this machine with its pipes.
type Spawned = Running<LocalProcess, BufReader<ChildStdout>, BufReader<ChildStderr>>;

/// Starts a runner with its three pipes, in a process group of its own.
pub fn spawn(task: &Task) -> Result<Spawned, RunnerError> {
    let program = program()?;
    let failed = |source| RunnerError::Spawn { program: program.clone(), source };
    let scratch = is_confined().then(Scratch::new).transpose().map_err(|source| RunnerError::Scratch { source })?;
    let mut command = tokio::process::Command::new(&program);
    command.arg(crate::RUNNER_SUBCOMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(scratch) = &scratch {
        command.env_clear().envs(environment::kept());
        // Libraries that want a home or temporary folder get the scratch folder.
        for variable in ["HOME", "TMPDIR", SCRATCH_VARIABLE] {
            command.env(variable, scratch.path());
        }
    } else {
        command.env_remove(SCRATCH_VARIABLE);
    }
    // Backends open their siblings by bare name; the DSP side searches its own path (`;` between folders).
    let folder = match task {
        Task::Run(task) => Some(task.runtime_dir.clone()),
        Task::Inspect(task) => Some(task.runtime_dir.clone()),
        Task::Check(task) => Some(task.runtime_dir.clone()),
        Task::Tensors(task) => Some(task.runtime_dir.clone()),
        Task::Convert(task) => Some(task.run.runtime_dir.clone()),
        Task::Probe(task) => task.library.parent().map(ToOwned::to_owned),
    };
    if let Some(folder) = folder {
        for path in [LIBRARY_PATH, DSP_PATH] {
            command.env(path.0, search_path(&folder, path));
        }
    }
    command.kill_on_drop(true);
    // Its own group: Ctrl-C in the terminal reaches only us, and we end the run cleanly.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            let pid = child.id();
            Ok(Running {
                process: LocalProcess { child, stdin, pid, group: Group(pid), scratch, is_swept: false },
                frames: BufReader::with_capacity(1 << 16, stdout),
                console: BufReader::new(stderr),
            })
        }
        _ => Err(failed(std::io::Error::other("its pipes are missing"))),
    }
}

/// The variable with the CPU's library search path, and its separator.
pub const LIBRARY_PATH: (&str, &str) = ("LD_LIBRARY_PATH", ":");
/// The same for the DSP.
pub const DSP_PATH: (&str, &str) = ("ADSP_LIBRARY_PATH", ";");

/// `folder` prepended to the variable's current value, for a runner on this machine.
pub fn search_path(folder: &std::path::Path, (variable, separator): (&str, &str)) -> std::ffi::OsString {
    let mut value = folder.as_os_str().to_owned();
    if let Some(old) = std::env::var_os(variable).filter(|old| !old.is_empty()) {
        value.push(separator);
        value.push(old);
    }
    value
}
