//! A stand-in for the SDK's qnn-net-run, for tests of what drives that tool on a device: the same options, console lines,
//! files and exit statuses, on the real QNN libraries, through qnnscope's own runner.
//!
//! One executable suffices: the runner process is this program again. It runs one model with one graph.

#[cfg(unix)]
mod tool;

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    tool::main()
}

/// No QNN runtime runs here.
#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("this system has no local QNN runtime");
    ExitCode::FAILURE
}
