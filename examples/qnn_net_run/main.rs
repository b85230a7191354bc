//! A stand-in for the SDK's qnn-net-run, for testing code that drives that tool on a device: the same
//! options, console lines, files and exit statuses, on the real QNN libraries, through qnnscope's own runner.
//!
//! One executable is enough: the runner process is this program again. It runs one model with one graph.

#[cfg(unix)]
mod tool;

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    tool::main()
}

/// There is no QNN runtime for this system.
#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("this system has no local QNN runtime");
    ExitCode::FAILURE
}
