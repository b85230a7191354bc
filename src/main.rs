//! The `qnnscope` program. Only this file and a dying runner end the process.

use std::process::ExitCode;

fn main() -> ExitCode {
    qnnscope::cli::main()
}
