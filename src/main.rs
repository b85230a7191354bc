//! The `qnnscope` program. This is the only place that ends the process.

use std::process::ExitCode;

fn main() -> ExitCode {
    qnnscope::cli::main()
}
