//! Starting the runner process, ending it with all it started, and reading how it ended.

use crate::backends::qnn::runner::Task;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use thiserror::Error;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

/// The runner cannot be started.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunnerError {
    #[error("cannot start the runner process {program}: {source}")]
    Spawn { program: PathBuf, source: std::io::Error },
    #[error("the request cannot be told to the runner: {reason}; file names must be UTF-8 text")]
    Request { reason: String },
}

/// Number and name of the signal that ended a process.
#[cfg(unix)]
pub fn signal(exit: ExitStatus) -> Option<(i32, &'static str)> {
    use std::os::unix::process::ExitStatusExt;
    let number = exit.signal()?;
    let name = match number {
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
        _ => "a signal",
    };
    Some((number, name))
}

/// No signals here.
#[cfg(not(unix))]
pub fn signal(_exit: ExitStatus) -> Option<(i32, &'static str)> {
    None
}

/// The runner's program: this binary, or `$QNNSCOPE_RUNNER` (for debugging the protocol).
fn program() -> Result<PathBuf, RunnerError> {
    if let Some(program) = std::env::var_os("QNNSCOPE_RUNNER") {
        return Ok(PathBuf::from(program));
    }
    std::env::current_exe().map_err(|source| RunnerError::Spawn { program: PathBuf::from("qnnscope"), source })
}

/// Starts a runner with its three pipes, in a process group of its own.
pub fn spawn(task: &Task) -> Result<(Child, ChildStdin, ChildStdout, ChildStderr), RunnerError> {
    let program = program()?;
    let failed = |source| RunnerError::Spawn { program: program.clone(), source };
    let mut command = tokio::process::Command::new(&program);
    command.arg(crate::RUNNER_SUBCOMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Backends open their siblings by bare name; the DSP side searches its own path (`;` between folders).
    let folder = match task {
        Task::Run(task) => Some(task.runtime_dir.clone()),
        Task::Inspect(task) => Some(task.runtime_dir.clone()),
        Task::Probe(task) => task.library.parent().map(ToOwned::to_owned),
    };
    if let Some(folder) = folder {
        command.env("LD_LIBRARY_PATH", joined(&folder, "LD_LIBRARY_PATH", ":"));
        command.env("ADSP_LIBRARY_PATH", joined(&folder, "ADSP_LIBRARY_PATH", ";"));
    }
    command.kill_on_drop(true);
    // A group of its own: Ctrl-C in the terminal reaches us, and we end the run in order.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok((child, stdin, stdout, stderr)),
        _ => Err(failed(std::io::Error::other("its pipes are missing"))),
    }
}

/// `folder` in front of what the variable already holds.
fn joined(folder: &std::path::Path, variable: &str, separator: &str) -> std::ffi::OsString {
    let mut value = folder.as_os_str().to_owned();
    if let Some(old) = std::env::var_os(variable).filter(|old| !old.is_empty()) {
        value.push(separator);
        value.push(old);
    }
    value
}
