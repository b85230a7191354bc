//! Hosts on which no QNN runtime runs.

use std::process::ExitCode;

/// Reports that nothing can run here.
pub fn main() -> ExitCode {
    eprintln!("this system has no local QNN runtime; models run on devices");
    ExitCode::FAILURE
}
